/* The one choke point: every call of every kind passes here once.
 *
 * feature → parameters → deadline → driver → retry → error map → redact. */
#ifndef PROVIDER_CALL_H
#define PROVIDER_CALL_H

#include "provider/session.h"
#include "drivers/drivers.h"

enum method_trait { COMMAND = 1, STREAM = 2, SANDBOX = 4, KILL = 8, RECORD = 16, GLOBAL = 32, CREATES = 64, WATCH = 128 };

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
    bool late;                /* a create whose caller is gone: op is its own */
    int tries;
    int64_t deadline_ms;      /* 0: none */
    struct timer timer;       /* the deadline, or the retry */
    void *driver_user;
    char *process_id;
    void (*on_end)(struct session *s, abx_value *v, abx_error *e); /* a call of the session itself */
};
void call_issue(struct abx_call *c);
void call_fail(struct abx_call *c, abx_error *e); /* takes e; no retry, no mapping */
/* The call is over for the driver; what follows may free it with its op. */
void call_ended(struct abx_call *c);
void call_arm(struct abx_call *c, int64_t after_ms); /* the deadline, from now; 0: none */
int64_t call_left_ms(const struct abx_call *c);      /* -1: no deadline */
/* A command's own time, with the grace; far from an overflow. */
int64_t call_command_ms(const struct abx_call *c);
/* A call of the session itself; timeout_ms 0: none. */
struct abx_call *call_new_internal(struct session *s, int timeout_ms, void (*on_end)(struct session *s, abx_value *v, abx_error *e));
/* An op that only brings the session up: the handshake. */
int call_open_start(abx_op **ret, struct session *s, abx_error **reterr);
void call_free(struct abx_call *c);
extern const struct op_class call_class;
/* late.c: true when c is a create that may still make a sandbox: it goes on with an op of its own, and the
 * one it had is the caller's to end. c may be gone then. */
bool call_outlive(struct abx_call *c);
/* Kills the sandbox a failed create has named in value. */
void call_kill_created(struct abx_call *c, const abx_value *value);
/* Ends what a driver that is gone has left open. */
void call_fail_sent(struct session *s);

/* errmap.c: a plugin's error as one of ours; idempotent kill gives NULL. */
abx_error *errmap(const struct session *s, const struct method *m, int code, const char *message, const abx_value *data);
/* gate.c: E8004 before anything is sent. */
int gate_check(const struct session *s, const char *feature, const char *method, abx_error **reterr);
/* retry.c: milliseconds until the next try, or -1. */
int retry_delay_ms(const struct method *m, int tries, const abx_error *e, int64_t left_ms);

#endif
