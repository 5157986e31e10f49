/* What cases are written with: outcomes, calls with a deadline, sandboxes that don't outlive their case. */
#include "contract/test.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>

#include "base/buf.h"
#include "base/util.h"
#include "out.h"

/* How long a sandbox that is on its way gets to be there, and then to be killed; less of a plugin that hangs. */
#define LATE_MS 5000
#define KILL_MS 10000
#define STUCK_KILL_MS 2000

/* ---- outcome ----------------------------------------------------------------------------- */

bool test_ok(const struct test *t) { return t->outcome == CONTRACT_PASSED && !t->interrupted; }

static _printf_(3, 0) void settle(struct test *t, enum contract_outcome o, const char *fmt, va_list ap) {
    if (!test_ok(t)) return;
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    buf_vprintf(&b, fmt, ap);
    t->outcome = o;
    t->detail = buf_take(&b);
}

void test_fail(struct test *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    settle(t, CONTRACT_FAILED, fmt, ap);
    va_end(ap);
}

void test_skip(struct test *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    settle(t, CONTRACT_SKIPPED, fmt, ap);
    va_end(ap);
}

void test_unexpected(struct test *t, const struct ui_call *c, const char *what, const char *expected) {
    if (c->error)
        test_fail(t, "%s: expected %s, came [%s] %s", what, expected, abx_error_id(c->error), abx_error_message(c->error));
    else if (abx_value_size(c->value)) {
        _cleanup_free_ char *value = show_value(c->value);
        test_fail(t, "%s: expected %s, came success: %s", what, expected, value);
    } else
        test_fail(t, "%s: expected %s, came success", what, expected);
}

/* ---- calls --------------------------------------------------------------------------------- */

bool test_turn(struct test *t, const char *what) {
    int64_t left = t->deadline_ms - time_mono_ms();
    if (ui_signal() && !t->cleaning) {
        t->interrupted = true;
        return false;
    }
    if (left <= 0) {
        test_fail(t, "%s: expected an end within %llds, none came", what, (long long)t->timeout_s);
        t->stuck = true;
        return false;
    }
    int r = abx_pump(t->cli->client, (int)MIN_OF(left, (int64_t)INT_MAX));
    while (r >= 0 && abx_dispatch(t->cli->client) > 0)
        ;
    if (r >= 0 || r == -EINTR) return true;
    test_fail(t, "%s: waiting failed: %s", what, strerror(-r));
    return false;
}

static void take_events(abx_op *op) {
    abx_event e;
    while (abx_op_next(op, &e) == 1)
        ;
}

/* The value, sandbox or error of an op that has ended. */
static int take_result(struct ui_call *c) {
    int r = 0;
    if (abx_op_poll(c->op) == ABX_OP_DONE) {
        abx_value_unref(c->value);
        c->value = abx_value_ref(abx_op_value(c->op));
        c->sb = c->sb ?: abx_op_take_sandbox(c->op);
    } else {
        r = err_pass(&c->error, abx_error_ref(abx_op_error(c->op)));
    }
    c->op = abx_op_unref(c->op);
    return r;
}

int test_end(struct test *t, struct ui_call *c, int r, const char *what) {
    if (r < 0) return r;
    while (abx_op_poll(c->op) == ABX_OP_RUNNING && test_turn(t, what)) take_events(c->op);
    abx_op_cancel(c->op);
    return take_result(c);
}

bool test_done(struct test *t, struct ui_call *c, int r, const char *what) {
    if (test_end(t, c, r, what) < 0) test_unexpected(t, c, what, "success");
    return test_ok(t);
}

static char *code_text(int code) { return str_printf("E%d", -code); }

void test_refused(struct test *t, struct ui_call *c, int r, const char *what, int code, int other) {
    r = test_end(t, c, r, what);
    if (r < 0 && (r == code || r == other)) return;
    _cleanup_free_ char *one = code_text(code), *two = code_text(other);
    _cleanup_free_ char *expected = str_printf("%s%s%s", one ?: "", other ? " or " : "", other && two ? two : "");
    test_unexpected(t, c, what, expected ?: "an error");
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

/* A create that nobody waits for any more may still make a sandbox: it is waited for, to be killed. */
static void wait_late(struct test *t, struct ui_call *c) {
    int64_t end_ms = time_mono_ms() + LATE_MS, left;
    while (abx_op_poll(c->op) == ABX_OP_RUNNING && (left = end_ms - time_mono_ms()) > 0) {
        int r = abx_pump(t->cli->client, (int)left);
        if (r < 0 && r != -EINTR) break;
        take_events(c->op);
    }
}

int test_create(struct test *t, struct ui_call *c, const abx_provider_opts *p, const abx_sandbox_create_opts *o,
                abx_sandbox **ret) {
    int r = abx_sandbox_create_start(&c->op, t->cli->client, p, o, &c->error);
    if (r < 0) return r;
    while (abx_op_poll(c->op) == ABX_OP_RUNNING && test_turn(t, "sandbox.create")) take_events(c->op);
    if (!test_ok(t)) wait_late(t, c);
    abx_op_cancel(c->op);
    r = take_result(c);
    if (r < 0) return r;
    struct test_box *more = realloc(t->boxes, (t->box_count + 1) * sizeof *more);
    if (!more) return err_nomem(&c->error);
    t->boxes = more;
    t->boxes[t->box_count++] = (struct test_box){.sb = c->sb};
    *ret = TAKE_PTR(c->sb);
    return 0;
}

/* What the handshake took away is not asked for. */
static void skip_narrowed(struct test *t, abx_sandbox *sb) {
    for (const char *p = t->which->features; *p;) {
        size_t n = strcspn(p, " ");
        _cleanup_free_ char *feature = strndup(p, n);
        if (feature && !abx_sandbox_has_feature(sb, feature)) test_skip(t, "the handshake of %s leaves out %s", t->id, feature);
        p += n + (p[n] == ' ');
    }
}

abx_sandbox *test_sandbox(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = NULL;
    if (!test_ok(t)) return NULL;
    if (test_create(t, &c, t->provider, NULL, &sb) < 0) test_unexpected(t, &c, "sandbox.create", "success");
    if (test_ok(t)) skip_narrowed(t, sb);
    return test_ok(t) ? sb : NULL;
}

bool test_kill(struct test *t, abx_sandbox *sb) {
    _cleanup_call_ struct ui_call c = {0};
    if (!test_ok(t)) return false;
    test_done(t, &c, abx_sandbox_kill_start(&c.op, sb, &c.error), "sandbox.kill");
    for (size_t i = 0; i < t->box_count; i++)
        if (t->boxes[i].sb == sb) t->boxes[i].killed = test_ok(t);
    return test_ok(t);
}

abx_sandbox *test_attach(struct test *t, const char *sandbox_id) {
    _cleanup_error_ abx_error *e = NULL;
    abx_sandbox *sb = NULL;
    _cleanup_free_ char *ref = str_printf("%s:%s", t->id, sandbox_id);
    if (!test_ok(t)) return NULL;
    if (!ref || abx_sandbox_attach(&sb, t->cli->client, ref, t->provider, &e) < 0)
        test_fail(t, "a handle on '%s' can't be made: %s", sandbox_id, abx_error_message(e));
    return sb;
}

/* The outcome of the case stays what it was. */
static int kill_quietly(struct test *t, abx_sandbox *sb, struct ui_call *c) {
    int r = abx_sandbox_kill_start(&c->op, sb, &c->error);
    int64_t end_ms = time_mono_ms() + (t->stuck ? STUCK_KILL_MS : KILL_MS), left;
    while (r >= 0 && abx_op_poll(c->op) == ABX_OP_RUNNING && (left = end_ms - time_mono_ms()) > 0) {
        int k = abx_pump(t->cli->client, (int)left);
        if (k < 0 && k != -EINTR) break;
        take_events(c->op);
    }
    if (r < 0) return r;
    abx_op_cancel(c->op);
    return take_result(c);
}

bool test_clean(struct test *t) {
    bool all = true;
    t->cleaning = true;
    for (size_t i = 0; i < t->box_count; i++) {
        _cleanup_call_ struct ui_call c = {0};
        struct test_box *box = &t->boxes[i];
        if (!box->killed) box->killed = kill_quietly(t, box->sb, &c) >= 0;
        all = all && box->killed;
    }
    t->cleaning = false;
    return all;
}

void test_forget(struct test *t) {
    for (size_t i = 0; i < t->box_count; i++) abx_sandbox_unref(t->boxes[i].sb);
    t->box_count = 0;
}
