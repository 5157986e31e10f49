/* abx provider doctor */
#include "commands.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"no-handshake", 0, NULL, "do not start the plugin"},
    {0},
};

static void print(const abx_value *check) {
    bool ok = abx_value_bool(abx_value_get(check, "ok"));
    const char *detail = abx_value_get_string(check, "detail");
    out_styled(ok ? OUT_GREEN : OUT_RED, ok ? "ok  " : "FAIL");
    out_str(" ");
    out_foreign(abx_value_get_string(check, "name"));
    if (detail && *detail) out_str(": ");
    out_foreign(detail);
    out_str("\n");
}

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    abx_provider_opts p = ui_provider(cli);
    if (cli->arg_count) p.provider = cli->args[0];
    int r = abx_provider_doctor_start(&c.op, cli->client, &p, opt_flag(cli, "no-handshake"), &c.error);
    if (ui_run(cli, &c, r) < 0) return ui_fail(cli, c.error);
    const abx_value *checks = abx_value_get(c.value, "checks");
    if (cli->json)
        out_json(c.value);
    else
        for (size_t i = 0; i < abx_value_size(checks); i++) print(abx_value_at(checks, i));
    return abx_value_bool(abx_value_get(c.value, "ok")) ? 0 : 2;
}

const struct abx_cmd cmd_provider_doctor = {
    .name = "provider doctor",
    .args = {0, 1},
    .usage = "[ID]",
    .summary = "check a provider: files, configuration, credentials, handshake; 2 when something is wrong",
    .options = options,
    .examples = "abx provider doctor my-cloud\nabx provider doctor --no-handshake\n",
    .run = run,
};
