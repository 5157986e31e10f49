/* Commands whose output comes as it is written. As in exec.c each case depends on one point only: scripts have no
 * blanks, so that they survive a plugin that splits arguments. */
#include "contract/stream.h"

#include "base/limits.h"
#include "contract/lines.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
/* A plugin that never reports an end is found by this, before the case's own time is up. */
#define COMMAND_S 15

char *lines_make(int count) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    for (int i = 1; i <= count; i++) buf_printf(&b, "%d\n", i);
    return buf_take(&b);
}

/* ---- one stream -------------------------------------------------------------------------- */

void stream_done(struct stream *s) {
    ui_call_done(&s->call);
    buf_done(&s->out);
    buf_done(&s->err);
    free(s->pid);
}

bool stream_start(struct test *t, struct stream *s, abx_sandbox *sb, const char *const *argv, int64_t timeout_s) {
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    o.argv = argv;
    o.timeout_s = timeout_s;
    if (!test_ok(t)) return false;
    s->out = s->err = BUF_INIT(LIMIT_CLI_COLLECT);
    if (abx_exec_stream_start(&s->call.op, sb, &o, &s->call.error) < 0) test_unexpected(t, &s->call, "exec.start", "success");
    return test_ok(t);
}

static void take(struct stream *s, const abx_event *e) {
    s->late = s->late || s->exits > 0;
    switch (e->type) {
    case ABX_EVENT_STARTED:
        free(s->pid);
        s->pid = ui_text(abx_value_get(e->value, "process_id"));
        break;
    case ABX_EVENT_STDOUT:
        buf_append(&s->out, e->bytes.data, e->bytes.len);
        break;
    case ABX_EVENT_STDERR:
        buf_append(&s->err, e->bytes.data, e->bytes.len);
        break;
    case ABX_EVENT_EXIT:
        s->exits++;
        s->exit_code = e->exit_code;
        break;
    default:
        break;
    }
}

/* Takes what has come; false when there will be no more. */
static bool take_all(struct stream *s) {
    abx_event e;
    int r;
    while ((r = abx_op_next(s->call.op, &e)) == 1) take(s, &e);
    return r == 0;
}

/* Until ready() or the end of the command; false when the case is over. */
static bool wait_until(struct test *t, struct stream *s, bool (*ready)(const struct stream *s, const char *text),
                       const char *text, const char *what) {
    if (!test_ok(t)) return false;
    while (take_all(s) && !ready(s, text) && test_turn(t, what))
        ;
    if (abx_op_error(s->call.op)) {
        abx_error_unref(s->call.error);
        s->call.error = abx_error_ref(abx_op_error(s->call.op));
        test_unexpected(t, &s->call, what, "success");
    }
    return test_ok(t);
}

static bool is_started(const struct stream *s, const char *text) { return (void)text, s->pid != NULL; }
static bool is_over(const struct stream *s, const char *text) { return (void)s, (void)text, false; }
static bool buf_has(const struct buf *b, const char *text) { return b->len && memmem(b->data, b->len, text, strlen(text)); }
static bool has_text(const struct stream *s, const char *text) { return buf_has(&s->out, text); }

bool stream_started(struct test *t, struct stream *s) {
    if (wait_until(t, s, is_started, NULL, "exec.start") && !s->pid) test_fail(t, "exec.start: expected a process_id, came none");
    return test_ok(t);
}

bool stream_wrote(struct test *t, struct stream *s, const char *text) {
    return wait_until(t, s, has_text, text, "the command's output");
}

bool stream_end(struct test *t, struct stream *s) { return wait_until(t, s, is_over, NULL, "the streamed command"); }

/* ---- cases --------------------------------------------------------------------------------- */

static bool run(struct test *t, struct stream *s, const char *const *argv) {
    abx_sandbox *sb = test_sandbox(t);
    return sb && stream_start(t, s, sb, argv, COMMAND_S) && stream_end(t, s);
}

static void exec_stream_order(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    _cleanup_free_ char *lines = lines_make(30000);
    const char *script = "seq${IFS}10;sleep${IFS}0.2;seq${IFS}11${IFS}20;sleep${IFS}0.2;seq${IFS}21${IFS}30000";
    if (run(t, &s, ARGV("sh", "-c", script))) check_bytes(t, "stdout", stream_bytes(&s.out), bytes_of(lines ?: ""));
}

static void exec_stream_single_exit(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    if (!run(t, &s, ARGV("grep", "-s", "x", "/abx-contract-missing"))) return;
    check_int(t, "exits of the stream", s.exits, 1);
    check_int(t, "exit_code of 'grep -s' for a missing file", s.exit_code, 2);
    if (s.late) test_fail(t, "the stream: expected nothing after its exit, something came");
}

static void exec_stream_split_utf8(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    const char *script = "printf${IFS}'caf\\303';sleep${IFS}0.3;printf${IFS}'\\251\\360\\237';"
                         "sleep${IFS}0.3;printf${IFS}'\\230\\200'";
    if (run(t, &s, ARGV("sh", "-c", script))) check_bytes(t, "stdout", stream_bytes(&s.out), bytes_of("café😀"));
}

static void exec_stream_stderr(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    if (!run(t, &s, ARGV("ls", "/abx-contract-missing"))) return;
    check_bytes(t, "stdout", stream_bytes(&s.out), bytes_of(""));
    if (!test_ok(t) || buf_has(&s.err, "abx-contract-missing")) return;
    _cleanup_free_ char *shown = show_bytes(stream_bytes(&s.err));
    test_fail(t, "stderr of 'ls /abx-contract-missing': expected its complaint, came %s", shown);
}

static void exec_stream_cancel(struct test *t) {
    _cleanup_stream_ struct stream s = {0}, next = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !stream_start(t, &s, sb, ARGV("sleep", "30"), COMMAND_S) || !stream_started(t, &s)) return;
    abx_op_cancel(s.call.op);
    if (stream_start(t, &next, sb, ARGV("echo", "usable"), COMMAND_S) && stream_end(t, &next))
        check_bytes(t, "stdout after another stream was given up", stream_bytes(&next.out), bytes_of("usable\n"));
}

const struct test_row test_stream_cases[] = {
    TEST_ROW(exec_stream_order),
    TEST_ROW(exec_stream_single_exit),
    TEST_ROW(exec_stream_split_utf8),
    TEST_ROW(exec_stream_stderr),
    TEST_ROW(exec_stream_cancel),
    {0},
};
