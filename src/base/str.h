/* Small string helpers, and lists of strings (NULL-ended, each owned). */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static inline _unused_ bool streq(const char *a, const char *b) { return strcmp(a, b) == 0; }
static inline _unused_ bool streq0(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
bool str_blank(const char *s); /* NULL, empty or white space only */
char *str_printf(const char *fmt, ...) _printf_(1, 2);
char *str_upper_env(const char *s); /* "my-cloud" -> "MY_CLOUD" */
/* Levenshtein distance with swaps, for "did you mean"; SIZE_MAX on long input. */
size_t str_distance(const char *a, const char *b);
/* The nearest of a NULL-ended list, when near enough to be a typo; else NULL. */
const char *str_nearest(const char *s, const char *const *list);
/* Whole-string numbers, no locale, no white space. */
int str_to_i64(const char *s, long long *ret); /* 0 or -EINVAL, -ERANGE */
int str_to_double(const char *s, double *ret); /* finite only */

char **strv_free(char **v); /* always NULL */
size_t strv_len(char *const *v);
int strv_append(char ***v, const char *s); /* copies */
int strv_take(char ***v, char *s);         /* owns s, also on failure; NULL s: -ENOMEM */
bool strv_contains(char *const *v, const char *s);
char **strv_copy(const char *const *v);
void strv_sort(char **v); /* by bytes */
static inline _unused_ void strv_freep(char ***v) { strv_free(*v); }
#define _cleanup_strv_ _cleanup_(strv_freep)

#endif
