/* abx port */
#include "commands.h"
#include "out.h"
#include "ui.h"

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    int64_t port = 0;
    int r = opt_to_number("PORT", cli->args[1], &port, &c.error);
    if (r == 0 && (port < 1 || port > 65535)) r = err_set(&c.error, ABX_E_CONFIG, "", "PORT must be between 1 and 65535, not %s.", cli->args[1]);
    if (r == 0) r = ui_open(cli, &c, cli->args[0]);
    if (r == 0) r = abx_ports_url_start(&c.op, c.sb, (int)port, &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    if (cli->json) {
        out_json(c.value);
    } else {
        out_foreign(abx_value_get_string(c.value, "url"));
        out_str("\n");
    }
    return 0;
}

const struct abx_cmd cmd_port = {
    .name = "port",
    .args = {2, 2},
    .usage = "REF PORT",
    .summary = "print the URL of a port of a sandbox; --json adds the headers to send",
    .examples = "abx port my-cloud:sbx-1 8080\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
