/* Install, update and uninstall: plans made and applied off the loop's thread, with the
 * handshake of a new version, on the loop, between the swap and its commit. */
#include <abx/store.h>
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "api/work_op.h"

struct abx_plan {
    unsigned refs;
    abx_client *client;
    struct store_plan *plan;
};

static abx_plan *plan_ref(abx_plan *p) {
    p->refs++;
    return p;
}

abx_plan *abx_plan_unref(abx_plan *p) {
    if (!p || --p->refs > 0) return NULL;
    store_plan_free(p->plan);
    abx_client *c = p->client;
    free(p);
    abx_client_unref(c);
    return NULL;
}

const abx_value *abx_plan_consent(abx_plan *p) { return store_plan_consent(p->plan); }
const abx_value *abx_plan_previous(abx_plan *p) { return store_plan_previous(p->plan); }
int abx_plan_pinned(abx_plan *p) { return store_plan_pinned(p->plan); }
int abx_plan_needs_consent(abx_plan *p) { return store_plan_needs_consent(p->plan); }

/* ---- planning ------------------------------------------------------------------------ */

struct planning {
    abx_client *client;
    struct store store;
    bool update;
    abx_install_opts install;
    abx_update_opts opts;
    char *texts[4]; /* copies of what the options point to */
    struct store_plan *plan;
    abx_value *result;
};

static void planning_free(void *user) {
    struct planning *p = user;
    store_plan_free(p->plan);
    abx_value_unref(p->result);
    for (size_t i = 0; i < ARRAY_SIZE(p->texts); i++) free(p->texts[i]);
    free(p);
}

static int planning_run(void *user, struct store_cancel *cancel, store_progress_fn progress, void *progress_user, abx_error **reterr) {
    struct planning *p = user;
    return p->update ? store_plan_update(&p->store, &p->opts, cancel, progress, progress_user, &p->plan, &p->result, reterr)
                     : store_plan_install(&p->store, &p->install, cancel, progress, progress_user, &p->plan, reterr);
}

static int planning_done(void *user, abx_op *op, abx_error **reterr) {
    struct planning *p = user;
    if (p->plan) {
        abx_plan *plan = calloc(1, sizeof *plan);
        if (!plan) return err_nomem(reterr);
        plan->refs = 1;
        plan->client = abx_client_ref(p->client);
        plan->plan = TAKE_PTR(p->plan);
        op->plan = plan;
    }
    op_finish(op, p->result ? TAKE_PTR(p->result) : abx_value_ref(store_plan_consent(op->plan->plan)));
    return 0;
}

static const struct work_class planning_class = {planning_run, planning_done, planning_free, NULL};

/* Copies a text the options borrow from the caller. */
static const char *keep(struct planning *p, size_t i, const char *s) {
    return p->texts[i] = s ? strdup(s) : NULL;
}

/* Owns p. whole: every text was copied. Only here may git run, and so only here its supervisor is looked for. */
static int planning_start(abx_op **ret, abx_client *c, struct planning *p, bool whole, abx_error **reterr) {
    int r = whole ? client_store(c, &p->store, reterr) : err_nomem(reterr);
    if (r < 0) {
        planning_free(p);
        return r;
    }
    p->store.supervisor = client_supervisor(c, NULL);
    return work_op_start(ret, c, &planning_class, p, reterr);
}

int abx_install_plan_start(abx_op **ret, abx_client *c, const abx_install_opts *o, abx_error **reterr) {
    if (!o || !o->source || !*o->source)
        return err_set(reterr, ABX_E_INSTALL, "Pass a directory, a git URL or owner/repo[//subdir].", "There is no source to install from.");
    struct planning *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(reterr);
    p->client = c;
    p->install = *o;
    p->install.source = keep(p, 0, o->source);
    p->install.ref = keep(p, 1, o->ref);
    p->install.sha256 = keep(p, 2, o->sha256);
    p->install.subdir = keep(p, 3, o->subdir);
    /* A pin that could not be copied must not be left out. */
    bool whole = p->texts[0] && !p->texts[1] == !o->ref && !p->texts[2] == !o->sha256 && !p->texts[3] == !o->subdir;
    return planning_start(ret, c, p, whole, reterr);
}

int abx_update_plan_start(abx_op **ret, abx_client *c, const abx_update_opts *o, abx_error **reterr) {
    if (!o || !o->id) return err_set(reterr, ABX_E_CONFIG, NULL, "There is no provider to update.");
    struct planning *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(reterr);
    p->client = c;
    p->update = true;
    p->opts = *o;
    p->opts.id = keep(p, 0, o->id);
    p->opts.ref = keep(p, 1, o->ref);
    return planning_start(ret, c, p, p->texts[0] && !p->texts[1] == !o->ref, reterr);
}

/* ---- applying ------------------------------------------------------------------------- */

struct applying {
    abx_plan *plan;
    abx_consent how;
    abx_value *receipt;
    struct session *session;
    abx_op *op, *handshake;
    abx_error *failed; /* why the handshake failed: the old version comes back */
    bool swapped, settled;
};

static void applying_free(void *user) {
    struct applying *a = user;
    abx_op_unref(a->handshake);
    session_unref(a->session);
    if (a->swapped && !a->settled) store_plan_rollback(a->plan->plan, NULL);
    abx_plan_unref(a->plan);
    abx_value_unref(a->receipt);
    abx_error_unref(a->failed);
    free(a);
}

static int settle_run(void *user, struct store_cancel *cancel, store_progress_fn progress, void *pu, abx_error **reterr) {
    (void)cancel, (void)progress, (void)pu;
    struct applying *a = user;
    a->settled = true;
    if (!a->failed) return store_plan_commit(a->plan->plan, reterr);
    int r = store_plan_rollback(a->plan->plan, reterr);
    return r < 0 ? r : err_pass(reterr, TAKE_PTR(a->failed));
}

static int settle_done(void *user, abx_op *op, abx_error **reterr) {
    (void)reterr;
    struct applying *a = user;
    op_finish(op, TAKE_PTR(a->receipt));
    return 0;
}

static const struct work_class settle_class = {settle_run, settle_done, applying_free, NULL};

/* A credential that is not there yet is no fault of the new version. */
static bool excused(const abx_error *e) {
    int code = abx_error_code(e);
    return code == ABX_E_CREDENTIALS || code == ABX_E_API_KEY || code == ABX_E_AUTHENTICATION || code == ABX_E_CONFIG;
}

static void handshake_over(struct applying *a, abx_error *e) {
    if (e && !excused(e)) a->failed = abx_error_ref(e);
    a->session = session_unref(a->session);
    if (work_op_again(a->op, &settle_class) < 0) { /* no thread: here */
        abx_error *why = NULL;
        if (settle_run(a, NULL, NULL, NULL, &why) < 0)
            op_fail(a->op, why);
        else
            settle_done(a, a->op, NULL);
    }
}

/* Runs when the handshake's own op ends, before anybody's callback. */
static void handshake_ended(void *user, const abx_op *op) {
    struct applying *a = user;
    handshake_over(a, op->error);
}

static int swap_run(void *user, struct store_cancel *cancel, store_progress_fn progress, void *pu, abx_error **reterr) {
    (void)cancel, (void)progress, (void)pu;
    struct applying *a = user;
    int r = store_plan_swap(a->plan->plan, a->how, &a->receipt, reterr);
    a->swapped = r == 0;
    return r;
}

static int swap_done(void *user, abx_op *op, abx_error **reterr) {
    struct applying *a = user;
    a->op = op;
    if (store_plan_no_verify(a->plan->plan)) {
        handshake_over(a, NULL);
        return 1;
    }
    _cleanup_error_ abx_error *e = NULL;
    int r = client_session_for(a->plan->client, store_plan_id(a->plan->plan), NULL, &a->session, &e);
    /* A rest provider has no process to shake hands with. */
    if (r < 0 && abx_error_code(e) == ABX_E_PROVIDER) {
        handshake_over(a, NULL);
        return 1;
    }
    if (r == 0) r = call_open_start(&a->handshake, a->session, &e);
    if (r < 0) {
        handshake_over(a, e);
        return 1;
    }
    (void)reterr;
    op_on_end(a->handshake, handshake_ended, a);
    return 1;
}

/* Ends the handshake, and with it the apply: the old version comes back. */
static void swap_cancel(void *user) {
    struct applying *a = user;
    if (!a->session) return;
    /* The plugin goes first, so that it writes no more into the data that come back. */
    abx_error *e = NULL;
    err_set(&e, -ECANCELED, "", "Cancelled.");
    session_kill(a->session, e);
}

static const struct work_class swap_class = {swap_run, swap_done, applying_free, swap_cancel};

int abx_plan_apply_start(abx_op **ret, abx_plan *p, abx_consent how, abx_error **reterr) {
    struct applying *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(reterr);
    a->plan = plan_ref(p);
    a->how = how;
    return work_op_start(ret, p->client, &swap_class, a, reterr);
}

/* ---- uninstall -------------------------------------------------------------------------- */

int abx_uninstall(abx_client *c, const char *id, int purge, abx_value **ret, abx_error **reterr) {
    struct store store;
    struct config *config;
    _cleanup_free_ char *chosen = NULL, *file = NULL;
    if (streq(id, BUILTIN_PROVIDER)) return err_set(reterr, ABX_E_CONFLICT, NULL, "The built-in provider cannot be removed.");
    int r = client_store(c, &store, reterr);
    if (r == 0) r = client_config(c, &config, reterr);
    if (r == 0) r = store_uninstall(&store, id, purge, reterr);
    if (r < 0) return r;
    /* What follows is settings: the files are gone already, and the result says what was done. */
    abx_value *set = NULL;
    bool reset = false;
    if (config_core(config, "provider", &set, NULL) == 0 && streq0(abx_value_string(set), id))
        reset = config_set(config, "provider", NULL, NULL, &file, NULL) == 0;
    abx_value_unref(set);
    if (purge) r = config_purge_provider(config, id, reterr);
    if (r < 0) return r;
    _cleanup_value_ abx_value *v = abx_value_new_object();
    r = abx_value_set_string(v, "id", id);
    if (r == 0) r = abx_value_set_bool(v, "removed", 1);
    if (r == 0) r = abx_value_set_bool(v, "purged", purge != 0);
    if (r == 0) r = abx_value_set_bool(v, "default_reset", reset);
    if (r < 0) return err_nomem(reterr);
    *ret = TAKE_PTR(v);
    return 0;
}
