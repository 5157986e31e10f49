/* The one choke point: every call of every kind passes here once.
 *
 * feature → parameters → deadline → driver → retry → error map → redact. */
#ifndef PROVIDER_CALL_H
#define PROVIDER_CALL_H

#include "provider/session.h"
#include "drivers/drivers.h"

enum method_trait { COMMAND = 1, STREAM = 2, SANDBOX = 4, KILL = 8, RECORD = 16, GLOBAL = 32 };

struct method {
    const char *name, *feature;
    bool idempotent;
    const char *fallback, *bytes;
    unsigned traits;
};
const struct method *method_find(const char *name);

struct abx_call;

/* What the caller of a method adds to it. All-zero is fine. */
struct call_opts {
    int64_t command_timeout_s; /* COMMAND: 0 means the default for run, none for a stream */
    /* The result before the op is done with it: may replace it (*value), fail, or ask for one more
     * round with other parameters by setting *again (pagination). */
    int (*shape)(void *user, abx_value **value, abx_value **again, abx_error **reterr);
    /* The op, before it ends well: to give it a sandbox. */
    int (*finish)(void *user, abx_op *op, const abx_value *value, abx_error **reterr);
    void *user;
    void (*free_user)(void *user);
};

/* 0 and *ret, or an error of the arguments or the gate; user is freed in any case. params: borrowed. */
int call_start(abx_op **ret, struct session *s, const char *method, const abx_value *params, const struct call_opts *o,
               abx_error **reterr);

/* Internal to the room. */
struct abx_call {
    abx_op *op;
    struct session *session;
    const struct method *method;
    abx_value *params;
    struct call_opts o;
    struct abx_call *next, **at;  /* in waiting or running */
    enum { CALL_WAITING, CALL_SENT, CALL_RETRYING, CALL_ENDED } state;
    bool started;             /* a stream whose process is named */
    int tries;
    int64_t deadline_ms;      /* 0: none */
    struct timer timer;       /* the deadline, or the retry */
    void *driver_user;
    char *process_id;
    void (*on_end)(struct session *s, abx_value *v, abx_error *e); /* a call of the session itself */
};
void call_issue(struct abx_call *c);
void call_fail(struct abx_call *c, abx_error *e); /* takes e; no retry, no mapping */
/* A call of the session itself; timeout_ms 0: none. */
struct abx_call *call_new_internal(struct session *s, int timeout_ms, void (*on_end)(struct session *s, abx_value *v, abx_error *e));
/* An op that only brings the session up: the handshake. */
int call_open_start(abx_op **ret, struct session *s, abx_error **reterr);
void call_free(struct abx_call *c);
/* Ends what a driver that is gone has left open. */
void call_fail_sent(struct session *s);

/* errmap.c: a plugin's error as one of ours; idempotent kill gives NULL. */
abx_error *errmap(const struct session *s, const struct method *m, int code, const char *message, const abx_value *data);
/* gate.c: E8004 before anything is sent. */
int gate_check(const struct session *s, const char *feature, const char *method, abx_error **reterr);
/* retry.c: milliseconds until the next try, or -1. */
int retry_delay_ms(const struct method *m, int tries, const abx_error *e, int64_t left_ms);

#endif
