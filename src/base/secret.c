/* Secrets of one provider, and text without them. */
#include "base/secret.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* Below this a value is replaced as a whole word only. */
#define SHORT 4
/* A line of a secret of many lines is a secret of its own from here on: a key comes out of a
 * log line by line, while a brace on its own line says nothing. */
#define LINE_MIN 16
#define STARS "***"

struct secret {
    size_t n;
    char text[]; /* with NUL, may hold others */
};

/* How the writers of JSON differ. */
enum { ASCII = 1, UPPER = 2, SLASH = 4, HTML = 8 };

void secrets_done(struct secrets *s) {
    if (!s) return;
    for (size_t i = 0; i < s->len; i++) {
        explicit_bzero(s->list[i]->text, s->list[i]->n);
        free(s->list[i]);
    }
    free(s->list);
    *s = (struct secrets){0};
}

static int add(struct secrets *s, const char *text, size_t n) {
    size_t at = s->len;
    for (size_t i = 0; i < s->len; i++) {
        if (s->list[i]->n == n && memcmp(s->list[i]->text, text, n) == 0) return 0;
        if (s->list[i]->n < n && at == s->len) at = i;
    }
    struct secret **list = realloc(s->list, (s->len + 1) * sizeof(*list));
    if (!list) return -ENOMEM;
    s->list = list;
    struct secret *one = malloc(sizeof(*one) + n + 1);
    if (!one) return -ENOMEM;
    one->n = n;
    memcpy(one->text, text, n);
    one->text[n] = '\0';
    memmove(list + at + 1, list + at, (s->len - at) * sizeof(*list));
    list[at] = one;
    s->len++;
    return 0;
}

static void unicode(struct buf *b, uint32_t unit, unsigned how) {
    buf_printf(b, how & UPPER ? "\\u%04X" : "\\u%04x", unit);
}

/* value as the inside of a JSON string. */
static void escape(struct buf *b, const char *value, size_t n, unsigned how) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = utf8_decode(value + i, n - i, &cp);
        const char *named = len == 1 && cp ? strchr(from, (int)cp) : NULL;
        if (named) {
            buf_char(b, '\\');
            buf_char(b, to[named - from]);
        } else if (len == 1 && cp == '/' && (how & SLASH)) {
            buf_str(b, "\\/");
        } else if (len == 1 && (cp < 0x20 || ((how & HTML) && memchr("<>&", (int)cp, 3)))) {
            unicode(b, cp, how);
        } else if (len > 1 && (how & ASCII)) {
            if (cp > 0xffff) unicode(b, 0xd800 + ((cp - 0x10000) >> 10), how);
            unicode(b, cp > 0xffff ? 0xdc00 + (cp & 0x3ff) : cp, how);
        } else {
            buf_append(b, value + i, MAX_OF(len, (size_t)1));
        }
        i += MAX_OF(len, (size_t)1);
    }
}

static void buf_wipe(struct buf *b) {
    if (b->data) explicit_bzero(b->data, b->cap);
    buf_done(b);
}

static bool space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Cuts white space off both ends. */
static void trim(const char **p, size_t *n) {
    while (*n && space((*p)[0]))
        ++*p, --*n;
    while (*n && space((*p)[*n - 1]))
        --*n;
}

/* The value in every form it may come back in. */
static int add_forms(struct secrets *s, const char *value, size_t n) {
    static const unsigned ways[] = {0,     HTML,          SLASH,
                                    ASCII, ASCII | UPPER, ASCII | SLASH, ASCII | UPPER | SLASH};
    int r = add(s, value, n);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ways); i++) {
        _cleanup_(buf_wipe) struct buf b = BUF_INIT(0);
        escape(&b, value, n, ways[i]);
        r = b.err ? b.err : add(s, b.data, b.len);
    }
    if (r == 0) {
        /* Most text is sanitised before it comes here. */
        _cleanup_(buf_wipe) struct buf b = BUF_INIT(0);
        utf8_sanitize(&b, value, n, false);
        const char *shown = b.data;
        size_t shown_n = b.len;
        trim(&shown, &shown_n);
        r = b.err;
        if (r == 0 && shown_n) r = add(s, shown, shown_n);
    }
    return r;
}

int secrets_add(struct secrets *s, const char *value, size_t n) {
    /* White space around it is no secret, and a value read from a file ends in a newline that
     * messages lose. A blank one has nothing to hide, and would spoil everything. */
    trim(&value, &n);
    int r = n ? add_forms(s, value, n) : 0;
    while (r == 0 && n) {
        const char *end = memchr(value, '\n', n), *line = value;
        size_t line_n = end ? (size_t)(end - value) : n;
        value += line_n + (end != NULL);
        n -= line_n + (end != NULL);
        trim(&line, &line_n);
        if (line_n >= LINE_MIN) r = add_forms(s, line, line_n);
    }
    return r;
}

/* A letter or a digit; what is not ASCII counts as one. */
static bool word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80;
}

/* The length of the longest secret at text[at], or 0. */
static size_t match(const struct secrets *s, const char *text, size_t n, size_t at) {
    for (size_t i = 0; i < s->len; i++) {
        const struct secret *one = s->list[i];
        if (one->n > n - at || memcmp(text + at, one->text, one->n) != 0) continue;
        size_t end = at + one->n;
        if (one->n < SHORT) {
            if (at > 0 && word(text[at]) && word(text[at - 1])) continue;
            if (end < n && word(text[end - 1]) && word(text[end])) continue;
        }
        return one->n;
    }
    return 0;
}

int secrets_redact(const struct secrets *s, const char *text, size_t n, struct buf *out) {
    if (!s || s->len == 0) return buf_append(out, text, n);
    bool first[256] = {false};
    for (size_t i = 0; i < s->len; i++)
        first[(unsigned char)s->list[i]->text[0]] = true;

    size_t plain = 0, i = 0;
    while (i < n) {
        size_t len = first[(unsigned char)text[i]] ? match(s, text, n, i) : 0;
        if (len == 0) {
            i++;
            continue;
        }
        buf_append(out, text + plain, i - plain);
        buf_str(out, STARS);
        /* One that begins inside another and goes on after it: its end is secret too. */
        size_t end = i + len;
        for (i++; i < end; i++)
            if (first[(unsigned char)text[i]]) end = MAX_OF(end, i + match(s, text, n, i));
        plain = i;
    }
    return buf_append(out, text + plain, n - plain);
}

char *secrets_redact_str(const struct secrets *s, const char *text) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    secrets_redact(s, text, strlen(text), &b);
    return buf_take(&b);
}

int secrets_clean(const struct secrets *s, const char *text, size_t n, struct buf *out) {
    _cleanup_buf_ struct buf red = BUF_INIT(0), clean = BUF_INIT(0);
    secrets_redact(s, text, n, &red);
    utf8_sanitize(&clean, red.data, red.len, false);
    if (red.err || clean.err) return red.err ? red.err : clean.err;
    return secrets_redact(s, clean.data, clean.len, out);
}
