/* The configuration as a person sees it: each key, the layer its value comes from, and the others.
 */
#include <errno.h>

#include "config/layers.h"

/* "****" and the last four characters when there are more than eight. */
static char *mask(const char *text) {
    size_t n = strlen(text), at = n;
    size_t chars = 0;
    for (const char *p = text; *p; p++) chars += ((unsigned char)*p & 0xc0) != 0x80;
    for (size_t left = 4; left && at; left--) do
            at--;
        while (at && ((unsigned char)text[at] & 0xc0) == 0x80);
    return str_printf("****%s", chars > 8 ? text + at : "");
}

/* v as it may be shown; takes nothing. */
static abx_value *shown(const struct setting *s, const abx_value *v) {
    if (!v) return abx_value_new_null();
    if (!s->secret) return abx_value_ref(v);
    _cleanup_free_ char *masked = mask(abx_value_string(v) ?: "");
    return masked ? abx_value_new_string(masked) : NULL;
}

static int put_layers(struct config *c, const struct setting *s, const struct findings *f,
                      abx_value *row) {
    _cleanup_value_ abx_value *list = abx_value_new_array();
    int r = list ? 0 : -ENOMEM;
    for (enum layer i = 0; r == 0 && i < LAYER_COUNT; i++) {
        if (!f->of[i].raw) continue;
        _cleanup_value_ abx_value *v = abx_value_new_object();
        r = abx_value_set_string(v, "source", layer_name(c, i));
        if (r == 0) r = abx_value_set_string(v, "name", f->of[i].name);
        if (r == 0) r = abx_value_set(v, "value", shown(s, f->of[i].raw));
        if (r == 0) r = abx_value_append(list, TAKE_PTR(v));
    }
    return r < 0 ? r : abx_value_set(row, "layers", TAKE_PTR(list));
}

/* A value that does not fit is shown as it stands, with what is wrong: this is where one looks for
 * it. */
static int add_row(struct config *c, const struct setting *s, abx_value *rows, abx_error **reterr) {
    _cleanup_findings_ struct findings f = {0};
    _cleanup_value_ abx_value *row = abx_value_new_object(), *v = NULL;
    _cleanup_error_ abx_error *wrong = NULL;
    int r = setting_find(c, s, &f, reterr);
    if (r < 0) return r;
    enum layer i = findings_first(&f);
    if (i < LAYER_COUNT &&
        setting_coerce(s, f.of[i].raw, f.of[i].name, layer_name(c, i), &v, &wrong) < 0)
        v = abx_value_ref(f.of[i].raw);
    r = abx_value_set_string(row, "key", s->key);
    if (r == 0) r = abx_value_set(row, "value", shown(s, v));
    if (r == 0) r = abx_value_set_string(row, "source", layer_name(c, i));
    if (r == 0) r = abx_value_set_bool(row, "secret", s->secret);
    if (r == 0) r = abx_value_set_string(row, "env", s->env[0]);
    if (r == 0) r = put_layers(c, s, &f, row);
    if (r == 0 && wrong) r = abx_value_set_string(row, "error", abx_error_message(wrong));
    if (r == 0) r = abx_value_append(rows, TAKE_PTR(row));
    return r < 0 ? err_nomem(reterr) : 0;
}

/* The region of the built-in provider, or NULL. */
static int region_of(struct config *c, const struct manifest *m, abx_value **ret,
                     abx_error **reterr) {
    const struct manifest_field *f = manifest_field(m, "region");
    _cleanup_setting_ struct setting s = {0};
    if (!f) return 0;
    if (setting_field(&s, m->id, f) < 0) return err_nomem(reterr);
    return setting_value(c, &s, ret, reterr);
}

int config_explain(struct config *c, const struct manifest *m, abx_value **ret,
                   abx_error **reterr) {
    _cleanup_value_ abx_value *rows = abx_value_new_array(), *region = NULL;
    const struct core_key *k;
    bool builtin = m && streq(m->id, BUILTIN_PROVIDER);
    int r = rows ? 0 : err_nomem(reterr);
    if (r == 0 && builtin) r = region_of(c, m, &region, reterr);
    for (size_t i = 0; r == 0 && (k = core_key_at(i)); i++) {
        _cleanup_setting_ struct setting s = {0};
        if (setting_core(&s, k, builtin) < 0) return err_nomem(reterr);
        r = setting_follow_region(c, &s, abx_value_string(region), NULL, reterr);
        if (r == 0) r = add_row(c, &s, rows, reterr);
    }
    for (size_t i = 0; r == 0 && m && i < m->field_count; i++) {
        _cleanup_setting_ struct setting s = {0};
        r = setting_field(&s, m->id, &m->fields[i]) < 0 ? err_nomem(reterr)
                                                        : add_row(c, &s, rows, reterr);
    }
    for (size_t i = 0; r == 0 && m && !builtin && m->inherit[i]; i++) {
        _cleanup_setting_ struct setting s = {0};
        r = setting_inherited(&s, m->id, core_key(m->inherit[i])) < 0
                ? err_nomem(reterr)
                : add_row(c, &s, rows, reterr);
    }
    if (r < 0) return r;
    *ret = TAKE_PTR(rows);
    return 0;
}
