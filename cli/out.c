/* Printing with every write checked: a reader that left is quiet, a full disk is an error. */
#include "out.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>

#include "base/limits.h"
#include "base/utf8.h"

static struct {
    struct buf buf;
    int err; /* 0, or -errno of the first write that failed */
    bool color_out, color_err, json;
} out;

static bool wants_color(const char *when, int fd) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (when && !streq(when, "auto")) return streq(when, "always");
    return isatty(fd) && !(no_color && *no_color) && !(term && streq(term, "dumb"));
}

void out_init(const char *when, bool json) {
    out.color_out = wants_color(when, STDOUT_FILENO);
    out.color_err = wants_color(when, STDERR_FILENO);
    out.json = json;
}

static const char *sequence(enum out_style style, bool color) {
    static const char *const sequences[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m", "\033[2m"};
    return color ? sequences[style] : "";
}

static int write_all(int fd, const void *data, size_t n) {
    for (const char *p = data; n > 0;) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno == EAGAIN) { /* somebody made the shared terminal non-blocking */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (k < 0) return -errno;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* ---- standard output ----------------------------------------------------------------- */

int out_flush(void) {
    if (out.buf.err && !out.err) out.err = out.buf.err;
    if (!out.err) out.err = write_all(STDOUT_FILENO, out.buf.data, out.buf.len);
    buf_reset(&out.buf);
    return out.err;
}

static void flush_when_large(void) {
    if (out.buf.len > 64 * KIB) out_flush();
}

void out_str(const char *s) {
    buf_str(&out.buf, s);
    flush_when_large();
}

void out_printf(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&out.buf, fmt, ap);
    va_end(ap);
    flush_when_large();
}

void out_foreign(const char *s) {
    if (s) utf8_sanitize(&out.buf, s, strlen(s), false);
    flush_when_large();
}

void out_column(const char *s, size_t width) {
    _cleanup_free_ char *clean = utf8_sanitize_str(s ?: "");
    size_t w = clean ? utf8_width(clean) : 0;
    out_printf("%s%*s ", clean ?: "", w < width ? (int)(width - w) : 0, "");
}

void out_styled(enum out_style style, const char *s) {
    bool color = out.color_out && style != OUT_PLAIN;
    out_printf("%s%s%s", sequence(style, color), s, sequence(OUT_PLAIN, color));
}

int out_bytes(abx_bytes b) {
    if (out_flush() == 0) out.err = write_all(STDOUT_FILENO, b.data, b.len);
    return out.err;
}

void out_json(const abx_value *v) {
    _cleanup_free_ char *text = abx_value_print(v, ABX_PRINT_PRETTY, NULL);
    if (!text && !out.err) out.err = -ENOMEM;
    if (text) out_printf("%s\n", text);
}

int out_finish(int status) {
    int r = out_flush();
    buf_done(&out.buf);
    /* Some file systems tell only here that the data went nowhere. */
    if (r == 0 && close(STDOUT_FILENO) < 0 && errno != EINTR) r = -errno;
    if (r == 0) return status;
    /* As if SIGPIPE had ended it, which is what the shell expects to see. */
    if (r == -EPIPE) return 128 + SIGPIPE;
    _cleanup_error_ abx_error *e = NULL;
    err_errno(&e, ABX_E_GENERIC, r, "Cannot write to standard output");
    return out_error(e);
}

/* ---- standard error ------------------------------------------------------------------- */

bool out_err_is_terminal(void) { return isatty(STDERR_FILENO); }

const char *out_err_style(enum out_style style) { return sequence(style, out.color_err); }

int out_err_bytes(abx_bytes b) { return write_all(STDERR_FILENO, b.data, b.len); }

/* One write a line, so that lines of threads and of plugins never mix. */
void out_note(const char *fmt, ...) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    buf_char(&b, '\n');
    if (!b.err) write_all(STDERR_FILENO, b.data, b.len);
}

int out_error(const abx_error *e) {
    const char *hint = abx_error_hint(e);
    int status = abx_error_exit_status(e);
    if (out.json) {
        abx_value *inner = abx_error_to_value(e);
        _cleanup_value_ abx_value *v = abx_value_new_object();
        _cleanup_free_ char *text = abx_value_set(v, "error", inner) == 0 ? abx_value_print(v, ABX_PRINT_SPACED, NULL) : NULL;
        if (text) out_note("%s", text);
        return status ?: 1;
    }
    out_note("%s[%s]%s %s%s%s", out_err_style(OUT_RED), abx_error_id(e), out_err_style(OUT_PLAIN), abx_error_message(e),
             *hint ? "\n  Suggestion: " : "", hint);
    return status ?: 1;
}

/* ---- tables ------------------------------------------------------------------------------ */

void out_cell(struct out_table *t, const char *text) {
    if (strv_take(&t->cells, utf8_sanitize_str(text ?: "")) < 0 && !out.err) out.err = -ENOMEM;
}

void out_table(struct out_table *t) {
    size_t n = strv_len(t->cells);
    for (size_t i = 0; i < n; i++) {
        size_t width = 0, own = utf8_width(t->cells[i]), column = i % t->columns;
        bool last = column + 1 == t->columns;
        for (size_t k = column; k < n && !last; k += t->columns) width = MAX_OF(width, utf8_width(t->cells[k]));
        out_styled(i < t->columns ? OUT_BOLD : OUT_PLAIN, t->cells[i]);
        out_printf("%*s", last ? 0 : (int)(width - own) + 2, "");
        if (last) out_str("\n");
    }
    t->cells = strv_free(t->cells);
}
