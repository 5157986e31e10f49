/* JSON in and out. The parser is simdjson, behind parse.cc; values are value.c.
 *
 * A document belongs to its parser and is valid until the next parse; references into
 * it are cheap and borrow. What must live longer is copied into an abx_value. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <abx/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define JSON_PADDING 64 /* bytes that must be readable behind a line */

struct json_parser;
struct json_ref { /* an element of the current document; all zero: absent */
    const void *doc;
    size_t index;
};

struct json_parser *json_parser_new(size_t max_len);
void json_parser_free(struct json_parser *p);
/* Strict: UTF-8, no lone surrogates, depth <= LIMIT_JSON_DEPTH, integers within
 * int64/uint64, finite doubles, no duplicate keys anywhere. 0, or -EBADMSG with a
 * static reason, -ENOMEM. text needs JSON_PADDING readable bytes behind n. */
int json_parse(struct json_parser *p, const char *text, size_t n, struct json_ref *ret_root, const char **ret_reason);

abx_type json_type(struct json_ref r); /* ABX_TYPE_NULL when absent: ask json_present() */
bool json_present(struct json_ref r);
struct json_ref json_get(struct json_ref object, const char *key);
bool json_string(struct json_ref r, const char **ret, size_t *ret_len); /* false: no string */
bool json_int(struct json_ref r, int64_t *ret);                         /* also whole doubles */
bool json_bool(struct json_ref r, bool *ret);
/* Iterates an object in order: *it starts zero. */
struct json_iter { struct json_ref next; size_t left; };
struct json_iter json_iter(struct json_ref container);
bool json_next(struct json_iter *it, const char **ret_key, size_t *ret_key_len, struct json_ref *ret_value);
/* A string member of the top level that is base64, and the memory its bytes go to. */
struct json_bytes {
    const char *key;
    void *(*make)(size_t n, void **ret_owner); /* NULL: memory of our own */
    void (*release)(void *data, void *owner);
};
/* A deep copy. -EINVAL when the member that bytes names (NULL: none) is no canonical base64. */
int json_to_value(struct json_ref r, const struct json_bytes *bytes, abx_value **ret);

/* Out: appended to a buffer. */
int json_write_string(struct buf *out, const char *s, size_t n); /* with quotes; s valid UTF-8 */
int json_write_value(struct buf *out, const abx_value *v, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
