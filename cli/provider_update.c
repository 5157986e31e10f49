/* abx provider update */
#include "commands.h"
#include "consent.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"check", 0, NULL, "say what is available and change nothing"},
    {"ref", 0, "REF", "move to this branch, tag or full commit"},
    {"yes", 'y', NULL, "agree without being asked; does not accept a moving ref"},
    {"allow-unpinned", 0, NULL, "accept a ref that can move"},
    {"allow-insecure-transport", 0, NULL, "accept file://, http:// and git:// sources"},
    {"no-verify", 0, NULL, "do not start the new version once to check it"},
    {0},
};

/* The result with another status. */
static abx_value *with_status(const abx_value *result, const char *status) {
    abx_value *v = abx_value_new_object();
    for (size_t i = 0; i < abx_value_size(result); i++) {
        const char *key = abx_value_key_at(result, i);
        if (streq(key, "status"))
            abx_value_set_string(v, key, status);
        else
            abx_value_set(v, key, abx_value_ref(abx_value_at(result, i)));
    }
    return v;
}

static void print(const abx_value *result) {
    const char *message = abx_value_get_string(result, "message");
    out_foreign(abx_value_get_string(result, "id"));
    out_str(": ");
    out_foreign(abx_value_get_string(result, "status"));
    if (message) out_str(" \xe2\x80\x94 ");
    out_foreign(message);
    out_str("\n");
}

/* One provider; its result joins results. The exit status. */
static int update(struct cli *cli, const char *id, abx_value *results) {
    _cleanup_call_ struct ui_call c = {0};
    abx_update_opts o = ABX_UPDATE_OPTS_INIT;
    o.id = id;
    o.ref = opt_text(cli, "ref");
    o.check = opt_flag(cli, "check");
    o.allow_unpinned = opt_flag(cli, "allow-unpinned");
    o.allow_insecure_transport = opt_flag(cli, "allow-insecure-transport");
    o.no_verify = opt_flag(cli, "no-verify");
    o.consent = consent_known(cli);
    int r = ui_run(cli, &c, abx_update_plan_start(&c.op, cli->client, &o, &c.error));
    _cleanup_value_ abx_value *result = c.value ? abx_value_ref(c.value) : NULL;
    if (r == 0 && c.plan && !o.check) {
        r = ui_run(cli, &c, abx_plan_apply_start(&c.op, c.plan, consent_ask(cli, c.plan, "Update"), &c.error));
        if (r == 0) {
            abx_value *updated = with_status(result, "updated");
            abx_value_unref(result);
            result = updated;
        }
    }
    if (r < 0) return ui_fail(cli, c.error);
    if (!cli->json && !cli->quiet) print(result);
    abx_value_append(results, TAKE_PTR(result));
    return 0;
}

/* All that are installed: one that fails does not keep the others back. */
static int update_all(struct cli *cli, abx_value *results) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *list = NULL;
    int worst = 0;
    if (abx_provider_list(cli->client, &list, &e) < 0) return ui_fail(cli, e);
    for (size_t i = 0; i < abx_value_size(list) && !ui_signal(); i++) {
        const abx_value *row = abx_value_at(list, i);
        const char *trust = abx_value_get_string(row, "trust");
        if (streq0(trust, "builtin") || streq0(trust, "code")) continue;
        int status = update(cli, abx_value_get_string(row, "id"), results);
        worst = MAX_OF(worst, status);
    }
    return worst;
}

static int run(struct cli *cli) {
    _cleanup_value_ abx_value *results = abx_value_new_array();
    int status = cli->arg_count ? update(cli, cli->args[0], results) : update_all(cli, results);
    if (cli->json && (status == 0 || abx_value_size(results))) out_json(results);
    return status;
}

const struct abx_cmd cmd_provider_update = {
    .name = "provider update",
    .args = {0, 1},
    .usage = "[ID]",
    .summary = "update one plugin, or all, from where it was installed",
    .options = options,
    .examples = "abx provider update --check\nabx provider update my-cloud --ref v1.3.0\n",
    .run = run,
};
