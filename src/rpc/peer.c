/* What a peer says: lines, answers to pending requests, and its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "rpc/peer.h"

static void break_peer(struct rpc_peer *p, const char *reason) {
    if (p->broken) return;
    p->broken = true;
    watch_remove(&p->in);
    watch_remove(&p->out);
    deferred_cancel(&p->resume);
    p->o.events->broken(p->o.user, reason);
}

/* The first `limit` bytes of a foreign line as they can be shown. What is cut is cut last, and far
 * from where the look at it ends: half a secret is one, too. */
static void quote(struct rpc_peer *p, struct buf *out, const char *line, size_t n, size_t limit) {
    _cleanup_buf_ struct buf clean = BUF_INIT(0);
    secrets_clean(p->o.secrets, line, MIN_OF(n, limit + 64 * KIB), &clean);
    size_t len = MIN_OF(clean.len, limit);
    len -= utf8_incomplete_tail(clean.data, len);
    buf_append(out, clean.data, len);
    if (len < clean.len || n > limit + 64 * KIB) buf_str(out, "…");
}

/* Ends with the start of a foreign line quoted. */
static void break_line(struct rpc_peer *p, const char *what, const char *line, size_t n) {
    _cleanup_buf_ struct buf b = BUF_INIT(0), shown = BUF_INIT(0);
    quote(p, &shown, line, n, LIMIT_LINE_QUOTE);
    buf_str(&b, what);
    if (shown.len) buf_printf(&b, ": %s", buf_cstr(&shown) ?: "");
    break_peer(p, buf_cstr(&b) ?: what);
}

void peer_trace(struct rpc_peer *p, const char *arrow, const char *line, size_t n) {
    if (!log_on(p->o.log, ABX_LOG_TRACE)) return;
    _cleanup_buf_ struct buf shown = BUF_INIT(0);
    quote(p, &shown, line, n, 4 * KIB);
    log_line(p->o.log, ABX_LOG_TRACE, p->o.name, "%s %s", arrow, buf_cstr(&shown) ?: "");
}

/* ---- in ------------------------------------------------------------------- */

static void give_error(struct rpc_peer *p, void *call, struct json_ref error) {
    int64_t code = 0;
    const char *text = "";
    size_t n = 0;
    _cleanup_value_ abx_value *message = NULL, *data = NULL;
    json_int(json_get(error, "code"), &code);
    json_string(json_get(error, "message"), &text, &n);
    message = abx_value_new_string_n(text, n);
    if (json_type(json_get(error, "data")) == ABX_TYPE_OBJECT)
        json_to_value(json_get(error, "data"), NULL, &data);
    struct rpc_answer a = {.code = code >= INT32_MIN && code <= INT32_MAX ? (int)code : 0,
                           .message = abx_value_string(message) ?: "", .data = data};
    p->o.events->answer(p->o.user, call, &a);
}

static void on_line(struct rpc_peer *p, const char *line, size_t n) {
    struct json_ref root;
    const char *why = "";
    peer_trace(p, "<-", line, n);
    int r = json_parse(p->o.parser, line, n, &root, &why);
    if (r < 0) {
        if (r == -ENOMEM) return break_peer(p, "out of memory while reading an answer");
        _cleanup_buf_ struct buf b = BUF_INIT(0);
        buf_printf(&b, "Plugin sent a malformed (non-JSON) protocol line (%s)", why);
        return break_line(p, buf_cstr(&b) ?: why, line, n);
    }
    if (json_type(root) != ABX_TYPE_OBJECT)
        return break_line(p, "Plugin sent a protocol line that is not a JSON object", line, n);

    struct json_ref id_ref = json_get(root, "id"), method = json_get(root, "method");
    int64_t id = 0;
    bool has_id = json_int(id_ref, &id);
    const char *name;
    size_t name_len;
    if (json_string(method, &name, &name_len)) {
        if (has_id) return peer_refuse(p, id);
        p->o.events->notification(p->o.user, name, json_get(root, "params"));
        return;
    }
    struct json_ref error = json_get(root, "error"), result = json_get(root, "result");
    bool failed = json_type(error) == ABX_TYPE_OBJECT;
    if (!has_id) {
        if (!failed && !json_present(result))
            return break_line(p, "Plugin sent a protocol line that is neither an answer nor a notification", line, n);
        const char *text = "";
        size_t len = 0;
        json_string(json_get(error, "message"), &text, &len);
        return break_line(p, "Plugin answered without a request id", text, len);
    }
    if (id <= 0) return;
    uint64_t key = (uint64_t)id;
    void *call = map_remove(&p->pending, &key, sizeof key);
    if (!call) return; /* late, doubled or invented: nobody waits for it */
    if (failed) return give_error(p, call, error);
    struct rpc_answer a = {.ok = true, .result = result};
    if (!json_present(result)) a = (struct rpc_answer){.code = -32603, .message = "the answer has neither result nor error"};
    p->o.events->answer(p->o.user, call, &a);
}

/* Handles the whole lines that are there, until one of them makes us stop. */
static void handle_lines(struct rpc_peer *p) {
    const char *line;
    size_t n;
    int r = 0;
    while (!p->broken && !p->held && !p->freed && (r = frame_next(&p->frame, &line, &n)) > 0) on_line(p, line, n);
    if (r == -EMSGSIZE && !p->broken && !p->freed) break_peer(p, "Plugin sent a protocol line larger than 8 MiB");
}

/* What is left at the end of file is half a line. */
static void break_cut_line(struct rpc_peer *p) {
    if (frame_pending(&p->frame) == 0) return;
    break_line(p, "Plugin sent a malformed (non-JSON) protocol line (it ends without a newline)",
               p->frame.data + p->frame.start, frame_pending(&p->frame));
}

static void finish_eof(struct rpc_peer *p) {
    if (p->broken || p->freed || p->held || p->eof) return;
    watch_remove(&p->in);
    p->eof = true;
    p->o.events->eof(p->o.user);
}

/* The outermost reader frees a peer that was freed inside of one of its callbacks. */
static void leave(struct rpc_peer *p, bool outer) {
    if (!outer) return;
    p->busy = false;
    if (!p->freed) return;
    p->freed = false;
    rpc_free(p);
}

/* At most a few reads a turn, so that one loud plugin does not starve the loop. */
static void read_some(struct rpc_peer *p, int turns) {
    bool outer = !p->busy;
    p->busy = true;
    handle_lines(p);
    while (turns-- > 0 && !p->broken && !p->held && !p->freed && !p->eof) {
        size_t room_before = p->frame.cap;
        long n = frame_read(&p->frame, p->o.in_fd);
        if (n == -EAGAIN) break;
        if (n == 0) {
            break_cut_line(p);
            finish_eof(p);
            break;
        }
        if (n < 0) {
            break_peer(p, "reading from the plugin failed");
            break;
        }
        handle_lines(p);
        /* A short read emptied the pipe: asking again would only cost a call. */
        if ((size_t)n < room_before / 4) break;
    }
    leave(p, outer);
}

static void on_readable(struct watch *w, uint32_t events) {
    (void)events;
    read_some((struct rpc_peer *)((char *)w - offsetof(struct rpc_peer, in)), 2);
}

static void on_resume(struct deferred *d) {
    read_some((struct rpc_peer *)((char *)d - offsetof(struct rpc_peer, resume)), 1);
}

void rpc_hold(struct rpc_peer *p, bool hold) {
    if (p->held == hold || p->broken || p->eof) return;
    p->held = hold;
    watch_set(&p->in, hold ? 0 : EPOLLIN);
    if (!hold) deferred_start(p->o.loop, &p->resume);
}

void rpc_drain(struct rpc_peer *p) {
    bool outer = !p->busy;
    p->busy = true;
    handle_lines(p); /* what a hold has left */
    /* The pipe holds at most this much; a grandchild that goes on writing is not waited for. */
    for (size_t budget = 2 * MIB / (4 * KIB); budget > 0 && !p->broken && !p->held && !p->freed && !p->eof; budget--) {
        long n = frame_read(&p->frame, p->o.in_fd);
        if (n == 0) break_cut_line(p);
        if (n <= 0) break;
        handle_lines(p);
    }
    leave(p, outer);
}

/* ---- life ----------------------------------------------------------------- */

int rpc_new(struct rpc_peer **ret, const struct rpc_opts *o) {
    struct rpc_peer *p = calloc(1, sizeof *p);
    if (!p) return -ENOMEM;
    p->o = *o;
    p->tail = &p->head;
    deferred_init(&p->resume, on_resume);
    int r = watch_add(o->loop, &p->in, o->in_fd, EPOLLIN, on_readable);
    if (r == 0) r = watch_add(o->loop, &p->out, o->out_fd, 0, peer_on_writable);
    if (r < 0) {
        watch_remove(&p->in);
        free(p);
        return r;
    }
    *ret = p;
    return 0;
}

struct rpc_peer *rpc_free(struct rpc_peer *p) {
    if (!p) return NULL;
    watch_remove(&p->in);
    watch_remove(&p->out);
    deferred_cancel(&p->resume);
    if (p->busy) { /* freed from one of its own callbacks: the reader finishes it */
        p->freed = true;
        return NULL;
    }
    peer_drop_lines(p);
    map_done(&p->pending);
    frame_done(&p->frame);
    safe_close(p->o.in_fd);
    safe_close(p->o.out_fd);
    free(p);
    return NULL;
}
