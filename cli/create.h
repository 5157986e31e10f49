/* Making a sandbox from the options of `create`, which `run` shares. */
#ifndef CLI_CREATE_H
#define CLI_CREATE_H

#include "ui.h"

/* Rows of both tables; what differs is how long "--timeout" and whose "--env" it is. */
#define CREATE_OPTIONS                                                                               \
    {"metadata", 0, "KEY=VALUE", "attach a label (repeatable)", OPT_PAIR},                           \
    {"cpu", 0, "COUNT", "processors", OPT_NUMBER},                                                   \
    {"memory", 0, "MIB", "memory", OPT_NUMBER},                                                      \
    {"disk", 0, "MIB", "disk", OPT_NUMBER},                                                          \
    {"gpu", 0, "KIND", "graphics processor"},                                                        \
    {"mount", 0, "MOUNT", "volume, KEY=VALUE,KEY=VALUE or a JSON object (repeatable)"},              \
    {"vpc", 0, "VPC", "private network, KEY=VALUE,KEY=VALUE or a JSON object"},                      \
    {"secure", 0, NULL, "ask for an access token on the data plane"},                                \
    {"no-secure", 0, NULL, "ask for none"}

/* Creates into c->sb, the record into c->value. env may be NULL. */
int create_sandbox(struct cli *cli, struct ui_call *c, const char *template_, int64_t timeout_s, const abx_value *env);

#endif
