/* One call in flight: it ends once, never inside its start, and tells whoever asked. */
#include "provider/op.h"

#include <abx/sandbox.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"

/* What an event costs besides its bytes, so that a million empty ones are bounded too. */
#define EVENT_COST sizeof(struct op_event)

static void on_end_later(struct deferred *d);

int op_new(abx_op **ret, struct op_host *h, const struct op_class *class_, void *priv) {
    abx_op *op = calloc(1, sizeof *op);
    if (!op) return -ENOMEM;
    op->refs = 1;
    op->host = h;
    op->class_ = class_;
    op->priv = priv;
    op->tail = &op->first;
    deferred_init(&op->end_later, on_end_later);
    op->all_next = h->all;
    op->all_at = &h->all;
    if (h->all) h->all->all_at = &op->all_next;
    h->all = op;
    h->hold(h);
    *ret = op;
    return 0;
}

void op_on_end(abx_op *op, void (*fn)(void *user, const abx_op *op), void *user) {
    op->on_end = fn;
    op->on_end_user = user;
}

bool op_running(const abx_op *op) { return op->state == ABX_OP_RUNNING; }

static void event_free(struct op_event *e) {
    if (!e) return;
    abx_value_unref(e->value);
    free(e);
}

static void drop_events(abx_op *op) {
    struct op_event *e;
    while ((e = op->first)) {
        op->first = e->next;
        event_free(e);
    }
    op->tail = &op->first;
    event_free(TAKE_PTR(op->current));
    op->queued = 0;
}

static void op_free(abx_op *op) {
    struct op_host *h = op->host;
    drop_events(op);
    if (op->class_->free) op->class_->free(op);
    if (op->notify_free) op->notify_free(op->notify_user);
    abx_value_unref(op->value);
    abx_error_unref(op->error);
    abx_sandbox_unref(op->sandbox);
    abx_plan_unref(op->plan);
    free(op);
    h->release(h);
}

static void make_ready(abx_op *op) {
    struct op_host *h = op->host;
    if (!op->notify || op->ready || op->refs == 0) return;
    op->ready = true;
    op->refs++; /* the queue's */
    op->ready_next = NULL;
    *h->ready_tail = op;
    h->ready_tail = &op->ready_next;
    loop_wakeup(h->loop); /* for an end outside of the pump */
}

static void end(abx_op *op, abx_op_state state) {
    if (op->starting) {
        op->later = state;
        deferred_start(op->host->loop, &op->end_later);
        return;
    }
    op->state = state;
    *op->all_at = op->all_next;
    if (op->all_next) op->all_next->all_at = op->all_at;
    if (op->on_end) {
        op->refs++; /* the hook may drop the last reference */
        op->on_end(op->on_end_user, op);
        op->refs--;
    }
    if (op->class_->ended) {
        op->refs++; /* so may this */
        op->class_->ended(op);
        op->refs--;
    }
    if (op->refs == 0)
        op_free(op);
    else
        make_ready(op);
}

static void on_end_later(struct deferred *d) {
    abx_op *op = (abx_op *)((char *)d - offsetof(abx_op, end_later));
    end(op, op->later);
}

static bool can_end(const abx_op *op) { return op_running(op) && op->later == ABX_OP_RUNNING; }

void op_finish(abx_op *op, abx_value *value) {
    if (!can_end(op)) {
        abx_value_unref(value);
        return;
    }
    op->value = value;
    end(op, ABX_OP_DONE);
}

void op_fail(abx_op *op, abx_error *error) {
    if (!can_end(op)) {
        abx_error_unref(error);
        return;
    }
    if (!error) err_nomem(&error);
    op->error = error;
    end(op, ABX_OP_FAILED);
}

void op_end_cancelled(abx_op *op) {
    if (!can_end(op)) return;
    err_set(&op->error, -ECANCELED, "", "Cancelled.");
    end(op, ABX_OP_CANCELLED);
}

int op_emit(abx_op *op, const abx_event *e) {
    if (!op_running(op) || op->refs == 0 || op->discard) return 0;
    struct op_event *k = malloc(sizeof *k + e->bytes.len);
    if (!k) return -ENOMEM;
    *k = (struct op_event){.type = e->type, .exit_code = e->exit_code, .value = abx_value_ref(e->value), .len = e->bytes.len};
    if (k->len) memcpy(k->data, e->bytes.data, k->len);
    *op->tail = k;
    op->tail = &k->next;
    op->queued += k->len + EVENT_COST;
    make_ready(op);
    return 0;
}

int op_pump(struct op_host *h, int timeout_ms) {
    int r = loop_pump(h->loop, timeout_ms);
    if (h->ready) loop_wakeup(h->loop);
    return r;
}

int op_dispatch(struct op_host *h) {
    int n = 0;
    /* Only what is ready now: a callback that makes itself ready again waits its turn. */
    abx_op *op = h->ready;
    h->ready = NULL;
    h->ready_tail = &h->ready;
    while (op) {
        abx_op *next = op->ready_next;
        op->ready = false;
        if (op->notify) op->notify(op, op->notify_user);
        abx_op_unref(op);
        op = next;
        n++;
    }
    return n;
}

/* ---- public ----------------------------------------------------------------- */

void abx_op_set_notify(abx_op *op, abx_notify_fn fn, void *user, void (*free_user)(void *)) {
    if (op->notify_free) op->notify_free(op->notify_user);
    op->notify = fn;
    op->notify_user = user;
    op->notify_free = free_user;
    if (fn && (op->first || !op_running(op))) make_ready(op);
}

abx_op_state abx_op_poll(abx_op *op) { return op->state; }

int abx_op_next(abx_op *op, abx_event *ret) {
    bool had = op->current != NULL;
    event_free(TAKE_PTR(op->current));
    struct op_event *e = op->first;
    if (e) {
        op->first = e->next;
        if (!op->first) op->tail = &op->first;
        op->queued -= e->len + EVENT_COST;
        op->current = e;
        *ret = (abx_event){.size = sizeof *ret, .type = e->type, .bytes = {e->data, e->len}, .exit_code = e->exit_code, .value = e->value};
    }
    if ((e || had) && op_running(op) && op->class_->taken) op->class_->taken(op);
    if (e) return 1;
    return op_running(op) ? 0 : -1;
}

static int wait_for(abx_op *op, int timeout_ms, bool event) {
    int64_t end_ms = timeout_ms < 0 ? 0 : time_mono_ms() + timeout_ms;
    while (op_running(op) && !(event && op->first)) {
        int left = -1;
        if (timeout_ms >= 0) {
            int64_t d = end_ms - time_mono_ms();
            if (d < 0) return 0;
            left = (int)d;
        }
        int r = op_pump(op->host, left);
        if (r < 0) return r;
        if (timeout_ms >= 0 && op_running(op) && !(event && op->first) && time_mono_ms() >= end_ms) return 0;
    }
    return 1;
}

int abx_op_wait(abx_op *op, int timeout_ms) { return wait_for(op, timeout_ms, false); }
int abx_op_wait_event(abx_op *op, int timeout_ms) { return wait_for(op, timeout_ms, true); }

void abx_op_cancel(abx_op *op) {
    if (!op_running(op) || op->cancelled) return;
    op->cancelled = true;
    op->class_->cancel(op);
}

const abx_value *abx_op_value(abx_op *op) { return op->state == ABX_OP_DONE ? op->value : NULL; }
abx_error *abx_op_error(abx_op *op) { return op_running(op) ? NULL : op->error; }
abx_sandbox *abx_op_take_sandbox(abx_op *op) { return TAKE_PTR(op->sandbox); }
abx_plan *abx_op_take_plan(abx_op *op) { return TAKE_PTR(op->plan); }

abx_op *abx_op_ref(abx_op *op) {
    op->refs++;
    return op;
}

abx_op *abx_op_unref(abx_op *op) {
    if (!op || --op->refs > 0) return NULL;
    if (!op_running(op)) {
        op_free(op);
        return NULL;
    }
    /* Nobody listens: take the events away, so that the plugin is not held back for them. */
    drop_events(op);
    op->notify = NULL;
    if (!op->cancelled) {
        op->cancelled = true;
        op->class_->cancel(op); /* may free op */
    }
    return NULL;
}

int abx_op_finish(abx_op **opp, abx_value **ret, abx_error **reterr) {
    abx_op *op = TAKE_PTR(*opp);
    op->discard = true;
    drop_events(op);
    if (op->class_->taken) op->class_->taken(op);
    int r = abx_op_wait(op, -1);
    if (r < 0) {
        abx_op_unref(op);
        return err_errno(reterr, r, r, "waiting for the plugin");
    }
    if (op->state == ABX_OP_DONE) {
        if (ret) *ret = abx_value_ref(op->value);
        abx_op_unref(op);
        return 0;
    }
    r = err_pass(reterr, abx_error_ref(op->error));
    abx_op_unref(op);
    return r;
}
