/* The exec driver: a plugin process that speaks EPP/1 on its stdin and stdout. */
#include "drivers/exec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "drivers/exec_env.h"

void exec_call_free(struct exec *x, struct exec_call *c) {
    exec_stream_forget(x, c);
    *c->at = c->next;
    if (c->next) c->next->at = c->at;
    if (c->call) abx_call_set_user(c->call, NULL);
    free(c->process_id);
    free(c->method);
    free(c);
    exec_flow(x);
}

void exec_call_broken(struct exec *x, abx_call *call, const char *what) {
    abx_error *e = NULL;
    err_set(&e, ABX_E_PROTOCOL, "", "Provider '%s': %s.", x->id, what);
    if (e) err_set_provider(e, x->id);
    abx_call_fail(call, e);
}

/* ---- the wire -------------------------------------------------------------- */

static void on_broken(void *user, const char *reason) {
    struct exec *x = user;
    _cleanup_free_ char *red = secrets_redact_str(&x->secrets, reason);
    _cleanup_free_ char *text = str_printf("Provider '%s': %s.", x->id, red ?: "broken protocol");
    exec_give_up(x, ABX_E_PROTOCOL, text ?: "the plugin broke the protocol");
}

static void start_stream(struct exec *x, struct exec_call *c, struct json_ref result) {
    const char *pid = NULL;
    size_t n = 0;
    char scratch[32];
    int64_t number;
    const char *member = c->watch ? "watch_id" : "process_id";
    struct json_ref ref = json_get(result, member);
    abx_call *call = c->call;
    if (!json_string(ref, &pid, &n) && json_int(ref, &number)) {
        snprintf(scratch, sizeof scratch, "%lld", (long long)number);
        pid = scratch;
    }
    if (!pid || !*pid) {
        bool c_watch = c->watch;
        exec_call_free(x, c);
        exec_call_broken(x, call, c_watch ? "the answer to a watch has no watch_id" : "the answer to a start has no process_id");
        return;
    }
    _cleanup_value_ abx_value *v = abx_value_new_object();
    abx_value_set_string(v, member, pid);
    abx_event e = {.size = sizeof e, .type = ABX_EVENT_STARTED, .value = v};
    int r = abx_call_emit(call, &e);
    _cleanup_free_ char *key = c->watch ? str_printf(EXEC_WATCH "%s", pid) : NULL;
    if (r == 0) r = c->watch && !key ? -ENOMEM : exec_stream_named(x, c, key ?: pid);
    if (r >= 0) return;
    exec_call_free(x, c);
    exec_call_broken(x, call,
                     r == -EEXIST     ? "two streams have the same id"
                     : r == -EMSGSIZE ? "more than 1 MiB of output came before the answer that names its process"
                                      : "out of memory");
}

static void on_answer(void *user, void *pending, const struct rpc_answer *a) {
    struct exec *x = user;
    struct exec_call *c = pending;
    c->id = 0;
    if (a->ok && c->stream) return start_stream(x, c, a->result);

    abx_value *v = NULL;
    abx_call *call = c->call;
    const char *bytes = a->ok ? driver_bytes_member(c->method) : NULL;
    struct json_bytes where = client_bytes(x->client);
    where.key = bytes;
    int r = a->ok ? json_to_value(a->result, bytes ? &where : NULL, &v) : 0;
    exec_call_free(x, c);
    if (!call) { /* our own shutdown request is answered: end of file is the next step */
        abx_value_unref(v);
        if (x->closing && x->close_step == CLOSE_REPLY) exec_close_step(x);
        return;
    }
    if (!a->ok) return abx_call_fail_rpc(call, a->code, a->message, a->data);
    if (r < 0) return exec_call_broken(x, call, bytes && r == -EINVAL ? "content_b64 is no valid base64" : "out of memory");
    abx_call_finish(call, v);
}

static void on_notification(void *user, const char *method, struct json_ref params) {
    exec_notification(user, method, params);
}

static const struct rpc_events rpc_callbacks = {
    .answer = on_answer, .notification = on_notification, .broken = on_broken, .eof = exec_on_eof};

/* ---- calls ------------------------------------------------------------------ */

int exec_send(struct exec *x, const char *method, const abx_value *params, abx_call *call, abx_error **reterr) {
    if (x->fatal) return err_pass(reterr, abx_error_ref(x->fatal));
    struct exec_call *c = calloc(1, sizeof *c);
    if (!c || !(c->method = strdup(method))) {
        free(c);
        return err_nomem(reterr);
    }
    c->call = call;
    c->watch = strcmp(method, "files.watch") == 0;
    c->stream = c->watch || strcmp(method, "exec.start") == 0 || strcmp(method, "pty.open") == 0;
    c->next = x->calls;
    c->at = &x->calls;
    if (c->next) c->next->at = &c->next;
    x->calls = c;
    if (call) abx_call_set_user(call, c);
    int r = rpc_request(x->rpc, method, params, c, &c->id);
    if (r == 0 || r == -EPIPE) return 0; /* gone: its exit, on the way, ends the call with the facts */
    exec_call_free(x, c);
    if (r == -EMSGSIZE)
        return err_set(reterr, ABX_E_FILE_SIZE, "A request is one line of at most 8 MiB; write the file in parts.",
                       "%s: the request is larger than the protocol's 8 MiB line.", method);
    if (r == -ENOBUFS)
        return err_set(reterr, ABX_E_TIMEOUT, NULL, "Provider '%s' does not read its requests: too many wait.", x->id);
    return err_nomem(reterr);
}

static int exec_call_start(void *instance, const char *method, const abx_value *params, abx_call *call, abx_error **reterr) {
    return exec_send(instance, method, params, call, reterr);
}

/* The core has ended the call already, or is about to: nothing more is delivered to it. */
static void exec_cancel(void *instance, abx_call *call) {
    struct exec *x = instance;
    struct exec_call *c = abx_call_user(call);
    if (!c) return;
    if (c->id && x->rpc) rpc_cancel(x->rpc, c->id, !c->told, false);
    exec_call_free(x, c);
}

static void exec_abandon(void *instance, abx_call *call) {
    struct exec *x = instance;
    struct exec_call *c = abx_call_user(call);
    if (!c || !c->id || !x->rpc) return;
    rpc_cancel(x->rpc, c->id, true, true);
    c->told = true;
}

/* ---- life ------------------------------------------------------------------- */

static void exec_destroy(void *instance) {
    struct exec *x = instance;
    if (!x) return;
    timer_stop(&x->close_timer);
    timer_stop(&x->eof_timer);
    proc_free(x->proc);
    while (x->calls) exec_call_free(x, x->calls);
    x->rpc = rpc_free(x->rpc);
    exec_stderr_stop(x);
    exec_early_drop(x);
    map_done(&x->streams);
    buf_done(&x->err_line);
    buf_done(&x->err_ring);
    secrets_done(&x->secrets);
    abx_error_unref(x->fatal);
    free(x->program);
    free(x->id);
    free(x);
}

static void on_flow(void *instance) { exec_flow(instance); }

static int exec_alive(void *instance) {
    struct exec *x = instance;
    return !x->fatal;
}

static char *exec_hint(void *instance) {
    exec_stderr_drain(instance);
    return exec_stderr_hint(instance);
}

static int initialize_params(abx_value **ret, const abx_value *settings) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    for (size_t i = 0; i < abx_value_size(settings); i++) {
        const char *key = abx_value_key_at(settings, i);
        if (strcmp(key, "directory") == 0) continue;
        int r = abx_value_set(v, key, abx_value_ref(abx_value_at(settings, i)));
        if (r < 0) return r;
    }
    *ret = TAKE_PTR(v);
    return *ret ? 0 : -ENOMEM;
}

static int exec_open(void **ret_instance, abx_client *client, const abx_value *manifest, const abx_value *settings, void *user,
                     abx_call *done, abx_error **reterr) {
    (void)user;
    _cleanup_strv_ char **argv = NULL, **env = NULL;
    _cleanup_value_ abx_value *params = NULL;
    const char *id = abx_value_get_string(settings, "provider_id"), *dir = abx_value_get_string(settings, "directory");
    const char *data_dir = abx_value_get_string(settings, "data_dir");
    int r = exec_argv_build(&argv, dir, abx_value_get(abx_value_get(manifest, "runtime"), "command"), reterr);
    if (r < 0) return r;
    if (exec_env_build(&env, client_environ(client), abx_value_get(abx_value_get(manifest, "security"), "env_passthrough"),
                       data_dir) < 0 ||
        initialize_params(&params, settings) < 0)
        return err_nomem(reterr);

    struct exec *x = calloc(1, sizeof *x);
    if (x) x->err_fd = -1;
    if (!x || !(x->id = strdup(id)) || !(x->program = strdup(argv[0])) || secrets_add_value(&x->secrets, settings) < 0) {
        exec_destroy(x);
        return err_nomem(reterr);
    }
    x->client = client;
    x->loop = client_loop(client);
    timer_init(&x->close_timer, exec_on_close_timer);
    timer_init(&x->eof_timer, exec_on_eof_timeout);

    struct proc_spec spec = {.supervisor = client_supervisor(client, reterr), .argv = (const char *const *)argv,
                             .env = (const char *const *)env, .cwd = data_dir};
    int in = -1, out = -1, err = -1;
    r = spec.supervisor ? proc_spawn(&x->proc, x->loop, &spec, &in, &out, &err, exec_on_proc_exit, x, reterr) : ABX_E_PLUGIN_PROCESS;
    if (r < 0) {
        exec_destroy(x);
        return r;
    }
    struct rpc_opts o = {.loop = x->loop, .parser = client_parser(client), .in_fd = out, .out_fd = in, .secrets = &x->secrets,
                         .log = client_log(client), .name = x->id, .events = &rpc_callbacks, .user = x};
    r = rpc_new(&x->rpc, &o);
    if (r < 0) {
        safe_close(in);
        safe_close(out);
        safe_close(err);
    } else {
        r = exec_stderr_start(x, err);
    }
    if (r < 0) {
        exec_destroy(x);
        return err_nomem(reterr);
    }
    r = exec_send(x, "initialize", params, done, reterr);
    if (r < 0) {
        exec_destroy(x);
        return r;
    }
    *ret_instance = x;
    return 0;
}

const abx_driver driver_exec = {
    .size = sizeof driver_exec,
    .kind = "exec",
    .open = exec_open,
    .call = exec_call_start,
    .cancel = exec_cancel,
    .flow = on_flow,
    .close = exec_close,
    .destroy = exec_destroy,
    .alive = exec_alive,
    .hint = exec_hint,
    .abandon = exec_abandon,
};
