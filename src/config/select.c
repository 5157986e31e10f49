/* Which provider: named, in the reference, configured, or the built-in. */
#include "config/layers.h"

/* E8001 for what can be no provider's id: it never becomes part of a path. */
static int check_id(const char *id, abx_error **reterr) {
    char scratch[128];
    if (streq(id, BUILTIN_PROVIDER) || !provider_id_problem(id, scratch)) return 0;
    return err_set(reterr, ABX_E_PROVIDER_NOT_FOUND, NULL, "Provider '%s' is not installed.", id);
}

/* Splits "ID:sandbox". Text before the colon that has not even the shape of an id is part of a bare
 * sandbox id; a reserved word in its place is a mistake. */
static int split(const char *ref, char **ret_provider, char **ret_sandbox, abx_error **reterr) {
    const char *colon = strchr(ref, ':');
    _cleanup_free_ char *id = NULL, *sandbox = NULL;
    char scratch[128];
    if (str_blank(ref))
        return err_set(reterr, ABX_E_CONFIG, NULL, "The sandbox reference is empty.");
    if (colon == ref)
        return err_set(reterr, ABX_E_CONFIG, NULL,
                       "Sandbox reference '%s' is missing its provider id.", ref);
    if (colon && !(id = strndup(ref, (size_t)(colon - ref)))) return err_nomem(reterr);
    const char *problem =
        id && !streq(id, BUILTIN_PROVIDER) ? provider_id_problem(id, scratch) : NULL;
    if (problem == scratch)
        return err_set(reterr, ABX_E_CONFIG, NULL, "Invalid provider namespace '%s': %s.", id,
                       problem);
    if (problem) {
        free(TAKE_PTR(id));
        colon = NULL;
    }
    if (colon && str_blank(colon + 1))
        return err_set(reterr, ABX_E_CONFIG, NULL,
                       "Sandbox reference '%s' is missing its sandbox id.", ref);
    if (!(sandbox = strdup(colon ? colon + 1 : ref))) return err_nomem(reterr);
    *ret_provider = TAKE_PTR(id);
    *ret_sandbox = TAKE_PTR(sandbox);
    return 0;
}

static int configured(struct config *c, char **ret, abx_error **reterr) {
    _cleanup_value_ abx_value *v = NULL;
    int r = config_core(c, "provider", &v, reterr);
    if (r < 0) return r;
    const char *id = abx_value_string(v);
    if (!(*ret = strdup(id ? id + strspn(id, " \t") : BUILTIN_PROVIDER))) return err_nomem(reterr);
    for (size_t n = strlen(*ret); n && strchr(" \t\r\n", (*ret)[n - 1]); n--) (*ret)[n - 1] = '\0';
    return 0;
}

int config_select(struct config *c, const char *explicit_, const char *ref, char **ret_provider,
                  char **ret_sandbox, abx_error **reterr) {
    _cleanup_free_ char *id = NULL, *prefix = NULL, *sandbox = NULL;
    int r = ref ? split(ref, &prefix, &sandbox, reterr) : 0;
    if (r < 0) return r;
    if (str_blank(explicit_)) explicit_ = NULL;
    if (explicit_ && prefix && !streq(explicit_, prefix))
        return err_set(reterr, ABX_E_MISMATCH, NULL,
                       "Sandbox reference '%s' belongs to provider '%s', not to '%s'.", ref, prefix,
                       explicit_);
    if (explicit_ || prefix) {
        if (!(id = strdup(explicit_ ?: prefix))) r = err_nomem(reterr);
    } else {
        r = configured(c, &id, reterr);
    }
    if (r == 0) r = check_id(id, reterr);
    if (r < 0) return r;
    *ret_provider = TAKE_PTR(id);
    if (ret_sandbox) *ret_sandbox = TAKE_PTR(sandbox);
    return 0;
}
