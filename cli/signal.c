/* abx signal */
#include <signal.h>

#include "commands.h"
#include "signame.h"
#include "ui.h"

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    const char *pid = cli->args[1];
    int r = 0, signo = cli->args[2] ? signame_parse(cli->args[2]) : SIGTERM;
    if (!signo)
        r = err_set(&c.error, ABX_E_CONFIG, "Use a name such as TERM or INT, or a number.", "'%s' is no signal.", cli->args[2]);
    if (r == 0) r = ui_open(cli, &c, cli->args[0]);
    /* Backends that know one signal only have it as a method of its own. */
    if (r == 0)
        r = signo == SIGKILL ? abx_process_kill_start(&c.op, c.sb, pid, &c.error)
                             : abx_process_signal_start(&c.op, c.sb, pid, signo, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    ui_report(cli, abx_sandbox_ref_string(c.sb), "signal", abx_value_new_int(signo), "Sent SIG%s to %s", sigabbrev_np(signo) ?: "?", pid);
    return 0;
}

const struct abx_cmd cmd_signal = {
    .name = "signal",
    .args = {2, 3},
    .usage = "REF PID [SIGNAL]",
    .summary = "send a signal (default TERM) to a process of a sandbox",
    .examples = "abx signal my-cloud:sbx-1 42 INT\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
