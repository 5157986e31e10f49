/* abx provider default */
#include "commands.h"
#include "out.h"
#include "ui.h"

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_free_ char *now = NULL;
    const char *id = cli->args[0];
    int r = id ? abx_provider_set_default(cli->client, id, &e) : abx_provider_default(cli->client, &now, &e);
    if (r < 0) return ui_fail(cli, e);
    if (cli->json) {
        _cleanup_value_ abx_value *v = abx_value_new_object();
        abx_value_set_string(v, "default", id ?: now);
        out_json(v);
        return 0;
    }
    if (id) out_str("Default provider: ");
    out_foreign(id ?: now);
    out_str("\n");
    return 0;
}

const struct abx_cmd cmd_provider_default = {
    .name = "provider default",
    .args = {0, 1},
    .usage = "[ID]",
    .summary = "show the default provider, or set it in config.toml",
    .examples = "abx provider default\nabx provider default my-cloud\n",
    .run = run,
};
