/* Inside of a peer, for the files of this room. */
#ifndef RPC_PEER_H
#define RPC_PEER_H

#include "base/map.h"
#include "rpc/rpc.h"

/* One line on its way out. */
struct line {
    struct line *next;
    uint64_t id; /* 0: a notification */
    size_t sent;
    struct buf buf;
};

struct rpc_peer {
    struct rpc_opts o;
    struct watch in, out;
    struct frame frame;
    struct line *head, **tail, *spare;
    size_t queued;
    struct map pending; /* id -> call */
    uint64_t last_id;
    struct deferred resume;
    bool held, broken, freed, busy, eof;
};

/* peer.c */
void peer_trace(struct rpc_peer *p, const char *arrow, const char *line, size_t n);

/* peer_out.c */
void peer_on_writable(struct watch *w, uint32_t events);
void peer_refuse(struct rpc_peer *p, int64_t id); /* answers a request: the host takes none */
void peer_drop_lines(struct rpc_peer *p);         /* what waits will not be sent */

#endif
