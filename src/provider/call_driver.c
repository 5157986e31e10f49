/* What a driver says about its calls: events, results, failures. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "provider/call.h"

int abx_call_emit(abx_call *c, const abx_event *e) {
    if (c->on_end) return 0;
    if (e->type == ABX_EVENT_STARTED) {
        const char *pid = abx_value_get_string(e->value, "process_id") ?: abx_value_get_string(e->value, "watch_id");
        c->started = true;
        free(c->process_id);
        c->process_id = pid ? strdup(pid) : NULL;
        call_arm(c, c->o.command_timeout_s > 0 ? call_command_ms(c) : 0);
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
        call_ended(c);
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
        call_kill_created(c, value);
        abx_value_unref(value);
        return result_failed(c, r, e);
    }
    call_ended(c);
    op_finish(c->op, value);
}

void abx_call_fail(abx_call *c, abx_error *e) {
    if (e && !abx_error_provider(e)) { /* the driver need not say whose call it was */
        err_set_provider(e, c->session->manifest->id);
        if (c->method) err_set_method(e, c->method->name);
    }
    call_fail(c, e);
}

void abx_call_fail_rpc(abx_call *c, int code, const char *message, const abx_value *data) {
    struct session *s = c->session;
    if (code == -32601 && c->method && c->method->fallback && !c->on_end) {
        c->method = method_find(c->method->fallback);
        c->tries = 0;
        return call_issue(c);
    }
    abx_error *e = errmap(s, c->method, code, message, data);
    if (!e && c->method && (c->method->traits & KILL)) return abx_call_finish(c, abx_value_new_object());
    int delay = c->method && !c->on_end ? retry_delay_ms(c->method, c->tries, e, call_left_ms(c)) : -1;
    if (delay < 0) return call_fail(c, e);
    abx_error_unref(e);
    c->state = CALL_RETRYING;
    timer_stop(&c->timer);
    timer_start(client_loop(s->client), &c->timer, delay);
}

int abx_call_time_left_ms(abx_call *c) {
    int64_t left = call_left_ms(c);
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
