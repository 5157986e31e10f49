/* What is in a value: its type, its members, and whether two are equal. */
#include "json/value.h"

#include <math.h>
#include <string.h>

abx_type abx_value_type(const abx_value *v) {
    return v ? (abx_type)v->type : ABX_TYPE_NULL;
}

int abx_value_is(const abx_value *v, abx_type t) {
    return v && v->type == t;
}

int abx_value_bool(const abx_value *v) {
    return v && v->type == ABX_TYPE_BOOL && v->b;
}

int64_t abx_value_int(const abx_value *v, int64_t otherwise) {
    if (!v) return otherwise;
    if (v->type == ABX_TYPE_INT) return v->i;
    if (v->type == ABX_TYPE_DOUBLE && v->d >= -0x1p63 && v->d < 0x1p63 && v->d == trunc(v->d))
        return (int64_t)v->d;
    return otherwise;
}

uint64_t abx_value_uint(const abx_value *v, uint64_t otherwise) {
    if (!v) return otherwise;
    if (v->type == ABX_TYPE_UINT) return v->u;
    if (v->type == ABX_TYPE_INT && v->i >= 0) return (uint64_t)v->i;
    if (v->type == ABX_TYPE_DOUBLE && v->d >= 0 && v->d < 0x1p64 && v->d == trunc(v->d))
        return (uint64_t)v->d;
    return otherwise;
}

double abx_value_double(const abx_value *v, double otherwise) {
    switch (v ? (abx_type)v->type : ABX_TYPE_NULL) {
    case ABX_TYPE_INT: return (double)v->i;
    case ABX_TYPE_UINT: return (double)v->u;
    case ABX_TYPE_DOUBLE: return v->d;
    default: return otherwise;
    }
}

const char *abx_value_string(const abx_value *v) {
    return v && v->type == ABX_TYPE_STRING ? v->text.data : NULL;
}

abx_bytes abx_value_bytes(const abx_value *v) {
    if (!value_is_text(v)) return (abx_bytes){NULL, 0};
    return (abx_bytes){(const uint8_t *)v->text.data, v->text.len};
}

size_t abx_value_size(const abx_value *v) {
    return value_is_container(v) ? v->list.len : 0;
}

const abx_value *abx_value_at(const abx_value *v, size_t i) {
    return i < abx_value_size(v) ? v->list.items[i].value : NULL;
}

const char *abx_value_key_at(const abx_value *v, size_t i) {
    return i < abx_value_size(v) ? v->list.items[i].key : NULL;
}

const abx_value *abx_value_get(const abx_value *object, const char *key) {
    if (!object || object->type != ABX_TYPE_OBJECT || !key) return NULL;
    size_t at = value_find(object, key, strlen(key));
    return at == SIZE_MAX ? NULL : object->list.items[at].value;
}

const char *abx_value_get_string(const abx_value *object, const char *key) {
    return abx_value_string(abx_value_get(object, key));
}

static int list_equal(const abx_value *a, const abx_value *b) {
    if (a->list.len != b->list.len) return 0;
    for (size_t i = 0; i < a->list.len; i++) {
        const struct member *m = &a->list.items[i];
        size_t at = i;
        if (a->type == ABX_TYPE_OBJECT) at = value_find(b, m->key, m->key_len);
        if (at == SIZE_MAX || !abx_value_equal(m->value, b->list.items[at].value)) return 0;
    }
    return 1;
}

/* Types count (1 is not 1.0, bytes are no string); the order of keys and marks do not. */
int abx_value_equal(const abx_value *a, const abx_value *b) {
    if (a == b) return 1;
    if (!a || !b || a->type != b->type) return 0;
    switch ((abx_type)a->type) {
    case ABX_TYPE_NULL: return 1;
    case ABX_TYPE_BOOL: return a->b == b->b;
    case ABX_TYPE_INT: return a->i == b->i;
    case ABX_TYPE_UINT: return a->u == b->u;
    case ABX_TYPE_DOUBLE: return a->d == b->d;
    case ABX_TYPE_STRING:
    case ABX_TYPE_BYTES:
        return a->text.len == b->text.len &&
               (a->text.len == 0 || memcmp(a->text.data, b->text.data, a->text.len) == 0);
    case ABX_TYPE_ARRAY:
    case ABX_TYPE_OBJECT: return list_equal(a, b);
    }
    return 0;
}
