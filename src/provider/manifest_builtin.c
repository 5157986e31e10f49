/* The built-in provider: the manifest it would have. */
#include "provider/manifest_parts.h"

static const char *const all_features[] = {
#define FEATURE(id) id,
#include "provider/features.def"
#undef FEATURE
};

static const char *const operations[] = {
    "sandbox.create", "sandbox.get",  "sandbox.list", "sandbox.delete", "sandbox.timeout",
    "exec.run",       "exec.stream",  "files.read",   "files.write",    "files.list",
    "files.stat",     "files.remove", "files.move",   "ports.resolve",
};

struct row {
    const char *key, *env, *default_, *description, *description_zh;
    bool secret, credential;
};

static const struct row fields[] = {
    {"region", "ALIBABA_CLOUD_REGION_ID", "cn-hangzhou",
     "Region id (derives the API URL and domain)", "地域（用于推导 API 地址和域名）", false, false},
    {"access_key_id", "ALICLOUD_ACCESS_KEY_ID", NULL, "Alibaba Cloud AccessKey ID",
     "阿里云 AccessKey ID", false, true},
    {"access_key_secret", "ALICLOUD_ACCESS_KEY_SECRET", NULL, "Alibaba Cloud AccessKey secret",
     "阿里云 AccessKey Secret", true, true},
};

static char **list_of(const char *const *items, size_t n) {
    _cleanup_strv_ char **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        if (!(list[i] = strdup(items[i]))) return NULL;
    return TAKE_PTR(list);
}
#define LIST(...)                                                                                  \
    list_of((const char *const[]){__VA_ARGS__}, ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

static bool fill_field(struct manifest_field *f, const struct row *row) {
    f->type = FIELD_STR;
    f->secret = row->secret;
    f->credential = row->credential;
    f->key = strdup(row->key);
    f->env = LIST(row->env);
    f->choices = list_of(NULL, 0);
    f->description = strdup(row->description);
    f->description_zh = strdup(row->description_zh);
    if (row->default_) f->default_ = abx_value_new_string(row->default_);
    return f->key && f->env && f->choices && f->description && f->description_zh &&
           (f->default_ || !row->default_);
}

int manifest_builtin(struct manifest **ret, abx_error **reterr) {
    _cleanup_manifest_ struct manifest *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(reterr);
    m->refs = 1;
    m->id = strdup(BUILTIN_PROVIDER);
    m->name = strdup("Alibaba Cloud Express Edition");
    m->name_zh = strdup("阿里云极速版");
    m->version = strdup(COMPAT_SDK_VERSION);
    m->kind = strdup("builtin");
    m->protocol = strdup("builtin");
    char **texts[] = {&m->description, &m->license, &m->homepage};
    bool ok = m->id && m->name && m->name_zh && m->version && m->kind && m->protocol;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) ok &= (*texts[i] = strdup("")) != NULL;
    m->features = list_of(all_features, ARRAY_SIZE(all_features));
    m->has_contract = true;
    m->operations_python = list_of(operations, ARRAY_SIZE(operations));
    m->workflow_inputs = LIST("managed");
    m->startup_modes = LIST("entrypoint", "exec", "none");
    m->inherit = LIST("sandbox_api_key", "sandbox_base_url", "sandbox_domain");
    char ***empty[] = {&m->command,    &m->platforms,       &m->operations_cli, &m->network,
                       &m->filesystem, &m->env_passthrough, &m->unknown_keys};
    for (size_t i = 0; i < ARRAY_SIZE(empty); i++) ok &= (*empty[i] = list_of(NULL, 0)) != NULL;
    m->auth_any_of = abx_value_new_array();
    m->requires = abx_value_new_object();
    m->commands = abx_value_new_array();
    m->raw = abx_value_new_object();
    m->fields = calloc(ARRAY_SIZE(fields), sizeof *m->fields);
    ok = ok && m->features && m->operations_python && m->workflow_inputs && m->startup_modes &&
         m->inherit && m->auth_any_of && m->requires && m->commands && m->raw && m->fields;
    m->field_count = m->fields ? ARRAY_SIZE(fields) : 0;
    for (size_t i = 0; ok && i < m->field_count; i++) ok = fill_field(&m->fields[i], &fields[i]);
    if (!ok) return err_nomem(reterr);
    *ret = TAKE_PTR(m);
    return 0;
}
