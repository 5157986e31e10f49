/* Streams: notifications find their call, early ones wait, full consumers hold the pipe. */
#include <errno.h>
#include <string.h>

#include "base/codec.h"
#include "base/str.h"
#include "drivers/exec.h"

struct early_event {
    struct early_event *next;
    abx_event_type type;
    int exit_code;
    abx_value *value;
    size_t len;
    char data[];
};

static size_t queued(struct exec *x) {
    size_t n = 0;
    for (struct exec_call *c = x->calls; c; c = c->next)
        if (c->stream) n += abx_call_queued(c->call);
    return n;
}

void exec_flow(struct exec *x) {
    if (!x->rpc || x->draining) return;
    bool full = queued(x) > LIMIT_PROVIDER_EVENTS;
    if (full == x->held) return;
    x->held = full;
    rpc_hold(x->rpc, full);
}

void exec_stream_forget(struct exec *x, struct exec_call *c) {
    if (!c->process_id) return;
    if (map_get(&x->streams, c->process_id, strlen(c->process_id)) == c)
        map_remove(&x->streams, c->process_id, strlen(c->process_id));
}

/* The plugin ended the command because its time was over: no exit status says that. */
static void end_late(struct exec *x, struct exec_call *c) {
    abx_error *e = NULL;
    abx_call *call = c->call;
    exec_call_free(x, c);
    err_set(&e, ABX_E_COMMAND_TIMEOUT, NULL, "Provider '%s': the command timed out.", x->id);
    if (e) err_set_provider(e, x->id);
    abx_call_fail(call, e);
}

static void end_stream(struct exec *x, struct exec_call *c, int code, const abx_value *exit_value) {
    if (abx_value_bool(abx_value_get(exit_value, "timed_out"))) return end_late(x, c);
    abx_event e = {.size = sizeof e, .type = ABX_EVENT_EXIT, .exit_code = code, .value = exit_value};
    abx_call *call = c->call;
    int r = abx_call_emit(call, &e);
    abx_value *v = abx_value_ref(exit_value);
    exec_call_free(x, c);
    if (r < 0)
        exec_call_broken(x, call, "out of memory"), abx_value_unref(v);
    else
        abx_call_finish(call, v);
}

/* ---- before the answer ---------------------------------------------------- */

static void early_free(struct early *s) {
    struct early_event *e;
    while ((e = s->first)) {
        s->first = e->next;
        abx_value_unref(e->value);
        free(e);
    }
    free(s->process_id);
    free(s);
}

void exec_early_drop(struct exec *x) {
    struct early *s;
    while ((s = x->early)) {
        x->early = s->next;
        early_free(s);
    }
    x->early_bytes = x->early_count = 0;
}

static bool start_pending(struct exec *x) {
    for (struct exec_call *c = x->calls; c; c = c->next)
        if (c->stream && c->id) return true;
    return false;
}

/* Said once: a plugin that does it does it without end. */
static void lose_early(struct exec *x) {
    if (x->early_lost++ == 0)
        log_line(client_log(x->client), ABX_LOG_WARN, x->id,
                 "provider '%s' sends output of more than %d processes that no answer has named: what is over that is lost", x->id,
                 LIMIT_EARLY_STREAMS);
}

static void keep_early(struct exec *x, const char *pid, const abx_event *e) {
    /* Nobody is waiting for a name: the process is one that nobody asked for. */
    if (!start_pending(x)) return exec_early_drop(x);
    struct early *s = x->early;
    while (s && strcmp(s->process_id, pid) != 0) s = s->next;
    if (!s) {
        if (x->early_count >= LIMIT_EARLY_STREAMS) return lose_early(x);
        if (!(s = calloc(1, sizeof *s))) return;
        if (!(s->process_id = strdup(pid))) return free(s);
        s->tail = &s->first;
        s->next = x->early;
        x->early = s;
        x->early_count++;
    }
    if (s->overflow) return;
    struct early_event *k = NULL;
    if (x->early_bytes + e->bytes.len + sizeof *k <= LIMIT_EARLY_EVENTS) k = malloc(sizeof *k + e->bytes.len);
    if (!k) {
        s->overflow = true;
        return;
    }
    *k = (struct early_event){.type = e->type, .exit_code = e->exit_code, .value = abx_value_ref(e->value), .len = e->bytes.len};
    if (k->len) memcpy(k->data, e->bytes.data, k->len);
    x->early_bytes += e->bytes.len + sizeof *k;
    *s->tail = k;
    s->tail = &k->next;
}

int exec_stream_named(struct exec *x, struct exec_call *c, const char *process_id) {
    if (map_get(&x->streams, process_id, strlen(process_id))) return -EEXIST;
    if (!(c->process_id = strdup(process_id))) return -ENOMEM;
    int r = map_put(&x->streams, process_id, strlen(process_id), c, NULL);
    if (r < 0) return r;

    struct early **at = &x->early, *s;
    while (*at && strcmp((*at)->process_id, process_id) != 0) at = &(*at)->next;
    if (!(s = *at)) return 0;
    *at = s->next;
    x->early_count--;
    r = s->overflow ? -EMSGSIZE : 0;
    for (struct early_event *k = s->first; k; k = k->next) {
        x->early_bytes -= k->len + sizeof *k;
        if (r != 0) continue; /* failed, or over: what came after the exit is dropped */
        if (k->type == ABX_EVENT_EXIT) {
            end_stream(x, c, k->exit_code, k->value);
            r = 1;
            continue;
        }
        abx_event e = {.size = sizeof e, .type = k->type, .bytes = {(uint8_t *)k->data, k->len}, .value = k->value};
        r = abx_call_emit(c->call, &e);
    }
    early_free(s);
    return r;
}

/* ---- notifications -------------------------------------------------------- */

/* The process id as text: a plugin may name it by string or by number. */
static const char *process_id(struct json_ref params, char scratch[32]) {
    const char *s;
    size_t n;
    int64_t i;
    struct json_ref r = json_get(params, "process_id");
    if (json_string(r, &s, &n)) return s;
    if (!json_int(r, &i)) return NULL;
    snprintf(scratch, 32, "%lld", (long long)i);
    return scratch;
}

static void deliver(struct exec *x, const char *pid, const abx_event *e) {
    struct exec_call *c = map_get(&x->streams, pid, strlen(pid));
    if (!c) return keep_early(x, pid, e);
    if (e->type == ABX_EVENT_EXIT) return end_stream(x, c, e->exit_code, e->value);
    if (abx_call_emit(c->call, e) < 0) {
        abx_call *call = c->call;
        exec_call_free(x, c);
        exec_call_broken(x, call, "out of memory");
        return;
    }
    exec_flow(x);
}

static void on_output(struct exec *x, struct json_ref params, abx_event_type type) {
    char scratch[32];
    const char *pid = process_id(params, scratch), *s = "";
    size_t n = 0;
    if (!pid) return;
    if (type == ABX_EVENT_STDOUT && json_string(json_get(params, "stream"), &s, &n) && strcmp(s, "stderr") == 0)
        type = ABX_EVENT_STDERR;
    abx_event e = {.size = sizeof e, .type = type};
    _cleanup_free_ uint8_t *decoded = NULL;
    if (json_string(json_get(params, "data_b64"), &s, &n)) {
        if (!(decoded = malloc(n / 4 * 3 + 1))) return;
        long len = base64_decode(decoded, s, n);
        if (len < 0) return; /* nothing that could be shown as the process's own bytes */
        e.bytes = (abx_bytes){decoded, (size_t)len};
    } else if (json_string(json_get(params, "data"), &s, &n)) {
        e.bytes = (abx_bytes){(const uint8_t *)s, n};
    }
    if (e.bytes.len) deliver(x, pid, &e);
}

static void on_exit_note(struct exec *x, struct json_ref params) {
    char scratch[32];
    const char *pid = process_id(params, scratch);
    int64_t code;
    if (!pid) return;
    _cleanup_value_ abx_value *v = abx_value_new_object();
    struct exec_call *c = map_get(&x->streams, pid, strlen(pid));
    if (!json_int(json_get(params, "exit_code"), &code) || code < INT32_MIN || code > INT32_MAX) {
        if (!c) return;
        abx_call *call = c->call;
        exec_call_free(x, c);
        exec_call_broken(x, call, "exec.exit has no whole number exit_code");
        return;
    }
    abx_value_set_int(v, "exit_code", code);
    bool late = false;
    if (json_bool(json_get(params, "timed_out"), &late) && late) abx_value_set_bool(v, "timed_out", 1);
    struct json_ref sig = json_get(params, "signal");
    abx_value *signal_value = NULL;
    if (json_present(sig) && json_type(sig) != ABX_TYPE_NULL && json_to_value(sig, NULL, &signal_value) == 0)
        abx_value_set(v, "signal", signal_value);
    abx_event e = {.size = sizeof e, .type = ABX_EVENT_EXIT, .exit_code = (int)code, .value = v};
    deliver(x, pid, &e);
}

/* A change of a file, told as it came but for the name of the watch. */
static void on_file_event(struct exec *x, struct json_ref params) {
    _cleanup_value_ abx_value *v = NULL, *told = abx_value_new_object();
    if (json_to_value(params, NULL, &v) < 0) return;
    const abx_value *id = abx_value_get(v, "watch_id");
    _cleanup_free_ char *key = abx_value_is(id, ABX_TYPE_INT) ? str_printf(EXEC_WATCH "%lld", (long long)abx_value_int(id, 0))
                               : abx_value_string(id)         ? str_printf(EXEC_WATCH "%s", abx_value_string(id))
                                                              : NULL;
    if (!key) return;
    for (size_t i = 0; i < abx_value_size(v); i++)
        if (strcmp(abx_value_key_at(v, i), "watch_id") != 0)
            abx_value_set(told, abx_value_key_at(v, i), abx_value_ref(abx_value_at(v, i)));
    abx_event e = {.size = sizeof e, .type = ABX_EVENT_FS, .value = told};
    deliver(x, key, &e);
}

void exec_notification(struct exec *x, const char *method, struct json_ref params) {
    if (strcmp(method, "exec.output") == 0) return on_output(x, params, ABX_EVENT_STDOUT);
    if (strcmp(method, "pty.output") == 0) return on_output(x, params, ABX_EVENT_PTY);
    if (strcmp(method, "exec.exit") == 0 || strcmp(method, "pty.exit") == 0) return on_exit_note(x, params);
    if (strcmp(method, "files.event") == 0) return on_file_event(x, params);
    if (strcmp(method, "log") == 0) {
        const char *s = "";
        size_t n = 0;
        json_string(json_get(params, "message"), &s, &n);
        _cleanup_buf_ struct buf red = BUF_INIT(0);
        secrets_clean(&x->secrets, s, n, &red);
        log_line(client_log(x->client), ABX_LOG_INFO, x->id, "%s", buf_cstr(&red) ?: "");
    }
}
