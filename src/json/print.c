/* JSON out: values and strings written straight into a buffer, without the locale. */
#include <string.h>

#include "base/codec.h"
#include "base/limits.h"
#include "json/json.h"
#include "json/value.h"

/* Bytes at the start of s that need no escape; eight at a time while that lasts. */
static size_t clean_run(const char *s, size_t n) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
        uint64_t hit = (w - ones * 0x20) & ~w;
        hit |= (quote - ones) & ~quote;
        hit |= (slash - ones) & ~slash;
        if (hit & high) break;
    }
    while (i < n && (unsigned char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\') i++;
    return i;
}

static int write_escape(struct buf *out, unsigned char c) {
    static const char hex[] = "0123456789abcdef";
    char seq[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    size_t n = 2;
    switch (c) {
    case '"':
    case '\\': seq[1] = (char)c; break;
    case '\n': seq[1] = 'n'; break;
    case '\r': seq[1] = 'r'; break;
    case '\t': seq[1] = 't'; break;
    case '\b': seq[1] = 'b'; break;
    case '\f': seq[1] = 'f'; break;
    default: n = 6;
    }
    return buf_append(out, seq, n);
}

int json_write_string(struct buf *out, const char *s, size_t n) {
    if (n <= SIZE_MAX - 2) buf_reserve(out, n + 2); /* most text is clean: grow once */
    buf_char(out, '"');
    for (size_t i = 0; i < n;) {
        size_t run = clean_run(s + i, n - i);
        if (run > 0) buf_append(out, s + i, run);
        i += run;
        if (i < n) write_escape(out, (unsigned char)s[i++]);
        if (out->err) return out->err;
    }
    return buf_char(out, '"');
}

static int write_bytes(struct buf *out, const abx_value *v) {
    size_t n = base64_encoded_len(v->text.len);
    buf_char(out, '"');
    char *to = buf_reserve(out, n + 1);
    if (!to) return out->err;
    base64_encode(to, v->text.data, v->text.len);
    buf_commit(out, n);
    return buf_char(out, '"');
}

static int write_unsigned(struct buf *out, uint64_t u, bool minus) {
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    if (minus) digits[--at] = '-';
    return buf_append(out, digits + at, sizeof(digits) - at);
}

static int write_double(struct buf *out, double d) {
    char text[JSON_DOUBLE_MAX];
    return buf_append(out, text, json_format_double(d, text));
}

static int write_newline(struct buf *out, unsigned indent) {
    buf_char(out, '\n');
    char *to = buf_reserve(out, indent * 2);
    if (!to) return out->err;
    memset(to, ' ', indent * 2);
    buf_commit(out, indent * 2);
    return 0;
}

static int by_key(const void *a, const void *b) {
    const struct member *x = *(const struct member *const *)a, *y = *(const struct member *const *)b;
    int r = memcmp(x->key, y->key, MIN_OF(x->key_len, y->key_len));
    return r ? r : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* UTF-8 sorts by bytes as it does by code point. */
static const struct member **sorted_members(const abx_value *v) {
    const struct member **order = calloc(v->list.len, sizeof(*order));
    if (!order) return NULL;
    for (size_t i = 0; i < v->list.len; i++) order[i] = &v->list.items[i];
    qsort(order, v->list.len, sizeof(*order), by_key);
    return order;
}

static int write_any(struct buf *out, const abx_value *v, unsigned flags, unsigned level);

static int write_list(struct buf *out, const abx_value *v, unsigned flags, unsigned level) {
    bool object = v->type == ABX_TYPE_OBJECT;
    _cleanup_free_ const struct member **order = NULL;
    if (v->list.len == 0) return buf_append(out, object ? "{}" : "[]", 2);
    if (object && flags & ABX_PRINT_SORTED) {
        order = sorted_members(v);
        if (!order) return out->err = out->err ? out->err : -ENOMEM;
    }
    buf_char(out, object ? '{' : '[');
    for (size_t i = 0; i < v->list.len && !out->err; i++) {
        const struct member *m = order ? order[i] : &v->list.items[i];
        if (i > 0) buf_char(out, ',');
        if (flags & ABX_PRINT_PRETTY) write_newline(out, level + 1);
        else if (i > 0 && flags & ABX_PRINT_SPACED) buf_char(out, ' ');
        if (object) {
            json_write_string(out, m->key, m->key_len);
            buf_char(out, ':');
            if (flags & (ABX_PRINT_PRETTY | ABX_PRINT_SPACED)) buf_char(out, ' ');
        }
        write_any(out, m->value, flags, level + 1);
    }
    if (flags & ABX_PRINT_PRETTY) write_newline(out, level);
    return buf_char(out, object ? '}' : ']');
}

/* Recurses no deeper than LIMIT_JSON_DEPTH: no deeper tree can be built. */
static int write_any(struct buf *out, const abx_value *v, unsigned flags, unsigned level) {
    if (abx_value_is_secret(v) && !(flags & ABX_PRINT_SECRETS)) return buf_append(out, "\"***\"", 5);
    switch (abx_value_type(v)) {
    case ABX_TYPE_NULL: return buf_append(out, "null", 4);
    case ABX_TYPE_BOOL: return v->b ? buf_append(out, "true", 4) : buf_append(out, "false", 5);
    case ABX_TYPE_INT: return write_unsigned(out, v->i < 0 ? -(uint64_t)v->i : (uint64_t)v->i, v->i < 0);
    case ABX_TYPE_UINT: return write_unsigned(out, v->u, false);
    case ABX_TYPE_DOUBLE: return write_double(out, v->d);
    case ABX_TYPE_STRING: return json_write_string(out, v->text.data, v->text.len);
    case ABX_TYPE_BYTES: return write_bytes(out, v);
    case ABX_TYPE_ARRAY:
    case ABX_TYPE_OBJECT: return write_list(out, v, flags, level);
    }
    return -EINVAL;
}

int json_write_value(struct buf *out, const abx_value *v, unsigned flags) {
    write_any(out, v, flags, 0);
    return out->err;
}

char *abx_value_print(const abx_value *v, unsigned flags, size_t *ret_len) {
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    if (json_write_value(&out, v, flags) < 0) return NULL;
    size_t n = out.len;
    char *text = buf_take(&out);
    if (text && ret_len) *ret_len = n;
    return text;
}
