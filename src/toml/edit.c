/* TOML changed in place: the bytes of one value, one line or one table, and nothing else. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "toml/place.h"
#include "toml/toml.h"

static void put_key(struct buf *out, const char *key) {
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (*key && key[strspn(key, bare)] == '\0') {
        buf_str(out, key);
        return;
    }
    _cleanup_free_ char *quoted = toml_quote(key);
    if (quoted) buf_str(out, quoted);
    else if (!out->err) out->err = -ENOMEM;
}

static void put_path(struct buf *out, const char *const *path, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        if (i > from) buf_char(out, '.');
        put_key(out, path[i]);
    }
}

static void put_pair(struct buf *out, const char *const *path, size_t from, const char *literal) {
    put_path(out, path, from, place_path_len(path));
    buf_str(out, " = ");
    buf_str(out, literal);
}

static const char *newline_of(struct toml_text t) {
    const char *nl = t.n ? memchr(t.s, '\n', t.n) : NULL;
    return nl && nl > t.s && nl[-1] == '\r' ? "\r\n" : "\n";
}

/* Writes what has to stand at p->at for path to have the value. */
static void put_new(struct buf *out, struct toml_text t, const struct place *p, const char *const *path,
                    const char *literal) {
    const char *nl = newline_of(t);
    if (p->how == HOW_INLINE) {
        buf_str(out, p->first ? " " : ", ");
        put_pair(out, path, p->given, literal);
        if (p->first && p->at < t.n && t.s[p->at] == '}') buf_char(out, ' ');
        return;
    }
    size_t len = place_path_len(path), given = p->given;
    if (p->at > 0 && p->at == t.n && t.s[t.n - 1] != '\n') buf_str(out, nl);
    if (p->how == HOW_APPEND && len > 1) {
        if (t.n > 0) buf_str(out, nl);
        buf_char(out, '[');
        put_path(out, path, 0, len - 1);
        buf_char(out, ']');
        buf_str(out, nl);
        given = len - 1;
    }
    buf_append(out, t.s + p->indent.start, p->indent.end - p->indent.start);
    put_pair(out, path, given, literal);
    buf_str(out, nl);
}

/* The member of an object tree at path, or NULL. */
static const abx_value *value_at(const abx_value *v, const char *const *path) {
    for (; v && *path; path++) v = abx_value_get(v, *path);
    return v;
}

/* A copy of an object with path set to v (borrowed), or removed when v is NULL; prune drops
 * objects that are empty then. 0, -ENOMEM, or -ENOTDIR when something else is in the way. */
static int with_change(const abx_value *object, const char *const *path, const abx_value *v, bool prune,
                       abx_value **ret) {
    if (object && !abx_value_is(object, ABX_TYPE_OBJECT)) return -ENOTDIR;
    _cleanup_value_ abx_value *copy = abx_value_new_object(), *member = NULL;
    int r = copy ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < abx_value_size(object); i++)
        if (!streq(abx_value_key_at(object, i), *path))
            r = abx_value_set(copy, abx_value_key_at(object, i), abx_value_ref(abx_value_at(object, i)));
    const abx_value *old = abx_value_get(object, *path);
    if (r >= 0 && !path[1]) member = abx_value_ref(v);
    else if (r >= 0 && (old || v)) r = with_change(old, path + 1, v, prune, &member);
    if (r >= 0 && member && !(prune && abx_value_is(member, ABX_TYPE_OBJECT) && abx_value_size(member) == 0))
        r = abx_value_set(copy, *path, TAKE_PTR(member));
    if (r < 0) return r;
    *ret = TAKE_PTR(copy);
    return 0;
}

/* Hands out the new text when it parses to the old document with just this change. */
static int deliver(struct buf *out, const abx_value *doc, const char *const *path, const abx_value *v,
                   char **ret) {
    _cleanup_value_ abx_value *got = NULL;
    if (out->err) return out->err;
    int r = toml_parse(out->data ? out->data : "", out->len, &got, NULL, NULL);
    if (r < 0) return r == -ENOMEM ? r : -ENOTSUP;
    bool same = false;
    /* Without its last key a table that only dotted keys made is gone. */
    for (int prune = 0; prune <= (v ? 0 : 1) && !same; prune++) {
        _cleanup_value_ abx_value *wanted = NULL;
        r = with_change(doc, path, v, prune, &wanted);
        if (r < 0) return r;
        same = abx_value_equal(wanted, got);
    }
    if (!same) return -ENOTSUP;
    char *text = buf_take(out);
    if (!text) return -ENOMEM;
    *ret = text;
    return 0;
}

static int parse_literal(const char *literal, abx_value **ret) {
    _cleanup_free_ char *text = str_printf("v = %s\n", literal);
    _cleanup_value_ abx_value *doc = NULL;
    if (!text) return -ENOMEM;
    int r = toml_parse(text, strlen(text), &doc, NULL, NULL);
    if (r == -ENOMEM) return r;
    if (r < 0 || abx_value_size(doc) != 1) return -EINVAL;
    *ret = abx_value_ref(abx_value_at(doc, 0));
    return 0;
}

int toml_find(const char *text, size_t n, const char *const *path, size_t *ret_start, size_t *ret_end) {
    _cleanup_value_ abx_value *doc = NULL;
    struct place p;
    if (!path[0]) return -EINVAL;
    int r = toml_parse(text, n, &doc, NULL, NULL);
    if (r < 0) return r;
    if (!value_at(doc, path)) return -ENOENT;
    r = place_find((struct toml_text){text, n}, path, &p);
    if (r < 0) return r;
    if (!p.found) return -ENOENT;
    *ret_start = p.value.start;
    *ret_end = p.value.end;
    return 0;
}

int toml_edit(const char *text, size_t n, const char *const *path, const char *literal, char **ret) {
    _cleanup_value_ abx_value *doc = NULL, *v = NULL, *wanted = NULL;
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    struct toml_text t = {text, n};
    struct place p;
    if (!path[0]) return -EINVAL;
    int r = toml_parse(text, n, &doc, NULL, NULL);
    if (r >= 0 && literal) r = parse_literal(literal, &v);
    if (r < 0) return r;
    if (!literal && !value_at(doc, path)) return -ENOENT;
    /* Fails when a part of the path is no table: then nothing below is a match either. */
    r = with_change(doc, path, v, false, &wanted);
    if (r >= 0) r = place_find(t, path, &p);
    if (r < 0) return r;
    if (!literal && !p.found) return -ENOTSUP; /* a whole table: toml_remove_table() */
    size_t keep = p.at, resume = p.at;
    if (p.found) {
        struct span gone = literal ? p.value : p.cut;
        keep = gone.start;
        resume = gone.end;
    }
    buf_append(&out, text, keep);
    if (p.found && literal) buf_str(&out, literal);
    else if (literal) put_new(&out, t, &p, path, literal);
    buf_append(&out, text + resume, n - resume);
    return deliver(&out, doc, path, v, ret);
}

/* Copies the text without [start, end), which lies behind *done. */
static void cut_out(struct buf *out, struct toml_text t, size_t *done, size_t start, size_t end) {
    if (start > *done) buf_append(out, t.s + *done, start - *done);
    *done = MAX_OF(*done, end);
}

static void trim_blank_lines(struct buf *out) {
    size_t keep = out->len;
    while (keep > 0 && strchr(" \t\r\n", out->data[keep - 1])) keep--;
    const char *nl = keep < out->len ? memchr(out->data + keep, '\n', out->len - keep) : NULL;
    if (keep == 0) out->len = 0;
    else if (nl) out->len = (size_t)(nl - out->data) + 1;
}

int toml_remove_table(const char *text, size_t n, const char *const *path, char **ret) {
    _cleanup_value_ abx_value *doc = NULL;
    _cleanup_(toml_stmt_done) struct toml_stmt st = {0};
    _cleanup_(strv_seal) char **section = NULL;
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    struct toml_text t = {text, n};
    size_t len = place_path_len(path), pos = 0, done = 0, last = 0;
    bool cutting = false, in_array = false;
    if (len == 0) return -EINVAL;
    int r = toml_parse(text, n, &doc, NULL, NULL);
    if (r < 0) return r;
    if (!abx_value_is(value_at(doc, path), ABX_TYPE_OBJECT)) return -ENOENT;
    while ((r = toml_next(t, &pos, &st)) > 0) {
        if (st.kind != TOML_KEY) {
            if (cutting) cut_out(&out, t, &done, done, place_above_header(t, st.line, last));
            strv_free(section);
            section = TAKE_PTR(st.keys);
            in_array = st.kind == TOML_ARRAY_HEADER;
            cutting = place_is_inside(path, len, section, NULL);
            if (cutting) cut_out(&out, t, &done, st.line, st.end);
        } else if (cutting) {
            cut_out(&out, t, &done, done, st.end);
        } else if (!in_array && place_is_inside(path, len, section, st.keys)) {
            cut_out(&out, t, &done, st.line, st.end);
        } else if (!in_array && place_prefix_len(path, section, st.keys) != SIZE_MAX) {
            struct place p;
            r = place_find_inline(t, st.value, path, place_prefix_len(path, section, st.keys), &p);
            if (r < 0) return r;
            if (p.found) cut_out(&out, t, &done, p.cut.start, p.cut.end);
        }
        last = st.end;
    }
    if (r < 0) return r;
    cut_out(&out, t, &done, cutting ? done : n, n);
    if (cutting && !out.err && out.data) trim_blank_lines(&out);
    return deliver(&out, doc, path, NULL, ret);
}

char *toml_quote(const char *text) {
    static const char from[] = "\b\t\n\f\r\"\\", to[] = "btnfr\"\\";
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    buf_char(&out, '"');
    for (; *text; text++) {
        const char *hit = strchr(from, *text);
        if (hit) buf_printf(&out, "\\%c", to[hit - from]);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f) buf_printf(&out, "\\u%04X", *text);
        else buf_char(&out, *text);
    }
    buf_char(&out, '"');
    return buf_take(&out);
}
