/* A streamed command of a case: what it wrote so far, and how it ended. */
#ifndef CONTRACT_STREAM_H
#define CONTRACT_STREAM_H

#include "base/buf.h"
#include "contract/test.h"

struct stream {
    struct ui_call call;
    char *pid; /* process_id; NULL before it started */
    struct buf out, err;
    int exits, exit_code;
    bool late; /* something came after the exit */
};
void stream_done(struct stream *s); /* a command that runs is given up */
#define _cleanup_stream_ _cleanup_(stream_done)

/* Starts argv with a limit of timeout_s (0: none); false when the case is over. */
bool stream_start(struct test *t, struct stream *s, abx_sandbox *sb, const char *const *argv, int64_t timeout_s);
bool stream_started(struct test *t, struct stream *s);                 /* until it has a process_id */
bool stream_wrote(struct test *t, struct stream *s, const char *text); /* until stdout has text, or it ended */
bool stream_end(struct test *t, struct stream *s);                     /* until it ended, well */
static inline _unused_ abx_bytes stream_bytes(const struct buf *b) { return (abx_bytes){(const uint8_t *)b->data, b->len}; }

#endif
