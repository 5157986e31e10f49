/* abx provider uninstall */
#include "commands.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"purge", 0, NULL, "also remove its data and its settings"},
    {0},
};

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *v = NULL;
    if (abx_uninstall(cli->client, cli->args[0], opt_flag(cli, "purge"), &v, &e) < 0) return ui_fail(cli, e);
    if (cli->json) {
        out_json(v);
    } else if (!cli->quiet) {
        out_str("Removed ");
        out_foreign(cli->args[0]);
        out_str("\n");
    }
    return 0;
}

const struct abx_cmd cmd_provider_uninstall = {
    .name = "provider uninstall",
    .args = {1, 1},
    .usage = "ID",
    .summary = "remove a plugin; its data and settings stay unless --purge is given",
    .options = options,
    .examples = "abx provider uninstall my-cloud --purge\n",
    .run = run,
};
