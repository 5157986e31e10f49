/* Commands that run are seen, ended and fed. */
#include "contract/stream.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Starts a command that goes on until somebody ends it. */
static bool hold(struct test *t, struct stream *s, abx_sandbox **ret_sb, const char *const *argv) {
    *ret_sb = test_sandbox(t);
    return *ret_sb && stream_start(t, s, *ret_sb, argv, 0) && stream_started(t, s);
}

static bool is_process(const abx_value *record, const char *pid) {
    _cleanup_free_ char *a = ui_text(abx_value_get(record, "process_id")), *b = ui_text(abx_value_get(record, "pid"));
    const char *command = abx_value_get_string(record, "command");
    return streq0(a, pid) || streq0(b, pid) || (command && strstr(command, "sleep"));
}

static void process_list(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb;
    if (!hold(t, &s, &sb, ARGV("sleep", "30"))) return;
    if (!test_done(t, &c, abx_process_list_start(&c.op, sb, &c.error), "process.list")) return;
    const abx_value *list = abx_value_get(c.value, "processes");
    for (size_t i = 0; i < abx_value_size(list); i++)
        if (is_process(abx_value_at(list, i), s.pid)) return;
    _cleanup_free_ char *shown = show_value(c.value);
    test_fail(t, "process.list: expected the running 'sleep', came %s", shown);
}

static void process_kill(struct test *t) {
    _cleanup_stream_ struct stream s = {0};
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb;
    if (!hold(t, &s, &sb, ARGV("sleep", "300"))) return;
    if (!test_done(t, &c, abx_process_kill_start(&c.op, sb, s.pid, &c.error), "process.kill") || !stream_end(t, &s)) return;
    check_int(t, "exits after process.kill", s.exits, 1);
}

/* Input is the one method of the feature that a backend may lack; then it is to say so. */
static void process_stdin(struct test *t) {
    static const char text[] = "to-the-command\n";
    _cleanup_stream_ struct stream s = {0};
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb;
    if (!hold(t, &s, &sb, ARGV("cat"))) return;
    int r = test_end(t, &c, abx_process_stdin_start(&c.op, sb, s.pid, bytes_of(text), &c.error), "process.stdin");
    if (r == ABX_E_FEATURE) return;
    if (r < 0) return test_unexpected(t, &c, "process.stdin", "success or E8004");
    if (stream_wrote(t, &s, "\n")) check_bytes(t, "stdout of 'cat'", stream_bytes(&s.out), bytes_of(text));
}

const struct test_row test_process_cases[] = {
    TEST_ROW(process_list),
    TEST_ROW(process_kill),
    TEST_ROW(process_stdin),
    {0},
};
