/* abx exec: output goes out as it comes, the status is the command's. */
#include "exec.h"

#include <errno.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "commands.h"
#include "out.h"
#include "signame.h"
#include "stdin.h"

static const struct abx_opt options[] = {EXEC_OPTIONS, {0}};

/* One command in flight. */
struct exec {
    struct cli *cli;
    struct ui_call *call;
    struct buf out, err; /* with --json: what it wrote */
    int status;
    bool exited;
    bool forward;        /* standard input is wanted and has not ended */
    bool end;            /* the command is still to be told that there is no (more) input */
    char *pid;           /* NULL before it started */
    struct stdin_reader in;
    struct ui_call input; /* the chunk on its way */
};

static void exec_done(struct exec *x) {
    buf_done(&x->out);
    buf_done(&x->err);
    buf_done(&x->in.buf);
    ui_call_done(&x->input);
    free(x->pid);
}

/* Shells say 128 + signal; only the low byte of a status survives, and a failure must not become 0. */
static int exit_status(int64_t code, const abx_value *signal) {
    const char *name = abx_value_string(signal);
    int signo = name ? signame_parse(name) : (int)abx_value_int(signal, 0);
    if (signo > 0 && signo < 128) return 128 + signo;
    if (code < 0 && code > -128) return 128 + (int)-code;
    return code && !(code & 255) ? 1 : (int)(code & 255);
}

/* ---- output ---------------------------------------------------------------------------- */

static int put(struct exec *x, bool err, abx_bytes bytes) {
    if (!x->cli->json) return err ? out_err_bytes(bytes) : out_bytes(bytes);
    int r = buf_append(err ? &x->err : &x->out, bytes.data, bytes.len);
    if (r < 0)
        err_set(&x->call->error, ABX_E_EXECUTION, "Run it without --json.", "The command wrote more than %zu MiB.", LIMIT_CLI_COLLECT / MIB);
    return r;
}

static int on_event(void *user, const abx_event *e) {
    struct exec *x = user;
    switch (e->type) {
    case ABX_EVENT_STARTED:
        free(x->pid);
        x->pid = ui_text(abx_value_get(e->value, "process_id"));
        return x->pid ? 0 : -ENOMEM;
    case ABX_EVENT_STDOUT:
    case ABX_EVENT_STDERR:
        return put(x, e->type == ABX_EVENT_STDERR, e->bytes);
    case ABX_EVENT_EXIT:
        x->status = exit_status(e->exit_code, abx_value_get(e->value, "signal"));
        x->exited = true;
        return 0;
    default:
        return 0;
    }
}

/* Text stays text; what is none is base64 under a name that says so. */
static void add_output(abx_value *v, const char *key, const struct buf *b) {
    _cleanup_free_ char *other = str_printf("%s_b64", key);
    if (utf8_valid(b->data, b->len))
        abx_value_set(v, key, abx_value_new_string_n(b->data ?: "", b->len));
    else
        abx_value_set(v, other ?: key, abx_value_new_bytes(b->data, b->len));
}

static void print_json(const struct exec *x) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    add_output(v, "stdout", &x->out);
    add_output(v, "stderr", &x->err);
    abx_value_set_int(v, "exit_code", x->status);
    out_json(v);
}

/* ---- standard input --------------------------------------------------------------------- */

/* A process that has ended takes no more input; only the command's own end matters then. */
static int chunk_sent(struct exec *x) {
    const abx_error *e = abx_op_error(x->input.op);
    if (e) {
        x->forward = false;
        if (x->cli->verbose) out_note("Standard input is not forwarded any more: %s", abx_error_message(e));
    }
    x->input.op = abx_op_unref(x->input.op);
    return 0;
}

static int on_turn(void *user, bool readable, int *fd) {
    struct exec *x = user;
    int r = 0;
    if (x->input.op && abx_op_poll(x->input.op) != ABX_OP_RUNNING) r = chunk_sent(x);
    if (!x->pid || x->exited || x->input.op) return r;
    if (!x->forward && x->end) {
        x->end = false;
        return abx_process_stdin_end_start(&x->input.op, x->call->sb, x->pid, &x->call->error);
    }
    if (x->forward && readable) {
        abx_bytes chunk;
        r = stdin_read(&x->in, &chunk);
        x->forward = !x->in.end;
        if (r == -EINTR) r = 0;
        if (r < 0) err_errno(&x->call->error, ABX_E_GENERIC, r, "Cannot read standard input");
        if (r == 1) r = abx_process_stdin_start(&x->input.op, x->call->sb, x->pid, chunk, &x->call->error);
    }
    *fd = x->forward && !x->input.op ? STDIN_FILENO : -1;
    return r;
}

static int start_input(struct exec *x) {
    const char *needed[] = {"exec.stream", "process.manage"};
    /* Without --stdin a command that reads is to see an end, not to wait for ever. */
    x->end = abx_sandbox_has_feature(x->call->sb, "process.manage");
    if (!opt_flag(x->cli, "stdin")) return 0;
    x->forward = true;
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (!abx_sandbox_has_feature(x->call->sb, needed[i]))
            return err_set(&x->call->error, ABX_E_FEATURE, "Run it without --stdin.", "Provider '%s' does not support '%s'.",
                           abx_sandbox_provider(x->call->sb), needed[i]);
    return 0;
}

/* ---- running ------------------------------------------------------------------------------ */

static int run_stream(struct exec *x, const abx_exec_opts *o) {
    const struct ui_watch w = {on_event, x->forward || x->end ? on_turn : NULL, x};
    return ui_run_watch(x->cli, x->call, abx_exec_stream_start(&x->call->op, x->call->sb, o, &x->call->error), &w);
}

static int run_whole(struct exec *x, const abx_exec_opts *o) {
    int r = ui_run(x->cli, x->call, abx_exec_run_start(&x->call->op, x->call->sb, o, &x->call->error));
    if (r < 0) return r;
    const abx_value *v = x->call->value;
    x->status = exit_status(abx_value_int(abx_value_get(v, "exit_code"), 1), abx_value_get(v, "signal"));
    r = put(x, false, abx_value_bytes(abx_value_get(v, "stdout")));
    return r < 0 ? r : put(x, true, abx_value_bytes(abx_value_get(v, "stderr")));
}

/* Streams where the manifest says so; a plugin that then does not is asked for the whole. */
static int run_either(struct exec *x, const abx_exec_opts *o) {
    if (!abx_sandbox_has_feature(x->call->sb, "exec.stream") && abx_sandbox_has_feature(x->call->sb, "exec.run"))
        return run_whole(x, o);
    int r = run_stream(x, o);
    if (r != ABX_E_FEATURE || x->forward || !abx_sandbox_has_feature(x->call->sb, "exec.run")) return r;
    x->call->error = abx_error_unref(x->call->error);
    return run_whole(x, o);
}

static char *join_words(char *const *words) {
    struct buf b = BUF_INIT(0);
    for (; *words; words++) buf_printf(&b, "%s%s", b.len ? " " : "", *words);
    char *text = buf_take(&b);
    buf_done(&b);
    return text;
}

int exec_command(struct cli *cli, struct ui_call *c) {
    _cleanup_(exec_done) struct exec x = {cli, c, BUF_INIT(LIMIT_CLI_COLLECT), BUF_INIT(LIMIT_CLI_COLLECT)};
    _cleanup_value_ abx_value *env = NULL;
    _cleanup_free_ char *line = opt_flag(cli, "shell") ? join_words(cli->command) : NULL;
    const char *const shell[] = {"sh", "-c", line, NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    o.argv = opt_flag(cli, "shell") ? shell : (const char *const *)cli->command;
    o.cwd = opt_text(cli, "cwd");
    o.user = opt_text(cli, "user");
    o.timeout_s = opt_number(cli, "timeout", 0);
    int r = opt_pairs(cli, "env", &env, &c->error);
    o.env = env;
    if (r == 0) r = start_input(&x);
    if (r == 0) r = run_either(&x, &o);
    if (r < 0) {
        int status = ui_fail(cli, c->error);
        return abx_error_code(c->error) == ABX_E_COMMAND_NOT_FOUND ? 127 : status;
    }
    if (cli->json) print_json(&x);
    return x.status;
}

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    if (ui_open(cli, &c, cli->args[0]) < 0) return ui_fail(cli, c.error);
    return exec_command(cli, &c);
}

const struct abx_cmd cmd_exec = {
    .name = "exec",
    .args = {1, 1},
    .usage = "REF -- CMD [ARG...]",
    .summary = "run a command in a sandbox and exit with its status",
    .options = options,
    .examples = "abx exec my-cloud:sbx-1 -- ls -l /tmp\n"
                "abx exec my-cloud:sbx-1 --shell -- 'make test 2>&1 | tail'\n"
                "echo hello | abx exec my-cloud:sbx-1 --stdin -- sh -c 'read line; echo \"$line\"'\n",
    .flags = CMD_SANDBOX | CMD_COMMAND,
    .run = run,
};
