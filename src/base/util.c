/* Time, random numbers, the environment, the log and the version. */
#include "base/util.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/utf8.h"

#ifndef ABX_VERSION
#define ABX_VERSION "0.1.0"
#endif

const char *abx_version_string(void) { return ABX_VERSION; }

uint32_t abx_version(void) {
    uint32_t v = 0, part = 0;
    int dots = 0;
    for (const char *p = ABX_VERSION; dots < 3; p++) {
        if (*p >= '0' && *p <= '9') {
            part = part * 10 + (uint32_t)(*p - '0');
            continue;
        }
        v = v << 8 | (part & 0xff);
        part = 0;
        dots++;
        if (*p != '.') break;
    }
    for (; dots < 3; dots++)
        v <<= 8;
    return v;
}

int64_t time_mono_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t time_mono_ms(void) { return time_mono_us() / 1000; }

/* Days since 1970 of a date in the Gregorian calendar, which repeats every 400 years. */
static int64_t days_of(int year, int month, int day) {
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

void time_rfc3339_now(char out[TIME_RFC3339]) {
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm)) memset(&tm, 0, sizeof(tm));
    /* The remainders change nothing but what the compiler knows of the length. */
    unsigned year = (unsigned)tm.tm_year + 1900, month = (unsigned)tm.tm_mon + 1;
    snprintf(out, TIME_RFC3339, "%04u-%02u-%02uT%02u:%02u:%02uZ", year % 10000, month % 100,
             (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
             (unsigned)tm.tm_sec % 100);
}

/* Reads exactly n digits, not above max, then the character after (0: any). */
static bool number(const char **s, int n, int max, char after, int *ret) {
    int v = 0;
    for (int i = 0; i < n; i++, ++*s) {
        if (**s < '0' || **s > '9') return false;
        v = v * 10 + (**s - '0');
    }
    if (v > max) return false;
    if (after && *(*s)++ != after) return false;
    *ret = v;
    return true;
}

static int days_in(int year, int month) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

int time_parse_rfc3339(const char *s, int64_t *ret_us) {
    int year, month, day, hour, minute, second, zone_hour = 0, zone_minute = 0, sign = 0;
    int64_t micro = 0;
    if (!number(&s, 4, 9999, '-', &year) || !number(&s, 2, 12, '-', &month) || month == 0 ||
        !number(&s, 2, days_in(year, month), 0, &day) || day == 0)
        return -EINVAL;
    if (*s != 'T' && *s != 't' && *s != ' ') return -EINVAL;
    s++;
    if (!number(&s, 2, 23, ':', &hour) || !number(&s, 2, 59, ':', &minute) ||
        !number(&s, 2, 60, 0, &second))
        return -EINVAL;
    if (*s == '.') {
        if (s[1] < '0' || s[1] > '9') return -EINVAL;
        int64_t unit = 100000;
        for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
            micro += (*s - '0') * unit;
    }
    if (*s == 'Z' || *s == 'z') {
        s++;
    } else if (*s == '+' || *s == '-') {
        sign = *s++ == '+' ? 1 : -1;
        if (!number(&s, 2, 23, ':', &zone_hour) || !number(&s, 2, 59, 0, &zone_minute))
            return -EINVAL;
    }
    if (*s) return -EINVAL;
    int64_t t = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
                sign * (zone_hour * 3600 + zone_minute * 60);
    *ret_us = t * 1000000 + micro;
    return 0;
}

int random_bytes(void *out, size_t n) {
    char *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -errno;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

const char *env_get(const char *const *env, const char *name) {
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') return *env + n + 1;
    return NULL;
}

static int passwd_home(char **ret) {
    for (size_t size = 1024; size <= 1024 * 1024; size *= 4) {
        _cleanup_free_ char *space = malloc(size);
        if (!space) return -ENOMEM;
        struct passwd pw, *found = NULL;
        int r = getpwuid_r(getuid(), &pw, space, size, &found);
        if (r == ERANGE) continue;
        if (r) return -r;
        if (!found || !found->pw_dir || found->pw_dir[0] != '/') return -ENOENT;
        char *home = strdup(found->pw_dir);
        if (!home) return -ENOMEM;
        *ret = home;
        return 0;
    }
    return -ERANGE;
}

/* An absolute path without slashes at its end. */
static int absolute(const char *path, char **ret) {
    if (path[0] != '/') return -EINVAL;
    _cleanup_free_ char *out = strdup(path);
    if (!out) return -ENOMEM;
    for (size_t n = strlen(out); n > 1 && out[n - 1] == '/'; n--)
        out[n - 1] = '\0';
    *ret = TAKE_PTR(out);
    return 0;
}

int env_abx_home(const char *const *env, char **ret) {
    const char *own = env_get(env, "ABX_HOME");
    if (own && *own) return absolute(own, ret);
    _cleanup_free_ char *looked_up = NULL;
    const char *home = env_get(env, "HOME");
    if (!home || !*home) {
        int r = passwd_home(&looked_up);
        if (r < 0) return r;
        home = looked_up;
    }
    _cleanup_free_ char *dir = path_join(home, ".abx");
    return dir ? absolute(dir, ret) : -ENOMEM;
}

void log_line(const struct logger *l, abx_log_level level, const char *component, const char *fmt,
              ...) {
    if (!log_on(l, level)) return;
    _cleanup_buf_ struct buf text = BUF_INIT(0);
    _cleanup_buf_ struct buf line = BUF_INIT(0);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (!buf_cstr(&text) || utf8_sanitize(&line, text.data, text.len, false) < 0) return;
    const char *s = buf_cstr(&line);
    if (s) l->fn(l->user, level, component ? component : "abx", s);
}
