/* One peer that speaks JSON-RPC 2.0, one object a line, over a pair of pipes.
 *
 * frame.c cuts the bytes into lines; peer.c answers pending requests; peer_out.c keeps the
 * queue of what the peer has not read yet. Nothing here knows a method by name. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <abx/error.h>
#include <abx/value.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/util.h"
#include "json/json.h"
#include "loop/loop.h"

/* ---- lines ---------------------------------------------------------------- */
struct frame {
    char *data;
    size_t cap, start, end, scanned; /* scanned: no newline before it */
    unsigned idle;                   /* how often it was found empty and large */
};
void frame_done(struct frame *f);
/* Reads once. >0: bytes, 0: end of file, -EAGAIN, or another -errno. */
long frame_read(struct frame *f, int fd);
/* 1 and a line without its newline, followed by JSON_PADDING readable bytes; 0: none whole yet;
 * -EMSGSIZE: longer than the limit. Empty lines are skipped. */
int frame_next(struct frame *f, const char **ret, size_t *ret_len);
size_t frame_pending(const struct frame *f);

/* ---- the peer -------------------------------------------------------------- */
struct rpc_peer;

struct rpc_answer {
    bool ok;
    struct json_ref result; /* ok; borrowed until the callback returns */
    int code;               /* !ok */
    const char *message;
    const abx_value *data;
};

struct rpc_events {
    void (*answer)(void *user, void *call, const struct rpc_answer *a);
    void (*notification)(void *user, const char *method, struct json_ref params);
    /* The peer broke the protocol, or a pipe failed: reason is a sentence without a final dot,
     * sanitised. No callback follows. */
    void (*broken)(void *user, const char *reason);
    void (*eof)(void *user);
};

struct rpc_opts {
    struct loop *loop;
    struct json_parser *parser; /* shared by all peers of a loop */
    int in_fd, out_fd;          /* owned by the peer from rpc_new() on */
    const struct secrets *secrets; /* for the trace */
    const struct logger *log;
    const char *name;           /* for the trace */
    const struct rpc_events *events;
    void *user;
};

int rpc_new(struct rpc_peer **ret, const struct rpc_opts *o);
struct rpc_peer *rpc_free(struct rpc_peer *p);
/* Queues a request. -EMSGSIZE: the line is over the limit, nothing was sent; -ENOBUFS: the peer does
 * not read and the queue is full; -EPIPE: it is gone. call comes back in answer(). */
int rpc_request(struct rpc_peer *p, const char *method, const abx_value *params, void *call, uint64_t *ret_id);
int rpc_notify(struct rpc_peer *p, const char *method, const abx_value *params);
/* The caller no longer waits: its line is dropped when no byte of it was sent, else, with tell, $/cancel
 * follows. keep: the answer is still wanted. */
void rpc_cancel(struct rpc_peer *p, uint64_t id, bool tell, bool keep);
void rpc_hold(struct rpc_peer *p, bool hold);  /* true: do not read */
void rpc_drain(struct rpc_peer *p);            /* handles what is already in the pipe, without waiting */
void rpc_close_out(struct rpc_peer *p);        /* closes the peer's stdin */
bool rpc_blocked(struct rpc_peer *p);          /* something waits to be read by the peer */

#endif
