/* The configuration as a person sees and edits it. */
#include <abx/config.h>
#include <string.h>

#include "api/api.h"

/* The manifest of a provider that can be configured; NULL and 0 for one that is not installed
 * when it may be missing. */
static int manifest_of(abx_client *c, const char *id, struct manifest **ret, abx_error **reterr) {
    struct registered *reg = client_registered(c, id);
    if (reg) {
        *ret = manifest_ref(reg->manifest);
        return 0;
    }
    if (streq(id, BUILTIN_PROVIDER)) return manifest_builtin(ret, reterr);
    struct store store;
    struct installed p = {0};
    int r = client_store(c, &store, reterr);
    if (r == 0) r = store_load(&store, id, &p, reterr);
    if (r < 0) return r;
    if (p.error)
        r = err_pass(reterr, abx_error_ref(p.error));
    else
        *ret = manifest_ref(p.manifest);
    installed_done(&p);
    return r;
}

int abx_config_explain(abx_client *c, const char *provider, abx_value **ret, abx_error **reterr) {
    struct config *config;
    _cleanup_free_ char *id = NULL;
    _cleanup_manifest_ struct manifest *m = NULL;
    int r = client_config(c, &config, reterr);
    if (r == 0) r = config_select(config, provider, NULL, &id, NULL, reterr);
    /* A default that was uninstalled by hand must not hide the core keys. */
    if (r == 0) r = manifest_of(c, id, &m, provider ? reterr : NULL);
    if (r < 0 && (provider || !id)) return r;
    return config_explain(config, m, ret, reterr);
}

/* "ID.FIELD" names a provider's field; "core.provider" and the like are core keys. */
static int manifest_of_key(abx_client *c, const char *key, struct manifest **ret, abx_error **reterr) {
    const char *dot = strchr(key, '.');
    char scratch[128];
    if (!dot) return 0;
    _cleanup_free_ char *id = strndup(key, (size_t)(dot - key));
    if (!id) return err_nomem(reterr);
    if (streq(id, "core") || streq(id, "transport")) return 0;
    if (!streq(id, BUILTIN_PROVIDER) && provider_id_problem(id, scratch)) return 0;
    return manifest_of(c, id, ret, reterr);
}

int abx_config_get(abx_client *c, const char *key, abx_value **ret, abx_error **reterr) {
    struct config *config;
    _cleanup_manifest_ struct manifest *m = NULL;
    _cleanup_value_ abx_value *all = NULL;
    int r = client_config(c, &config, reterr);
    if (r == 0) r = manifest_of_key(c, key, &m, reterr);
    if (r == 0) r = config_explain(config, m, &all, reterr);
    if (r < 0) return r;
    const char *bare = str_starts(key, "core.") ? key + 5 : str_starts(key, "transport.") ? key + 10 : key;
    _cleanup_free_ const char **names = calloc(abx_value_size(all) + 1, sizeof *names);
    if (!names) return err_nomem(reterr);
    for (size_t i = 0; i < abx_value_size(all); i++) {
        names[i] = abx_value_get_string(abx_value_at(all, i), "key") ?: "";
        if (!streq(names[i], bare)) continue;
        *ret = abx_value_ref(abx_value_at(all, i));
        return 0;
    }
    const char *near = str_nearest(bare, names);
    _cleanup_free_ char *hint = near ? str_printf("Did you mean '%s'?", near) : NULL;
    return err_set(reterr, ABX_E_CONFIG, hint ?: "Run 'abx config list' to see the keys.", "There is no configuration key '%s'.", key);
}

int abx_config_set(abx_client *c, const char *key, const char *value, char **ret_file, abx_error **reterr) {
    struct config *config;
    _cleanup_manifest_ struct manifest *m = NULL;
    int r = client_config(c, &config, reterr);
    if (r == 0) r = manifest_of_key(c, key, &m, reterr);
    if (r == 0) r = config_set(config, key, m, value, ret_file, reterr);
    return r;
}
