/* abx/client.h: the client, and how it lives in any event loop.
 *
 * A client is a snapshot of the configuration, the registry of providers and a
 * loop. It belongs to the thread that uses it. Nothing in the library prints,
 * exits, changes signal dispositions, the locale or the umask of the program. */
#ifndef ABX_CLIENT_H
#define ABX_CLIENT_H

#include <abx/error.h>
#include <abx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum abx_log_level {
    ABX_LOG_ERROR,
    ABX_LOG_WARN,
    ABX_LOG_INFO,
    ABX_LOG_DEBUG,
    ABX_LOG_TRACE /* one line for each protocol line, secrets redacted */
} abx_log_level;
/* Called from the client's thread and from its workers; must not call back into the client. */
typedef void (*abx_log_fn)(void *user, abx_log_level level, const char *component, const char *line);

typedef struct abx_client_opts {
    size_t size;                 /* sizeof this struct, set by ABX_CLIENT_OPTS_INIT */
    const char *home;            /* NULL: $ABX_HOME, else ~/.abx                    */
    const char *const *environ_; /* NULL: the process's, copied; NULL-ended         */
    const char *dotenv;          /* NULL: ./.env; "": none                          */
    int no_config;               /* 1: read no configuration file at all            */
    abx_log_fn log;              /* NULL: silence                                   */
    void *log_user;
    abx_log_level log_level;
    const char *host_name;       /* NULL: "libabx"; told to plugins and in receipts */
    /* Where contents of files go, so that a binding can hand them on uncopied: n + 1 writable
     * bytes and their owner (see abx_value_owner()), or NULL when there is no memory. Called
     * inside abx_pump(). NULL: memory of the library. */
    void *(*bytes_new)(size_t n, void **ret_owner);
    void (*bytes_free)(void *data, void *owner); /* in whatever thread drops the value */
} abx_client_opts;
#define ABX_CLIENT_OPTS_INIT { sizeof(abx_client_opts), NULL, NULL, NULL, 0, NULL, NULL, ABX_LOG_WARN, NULL, NULL, NULL }

/* No file is read here: a broken configuration is an error of the call that needs it. */
ABX_API ABX_MUST_CHECK int abx_client_new(abx_client **ret, const abx_client_opts *opts, abx_error **reterr);
ABX_API abx_client *abx_client_ref(abx_client *c);
/* Orderly end: each plugin is asked to shut down and waited for, at most grace_ms
 * (negative: the full ladder of the protocol). What is left is killed. Running ops
 * end as cancelled. Returns the number of plugins that had to be killed. */
ABX_API int abx_client_close(abx_client *c, int grace_ms);
/* The last unref without abx_client_close() kills the plugins at once. */
ABX_API abx_client *abx_client_unref(abx_client *c);

/* One descriptor stands for everything: pipes, children, timers. Watch it for
 * reading in any loop; when readable call abx_pump(c, 0), then abx_dispatch(c)
 * until it returns 0. */
ABX_API int abx_fd(abx_client *c);
/* Milliseconds until the next timer, -1 when there is none, 0 when callbacks wait
 * for abx_dispatch(). The timer is in abx_fd() too: only loops that want to save
 * the wake-up need this. */
ABX_API int abx_timeout_ms(abx_client *c);
/* Does I/O and advances the state machines; runs no user code. Waits at most
 * timeout_ms (-1: for ever) when nothing is ready. 0, or -errno. */
ABX_API int abx_pump(abx_client *c, int timeout_ms);
/* Runs the callbacks that are ready; how many. */
ABX_API int abx_dispatch(abx_client *c);
/* Makes abx_pump() in the client's thread return; the only call allowed from
 * another thread or from a signal handler. */
ABX_API void abx_wakeup(abx_client *c);

#ifdef __cplusplus
}
#endif
#endif
