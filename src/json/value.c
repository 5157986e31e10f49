/* JSON values: refcounted trees, open while one owner fills them and final afterwards. */
#include "json/value.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/utf8.h"

/* From this many members on an object finds its keys by hash. */
#define INDEX_FROM 24

static abx_value *value_new(abx_type type) {
    abx_value *v = calloc(1, sizeof(*v));
    if (!v) return NULL;
    v->refs = 1;
    v->type = (uint8_t)type;
    v->depth = type == ABX_TYPE_ARRAY || type == ABX_TYPE_OBJECT;
    return v;
}

abx_value *abx_value_new_null(void) {
    return value_new(ABX_TYPE_NULL);
}

abx_value *abx_value_new_bool(int b) {
    abx_value *v = value_new(ABX_TYPE_BOOL);
    if (v) v->b = b != 0;
    return v;
}

abx_value *abx_value_new_int(int64_t i) {
    abx_value *v = value_new(ABX_TYPE_INT);
    if (v) v->i = i;
    return v;
}

abx_value *abx_value_new_uint(uint64_t u) {
    if (u <= INT64_MAX) return abx_value_new_int((int64_t)u);
    abx_value *v = value_new(ABX_TYPE_UINT);
    if (v) v->u = u;
    return v;
}

abx_value *abx_value_new_double(double d) {
    if (!isfinite(d)) return NULL;
    abx_value *v = value_new(ABX_TYPE_DOUBLE);
    if (v) v->d = d;
    return v;
}

abx_value *value_new_text(abx_type type, size_t n, char **ret_data) {
    if (n > SIZE_MAX - sizeof(abx_value) - 1) return NULL;
    abx_value *v = malloc(sizeof(*v) + n + 1);
    if (!v) return NULL;
    *v = (abx_value){.refs = 1, .type = (uint8_t)type};
    v->text.data = (char *)(v + 1);
    v->text.len = n;
    v->text.data[n] = '\0';
    *ret_data = v->text.data;
    return v;
}

static abx_value *copy_text(abx_type type, const void *data, size_t n) {
    char *to;
    abx_value *v = value_new_text(type, n, &to);
    if (v && n > 0) memcpy(to, data, n);
    return v;
}

abx_value *abx_value_new_string_n(const char *s, size_t n) {
    return utf8_valid(s, n) ? copy_text(ABX_TYPE_STRING, s, n) : NULL;
}

abx_value *abx_value_new_string(const char *s) {
    return s ? abx_value_new_string_n(s, strlen(s)) : NULL;
}

abx_value *abx_value_new_bytes(const void *data, size_t n) {
    return copy_text(ABX_TYPE_BYTES, data, n);
}

abx_value *abx_value_new_bytes_take(void *data, size_t n, void (*release)(void *data, void *user),
                                    void *user) {
    abx_value *v = value_new(ABX_TYPE_BYTES);
    if (!v) {
        if (release) release(data, user);
        return NULL;
    }
    v->text.data = data;
    v->text.len = n;
    v->text.release = release;
    v->text.user = user;
    return v;
}

void *abx_value_owner(const abx_value *v, void (*release)(void *data, void *user)) {
    return v && v->type == ABX_TYPE_BYTES && release && v->text.release == release ? v->text.user : NULL;
}

abx_value *abx_value_new_array(void) {
    return value_new(ABX_TYPE_ARRAY);
}

abx_value *abx_value_new_object(void) {
    return value_new(ABX_TYPE_OBJECT);
}

abx_value *abx_value_ref(const abx_value *v) {
    abx_value *own = (abx_value *)v;
    if (own) __atomic_add_fetch(&own->refs, 1, __ATOMIC_RELAXED);
    return own;
}

static bool is_shared(const abx_value *v) {
    return __atomic_load_n(&v->refs, __ATOMIC_ACQUIRE) != 1;
}

/* Recurses no deeper than LIMIT_JSON_DEPTH: no deeper tree can be built. */
abx_value *abx_value_unref(abx_value *v) {
    /* The sole owner needs no locked instruction. */
    if (!v || (is_shared(v) && __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) > 0)) return NULL;
    if (value_is_container(v)) {
        for (size_t i = 0; i < v->list.len; i++) {
            free(v->list.items[i].key);
            abx_value_unref(v->list.items[i].value);
        }
        free(v->list.items);
        if (v->list.index) map_done(v->list.index);
        free(v->list.index);
    } else if (value_is_text(v) && v->text.release) {
        v->text.release(v->text.data, v->text.user);
    }
    free(v);
    return NULL;
}

static int index_put(abx_value *object, size_t i) {
    struct member *m = &object->list.items[i];
    return map_put(object->list.index, m->key, m->key_len, (void *)(uintptr_t)(i + 1), NULL);
}

static int index_build(abx_value *object) {
    object->list.index = calloc(1, sizeof(struct map));
    int r = object->list.index ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < object->list.len; i++) r = index_put(object, i);
    if (r < 0 && object->list.index) {
        map_done(object->list.index);
        free(TAKE_PTR(object->list.index));
    }
    return r;
}

size_t value_find(const abx_value *object, const char *key, size_t n) {
    if (object->list.index) {
        uintptr_t at = (uintptr_t)map_get(object->list.index, key, n);
        return at ? at - 1 : SIZE_MAX;
    }
    for (size_t i = 0; i < object->list.len; i++) {
        const struct member *m = &object->list.items[i];
        if (m->key_len == n && memcmp(m->key, key, n) == 0) return i;
    }
    return SIZE_MAX;
}

static int may_hold(const abx_value *container, const abx_value *v) {
    if (!container || !v) return -ENOMEM;
    if (!value_is_container(container)) return -EINVAL;
    if (container == v || container->held || is_shared(container)) return -EBUSY;
    return v->depth >= LIMIT_JSON_DEPTH ? -E2BIG : 0;
}

static void adopt(abx_value *container, abx_value *v) {
    /* Written only when it changes: v may be shared with another thread. */
    if (value_is_container(v) && !v->held) v->held = true;
    container->depth = (uint8_t)MAX_OF(container->depth, v->depth + 1);
}

int value_push(abx_value *container, const char *key, size_t key_len, abx_value *v) {
    _cleanup_value_ abx_value *own = v;
    _cleanup_free_ char *name = NULL;
    int r = may_hold(container, v);
    if (r < 0) return r;
    if (container->list.len == container->list.cap) {
        size_t cap = container->list.cap ? container->list.cap * 2 : 4;
        struct member *items = reallocarray(container->list.items, cap, sizeof(*items));
        if (!items) return -ENOMEM;
        container->list.items = items;
        container->list.cap = cap;
    }
    if (key) {
        name = malloc(key_len + 1);
        if (!name) return -ENOMEM;
        memcpy(name, key, key_len);
        name[key_len] = '\0';
        if (container->list.len == INDEX_FROM && !container->list.index) {
            r = index_build(container);
            if (r < 0) return r;
        }
    }
    size_t at = container->list.len;
    container->list.items[at] = (struct member){name, key_len, v};
    if (container->list.index) {
        r = index_put(container, at);
        if (r < 0) return r;
    }
    container->list.len++;
    adopt(container, v);
    TAKE_PTR(name);
    TAKE_PTR(own);
    return 0;
}

int abx_value_set(abx_value *object, const char *key, abx_value *v) {
    _cleanup_value_ abx_value *own = v;
    int r = may_hold(object, v);
    if (r < 0) return r;
    size_t n = key ? strlen(key) : 0;
    if (object->type != ABX_TYPE_OBJECT || !key || !utf8_valid(key, n)) return -EINVAL;
    size_t at = value_find(object, key, n);
    if (at == SIZE_MAX) return value_push(object, key, n, TAKE_PTR(own));
    adopt(object, v);
    abx_value_unref(object->list.items[at].value);
    object->list.items[at].value = TAKE_PTR(own);
    return 0;
}

/* A new string for _set_ and _append_: NULL s is null, text that is not UTF-8 -EINVAL. */
static int text_or_null(const char *s, abx_value **ret) {
    size_t n = s ? strlen(s) : 0;
    if (s && !utf8_valid(s, n)) return -EINVAL;
    *ret = s ? copy_text(ABX_TYPE_STRING, s, n) : abx_value_new_null();
    return 0;
}

int abx_value_set_string(abx_value *object, const char *key, const char *s) {
    abx_value *v;
    int r = text_or_null(s, &v);
    return r < 0 ? r : abx_value_set(object, key, v);
}

int abx_value_set_int(abx_value *object, const char *key, int64_t i) {
    return abx_value_set(object, key, abx_value_new_int(i));
}

int abx_value_set_bool(abx_value *object, const char *key, int b) {
    return abx_value_set(object, key, abx_value_new_bool(b));
}

int abx_value_append(abx_value *array, abx_value *v) {
    if (array && array->type != ABX_TYPE_ARRAY) {
        abx_value_unref(v);
        return -EINVAL;
    }
    return value_push(array, NULL, 0, v);
}

int abx_value_append_string(abx_value *array, const char *s) {
    abx_value *v;
    int r = text_or_null(s, &v);
    return r < 0 ? r : abx_value_append(array, v);
}

void abx_value_mark_secret(abx_value *v) {
    if (!v) return;
    v->secret = true;
    if (!value_is_container(v)) return;
    for (size_t i = 0; i < v->list.len; i++) abx_value_mark_secret(v->list.items[i].value);
}

int abx_value_is_secret(const abx_value *v) {
    return v && v->secret;
}
