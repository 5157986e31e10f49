/* How a plugin ends: asked to, by itself, or because it broke the protocol. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "drivers/exec.h"

/* How long a plugin that closed its stdout may take to exit before it is ended. */
#define EOF_GRACE_MS 500

/* One error object is shared by every call that was waiting. */
static void fail_all(struct exec *x) {
    struct exec_call *c;
    while ((c = x->calls)) {
        abx_call *call = c->call;
        exec_call_free(x, c);
        if (call) abx_call_fail(call, abx_error_ref(x->fatal));
    }
    exec_early_drop(x);
}

static void finish_close(struct exec *x) {
    timer_stop(&x->close_timer);
    abx_call *done = TAKE_PTR(x->closing);
    if (done) abx_call_finish(done, abx_value_new_bool(x->close_step == CLOSE_KILL));
}

void exec_give_up(struct exec *x, int code, const char *text) {
    if (!x->fatal) {
        exec_stderr_drain(x);
        _cleanup_free_ char *hint = exec_stderr_hint(x);
        err_set(&x->fatal, code, hint ?: "", "%s", text);
        if (x->fatal) err_set_provider(x->fatal, x->id);
    }
    if (x->proc) proc_kill(x->proc);
    fail_all(x);
}

void exec_on_proc_exit(struct proc *p, const struct proc_exit *e, void *user) {
    (void)p;
    struct exec *x = user;
    timer_stop(&x->eof_timer);
    if (x->rpc && !x->fatal) {
        /* The last answers may still be in the pipe; a grandchild that holds it open is not waited for. */
        x->held = false;
        x->draining = true;
        rpc_hold(x->rpc, false);
        rpc_drain(x->rpc);
    }
    _cleanup_free_ char *text = NULL;
    if (e->exec_errno)
        text = str_printf("Provider '%s' could not be started: '%s': %s.", x->id, x->program, strerror(e->exec_errno));
    else if (e->code < 0)
        text = str_printf("Provider '%s' exited unexpectedly (signal %d).", x->id, -e->code);
    else
        text = str_printf("Provider '%s' exited unexpectedly (code %d).", x->id, e->code);
    if (x->rpc) rpc_close_out(x->rpc);
    exec_give_up(x, ABX_E_PLUGIN_PROCESS, text ?: "the plugin exited");
    exec_stderr_stop(x);
    if (x->closing) finish_close(x);
}

void exec_on_eof_timeout(struct timer *t) {
    struct exec *x = (struct exec *)((char *)t - offsetof(struct exec, eof_timer));
    _cleanup_free_ char *text = str_printf("Provider '%s' closed its stdout without exiting.", x->id);
    exec_give_up(x, ABX_E_PLUGIN_PROCESS, text ?: "the plugin closed its stdout");
}

void exec_on_eof(void *user) {
    struct exec *x = user;
    if (x->closing) return; /* the ladder has its own times */
    timer_start(x->loop, &x->eof_timer, EOF_GRACE_MS);
}

/* One step of the ladder: shutdown, end of file, SIGTERM, SIGKILL. */
void exec_close_step(struct exec *x) {
    x->close_step++;
    switch (x->close_step) {
    case CLOSE_REPLY:
        if (exec_send(x, "shutdown", NULL, NULL, NULL) == 0) {
            timer_start(x->loop, &x->close_timer, SHUTDOWN_REPLY_MS);
            return;
        }
        x->close_step++;
        /* fall through */
    case CLOSE_EOF:
        rpc_close_out(x->rpc);
        timer_start(x->loop, &x->close_timer, SHUTDOWN_EOF_MS);
        return;
    case CLOSE_TERM:
        proc_terminate(x->proc);
        timer_start(x->loop, &x->close_timer, SHUTDOWN_TERM_MS);
        return;
    default:
        x->close_step = CLOSE_KILL;
        proc_kill(x->proc);
        finish_close(x);
    }
}

void exec_on_close_timer(struct timer *t) {
    exec_close_step((struct exec *)((char *)t - offsetof(struct exec, close_timer)));
}

void exec_close(void *instance, abx_call *done) {
    struct exec *x = instance;
    x->closing = done;
    timer_stop(&x->eof_timer);
    if (!x->proc || !proc_running(x->proc) || x->fatal) return finish_close(x);
    exec_close_step(x);
}
