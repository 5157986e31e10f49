/* Standard input in chunks, and abx stdin. */
#include "stdin.h"

#include <errno.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "commands.h"
#include "ui.h"

int stdin_read(struct stdin_reader *rd, abx_bytes *ret) {
    buf_consume(&rd->buf, rd->given);
    rd->given = 0;
    char *room = buf_reserve(&rd->buf, 64 * KIB);
    if (!room) return -ENOMEM;
    ssize_t n = read(STDIN_FILENO, room, 64 * KIB);
    if (n < 0) return errno == EAGAIN ? 0 : -errno;
    buf_commit(&rd->buf, (size_t)n);
    rd->end = n == 0;
    /* At the end a broken character goes out as it is, for the library to refuse. */
    rd->given = rd->buf.len - (rd->end ? 0 : utf8_incomplete_tail(rd->buf.data, rd->buf.len));
    *ret = (abx_bytes){(const uint8_t *)rd->buf.data, rd->given};
    return rd->given > 0;
}

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    struct stdin_reader rd = {0};
    const char *pid = cli->args[1];
    int64_t total = 0;
    int r = ui_open(cli, &c, cli->args[0]);
    while (r >= 0 && !rd.end) {
        abx_bytes chunk;
        r = stdin_read(&rd, &chunk);
        if (r == -EINTR && !ui_signal()) r = 0;
        if (r < 0) err_errno(&c.error, ui_signal() ? -ECANCELED : ABX_E_GENERIC, r, "Cannot read standard input");
        if (r == 1) r = ui_run(cli, &c, abx_process_stdin_start(&c.op, c.sb, pid, chunk, &c.error));
        if (r >= 0) total += (int64_t)rd.given;
    }
    buf_done(&rd.buf);
    if (r < 0) return ui_fail(cli, c.error);
    ui_report(cli, abx_sandbox_ref_string(c.sb), "sent", abx_value_new_int(total), "Sent %lld bytes to %s", (long long)total, pid);
    return 0;
}

const struct abx_cmd cmd_stdin = {
    .name = "stdin",
    .args = {2, 2},
    .usage = "REF PID",
    .summary = "send standard input to a process of a sandbox",
    .examples = "echo yes | abx stdin my-cloud:sbx-1 42\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
