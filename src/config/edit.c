/* Edits of config.toml and ~/.abx/.env: in place, atomic, one at a time. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/fs.h"
#include "base/limits.h"
#include "config/layers.h"
#include "toml/toml.h"

struct edit {
    int lock;
    char *path; /* the file itself, behind a link of a name in ~/.abx */
    char *text;
    size_t n;
};

static void edit_done(struct edit *e) {
    free(e->path);
    free(e->text);
    safe_close(e->lock);
}

static bool no_memory(int r) { return r == -ENOMEM; }

/* Reads ~/.abx/NAME under the lock of the directory, so that no edit of another program is lost. */
static int edit_open(struct config *c, const char *name, struct edit *ret, abx_error **reterr) {
    _cleanup_(edit_done) struct edit e = {.lock = -1};
    _cleanup_free_ char *path = NULL;
    if (c->no_files || !c->home)
        return err_set(reterr, ABX_E_CONFIG, NULL, "The configuration files are turned off.");
    if (!(path = config_path(c, name))) return err_nomem(reterr);
    int r = fs_mkdir_p(c->home, 0700);
    if (r == 0 && (e.lock = open(c->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) r = -errno;
    while (r == 0 && flock(e.lock, LOCK_EX) < 0)
        if (errno != EINTR) r = -errno;
    if (r < 0)
        return no_memory(r) ? err_nomem(reterr) : err_errno(reterr, ABX_E_CONFIG, r, "%s", c->home);
    /* A link, as tools for dotfiles make it, stays one. */
    if (!(e.path = realpath(path, NULL))) e.path = TAKE_PTR(path);
    r = fs_read(e.path, LIMIT_CONFIG_FILE, &e.text, &e.n);
    if (r == -ENOENT) r = (e.text = strdup("")) ? 0 : -ENOMEM;
    if (r < 0)
        return no_memory(r) ? err_nomem(reterr) : err_errno(reterr, ABX_E_CONFIG, r, "%s", e.path);
    /* The texts below end at a NUL: what is behind one would be lost. */
    if (strlen(e.text) != e.n)
        return err_set(reterr, ABX_E_CONFIG, "Repair it by hand, or move it away.",
                       "%s is not a text file.", e.path);
    *ret = e;
    e = (struct edit){.lock = -1};
    return 0;
}

/* Takes what an edit function said: nothing to do, trouble, or a new text to write. */
static int edit_finish(const struct edit *e, int r, const char *edited, abx_error **reterr) {
    if (r == -ENOENT) return 0;
    if (no_memory(r)) return err_nomem(reterr);
    if (r == -EBADMSG)
        return err_set(reterr, ABX_E_CONFIG, "Repair it by hand, or move it away.",
                       "%s is not valid TOML.", e->path);
    if (r < 0)
        return err_set(reterr, ABX_E_CONFIG, "Edit it by hand.",
                       "%s can't be changed without touching other lines.", e->path);
    if (streq(edited, e->text)) return 0;
    r = fs_write_atomic(e->path, edited, strlen(edited), 0600);
    return r < 0 ? err_errno(reterr, ABX_E_CONFIG, r, "%s", e->path) : 0;
}

static int edit_env(struct config *c, const char *name, const char *value, char **ret_file,
                    abx_error **reterr) {
    _cleanup_(edit_done) struct edit e = {.lock = -1};
    _cleanup_free_ char *edited = NULL;
    int r = edit_open(c, ".env", &e, reterr);
    if (r < 0) return r;
    r = dotenv_edit(e.text, e.n, name, value, &edited);
    r = edit_finish(&e, r, edited, reterr);
    if (r == 0) *ret_file = TAKE_PTR(e.path);
    return r;
}

static int edit_toml(struct config *c, char *const *path, const char *literal, char **ret_file,
                     abx_error **reterr) {
    _cleanup_(edit_done) struct edit e = {.lock = -1};
    _cleanup_free_ char *edited = NULL;
    int r = edit_open(c, "config.toml", &e, reterr);
    if (r < 0) return r;
    r = toml_edit(e.text, e.n, (const char *const *)path, literal, &edited);
    r = edit_finish(&e, r, edited, reterr);
    if (r == 0) *ret_file = TAKE_PTR(e.path);
    return r;
}

/* ---- config set ---------------------------------------------------------------------------- */

static int unknown_key(const char *key, const struct manifest *m, abx_error **reterr) {
    const char *names[128] = {NULL};
    const struct core_key *k;
    size_t n = 0;
    const char *dot = strchr(key, '.');
    for (size_t i = 0; !m && (k = core_key_at(i)); i++) names[n++] = k->key;
    for (size_t i = 0; m && i < m->field_count && n < ARRAY_SIZE(names) - 4; i++)
        names[n++] = m->fields[i].key;
    for (size_t i = 0; m && m->inherit[i] && n < ARRAY_SIZE(names) - 1; i++)
        names[n++] = m->inherit[i];
    const char *near = str_nearest(dot ? dot + 1 : key, names);
    _cleanup_free_ char *hint = !near ? NULL
                                : m   ? str_printf("Did you mean '%s.%s'?", m->id, near)
                                      : str_printf("Did you mean '%s'?", near);
    return err_set(reterr, ABX_E_CONFIG, hint ?: "Run 'abx config list' to see the keys.",
                   "There is no configuration key '%s'.", key);
}

static int setting_of(const char *key, const struct manifest *m, struct setting *ret,
                      abx_error **reterr) {
    size_t id = m ? strlen(m->id) : 0;
    const struct core_key *k = NULL;
    int r;
    if (m) {
        const char *name = strncmp(key, m->id, id) == 0 && key[id] == '.' ? key + id + 1 : "";
        const struct manifest_field *f = manifest_field(m, name);
        bool inherited = !f && strv_contains(m->inherit, name);
        if (inherited) k = core_key(name);
        if (!f && !k) return unknown_key(key, m, reterr);
        r = f                                ? setting_field(ret, m->id, f)
            : streq(m->id, BUILTIN_PROVIDER) ? setting_core(ret, k, true)
                                             : setting_inherited(ret, m->id, k);
    } else {
        const char *dot = strchr(key, '.');
        k = core_key(dot ? dot + 1 : key);
        /* "core.provider" is a key, "core.http_timeout" is not. */
        bool table_fits = k && (!dot || (k->table && strlen(k->table) == (size_t)(dot - key) &&
                                         str_starts(key, k->table)));
        if (!table_fits) return unknown_key(key, NULL, reterr);
        r = setting_core(ret, k, false);
    }
    return r < 0 ? err_nomem(reterr) : 0;
}

/* How a typed value stands in config.toml. */
static char *literal_of(const abx_value *v) {
    const char *s = abx_value_string(v);
    return s ? toml_quote(s) : abx_value_print(v, ABX_PRINT_SECRETS, NULL);
}

int config_set(struct config *c, const char *key, const struct manifest *field_of,
               const char *value, char **ret_file, abx_error **reterr) {
    _cleanup_setting_ struct setting s = {0};
    _cleanup_value_ abx_value *raw = NULL, *v = NULL;
    _cleanup_free_ char *literal = NULL, *file = NULL;
    int r = setting_of(key, field_of, &s, reterr);
    if (r < 0) return r;
    if (str_blank(value)) value = NULL;
    if (value) {
        raw = abx_value_new_string(value);
        if (!raw)
            return err_set(reterr, ABX_E_CONFIG, NULL, "The value of %s is not valid UTF-8.", key);
        r = setting_coerce(&s, raw, s.key, "argument", &v, reterr);
        char scratch[128];
        const char *problem = r == 0 && streq(s.key, "provider") && !streq(value, BUILTIN_PROVIDER)
                                  ? provider_id_problem(value, scratch)
                                  : NULL;
        if (problem)
            r = err_set(reterr, ABX_E_CONFIG, NULL, "provider (argument): '%s' is no provider: %s.",
                        value, problem);
        if (r < 0) return r;
    }
    if (s.toml_count == 0) {
        r = edit_env(c, s.env[0], value, &file, reterr);
    } else {
        if (v && !(literal = literal_of(v))) return err_nomem(reterr);
        r = edit_toml(c, s.toml[s.toml_write], literal, &file, reterr);
        /* A more specific place would hide what was written, and give back what was removed. */
        for (size_t i = 0; r == 0 && i < s.toml_write; i++) {
            _cleanup_free_ char *same = NULL;
            r = edit_toml(c, s.toml[i], NULL, &same, reterr);
        }
    }
    config_reload(c);
    if (r < 0) return r;
    *ret_file = TAKE_PTR(file);
    return 0;
}

/* ---- purge ------------------------------------------------------------------------------------
 */

/* "ABX_MY_CLOUD_". */
static char *prefix_of(const char *id) {
    _cleanup_free_ char *upper = str_upper_env(id);
    return upper ? str_printf("ABX_%s_", upper) : NULL;
}

static int add_other(char ***list, const char *id, const char *other) {
    size_t n = strlen(id);
    if (strncmp(other, id, n) != 0 || other[n] != '-') return 0;
    return strv_take(list, prefix_of(other));
}

/* Prefixes of providers whose variables begin like those of id: "my-cloud" beside "my". */
static int longer_prefixes(struct config *c, const char *id, char ***ret) {
    _cleanup_strv_ char **list = calloc(1, sizeof *list);
    _cleanup_free_ char *store = config_path(c, "providers");
    if (!list || !store) return -ENOMEM;
    int r = add_other(&list, id, BUILTIN_PROVIDER);
    const abx_value *tables = abx_value_get(c->toml, "providers");
    for (size_t i = 0; r == 0 && i < abx_value_size(tables); i++)
        r = add_other(&list, id, abx_value_key_at(tables, i));
    _cleanup_closedir_ DIR *dir = opendir(store);
    struct dirent *entry;
    while (r == 0 && dir && (entry = readdir(dir))) r = add_other(&list, id, entry->d_name);
    if (r == 0) *ret = TAKE_PTR(list);
    return r;
}

static bool is_core_variable(const char *name) {
    const struct core_key *k;
    for (size_t i = 0; (k = core_key_at(i)); i++)
        if (strncmp(name, "ABX_", 4) == 0 && strcasecmp(name + 4, k->key) == 0) return true;
    return false;
}

static bool is_of(const char *name, const char *prefix, char *const *longer) {
    if (!str_starts(name, prefix) || is_core_variable(name)) return false;
    for (; *longer; longer++)
        if (str_starts(name, *longer)) return false;
    return true;
}

static int purge_env(struct config *c, const char *id, abx_error **reterr) {
    _cleanup_(edit_done) struct edit e = {.lock = -1};
    _cleanup_(dotenv_done) struct dotenv d = {0};
    _cleanup_strv_ char **longer = NULL;
    _cleanup_free_ char *prefix = prefix_of(id), *edited = NULL;
    int r = edit_open(c, ".env", &e, reterr);
    if (r < 0) return r;
    r = prefix ? longer_prefixes(c, id, &longer) : -ENOMEM;
    if (r == 0) r = dotenv_parse(&d, e.text, e.n);
    edited = r == 0 ? strdup(e.text) : NULL;
    for (size_t i = 0; r == 0 && edited && i < d.count; i++) {
        char *less = NULL;
        if (!is_of(d.entries[i].key, prefix, longer)) continue;
        r = dotenv_edit(edited, strlen(edited), d.entries[i].key, NULL, &less);
        if (r < 0) break;
        free(edited);
        edited = less;
    }
    if (r == 0 && !edited) r = -ENOMEM;
    return edit_finish(&e, r, edited, reterr);
}

static int purge_toml(struct config *c, const char *id, abx_error **reterr) {
    _cleanup_(edit_done) struct edit e = {.lock = -1};
    _cleanup_free_ char *edited = NULL;
    const char *const path[] = {"providers", id, NULL};
    int r = edit_open(c, "config.toml", &e, reterr);
    if (r < 0) return r;
    r = toml_remove_table(e.text, e.n, path, &edited);
    return edit_finish(&e, r, edited, reterr);
}

int config_purge_provider(struct config *c, const char *id, abx_error **reterr) {
    /* Best effort: a broken file is an error of the edit below. The secrets go first. */
    config_load(c, NULL);
    int r = purge_env(c, id, reterr), r2 = purge_toml(c, id, r < 0 ? NULL : reterr);
    config_reload(c);
    return r < 0 ? r : r2;
}
