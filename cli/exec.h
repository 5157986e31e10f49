/* Running a command in a sandbox, for `exec` and `run`. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include "ui.h"

/* Rows of both tables. */
#define EXEC_OPTIONS                                                                                     \
    {"cwd", 0, "DIR", "working directory of the command"},                                               \
    {"user", 0, "USER", "run as this user"},                                                             \
    {"env", 0, "KEY=VALUE", "environment of the command (repeatable)", OPT_PAIR},                        \
    {"timeout", 0, "SECONDS", "end the command after this time", OPT_NUMBER},                            \
    {"shell", 0, NULL, "join the arguments and let sh run them"},                                        \
    {"stdin", 0, NULL, "forward standard input; its end is not signalled to the command"}

/* Runs cli->command in c->sb. The exit status: the command's, or that of the error, printed. */
int exec_command(struct cli *cli, struct ui_call *c);

#endif
