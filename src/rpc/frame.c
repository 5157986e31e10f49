/* Lines out of a byte stream, in a buffer that grows with the line and shrinks after it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/rpc.h"

#define FRAME_MIN (4 * KIB)
/* Times a large buffer is found empty before it is given back: large lines come in rows. */
#define FRAME_PATIENCE 64

void frame_done(struct frame *f) {
    free(f->data);
    *f = (struct frame){0};
}

size_t frame_pending(const struct frame *f) { return f->end - f->start; }

/* Moves what is left to the front; gives a large buffer back once it is not needed. */
static int make_room(struct frame *f) {
    size_t used = f->end - f->start;
    if (f->start > 0) {
        memmove(f->data, f->data + f->start, used);
        f->scanned -= f->start;
        f->end = used;
        f->start = 0;
    }
    size_t want = f->cap ? f->cap : FRAME_MIN;
    if (used == 0 && f->cap > 2 * LIMIT_READ_CHUNK && ++f->idle > FRAME_PATIENCE) {
        want = LIMIT_READ_CHUNK;
        f->idle = 0;
    }
    while (want - JSON_PADDING - used < want / 4) want *= 2;
    if (want == f->cap) return 0;
    char *data = realloc(f->data, want);
    if (!data) return -ENOMEM;
    f->data = data;
    f->cap = want;
    return 0;
}

long frame_read(struct frame *f, int fd) {
    if (f->start == f->end || !f->cap || f->cap - JSON_PADDING - f->end < f->cap / 4) {
        int r = make_room(f);
        if (r < 0) return r;
    }
    size_t room = f->cap - JSON_PADDING - f->end;
    ssize_t n;
    do
        n = read(fd, f->data + f->end, room);
    while (n < 0 && errno == EINTR);
    if (n < 0) return -errno;
    f->end += (size_t)n;
    /* The parser looks at what is behind a line without minding it; checkers of memory do. */
    memset(f->data + f->end, 0, JSON_PADDING);
    /* A full read says that more waits: the next one may be larger. */
    if ((size_t)n == room && f->cap < LIMIT_READ_CHUNK) {
        char *data = realloc(f->data, f->cap * 2);
        if (data) {
            f->data = data;
            f->cap *= 2;
        }
    }
    return n;
}

int frame_next(struct frame *f, const char **ret, size_t *ret_len) {
    for (;;) {
        char *from = f->data + f->scanned;
        char *nl = f->end > f->scanned ? memchr(from, '\n', f->end - f->scanned) : NULL;
        if (!nl) {
            f->scanned = f->end;
            return f->end - f->start > LIMIT_LINE ? -EMSGSIZE : 0;
        }
        char *line = f->data + f->start;
        size_t len = (size_t)(nl - line);
        f->start = f->scanned = (size_t)(nl + 1 - f->data);
        if (len > LIMIT_LINE) return -EMSGSIZE;
        if (len > 2 * LIMIT_READ_CHUNK) f->idle = 0;
        if (len > 0 && line[len - 1] == '\r') len--;
        if (len == 0) continue;
        *ret = line;
        *ret_len = len;
        return 1;
    }
}
