/* The machinery of abx_op: state, bounded events, and the queue of notifications. */
#ifndef PROVIDER_OP_H
#define PROVIDER_OP_H

#include <abx/op.h>
#include <abx/store.h>
#include <stdbool.h>

#include "loop/loop.h"

/* What ops need of their client; the first member of abx_client. */
struct op_host {
    struct loop *loop;
    struct abx_op *ready, **ready_tail; /* notifications to deliver */
    struct abx_op *all;                 /* every running op         */
    struct session *dying;              /* sessions to bury         */
    void (*hold)(struct op_host *h);    /* a reference to the client while an op lives */
    void (*release)(struct op_host *h);
};

struct op_class {
    void (*cancel)(abx_op *op);              /* asks for an end; may end it at once */
    void (*taken)(abx_op *op);               /* events were consumed                */
    void (*free)(abx_op *op);                /* releases priv                       */
    void (*ended)(abx_op *op);               /* after the end; may be NULL          */
};

struct op_event {
    struct op_event *next;
    abx_event_type type;
    int exit_code;
    abx_value *value;
    size_t len;
    uint8_t data[];
};

struct abx_op {
    unsigned refs;          /* of the users; a running op lives without any */
    abx_op_state state;
    struct op_host *host;
    const struct op_class *class_;
    void *priv;
    abx_value *value;
    abx_error *error;
    abx_sandbox *sandbox;
    abx_plan *plan;
    struct op_event *first, **tail, *current;
    size_t queued;
    bool starting;          /* inside its start: an end waits for the loop */
    abx_op_state later;     /* that end; RUNNING: none                      */
    struct deferred end_later;
    bool discard;           /* nobody will take events any more */
    bool cancelled;
    abx_notify_fn notify;
    void *notify_user;
    void (*notify_free)(void *);
    void (*on_end)(void *user, const abx_op *op); /* the core's own, at once */
    void *on_end_user;
    bool ready;
    struct abx_op *ready_next, *all_next, **all_at;
};

int op_new(abx_op **ret, struct op_host *h, const struct op_class *class_, void *priv);
/* An event is copied in; dropped when nobody can take it. 0 or -ENOMEM. */
int op_emit(abx_op *op, const abx_event *e);
/* Each ends the op, once; later calls are ignored and release what they were given. */
void op_finish(abx_op *op, abx_value *value);
void op_fail(abx_op *op, abx_error *error);
void op_end_cancelled(abx_op *op);
/* For a stage that waits for another op: fn runs when op ends, inside the end; once. */
void op_on_end(abx_op *op, void (*fn)(void *user, const abx_op *op), void *user);
bool op_running(const abx_op *op);
int op_dispatch(struct op_host *h); /* runs the notifications that are ready */
/* One turn of the loop; leaves its descriptor readable while notifications wait. */
int op_pump(struct op_host *h, int timeout_ms);

#endif
