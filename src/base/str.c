/* Small string helpers. */
#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>

#include "base/buf.h"

/* Longest strings compared for a suggestion: no id or key comes near. */
#define DISTANCE_MAX 64

bool str_starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool str_blank(const char *s) { return !s || s[strspn(s, " \t\r\n\v\f")] == '\0'; }

char *str_printf(const char *fmt, ...) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return buf_take(&b);
}

char *str_upper_env(const char *s) {
    char *out = strdup(s);
    if (!out) return NULL;
    for (char *p = out; *p; p++) {
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
        else if (!(*p >= 'A' && *p <= 'Z') && !(*p >= '0' && *p <= '9'))
            *p = '_';
    }
    return out;
}

size_t str_distance(const char *a, const char *b) {
    size_t n = strnlen(a, DISTANCE_MAX + 1), m = strnlen(b, DISTANCE_MAX + 1);
    if (n > DISTANCE_MAX || m > DISTANCE_MAX) return SIZE_MAX;
    size_t rows[3][DISTANCE_MAX + 1];
    size_t *before = rows[0], *prev = rows[1], *cur = rows[2];
    for (size_t j = 0; j <= m; j++)
        prev[j] = j;
    for (size_t i = 1; i <= n; i++) {
        cur[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = prev[j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN_OF(best, prev[j] + 1);
            best = MIN_OF(best, cur[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN_OF(best, before[j - 2] + 1);
            cur[j] = best;
        }
        size_t *spare = before;
        before = prev;
        prev = cur;
        cur = spare;
    }
    return prev[m];
}

const char *str_nearest(const char *s, const char *const *list) {
    if (!list) return NULL;
    size_t n = strlen(s);
    /* A third of the letters wrong is a typo, more is another word. */
    size_t limit = n < 2 ? 0 : n < 6 ? 1 : MIN_OF(n / 3, (size_t)3);
    const char *best = NULL;
    size_t best_distance = limit + 1;
    for (; *list; list++) {
        size_t d = str_distance(s, *list);
        if (d < best_distance) {
            best = *list;
            best_distance = d;
        }
    }
    return best;
}

int str_to_i64(const char *s, long long *ret) {
    bool minus = *s == '-';
    if (minus) s++;
    if (!*s) return -EINVAL;
    long long v = 0;
    bool over = false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return -EINVAL;
        int digit = *s - '0';
        /* Counted downwards: the smallest number has no positive twin. */
        over |= __builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v);
    }
    if (over || (!minus && v == INT64_MIN)) return -ERANGE;
    *ret = minus ? v : -v;
    return 0;
}

/* [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent. */
static bool decimal(const char *s) {
    if (*s == '-' || *s == '+') s++;
    size_t whole = strspn(s, "0123456789"), part = 0;
    s += whole;
    if (*s == '.') {
        part = strspn(++s, "0123456789");
        s += part;
    }
    if (whole + part == 0) return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '-' || *s == '+') s++;
        size_t n = strspn(s, "0123456789");
        if (n == 0) return false;
        s += n;
    }
    return *s == '\0';
}

int str_to_double(const char *s, double *ret) {
    if (!decimal(s)) return -EINVAL;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return -ENOMEM;
    double v = strtod_l(s, NULL, c);
    freelocale(c);
    if (!isfinite(v)) return -ERANGE;
    *ret = v;
    return 0;
}
