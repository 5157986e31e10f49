/* The error object and the table of errors. */
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

struct abx_error {
    unsigned refs; /* 0: static, never freed and never changed */
    int code;
    const char *id;
    char *message, *hint, *provider, *method;
    int retryable, retry_after_ms;
    abx_value *data;
    abx_value *(*release)(abx_value *);
    abx_error *cause;
};

static const abx_error_row rows[] = {
#define ROW(num, name, py, parent, text, hint) {num, #name, py, parent, text, hint},
    ABX_ERROR_MAP(ROW)
#undef ROW
};
static const char *const ids[] = {
#define ROW(num, name, py, parent, text, hint) "E" #num,
    ABX_ERROR_MAP(ROW)
#undef ROW
};

/* No row: what the reference calls E0000. */
#define NO_ID "E0000"

static abx_error out_of_memory = {
    .code = -ENOMEM, .id = NO_ID, .message = (char *)"out of memory", .retry_after_ms = -1,
};

DEFINE_CLEANUP(abx_error *, errorp, abx_error_unref)

static const abx_error_row *row_of(int code) {
    int number = code < 0 && code != INT32_MIN ? -code : code;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].number == number) return &rows[i];
    return NULL;
}

static const char *id_of(const abx_error_row *row) {
    return row && row->number != -ABX_E_GENERIC ? ids[row - rows] : NO_ID;
}

/* Whether a maker may still change it. */
static bool open_for_change(const abx_error *e) {
    return e && __atomic_load_n(&e->refs, __ATOMIC_ACQUIRE) == 1;
}

static void replace(char **field, char *text) {
    if (!text) return;
    free(*field);
    *field = text;
}

/* Foreign text made safe, and without the space that its last newline became. */
static char *clean(const char *s, size_t n, bool lines) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    utf8_sanitize(&b, s, n, lines);
    while (b.len && (b.data[b.len - 1] == ' ' || b.data[b.len - 1] == '\n'))
        b.len--;
    return buf_take(&b);
}

static char *clean_line(const char *s) { return clean(s, strlen(s), false); }

/* The one place where an error is made; text is its message. */
static int make(abx_error **reterr, int code, const char *hint, struct buf *text) {
    if (!reterr || *reterr) return code;
    _cleanup_(errorp) abx_error *e = calloc(1, sizeof(*e));
    if (!e) return err_nomem(reterr);
    const abx_error_row *row = row_of(code);
    e->refs = 1;
    e->code = code;
    e->id = id_of(row);
    e->retry_after_ms = -1;
    if (!hint) hint = row ? row->hint : "";
    e->hint = clean(hint, strlen(hint), true);
    if (!text->err) e->message = clean(text->data ? text->data : "", text->len, false);
    if (e->message && !*e->message && row) replace(&e->message, strdup(row->text));
    if (!e->message || !e->hint) return err_nomem(reterr);
    *reterr = TAKE_PTR(e);
    return code;
}

int err_set(abx_error **reterr, int code, const char *hint, const char *fmt, ...) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (!reterr || *reterr) return code;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return make(reterr, code, hint, &b);
}

int err_errno(abx_error **reterr, int code, int r, const char *fmt, ...) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (!reterr || *reterr) return code;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    int number = r < 0 && r > -1000 ? -r : r;
#ifdef __GLIBC__
    /* Not strerror(): that one follows the locale of the program. */
    const char *what = strerrordesc_np(number);
#else
    char space[128];
    const char *what = strerror_r(number, space, sizeof(space)) == 0 ? space : NULL;
#endif
    if (what)
        buf_printf(&b, ": %s.", what);
    else
        buf_printf(&b, ": error %d.", number);
    return make(reterr, code, NULL, &b);
}

int err_nomem(abx_error **reterr) {
    if (reterr && !*reterr) *reterr = &out_of_memory;
    return -ENOMEM;
}

void err_set_provider(abx_error *e, const char *id) {
    if (open_for_change(e) && id) replace(&e->provider, clean_line(id));
}

void err_set_method(abx_error *e, const char *method) {
    if (open_for_change(e) && method) replace(&e->method, clean_line(method));
}

void err_set_retryable(abx_error *e, int retryable, int retry_after_ms) {
    if (!open_for_change(e)) return;
    e->retryable = retryable != 0;
    e->retry_after_ms = retry_after_ms < 0 ? -1 : retry_after_ms;
}

void err_set_hint(abx_error *e, const char *hint) {
    if (!hint) hint = "";
    if (open_for_change(e)) replace(&e->hint, clean(hint, strlen(hint), true));
}

void err_set_data(abx_error *e, abx_value *data, abx_value *(*release)(abx_value *)) {
    if (!open_for_change(e)) {
        if (data && release) release(data);
        return;
    }
    if (e->data && e->release) e->release(e->data);
    e->data = data;
    e->release = release;
}

void err_set_cause(abx_error *e, abx_error *cause) {
    if (!open_for_change(e) || cause == e) {
        abx_error_unref(cause);
        return;
    }
    abx_error_unref(e->cause);
    e->cause = cause;
}

int err_retry_after_ms(const abx_error *e) { return e ? e->retry_after_ms : -1; }

const abx_error_row *err_row(int code) { return row_of(code); }

int err_pass(abx_error **reterr, abx_error *e) {
    int code = abx_error_code(e);
    if (reterr && !*reterr)
        *reterr = e;
    else
        abx_error_unref(e);
    return code;
}

int abx_error_code(const abx_error *e) { return e ? e->code : 0; }
const char *abx_error_id(const abx_error *e) { return e ? e->id : NO_ID; }
const char *abx_error_message(const abx_error *e) { return e && e->message ? e->message : ""; }
const char *abx_error_hint(const abx_error *e) { return e && e->hint ? e->hint : ""; }
const char *abx_error_provider(const abx_error *e) { return e ? e->provider : NULL; }
const char *abx_error_method(const abx_error *e) { return e ? e->method : NULL; }
int abx_error_retryable(const abx_error *e) { return e ? e->retryable : 0; }
const abx_value *abx_error_data(const abx_error *e) { return e ? e->data : NULL; }
const abx_error *abx_error_cause(const abx_error *e) { return e ? e->cause : NULL; }

int abx_error_exit_status(const abx_error *e) {
    int code = abx_error_code(e);
    if (code <= -1000 && code > -2000) return 3;
    switch (code) {
    case 0:
        return 0;
    case ABX_E_CONFIG:
    case ABX_E_TRUST:
    case ABX_E_MISMATCH:
        return 2;
    case ABX_E_TEMPLATE_NOT_FOUND:
    case ABX_E_SANDBOX_NOT_FOUND:
    case ABX_E_FILE_NOT_FOUND:
    case ABX_E_PROVIDER_NOT_FOUND:
    case ABX_E_RESOURCE_NOT_FOUND:
        return 4;
    case ABX_E_COMMAND_TIMEOUT:
    case ABX_E_TIMEOUT:
        return 5;
    case ABX_E_QUOTA:
        return 6;
    default:
        return 1;
    }
}

abx_error *abx_error_ref(abx_error *e) {
    if (e && e != &out_of_memory) __atomic_add_fetch(&e->refs, 1, __ATOMIC_RELAXED);
    return e;
}

/* Drops a chain of causes in a loop, so that its length costs no stack. */
abx_error *abx_error_unref(abx_error *e) {
    while (e && e != &out_of_memory && __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        abx_error *cause = e->cause;
        if (e->data && e->release) e->release(e->data);
        free(e->message);
        free(e->hint);
        free(e->provider);
        free(e->method);
        free(e);
        e = cause;
    }
    return NULL;
}

const abx_error_row *abx_error_row_at(size_t index) {
    return index < ARRAY_SIZE(rows) ? &rows[index] : NULL;
}
