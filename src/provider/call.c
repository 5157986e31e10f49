/* The way of a call. Whatever the kind of provider, it is gated, timed, retried, mapped and
 * redacted here and nowhere else. */
#include "provider/call.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

const struct method *method_find(const char *name) {
    static const struct method rows[] = {
#define METHOD(name, feature, idempotent, fallback, bytes, traits) {name, feature, idempotent, fallback, bytes, traits},
#include "provider/methods.def"
#undef METHOD
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (streq(rows[i].name, name)) return &rows[i];
    return NULL;
}

/* ---- lists ------------------------------------------------------------------ */

static void unlink_call(struct abx_call *c) {
    if (!c->at) return;
    *c->at = c->next;
    if (c->next) c->next->at = c->at;
    c->at = NULL;
    c->next = NULL;
}

static void link_call(struct abx_call **list, struct abx_call *c) {
    while (*list) list = &(*list)->next;
    c->at = list;
    *list = c;
}

void call_free(struct abx_call *c) {
    if (!c) return;
    unlink_call(c);
    timer_stop(&c->timer);
    abx_value_unref(c->params);
    if (c->o.free_user) c->o.free_user(c->o.user);
    session_unref(c->session);
    free(c->process_id);
    free(c);
}

/* ---- ends ------------------------------------------------------------------- */

static void on_timer(struct timer *t);

/* The call is over for the driver; what follows may free it with its op. */
static void ended(struct abx_call *c) {
    c->state = CALL_ENDED;
    timer_stop(&c->timer);
    unlink_call(c);
}

void call_fail(struct abx_call *c, abx_error *e) {
    session_explain(c->session, e);
    ended(c);
    if (c->on_end) {
        struct session *s = c->session;
        void (*fn)(struct session *, abx_value *, abx_error *) = c->on_end;
        fn(s, NULL, e);
        return;
    }
    if (c->op->cancelled && abx_error_code(e) != ABX_E_PLUGIN_PROCESS) {
        abx_error_unref(e);
        op_end_cancelled(c->op);
        return;
    }
    op_fail(c->op, e);
}

static void fail_code(struct abx_call *c, int code, const char *hint, const char *text) {
    abx_error *e = NULL;
    err_set(&e, code, hint, "%s", text);
    if (e) {
        err_set_provider(e, c->session->manifest->id);
        if (c->method) err_set_method(e, c->method->name);
    }
    call_fail(c, e);
}

void call_fail_sent(struct session *s) {
    session_ref(s);
    for (struct abx_call *c = s->running; c;) {
        if (c->state != CALL_SENT) {
            c = c->next;
            continue;
        }
        _cleanup_free_ char *text = str_printf("Provider '%s' ended before it answered.", s->manifest->id);
        fail_code(c, ABX_E_PLUGIN_PROCESS, "", text ?: "the plugin ended");
        c = s->running; /* an end may have started or ended others */
    }
    session_unref(s);
}

/* Has the driver drop the call, when it still holds it. */
static void drop(struct abx_call *c) {
    struct session *s = c->session;
    if (c->state == CALL_SENT && s->instance && s->driver->cancel) s->driver->cancel(s->instance, c);
}

static int64_t left_ms(const struct abx_call *c) {
    if (!c->deadline_ms) return -1;
    int64_t left = c->deadline_ms - time_mono_ms();
    return left < 0 ? 0 : left;
}

static void arm(struct abx_call *c, int64_t after_ms) {
    c->deadline_ms = after_ms > 0 ? time_mono_ms() + after_ms : 0;
    timer_stop(&c->timer);
    if (c->deadline_ms) timer_start(client_loop(c->session->client), &c->timer, after_ms);
}

/* A command's own time, with the grace; far from an overflow. */
static int64_t command_ms(const struct abx_call *c) {
    return MIN_OF(c->o.command_timeout_s, (int64_t)INT32_MAX) * 1000 + EXEC_GRACE_MS;
}

/* A stream past its answer has no request to cancel: its process is killed, best effort. */
static void kill_process(struct abx_call *c) {
    if (!c->started || !c->process_id || !session_has_feature(c->session, "process.manage")) return;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    abx_value_set(params, "sandbox_id", abx_value_ref(abx_value_get(c->params, "sandbox_id")));
    abx_value_set_string(params, "pid", c->process_id);
    abx_op *op = NULL;
    if (call_start(&op, c->session, "process.kill", params, NULL, NULL) < 0) return;
    op->cancelled = true; /* runs on without a holder */
    abx_op_unref(op);
}

static void call_timed_out(struct abx_call *c) {
    struct session *s = c->session;
    int64_t ms = c->method ? s->manifest->call_timeout_ms : s->manifest->startup_timeout_ms;
    if (c->method && (c->method->traits & COMMAND) && c->o.command_timeout_s > 0)
        ms = command_ms(c);
    _cleanup_free_ char *text = NULL;
    if (!c->method)
        text = str_printf("Provider '%s' did not initialize within %gs.", s->manifest->id, (double)ms / 1000);
    else
        text = str_printf("Provider '%s' did not answer '%s' within %gs.", s->manifest->id, c->method->name, (double)ms / 1000);
    kill_process(c);
    drop(c);
    fail_code(c, ABX_E_TIMEOUT, c->method ? "Raise runtime.call_timeout_ms of the provider, or the timeout of the command." : "", text ?: "timeout");
}

static void on_timer(struct timer *t) {
    struct abx_call *c = (struct abx_call *)((char *)t - offsetof(struct abx_call, timer));
    if (c->state != CALL_RETRYING) return call_timed_out(c);
    /* The plugin may have gone while the call waited for its next try. */
    unlink_call(c);
    /* A new start takes time of its own: the deadline holds meanwhile. */
    if (c->deadline_ms) timer_start(client_loop(c->session->client), &c->timer, left_ms(c));
    session_submit(c->session, c);
}

/* ---- start ------------------------------------------------------------------ */

void call_issue(struct abx_call *c) {
    struct session *s = c->session;
    abx_error *e = NULL;
    if (!c->method) { /* only the handshake was wanted */
        ended(c);
        op_finish(c->op, abx_value_new_object());
        return;
    }
    if (c->tries++ == 0) {
        int64_t ms = s->manifest->call_timeout_ms;
        if ((c->method->traits & COMMAND) && !(c->method->traits & STREAM) && c->o.command_timeout_s > 0)
            ms = command_ms(c);
        arm(c, ms);
        /* The handshake may have taken features away since the start. */
        if (gate_check(s, c->method->feature, c->method->name, &e) < 0) return call_fail(c, e);
    } else if (c->deadline_ms) {
        timer_stop(&c->timer);
        timer_start(client_loop(s->client), &c->timer, left_ms(c));
    }
    unlink_call(c);
    link_call(&s->running, c);
    c->state = CALL_SENT;
    if (s->driver->call(s->instance, c->method->name, c->params, c, &e) < 0) call_fail(c, e);
}

static void op_cancel_call(abx_op *op) {
    struct abx_call *c = op->priv;
    if (!c || c->state == CALL_ENDED) return;
    kill_process(c);
    drop(c);
    ended(c);
    op_end_cancelled(op);
}

static void op_taken_call(abx_op *op) {
    struct abx_call *c = op->priv;
    struct session *s = c->session;
    if (c->state == CALL_SENT && s->instance && s->driver->flow) s->driver->flow(s->instance);
}

static void op_free_call(abx_op *op) { call_free(op->priv); }

static const struct op_class call_class = {op_cancel_call, op_taken_call, op_free_call};

static struct abx_call *call_alloc(struct session *s) {
    struct abx_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    timer_init(&c->timer, on_timer);
    c->session = session_ref(s);
    return c;
}

/* Whatever ends the call at once, its op ends later. */
static int begin(abx_op **ret, struct abx_call *c) {
    abx_op *op = *ret = c->op;
    op->starting = true;
    session_submit(c->session, c);
    op->starting = false;
    return 0;
}

int call_start(abx_op **ret, struct session *s, const char *name, const abx_value *params, const struct call_opts *o,
               abx_error **reterr) {
    const struct method *m = method_find(name);
    int r = 0;
    if (!m)
        r = err_set(reterr, ABX_E_CONFIG, NULL, "'%s' is no method of the protocol.", name);
    else if (params && !abx_value_is(params, ABX_TYPE_OBJECT))
        r = err_set(reterr, ABX_E_CONFIG, NULL, "The parameters of '%s' are not an object.", name);
    else
        r = gate_check(s, m->feature, name, reterr);
    struct abx_call *c = r < 0 ? NULL : call_alloc(s);
    if (c) {
        c->method = m;
        c->params = params ? abx_value_ref(params) : abx_value_new_object();
        if (c->params) r = op_new(&c->op, s->host, &call_class, c);
    }
    if (!c || !c->params || r < 0) {
        call_free(c);
        if (o && o->free_user) o->free_user(o->user);
        return r < -999 ? r : err_nomem(reterr);
    }
    if (o) c->o = *o;
    return begin(ret, c);
}

struct abx_call *call_new_internal(struct session *s, int timeout_ms, void (*on_end)(struct session *, abx_value *, abx_error *)) {
    struct abx_call *c = call_alloc(s);
    if (!c) return NULL;
    c->on_end = on_end;
    c->state = CALL_SENT;
    arm(c, timeout_ms);
    return c;
}

int call_open_start(abx_op **ret, struct session *s, abx_error **reterr) {
    struct abx_call *c = call_alloc(s);
    if (!c || op_new(&c->op, s->host, &call_class, c) < 0) {
        call_free(c);
        return err_nomem(reterr);
    }
    return begin(ret, c);
}

/* ---- what drivers call ------------------------------------------------------ */

int abx_call_emit(abx_call *c, const abx_event *e) {
    if (c->on_end) return 0;
    if (e->type == ABX_EVENT_STARTED) {
        const char *pid = abx_value_get_string(e->value, "process_id");
        c->started = true;
        free(c->process_id);
        c->process_id = pid ? strdup(pid) : NULL;
        arm(c, c->o.command_timeout_s > 0 ? command_ms(c) : 0);
    }
    return op_emit(c->op, e);
}

static void result_failed(struct abx_call *c, int r, abx_error *e) {
    if (!e) err_errno(&e, r, r, "%s", c->method->name);
    if (abx_error_code(e) == ABX_E_PROTOCOL) { /* what a shape says is about somebody: name him */
        _cleanup_error_ abx_error *bare = TAKE_PTR(e);
        err_set(&e, ABX_E_PROTOCOL, abx_error_hint(bare), "Provider '%s' %s", c->session->manifest->id, abx_error_message(bare));
    }
    if (e && !abx_error_provider(e)) {
        err_set_provider(e, c->session->manifest->id);
        err_set_method(e, c->method->name);
    }
    call_fail(c, e);
}

void abx_call_finish(abx_call *c, abx_value *value) {
    if (c->on_end) {
        struct session *s = c->session;
        void (*fn)(struct session *, abx_value *, abx_error *) = c->on_end;
        ended(c);
        fn(s, value, NULL);
        return;
    }
    if (c->state == CALL_ENDED) {
        abx_value_unref(value);
        return;
    }
    abx_error *e = NULL;
    abx_value *again = NULL;
    int r = c->o.shape && value ? c->o.shape(c->o.user, &value, &again, &e) : 0;
    if (r == 0 && !value) r = -ENOMEM;
    if (r == 0 && again) {
        abx_value_unref(value);
        abx_value_unref(c->params);
        c->params = again;
        c->tries = 0;
        call_issue(c);
        return;
    }
    abx_value_unref(again);
    if (r == 0 && c->o.finish) r = c->o.finish(c->o.user, c->op, value, &e);
    if (r < 0) {
        abx_value_unref(value);
        return result_failed(c, r, e);
    }
    ended(c);
    op_finish(c->op, value);
}

void abx_call_fail(abx_call *c, abx_error *e) { call_fail(c, e); }

void abx_call_fail_rpc(abx_call *c, int code, const char *message, const abx_value *data) {
    struct session *s = c->session;
    if (code == -32601 && c->method && c->method->fallback && !c->on_end) {
        c->method = method_find(c->method->fallback);
        c->tries = 0;
        return call_issue(c);
    }
    abx_error *e = errmap(s, c->method, code, message, data);
    if (!e && c->method && (c->method->traits & KILL)) return abx_call_finish(c, abx_value_new_object());
    int delay = c->method && !c->on_end ? retry_delay_ms(c->method, c->tries, e, left_ms(c)) : -1;
    if (delay < 0) return call_fail(c, e);
    abx_error_unref(e);
    c->state = CALL_RETRYING;
    timer_stop(&c->timer);
    timer_start(client_loop(s->client), &c->timer, delay);
}

int abx_call_time_left_ms(abx_call *c) {
    int64_t left = left_ms(c);
    return left > INT32_MAX ? INT32_MAX : (int)left;
}

size_t abx_call_queued(abx_call *c) { return c->op ? c->op->queued : 0; }
void *abx_call_user(abx_call *c) { return c->driver_user; }
void abx_call_set_user(abx_call *c, void *user) { c->driver_user = user; }

int abx_error_new(abx_error **ret, int code, const char *message, const char *hint) {
    abx_error *e = NULL;
    err_set(&e, code, hint, "%s", message);
    if (!e) return -ENOMEM;
    *ret = e;
    return 0;
}
