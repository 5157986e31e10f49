/* abx/value.h: JSON values as the core passes them in and out.
 *
 * A value is refcounted. The one who made an array or object may fill it while
 * it holds the only reference; afterwards it never changes. Functions named
 * _set_ and _append_ that take a value consume its reference, also on failure,
 * so nested calls need no clean-up. Getters borrow and accept NULL. */
#ifndef ABX_VALUE_H
#define ABX_VALUE_H

#include <abx/base.h>
#include <abx/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum abx_type {
    ABX_TYPE_NULL,
    ABX_TYPE_BOOL,
    ABX_TYPE_INT,    /* fits int64_t                                        */
    ABX_TYPE_UINT,   /* above INT64_MAX only                                */
    ABX_TYPE_DOUBLE, /* finite                                              */
    ABX_TYPE_STRING, /* valid UTF-8, may hold NUL                           */
    ABX_TYPE_BYTES,  /* printed as a base64 string; never made by parsing   */
    ABX_TYPE_ARRAY,
    ABX_TYPE_OBJECT  /* keys unique, order kept                             */
} abx_type;

/* Constructors: NULL means out of memory (or, for strings, not UTF-8). */
ABX_API abx_value *abx_value_new_null(void);
ABX_API abx_value *abx_value_new_bool(int b);
ABX_API abx_value *abx_value_new_int(int64_t i);
ABX_API abx_value *abx_value_new_uint(uint64_t u);
ABX_API abx_value *abx_value_new_double(double d);
ABX_API abx_value *abx_value_new_string(const char *s);
ABX_API abx_value *abx_value_new_string_n(const char *s, size_t n);
ABX_API abx_value *abx_value_new_bytes(const void *data, size_t n);
/* Takes over data; release(data, user) is called once, also when NULL is returned. */
ABX_API abx_value *abx_value_new_bytes_take(void *data, size_t n, void (*release)(void *data, void *user), void *user);
/* The user that bytes made with this release were given (or bytes_new() of the client's options
 * said); NULL for every other value. */
ABX_API void *abx_value_owner(const abx_value *v, void (*release)(void *data, void *user));
ABX_API abx_value *abx_value_new_array(void);
ABX_API abx_value *abx_value_new_object(void);
ABX_API abx_value *abx_value_ref(const abx_value *v);
ABX_API abx_value *abx_value_unref(abx_value *v); /* always NULL */

/* Fill. 0, -ENOMEM (also when a value is NULL), -EBUSY when the target is shared or already
 * in a container, -E2BIG when it would nest too deeply, -EINVAL for a target of another type
 * or text that is not UTF-8. */
ABX_API int abx_value_set(abx_value *object, const char *key, abx_value *v);
ABX_API int abx_value_set_string(abx_value *object, const char *key, const char *s); /* NULL s: null */
ABX_API int abx_value_set_int(abx_value *object, const char *key, int64_t i);
ABX_API int abx_value_set_bool(abx_value *object, const char *key, int b);
ABX_API int abx_value_append(abx_value *array, abx_value *v);
ABX_API int abx_value_append_string(abx_value *array, const char *s);
/* Marks a string or a whole tree as secret: printed as "***" unless asked otherwise. */
ABX_API void abx_value_mark_secret(abx_value *v);
ABX_API int abx_value_is_secret(const abx_value *v);

ABX_API abx_type abx_value_type(const abx_value *v); /* NULL: ABX_TYPE_NULL */
ABX_API int abx_value_is(const abx_value *v, abx_type t); /* 0 for NULL */
ABX_API int abx_value_bool(const abx_value *v);           /* 0 unless true */
ABX_API int64_t abx_value_int(const abx_value *v, int64_t otherwise); /* also whole doubles */
ABX_API uint64_t abx_value_uint(const abx_value *v, uint64_t otherwise);
ABX_API double abx_value_double(const abx_value *v, double otherwise);
/* NUL-terminated text, or NULL when it is no string. */
ABX_API const char *abx_value_string(const abx_value *v);
ABX_API abx_bytes abx_value_bytes(const abx_value *v); /* of strings and bytes; {NULL,0} else */

ABX_API size_t abx_value_size(const abx_value *v); /* members of an array or object, else 0 */
ABX_API const abx_value *abx_value_at(const abx_value *v, size_t i); /* array item or member value */
ABX_API const char *abx_value_key_at(const abx_value *v, size_t i);
ABX_API const abx_value *abx_value_get(const abx_value *object, const char *key); /* NULL: absent */
/* Shorthand: string member, or NULL. */
ABX_API const char *abx_value_get_string(const abx_value *object, const char *key);
ABX_API int abx_value_equal(const abx_value *a, const abx_value *b);

/* Strict JSON: UTF-8, no duplicate keys, depth and integers within limits; else E8002. */
ABX_API ABX_MUST_CHECK int abx_value_parse(abx_value **ret, const char *text, size_t n, abx_error **reterr);

typedef enum abx_print_flags {
    ABX_PRINT_COMPACT = 0,
    ABX_PRINT_PRETTY = 1,      /* two-space indent, as the reference prints     */
    ABX_PRINT_SORTED = 2,      /* keys by code point                            */
    ABX_PRINT_SECRETS = 4,     /* secrets as they are: only for the plugin      */
    ABX_PRINT_SPACED = 8       /* ", " and ": " on one line                     */
} abx_print_flags;
/* Text without a final newline, to be released with free(); NULL when out of memory. */
ABX_API char *abx_value_print(const abx_value *v, unsigned flags, size_t *ret_len);

#ifdef __cplusplus
}
#endif
#endif
