/* [security] and [core]: what a plugin declares it touches, and the generic keys it wants. */
#include <strings.h>

#include "provider/manifest_parts.h"

static const char *const generic_keys[] = {"sandbox_api_key", "sandbox_base_url", "sandbox_domain"};

bool is_generic_key(const char *key) {
    for (size_t i = 0; i < ARRAY_SIZE(generic_keys); i++)
        if (streq(key, generic_keys[i])) return true;
    return false;
}

static bool env_name_ok(const char *name) {
    static const char *const ours[] = {"ABX_", "E2B_", "ALICLOUD_"};
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (strncasecmp(name, ours[i], strlen(ours[i])) == 0) return false;
    return *name && name[strspn(name, set)] == '\0' && !(*name >= '0' && *name <= '9');
}

static bool is_scope(const char *s) {
    return streq(s, "data_dir") || streq(s, "cwd") || streq(s, "home") || streq(s, "any");
}

static int read_inherit(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *core;
    _cleanup_strv_ char **bad = NULL;
    int r = read_table(doc, "core", "core", false, &core, reterr);
    if (r == 0) r = read_list(core, "core", "inherit", &m->inherit, reterr);
    if (r < 0) return r;
    drop_duplicates(m->inherit);
    for (size_t i = 0; m->inherit[i]; i++)
        if (!is_generic_key(m->inherit[i]) && strv_append(&bad, m->inherit[i]) < 0)
            return err_nomem(reterr);
    if (!bad) return 0;
    strv_sort(bad);
    _cleanup_free_ char *list = join(bad);
    if (!list) return err_nomem(reterr);
    return manifest_bad(
        reterr,
        "core.inherit may only contain sandbox_api_key, sandbox_base_url, sandbox_domain (got %s)",
        list);
}

int read_security(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *t;
    int r = read_table(doc, "security", "security", false, &t, reterr);
    if (r == 0) r = read_list(t, "security", "network", &m->network, reterr);
    if (r == 0) r = read_list(t, "security", "filesystem", &m->filesystem, reterr);
    if (r == 0) r = read_list(t, "security", "env_passthrough", &m->env_passthrough, reterr);
    if (r == 0) r = read_bool(t, "security", "spawns_processes", &m->spawns_processes, reterr);
    if (r < 0) return r;
    for (size_t i = 0; m->network[i]; i++)
        for (const char *p = m->network[i]; *p || p == m->network[i]; p++)
            if ((unsigned char)*p <= ' ' || *p == 0x7f)
                return manifest_bad(reterr, "security.network: '%s' is not a host, host:port or *",
                                    m->network[i]);
    for (size_t i = 0; m->filesystem[i]; i++)
        if (!is_scope(m->filesystem[i]))
            return manifest_bad(reterr, "security.filesystem: unknown scope '%s'",
                                m->filesystem[i]);
    for (size_t i = 0; m->env_passthrough[i]; i++)
        if (!env_name_ok(m->env_passthrough[i]))
            return manifest_bad(reterr, "security.env_passthrough may not name '%s'",
                                m->env_passthrough[i]);
    return read_inherit(m, doc, reterr);
}
