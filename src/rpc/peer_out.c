/* The queue towards a peer that may not be reading. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/peer.h"

static void line_free(struct line *l) {
    if (!l) return;
    buf_done(&l->buf);
    free(l);
}

/* Sends what the pipe takes; the rest waits for the watch. */
static void flush(struct rpc_peer *p) {
    while (p->head) {
        struct line *l = p->head;
        ssize_t n = write(p->o.out_fd, l->buf.data + l->sent, l->buf.len - l->sent);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) {
                watch_set(&p->out, EPOLLOUT);
                return;
            }
            /* A closed stdin alone is no end: the answer or the exit says more. */
            while ((l = p->head)) {
                p->head = l->next;
                line_free(l);
            }
            p->tail = &p->head;
            p->queued = 0;
            p->o.out_fd = (watch_remove(&p->out), safe_close(p->o.out_fd));
            return;
        }
        l->sent += (size_t)n;
        p->queued -= (size_t)n;
        if (l->sent < l->buf.len) continue;
        p->head = l->next;
        if (!p->head) p->tail = &p->head;
        if (!p->spare && l->buf.cap <= 64 * KIB)
            p->spare = l;
        else
            line_free(l);
    }
    watch_set(&p->out, 0);
}

void peer_on_writable(struct watch *w, uint32_t events) {
    (void)events;
    flush((struct rpc_peer *)((char *)w - offsetof(struct rpc_peer, out)));
}

static struct line *line_new(struct rpc_peer *p) {
    struct line *l = TAKE_PTR(p->spare);
    if (!l && !(l = calloc(1, sizeof *l))) return NULL;
    l->next = NULL;
    l->sent = 0;
    buf_reset(&l->buf);
    l->buf.max = LIMIT_LINE + 1;
    return l;
}

/* Owns l: puts it behind what waits, and sends at once when nothing does. */
static int enqueue(struct rpc_peer *p, struct line *l, uint64_t id) {
    struct buf *b = &l->buf;
    int r = b->err;
    if (r == 0 && p->queued + b->len > LIMIT_OUTGOING) r = -ENOBUFS;
    if (r < 0) {
        line_free(l);
        return r;
    }
    peer_trace(p, "->", b->data, b->len - 1);
    l->id = id;
    bool idle = !p->head;
    *p->tail = l;
    p->tail = &l->next;
    p->queued += b->len;
    if (idle) flush(p);
    return 0;
}

static int send_line(struct rpc_peer *p, uint64_t id, const char *method, const abx_value *params) {
    if (p->broken || p->o.out_fd < 0) return -EPIPE;
    struct line *l = line_new(p);
    if (!l) return -ENOMEM;
    struct buf *b = &l->buf;
    buf_str(b, "{\"jsonrpc\":\"2.0\",");
    if (id) buf_printf(b, "\"id\":%llu,", (unsigned long long)id);
    buf_str(b, "\"method\":");
    json_write_string(b, method, strlen(method));
    buf_str(b, ",\"params\":");
    if (params)
        json_write_value(b, params, ABX_PRINT_SECRETS);
    else
        buf_str(b, "{}");
    buf_str(b, "}\n");
    return enqueue(p, l, id);
}

int rpc_request(struct rpc_peer *p, const char *method, const abx_value *params, void *call, uint64_t *ret_id) {
    uint64_t id = p->last_id + 1;
    if (p->pending.len >= LIMIT_PENDING_CALLS) return -ENOBUFS;
    int r = map_put(&p->pending, &id, sizeof id, call, NULL);
    if (r < 0) return r;
    r = send_line(p, id, method, params);
    if (r < 0) {
        map_remove(&p->pending, &id, sizeof id);
        return r;
    }
    p->last_id = id;
    *ret_id = id;
    return 0;
}

int rpc_notify(struct rpc_peer *p, const char *method, const abx_value *params) {
    return send_line(p, 0, method, params);
}

void rpc_cancel(struct rpc_peer *p, uint64_t id, bool tell, bool keep) {
    for (struct line **at = &p->head; *at; at = &(*at)->next) {
        struct line *l = *at;
        if (l->id != id || l->sent > 0) continue;
        *at = l->next;
        if (p->tail == &l->next) p->tail = at;
        p->queued -= l->buf.len;
        line_free(l);
        tell = false;
        break;
    }
    if (!keep) map_remove(&p->pending, &id, sizeof id);
    if (!tell) return;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    if (abx_value_set_int(params, "id", (int64_t)id) == 0) rpc_notify(p, "$/cancel", params);
}

void peer_refuse(struct rpc_peer *p, int64_t id) {
    struct line *l = p->o.out_fd >= 0 ? line_new(p) : NULL;
    if (!l) return;
    buf_printf(&l->buf, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32601,"
               "\"message\":\"the host answers no requests\"}}\n", (long long)id);
    enqueue(p, l, 0); /* a peer that does not read gets no answer */
}

void rpc_close_out(struct rpc_peer *p) {
    watch_remove(&p->out);
    p->o.out_fd = safe_close(p->o.out_fd);
}

bool rpc_blocked(struct rpc_peer *p) { return p->head != NULL; }

void peer_drop_lines(struct rpc_peer *p) {
    struct line *l;
    while ((l = p->head)) {
        p->head = l->next;
        line_free(l);
    }
    line_free(TAKE_PTR(p->spare));
}
