/* abx provider new */
#include "commands.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"kind", 0, "exec|rest", "a program, or a manifest for an E2B-compatible server (default exec)"},
    {"lang", 0, "python|node|c|shell", "what the program is written in (default python)"},
    {"dir", 0, "DIR", "where to put it (default ./ID)"},
    {0},
};

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    const char *id = cli->args[0], *dir = opt_text(cli, "dir") ?: id;
    if (abx_provider_scaffold(id, dir, opt_text(cli, "kind") ?: "exec", opt_text(cli, "lang") ?: "python", &e) < 0)
        return ui_fail(cli, e);
    if (cli->json) {
        _cleanup_value_ abx_value *v = abx_value_new_object();
        abx_value_set_string(v, "id", id);
        abx_value_set_string(v, "directory", dir);
        out_json(v);
    } else if (!cli->quiet) {
        const char *here = strchr(dir, '/') ? "" : "./"; /* "a/b" could be taken for OWNER/REPO only where it is missing */
        bool made = streq0(opt_text(cli, "lang"), "c") && !streq0(opt_text(cli, "kind"), "rest");
        _cleanup_free_ char *build = made ? str_printf("make -C %s%s && ", here, dir) : NULL;
        out_printf("Created %s%s\nTry it: %sabx provider install %s%s --link --yes && abx provider doctor %s\n", here, dir, build ?: "", here, dir, id);
    }
    return 0;
}

const struct abx_cmd cmd_provider_new = {
    .name = "provider new",
    .args = {1, 1},
    .usage = "ID",
    .summary = "write the skeleton of a plugin",
    .options = options,
    .examples = "abx provider new my-cloud\nabx provider new my-cloud --lang c --dir ./src/my-cloud\n",
    .flags = CMD_LOCAL,
    .run = run,
};
