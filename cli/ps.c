/* abx ps */
#include "commands.h"
#include "out.h"
#include "ui.h"

static int run(struct cli *cli) {
    static const char *const keys[] = {"pid", "status", "command"}, *const titles[] = {"PID", "STATUS", "COMMAND"};
    _cleanup_call_ struct ui_call c = {0};
    int r = ui_open(cli, &c, cli->args[0]);
    if (r == 0) r = abx_process_list_start(&c.op, c.sb, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    const abx_value *list = abx_value_get(c.value, "processes");
    if (cli->json) {
        out_json(list);
        return 0;
    }
    struct out_table t = {.columns = cli->quiet ? 1 : ARRAY_SIZE(keys)};
    for (size_t k = 0; k < t.columns && !cli->quiet; k++) out_cell(&t, titles[k]);
    for (size_t i = 0; i < abx_value_size(list); i++)
        for (size_t k = 0; k < t.columns; k++) {
            _cleanup_free_ char *text = ui_text(abx_value_get(abx_value_at(list, i), keys[k]));
            out_cell(&t, text);
        }
    out_table(&t);
    return 0;
}

const struct abx_cmd cmd_ps = {
    .name = "ps",
    .args = {1, 1},
    .usage = "REF",
    .summary = "list the processes of a sandbox",
    .examples = "abx ps my-cloud:sbx-1\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
