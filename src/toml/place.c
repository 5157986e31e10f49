/* Where a path is in a TOML text, or where it would belong. */
#include "toml/place.h"

#include <errno.h>
#include <string.h>

size_t place_path_len(const char *const *path) {
    size_t n = 0;
    while (path[n]) n++;
    return n;
}

size_t place_prefix_len(const char *const *path, char *const *a, char *const *b) {
    size_t n = 0;
    for (; a && *a; a++, n++)
        if (!path[n] || !streq(path[n], *a)) return SIZE_MAX;
    for (; b && *b; b++, n++)
        if (!path[n] || !streq(path[n], *b)) return SIZE_MAX;
    return n;
}

bool place_is_inside(const char *const *path, size_t n, char *const *a, char *const *b) {
    size_t len_a = strv_len(a);
    if (n > len_a + strv_len(b)) return false;
    for (size_t i = 0; i < n; i++)
        if (!streq(path[i], i < len_a ? a[i] : b[i - len_a])) return false;
    return true;
}

/* Spaces, newlines and comments: an inline table may hold them inside its arrays only, but
 * newer TOML allows them between keys too. */
static size_t skip_space(struct toml_text t, size_t i) {
    while (i < t.n && strchr(" \t\r\n", t.s[i]) && t.s[i]) i++;
    return i;
}

int place_find_inline(struct toml_text t, size_t open, const char *const *path, size_t given,
                       struct place *p) {
    if (open >= t.n || t.s[open] != '{') return -ENOTSUP;
    *p = (struct place){.how = HOW_INLINE, .at = open + 1, .given = given, .first = true};
    size_t i = skip_space(t, open + 1), last_end = 0;
    while (i < t.n && t.s[i] != '}') {
        _cleanup_(strv_seal) char **keys = NULL;
        size_t start = i;
        int r = toml_read_keys(t, &i, &keys);
        if (r < 0) return r;
        if (i >= t.n || t.s[i] != '=') return -EBADMSG;
        size_t value = toml_skip_blank(t, i + 1), end = toml_skip_value(t, value);
        i = skip_space(t, end);
        bool more = i < t.n && t.s[i] == ',';
        if (more) i = skip_space(t, i + 1);
        size_t n = place_prefix_len(path + given, keys, NULL);
        if (n != SIZE_MAX && path[given + n]) return place_find_inline(t, value, path, given + n, p);
        if (n != SIZE_MAX) {
            p->found = true;
            p->value = (struct span){value, end};
            p->cut = more ? (struct span){start, i} : (struct span){last_end ? last_end : start, end};
            return 0;
        }
        p->at = last_end = end;
        p->first = false;
    }
    return 0;
}

size_t place_above_header(struct toml_text t, size_t line, size_t floor) {
    while (line > floor) {
        size_t prev = line - 1;
        while (prev > floor && t.s[prev - 1] != '\n') prev--;
        if (t.s[toml_skip_blank(t, prev)] != '#') break;
        line = prev;
    }
    return line;
}

int place_find(struct toml_text t, const char *const *path, struct place *p) {
    _cleanup_(toml_stmt_done) struct toml_stmt st = {0};
    _cleanup_(strv_seal) char **section = NULL;
    size_t len = place_path_len(path), pos = 0;
    bool in_array = false, any = false;
    int r;
    *p = (struct place){.at = t.n};
    while ((r = toml_next(t, &pos, &st)) > 0) {
        if (st.kind != TOML_KEY) {
            if (len == 1 && !section && !any && p->how == HOW_APPEND) {
                p->how = HOW_SECTION;
                p->at = place_above_header(t, st.line, t.n >= 3 && (unsigned char)t.s[0] == 0xef ? 3 : 0);
            }
            strv_free(section);
            section = TAKE_PTR(st.keys);
            in_array = st.kind == TOML_ARRAY_HEADER;
            any = true;
            if (!in_array && place_prefix_len(path, section, NULL) == len - 1)
                *p = (struct place){.how = HOW_SECTION, .at = st.end, .given = len - 1};
            continue;
        }
        if (in_array) continue;
        size_t n = place_prefix_len(path, section, st.keys), depth = strv_len(section);
        if (n == len) {
            p->found = true;
            p->value = (struct span){st.value, st.value_end};
            p->cut = (struct span){st.line, st.end};
            return 0;
        }
        if (n != SIZE_MAX) return place_find_inline(t, st.value, path, n, p);
        if (!place_is_inside(path, len - 1, section, st.keys)) continue;
        enum how how = depth == len - 1 ? HOW_SECTION : HOW_DOTTED;
        if (how < p->how || depth > len - 1) continue;
        *p = (struct place){.how = how, .at = st.end, .given = depth, .indent = {st.line, st.start}};
    }
    return r;
}
