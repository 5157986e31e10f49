/* Doctor: what is wrong with a provider, found step by step and told as a result. */
#include <abx/provider.h>
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "api/work_op.h"

struct doctor {
    abx_client *client;
    struct store store;
    char *id;
    abx_value *options;
    bool no_handshake, ok, is_installed;
    struct installed installed;
    abx_error *missing, *integrity; /* found on the thread */
    abx_value *checks;
    struct session *session;
    abx_op *op, *handshake;
};

static void doctor_free(void *user) {
    struct doctor *d = user;
    abx_op_unref(d->handshake);
    session_unref(d->session);
    installed_done(&d->installed);
    abx_error_unref(d->missing);
    abx_error_unref(d->integrity);
    abx_value_unref(d->checks);
    abx_value_unref(d->options);
    free(d->id);
    free(d);
}

static void add(struct doctor *d, const char *name, bool ok, const char *detail) {
    abx_value *v = abx_value_new_object();
    abx_value_set_string(v, "name", name);
    abx_value_set_bool(v, "ok", ok);
    abx_value_set_string(v, "detail", detail ?: "");
    abx_value_append(d->checks, v);
    if (!ok) d->ok = false;
}

static void add_error(struct doctor *d, const char *name, const abx_error *e) { add(d, name, false, abx_error_message(e)); }

static void finish(struct doctor *d, abx_op *op) {
    abx_value *v = abx_value_new_object();
    abx_value_set_string(v, "id", d->id);
    abx_value_set_bool(v, "ok", d->ok);
    abx_value_set(v, "checks", TAKE_PTR(d->checks));
    op_finish(op, v);
}

static int doctor_run(void *user, struct store_cancel *cancel, store_progress_fn progress, void *pu, abx_error **reterr) {
    (void)cancel, (void)progress, (void)pu, (void)reterr;
    struct doctor *d = user;
    if (streq(d->id, BUILTIN_PROVIDER) || d->is_installed) return 0;
    if (store_load(&d->store, d->id, &d->installed, &d->missing) < 0) return 0;
    if (!d->installed.error) store_verify(&d->store, &d->installed, &d->integrity);
    return 0;
}

static void on_handshake(void *user, const abx_op *op) {
    struct doctor *d = user;
    if (d->op->cancelled) return op_end_cancelled(d->op);
    if (op->error) {
        const char *hint = abx_error_hint(op->error);
        _cleanup_free_ char *text = hint && *hint ? str_printf("%s %s", abx_error_message(op->error), hint) : NULL;
        add(d, "handshake", false, text ?: abx_error_message(op->error));
    } else {
        add(d, "handshake", true, "");
    }
    d->session = session_unref(d->session);
    finish(d, d->op);
}

/* Configuration problems are two kinds: what is wrong, and what is missing to log in. */
static void check_config(struct doctor *d, const struct manifest *m) {
    struct config *config;
    struct secrets secrets = {0};
    _cleanup_value_ abx_value *settings = NULL;
    _cleanup_error_ abx_error *e = NULL;
    bool credentials = abx_value_size(m->auth_any_of) > 0;
    for (size_t i = 0; i < m->field_count; i++) credentials |= m->fields[i].credential;
    int r = client_config(d->client, &config, &e);
    if (r == 0) r = config_provider(config, m, d->options, NULL, m->inherit, &secrets, &settings, &e);
    secrets_done(&secrets);
    bool login = r == ABX_E_CREDENTIALS;
    if (r < 0 && !login)
        add_error(d, "config", e);
    else
        add(d, "config", true, "");
    if (login)
        add_error(d, "credentials", e);
    else if (credentials && r == 0 && !streq(m->kind, "builtin"))
        add(d, "credentials", true, "");
}

static int doctor_done(void *user, abx_op *op, abx_error **reterr) {
    (void)reterr;
    struct doctor *d = user;
    struct registered *reg = client_registered(d->client, d->id);
    _cleanup_manifest_ struct manifest *m = NULL;
    d->op = op;
    if (d->missing || d->installed.error) {
        add_error(d, "installed", d->missing ?: d->installed.error);
        finish(d, op);
        return 1;
    }
    bool builtin = streq(d->id, BUILTIN_PROVIDER) && !reg;
    if (builtin && manifest_builtin(&m, NULL) < 0) return err_nomem(reterr);
    if (!m) m = manifest_ref(reg ? reg->manifest : d->installed.manifest);
    _cleanup_free_ char *title = str_printf("%s %s", builtin ? m->name : m->id, m->version);
    add(d, "installed", true, title);
    bool link = streq0(abx_value_get_string(d->installed.receipt, "trust"), "link");
    if (d->integrity)
        add_error(d, "integrity", d->integrity);
    else if (link)
        add(d, "integrity", true, "development link: not verified");
    else if (d->installed.receipt) {
        char head[17] = "";
        snprintf(head, sizeof head, "%s", abx_value_get_string(d->installed.receipt, "tree_sha256") ?: "");
        add(d, "integrity", true, head);
    }
    if (!d->integrity) check_config(d, m);
    /* Nothing can be created with it, however well it is configured. */
    _cleanup_error_ abx_error *none = NULL;
    if (!reg && !driver_for_kind(m->kind) && client_no_driver(m, &none) < 0) add_error(d, "driver", none);
    if (!d->ok || d->no_handshake) {
        finish(d, op);
        return 1;
    }
    _cleanup_error_ abx_error *e = NULL;
    abx_provider_opts p = {sizeof p, d->id, d->options, NULL};
    int r = client_session(d->client, &p, NULL, &d->session, NULL, &e);
    if (r == 0) r = call_open_start(&d->handshake, d->session, &e);
    if (r < 0) {
        add_error(d, "handshake", e);
        finish(d, op);
        return 1;
    }
    op_on_end(d->handshake, on_handshake, d);
    return 1;
}

static void doctor_cancel(void *user) {
    struct doctor *d = user;
    if (d->handshake) abx_op_cancel(d->handshake);
}

static const struct work_class doctor_class = {doctor_run, doctor_done, doctor_free, doctor_cancel};

int abx_provider_doctor_start(abx_op **ret, abx_client *c, const abx_provider_opts *p, int no_handshake, abx_error **reterr) {
    struct config *config;
    struct doctor *d = calloc(1, sizeof *d);
    if (!d) return err_nomem(reterr);
    d->client = c;
    d->ok = true;
    d->no_handshake = no_handshake;
    d->options = p && p->options ? abx_value_ref(p->options) : NULL;
    d->checks = abx_value_new_array();
    int r = client_config(c, &config, reterr);
    if (r == 0) r = config_select(config, p ? p->provider : NULL, NULL, &d->id, NULL, reterr);
    if (r == 0) r = client_store(c, &d->store, reterr);
    d->is_installed = r == 0 && client_registered(c, d->id);
    if (r < 0) {
        doctor_free(d);
        return r;
    }
    return work_op_start(ret, c, &doctor_class, d, reterr);
}
