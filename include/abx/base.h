/* abx/base.h: what every other public header needs.
 *
 * Strings that go in are NUL-terminated UTF-8 and are copied; strings that come
 * out are borrowed from the object they were asked of and live as long as it.
 * Handles are confined to the thread of their client, abx_wakeup() excepted. */
#ifndef ABX_BASE_H
#define ABX_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ABX_API __attribute__((visibility("default")))
#define ABX_MUST_CHECK __attribute__((warn_unused_result))
#else
#define ABX_API
#define ABX_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A borrowed, length-counted byte string. Never NUL-terminated by promise:
 * file contents and stream chunks carry NULs. */
typedef struct abx_bytes {
    const uint8_t *data;
    size_t len;
} abx_bytes;

typedef struct abx_client abx_client;   /* config snapshot, registry and loop */
typedef struct abx_sandbox abx_sandbox; /* one sandbox; holds its provider    */
typedef struct abx_op abx_op;           /* one call in flight                 */
typedef struct abx_error abx_error;     /* immutable once made                */
typedef struct abx_value abx_value;     /* refcounted JSON value              */
typedef struct abx_plan abx_plan;       /* an install or update not yet agreed */

/* Version of the library in use: major << 16 | minor << 8 | micro. */
ABX_API uint32_t abx_version(void);
ABX_API const char *abx_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
