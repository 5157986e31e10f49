/* abx provider list */
#include "commands.h"
#include "out.h"
#include "ui.h"

/* The keys of the reference; "error" only where there is one. */
static abx_value *public_row(const abx_value *row) {
    static const char *const keys[] = {"id", "name", "name_zh", "version", "kind", "trust", "features", "default", "error"};
    abx_value *v = abx_value_new_object();
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const abx_value *member = abx_value_get(row, keys[i]);
        if (member) abx_value_set(v, keys[i], abx_value_ref(member));
    }
    return v;
}

/* Widths are the reference's; a longer text pushes its own line only. */
static void print_row(const abx_value *row) {
    static const struct { const char *key; size_t width; } columns[] = {{"id", 24}, {"version", 10}, {"kind", 8}, {"trust", 9}};
    const abx_value *error = abx_value_get(row, "error");
    _cleanup_free_ char *features = abx_features_line(abx_value_get(row, "features"));
    out_str(abx_value_bool(abx_value_get(row, "default")) ? "* " : "  ");
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        const char *text = abx_value_get_string(row, columns[i].key);
        out_column(error && (!text || !*text) ? "-" : text, columns[i].width);
    }
    if (error) {
        out_styled(OUT_RED, "broken:");
        out_str(" [");
        out_foreign(abx_value_get_string(error, "code"));
        out_str("] ");
        out_foreign(abx_value_get_string(error, "message"));
    } else {
        out_foreign(features);
    }
    out_str("\n");
}

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *list = NULL, *rows = abx_value_new_array();
    if (abx_provider_list(cli->client, &list, &e) < 0) return ui_fail(cli, e);
    for (size_t i = 0; i < abx_value_size(list); i++) {
        if (cli->json)
            abx_value_append(rows, public_row(abx_value_at(list, i)));
        else if (cli->quiet)
            out_printf("%s\n", abx_value_get_string(abx_value_at(list, i), "id"));
        else
            print_row(abx_value_at(list, i));
    }
    if (cli->json) out_json(rows);
    return 0;
}

const struct abx_cmd cmd_provider_list = {
    .name = "provider list",
    .usage = "",
    .summary = "list the providers, * marks the default one",
    .examples = "abx provider list\nabx provider list --json\n",
    .run = run,
};
