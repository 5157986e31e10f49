/* Inside of abx_value, for the files of this room that make values in bulk. */
#ifndef JSON_VALUE_H
#define JSON_VALUE_H

#include <abx/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct map;

struct member {
    char *key; /* NUL-terminated, may hold NULs; NULL in arrays */
    size_t key_len;
    abx_value *value;
};

struct abx_value {
    int refs;
    uint8_t type;
    uint8_t depth; /* containers: 1 + the deepest member */
    bool secret;
    bool held; /* in a container, hence final */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        struct { /* strings and bytes; data is behind the struct unless release is set */
            char *data;
            size_t len;
            void (*release)(void *data, void *user);
            void *user;
        } text;
        struct {
            struct member *items;
            size_t len, cap;
            struct map *index; /* key -> position + 1, of large objects */
        } list;
    };
};

static inline bool value_is_container(const abx_value *v) {
    return v && (v->type == ABX_TYPE_ARRAY || v->type == ABX_TYPE_OBJECT);
}

static inline bool value_is_text(const abx_value *v) {
    return v && (v->type == ABX_TYPE_STRING || v->type == ABX_TYPE_BYTES);
}

/* The position of a key of an object, or SIZE_MAX. */
size_t value_find(const abx_value *object, const char *key, size_t n);
/* A string or bytes value of n bytes (and a NUL) for the caller to fill in. */
abx_value *value_new_text(abx_type type, size_t n, char **ret_data);
/* Puts v behind the last member and owns it, also on failure. The key (NULL in arrays) is
 * UTF-8 and not there yet. 0, -ENOMEM, -EBUSY or -E2BIG. */
int value_push(abx_value *container, const char *key, size_t key_len, abx_value *v);

/* The shortest text that reads back as d, as Python prints it; its length. No NUL. */
#define JSON_DOUBLE_MAX 40
size_t json_format_double(double d, char out[JSON_DOUBLE_MAX]);

#ifdef __cplusplus
}
#endif
#endif
