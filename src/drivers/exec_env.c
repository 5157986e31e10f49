/* What a plugin is started with: argv inside its directory and an environment built from nothing. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "drivers/exec_env.h"

/* epp.md: these, every LC_*, and the names the manifest lists. */
static const char *const passed[] = {"PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "LANG", "SYSTEMROOT", "COMSPEC"};

static bool may_pass(const char *name, size_t n, const abx_value *extra) {
    if (n > 3 && strncmp(name, "LC_", 3) == 0) return true;
    for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
        if (strlen(passed[i]) == n && strncmp(name, passed[i], n) == 0) return true;
    for (size_t i = 0; i < abx_value_size(extra); i++) {
        const char *s = abx_value_string(abx_value_at(extra, i));
        if (s && strlen(s) == n && strncmp(name, s, n) == 0) return true;
    }
    return false;
}

int exec_env_build(char ***ret, const char *const *environ_, const abx_value *passthrough, const char *data_dir) {
    _cleanup_strv_ char **env = NULL;
    for (size_t i = 0; environ_ && environ_[i]; i++) {
        const char *eq = strchr(environ_[i], '=');
        if (eq && eq > environ_[i] && may_pass(environ_[i], (size_t)(eq - environ_[i]), passthrough) &&
            strv_append(&env, environ_[i]) < 0)
            return -ENOMEM;
    }
    if (strv_take(&env, str_printf("ABX_PROVIDER_DATA_DIR=%s", data_dir)) < 0 ||
        strv_append(&env, "PYTHONDONTWRITEBYTECODE=1") < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(env);
    return 0;
}

/* An element that starts with "./" is a file of the plugin: links followed, but never out of it. */
static int resolve(const char *dir, const char *arg, char **ret, abx_error **reterr) {
    if (!str_starts(arg, "./")) {
        char *copy = strdup(arg);
        if (!copy) return err_nomem(reterr);
        *ret = copy;
        return 0;
    }
    _cleanup_free_ char *joined = path_join(dir, arg + 2), *real = NULL, *root = NULL;
    if (!joined) return err_nomem(reterr);
    root = realpath(dir, NULL);
    real = realpath(joined, NULL);
    if (!root || !real) /* not there: the start says so, with the name */
        return *ret = TAKE_PTR(joined), 0;
    size_t n = strlen(root);
    if (strncmp(real, root, n) != 0 || (real[n] != '/' && real[n] != '\0'))
        return err_set(reterr, ABX_E_MANIFEST, NULL,
                       "Invalid abx-provider.toml: runtime.command element '%s' leaves the plugin directory.", arg);
    *ret = TAKE_PTR(real);
    return 0;
}

int exec_argv_build(char ***ret, const char *dir, const abx_value *command, abx_error **reterr) {
    _cleanup_strv_ char **argv = NULL;
    for (size_t i = 0; i < abx_value_size(command); i++) {
        char *arg = NULL;
        int r = resolve(dir, abx_value_string(abx_value_at(command, i)) ?: "", &arg, reterr);
        if (r < 0) return r;
        if (strv_take(&argv, arg) < 0) return err_nomem(reterr);
    }
    if (!argv) return err_set(reterr, ABX_E_MANIFEST, NULL, "Invalid abx-provider.toml: runtime.command is empty.");
    *ret = TAKE_PTR(argv);
    return 0;
}
