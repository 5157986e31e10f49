/* Every row of the table, in the order of the help. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cmd.h"

#define COMMANDS(X)                                                                              \
    X(create) X(list) X(info) X(kill) X(timeout) X(pause) X(resume)                              \
    X(exec) X(run) X(ps) X(signal) X(stdin)                                                      \
    X(files_ls) X(files_cat) X(files_put) X(files_get) X(files_stat) X(files_mkdir) X(files_rm) X(files_mv) \
    X(port)                                                                                      \
    X(provider_list) X(provider_info) X(provider_default) X(provider_install) X(provider_update) \
    X(provider_uninstall) X(provider_doctor) X(provider_test) X(provider_new)                    \
    X(config_get) X(config_set) X(config_list) X(config_explain)                                 \
    X(completion) X(help) X(version) X(man)

#define COMMAND_ROW(name) extern const struct abx_cmd cmd_##name;
COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW

#endif
