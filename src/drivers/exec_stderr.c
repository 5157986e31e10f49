/* What a plugin says on stderr: the last 64 KiB are kept for the message about its end. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "drivers/exec.h"

static void keep(struct exec *x, const char *data, size_t n) {
    if (n > LIMIT_STDERR_RING) {
        data += n - LIMIT_STDERR_RING;
        n = LIMIT_STDERR_RING;
    }
    if (x->err_ring.len + n > LIMIT_STDERR_RING) buf_consume(&x->err_ring, x->err_ring.len + n - LIMIT_STDERR_RING);
    buf_append(&x->err_ring, data, n);
}

/* The first n bytes of the line that is being said. */
static void log_said(struct exec *x, size_t n) {
    _cleanup_buf_ struct buf clean = BUF_INIT(0);
    secrets_clean(&x->secrets, x->err_line.data, n, &clean);
    if (clean.len) log_line(client_log(x->client), ABX_LOG_DEBUG, x->id, "stderr: %s", buf_cstr(&clean) ?: "");
}

/* Whole lines: a secret cut by the end of a read could not be found. */
static void log_lines(struct exec *x, const char *data, size_t n) {
    if (!log_on(client_log(x->client), ABX_LOG_DEBUG)) return;
    buf_append(&x->err_line, data, n);
    char *nl;
    while (x->err_line.len && (nl = memchr(x->err_line.data, '\n', x->err_line.len))) {
        size_t len = (size_t)(nl - (char *)x->err_line.data);
        log_said(x, len);
        buf_consume(&x->err_line, len + 1);
    }
    if (x->err_line.len <= LIMIT_STDERR_RING) return;
    log_said(x, x->err_line.len);
    buf_reset(&x->err_line);
}

/* At most `turns` reads, so that a flood does not keep the loop. */
static void read_some(struct exec *x, int turns) {
    char chunk[16 * 1024];
    while (turns-- > 0 && x->err_fd >= 0) {
        ssize_t n = read(x->err_fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            exec_stderr_stop(x);
            return;
        }
        keep(x, chunk, (size_t)n);
        log_lines(x, chunk, (size_t)n);
        if ((size_t)n < sizeof chunk) return;
    }
}

static void on_stderr(struct watch *w, uint32_t events) {
    (void)events;
    read_some((struct exec *)((char *)w - offsetof(struct exec, err_watch)), 16);
}

int exec_stderr_start(struct exec *x, int fd) {
    x->err_fd = fd;
    return watch_add(x->loop, &x->err_watch, fd, EPOLLIN, on_stderr);
}

void exec_stderr_drain(struct exec *x) { read_some(x, (int)(4 * LIMIT_STDERR_RING / (16 * KIB))); }

void exec_stderr_stop(struct exec *x) {
    watch_remove(&x->err_watch);
    if (x->err_line.len) log_said(x, x->err_line.len);
    buf_reset(&x->err_line);
    x->err_fd = safe_close(x->err_fd);
}

char *exec_stderr_hint(struct exec *x) {
    _cleanup_buf_ struct buf clean = BUF_INIT(0), out = BUF_INIT(0);
    secrets_clean(&x->secrets, x->err_ring.data, x->err_ring.len, &clean);
    const char *text = buf_cstr(&clean);
    size_t n = clean.len;
    if (!text) return NULL;
    while (n > 0 && text[n - 1] == ' ') n--;
    size_t from = n > LIMIT_STDERR_QUOTE ? n - LIMIT_STDERR_QUOTE : 0;
    while (from < n && ((unsigned char)text[from] & 0xC0) == 0x80) from++;
    while (from < n && text[from] == ' ') from++;
    if (from == n) return strdup("");
    buf_str(&out, "Plugin stderr: ");
    buf_append(&out, text + from, n - from);
    return buf_take(&out);
}
