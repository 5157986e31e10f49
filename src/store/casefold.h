/* Case folding of names, so that two paths that are one on another file system are found. */
#ifndef STORE_CASEFOLD_H
#define STORE_CASEFOLD_H

#include "base/buf.h"

/* Appends the folded form of valid UTF-8; 0 or a negative errno of the buffer. */
int casefold(struct buf *out, const char *s, size_t n);

#endif
