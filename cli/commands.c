/* The one list of commands. */
#include "commands.h"

const struct abx_cmd *const cmd_table[] = {
#define COMMAND_ROW(name) &cmd_##name,
    COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW
    NULL,
};
