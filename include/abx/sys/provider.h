/* abx/sys/provider.h: for those who write a kind of provider.
 *
 * Promise: minor releases only. A driver is narrow on purpose: it carries messages.
 * Feature gate, parameter checks, retries, deadlines, redaction and the error map
 * are done once, above it. Everything happens in the client's thread. */
#ifndef ABX_SYS_PROVIDER_H
#define ABX_SYS_PROVIDER_H

#include <abx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abx_call abx_call; /* owned by the core until finished or failed */

typedef struct abx_driver {
    size_t size;      /* sizeof, so that later members read as NULL; open, call and destroy must be there */
    const char *kind; /* "exec", "rest", "python", "test"           */
    /* Brings the provider up; ends `done` with the result of initialize (or {}).
     * manifest and settings are borrowed; settings = the params of initialize plus
     * "directory". user: as registered. */
    int (*open)(void **ret_instance, abx_client *c, const abx_value *manifest, const abx_value *settings, void *user,
                abx_call *done, abx_error **reterr);
    /* Starts one call, or fails at once without having kept `call`. */
    int (*call)(void *instance, const char *method, const abx_value *params, abx_call *call, abx_error **reterr);
    /* The call is still to be ended, by the driver, soon. NULL: the core ends it. */
    void (*cancel)(void *instance, abx_call *call);
    /* How full the consumer of a stream is changed; NULL: nothing to hold back. */
    void (*flow)(void *instance);
    /* Orderly end; ends `done`. NULL: destroy is enough. */
    void (*close)(void *instance, abx_call *done);
    /* At once; cannot fail; a half-open instance too. Calls still open need no end. */
    void (*destroy)(void *instance);
    /* 1 while calls can be made; 0 after a crash, so that the next call opens anew. */
    int (*alive)(void *instance);
    /* What the provider said beside its answers, for the suggestion of an error: free(), or NULL.
     * Clean and without secrets. NULL: it says nothing. */
    char *(*hint)(void *instance);
    /* Nobody waits for the call any more, but its result is still wanted: a sandbox that comes late is
     * killed. Tell who works on it, and end it as usual. NULL: nobody is told. */
    void (*abandon)(void *instance, abx_call *call);
} abx_driver;

ABX_API int abx_call_emit(abx_call *call, const abx_event *event); /* copies; <0: cannot take it */
ABX_API void abx_call_finish(abx_call *call, abx_value *value);    /* takes the reference */
ABX_API void abx_call_fail(abx_call *call, abx_error *error);      /* takes the reference */
/* A failure as the wire says it (JSON-RPC code, message, data): the core maps it. */
ABX_API void abx_call_fail_rpc(abx_call *call, int rpc_code, const char *message, const abx_value *data);
/* Milliseconds left for this call; -1: no limit. */
ABX_API int abx_call_time_left_ms(abx_call *call);
/* Bytes of events the consumer has not taken yet. */
ABX_API size_t abx_call_queued(abx_call *call);
ABX_API void *abx_call_user(abx_call *call);
ABX_API void abx_call_set_user(abx_call *call, void *user);

ABX_API ABX_MUST_CHECK int abx_error_new(abx_error **ret, int code, const char *message, const char *hint);

/* Registration is per client: no process-wide table. manifest: the object form of
 * abx-provider.toml. */
ABX_API ABX_MUST_CHECK int abx_client_add_provider(abx_client *c, const abx_driver *driver, const abx_value *manifest, void *user,
                                                   void (*free_user)(void *), abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
