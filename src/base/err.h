/* Making errors: once, where the facts are. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <abx/error.h>
#include <abx/value.h>

#include "base/cleanup.h"

/* Sets *reterr (when not NULL and empty) and returns code. hint NULL: the row's own. */
int err_set(abx_error **reterr, int code, const char *hint, const char *fmt, ...) _printf_(4, 5);
int err_nomem(abx_error **reterr); /* -ENOMEM, from static storage */
/* code with "context: strerror" of -errno r. */
int err_errno(abx_error **reterr, int code, int r, const char *fmt, ...) _printf_(4, 5);
/* For the makers: an error still held by one owner may be completed. */
void err_set_provider(abx_error *e, const char *id);
void err_set_method(abx_error *e, const char *method);
void err_set_retryable(abx_error *e, int retryable, int retry_after_ms); /* after < 0: not said */
void err_set_hint(abx_error *e, const char *hint);
/* Takes both; frees data with release. */
void err_set_data(abx_error *e, abx_value *data, abx_value *(*release)(abx_value *));
void err_set_cause(abx_error *e, abx_error *cause);
int err_retry_after_ms(const abx_error *e); /* -1: not said */
/* Row of a code (negative or positive), or NULL. */
const abx_error_row *err_row(int code);
/* Hands a finished error to reterr (or drops it) and returns its code. */
int err_pass(abx_error **reterr, abx_error *e);

static inline _unused_ void abx_error_unrefp(abx_error **e) { abx_error_unref(*e); }
static inline _unused_ void abx_value_unrefp(abx_value **v) { abx_value_unref(*v); }

#endif
