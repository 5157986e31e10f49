/* abx-provider.toml: the document as a whole, its life, and what consent covers. */
#include <fcntl.h>

#include "base/codec.h"
#include "base/fs.h"
#include "base/limits.h"
#include "provider/features.h"
#include "provider/manifest_parts.h"
#include "toml/toml.h"

static void field_done(struct manifest_field *f) {
    free(f->key);
    abx_value_unref(f->default_);
    strv_free(f->env);
    strv_free(f->choices);
    free(f->description);
    free(f->description_zh);
}

static struct manifest *manifest_free(struct manifest *m) {
    free(m->id);
    free(m->name);
    free(m->name_zh);
    free(m->version);
    free(m->description);
    free(m->license);
    free(m->homepage);
    free(m->kind);
    free(m->protocol);
    char **lists[] = {m->command,           m->platforms,       m->features,      m->operations_cli,
                      m->operations_python, m->workflow_inputs, m->startup_modes, m->network,
                      m->filesystem,        m->env_passthrough, m->inherit,       m->unknown_keys};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) strv_free(lists[i]);
    for (size_t i = 0; i < m->field_count; i++) field_done(&m->fields[i]);
    free(m->fields);
    abx_value *values[] = {m->auth_any_of, m->endpoint, m->requires, m->commands, m->raw};
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) abx_value_unref(values[i]);
    free(m);
    return NULL;
}

/* A manifest is read by the loop's thread and by workers. */
struct manifest *manifest_ref(struct manifest *m) {
    if (m) __atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

struct manifest *manifest_unref(struct manifest *m) {
    return m && __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0 ? manifest_free(m) : NULL;
}

/* ---- the document ---------------------------------------------------------------------- */

static int read_provider(struct manifest *m, const abx_value *doc, bool any, abx_error **reterr) {
    const abx_value *t, *version = abx_value_get(doc, "manifest_version");
    char scratch[128];
    int order;
    if (!(any && !version) &&
        (!abx_value_is(version, ABX_TYPE_INT) || abx_value_int(version, 0) != 1))
        return manifest_bad(reterr, "manifest_version must be 1");
    int r = read_table(doc, "provider", "provider", true, &t, reterr);
    if (r == 0) r = read_string(t, "provider", "id", NULL, &m->id, reterr);
    if (r < 0) return r;
    const char *problem = provider_id_problem(m->id, scratch);
    if (problem) return manifest_bad(reterr, "%s", problem);
    r = read_string(t, "provider", "version", any ? "0" : NULL, &m->version, reterr);
    if (r == 0 && version_compare(m->version, "0", &order) < 0)
        r = manifest_bad(reterr, "provider.version: Invalid version: '%s'", m->version);
    if (r == 0) r = read_string(t, "provider", "name", m->id, &m->name, reterr);
    if (r == 0 && !*m->name) {
        free(m->name);
        if (!(m->name = strdup(m->id))) r = err_nomem(reterr);
    }
    if (r == 0) r = read_string(t, "provider", "name_zh", "", &m->name_zh, reterr);
    if (r == 0) r = read_string(t, "provider", "description", "", &m->description, reterr);
    if (r == 0) r = read_string(t, "provider", "license", "", &m->license, reterr);
    return r < 0 ? r : read_string(t, "provider", "homepage", "", &m->homepage, reterr);
}

static int read_features(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *t;
    _cleanup_strv_ char **unknown = NULL;
    int r = read_table(doc, "features", "features", true, &t, reterr);
    if (r == 0 && !abx_value_get(t, "supported"))
        r = manifest_bad(reterr, "features.supported is required");
    if (r == 0) r = read_list(t, "features", "supported", &m->features, reterr);
    if (r < 0) return r;
    drop_duplicates(m->features);
    for (size_t i = 0; m->features[i]; i++)
        if (feature_index(m->features[i]) < 0 && strv_append(&unknown, m->features[i]) < 0)
            return err_nomem(reterr);
    if (!unknown) return 0;
    strv_sort(unknown);
    _cleanup_free_ char *list = join(unknown);
    return list ? manifest_bad(reterr, "unknown feature(s): %s", list) : err_nomem(reterr);
}

static int read_document(struct manifest **ret, const abx_value *doc, bool any, bool check_host,
                         abx_error **reterr) {
    _cleanup_manifest_ struct manifest *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(reterr);
    m->refs = 1;
    m->raw = abx_value_ref(doc);
    int r = read_provider(m, doc, any, reterr);
    if (r == 0) r = read_runtime(m, doc, any, reterr);
    if (r == 0) r = read_features(m, doc, reterr);
    if (r == 0) r = read_contract(m, doc, reterr);
    if (r == 0) r = read_commands(m, doc, reterr);
    if (r == 0) r = read_security(m, doc, reterr);
    if (r == 0) r = read_fields(m, doc, reterr);
    if (r == 0 && manifest_unknown(doc, &m->unknown_keys) < 0) r = err_nomem(reterr);
    if (r == 0 && check_host) r = check_host_fits(m, reterr);
    if (r < 0) return r;
    *ret = TAKE_PTR(m);
    return 0;
}

int manifest_parse(struct manifest **ret, const char *text, size_t n, bool check_host,
                   abx_error **reterr) {
    _cleanup_value_ abx_value *doc = NULL;
    _cleanup_free_ char *reason = NULL;
    _cleanup_manifest_ struct manifest *m = NULL;
    struct toml_pos pos = {0};
    if (n > LIMIT_MANIFEST)
        return manifest_bad(reterr, "file exceeds %zu KiB", LIMIT_MANIFEST / KIB);
    int r = toml_parse(text, n, &doc, &reason, &pos);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r < 0 && !pos.line) return manifest_bad(reterr, "%s", reason ?: "not valid TOML");
    if (r < 0)
        return manifest_bad(reterr, "%s (at line %u, column %u)", reason ?: "not valid TOML",
                            pos.line, pos.column);
    r = read_document(&m, doc, false, check_host, reterr);
    if (r == 0 && sha256_hex(text, n, m->sha256) < 0) r = err_nomem(reterr);
    if (r == 0) *ret = TAKE_PTR(m);
    return r;
}

int manifest_from_value(struct manifest **ret, const abx_value *doc, abx_error **reterr) {
    _cleanup_manifest_ struct manifest *m = NULL;
    size_t n = 0;
    if (!abx_value_is(doc, ABX_TYPE_OBJECT))
        return manifest_bad(reterr, "the manifest must be an object");
    int r = read_document(&m, doc, true, false, reterr);
    _cleanup_free_ char *text = r == 0 ? abx_value_print(doc, ABX_PRINT_SORTED, &n) : NULL;
    if (r == 0 && (!text || sha256_hex(text, n, m->sha256) < 0)) r = err_nomem(reterr);
    if (r == 0) *ret = TAKE_PTR(m);
    return r;
}

int manifest_load(struct manifest **ret, const char *dir, bool check_host, abx_error **reterr) {
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    int r = fd < 0 ? -errno : fs_read_at(fd, MANIFEST_NAME, LIMIT_MANIFEST, &text, &n);
    if (r == 0) return manifest_parse(ret, text, n, check_host, reterr);
    switch (r) {
    case -ENOMEM: return err_nomem(reterr);
    case -ENOENT:
    case -ENOTDIR:
        return err_set(reterr, ABX_E_MANIFEST,
                       "Point SOURCE at the directory that contains " MANIFEST_NAME
                       " (owner/repo//subdir or --subdir).",
                       "Invalid " MANIFEST_NAME ": file not found at the plugin root.");
    case -EFBIG: return manifest_bad(reterr, "file exceeds %zu KiB", LIMIT_MANIFEST / KIB);
    case -ELOOP:
    case -EISDIR:
    case -EINVAL:
    case -ENXIO: return manifest_bad(reterr, "not a regular file");
    default: return err_errno(reterr, ABX_E_MANIFEST, r, "Invalid " MANIFEST_NAME);
    }
}

/* ---- questions ------------------------------------------------------------------------- */

const struct manifest_field *manifest_field(const struct manifest *m, const char *key) {
    for (size_t i = 0; i < m->field_count; i++)
        if (m->fields[i].key && streq(m->fields[i].key, key)) return &m->fields[i];
    return NULL;
}

bool manifest_has_feature(const struct manifest *m, const char *feature) {
    return strv_contains(m->features, feature);
}

/* Puts a list in, sorted or as it is. */
static int put_list(abx_value *object, const char *key, char *const *list, bool sort) {
    _cleanup_strv_ char **copy = strv_copy((const char *const *)list);
    _cleanup_value_ abx_value *array = abx_value_new_array();
    if (!copy || !array) return -ENOMEM;
    if (sort) strv_sort(copy);
    for (size_t i = 0; copy[i]; i++)
        if (abx_value_append_string(array, copy[i]) < 0) return -ENOMEM;
    return abx_value_set(object, key, TAKE_PTR(array));
}

static int put_runtime(abx_value *v, const struct manifest *m) {
    if (m->command[0]) return put_list(v, "runtime", m->command, false);
    const char *base = abx_value_get_string(m->endpoint, "base_url");
    char *const runtime[] = {m->kind, (char *)(base ?: ""), NULL};
    return put_list(v, "runtime", runtime, false);
}

static int put_contract(abx_value *v, const struct manifest *m) {
    _cleanup_value_ abx_value *operations = abx_value_new_object();
    int r = put_list(operations, "cli", m->operations_cli, true);
    if (r == 0) r = put_list(operations, "python", m->operations_python, true);
    if (r == 0) r = abx_value_set_int(v, "operation_contract_version", 1);
    if (r == 0) r = abx_value_set(v, "operations", TAKE_PTR(operations));
    if (r == 0) r = put_list(v, "workflow_inputs", m->workflow_inputs, true);
    return r < 0 ? r : put_list(v, "startup_modes", m->startup_modes, true);
}

/* In the manifest's own order, as the reference records them. */
static int put_security(abx_value *v, const struct manifest *m) {
    _cleanup_value_ abx_value *security = abx_value_new_object();
    int r = put_list(security, "network", m->network, false);
    if (r == 0) r = put_list(security, "filesystem", m->filesystem, false);
    if (r == 0) r = put_list(security, "env_passthrough", m->env_passthrough, false);
    if (r == 0) r = abx_value_set_bool(security, "spawns_processes", m->spawns_processes);
    return r < 0 ? r : abx_value_set(v, "security", TAKE_PTR(security));
}

static int put_fields(abx_value *v, const struct manifest *m) {
    _cleanup_strv_ char **keys = NULL;
    for (size_t i = 0; i < m->field_count; i++)
        if (strv_append(&keys, m->fields[i].key) < 0) return -ENOMEM;
    return put_list(v, "fields", keys, true);
}

abx_value *manifest_consented(const struct manifest *m) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = put_runtime(v, m);
    if (r == 0) r = put_security(v, m);
    if (r == 0) r = put_list(v, "features", m->features, true);
    if (r == 0 && m->has_contract) r = put_contract(v, m);
    if (r == 0) r = put_list(v, "inherit", m->inherit, true);
    if (r == 0) r = put_fields(v, m);
    if (r == 0) r = abx_value_set(v, "commands", abx_value_ref(m->commands));
    return r == 0 ? TAKE_PTR(v) : NULL;
}
