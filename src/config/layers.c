/* The snapshot: the files are read once, and each layer is asked by name. */
#include "config/layers.h"

#include "base/fs.h"
#include "base/limits.h"
#include "base/util.h"
#include "toml/toml.h"

int config_new(struct config **ret, const char *home, const char *dotenv, bool no_files,
               const char *const *environ_, abx_error **reterr) {
    struct config *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(reterr);
    c->no_files = no_files;
    c->home = home ? strdup(home) : NULL;
    c->dotenv = dotenv ? strdup(dotenv) : NULL;
    c->environ_ = strv_copy(environ_);
    if ((home && !c->home) || (dotenv && !c->dotenv) || !c->environ_) {
        config_free(c);
        return err_nomem(reterr);
    }
    *ret = c;
    return 0;
}

void config_reload(struct config *c) {
    dotenv_done(&c->local);
    dotenv_done(&c->own);
    c->toml = abx_value_unref(c->toml);
    c->loaded = false;
}

struct config *config_free(struct config *c) {
    if (!c) return NULL;
    config_reload(c);
    free(c->home);
    free(c->dotenv);
    strv_free(c->environ_);
    free(c);
    return NULL;
}

char *config_path(const struct config *c, const char *name) { return path_join(c->home, name); }

const char *layer_name(const struct config *c, enum layer layer) {
    static const char *const names[] = {"argument",    "environment",        "./.env",
                                        "~/.abx/.env", "~/.abx/config.toml", "default",
                                        "unset"};
    return layer == LAYER_DOTENV && c->dotenv ? c->dotenv : names[layer];
}

/* ---- files ----------------------------------------------------------------------------- */

/* A missing file is *ret NULL. A directory of that name (a Python environment is often one) is none
 * too. */
static int read_file(const char *path, char **ret, size_t *ret_n, abx_error **reterr) {
    int r = fs_read(path, LIMIT_CONFIG_FILE, ret, ret_n);
    if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR) return 0;
    if (r == -ENOMEM) return err_nomem(reterr);
    return r < 0 ? err_errno(reterr, ABX_E_CONFIG, r, "%s", path) : 0;
}

static int load_dotenv(const char *path, struct dotenv *ret, abx_error **reterr) {
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    int r = read_file(path, &text, &n, reterr);
    if (r == 0 && text && dotenv_parse(ret, text, n) < 0) r = err_nomem(reterr);
    return r;
}

/* The tables that hold our keys must be tables: else their keys would silently be unset. */
static int check_tables(const abx_value *doc, const char *path, abx_error **reterr) {
    static const char *const names[] = {"core", "transport", "providers"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const abx_value *v = abx_value_get(doc, names[i]);
        if (v && !abx_value_is(v, ABX_TYPE_OBJECT))
            return err_set(reterr, ABX_E_CONFIG, NULL, "Invalid %s: [%s] must be a table.", path,
                           names[i]);
    }
    const abx_value *providers = abx_value_get(doc, "providers");
    for (size_t i = 0; i < abx_value_size(providers); i++)
        if (!abx_value_is(abx_value_at(providers, i), ABX_TYPE_OBJECT))
            return err_set(reterr, ABX_E_CONFIG, NULL,
                           "Invalid %s: [providers.%s] must be a table.", path,
                           abx_value_key_at(providers, i));
    return 0;
}

static int load_toml(struct config *c, abx_error **reterr) {
    _cleanup_free_ char *path = config_path(c, "config.toml"), *text = NULL, *reason = NULL;
    _cleanup_value_ abx_value *doc = NULL;
    struct toml_pos pos = {0};
    size_t n = 0;
    if (!path) return err_nomem(reterr);
    int r = read_file(path, &text, &n, reterr);
    if (r < 0 || !text) return r;
    r = toml_parse(text, n, &doc, &reason, &pos);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r < 0)
        return err_set(reterr, ABX_E_CONFIG, NULL, "Invalid %s: %s (at line %u, column %u).", path,
                       reason ?: "not valid TOML", pos.line, pos.column);
    r = check_tables(doc, path, reterr);
    if (r == 0) c->toml = TAKE_PTR(doc);
    return r;
}

int config_load(struct config *c, abx_error **reterr) {
    if (c->loaded || c->no_files) return 0;
    int r = 0;
    if (c->dotenv) r = load_dotenv(c->dotenv, &c->local, reterr);
    if (r == 0 && c->home) {
        _cleanup_free_ char *path = config_path(c, ".env");
        r = path ? load_dotenv(path, &c->own, reterr) : err_nomem(reterr);
        if (r == 0) r = load_toml(c, reterr);
    }
    if (r < 0) {
        config_reload(c);
        return r;
    }
    c->loaded = true;
    return 0;
}

/* ---- asking the layers --------------------------------------------------------------------- */

void findings_done(struct findings *f) {
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        free(f->of[i].name);
        abx_value_unref(f->of[i].raw);
    }
    *f = (struct findings){0};
}

enum layer findings_first(const struct findings *f) {
    enum layer i = 0;
    while (i < LAYER_COUNT && !f->of[i].raw) i++;
    return i;
}

/* Takes raw. */
static int keep(struct found *f, const char *name, abx_value *raw) {
    _cleanup_value_ abx_value *own = raw;
    if (!own || !(f->name = strdup(name))) return -ENOMEM;
    f->raw = TAKE_PTR(own);
    return 0;
}

static const char *text_of(const struct config *c, enum layer layer, const char *name) {
    switch (layer) {
    case LAYER_ENVIRONMENT: return env_get((const char *const *)c->environ_, name);
    case LAYER_DOTENV: return dotenv_get(&c->local, name);
    case LAYER_HOME_DOTENV: return dotenv_get(&c->own, name);
    default: return NULL;
    }
}

static int find_text(const struct config *c, enum layer layer, const struct setting *s,
                     struct found *ret, abx_error **reterr) {
    for (size_t i = 0; s->env[i]; i++) {
        const char *text = text_of(c, layer, s->env[i]);
        if (str_blank(text)) continue;
        abx_value *raw = abx_value_new_string(text);
        if (!raw)
            return err_set(reterr, ABX_E_CONFIG, NULL, "%s (%s) is not valid UTF-8.", s->env[i],
                           layer_name(c, layer));
        return keep(ret, s->env[i], raw) < 0 ? err_nomem(reterr) : 0;
    }
    return 0;
}

static bool is_blank(const abx_value *v) {
    return !v || abx_value_is(v, ABX_TYPE_NULL) ||
           (abx_value_is(v, ABX_TYPE_STRING) && str_blank(abx_value_string(v)));
}

static int find_toml(const struct config *c, const struct setting *s, struct found *ret,
                     abx_error **reterr) {
    for (size_t i = 0; i < s->toml_count; i++) {
        const abx_value *v = c->toml;
        _cleanup_free_ char *name = NULL;
        for (char **part = s->toml[i]; v && *part; part++) v = abx_value_get(v, *part);
        if (is_blank(v)) continue;
        char **p = s->toml[i];
        name = p[2] ? str_printf("%s.%s.%s", p[0], p[1], p[2]) : str_printf("%s.%s", p[0], p[1]);
        return !name || keep(ret, name, abx_value_ref(v)) < 0 ? err_nomem(reterr) : 0;
    }
    return 0;
}

int setting_find(struct config *c, const struct setting *s, struct findings *ret,
                 abx_error **reterr) {
    _cleanup_findings_ struct findings f = {0};
    int r = config_load(c, reterr);
    if (r == 0 && !is_blank(s->argument) &&
        keep(&f.of[LAYER_ARGUMENT], s->key, abx_value_ref(s->argument)) < 0)
        r = err_nomem(reterr);
    for (enum layer i = LAYER_ENVIRONMENT; r == 0 && i <= LAYER_HOME_DOTENV; i++)
        r = find_text(c, i, s, &f.of[i], reterr);
    if (r == 0) r = find_toml(c, s, &f.of[LAYER_TOML], reterr);
    if (r == 0 && s->default_ && keep(&f.of[LAYER_DEFAULT], s->key, abx_value_ref(s->default_)) < 0)
        r = err_nomem(reterr);
    if (r < 0) return r;
    *ret = f;
    f = (struct findings){0};
    return 0;
}

int setting_value(struct config *c, const struct setting *s, abx_value **ret, abx_error **reterr) {
    _cleanup_findings_ struct findings f = {0};
    int r = setting_find(c, s, &f, reterr);
    if (r < 0) return r;
    enum layer i = findings_first(&f);
    if (i < LAYER_COUNT)
        return setting_coerce(s, f.of[i].raw, f.of[i].name, layer_name(c, i), ret, reterr);
    *ret = NULL;
    return 0;
}

int config_core(struct config *c, const char *key, abx_value **ret, abx_error **reterr) {
    const struct core_key *k = core_key(key);
    _cleanup_setting_ struct setting s = {0};
    if (!k) return err_set(reterr, ABX_E_CONFIG, NULL, "There is no configuration key '%s'.", key);
    if (setting_core(&s, k, false) < 0) return err_nomem(reterr);
    return setting_value(c, &s, ret, reterr);
}
