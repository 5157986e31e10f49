/* Settings: the names and types of what can be set. */
#include <errno.h>

#include "config/layers.h"

static const struct core_key core_keys[] = {
#define KEY(key, table, type, secret, default_, builtin_default, description)                      \
    {key, table, FIELD_##type, secret, default_, builtin_default, description},
#include "config/keys.def"
#undef KEY
};

static const char *const log_levels[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", NULL};

const struct core_key *core_key_at(size_t i) {
    return i < ARRAY_SIZE(core_keys) ? &core_keys[i] : NULL;
}

const struct core_key *core_key(const char *key) {
    for (size_t i = 0; i < ARRAY_SIZE(core_keys); i++)
        if (streq(core_keys[i].key, key)) return &core_keys[i];
    return NULL;
}

void setting_done(struct setting *s) {
    free(s->key);
    strv_free(s->choices);
    strv_free(s->env);
    for (size_t i = 0; i < TOML_NAMES; i++) strv_free(s->toml[i]);
    abx_value_unref(s->default_);
    *s = (struct setting){0};
}

/* "ABX_KEY", or with id "ABX_ID_KEY". */
static int add_env(struct setting *s, const char *id, const char *key) {
    _cleanup_free_ char *upper_id = id ? str_upper_env(id) : NULL, *upper_key = str_upper_env(key);
    if ((id && !upper_id) || !upper_key) return -ENOMEM;
    return strv_take(&s->env, id ? str_printf("ABX_%s_%s", upper_id, upper_key)
                                 : str_printf("ABX_%s", upper_key));
}

/* A path in config.toml; c may be NULL. */
static int add_toml(struct setting *s, const char *a, const char *b, const char *c) {
    const char *const path[] = {a, b, c, NULL};
    return (s->toml[s->toml_count++] = strv_copy(path)) ? 0 : -ENOMEM;
}

static int core_default(struct setting *s, const char *text) {
    if (!text) return 0;
    struct setting plain = {.type = s->type, .choices = s->choices};
    _cleanup_value_ abx_value *raw = abx_value_new_string(text);
    return raw && setting_coerce(&plain, raw, "", "", &s->default_, NULL) == 0 ? 0 : -ENOMEM;
}

/* Type and the names every provider shares. */
static int core_common(struct setting *s, const struct core_key *k) {
    s->type = k->type;
    s->secret = k->secret;
    s->not_negative = true;
    s->upper = k->type == FIELD_ENUM;
    s->choices = strv_copy(s->upper ? log_levels : NULL);
    int r = s->choices ? add_env(s, NULL, k->key) : -ENOMEM;
    if (r == 0 && k->table) r = add_toml(s, k->table, k->key, NULL);
    return r;
}

static int give(struct setting *ret, struct setting *s, int r) {
    if (r < 0) return r;
    *ret = *s;
    *s = (struct setting){0};
    return 0;
}

int setting_core(struct setting *ret, const struct core_key *k, bool builtin) {
    _cleanup_setting_ struct setting s = {.key = strdup(k->key)};
    int r = s.key ? core_common(&s, k) : -ENOMEM;
    if (r == 0) r = core_default(&s, k->default_ || !builtin ? k->default_ : k->builtin_default);
    return give(ret, &s, r);
}

int setting_inherited(struct setting *ret, const char *id, const struct core_key *k) {
    _cleanup_setting_ struct setting s = {.key = str_printf("%s.%s", id, k->key)};
    int r = s.key ? add_env(&s, id, k->key) : -ENOMEM;
    if (r == 0 && k->table) r = add_toml(&s, "providers", id, k->key);
    if (r == 0) r = core_common(&s, k);
    return give(ret, &s, r);
}

int setting_field(struct setting *ret, const char *id, const struct manifest_field *f) {
    _cleanup_setting_ struct setting s = {
        .key = str_printf("%s.%s", id, f->key), .type = f->type, .secret = f->secret};
    int r = s.key ? add_env(&s, id, f->key) : -ENOMEM;
    for (size_t i = 0; r == 0 && f->env && f->env[i]; i++) r = strv_append(&s.env, f->env[i]);
    if (r == 0 && !(s.choices = strv_copy((const char *const *)f->choices))) r = -ENOMEM;
    bool builtin = streq(id, BUILTIN_PROVIDER);
    /* The built-in's credentials have no place in a file that is shared and shown. */
    bool in_toml = !f->secret && !(builtin && f->credential);
    if (r == 0 && in_toml) r = add_toml(&s, "providers", id, f->key);
    if (r == 0 && in_toml && builtin) {
        r = add_toml(&s, "transport", f->key, NULL);
        s.toml_write = 1;
    }
    if (f->default_) s.default_ = abx_value_ref(f->default_);
    return give(ret, &s, r);
}
