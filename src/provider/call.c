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

void call_ended(struct abx_call *c) {
    c->state = CALL_ENDED;
    timer_stop(&c->timer);
    unlink_call(c);
}

void call_fail(struct abx_call *c, abx_error *e) {
    session_explain(c->session, e);
    call_ended(c);
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

static abx_error *error_of(const struct abx_call *c, int code, const char *hint, const char *text) {
    abx_error *e = NULL;
    err_set(&e, code, hint, "%s", text);
    if (e) {
        err_set_provider(e, c->session->manifest->id);
        if (c->method) err_set_method(e, c->method->name);
    }
    return e;
}

static void fail_code(struct abx_call *c, int code, const char *hint, const char *text) {
    call_fail(c, error_of(c, code, hint, text));
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
    if (c->state == CALL_SENT && s->instance && driver_has(s->driver, cancel)) s->driver->cancel(s->instance, c);
}

int64_t call_left_ms(const struct abx_call *c) {
    if (!c->deadline_ms) return -1;
    int64_t left = c->deadline_ms - time_mono_ms();
    return left < 0 ? 0 : left;
}

void call_arm(struct abx_call *c, int64_t after_ms) {
    c->deadline_ms = after_ms > 0 ? time_mono_ms() + after_ms : 0;
    timer_stop(&c->timer);
    if (c->deadline_ms) timer_start(client_loop(c->session->client), &c->timer, after_ms);
}

int64_t call_command_ms(const struct abx_call *c) {
    return MIN_OF(c->o.command_timeout_s, (int64_t)INT32_MAX) * 1000 + EXEC_GRACE_MS;
}

/* A stream past its answer has no request to cancel: its process is killed, its watch given up, best effort. */
static void kill_process(struct abx_call *c) {
    if (!c->started || !c->process_id) return;
    bool watch = c->method->traits & WATCH;
    if (!watch && !session_has_feature(c->session, "process.manage")) return;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    if (!watch) abx_value_set(params, "sandbox_id", abx_value_ref(abx_value_get(c->params, "sandbox_id")));
    abx_value_set_string(params, watch ? "watch_id" : "pid", c->process_id);
    abx_op *op = NULL;
    if (call_start(&op, c->session, watch ? "files.unwatch" : "process.kill", params, NULL, NULL) < 0) return;
    op->cancelled = true; /* runs on without a holder */
    abx_op_unref(op);
}

static void call_timed_out(struct abx_call *c) {
    struct session *s = c->session;
    int64_t ms = c->method ? s->manifest->call_timeout_ms : s->manifest->startup_timeout_ms;
    if (c->method && (c->method->traits & COMMAND) && c->o.command_timeout_s > 0)
        ms = call_command_ms(c);
    _cleanup_free_ char *text = NULL;
    if (c->started) { /* it answered: what did not end is the command */
        text = str_printf("The command did not finish within %llds, and provider '%s' reported no end of it.",
                          (long long)c->o.command_timeout_s, s->manifest->id);
        kill_process(c);
        drop(c);
        return fail_code(c, ABX_E_COMMAND_TIMEOUT, "Raise the timeout of the command.", text ?: "timeout");
    }
    if (!c->method)
        text = str_printf("Provider '%s' did not initialize within %gs.", s->manifest->id, (double)ms / 1000);
    else
        text = str_printf("Provider '%s' did not answer '%s' within %gs.", s->manifest->id, c->method->name, (double)ms / 1000);
    abx_error *e = error_of(c, ABX_E_TIMEOUT, c->method ? "Raise runtime.call_timeout_ms of the provider, or the timeout of the command." : "",
                            text ?: "timeout");
    abx_op *op = c->op;
    session_explain(s, e);
    if (call_outlive(c)) return op_fail(op, e);
    kill_process(c);
    drop(c);
    call_fail(c, e);
}

static void on_timer(struct timer *t) {
    struct abx_call *c = (struct abx_call *)((char *)t - offsetof(struct abx_call, timer));
    if (c->state != CALL_RETRYING) return call_timed_out(c);
    /* The plugin may have gone while the call waited for its next try. */
    unlink_call(c);
    /* A new start takes time of its own: the deadline holds meanwhile. */
    if (c->deadline_ms) timer_start(client_loop(c->session->client), &c->timer, call_left_ms(c));
    session_submit(c->session, c);
}

/* ---- start ------------------------------------------------------------------ */

void call_issue(struct abx_call *c) {
    struct session *s = c->session;
    abx_error *e = NULL;
    if (!c->method) { /* only the handshake was wanted */
        call_ended(c);
        op_finish(c->op, abx_value_new_object());
        return;
    }
    if (c->tries++ == 0) {
        int64_t ms = s->manifest->call_timeout_ms;
        if ((c->method->traits & COMMAND) && !(c->method->traits & STREAM) && c->o.command_timeout_s > 0)
            ms = call_command_ms(c);
        call_arm(c, ms);
        /* The handshake may have taken features away since the start. */
        if (gate_check(s, c->method->feature, c->method->name, &e) < 0) return call_fail(c, e);
    } else if (c->deadline_ms) {
        timer_stop(&c->timer);
        timer_start(client_loop(s->client), &c->timer, call_left_ms(c));
    }
    unlink_call(c);
    link_call(&s->running, c);
    c->state = CALL_SENT;
    if (s->driver->call(s->instance, c->method->name, c->params, c, &e) < 0) call_fail(c, e);
}

static void op_cancel_call(abx_op *op) {
    struct abx_call *c = op->priv;
    if (!c || c->state == CALL_ENDED) return;
    if (!call_outlive(c)) {
        kill_process(c);
        drop(c);
        call_ended(c);
    }
    op_end_cancelled(op);
}

static void op_taken_call(abx_op *op) {
    struct abx_call *c = op->priv;
    if (!c) return;
    struct session *s = c->session;
    if (c->state == CALL_SENT && s->instance && driver_has(s->driver, flow)) s->driver->flow(s->instance);
}

static void op_free_call(abx_op *op) { call_free(op->priv); }

/* Who keeps an op for its result keeps neither what was sent nor the provider. */
static void op_ended_call(abx_op *op) { call_free(TAKE_PTR(op->priv)); }

const struct op_class call_class = {op_cancel_call, op_taken_call, op_free_call, op_ended_call};

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
    call_arm(c, timeout_ms);
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
