/* Commands that are run to their end. Only the case about arguments has one with blanks, only the case about
 * exit codes looks at one other than 0, and so on: a plugin that is wrong in one point fails in one case. */
#include "contract/test.h"

#include "base/buf.h"
#include "base/util.h"
#include "contract/lines.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static int start(struct ui_call *c, abx_sandbox *sb, const char *const *argv, const abx_value *env, int64_t timeout_s) {
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    o.argv = argv;
    o.env = env;
    o.timeout_s = timeout_s;
    return abx_exec_run_start(&c->op, sb, &o, &c->error);
}

/* The result of a command, or NULL when the case is over. */
static abx_value *result(struct test *t, abx_sandbox *sb, const char *const *argv, const abx_value *env) {
    _cleanup_call_ struct ui_call c = {0};
    if (!sb || !test_ok(t)) return NULL;
    return test_done(t, &c, start(&c, sb, argv, env, 0), "exec.run") ? TAKE_PTR(c.value) : NULL;
}

static void check_stdout(struct test *t, const abx_value *v, const char *expected) {
    check_text(t, "stdout", abx_value_get(v, "stdout"), expected);
}

static void exec_run(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("echo", "contract"), NULL);
    check_stdout(t, v, "contract\n");
    if (v) check_int(t, "exit_code of 'echo'", abx_value_int(abx_value_get(v, "exit_code"), -1), 0);
}

/* grep says 2 for what it can't read: another number than the 1 of any failure. */
static void exec_exit_code(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *one = result(t, sb, ARGV("false"), NULL);
    if (one) check_int(t, "exit_code of 'false'", abx_value_int(abx_value_get(one, "exit_code"), -1), 1);
    _cleanup_value_ abx_value *two = result(t, sb, ARGV("grep", "-s", "x", "/abx-contract-missing"), NULL);
    if (two) check_int(t, "exit_code of 'grep -s' for a missing file", abx_value_int(abx_value_get(two, "exit_code"), -1), 2);
}

static void exec_stderr(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("ls", "/abx-contract-missing"), NULL);
    const char *err = abx_value_get_string(v, "stderr");
    check_stdout(t, v, "");
    if (!test_ok(t) || (err && strstr(err, "abx-contract-missing"))) return;
    _cleanup_free_ char *shown = show_value(abx_value_get(v, "stderr"));
    test_fail(t, "stderr of 'ls /abx-contract-missing': expected its complaint, came %s", shown);
}

static void exec_env(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *env = abx_value_new_object();
    abx_value_set_string(env, "ABX_CONTRACT_VARIABLE", "value=1");
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("printenv", "ABX_CONTRACT_VARIABLE"), env);
    check_stdout(t, v, "value=1\n");
}

static void exec_arguments_are_not_split(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("printf", "[%s]", "a  b", "c'd\"e", "$HOME", "*", "", "\\"), NULL);
    check_stdout(t, v, "[a  b][c'd\"e][$HOME][*][][\\]");
}

static void exec_unicode(struct test *t) {
    static const char text[] = "héllo-世界-привет-🙂-e\u0301";
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("printf", "%s", text), NULL);
    check_stdout(t, v, text);
}

static void exec_large_output(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    _cleanup_value_ abx_value *v = result(t, sb, ARGV("seq", LINES_MIB_TEXT), NULL);
    _cleanup_free_ char *lines = lines_make(LINES_MIB);
    check_stdout(t, v, lines ?: "");
}

/* The host gives up 5 s after the command's own time: what comes by then is the plugin's doing. */
static void exec_timeout_is_enforced(struct test *t) {
    enum { TIMEOUT_S = 1, HOST_MS = 6000 };
    static const char what[] = "exec.run of 'sleep 30' with a timeout of 1s";
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb) return;
    int64_t began_ms = time_mono_ms();
    int r = test_end(t, &c, start(&c, sb, ARGV("sleep", "30"), NULL, TIMEOUT_S), what);
    int64_t took_ms = time_mono_ms() - began_ms;
    bool code = r == 0 && abx_value_int(abx_value_get(c.value, "exit_code"), 0) != 0;
    if (took_ms >= HOST_MS)
        test_fail(t, "%s: expected an end at once, none came within %gs", what, (double)took_ms / 1000);
    else if (!code && r != ABX_E_COMMAND_TIMEOUT && r != ABX_E_TIMEOUT && r != ABX_E_PROVIDER)
        test_unexpected(t, &c, what, "E3001");
}

static void exec_concurrent_calls(struct test *t) {
    enum { CALLS = 8 };
    struct ui_call calls[CALLS] = {0};
    char words[CALLS][16];
    int started[CALLS];
    abx_sandbox *sb = test_sandbox(t);
    for (int i = 0; sb && i < CALLS; i++) {
        snprintf(words[i], sizeof words[i], "call-%d", i);
        started[i] = start(&calls[i], sb, ARGV("printf", "%s", words[i]), NULL, 0);
    }
    for (int i = 0; sb && i < CALLS; i++) {
        if (!test_ok(t) || !test_done(t, &calls[i], started[i], "exec.run")) break;
        _cleanup_free_ char *what = str_printf("stdout of 'printf %%s %s'", words[i]);
        check_text(t, what ?: "stdout", abx_value_get(calls[i].value, "stdout"), words[i]);
    }
    for (int i = 0; i < CALLS; i++) ui_call_done(&calls[i]);
}

const struct test_row test_exec_cases[] = {
    TEST_ROW(exec_run),
    TEST_ROW(exec_exit_code),
    TEST_ROW(exec_stderr),
    TEST_ROW(exec_env),
    TEST_ROW(exec_arguments_are_not_split),
    TEST_ROW(exec_unicode),
    TEST_ROW(exec_large_output),
    TEST_ROW(exec_timeout_is_enforced),
    TEST_ROW(exec_concurrent_calls),
    {0},
};
