/* abx provider install */
#include "commands.h"
#include "consent.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"ref", 0, "REF", "branch, tag or full commit to install; a full commit pins the source"},
    {"subdir", 0, "DIR", "directory of the plugin inside the source"},
    {"sha256", 0, "DIGEST", "pin the source to this tree digest"},
    {"link", 0, NULL, "use a local directory as it is, without an integrity check"},
    {"force", 0, NULL, "replace what is installed under the same id"},
    {"yes", 'y', NULL, "agree without being asked; does not accept a moving ref"},
    {"allow-unpinned", 0, NULL, "accept a ref that can move"},
    {"allow-insecure-transport", 0, NULL, "accept file://, http:// and git:// sources"},
    {"no-verify", 0, NULL, "do not start the plugin once to check it"},
    {0},
};

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    abx_install_opts o = ABX_INSTALL_OPTS_INIT;
    o.source = cli->args[0];
    o.ref = opt_text(cli, "ref");
    o.sha256 = opt_text(cli, "sha256");
    o.subdir = opt_text(cli, "subdir");
    o.link = opt_flag(cli, "link");
    o.force = opt_flag(cli, "force");
    o.allow_unpinned = opt_flag(cli, "allow-unpinned");
    o.allow_insecure_transport = opt_flag(cli, "allow-insecure-transport");
    o.no_verify = opt_flag(cli, "no-verify");
    o.consent = consent_known(cli);
    int r = ui_run(cli, &c, abx_install_plan_start(&c.op, cli->client, &o, &c.error));
    if (r == 0) r = ui_run(cli, &c, abx_plan_apply_start(&c.op, c.plan, consent_ask(cli, c.plan, "Install"), &c.error));
    if (r < 0) return ui_fail(cli, c.error);
    if (cli->json) {
        out_json(c.value);
    } else if (!cli->quiet) {
        out_str("Installed ");
        out_foreign(abx_value_get_string(c.value, "id"));
        out_str(" ");
        out_foreign(abx_value_get_string(c.value, "version"));
        out_str("\n");
    }
    return 0;
}

const struct abx_cmd cmd_provider_install = {
    .name = "provider install",
    .args = {1, 1},
    .usage = "SOURCE",
    .summary = "install a plugin from a directory, a git URL or OWNER/REPO[//DIR][@REF]",
    .options = options,
    .examples = "abx provider install ./my-provider\n"
                "abx provider install https://example.com/acme/provider.git --ref 0123456789abcdef0123456789abcdef01234567\n"
                "abx provider install ./my-provider --link --yes\n",
    .run = run,
};
