/* One plugin process, shared by the files of the exec driver. */
#ifndef DRIVERS_EXEC_H
#define DRIVERS_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/map.h"
#include "drivers/drivers.h"
#include "proc/proc.h"
#include "rpc/rpc.h"

/* A call the plugin has not ended yet, in the instance's list. */
struct exec_call {
    struct exec_call *next, **at;
    abx_call *call;
    char *method;
    uint64_t id;       /* of the request; 0 once answered (a stream goes on) */
    char *process_id;  /* of a stream, once named */
    bool told;         /* has got its $/cancel */
    bool stream;
    bool watch;        /* a stream of changes: process_id is EXEC_WATCH and its watch_id */
};
/* Processes and watches have ids of their own; a plugin that names a process so confuses itself alone. */
#define EXEC_WATCH "\x01"

/* Output that came before the answer that names its process. */
struct early {
    struct early *next;
    char *process_id;
    struct early_event *first, **tail;
    bool overflow;
};

/* The steps of an orderly end. */
enum { CLOSE_NONE, CLOSE_REPLY, CLOSE_EOF, CLOSE_TERM, CLOSE_KILL };

struct exec {
    abx_client *client;
    struct loop *loop;
    char *id, *program;  /* of the provider, for messages */
    struct secrets secrets;
    struct proc *proc;
    struct rpc_peer *rpc;
    struct watch err_watch;
    int err_fd;
    struct buf err_line; /* the line that is being said, for the log */
    struct buf err_ring; /* last LIMIT_STDERR_RING bytes of stderr */
    struct exec_call *calls;
    struct map streams;  /* process id -> exec_call */
    struct early *early;
    size_t early_bytes, early_count;
    uint64_t early_lost; /* events for more unknown processes than are kept */
    bool held;           /* the consumers are full: the pipe is not read */
    bool draining;       /* the process is gone: what is in the pipe is all there will be */
    abx_error *fatal;    /* why no call can be made any more */
    abx_call *closing;
    int close_step;
    struct timer close_timer, eof_timer;
};

/* exec_stderr.c */
int exec_stderr_start(struct exec *x, int fd);
void exec_stderr_drain(struct exec *x);
void exec_stderr_stop(struct exec *x);
/* "Plugin stderr: …", sanitised and redacted, or "" when nothing was said; NULL: out of memory. */
char *exec_stderr_hint(struct exec *x);

/* exec_stream.c */
void exec_notification(struct exec *x, const char *method, struct json_ref params);
/* The answer named the process: output kept so far is handed over. 1: that ended the stream and c is
 * gone; <0: it can't go on. */
int exec_stream_named(struct exec *x, struct exec_call *c, const char *process_id);
void exec_stream_forget(struct exec *x, struct exec_call *c);
void exec_flow(struct exec *x);
void exec_early_drop(struct exec *x);

/* exec_end.c */
/* No call can be made any more: the process is killed, its calls fail. text: a whole sentence. */
void exec_give_up(struct exec *x, int code, const char *text);
void exec_on_proc_exit(struct proc *p, const struct proc_exit *e, void *user);
void exec_on_eof(void *user);
void exec_on_eof_timeout(struct timer *t);
void exec_on_close_timer(struct timer *t);
void exec_close_step(struct exec *x); /* the next step of an orderly end */
void exec_close(void *instance, abx_call *done);

/* exec.c */
int exec_send(struct exec *x, const char *method, const abx_value *params, abx_call *call, abx_error **reterr);
void exec_call_free(struct exec *x, struct exec_call *c);
/* Fails one call for what the plugin said: E8020; the plugin stays. */
void exec_call_broken(struct exec *x, abx_call *call, const char *what);

#endif
