/* A session brings its plugin up when the first call needs it, and again after a crash. */
#include "provider/session.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "drivers/drivers.h"
#include "provider/call.h"

static void open_instance(struct session *s);
static void on_bury(struct deferred *d);
static void bury(struct session *s);
static void on_open_later(struct deferred *d);
static void on_closed(struct session *s, abx_value *v, abx_error *e);

/* ---- waiting calls ---------------------------------------------------------- */

static void fail_waiting(struct session *s, abx_error *e) {
    struct abx_call *c;
    s->state = SESSION_IDLE;
    while ((c = s->waiting)) call_fail(c, abx_error_ref(e));
    abx_error_unref(e);
}

static void issue_waiting(struct session *s) {
    session_ref(s);
    while (s->waiting && s->state == SESSION_READY) call_issue(s->waiting);
    session_unref(s);
}

/* ---- up and down ------------------------------------------------------------ */

static void on_reap(struct deferred *d) {
    struct session *s = (struct session *)((char *)d - offsetof(struct session, reap));
    if (s->dead) s->driver->destroy(TAKE_PTR(s->dead));
    if (s->state != SESSION_READY) call_fail_sent(s);
}

/* Sets the instance aside: it may be in the middle of its own callback. */
static void retire(struct session *s) {
    if (!s->instance) return;
    if (s->dead) s->driver->destroy(TAKE_PTR(s->dead));
    s->dead = TAKE_PTR(s->instance);
    s->features = strv_free(s->features);
    deferred_start(client_loop(s->client), &s->reap);
}

void session_check(struct session *s) {
    if (s->state != SESSION_READY || !driver_has(s->driver, alive) || s->driver->alive(s->instance)) return;
    s->state = SESSION_IDLE;
    retire(s);
}

void session_explain(struct session *s, abx_error *e) {
    int code = abx_error_code(e);
    if ((code != ABX_E_PROTOCOL && code != ABX_E_TIMEOUT) || !s->instance) return;
    if (!driver_has(s->driver, hint)) return;
    _cleanup_free_ char *said = s->driver->hint(s->instance);
    const char *hint = abx_error_hint(e);
    if (!said || !*said || strstr(hint, said)) return;
    _cleanup_free_ char *both = *hint ? str_printf("%s %s", hint, said) : NULL;
    err_set_hint(e, both ?: said);
}

static void on_opened(struct session *s, abx_value *result, abx_error *e) {
    _cleanup_value_ abx_value *v = result;
    session_ref(s);
    call_free(TAKE_PTR(s->open_call));
    strv_free(s->features);
    s->features = NULL;
    if (!e && handshake_check(s, v, &s->features, &e) < 0 && e) err_set_provider(e, s->manifest->id);
    if (e) {
        session_explain(s, e);
        retire(s);
        fail_waiting(s, e);
    } else {
        s->state = SESSION_READY;
        issue_waiting(s);
    }
    session_unref(s);
}

static void open_instance(struct session *s) {
    abx_error *e = NULL;
    s->state = SESSION_OPENING;
    s->open_call = call_new_internal(s, s->manifest->startup_timeout_ms, on_opened);
    if (!s->open_call) {
        err_nomem(&e);
        return fail_waiting(s, e);
    }
    if (s->driver->open(&s->instance, s->client, s->manifest->raw, s->settings, s->driver_user, s->open_call, &e) == 0) return;
    call_free(TAKE_PTR(s->open_call));
    if (e) err_set_provider(e, s->manifest->id);
    fail_waiting(s, e);
}

/* ---- the check before a start, off the loop's thread ------------------------- */

static void prepare_run(struct work *w) {
    struct session *s = (struct session *)((char *)w - offsetof(struct session, prepare_work));
    s->prepare_result = s->prepare(s->prepare_user, &s->prepare_error);
}

static void prepare_done(struct work *w) {
    struct session *s = (struct session *)((char *)w - offsetof(struct session, prepare_work));
    if (s->prepare_result < 0)
        fail_waiting(s, TAKE_PTR(s->prepare_error));
    else if (!s->waiting) /* everybody gave up meanwhile */
        s->state = SESSION_IDLE;
    else
        open_instance(s);
    session_unref(s);
}

void session_submit(struct session *s, struct abx_call *c) {
    session_check(s);
    c->state = CALL_WAITING;
    struct abx_call **at = &s->waiting;
    while (*at) at = &(*at)->next;
    c->at = at;
    *at = c;
    if (s->state == SESSION_READY) return issue_waiting(s);
    if (s->state != SESSION_IDLE) return;
    s->state = SESSION_PREPARING;
    session_ref(s);
    s->prepare_work = (struct work){.run = prepare_run, .done = prepare_done};
    s->prepare_result = 0;
    int r = s->prepare ? work_start(client_loop(s->client), &s->prepare_work) : -ENOSYS;
    if (r == 0) return;
    /* No thread to be had, or nothing to check: here and now, but never inside the start. */
    if (s->prepare) s->prepare_result = s->prepare(s->prepare_user, &s->prepare_error);
    deferred_start(client_loop(s->client), &s->open_later);
}

static void on_open_later(struct deferred *d) {
    struct session *s = (struct session *)((char *)d - offsetof(struct session, open_later));
    prepare_done(&s->prepare_work);
}

/* ---- life -------------------------------------------------------------------- */

int session_new(struct session **ret, const struct session_spec *spec) {
    struct session *s = calloc(1, sizeof *s);
    if (!s) return -ENOMEM;
    s->refs = 1;
    s->client = spec->client;
    s->host = spec->host;
    s->driver = spec->driver;
    s->driver_user = spec->driver_user;
    s->manifest = manifest_ref(spec->manifest);
    s->settings = abx_value_ref(spec->settings);
    deferred_init(&s->reap, on_reap);
    deferred_init(&s->bury, on_bury);
    deferred_init(&s->open_later, on_open_later);
    /* Secrets included: sandboxes with different keys must not share a process. */
    s->key = abx_value_print(s->settings, ABX_PRINT_SORTED | ABX_PRINT_SECRETS, NULL);
    if (!s->key || secrets_add_value(&s->secrets, s->settings) < 0) {
        bury(s);
        return -ENOMEM;
    }
    s->prepare = spec->prepare;
    s->prepare_user = spec->prepare_user;
    s->prepare_free = spec->prepare_free;
    s->forget = spec->forget;
    *ret = s;
    return 0;
}

struct session *session_ref(struct session *s) {
    s->refs++;
    return s;
}

/* Nothing of the process is left: who waits for that is told. */
static void released(struct session *s, bool cut) {
    abx_op *op = TAKE_PTR(s->release_op);
    if (op) op_finish(op, abx_value_new_bool(cut));
}

static void bury(struct session *s) {
    deferred_cancel(&s->reap);
    deferred_cancel(&s->open_later);
    deferred_cancel(&s->bury);
    s->refs++; /* the call's own reference must not bury twice */
    bool cut = s->cut || (s->instance && s->close_call);
    call_free(TAKE_PTR(s->close_call));
    if (s->dead) s->driver->destroy(s->dead);
    if (s->instance) s->driver->destroy(s->instance);
    released(s, cut);
    if (s->prepare_free) s->prepare_free(s->prepare_user);
    strv_free(s->features);
    secrets_done(&s->secrets);
    abx_error_unref(s->prepare_error);
    abx_value_unref(s->settings);
    manifest_unref(s->manifest);
    free(s->key);
    free(s);
}

static void on_bury(struct deferred *d) {
    struct session *s = (struct session *)((char *)d - offsetof(struct session, bury));
    struct session **at = &s->host->dying;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
    bury(s);
}

static void on_orphan_closed(struct session *s, abx_value *v, abx_error *e) {
    s->cut = abx_value_bool(v);
    abx_value_unref(v);
    abx_error_unref(e);
    retire(s);
    s->state = SESSION_IDLE;
    call_free(TAKE_PTR(s->close_call));
}

struct session *session_unref(struct session *s) {
    if (!s || --s->refs > 0) return NULL;
    if (!s->closing) {
        s->closing = true;
        if (s->forget) s->forget(s);
        s->next = s->host->dying;
        s->host->dying = s;
        /* The plugin is asked to shut down while the loop goes on; the call holds the session. */
        session_check(s);
        if (s->state == SESSION_READY && driver_has(s->driver, close) && (s->close_call = call_new_internal(s, 0, on_orphan_closed))) {
            s->driver->close(s->instance, s->close_call);
            return NULL;
        }
    }
    deferred_start(client_loop(s->client), &s->bury);
    return NULL;
}

void session_bury_all(struct op_host *h) {
    while (h->dying) {
        struct session *s = h->dying;
        h->dying = s->next;
        bury(s);
    }
}

void session_kill(struct session *s, abx_error *e) {
    struct abx_call *c;
    bool preparing = s->state == SESSION_PREPARING;
    session_ref(s);
    if (s->instance) s->driver->destroy(TAKE_PTR(s->instance));
    if (s->dead) s->driver->destroy(TAKE_PTR(s->dead));
    call_free(TAKE_PTR(s->open_call));
    while ((c = s->running)) call_fail(c, abx_error_ref(e));
    fail_waiting(s, e);
    if (s->close_op) on_closed(s, abx_value_new_bool(1), NULL);
    if (s->open_later.next) { /* the start-up that was queued does not come */
        deferred_cancel(&s->open_later);
        session_unref(s);
    } else if (preparing) { /* one on a thread still reports */
        s->state = SESSION_PREPARING;
    }
    session_unref(s);
}

/* ---- orderly end --------------------------------------------------------------- */

struct closing {
    struct session *session;
    struct abx_call *call;
    abx_op *op;
};

static void close_cancel(abx_op *op) { (void)op; }
static void close_free(abx_op *op) {
    struct closing *k = op->priv;
    call_free(k->call);
    session_unref(k->session);
    free(k);
}
static const struct op_class close_class = {close_cancel, NULL, close_free, NULL};

static void on_closed(struct session *s, abx_value *v, abx_error *e) {
    abx_error_unref(e);
    retire(s);
    s->state = SESSION_IDLE;
    abx_op *op = TAKE_PTR(s->close_op);
    if (op)
        op_finish(op, v ?: abx_value_new_bool(0));
    else
        abx_value_unref(v);
}

int session_close_start(abx_op **ret, struct session *s) {
    struct closing *k = calloc(1, sizeof *k);
    if (!k) return -ENOMEM;
    k->session = session_ref(s);
    int r = op_new(&k->op, s->host, &close_class, k);
    if (r < 0) {
        session_unref(k->session);
        free(k);
        return r;
    }
    *ret = s->close_op = k->op;
    session_check(s);
    if (s->state != SESSION_READY || !driver_has(s->driver, close) || !(k->call = call_new_internal(s, 0, on_closed))) {
        on_closed(s, NULL, NULL);
        return 0;
    }
    s->driver->close(s->instance, k->call);
    return 0;
}

/* ---- giving up -------------------------------------------------------------------- */

/* The end goes on without who waited for it. */
static void release_cancel(abx_op *op) {
    struct session *s = op->priv;
    if (s) s->release_op = NULL;
    op->priv = NULL;
    op_end_cancelled(op);
}
static void release_ended(void *user, const abx_op *op) {
    (void)user;
    ((abx_op *)op)->priv = NULL; /* the session may be gone before the op is */
}
static const struct op_class release_class = {release_cancel, NULL, NULL, NULL};

int session_release_start(abx_op **ret, struct session *s) {
    abx_op *op = NULL;
    int r = op_new(&op, s->host, &release_class, NULL);
    if (r < 0) return r;
    *ret = op;
    op_on_end(op, release_ended, NULL);
    op->starting = true; /* it ends later, never inside of its start */
    if (s->refs == 1) {
        op->priv = s;
        s->release_op = op;
    } else {
        op_finish(op, abx_value_new_bool(0));
    }
    session_unref(s);
    op->starting = false;
    return 0;
}
