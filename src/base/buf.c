/* The growing byte buffer: doubling storage, one sticky error. */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b) {
    if (!b) return;
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
    b->err = 0;
}

void buf_reset(struct buf *b) {
    b->len = 0;
    b->err = 0;
}

/* Makes room for n more bytes and a NUL; the NUL does not count against max. */
static int grow(struct buf *b, size_t n) {
    if (b->err) return b->err;
    if (b->max && (b->len > b->max || n > b->max - b->len)) return b->err = -EMSGSIZE;
    if (n >= SIZE_MAX / 2 - b->len) return b->err = -ENOMEM;
    size_t need = b->len + n + 1;
    if (need <= b->cap) return 0;

    size_t cap = MAX_OF(b->cap * 2, (size_t)64);
    if (b->max && cap > b->max) cap = b->max + 1;
    cap = MAX_OF(cap, need);
    char *data = realloc(b->data, cap);
    if (!data) return b->err = -ENOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t n) {
    if (grow(b, n) < 0) return b->err;
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    return 0;
}

int buf_str(struct buf *b, const char *s) { return buf_append(b, s, strlen(s)); }

int buf_char(struct buf *b, char c) {
    if (grow(b, 1) < 0) return b->err;
    b->data[b->len++] = c;
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
    if (grow(b, 0) < 0) return b->err;
    va_list again;
    va_copy(again, ap);
    size_t room = b->cap - b->len;
    int n = vsnprintf(b->data + b->len, room, fmt, ap);
    if (n < 0) {
        b->err = errno == ENOMEM ? -ENOMEM : -EMSGSIZE;
    } else if (grow(b, (size_t)n) == 0) {
        if ((size_t)n >= room) vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return b->err;
}

char *buf_reserve(struct buf *b, size_t n) { return grow(b, n) < 0 ? NULL : b->data + b->len; }

void buf_commit(struct buf *b, size_t n) { b->len += n; }

void buf_consume(struct buf *b, size_t n) {
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    if (n == 0) return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

char *buf_take(struct buf *b) {
    if (!buf_cstr(b)) return NULL;
    b->len = b->cap = 0;
    return TAKE_PTR(b->data);
}

const char *buf_cstr(struct buf *b) {
    if (grow(b, 0) < 0) return NULL;
    b->data[b->len] = '\0';
    return b->data;
}
