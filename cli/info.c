/* abx info */
#include "commands.h"
#include "out.h"
#include "ui.h"

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    int r = ui_open(cli, &c, cli->args[0]);
    if (r == 0) r = abx_sandbox_info_start(&c.op, c.sb, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    _cleanup_value_ abx_value *v = ui_record(abx_sandbox_ref_string(c.sb), abx_sandbox_provider(c.sb), c.value);
    if (cli->json)
        out_json(v);
    else
        ui_print_members(v);
    return 0;
}

const struct abx_cmd cmd_info = {
    .name = "info",
    .args = {1, 1},
    .usage = "REF",
    .summary = "show a sandbox",
    .examples = "abx info my-cloud:sbx-1\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
