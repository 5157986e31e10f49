/* The registry as a person sees it: list, info, the default. */
#include <abx/provider.h>
#include <errno.h>
#include <string.h>

#include "api/api.h"

/* A list of strings as an array. */
static abx_value *strings(char *const *v) {
    abx_value *a = abx_value_new_array();
    for (size_t i = 0; v && v[i]; i++) abx_value_append_string(a, v[i]);
    return a;
}

static abx_value *sorted(char *const *v) {
    char **copy = strv_copy((const char *const *)v);
    strv_sort(copy);
    abx_value *a = strings(copy);
    strv_free(copy);
    return a;
}

/* Features in registry order, whatever order the manifest has. */
static abx_value *ordered_features(const struct manifest *m) {
    abx_value *a = abx_value_new_array();
    const char *f;
    for (size_t i = 0; (f = abx_feature_at(i)); i++)
        if (manifest_has_feature(m, f)) abx_value_append_string(a, f);
    return a;
}

static abx_value *row(const struct manifest *m, const char *id, const char *kind, const char *trust, bool is_default, const abx_error *broken) {
    abx_value *v = abx_value_new_object();
    abx_value_set_string(v, "id", id);
    abx_value_set_string(v, "name", m ? m->name : id);
    abx_value_set_string(v, "name_zh", m ? m->name_zh : "");
    abx_value_set_string(v, "version", m ? m->version : "");
    abx_value_set_string(v, "kind", m ? kind : "");
    abx_value_set_string(v, "trust", trust ?: "");
    abx_value_set(v, "features", m ? ordered_features(m) : abx_value_new_array());
    abx_value_set_bool(v, "default", is_default);
    if (broken) abx_value_set(v, "error", abx_error_to_value(broken));
    return v;
}

int abx_provider_default(abx_client *c, char **ret, abx_error **reterr) {
    struct config *config;
    int r = client_config(c, &config, reterr);
    return r < 0 ? r : config_select(config, NULL, NULL, ret, NULL, reterr);
}

int abx_provider_list(abx_client *c, abx_value **ret, abx_error **reterr) {
    struct store store;
    _cleanup_free_ char *chosen = NULL;
    _cleanup_strv_ char **ids = NULL;
    _cleanup_manifest_ struct manifest *builtin = NULL;
    int r = abx_provider_default(c, &chosen, reterr);
    if (r == 0) r = client_store(c, &store, reterr);
    if (r == 0) r = store_ids(&store, &ids, reterr);
    if (r == 0) r = manifest_builtin(&builtin, reterr);
    if (r < 0) return r;
    _cleanup_value_ abx_value *list = abx_value_new_array();
    r = abx_value_append(list, row(builtin, builtin->id, "builtin", "builtin", streq(chosen, builtin->id), NULL));
    for (struct registered *reg = c->registered; reg && r == 0; reg = reg->next)
        r = abx_value_append(list, row(reg->manifest, reg->manifest->id, reg->driver->kind, "code", streq(chosen, reg->manifest->id), NULL));
    for (size_t i = 0; r == 0 && ids && ids[i]; i++) {
        struct installed p = {0};
        _cleanup_error_ abx_error *why = NULL;
        /* A broken one is a row that says why, never the end of the list. */
        if (store_load(&store, ids[i], &p, &why) < 0)
            r = abx_value_append(list, row(NULL, ids[i], "", "", streq(chosen, ids[i]), why));
        else
            r = abx_value_append(list, row(p.manifest, ids[i], p.manifest ? p.manifest->kind : "",
                                           abx_value_get_string(p.receipt, "trust"), streq(chosen, ids[i]), p.error));
        installed_done(&p);
    }
    if (r < 0) return err_nomem(reterr);
    *ret = TAKE_PTR(list);
    return 0;
}

/* ---- info ------------------------------------------------------------------------- */

static const char *type_name(enum field_type t) {
    static const char *const names[] = {"str", "int", "float", "bool", "enum", "path", "url", "csv"};
    return names[t];
}

static abx_value *field_value(const char *id, const struct manifest_field *f) {
    abx_value *v = abx_value_new_object();
    _cleanup_free_ char *upper_id = str_upper_env(id), *upper_key = str_upper_env(f->key);
    _cleanup_free_ char *env = upper_id && upper_key ? str_printf("ABX_%s_%s", upper_id, upper_key) : NULL;
    abx_value_set_string(v, "key", f->key);
    abx_value_set_string(v, "type", type_name(f->type));
    abx_value_set_bool(v, "secret", f->secret);
    abx_value_set_bool(v, "credential", f->credential);
    abx_value_set_bool(v, "required", f->required);
    abx_value_set(v, "default", f->default_ ? abx_value_ref(f->default_) : abx_value_new_null());
    abx_value_set_string(v, "env", env);
    abx_value_set(v, "aliases", strings(f->env));
    abx_value_set_string(v, "description", f->description ?: "");
    abx_value_set_string(v, "description_zh", f->description_zh ?: "");
    return v;
}

static int info_value(const struct manifest *m, const char *kind, const abx_value *receipt, const char *dir, abx_value **ret) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = abx_value_set_string(v, "id", m->id);
    if (r == 0) r = abx_value_set_string(v, "name", m->name);
    if (r == 0) r = abx_value_set_string(v, "name_zh", m->name_zh);
    if (r == 0) r = abx_value_set_string(v, "version", m->version);
    if (r == 0) r = abx_value_set_string(v, "kind", kind);
    if (r == 0) r = abx_value_set(v, "features", sorted(m->features));
    if (r == 0 && m->has_contract) {
        abx_value *ops = abx_value_new_object();
        abx_value_set(ops, "cli", sorted(m->operations_cli));
        abx_value_set(ops, "python", sorted(m->operations_python));
        r = abx_value_set_int(v, "operation_contract_version", 1);
        if (r == 0)
            r = abx_value_set(v, "operations", ops);
        else
            abx_value_unref(ops);
        if (r == 0) r = abx_value_set(v, "workflow_inputs", sorted(m->workflow_inputs));
        if (r == 0) r = abx_value_set(v, "startup_modes", sorted(m->startup_modes));
    }
    if (r == 0) r = abx_value_set(v, "extensions", abx_value_new_array());
    abx_value *fields = abx_value_new_array();
    for (size_t i = 0; i < m->field_count; i++) abx_value_append(fields, field_value(m->id, &m->fields[i]));
    if (r == 0)
        r = abx_value_set(v, "config_fields", fields);
    else
        abx_value_unref(fields);
    if (r == 0) r = abx_value_set(v, "inherit", strings(m->inherit));
    if (r == 0) r = abx_value_set(v, "receipt", receipt ? abx_value_ref(receipt) : abx_value_new_null());
    if (r == 0) r = abx_value_set(v, "unknown_keys", strings(m->unknown_keys));
    if (r == 0) r = abx_value_set_string(v, "directory", dir);
    if (r == 0) *ret = TAKE_PTR(v);
    return r;
}

int abx_provider_info(abx_client *c, const char *id, abx_value **ret, abx_error **reterr) {
    struct registered *reg = client_registered(c, id);
    int r;
    if (reg) return info_value(reg->manifest, reg->driver->kind, NULL, NULL, ret) < 0 ? err_nomem(reterr) : 0;
    if (streq(id, BUILTIN_PROVIDER)) {
        _cleanup_manifest_ struct manifest *m = NULL;
        r = manifest_builtin(&m, reterr);
        if (r < 0) return r;
        return info_value(m, "builtin", NULL, NULL, ret) < 0 ? err_nomem(reterr) : 0;
    }
    struct store store;
    struct installed p = {0};
    r = client_store(c, &store, reterr);
    if (r == 0) r = store_load(&store, id, &p, reterr);
    if (r < 0) return r;
    if (p.error)
        r = err_pass(reterr, abx_error_ref(p.error));
    else if (info_value(p.manifest, p.manifest->kind, p.receipt, p.plugin_dir, ret) < 0)
        r = err_nomem(reterr);
    installed_done(&p);
    return r;
}

/* ---- the default -------------------------------------------------------------------- */

int abx_provider_set_default(abx_client *c, const char *id, abx_error **reterr) {
    struct config *config;
    struct store store;
    int r = client_config(c, &config, reterr);
    if (r == 0 && !streq(id, BUILTIN_PROVIDER) && !client_registered(c, id)) {
        struct installed p = {0};
        r = client_store(c, &store, reterr);
        if (r == 0) r = store_load(&store, id, &p, reterr);
        if (r == 0) installed_done(&p);
    }
    _cleanup_free_ char *file = NULL;
    if (r == 0) r = config_set(config, "provider", NULL, id, &file, reterr);
    return r;
}
