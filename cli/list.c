/* abx list */
#include "commands.h"
#include "out.h"
#include "ui.h"

static const struct abx_opt options[] = {
    {"all-providers", 0, NULL, "ask every installed provider"},
    {"status", 0, "STATUS", "only sandboxes with this status"},
    {"limit", 0, "COUNT", "at most this many of each provider", OPT_NUMBER},
    {0},
};

/* One provider's list, in flight while those of others are too. */
struct listing {
    struct ui_call call;
    char *provider;
    int started;
};

static void start(struct cli *cli, struct listing *l, const char *provider) {
    abx_provider_opts p = ui_provider(cli);
    p.provider = provider;
    l->provider = strdup(provider);
    l->started = abx_sandbox_list_start(&l->call.op, cli->client, &p, opt_text(cli, "status"), opt_number(cli, "limit", 0),
                                        &l->call.error);
}

/* Sandboxes of one answer, with the provider they belong to. */
static void collect(const struct listing *l, abx_value *all) {
    const abx_value *sandboxes = abx_value_get(l->call.value, "sandboxes");
    for (size_t i = 0; i < abx_value_size(sandboxes); i++) {
        const abx_value *record = abx_value_at(sandboxes, i);
        _cleanup_free_ char *ref = str_printf("%s:%s", l->provider, abx_value_get_string(record, "sandbox_id"));
        abx_value_append(all, ui_record(ref, l->provider, record));
    }
}

static void print(const struct cli *cli, const abx_value *all) {
    struct out_table t = {.columns = 5};
    if (cli->json) {
        out_json(all);
        return;
    }
    static const char *const keys[] = {"ref", "status", "template", "created_at", "expires_at"};
    static const char *const titles[] = {"REF", "STATUS", "TEMPLATE", "CREATED", "EXPIRES"};
    size_t columns = cli->quiet ? 1 : ARRAY_SIZE(keys);
    t.columns = columns;
    for (size_t i = 0; i < columns && !cli->quiet && abx_value_size(all); i++) out_cell(&t, titles[i]);
    for (size_t i = 0; i < abx_value_size(all); i++)
        for (size_t k = 0; k < columns; k++) out_cell(&t, abx_value_get_string(abx_value_at(all, i), keys[k]));
    out_table(&t);
}

/* A provider nobody gave credentials for, or of a kind that can't be started, has no sandboxes of ours. */
static bool not_set_up(const struct listing *l) {
    int code = abx_error_code(l->call.error);
    return (code <= ABX_E_AUTHENTICATION && code > -2000) || (l->started < 0 && code == ABX_E_PROVIDER);
}

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *rows = NULL, *all = abx_value_new_array();
    _cleanup_free_ char *chosen = NULL;
    bool every = opt_flag(cli, "all-providers");
    int worst = 0;
    int r = every ? abx_provider_list(cli->client, &rows, &e)
                  : cli->provider ? 0 : abx_provider_default(cli->client, &chosen, &e);
    if (r < 0) return ui_fail(cli, e);
    size_t n = every ? abx_value_size(rows) : 1;
    _cleanup_free_ struct listing *list = calloc(n + 1, sizeof *list);
    if (!list) {
        err_nomem(&e);
        return ui_fail(cli, e);
    }
    for (size_t i = 0; i < n; i++)
        start(cli, &list[i], every ? abx_value_get_string(abx_value_at(rows, i), "id") : cli->provider ?: chosen);
    for (size_t i = 0; i < n; i++) {
        int status = 0;
        if (ui_run(cli, &list[i].call, list[i].started) == 0)
            collect(&list[i], all);
        else if (every && not_set_up(&list[i]) && cli->quiet)
            status = 0;
        else if (every && not_set_up(&list[i]))
            out_note("%s: skipped: %s", list[i].provider, abx_error_message(list[i].call.error));
        else
            status = ui_fail(cli, list[i].call.error);
        worst = MAX_OF(worst, status);
        ui_call_done(&list[i].call);
        free(list[i].provider);
    }
    if (worst == 0 || every) print(cli, all);
    return worst;
}

const struct abx_cmd cmd_list = {
    .name = "list",
    .usage = "",
    .summary = "list sandboxes",
    .options = options,
    .examples = "abx list --status running\nabx list --all-providers --json\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
