/* The secrets of one provider: no text leaves without having passed here. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stddef.h>

#include "base/buf.h"

struct secret;
struct secrets {
    struct secret **list; /* longest first, each raw and as JSON escapes it */
    size_t len;
};

void secrets_done(struct secrets *s);
/* Any length >= 1. Values shorter than 4 bytes are replaced only as whole words
 * (not inside a longer run of letters and digits): else they would eat the text. */
int secrets_add(struct secrets *s, const char *value, size_t n);
/* Appends text to out with each secret as "***". */
int secrets_redact(const struct secrets *s, const char *text, size_t n, struct buf *out);
/* Foreign text, safe to show on one line: redacted, stripped of controls, and redacted again, for
 * a stripped control may have stood inside a secret. */
int secrets_clean(const struct secrets *s, const char *text, size_t n, struct buf *out);
/* A new string; NULL when out of memory. */
char *secrets_redact_str(const struct secrets *s, const char *text);

#endif
