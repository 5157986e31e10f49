/* The lexical side of TOML: strings, comments, brackets, keys. */
#include "toml/scan.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"

static bool at_char(struct toml_text t, size_t i, char c) {
    return i < t.n && t.s[i] == c;
}

size_t toml_skip_blank(struct toml_text t, size_t i) {
    while (i < t.n && (t.s[i] == ' ' || t.s[i] == '\t')) i++;
    return i;
}

/* To the newline, which is not passed. */
static size_t skip_comment(struct toml_text t, size_t i) {
    const char *nl = i < t.n ? memchr(t.s + i, '\n', t.n - i) : NULL;
    return nl ? (size_t)(nl - t.s) : t.n;
}

static bool is_triple(struct toml_text t, size_t i, char q) {
    return at_char(t, i, q) && at_char(t, i + 1, q) && at_char(t, i + 2, q);
}

/* Behind a string that starts at i; one without an end goes to the end of its line or text. */
static size_t skip_string(struct toml_text t, size_t i) {
    char q = t.s[i];
    bool multi = is_triple(t, i, q);
    for (i += multi ? 3 : 1; i < t.n; i++) {
        if (t.s[i] == '\\' && q == '"') {
            i++;
        } else if (multi && is_triple(t, i, q)) {
            /* One or two more quotes belong to the contents. */
            for (int more = 0; more < 2 && at_char(t, i + 3, q); more++) i++;
            return i + 3;
        } else if (!multi && t.s[i] == q) {
            return i + 1;
        } else if (!multi && t.s[i] == '\n') {
            return i;
        }
    }
    return t.n;
}

static bool starts_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-\"'", c);
}

/* Behind the brackets of a table header comes a key: toml++ takes it for granted. */
static bool names_table(struct toml_text t, size_t i) {
    for (int brackets = 0; brackets < 2 && at_char(t, i, '['); brackets++) i++;
    while (at_char(t, i, ' ') || at_char(t, i, '\t')) i++;
    return i < t.n && t.s[i] && starts_key(t.s[i]);
}

const char *toml_guard(struct toml_text t, size_t *ret_at) {
    size_t depth = 0, dots = 0;
    bool fresh = true; /* nothing but blanks on this line so far */
    for (size_t i = 0; i < t.n; i++) {
        if (fresh && depth == 0 && t.s[i] == '[' && !names_table(t, i)) {
            *ret_at = i;
            return "a table header has no name";
        }
        fresh = t.s[i] == '\n' || (fresh && (t.s[i] == ' ' || t.s[i] == '\t' || t.s[i] == '\r'));
        switch (t.s[i]) {
        case '"':
        case '\'':
            i = skip_string(t, i) - 1;
            break;
        case '#':
            i = skip_comment(t, i) - 1;
            break;
        case '.':
            *ret_at = i;
            if (++dots >= LIMIT_TOML_KEY_SEGMENTS) return "the key has too many parts";
            break;
        case '[':
        case '{':
            *ret_at = i;
            if (++depth > LIMIT_TOML_DEPTH) return "nested too deeply";
            dots = 0;
            break;
        case ']':
        case '}':
            if (depth > 0) depth--;
            dots = 0;
            break;
        case '=':
        case ',':
        case '\n':
            dots = 0;
            break;
        default: break;
        }
    }
    return NULL;
}

static bool ends_bare(char c) {
    return strchr(" \t\r\n,]}#", c) != NULL; /* and NUL */
}

static bool is_digit_at(struct toml_text t, size_t i) {
    return i < t.n && t.s[i] >= '0' && t.s[i] <= '9';
}

static size_t skip_bare(struct toml_text t, size_t i) {
    size_t start = i;
    while (i < t.n && !ends_bare(t.s[i])) i++;
    /* "1979-05-27 07:32:00" is one value. */
    bool date = i - start == 10 && t.s[start + 4] == '-' && t.s[start + 7] == '-';
    if (date && at_char(t, i, ' ') && is_digit_at(t, i + 1) && is_digit_at(t, i + 2) && at_char(t, i + 3, ':'))
        for (i++; i < t.n && !ends_bare(t.s[i]);) i++;
    return i;
}

size_t toml_skip_value(struct toml_text t, size_t i) {
    size_t depth = 0;
    if (i >= t.n) return t.n;
    if (t.s[i] == '"' || t.s[i] == '\'') return skip_string(t, i);
    if (t.s[i] != '[' && t.s[i] != '{') return skip_bare(t, i);
    while (i < t.n) {
        char c = t.s[i];
        if (c == '"' || c == '\'') {
            i = skip_string(t, i);
        } else if (c == '#') {
            i = skip_comment(t, i);
        } else {
            i++;
            if (c == '[' || c == '{') depth++;
            if ((c == ']' || c == '}') && --depth == 0) return i;
        }
    }
    return t.n;
}

static int read_hex(struct toml_text t, size_t i, size_t n, uint32_t *ret) {
    uint32_t cp = 0;
    for (; n > 0; n--, i++) {
        char c = i < t.n ? t.s[i] : '\0';
        const char *digits = "0123456789abcdefABCDEF", *hit = c ? strchr(digits, c) : NULL;
        if (!hit) return -EBADMSG;
        size_t v = (size_t)(hit - digits);
        cp = cp << 4 | (uint32_t)(v < 16 ? v : v - 6);
    }
    *ret = cp;
    return 0;
}

/* One escape sequence of a basic string; *i stands behind the backslash. */
static int read_escape(struct toml_text t, size_t *i, struct buf *out) {
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    char c = t.s[(*i)++], text[4];
    const char *hit = c ? strchr(from, c) : NULL;
    if (hit) return buf_char(out, to[hit - from]);
    size_t n = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t cp;
    if (n == 0 || read_hex(t, *i, n, &cp) < 0) return -EBADMSG;
    *i += n;
    n = utf8_encode(cp, text);
    return n > 0 ? buf_append(out, text, n) : -EBADMSG;
}

/* The contents of a one-line string between its quotes. */
static int read_string(struct toml_text t, size_t i, size_t end, bool basic, char **ret) {
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    int r = 0;
    t.n = end;
    while (r >= 0 && i < end) {
        char c = t.s[i++];
        r = basic && c == '\\' && i < end ? read_escape(t, &i, &out) : buf_char(&out, c);
    }
    if (r < 0) return r;
    char *s = buf_take(&out);
    if (!s) return -ENOMEM;
    *ret = s;
    return 0;
}

static bool is_bare_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

int toml_read_keys(struct toml_text t, size_t *i, char ***ret) {
    _cleanup_strv_ char **keys = NULL;
    for (;; (*i)++) {
        *i = toml_skip_blank(t, *i);
        bool basic = at_char(t, *i, '"');
        size_t start = *i, end = start;
        if (basic || at_char(t, start, '\'')) {
            *i = skip_string(t, start);
            if (*i < start + 2) return -EBADMSG;
            start++;
            end = *i - 1;
        } else {
            while (end < t.n && is_bare_key(t.s[end])) end++;
            if (end == start) return -EBADMSG;
            *i = end;
        }
        char *key;
        int r = read_string(t, start, end, basic, &key);
        if (r >= 0) r = strv_take(&keys, key);
        if (r < 0) return r;
        *i = toml_skip_blank(t, *i);
        if (!at_char(t, *i, '.')) break;
    }
    *ret = TAKE_PTR(keys);
    return 0;
}

void toml_stmt_done(struct toml_stmt *s) {
    s->keys = strv_free(s->keys);
}

int toml_next(struct toml_text t, size_t *at, struct toml_stmt *ret) {
    size_t i = *at, line = i;
    if (i == 0 && t.n >= 3 && memcmp(t.s, "\xef\xbb\xbf", 3) == 0) line = i = 3;
    for (; i < t.n; i++) {
        if (t.s[i] == '#') i = skip_comment(t, i);
        if (at_char(t, i, '\n')) line = i + 1;
        else if (!at_char(t, i, ' ') && !at_char(t, i, '\t') && !at_char(t, i, '\r')) break;
    }
    toml_stmt_done(ret);
    *at = i;
    if (i >= t.n) return 0;
    *ret = (struct toml_stmt){.kind = TOML_KEY, .line = line, .start = i};
    if (t.s[i] == '[') ret->kind = at_char(t, ++i, '[') ? i++, TOML_ARRAY_HEADER : TOML_HEADER;
    int r = toml_read_keys(t, &i, &ret->keys);
    if (r < 0) return r;
    if (ret->kind == TOML_KEY) {
        if (!at_char(t, i, '=')) return -EBADMSG;
        ret->value = toml_skip_blank(t, i + 1);
        i = ret->value_end = toml_skip_value(t, ret->value);
    }
    i = skip_comment(t, i);
    *at = ret->end = i < t.n ? i + 1 : i;
    return 1;
}
