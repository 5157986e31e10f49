/* Finding the supervisor: beside the code that asks, where it was installed, or in its build tree. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"
#include "proc/proc.h"

#define NAME "abx-supervise"

/* Relative to the directory of the library or the program: a wheel, a moved prefix, with one
 * more level for lib/<triplet>, a build tree. */
static const char *const places[] = {"",
                                     "../libexec/abx/",
                                     "../../libexec/abx/",
                                     "../src/supervise/",
                                     "../../src/supervise/"};

static bool runnable(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Takes path. */
static int accept_path(char **ret, char *path) {
    _cleanup_free_ char *mine = path;
    if (!mine) return -ENOMEM;
    if (!runnable(mine)) return 0;
    char *real = realpath(mine, NULL);
    if (!real) return errno == ENOMEM ? -ENOMEM : 0;
    *ret = real;
    return 1;
}

/* 1: found, 0: not beside this file. */
static int look_beside(char **ret, const char *file) {
    _cleanup_free_ char *real = realpath(file, NULL);
    if (!real) return errno == ENOMEM ? -ENOMEM : 0;
    *strrchr(real, '/') = '\0';
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++)
        r = accept_path(ret, str_printf("%s/%s" NAME, real, places[i]));
#ifdef ABX_BUILD_SUPERVISOR
    /* Only for code that lies in the build tree itself: an installed one must not trust a
     * directory that may be anybody's by now. */
    size_t n = strlen(ABX_BUILD_ROOT);
    if (r == 0 && strncmp(real, ABX_BUILD_ROOT, n) == 0 && (real[n] == '/' || real[n] == '\0'))
        r = accept_path(ret, strdup(ABX_BUILD_SUPERVISOR));
#endif
    return r;
}

int proc_find_supervisor(char **ret, abx_error **reterr) {
    Dl_info info;
    int r = 0;
    if (dladdr((void *)(uintptr_t)proc_find_supervisor, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        r = look_beside(ret, info.dli_fname);
    if (r == 0) r = look_beside(ret, "/proc/self/exe");
#ifdef ABX_LIBEXECDIR
    if (r == 0) r = accept_path(ret, strdup(ABX_LIBEXECDIR "/" NAME));
#endif
    if (r < 0) return err_nomem(reterr);
    if (r > 0) return 0;
    return err_set(reterr, ABX_E_PLUGIN_PROCESS, "Reinstall abx: plugins are started through this program.",
                   "The program '" NAME "' is missing.");
}
