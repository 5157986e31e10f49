/* JSON as far as a plugin needs it: raw slices are cut out of the line, strings decoded, text escaped. */
#ifndef JSON_H
#define JSON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct json {
    const char *p; /* NULL: there is no such value */
    size_t n;
};

static const char *json_space(const char *p, const char *end) {
    while (p < end && strchr(" \t\r\n", *p)) p++;
    return p;
}

/* Past the value that starts at p; NULL when it is broken or nested too deeply. */
static const char *json_skip(const char *p, const char *end, int depth) {
    if (p >= end || depth > 100) return NULL;
    if (*p == '"') {
        for (p++; p < end && *p != '"'; p++)
            if (*p == '\\') p++;
        return p < end ? p + 1 : NULL;
    }
    if (*p != '{' && *p != '[') {
        const char *start = p;
        while (p < end && !strchr(",]} \t\r\n", *p)) p++;
        return p > start ? p : NULL;
    }
    char open = *p, close = open == '{' ? '}' : ']';
    p = json_space(p + 1, end);
    if (p < end && *p == close) return p + 1;
    for (;;) {
        if (open == '{') { /* the name */
            if (p >= end || *p != '"' || !(p = json_skip(p, end, depth + 1))) return NULL;
            p = json_space(p, end);
            if (p >= end || *p != ':') return NULL;
            p = json_space(p + 1, end);
        }
        if (!(p = json_skip(p, end, depth + 1))) return NULL;
        p = json_space(p, end);
        if (p >= end || (*p != ',' && *p != close)) return NULL;
        if (*p == close) return p + 1;
        p = json_space(p + 1, end);
    }
}

/* Walks an array or an object that json_skip() has passed: *at starts at NULL; 0 at the end. */
static int json_each(struct json all, const char **at, struct json *name, struct json *value) {
    const char *end = all.p + all.n, *p = *at;
    if (!all.p || (*all.p != '{' && *all.p != '[')) return 0;
    p = json_space(p ? p : all.p + 1, end);
    if (*p == ',') p = json_space(p + 1, end);
    if (*p == '}' || *p == ']') return 0;
    if (*all.p == '{') {
        const char *past = json_skip(p, end, 0);
        if (name) *name = (struct json){p, (size_t)(past - p)};
        p = json_space(json_space(past, end) + 1, end);
    }
    *at = json_skip(p, end, 0);
    *value = (struct json){p, (size_t)(*at - p)};
    return 1;
}

/* A member of an object; null counts as missing. */
static struct json json_get(struct json object, const char *key) {
    struct json name, value;
    size_t n = strlen(key);
    if (!object.p || *object.p != '{') return (struct json){NULL, 0};
    for (const char *at = NULL; json_each(object, &at, &name, &value);)
        if (name.n == n + 2 && memcmp(name.p + 1, key, n) == 0)
            return *value.p == 'n' ? (struct json){NULL, 0} : value;
    return (struct json){NULL, 0};
}

/* The code unit of "\uXXXX" at p, or -1. */
static long json_unit(const char *p, const char *end) {
    long c = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *d = p[i] ? strchr(digits, p[i] | 0x20) : NULL;
        if (!d || (p[i] < '0') || (p[i] > '9' && p[i] < 'A')) return -1;
        c = c * 16 + (d - digits);
    }
    return c;
}

/* The escape at *p, which is passed; -1 when it is broken or half a surrogate pair. */
static long json_escape(const char **p, const char *end) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = end - *p > 1 && (*p)[1] ? strchr(from, (*p)[1]) : NULL;
    long c = known ? to[known - from] : json_unit(*p, end), low = 0;
    int pair = !known && c >= 0xd800 && c < 0xe000;
    *p += known ? 2 : 6;
    if (!pair) return c;
    low = json_unit(*p, end);
    *p += 6;
    return c < 0xdc00 && low >= 0xdc00 && low < 0xe000 ? 0x10000 + (c - 0xd800) * 0x400 + low - 0xdc00 : -1;
}

/* The decoded string, to be freed; NULL when it is not one, or not a C string. */
static char *json_string(struct json v) {
    if (!v.p || v.n < 2 || *v.p != '"') return NULL;
    const char *p = v.p + 1, *end = v.p + v.n - 1;
    char *out = malloc(v.n), *o = out;
    while (out && p < end) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        long c = json_escape(&p, end);
        if (c <= 0) {
            free(out);
            return NULL;
        }
        int more = c >= 0x10000 ? 3 : c >= 0x800 ? 2 : c >= 0x80 ? 1 : 0;
        *o++ = (char)(more ? (0xff00 >> (more + 1) & 0xff) | c >> 6 * more : c);
        while (more-- > 0) *o++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    if (out) *o = '\0';
    return out;
}

static long json_long(struct json v, long fallback) {
    char *past;
    long n = v.p ? strtol(v.p, &past, 10) : 0;
    return v.p && past == v.p + v.n ? n : fallback;
}

/* The length of the UTF-8 character at p, or 0. */
static size_t utf8_char(const unsigned char *p, size_t n) {
    size_t len = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
    if (len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f)) return 0; /* overlong, surrogates */
    if ((*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) return 0;
    return len;
}

/* Writes bytes as a JSON string; what is not UTF-8 becomes U+FFFD. */
static void json_put(FILE *out, const char *text, size_t n) {
    putc('"', out);
    for (size_t len; n > 0; text += len, n -= len) {
        size_t valid = utf8_char((const unsigned char *)text, n);
        len = valid ? valid : 1;
        if (!valid)
            fputs("\\ufffd", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (len == 1 && (unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fwrite(text, 1, len, out);
    }
    putc('"', out);
}

#endif
