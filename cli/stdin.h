/* Standard input in chunks that never cut a character: the protocol carries text. */
#ifndef CLI_STDIN_H
#define CLI_STDIN_H

#include <abx/base.h>
#include <stdbool.h>

#include "base/buf.h"

struct stdin_reader {
    struct buf buf;
    size_t given; /* bytes of the last chunk, dropped at the next read */
    bool end;
};
/* Reads once. 1: *ret is a chunk, borrowed until the next call; 0: nothing yet, or the end when
 * rd->end; -errno (-EINTR after a signal). */
int stdin_read(struct stdin_reader *rd, abx_bytes *ret);

#endif
