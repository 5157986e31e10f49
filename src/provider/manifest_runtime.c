/* [compat], [runtime] and [endpoint]: how a provider is started, and whether this host can. */
#include <sys/utsname.h>

#include "base/limits.h"
#include "provider/manifest_parts.h"

static int read_kind(struct manifest *m, const abx_value *runtime, bool any, abx_error **reterr) {
    int r = read_string(runtime, "runtime", "kind", any ? "code" : NULL, &m->kind, reterr);
    if (r < 0 || any || streq(m->kind, "exec") || streq(m->kind, "rest")) return r;
    if (streq(m->kind, "python"))
        return manifest_bad(
            reterr,
            "runtime.kind 'python' is no longer supported; register the provider from code, or write it "
            "as 'exec' (a process that speaks EPP/1)");
    if (streq(m->kind, "node"))
        return manifest_bad(
            reterr,
            "runtime.kind 'node' is not supported by this host; write the provider as 'exec' "
            "(a process that speaks EPP/1)");
    return manifest_bad(reterr, "runtime.kind must be 'exec' or 'rest'");
}

/* ---- [compat] ------------------------------------------------------------------------ */

static int read_requires(struct manifest *m, const abx_value *compat, abx_error **reterr) {
    const abx_value *table = abx_value_get(compat, "requires");
    bool ok = !table || abx_value_is(table, ABX_TYPE_OBJECT);
    for (size_t i = 0; ok && i < abx_value_size(table); i++)
        ok = plain_text(abx_value_at(table, i)) != NULL;
    if (!ok) return manifest_bad(reterr, "compat.requires must be a table of strings");
    for (size_t i = 0; i < abx_value_size(table); i++) {
        _cleanup_free_ char *bad = NULL;
        bool fits;
        int r = version_satisfies("0", abx_value_string(abx_value_at(table, i)), &fits, &bad);
        if (r == -ENOMEM) return err_nomem(reterr);
        if (r < 0)
            return manifest_bad(reterr, "compat.requires.%s: invalid version comparator '%s'",
                                abx_value_key_at(table, i), bad);
    }
    m->requires = table ? abx_value_ref(table) : abx_value_new_object();
    return m->requires ? 0 : err_nomem(reterr);
}

static int read_compat(struct manifest *m, const abx_value *doc, bool any, abx_error **reterr) {
    const abx_value *compat;
    const char *speaks = streq(m->kind, "rest") ? "e2b-rest/1" : "epp/1";
    int r = read_table(doc, "compat", "compat", false, &compat, reterr);
    if (r == 0) r = read_string(compat, "compat", "protocol", speaks, &m->protocol, reterr);
    if (r < 0) return r;
    if (!any && !streq(m->protocol, speaks)) {
        _cleanup_free_ char *hint = str_printf("Supported: %s.", speaks);
        return err_set(reterr, ABX_E_VERSION, hint,
                       "Provider '%s' uses protocol '%s', which this host does not support.", m->id,
                       m->protocol);
    }
    return read_requires(m, compat, reterr);
}

/* "linux-x64" and the like of this machine. */
static bool platform_here(const char *platform) {
    struct utsname u;
    static const char *const arch[][2] = {
        {"x86_64", "x64"}, {"amd64", "x64"}, {"aarch64", "arm64"}, {"arm64", "arm64"}};
#ifdef __APPLE__
    const char *os = "darwin";
#else
    const char *os = "linux";
#endif
    size_t n = strlen(os);
    if (strncmp(platform, os, n) != 0) return false;
    if (!platform[n]) return true;
    if (platform[n] != '-' || uname(&u) < 0) return false;
    for (size_t i = 0; i < ARRAY_SIZE(arch); i++)
        if (streq(u.machine, arch[i][0])) return streq(platform + n + 1, arch[i][1]);
    return streq(platform + n + 1, u.machine);
}

int check_host_fits(const struct manifest *m, abx_error **reterr) {
    static const char *const components[][2] = {{"sdk", COMPAT_SDK_VERSION},
                                                {"cli", COMPAT_CLI_VERSION}};
    for (size_t i = 0; i < ARRAY_SIZE(components); i++) {
        const char *spec = abx_value_get_string(m->requires, components[i][0]);
        bool fits = true;
        if (spec && version_satisfies(components[i][1], spec, &fits, NULL) == 0 && !fits)
            return err_set(reterr, ABX_E_VERSION,
                           "Upgrade agent-sandbox/abx or install a compatible provider version.",
                           "Provider '%s' requires %s %s (this is %s).", m->id, components[i][0],
                           spec, components[i][1]);
    }
    bool here = !m->platforms[0];
    for (size_t i = 0; m->platforms[i]; i++) here |= platform_here(m->platforms[i]);
    if (here) return 0;
    _cleanup_free_ char *list = join(m->platforms);
    return err_set(reterr, ABX_E_VERSION, NULL,
                   "Provider '%s' does not run on this platform; it is for %s.", m->id,
                   list ?: "others");
}

/* ---- [runtime] ----------------------------------------------------------------------- */

/* A relative path that climbs out of where it starts. */
static bool leaves(const char *path) {
    long depth = 0;
    while (*path) {
        size_t n = strcspn(path, "/\\");
        if (n == 2 && path[0] == '.' && path[1] == '.')
            depth--;
        else if (n > 0 && !(n == 1 && *path == '.'))
            depth++;
        if (depth < 0) return true;
        path += n + (path[n] != '\0');
    }
    return false;
}

static bool needs_shell(const char *program) {
    static const char *const endings[] = {".bat", ".cmd", ".ps1"};
    size_t n = strlen(program);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
        if (n >= 4 && strcasecmp(program + n - 4, endings[i]) == 0) return true;
    return false;
}

static int read_command(struct manifest *m, const abx_value *runtime, bool any,
                        abx_error **reterr) {
    const abx_value *v = abx_value_get(runtime, "command");
    size_t n = abx_value_size(v);
    bool ok = abx_value_is(v, ABX_TYPE_ARRAY) && n > 0;
    m->command = calloc(n + 1, sizeof *m->command);
    if (!m->command) return err_nomem(reterr);
    if (!streq(m->kind, "exec") || (any && !v)) return 0;
    for (size_t i = 0; ok && i < n; i++) {
        const char *arg = plain_text(abx_value_at(v, i));
        ok = arg && *arg;
        if (ok && !(m->command[i] = strdup(arg))) return err_nomem(reterr);
    }
    if (!ok)
        return manifest_bad(reterr,
                            "runtime.command must be a non-empty array of non-empty strings");
    if (needs_shell(m->command[0]))
        return manifest_bad(
            reterr, "runtime.command may not start a .bat/.cmd/.ps1 launcher (they need a shell); "
                    "use an .exe or an interpreter plus script");
    if (m->command[0][0] != '/' && leaves(m->command[0]))
        return manifest_bad(reterr,
                            "runtime.command executable must stay inside the plugin directory");
    return 0;
}

static int read_ms(const abx_value *runtime, const char *key, int otherwise, int *ret,
                   abx_error **reterr) {
    const abx_value *v = abx_value_get(runtime, key);
    int64_t ms = v ? (abx_value_is(v, ABX_TYPE_INT) ? abx_value_int(v, 0) : 0) : otherwise;
    if (ms < LIMIT_TIMEOUT_MIN_MS || ms > LIMIT_TIMEOUT_MAX_MS)
        return manifest_bad(reterr, "runtime.%s must be an integer between %d and %d", key,
                            LIMIT_TIMEOUT_MIN_MS, LIMIT_TIMEOUT_MAX_MS);
    *ret = (int)ms;
    return 0;
}

static int check_platforms(char *const *platforms, abx_error **reterr) {
    static const char *const systems[] = {"linux", "darwin", "windows"};
    for (; *platforms; platforms++) {
        bool ok = false;
        for (size_t i = 0; i < ARRAY_SIZE(systems); i++) {
            size_t n = strlen(systems[i]);
            const char *rest = *platforms + n;
            ok |= strncmp(*platforms, systems[i], n) == 0 &&
                  (!*rest || streq(rest, "-x64") || streq(rest, "-arm64"));
        }
        if (!ok)
            return manifest_bad(
                reterr,
                "runtime.platforms: '%s' is not one of linux, darwin, windows, with -x64 or -arm64 or without",
                *platforms);
    }
    return 0;
}

/* ---- [endpoint] ------------------------------------------------------------------------ */

static int read_endpoint(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *endpoint, *auth = NULL, *derive = NULL;
    _cleanup_free_ char *text = NULL;
    int r = read_table(doc, "endpoint", "endpoint", true, &endpoint, reterr);
    if (r < 0) return r;
    const abx_value *base = abx_value_get(endpoint, "base_url");
    const char *url = plain_text(base);
    if (base && (!url || (!(str_starts(url, "https://") && url[8]) &&
                          !(str_starts(url, "http://") && url[7]))))
        return manifest_bad(reterr, "endpoint.base_url must be an http(s) URL");
    r = read_string(endpoint, "endpoint", "domain", "", &text, reterr);
    if (r == 0) r = read_table(endpoint, "auth", "endpoint.auth", false, &auth, reterr);
    if (r == 0) r = read_string(auth, "endpoint.auth", "scheme", "bearer", &text, reterr);
    if (r == 0 && !streq(text, "bearer") && !streq(text, "header"))
        r = manifest_bad(reterr, "endpoint.auth.scheme must be 'bearer' or 'header'");
    bool by_header = r == 0 && streq(text, "header");
    if (r == 0) r = read_string(auth, "endpoint.auth", "header", "", &text, reterr);
    /* A name with anything else in it would write headers of its own. */
    if (r == 0 &&
        text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")])
        r = manifest_bad(reterr, "endpoint.auth.header must be the name of a header");
    if (r == 0 && by_header && !*text) r = manifest_bad(reterr, "endpoint.auth.header is required");
    if (r == 0) r = read_table(endpoint, "derive", "endpoint.derive", false, &derive, reterr);
    for (size_t i = 0; r == 0 && i < abx_value_size(derive); i++) {
        const char *key = abx_value_key_at(derive, i);
        if (!plain_text(abx_value_at(derive, i)))
            r = manifest_bad(reterr, "endpoint.derive must be a table of strings");
        else if (!streq(key, "sandbox_base_url") && !streq(key, "sandbox_domain"))
            r = manifest_bad(reterr, "endpoint.derive.%s is not derivable", key);
    }
    if (r == 0) m->endpoint = abx_value_ref(endpoint);
    return r;
}

int read_runtime(struct manifest *m, const abx_value *doc, bool any, abx_error **reterr) {
    const abx_value *runtime;
    int r = read_table(doc, "runtime", "runtime", !any, &runtime, reterr);
    if (r == 0) r = read_kind(m, runtime, any, reterr);
    if (r == 0) r = read_compat(m, doc, any, reterr);
    if (r == 0) r = read_command(m, runtime, any, reterr);
    if (r == 0 && streq(m->kind, "rest") && !(any && !abx_value_get(doc, "endpoint")))
        r = read_endpoint(m, doc, reterr);
    if (r == 0)
        r = read_ms(runtime, "startup_timeout_ms", DEFAULT_STARTUP_TIMEOUT_MS,
                    &m->startup_timeout_ms, reterr);
    if (r == 0)
        r = read_ms(runtime, "call_timeout_ms", DEFAULT_CALL_TIMEOUT_MS, &m->call_timeout_ms,
                    reterr);
    if (r == 0) r = read_list(runtime, "runtime", "platforms", &m->platforms, reterr);
    return r < 0 ? r : check_platforms(m->platforms, reterr);
}
