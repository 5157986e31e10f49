/* One provider with one resolved configuration: its plugin process is shared by all its sandboxes. */
#ifndef PROVIDER_SESSION_H
#define PROVIDER_SESSION_H

#include <abx/sandbox.h>
#include <abx/sys/provider.h>
#include <stdbool.h>

#include "base/secret.h"
#include "provider/manifest.h"
#include "provider/op.h"

struct abx_call;

struct session {
    unsigned refs;
    abx_client *client;
    struct op_host *host;
    struct manifest *manifest;
    const abx_driver *driver;
    void *driver_user;
    abx_value *settings;      /* initialize's params and "directory" */
    struct secrets secrets;
    char *key;                /* id and canonical configuration: equal means shareable */
    void *instance;
    enum { SESSION_IDLE, SESSION_PREPARING, SESSION_OPENING, SESSION_READY } state;
    char **features;          /* manifest ∩ handshake; NULL before it */
    struct abx_call *waiting;     /* calls for when it is open, in order */
    struct abx_call *running;
    struct abx_call *open_call;
    struct deferred bury;     /* the last reference may go inside a callback of the driver */
    struct deferred reap;     /* a dead instance is destroyed outside its own callbacks */
    void *dead;
    struct deferred open_later;
    abx_op *close_op;         /* the orderly end in progress */
    struct abx_call *close_call; /* the same, after the last reference is gone */
    abx_op *release_op;       /* who waits for that; NULL: nobody */
    bool cut;                 /* it had to be killed */
    bool closing;
    struct work prepare_work;
    int prepare_result;
    abx_error *prepare_error;
    /* Checks the files before a start, on a worker thread; NULL: nothing to check. */
    int (*prepare)(void *user, abx_error **reterr);
    void *prepare_user;
    void (*prepare_free)(void *user);
    void (*forget)(struct session *s); /* the last reference is gone */
    struct session *next;     /* in the client's list */
};

struct session_spec {
    abx_client *client;
    struct op_host *host;
    struct manifest *manifest;
    const abx_driver *driver;
    void *driver_user;
    abx_value *settings;
    int (*prepare)(void *user, abx_error **reterr);
    void *prepare_user;
    void (*prepare_free)(void *user);
    void (*forget)(struct session *s);
};

int session_new(struct session **ret, const struct session_spec *spec); /* takes prepare_user on success */
struct session *session_ref(struct session *s);
struct session *session_unref(struct session *s); /* the last one ends the process, in order */
/* For the end of a client: what was unref'd is destroyed now, in order or not. */
void session_bury_all(struct op_host *h);
/* Ends the plugin at once and fails every call with e (consumed). */
void session_kill(struct session *s, abx_error *e);
/* Opens when needed; the call is issued, or failed with the reason, later. */
void session_submit(struct session *s, struct abx_call *c);
bool session_has_feature(const struct session *s, const char *feature);
/* The instance is dead when the driver says so: the next call opens a new one. */
void session_check(struct session *s);
/* Adds what the driver knows about the plugin to the suggestion of E8020 and E8022. */
void session_explain(struct session *s, abx_error *e);
/* Gives up a reference, taken on success: the op is done when the process has ended, if that was the last one, else
 * soon; with true when it had to be killed. */
int session_release_start(abx_op **ret, struct session *s);
/* Orderly end: an op that is done with true when the plugin had to be killed. */
int session_close_start(abx_op **ret, struct session *s);

/* handshake.c: E8013 or E8020 when the answer does not fit; the effective features. */
int handshake_check(const struct session *s, const abx_value *result, char ***ret_features, abx_error **reterr);

#endif
