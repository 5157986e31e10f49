/* Commands and processes: typed forms over the method table. */
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "base/utf8.h"

static int exec_params(abx_value **ret, const abx_exec_opts *o, int64_t timeout_s, abx_error **reterr) {
    if (!o || !o->argv || !o->argv[0] || !*o->argv[0]) return err_set(reterr, ABX_E_CONFIG, NULL, "There is no command to run.");
    if (o->timeout_s < 0) return err_set(reterr, ABX_E_CONFIG, NULL, "The timeout of a command can't be negative.");
    for (size_t i = 0; o->argv[i]; i++)
        if (!utf8_valid(o->argv[i], strlen(o->argv[i])))
            return err_set(reterr, ABX_E_CONFIG, NULL, "Argument %zu of the command is not UTF-8; the protocol carries text.", i);
    _cleanup_value_ abx_value *v = abx_value_new_object();
    abx_value *args = abx_value_new_array();
    int r = abx_value_set_string(v, "cmd", o->argv[0]);
    for (size_t i = 1; r == 0 && o->argv[i]; i++) r = abx_value_append_string(args, o->argv[i]);
    if (r == 0)
        r = abx_value_set(v, "args", args);
    else
        abx_value_unref(args);
    if (r == 0) r = abx_value_set(v, "env", o->env ? abx_value_ref(o->env) : abx_value_new_object());
    if (r == 0) r = abx_value_set_string(v, "cwd", o->cwd ?: "");
    if (r == 0) r = abx_value_set_string(v, "user", o->user ?: "");
    if (r == 0) r = abx_value_set_int(v, "timeout", timeout_s);
    if (r < 0) return err_nomem(reterr);
    *ret = TAKE_PTR(v);
    return 0;
}

/* Text members that may be left out become "", the exit code must be a whole number. */
static int shape_run(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again;
    static const char *const texts[] = {"stdout", "stderr"};
    const abx_value *code = abx_value_get(*value, "exit_code");
    if (!abx_value_is(*value, ABX_TYPE_OBJECT) || !abx_value_is(code, ABX_TYPE_INT))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered exec.run without a whole number exit_code.");
    _cleanup_value_ abx_value *v = abx_value_new_object();
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        const abx_value *t = abx_value_get(*value, texts[i]);
        if (t && !abx_value_is(t, ABX_TYPE_STRING) && !abx_value_is(t, ABX_TYPE_NULL))
            return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered exec.run with a %s that is not text.", texts[i]);
        if (abx_value_set(v, texts[i], abx_value_is(t, ABX_TYPE_STRING) ? abx_value_ref(t) : abx_value_new_string("")) < 0)
            return err_nomem(reterr);
    }
    if (abx_value_set(v, "exit_code", abx_value_ref(code)) < 0) return err_nomem(reterr);
    abx_value_unref(*value);
    *value = TAKE_PTR(v);
    return 0;
}

int abx_exec_run_start(abx_op **ret, abx_sandbox *sb, const abx_exec_opts *o, abx_error **reterr) {
    abx_value *params = NULL;
    int64_t timeout = o && o->timeout_s ? o->timeout_s : 60;
    int r = exec_params(&params, o, timeout, reterr);
    if (r < 0) return r;
    struct call_opts co = {.command_timeout_s = timeout, .shape = shape_run};
    return sandbox_call(ret, sb, "exec.run", params, &co, reterr);
}

int abx_exec_stream_start(abx_op **ret, abx_sandbox *sb, const abx_exec_opts *o, abx_error **reterr) {
    abx_value *params = NULL;
    int r = exec_params(&params, o, o ? o->timeout_s : 0, reterr);
    if (r < 0) return r;
    struct call_opts co = {.command_timeout_s = o->timeout_s};
    return sandbox_call(ret, sb, "exec.start", params, &co, reterr);
}

/* ---- processes -------------------------------------------------------------------- */

int abx_process_list_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    return sandbox_call(ret, sb, "process.list", abx_value_new_object(), NULL, reterr);
}

static abx_value *pid_params(const char *pid) {
    abx_value *v = abx_value_new_object();
    long long n;
    if (str_to_i64(pid, &n) == 0 && n >= 0)
        abx_value_set_int(v, "pid", n);
    else
        abx_value_set_string(v, "pid", pid);
    return v;
}

int abx_process_kill_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_error **reterr) {
    return sandbox_call(ret, sb, "process.kill", pid_params(pid), NULL, reterr);
}

int abx_process_signal_start(abx_op **ret, abx_sandbox *sb, const char *pid, int signo, abx_error **reterr) {
    abx_value *params = pid_params(pid);
    abx_value_set_int(params, "signal", signo);
    return sandbox_call(ret, sb, "process.signal", params, NULL, reterr);
}

int abx_process_stdin_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_bytes data, abx_error **reterr) {
    if (!utf8_valid(data.data, data.len))
        return err_set(reterr, ABX_E_CONFIG, NULL, "The input is not UTF-8; the protocol carries text.");
    abx_value *params = pid_params(pid);
    abx_value_set(params, "data", abx_value_new_string_n((const char *)data.data, data.len));
    return sandbox_call(ret, sb, "process.stdin", params, NULL, reterr);
}

int abx_process_stdin_end_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_error **reterr) {
    abx_value *params = pid_params(pid);
    abx_value_set_string(params, "data", "");
    abx_value_set_bool(params, "eof", 1);
    return sandbox_call(ret, sb, "process.stdin", params, NULL, reterr);
}
