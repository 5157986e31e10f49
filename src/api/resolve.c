/* From "which provider" to a session: selection, the store, settings, sharing. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

struct registered *client_registered(abx_client *c, const char *id) {
    for (struct registered *reg = c->registered; reg; reg = reg->next)
        if (streq(reg->manifest->id, id)) return reg;
    return NULL;
}

int abx_client_add_provider(abx_client *c, const abx_driver *driver, const abx_value *manifest, void *user, void (*free_user)(void *),
                            abx_error **reterr) {
    /* What comes behind destroy is optional, and may be newer than the driver. */
    if (!driver || driver->size < offsetof(abx_driver, alive) || !driver->kind || !driver->open || !driver->call || !driver->destroy)
        return err_set(reterr, ABX_E_CONFIG, NULL, "The driver lacks its size, its kind, or one of open, call and destroy.");
    const char *id = abx_value_get_string(abx_value_get(manifest, "provider"), "id");
    char scratch[128];
    const char *problem = provider_id_problem(id ?: "", scratch);
    if (problem) return err_set(reterr, ABX_E_CONFIG, NULL, "%s.", problem);
    if (client_registered(c, id)) return err_set(reterr, ABX_E_CONFLICT, NULL, "Provider '%s' is already registered.", id);
    struct registered *reg = calloc(1, sizeof *reg);
    if (!reg) return err_nomem(reterr);
    int r = manifest_from_value(&reg->manifest, manifest, reterr);
    if (r < 0) {
        free(reg);
        return r;
    }
    reg->driver = driver;
    reg->user = user;
    reg->free_user = free_user;
    reg->next = c->registered;
    c->registered = reg;
    return 0;
}

/* ---- the check before a start ---------------------------------------------------- */

struct check {
    struct store store;
    struct installed installed;
};

static int check_run(void *user, abx_error **reterr) {
    struct check *k = user;
    return store_verify(&k->store, &k->installed, reterr);
}

static void check_free(void *user) {
    struct check *k = user;
    installed_done(&k->installed);
    free(k);
}

/* ---- settings ---------------------------------------------------------------------- */

static const char *locale(const char *const *env) {
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *v = env_get(env, names[i]);
        if (v && *v) return v;
    }
    return "C";
}

/* Adds what initialize says besides the configuration. */
static int complete(abx_client *c, const struct manifest *m, abx_value *config_core, const char *dir, const char *data_dir, abx_value **ret) {
    _cleanup_value_ abx_value *v = abx_value_new_object(), *host = abx_value_new_object();
    int r = abx_value_set_string(host, "name", c->host_name);
    if (r == 0) r = abx_value_set_string(host, "version", abx_version_string());
    if (r == 0) r = abx_value_set_int(host, "pid", getpid());
    if (r == 0) r = abx_value_set_string(v, "protocol", m->protocol);
    if (r == 0) r = abx_value_set(v, "host", TAKE_PTR(host));
    if (r == 0) r = abx_value_set_string(v, "provider_id", m->id);
    if (r == 0) r = abx_value_set(v, "config", abx_value_ref(abx_value_get(config_core, "config")));
    if (r == 0) r = abx_value_set(v, "core", abx_value_ref(abx_value_get(config_core, "core")));
    if (r == 0) r = abx_value_set_string(v, "locale", locale(client_environ(c)));
    if (r == 0 && data_dir) r = abx_value_set_string(v, "data_dir", data_dir);
    if (r == 0 && dir) r = abx_value_set_string(v, "directory", dir);
    if (r == 0) *ret = TAKE_PTR(v);
    return r;
}

static void forget(struct session *s) {
    struct session **at = &s->client->sessions;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
}

/* The one with the same configuration (0), or a new one (1); consumes what prepare_free frees. */
static int share(abx_client *c, struct session_spec *spec, bool fresh, struct session **ret, abx_error **reterr) {
    struct session *s = NULL;
    spec->client = c;
    spec->host = &c->host;
    spec->forget = forget;
    int r = session_new(&s, spec);
    if (r < 0) {
        if (spec->prepare_free) spec->prepare_free(spec->prepare_user);
        return err_nomem(reterr);
    }
    for (struct session *k = c->sessions; k && !fresh; k = k->next) {
        if (!streq(k->key, s->key) || !streq(k->manifest->sha256, s->manifest->sha256)) continue;
        s->forget = NULL;
        session_unref(s);
        *ret = session_ref(k);
        return 0;
    }
    s->next = c->sessions;
    c->sessions = s;
    *ret = s;
    return 1;
}

int client_no_driver(const struct manifest *m, abx_error **reterr) {
    return err_set(reterr, ABX_E_PROVIDER, "Choose a provider of kind exec: 'abx provider list'.",
                   "Provider '%s' is of kind '%s', which this version of abx cannot start.", m->id, m->kind);
}

/* What the caller said of the provider's settings. */
struct said {
    const abx_value *options, *core;
};

static int settings_for(abx_client *c, struct manifest *m, struct said said, char *const *inherit, const char *dir,
                        const char *data_dir, abx_value **ret, abx_error **reterr) {
    struct config *config;
    _cleanup_value_ abx_value *v = NULL;
    struct secrets secrets = {0};
    int r = client_config(c, &config, reterr);
    if (r == 0) r = config_provider(config, m, said.options, said.core, inherit, &secrets, &v, reterr);
    secrets_done(&secrets);
    if (r < 0) return r;
    return complete(c, m, v, dir, data_dir, ret) < 0 ? err_nomem(reterr) : 0;
}

/* What the receipt says was agreed to: an inherit key added behind its back is not given. */
static int consented_inherit(const abx_value *receipt, char ***ret) {
    const abx_value *list = abx_value_get(abx_value_get(receipt, "consented"), "inherit");
    _cleanup_strv_ char **v = calloc(1, sizeof *v);
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const char *s = abx_value_string(abx_value_at(list, i));
        if (s && strv_append(&v, s) < 0) return -ENOMEM;
    }
    *ret = TAKE_PTR(v);
    return *ret ? 0 : -ENOMEM;
}

static int installed_session(abx_client *c, const char *id, struct said said, bool fresh, struct session **ret,
                             abx_error **reterr) {
    struct check *k = calloc(1, sizeof *k);
    if (!k) return err_nomem(reterr);
    int r = client_store(c, &k->store, reterr);
    if (r == 0) r = store_load(&k->store, id, &k->installed, reterr);
    if (r == 0 && k->installed.error) r = err_pass(reterr, abx_error_ref(k->installed.error));
    struct manifest *m = r == 0 ? k->installed.manifest : NULL;
    const abx_driver *driver = m ? driver_for_kind(m->kind) : NULL;
    if (m && !driver) r = client_no_driver(m, reterr);
    _cleanup_value_ abx_value *settings = NULL;
    _cleanup_strv_ char **inherit = NULL;
    if (r == 0 && consented_inherit(k->installed.receipt, &inherit) < 0) r = err_nomem(reterr);
    if (r == 0) r = settings_for(c, m, said, inherit, k->installed.plugin_dir, k->installed.data_dir, &settings, reterr);
    if (r < 0) {
        check_free(k);
        return r;
    }
    bool link = streq0(abx_value_get_string(k->installed.receipt, "trust"), "link");
    struct session_spec spec = {.manifest = m, .driver = driver, .settings = settings, .prepare = check_run, .prepare_user = k,
                                .prepare_free = check_free};
    r = share(c, &spec, fresh, ret, reterr);
    if (r == 1 && link) /* once a session, not once a call */
        log_line(&c->log, ABX_LOG_WARN, id, "provider '%s' is a development link to %s: its files are not verified", id,
                 k->installed.plugin_dir);
    return MIN_OF(r, 0);
}

int client_session_for(abx_client *c, const char *id, const abx_value *options, struct session **ret, abx_error **reterr) {
    return installed_session(c, id, (struct said){.options = options}, true, ret, reterr);
}

int client_session(abx_client *c, const abx_provider_opts *p, const char *ref, struct session **ret, char **ret_sandbox,
                   abx_error **reterr) {
    struct config *config;
    _cleanup_free_ char *id = NULL, *sandbox = NULL;
    struct said said = {.options = p ? p->options : NULL};
    if (p && p->size >= offsetof(abx_provider_opts, core) + sizeof p->core) said.core = p->core;
    int r = client_config(c, &config, reterr);
    if (r == 0) r = config_select(config, p ? p->provider : NULL, ref, &id, &sandbox, reterr);
    if (r < 0) return r;
    struct registered *reg = client_registered(c, id);
    if (streq(id, BUILTIN_PROVIDER) && !reg) {
        _cleanup_manifest_ struct manifest *m = NULL;
        r = manifest_builtin(&m, reterr);
        return r < 0 ? r : client_no_driver(m, reterr);
    }
    if (!reg) {
        r = installed_session(c, id, said, false, ret, reterr);
    } else {
        _cleanup_value_ abx_value *settings = NULL;
        r = settings_for(c, reg->manifest, said, reg->manifest->inherit, NULL, NULL, &settings, reterr);
        struct session_spec spec = {.manifest = reg->manifest, .driver = reg->driver, .driver_user = reg->user, .settings = settings};
        if (r == 0) r = share(c, &spec, false, ret, reterr);
        if (r == 1) r = 0;
    }
    if (r == 0 && ret_sandbox) *ret_sandbox = TAKE_PTR(sandbox);
    return r;
}
