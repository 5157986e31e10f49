/* abx/op.h: one call in flight, and the one way of completion.
 *
 * An op ends exactly once and never inside the call that started it. Poll it,
 * wait for it, or be notified from abx_dispatch(). */
#ifndef ABX_OP_H
#define ABX_OP_H

#include <abx/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum abx_op_state { ABX_OP_RUNNING, ABX_OP_DONE, ABX_OP_FAILED, ABX_OP_CANCELLED } abx_op_state;

typedef enum abx_event_type {
    ABX_EVENT_NONE,
    ABX_EVENT_STARTED,  /* value: {"process_id": …}: the process of a stream is named */
    ABX_EVENT_STDOUT,   /* bytes                                                      */
    ABX_EVENT_STDERR,   /* bytes                                                      */
    ABX_EVENT_PTY,      /* bytes                                                      */
    ABX_EVENT_FS,       /* value                                                      */
    ABX_EVENT_PROGRESS, /* value                                                      */
    ABX_EVENT_EXIT      /* exit_code; value has "signal" when one ended it            */
} abx_event_type;

typedef struct abx_event {
    size_t size;
    abx_event_type type;
    abx_bytes bytes;
    int exit_code;
    const abx_value *value;
} abx_event;

/* Called from abx_dispatch() only, never from the call that started the op,
 * never from abx_pump() or abx_op_wait(). It says "look": new events or an end.
 * The op may be unref'd inside. */
typedef void (*abx_notify_fn)(abx_op *op, void *user);
ABX_API void abx_op_set_notify(abx_op *op, abx_notify_fn fn, void *user, void (*free_user)(void *));

ABX_API abx_op_state abx_op_poll(abx_op *op);
/* 1: an event, borrowed until the next call; 0: none now; -1: none any more. While
 * events are not taken the plugin is held back once the bound of the op is reached. */
ABX_API int abx_op_next(abx_op *op, abx_event *ret);
/* Pumps until an event can be taken or the op has ended: 1, or 0 on timeout. */
ABX_API int abx_op_wait_event(abx_op *op, int timeout_ms);
/* Pumps until the op has ended: 1, or 0 on timeout (-1: no limit). An op whose
 * events nobody takes does not end once its bound is reached. */
ABX_API int abx_op_wait(abx_op *op, int timeout_ms);
/* Asks for an end: $/cancel to the plugin, a stop for local work. The op ends
 * once, as cancelled or with the real result when that was faster. */
ABX_API void abx_op_cancel(abx_op *op);
ABX_API const abx_value *abx_op_value(abx_op *op);        /* borrowed; NULL unless DONE   */
ABX_API abx_error *abx_op_error(abx_op *op);              /* borrowed; NULL unless FAILED or CANCELLED */
ABX_API abx_sandbox *abx_op_take_sandbox(abx_op *op);     /* create, connect: ownership moves */
ABX_API abx_op *abx_op_ref(abx_op *op);
ABX_API abx_op *abx_op_unref(abx_op *op);                 /* dropping a running op cancels it; NULL */

/* The synchronous form of any *_start: waits, hands out the value with a reference of
 * its own (ret may be NULL) or the error, and releases *op. Events are thrown away. */
ABX_API ABX_MUST_CHECK int abx_op_finish(abx_op **op, abx_value **ret, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
