/* A growing byte buffer with a hard maximum. Appending fails once and stays failed
 * (buf.err), so that writers append freely and check the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf {
    char *data;
    size_t len, cap;
    size_t max; /* 0: none; over it err becomes -EMSGSIZE */
    int err;    /* 0, -ENOMEM or -EMSGSIZE */
};
#define BUF_INIT(max_) ((struct buf){.max = (max_)})

void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* length 0, err 0, storage kept */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_str(struct buf *b, const char *s);
int buf_char(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) _printf_(2, 0);
/* Room for n more bytes; the place to write them, or NULL. buf_commit() takes them in. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drops n bytes at the front */
/* NUL-terminated contents, moved out; NULL when out of memory or failed. */
char *buf_take(struct buf *b);
const char *buf_cstr(struct buf *b); /* NUL-terminated, borrowed; NULL when failed */

#define _cleanup_buf_ _cleanup_(buf_done)
#endif
