/* argv and environment of a plugin process (epp.md, "Process"). */
#ifndef DRIVERS_EXEC_ENV_H
#define DRIVERS_EXEC_ENV_H

#include <abx/value.h>

int exec_env_build(char ***ret, const char *const *environ_, const abx_value *passthrough, const char *data_dir);
int exec_argv_build(char ***ret, const char *dir, const abx_value *command, abx_error **reterr);

#endif
