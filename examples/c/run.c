/* run PROVIDER COMMAND [ARG...]: one command in a fresh sandbox.
 *
 * The synchronous use of the library: start, wait, take the result. The output passes through as
 * it comes, the exit status is the command's own, and the sandbox is killed whatever happened. */
#include <abx/abx.h>
#include <stdio.h>

static int report(const char *what, abx_error *e) {
    fprintf(stderr, "%s: [%s] %s\n", what, abx_error_id(e), abx_error_message(e));
    if (*abx_error_hint(e)) fprintf(stderr, "  Suggestion: %s\n", abx_error_hint(e));
    int status = abx_error_exit_status(e);
    abx_error_unref(e);
    return status;
}

static int create(abx_client *client, const char *provider, abx_sandbox **ret) {
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    abx_sandbox_create_opts o = ABX_SANDBOX_CREATE_OPTS_INIT;
    abx_error *e = NULL;
    abx_op *op = NULL;
    p.provider = provider;
    o.timeout_s = 120; /* should this program die, the provider ends the sandbox */
    if (abx_sandbox_create_start(&op, client, &p, &o, &e) < 0) return report("create", e);
    /* The sandbox is taken from the op, so the op must outlive the wait: a reference more. */
    abx_op *kept = abx_op_ref(op);
    int r = abx_op_finish(&op, NULL, &e);
    if (r == 0) *ret = abx_op_take_sandbox(kept);
    abx_op_unref(kept);
    return r < 0 ? report("create", e) : 0;
}

/* Events are borrowed until the next one is asked for. */
static int stream(abx_sandbox *sandbox, const char *const *argv) {
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_event event = {.size = sizeof event};
    abx_error *e = NULL;
    abx_op *op = NULL;
    int more, status = 0;
    o.argv = argv;
    if (abx_exec_stream_start(&op, sandbox, &o, &e) < 0) return report("exec", e);
    while ((more = abx_op_next(op, &event)) >= 0) {
        if (more == 0) {
            if (abx_op_wait_event(op, -1) < 0) break;
            continue;
        }
        if (event.type == ABX_EVENT_STDOUT) fwrite(event.bytes.data, 1, event.bytes.len, stdout);
        if (event.type == ABX_EVENT_STDERR) fwrite(event.bytes.data, 1, event.bytes.len, stderr);
        if (event.type == ABX_EVENT_EXIT) status = event.exit_code;
        fflush(stdout);
    }
    /* A stream that broke off has no exit event: the error says why. */
    return abx_op_finish(&op, NULL, &e) < 0 ? report("exec", e) : status;
}

static int kill_sandbox(abx_sandbox *sandbox) {
    abx_error *e = NULL;
    abx_op *op = NULL;
    if (abx_sandbox_kill_start(&op, sandbox, &e) < 0 || abx_op_finish(&op, NULL, &e) < 0) return report("kill", e);
    return 0;
}

int main(int argc, char **argv) {
    abx_client *client = NULL;
    abx_sandbox *sandbox = NULL;
    abx_error *e = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: %s PROVIDER COMMAND [ARG...]\n", argv[0]);
        return 2;
    }
    if (abx_client_new(&client, NULL, &e) < 0) return report("client", e);
    int status = create(client, argv[1], &sandbox);
    if (sandbox) {
        status = stream(sandbox, (const char *const *)argv + 2);
        int failed = kill_sandbox(sandbox);
        if (status == 0) status = failed;
        abx_sandbox_unref(sandbox);
    }
    abx_client_close(client, 2000);
    abx_client_unref(client);
    return status;
}
