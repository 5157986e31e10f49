/* [config.fields] and [auth]: the settings of a provider. */
#include <strings.h>

#include "provider/manifest_parts.h"

static const char *const types[] = {"string", "int", "float", "bool", "enum", "path", "url", "csv"};
#define TYPES_TEXT "string, int, float, bool, enum, path, url, csv"

static const char *const core_names[] = {
#define CORE_NAME(key) key,
#include "provider/core_names.def"
#undef CORE_NAME
};

static bool key_ok(const char *key) {
    if (!(*key >= 'a' && *key <= 'z')) return false;
    return key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* Variables of the host and of other tools it knows: nothing a plugin may read under its own name.
 */
static bool env_reserved(const char *name) {
    static const char *const prefixes[] = {"ABX_",    "E2B_",       "ALICLOUD_",
                                           "OPENAI_", "ANTHROPIC_", "MCP_"};
    static const char *const names[] = {"GITHUB_TOKEN", "GH_TOKEN"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

static bool env_shape_ok(const char *name) {
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return *name && !(*name >= '0' && *name <= '9') && name[strspn(name, set)] == '\0';
}

/* Whether ABX_<ID>_<KEY> is the variable of something else: provider "sandbox" with a field
 * "api_key" would get the generic key without having asked for it. */
static int check_variable(const char *id, const char *key, abx_error **reterr) {
    _cleanup_free_ char *upper_id = str_upper_env(id), *upper_key = str_upper_env(key);
    _cleanup_free_ char *name =
        upper_id && upper_key ? str_printf("%s_%s", upper_id, upper_key) : NULL;
    if (!name) return err_nomem(reterr);
    bool taken = str_starts(name, "ALICLOUD_EXPRESS_");
    for (size_t i = 0; i < ARRAY_SIZE(core_names); i++)
        taken |= strcasecmp(name, core_names[i]) == 0;
    return taken
               ? manifest_bad(reterr, "config.fields.%s: its variable ABX_%s is not the provider's",
                              key, name)
               : 0;
}

static bool default_fits(const struct manifest_field *f, const abx_value *v) {
    switch (f->type) {
    case FIELD_INT: return abx_value_is(v, ABX_TYPE_INT);
    case FIELD_FLOAT: return abx_value_is(v, ABX_TYPE_INT) || abx_value_is(v, ABX_TYPE_DOUBLE);
    case FIELD_BOOL: return abx_value_is(v, ABX_TYPE_BOOL);
    case FIELD_ENUM: return plain_text(v) && strv_contains(f->choices, plain_text(v));
    default: return plain_text(v) && (!f->choices[0] || strv_contains(f->choices, plain_text(v)));
    }
}

static int read_default(struct manifest_field *f, const abx_value *spec, const char *where,
                        abx_error **reterr) {
    const abx_value *v = abx_value_get(spec, "default");
    if (!v || (abx_value_is(v, ABX_TYPE_STRING) && abx_value_bytes(v).len == 0)) return 0;
    if (f->secret) return manifest_bad(reterr, "%s: secret fields may not have a default", where);
    if (!default_fits(f, v))
        return f->type == FIELD_ENUM
                   ? manifest_bad(reterr, "%s.default is not one of its choices", where)
                   : manifest_bad(reterr, "%s.default does not fit the type %s", where,
                                  types[f->type]);
    if (f->type == FIELD_FLOAT)
        f->default_ = abx_value_new_double(abx_value_double(v, (double)abx_value_int(v, 0)));
    else
        f->default_ = abx_value_ref(v);
    return f->default_ ? 0 : err_nomem(reterr);
}

static int read_type(struct manifest_field *f, const abx_value *spec, const char *where,
                     abx_error **reterr) {
    _cleanup_free_ char *type = NULL;
    int r = read_string(spec, where, "type", "string", &type, reterr);
    if (r < 0) return r;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (!streq(type, types[i])) continue;
        f->type = (enum field_type)i;
        return 0;
    }
    return manifest_bad(reterr, "%s.type '%s' is not one of " TYPES_TEXT, where, type);
}

static int read_field(const struct manifest *m, struct manifest_field *f, const char *key,
                      const abx_value *spec, abx_error **reterr) {
    _cleanup_free_ char *where = str_printf("config.fields.%s", key);
    if (!where || !(f->key = strdup(key))) return err_nomem(reterr);
    if (!abx_value_is(spec, ABX_TYPE_OBJECT))
        return manifest_bad(reterr, "%s must be a table", where);
    if (!key_ok(key))
        return manifest_bad(reterr, "field key '%s' must match ^[a-z][a-z0-9_]*$", key);
    for (size_t i = 0; i < ARRAY_SIZE(core_names); i++)
        if (streq(key, core_names[i]))
            return manifest_bad(reterr, "field key '%s' collides with a core key", key);
    if (str_starts(key, "shortcuts"))
        return manifest_bad(reterr, "field key '%s' collides with a core key", key);
    int r = check_variable(m->id, key, reterr);
    if (r == 0) r = read_type(f, spec, where, reterr);
    if (r == 0) r = read_bool(spec, where, "required", &f->required, reterr);
    if (r == 0) r = read_bool(spec, where, "secret", &f->secret, reterr);
    if (r == 0) r = read_bool(spec, where, "credential", &f->credential, reterr);
    if (r == 0) r = read_list(spec, where, "env", &f->env, reterr);
    if (r == 0) r = read_list(spec, where, "choices", &f->choices, reterr);
    if (r == 0) r = read_string(spec, where, "description", "", &f->description, reterr);
    if (r == 0) r = read_string(spec, where, "description_zh", "", &f->description_zh, reterr);
    if (r < 0) return r;
    drop_duplicates(f->env);
    for (size_t i = 0; f->env[i]; i++) {
        if (env_reserved(f->env[i]))
            return manifest_bad(reterr, "%s.env may not use the reserved name '%s'", where,
                                f->env[i]);
        if (!env_shape_ok(f->env[i]))
            return manifest_bad(reterr, "%s.env: '%s' is not the name of a variable", where,
                                f->env[i]);
    }
    if (f->type == FIELD_ENUM && !f->choices[0])
        return manifest_bad(reterr, "%s: enum fields need 'choices'", where);
    return read_default(f, spec, where, reterr);
}

static int read_any_of(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *auth;
    int r = read_table(doc, "auth", "auth", false, &auth, reterr);
    if (r < 0) return r;
    const abx_value *any_of = abx_value_get(auth, "any_of");
    if (any_of && !abx_value_is(any_of, ABX_TYPE_ARRAY))
        return manifest_bad(reterr, "auth.any_of must be an array of arrays");
    for (size_t i = 0; i < abx_value_size(any_of); i++) {
        const abx_value *group = abx_value_at(any_of, i);
        _cleanup_strv_ char **missing = NULL;
        bool ok = abx_value_is(group, ABX_TYPE_ARRAY);
        for (size_t k = 0; ok && k < abx_value_size(group); k++) {
            const char *name = plain_text(abx_value_at(group, k));
            ok = name != NULL;
            if (ok && !is_generic_key(name) && !manifest_field(m, name) &&
                strv_append(&missing, name) < 0)
                return err_nomem(reterr);
        }
        if (!ok) return manifest_bad(reterr, "auth.any_of must be an array of arrays of strings");
        /* An empty group would always be complete. */
        if (abx_value_size(group) == 0)
            return manifest_bad(reterr, "auth.any_of may not have an empty group");
        if (!missing) continue;
        _cleanup_free_ char *list = join(missing);
        if (!list) return err_nomem(reterr);
        return manifest_bad(reterr, "auth.any_of references undeclared field(s): %s", list);
    }
    m->auth_any_of = any_of ? abx_value_ref(any_of) : abx_value_new_array();
    return m->auth_any_of ? 0 : err_nomem(reterr);
}

int read_fields(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *config, *fields = NULL;
    int r = read_table(doc, "config", "config", false, &config, reterr);
    if (r == 0) r = read_table(config, "fields", "config.fields", false, &fields, reterr);
    if (r < 0) return r;
    size_t n = abx_value_size(fields);
    m->fields = calloc(n ? n : 1, sizeof *m->fields);
    if (!m->fields) return err_nomem(reterr);
    m->field_count = n;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = read_field(m, &m->fields[i], abx_value_key_at(fields, i), abx_value_at(fields, i),
                       reterr);
    return r < 0 ? r : read_any_of(m, doc, reterr);
}
