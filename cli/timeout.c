/* abx timeout */
#include "commands.h"
#include "ui.h"

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    int64_t seconds = 0;
    int r = opt_to_number("SECONDS", cli->args[1], &seconds, &c.error);
    if (r == 0) r = ui_open(cli, &c, cli->args[0]);
    if (r == 0) r = abx_sandbox_set_timeout_start(&c.op, c.sb, seconds, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    const char *ref = abx_sandbox_ref_string(c.sb);
    ui_report(cli, ref, "timeout", abx_value_new_int(seconds), "%s ends in %lld seconds", ref, (long long)seconds);
    return 0;
}

const struct abx_cmd cmd_timeout = {
    .name = "timeout",
    .args = {2, 2},
    .usage = "REF SECONDS",
    .summary = "set how long a sandbox lives from now",
    .examples = "abx timeout my-cloud:sbx-1 3600\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
