/* Reading the values of a manifest, each by its type and with its name in the error. */
#include <stdarg.h>

#include "base/buf.h"
#include "provider/manifest_parts.h"

int manifest_bad(abx_error **reterr, const char *fmt, ...) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    const char *text = buf_cstr(&b);
    if (!text) return err_nomem(reterr);
    return err_set(reterr, ABX_E_MANIFEST, NULL, "Invalid " MANIFEST_NAME ": %s.", text);
}

int read_table(const abx_value *doc, const char *key, const char *name, bool required,
               const abx_value **ret, abx_error **reterr) {
    const abx_value *v = abx_value_get(doc, key);
    if (!v && required) return manifest_bad(reterr, "missing [%s] table", name);
    if (v && !abx_value_is(v, ABX_TYPE_OBJECT))
        return manifest_bad(reterr, "[%s] must be a table", name);
    *ret = v;
    return 0;
}

const char *plain_text(const abx_value *v) {
    const char *s = abx_value_string(v);
    return s && strlen(s) == abx_value_bytes(v).len ? s : NULL;
}

int read_string(const abx_value *table, const char *where, const char *key, const char *otherwise,
                char **ret, abx_error **reterr) {
    const abx_value *v = abx_value_get(table, key);
    const char *s = v ? plain_text(v) : otherwise;
    if (v && !s) return manifest_bad(reterr, "%s.%s must be a string", where, key);
    if (!s || (!otherwise && str_blank(s)))
        return manifest_bad(reterr, "%s.%s is required", where, key);
    char *copy = strdup(s);
    if (!copy) return err_nomem(reterr);
    free(*ret);
    *ret = copy;
    return 0;
}

int read_list(const abx_value *table, const char *where, const char *key, char ***ret,
              abx_error **reterr) {
    const abx_value *v = abx_value_get(table, key);
    _cleanup_strv_ char **list = NULL;
    if (v && !abx_value_is(v, ABX_TYPE_ARRAY))
        return manifest_bad(reterr, "%s.%s must be an array of strings", where, key);
    size_t n = abx_value_size(v);
    list = calloc(n + 1, sizeof *list);
    if (!list) return err_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        const char *s = plain_text(abx_value_at(v, i));
        if (!s) return manifest_bad(reterr, "%s.%s must be an array of strings", where, key);
        if (!(list[i] = strdup(s))) return err_nomem(reterr);
    }
    strv_free(*ret);
    *ret = TAKE_PTR(list);
    return 0;
}

int read_bool(const abx_value *table, const char *where, const char *key, bool *ret,
              abx_error **reterr) {
    const abx_value *v = abx_value_get(table, key);
    if (v && !abx_value_is(v, ABX_TYPE_BOOL))
        return manifest_bad(reterr, "%s.%s must be true or false", where, key);
    if (v) *ret = abx_value_bool(v);
    return 0;
}

bool has_duplicates(char *const *list) {
    for (; list && *list; list++)
        if (strv_contains(list + 1, *list)) return true;
    return false;
}

void drop_duplicates(char **list) {
    size_t kept = 0;
    for (size_t i = 0; list && list[i]; i++) {
        bool seen = false;
        for (size_t k = 0; k < kept; k++) seen |= streq(list[k], list[i]);
        if (seen)
            free(list[i]);
        else
            list[kept++] = list[i];
    }
    if (list) list[kept] = NULL;
}

char *join(char *const *list) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    buf_str(&b, "");
    for (size_t i = 0; list && list[i]; i++) buf_printf(&b, "%s%s", i ? ", " : "", list[i]);
    return buf_take(&b);
}

/* ---- what this host does not know ----------------------------------------------------- */

/* A "*" part stands for every key. What a listed name holds is read by its own rule. */
static const char *const known[] = {
    "manifest_version",
    "operation_contract_version",
    "provider.id",
    "provider.name",
    "provider.name_zh",
    "provider.version",
    "provider.description",
    "provider.license",
    "provider.homepage",
    "compat.protocol",
    "compat.requires.sdk",
    "compat.requires.cli",
    "runtime.kind",
    "runtime.command",
    "runtime.startup_timeout_ms",
    "runtime.call_timeout_ms",
    "runtime.platforms",
    "features.supported",
    "operations.cli",
    "operations.python",
    "workflow.inputs",
    "workflow.startups",
    "workflow.source_placeholders",
    "security.network",
    "security.filesystem",
    "security.env_passthrough",
    "security.spawns_processes",
    "core.inherit",
    "auth.any_of",
    "config.fields.*.type",
    "config.fields.*.required",
    "config.fields.*.secret",
    "config.fields.*.credential",
    "config.fields.*.default",
    "config.fields.*.env",
    "config.fields.*.choices",
    "config.fields.*.description",
    "config.fields.*.description_zh",
    "endpoint.base_url",
    "endpoint.domain",
    "endpoint.auth.scheme",
    "endpoint.auth.header",
    "endpoint.derive.sandbox_base_url",
    "endpoint.derive.sandbox_domain",
    "commands.protocol",
    "commands.entries",
};

/* How path stands to a rule: 0 apart, 1 above it, 2 the same. */
static int match(const char *rule, char *const *path) {
    for (; *path; path++) {
        size_t n = strcspn(rule, ".");
        bool same = (n == 1 && *rule == '*') || (strlen(*path) == n && memcmp(rule, *path, n) == 0);
        if (n == 0 || !same) return 0;
        rule += n + (rule[n] == '.');
    }
    return *rule ? 1 : 2;
}

static int walk(const abx_value *table, char **path, size_t depth, char ***ret) {
    for (size_t i = 0; i < abx_value_size(table); i++) {
        int best = 0, r = 0;
        path[depth] = (char *)abx_value_key_at(table, i);
        path[depth + 1] = NULL;
        for (size_t k = 0; k < ARRAY_SIZE(known) && best < 2; k++) {
            int how = match(known[k], path);
            best = MAX_OF(best, how);
        }
        if (best == 1) {
            r = walk(abx_value_at(table, i), path, depth + 1, ret);
        } else if (best == 0) {
            _cleanup_buf_ struct buf name = BUF_INIT(0);
            for (size_t k = 0; k <= depth; k++) buf_printf(&name, "%s%s", k ? "." : "", path[k]);
            r = strv_take(ret, buf_take(&name));
        }
        if (r < 0) return r;
    }
    return 0;
}

int manifest_unknown(const abx_value *doc, char ***ret) {
    char *path[8]; /* no rule is as deep */
    _cleanup_strv_ char **list = calloc(1, sizeof *list);
    int r = list ? walk(doc, path, 0, &list) : -ENOMEM;
    if (r < 0) return r;
    *ret = TAKE_PTR(list);
    return 0;
}
