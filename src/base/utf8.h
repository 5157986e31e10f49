/* UTF-8: check it, cut it, and make foreign text safe to show. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

bool utf8_valid(const void *s, size_t n); /* no surrogates, no overlong forms; NUL allowed */
/* Decodes one code point; its length, or 0 when s does not start with a valid one. */
size_t utf8_decode(const void *s, size_t n, uint32_t *ret);
size_t utf8_encode(uint32_t cp, char out[4]);
/* How many bytes at the end of s are the start of a character not finished yet (0..3). */
size_t utf8_incomplete_tail(const void *s, size_t n);
/* Appends foreign text: ANSI sequences (CSI, OSC, DCS …) removed whole, C0, DEL, C1, bidi
 * controls, zero-width and line separators removed; tab and newline become a space unless
 * keep_newlines (then newline stays and tab is a space). Invalid bytes become U+FFFD. */
int utf8_sanitize(struct buf *out, const void *s, size_t n, bool keep_newlines);
char *utf8_sanitize_str(const char *s); /* one line; NULL when out of memory */
/* Columns a terminal uses for valid UTF-8. */
size_t utf8_width(const char *s);

#endif
