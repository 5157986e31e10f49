/* abx pause, abx resume */
#include "commands.h"
#include "ui.h"

static int change(struct cli *cli, int (*start)(abx_op **ret, abx_sandbox *sb, abx_error **reterr), const char *done, const char *word) {
    _cleanup_call_ struct ui_call c = {0};
    int r = ui_open(cli, &c, cli->args[0]);
    if (r == 0) r = start(&c.op, c.sb, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    const char *ref = abx_sandbox_ref_string(c.sb);
    ui_report(cli, ref, done, abx_value_new_bool(1), "%s %s", word, ref);
    return 0;
}

static int run_pause(struct cli *cli) { return change(cli, abx_sandbox_pause_start, "paused", "Paused"); }
static int run_resume(struct cli *cli) { return change(cli, abx_sandbox_resume_start, "resumed", "Resumed"); }

const struct abx_cmd cmd_pause = {
    .name = "pause",
    .args = {1, 1},
    .usage = "REF",
    .summary = "stop a sandbox and keep its state",
    .examples = "abx pause my-cloud:sbx-1\n",
    .flags = CMD_SANDBOX,
    .run = run_pause,
};

const struct abx_cmd cmd_resume = {
    .name = "resume",
    .args = {1, 1},
    .usage = "REF",
    .summary = "go on with a paused sandbox",
    .examples = "abx resume my-cloud:sbx-1\n",
    .flags = CMD_SANDBOX,
    .run = run_resume,
};
