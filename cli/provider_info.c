/* abx provider info */
#include "commands.h"
#include "out.h"
#include "ui.h"

static bool only_verbose(const char *key) { return streq(key, "unknown_keys") || streq(key, "directory"); }

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *info = NULL, *shown = abx_value_new_object();
    if (abx_provider_info(cli->client, cli->args[0], &info, &e) < 0) return ui_fail(cli, e);
    for (size_t i = 0; i < abx_value_size(info); i++) {
        const char *key = abx_value_key_at(info, i);
        if (cli->verbose || !only_verbose(key)) abx_value_set(shown, key, abx_value_ref(abx_value_at(info, i)));
    }
    out_json(shown);
    return 0;
}

const struct abx_cmd cmd_provider_info = {
    .name = "provider info",
    .args = {1, 1},
    .usage = "ID",
    .summary = "show everything about a provider as JSON; --verbose adds unknown manifest keys",
    .examples = "abx provider info my-cloud\n",
    .run = run,
};
