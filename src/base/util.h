/* Time, random numbers, the environment as a list, and the log. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <abx/client.h>
#include <stdint.h>

#include "base/cleanup.h"

int64_t time_mono_ms(void);
int64_t time_mono_us(void);
#define TIME_RFC3339 32
void time_rfc3339_now(char out[TIME_RFC3339]); /* "2026-11-30T02:23:49Z" */
/* RFC 3339; no zone means UTC. Microseconds since the epoch, or -EINVAL. */
int time_parse_rfc3339(const char *s, int64_t *ret_us);
int random_bytes(void *out, size_t n);

/* The value of name in a NULL-ended NAME=VALUE list, or NULL. */
const char *env_get(const char *const *env, const char *name);
/* $ABX_HOME, else ~/.abx of $HOME, else of the passwd entry. 0 or -errno; -EINVAL: it is not absolute, and
 * what is kept in it must not depend on the working directory. */
int env_abx_home(const char *const *env, char **ret);

struct logger {
    abx_log_fn fn;
    void *user;
    abx_log_level level;
};
static inline _unused_ int log_on(const struct logger *l, abx_log_level level) {
    return l && l->fn && level <= l->level;
}
void log_line(const struct logger *l, abx_log_level level, const char *component, const char *fmt, ...)
    _printf_(4, 5);

#endif
