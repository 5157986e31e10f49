/* abx kill */
#include "commands.h"
#include "out.h"
#include "ui.h"

/* Every one is tried; the exit status is the worst. */
static int run(struct cli *cli) {
    _cleanup_value_ abx_value *done = abx_value_new_array();
    int worst = 0;
    for (char **ref = cli->args; *ref && !(worst && ui_signal()); ref++) {
        _cleanup_call_ struct ui_call c = {0};
        int r = ui_open(cli, &c, *ref);
        if (r == 0) r = abx_sandbox_kill_start(&c.op, c.sb, &c.error);
        if (ui_run(cli, &c, r) < 0) {
            int status = ui_fail(cli, c.error);
            worst = MAX_OF(worst, status);
            continue;
        }
        if (!cli->json && !cli->quiet) {
            out_str("Killed ");
            out_foreign(abx_sandbox_ref_string(c.sb));
            out_str("\n");
        }
        abx_value *v = abx_value_new_object();
        abx_value_set_string(v, "ref", abx_sandbox_ref_string(c.sb));
        abx_value_set_bool(v, "killed", 1);
        abx_value_append(done, v);
    }
    if (cli->json && (worst == 0 || abx_value_size(done))) out_json(done);
    return worst;
}

const struct abx_cmd cmd_kill = {
    .name = "kill",
    .args = {1, -1},
    .usage = "REF...",
    .summary = "end sandboxes",
    .examples = "abx kill my-cloud:sbx-1\nabx list -q | xargs -r abx kill\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
