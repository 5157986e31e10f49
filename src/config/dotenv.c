/* .env files, read and edited in place. */
#include "config/dotenv.h"

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct reader {
    const char *s;
    size_t n, at;
};

static bool blank(char c) { return c == ' ' || c == '\t'; }
static bool ends_line(char c) { return c == '\n' || c == '\r'; }

static void skip_blank(struct reader *r) {
    while (r->at < r->n && blank(r->s[r->at])) r->at++;
}

static size_t find_line_end(const struct reader *r, size_t from) {
    const char *nl = from < r->n ? memchr(r->s + from, '\n', r->n - from) : NULL;
    return nl ? (size_t)(nl - r->s) + 1 : r->n;
}

static bool key_char(char c, bool first) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* Reads a key; its length, 0 when there is none. */
static size_t read_key(struct reader *r) {
    size_t from = r->at;
    while (r->at < r->n && key_char(r->s[r->at], r->at == from)) r->at++;
    return r->at - from;
}

/* "export" and a space before the key. */
static void skip_export(struct reader *r) {
    if (r->n - r->at > 6 && memcmp(r->s + r->at, "export", 6) == 0 && blank(r->s[r->at + 6])) {
        r->at += 6;
        skip_blank(r);
    }
}

/* A text in quotes; false when it has no end. Single quotes know \' and \\ only. */
static bool read_quoted(struct reader *r, struct buf *out) {
    static const char from[] = "abfnrtv\"'\\", to[] = "\a\b\f\n\r\t\v\"'\\";
    char quote = r->s[r->at++];
    for (; r->at < r->n; r->at++) {
        char c = r->s[r->at];
        if (c == quote) {
            r->at++;
            return true;
        }
        char next = r->at + 1 < r->n ? r->s[r->at + 1] : '\0';
        const char *hit = c == '\\' && next ? strchr(quote == '"' ? from : "'\\", next) : NULL;
        if (hit) {
            buf_char(out, quote == '"' ? to[hit - from] : next);
            r->at++;
        } else {
            buf_char(out, c);
        }
    }
    return false;
}

/* Up to the end of the line or a comment behind a blank. */
static void read_bare(struct reader *r, struct buf *out) {
    size_t from = r->at, end = from;
    for (; r->at < r->n && !ends_line(r->s[r->at]); r->at++) {
        if (r->s[r->at] == '#' && (r->at == from || blank(r->s[r->at - 1]))) break;
        if (!blank(r->s[r->at])) end = r->at + 1;
    }
    r->at = end;
    buf_append(out, r->s + from, end - from);
}

/* The value, quotes and all; false when the line is not one. */
static bool read_value(struct reader *r, struct dotenv_entry *e, struct buf *out) {
    skip_blank(r);
    e->value_at = r->at;
    if (r->at < r->n && (r->s[r->at] == '"' || r->s[r->at] == '\'')) {
        if (!read_quoted(r, out)) return false;
    } else {
        read_bare(r, out);
    }
    e->value_end = r->at;
    skip_blank(r);
    return r->at == r->n || ends_line(r->s[r->at]) || r->s[r->at] == '#';
}

/* One assignment at the start of a line: 1, 0 when it is none, or -ENOMEM. */
static int read_entry(struct reader *r, struct dotenv_entry *e) {
    _cleanup_buf_ struct buf value = BUF_INIT(0);
    _cleanup_free_ char *key = NULL, *text = NULL;
    e->line = r->at;
    skip_blank(r);
    skip_export(r);
    size_t at = r->at, n = read_key(r);
    skip_blank(r);
    if (n == 0 || r->at == r->n || r->s[r->at] != '=') return 0;
    r->at++;
    buf_str(&value, "");
    if (!read_value(r, e, &value)) return 0;
    /* A NUL would cut the value short. */
    if (value.len && memchr(value.data, '\0', value.len)) return 0;
    key = strndup(r->s + at, n);
    text = buf_take(&value);
    if (!key || !text) return -ENOMEM;
    e->line_end = find_line_end(r, r->at);
    e->key = TAKE_PTR(key);
    e->value = TAKE_PTR(text);
    return 1;
}

int dotenv_parse(struct dotenv *ret, const char *text, size_t n) {
    _cleanup_(dotenv_done) struct dotenv d = {0};
    struct reader r = {text, n, 0};
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at = 3;
    while (r.at < r.n) {
        size_t start = r.at;
        struct dotenv_entry e = {0}, *grown;
        int found = read_entry(&r, &e);
        if (found < 0) return found;
        r.at = found ? e.line_end : find_line_end(&r, start);
        if (!found) continue;
        grown = reallocarray(d.entries, d.count + 1, sizeof *grown);
        if (!grown) {
            free(e.key);
            free(e.value);
            return -ENOMEM;
        }
        d.entries = grown;
        d.entries[d.count++] = e;
    }
    *ret = d;
    d = (struct dotenv){0};
    return 0;
}

void dotenv_done(struct dotenv *d) {
    for (size_t i = 0; i < d->count; i++) {
        free(d->entries[i].key);
        free(d->entries[i].value);
    }
    free(d->entries);
    *d = (struct dotenv){0};
}

static const struct dotenv_entry *find(const struct dotenv *d, const char *key) {
    for (size_t i = d->count; i > 0; i--)
        if (streq(d->entries[i - 1].key, key)) return &d->entries[i - 1];
    return NULL;
}

const char *dotenv_get(const struct dotenv *d, const char *key) {
    const struct dotenv_entry *e = find(d, key);
    return e ? e->value : NULL;
}

/* ---- edit ------------------------------------------------------------------------------ */

/* Single quotes: other readers expand $ in double ones. */
static void put_value(struct buf *out, const char *value) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-";
    if (*value && value[strspn(value, plain)] == '\0') {
        buf_str(out, value);
        return;
    }
    buf_char(out, '\'');
    for (; *value; value++) {
        if (*value == '\'' || *value == '\\') buf_char(out, '\\');
        buf_char(out, *value);
    }
    buf_char(out, '\'');
}

/* Whether after is before with just this change. */
static bool as_wanted(const struct dotenv *before, const struct dotenv *after, const char *key,
                      const char *value) {
    const char *got = dotenv_get(after, key);
    if (!streq0(got, value)) return false;
    size_t k = 0;
    for (size_t i = 0; i < before->count; i++) {
        if (streq(before->entries[i].key, key)) continue;
        while (k < after->count && streq(after->entries[k].key, key)) k++;
        if (k == after->count || !streq(before->entries[i].key, after->entries[k].key) ||
            !streq(before->entries[i].value, after->entries[k].value))
            return false;
        k++;
    }
    while (k < after->count && streq(after->entries[k].key, key)) k++;
    return k == after->count;
}

static void put_line(struct buf *out, const char *text, size_t n, const char *key,
                     const char *value) {
    const char *nl = n ? memchr(text, '\n', n) : NULL;
    const char *ending = nl && nl > text && nl[-1] == '\r' ? "\r\n" : "\n";
    buf_append(out, text, n);
    if (n && text[n - 1] != '\n') buf_str(out, ending);
    buf_printf(out, "%s=", key);
    put_value(out, value);
    buf_str(out, ending);
}

int dotenv_edit(const char *text, size_t n, const char *key, const char *value, char **ret) {
    _cleanup_(dotenv_done) struct dotenv before = {0}, after = {0};
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    int r = dotenv_parse(&before, text, n);
    if (r < 0) return r;
    const struct dotenv_entry *last = find(&before, key);
    buf_str(&out, "");
    if (value && last) {
        buf_append(&out, text, last->value_at);
        put_value(&out, value);
        buf_append(&out, text + last->value_end, n - last->value_end);
    } else if (value) {
        put_line(&out, text, n, key, value);
    } else {
        size_t done = 0;
        for (size_t i = 0; i < before.count; i++) {
            const struct dotenv_entry *e = &before.entries[i];
            if (!streq(e->key, key)) continue;
            buf_append(&out, text + done, e->line - done);
            done = e->line_end;
        }
        buf_append(&out, text + done, n - done);
    }
    if (out.err) return out.err;
    r = dotenv_parse(&after, out.data, out.len);
    if (r < 0) return r;
    if (!as_wanted(&before, &after, key, value)) return -ENOTSUP;
    char *edited = buf_take(&out);
    if (!edited) return -ENOMEM;
    *ret = edited;
    return 0;
}
