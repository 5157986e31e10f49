/* What one provider is given: its declared fields, and the generic keys it asked for and got. */
#include "base/buf.h"
#include "config/layers.h"

struct settings {
    struct config *config;
    const struct manifest *m;
    const abx_value *options, *said; /* the caller's: options of the provider, and generic keys */
    char *const *consented;
    struct secrets *secrets;
    abx_value *fields, *core; /* what is given */
    abx_error *missing_login; /* the first credential without a value */
};

static void settings_done(struct settings *s) {
    abx_value_unref(s->fields);
    abx_value_unref(s->core);
    abx_error_unref(s->missing_login);
}

/* Asked for in the manifest and agreed to. */
static bool inherits(const struct settings *s, const char *key) {
    return strv_contains(s->m->inherit, key) && strv_contains(s->consented, key);
}

/* ---- options ----------------------------------------------------------------------------- */

static int unknown_options(const struct settings *s, char *const *unknown, abx_error **reterr) {
    const char *names[64] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < s->m->field_count && n < ARRAY_SIZE(names) - 4; i++)
        names[n++] = s->m->fields[i].key;
    for (size_t i = 0; s->consented && s->consented[i] && n < ARRAY_SIZE(names) - 1; i++)
        if (inherits(s, s->consented[i])) names[n++] = s->consented[i];
    _cleanup_buf_ struct buf list = BUF_INIT(0), hint = BUF_INIT(0);
    for (size_t i = 0; unknown[i]; i++) buf_printf(&list, "%s%s", i ? ", " : "", unknown[i]);
    const char *near = str_nearest(unknown[0], names);
    if (near) buf_printf(&hint, "Did you mean '%s'? ", near);
    buf_printf(&hint, "Run 'abx provider info %s' to list its options.", s->m->id);
    if (!buf_cstr(&list) || !buf_cstr(&hint)) return err_nomem(reterr);
    return err_set(reterr, ABX_E_CONFIG, buf_cstr(&hint),
                   "Unknown option(s) for provider '%s': %s.", s->m->id, buf_cstr(&list));
}

static int check_options(const struct settings *s, abx_error **reterr) {
    _cleanup_strv_ char **unknown = NULL;
    if (s->options && !abx_value_is(s->options, ABX_TYPE_OBJECT) &&
        !abx_value_is(s->options, ABX_TYPE_NULL))
        return err_set(reterr, ABX_E_CONFIG, NULL, "provider_options must be an object.");
    for (size_t i = 0; i < abx_value_size(s->options); i++) {
        const char *key = abx_value_key_at(s->options, i);
        if (!manifest_field(s->m, key) && !inherits(s, key) && strv_append(&unknown, key) < 0)
            return err_nomem(reterr);
    }
    if (!unknown) return 0;
    strv_sort(unknown);
    return unknown_options(s, unknown, reterr);
}

/* The generic keys a caller can say. Those of the built-in's own login are its fields. */
static const char *const sayable[] = {"sandbox_api_key", "sandbox_base_url", "sandbox_domain",
                                      "region",          "access_key_id",    "access_key_secret"};

static int check_said(const struct settings *s, abx_error **reterr) {
    if (s->said && !abx_value_is(s->said, ABX_TYPE_OBJECT) &&
        !abx_value_is(s->said, ABX_TYPE_NULL))
        return err_set(reterr, ABX_E_CONFIG, NULL, "The core settings must be an object.");
    for (size_t i = 0; i < abx_value_size(s->said); i++) {
        const char *key = abx_value_key_at(s->said, i);
        size_t k = 0;
        while (k < ARRAY_SIZE(sayable) && !streq(sayable[k], key)) k++;
        if (k == ARRAY_SIZE(sayable))
            return err_set(reterr, ABX_E_CONFIG, NULL, "There is no core setting '%s'.", key);
    }
    return 0;
}

/* What the caller said: an option of the provider comes before a generic key. */
static const abx_value *argument(const struct settings *s, const char *key) {
    return abx_value_get(s->options, key) ?: abx_value_get(s->said, key);
}

/* ---- fields ------------------------------------------------------------------------------- */

static int add_secret(const struct settings *s, const struct setting *what, const abx_value *v,
                      abx_error **reterr) {
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    if (!what->secret || !s->secrets) return 0;
    if (abx_value_is(v, ABX_TYPE_STRING)) {
        abx_bytes b = abx_value_bytes(v);
        return b.len && secrets_add(s->secrets, (const char *)b.data, b.len) < 0 ? err_nomem(reterr)
                                                                                 : 0;
    }
    /* "true" and "1" would eat every text; a number of some length is a secret. */
    if (!abx_value_is(v, ABX_TYPE_INT)) return 0;
    text = abx_value_print(v, ABX_PRINT_SECRETS, &n);
    return !text || secrets_add(s->secrets, text, n) < 0 ? err_nomem(reterr) : 0;
}

/* "A, B or C". */
static char *alternatives(char *const *names) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    for (size_t i = 0; names[i]; i++)
        buf_printf(&b, "%s%s", i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
    return buf_take(&b);
}

static int missing(struct settings *s, const struct manifest_field *f, const struct setting *what,
                   abx_error **reterr) {
    _cleanup_free_ char *names = alternatives(what->env);
    _cleanup_free_ char *hint =
        str_printf("Run 'abx config set %s VALUE', or pass it as an option.", what->key);
    if (!names || !hint) return err_nomem(reterr);
    int code = f->credential ? ABX_E_CREDENTIALS : ABX_E_CONFIG;
    /* What is wrong with the configuration comes before what is missing to log in. */
    if (f->credential && s->missing_login) return 0;
    int r = err_set(f->credential ? &s->missing_login : reterr, code, hint,
                    "Provider '%s' needs '%s': set %s.", s->m->id, f->key, names);
    return f->credential ? 0 : r;
}

static int give_fields(struct settings *s, abx_error **reterr) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->m->field_count; i++) {
        const struct manifest_field *f = &s->m->fields[i];
        _cleanup_setting_ struct setting what = {0};
        _cleanup_value_ abx_value *v = NULL;
        if (setting_field(&what, s->m->id, f) < 0) return err_nomem(reterr);
        /* A plugin's field of that name is its own, and no generic key. */
        what.argument = streq(s->m->id, BUILTIN_PROVIDER) ? argument(s, f->key)
                                                          : abx_value_get(s->options, f->key);
        r = setting_value(s->config, &what, &v, reterr);
        if (r == 0 && !v && f->required) r = missing(s, f, &what, reterr);
        if (r == 0 && v) r = add_secret(s, &what, v, reterr);
        if (r == 0 && v && abx_value_set(s->fields, f->key, TAKE_PTR(v)) < 0) r = err_nomem(reterr);
    }
    return r;
}

/* ---- generic keys --------------------------------------------------------------------------- */

int setting_follow_region(struct config *c, struct setting *s, const char *region,
                          const abx_value *base_url, abx_error **reterr) {
    _cleanup_setting_ struct setting base = {0};
    _cleanup_findings_ struct findings f = {0};
    bool is_url = streq(s->key, "sandbox_base_url");
    if (!region || (!is_url && !streq(s->key, "sandbox_domain"))) return 0;
    if (setting_core(&base, core_key("sandbox_base_url"), false) < 0) return err_nomem(reterr);
    base.argument = base_url;
    int r = setting_find(c, &base, &f, reterr);
    if (r < 0 || findings_first(&f) < LAYER_DEFAULT) return r;
    _cleanup_free_ char *text =
        str_printf("%s%s.e2b.fc.aliyuncs.com", is_url ? "https://api." : "", region);
    abx_value *v = text ? abx_value_new_string(text) : NULL;
    if (!v) return err_nomem(reterr);
    abx_value_unref(s->default_);
    s->default_ = v;
    return 0;
}

static int give_generic(struct settings *s, const char *key, abx_error **reterr) {
    const struct core_key *k = core_key(key);
    bool builtin = streq(s->m->id, BUILTIN_PROVIDER);
    _cleanup_setting_ struct setting what = {0};
    _cleanup_value_ abx_value *v = NULL;
    int r = 0;
    if (!k || !inherits(s, key)) return 0;
    if ((builtin ? setting_core(&what, k, true) : setting_inherited(&what, s->m->id, k)) < 0)
        return err_nomem(reterr);
    what.argument = argument(s, key);
    if (builtin)
        r = setting_follow_region(s->config, &what, abx_value_get_string(s->fields, "region"),
                                  argument(s, "sandbox_base_url"), reterr);
    if (r == 0) r = setting_value(s->config, &what, &v, reterr);
    if (r == 0 && v) r = add_secret(s, &what, v, reterr);
    if (r == 0 && v && abx_value_set(s->core, key, TAKE_PTR(v)) < 0) r = err_nomem(reterr);
    return r;
}

static int give_core(struct settings *s, abx_error **reterr) {
    static const char *const generic[] = {"sandbox_api_key", "sandbox_base_url", "sandbox_domain"};
    _cleanup_value_ abx_value *timeout = NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(generic); i++)
        r = give_generic(s, generic[i], reterr);
    if (r == 0) r = config_core(s->config, "http_timeout", &timeout, reterr);
    if (r == 0 && timeout && abx_value_set(s->core, "http_timeout", TAKE_PTR(timeout)) < 0)
        r = err_nomem(reterr);
    return r;
}

/* ---- [auth] any_of ----------------------------------------------------------------------------
 */

static bool complete(const struct settings *s, const abx_value *group) {
    for (size_t i = 0; i < abx_value_size(group); i++) {
        const char *key = abx_value_string(abx_value_at(group, i));
        if (!key || (!abx_value_get(s->fields, key) && !abx_value_get(s->core, key))) return false;
    }
    return true;
}

static int check_any_of(const struct settings *s, abx_error **reterr) {
    const abx_value *groups = s->m->auth_any_of;
    _cleanup_buf_ struct buf list = BUF_INIT(0);
    for (size_t i = 0; i < abx_value_size(groups); i++)
        if (complete(s, abx_value_at(groups, i))) return 0;
    if (abx_value_size(groups) == 0) return 0;
    for (size_t i = 0; i < abx_value_size(groups); i++) {
        const abx_value *group = abx_value_at(groups, i);
        if (i) buf_str(&list, ", or ");
        for (size_t k = 0; k < abx_value_size(group); k++) {
            _cleanup_free_ char *id = str_upper_env(s->m->id),
                                *key =
                                    str_upper_env(abx_value_string(abx_value_at(group, k)) ?: "");
            if (!id || !key) return err_nomem(reterr);
            buf_printf(&list, "%sABX_%s_%s", k ? " and " : "", id, key);
        }
    }
    if (!buf_cstr(&list)) return err_nomem(reterr);
    return err_set(reterr, ABX_E_CREDENTIALS, NULL,
                   "Provider '%s' has no complete credentials: set %s.", s->m->id, buf_cstr(&list));
}

int config_provider(struct config *c, const struct manifest *m, const abx_value *options,
                    const abx_value *core, char *const *consented_inherit, struct secrets *secrets, abx_value **ret,
                    abx_error **reterr) {
    _cleanup_(settings_done) struct settings s = {
        c,       m, options, core, consented_inherit, secrets, abx_value_new_object(),
        abx_value_new_object(), NULL};
    _cleanup_value_ abx_value *v = abx_value_new_object();
    _cleanup_error_ abx_error *e = NULL;
    int r = s.fields && s.core && v ? 0 : err_nomem(&e);
    if (r == 0) r = check_options(&s, &e);
    if (r == 0) r = check_said(&s, &e);
    if (r == 0) r = give_fields(&s, &e);
    if (r == 0) r = give_core(&s, &e);
    if (r == 0 && s.missing_login) r = err_pass(&e, TAKE_PTR(s.missing_login));
    if (r == 0) r = check_any_of(&s, &e);
    if (r == 0 && (abx_value_set(v, "config", TAKE_PTR(s.fields)) < 0 ||
                   abx_value_set(v, "core", TAKE_PTR(s.core)) < 0))
        r = err_nomem(&e);
    if (r < 0) {
        err_set_provider(e, m->id);
        err_pass(reterr, TAKE_PTR(e));
        return r;
    }
    *ret = TAKE_PTR(v);
    return 0;
}
