/* abx config get, set, list, explain */
#include <errno.h>
#include <termios.h>

#include "commands.h"
#include "consent.h"
#include "out.h"
#include "ui.h"

/* ---- reading -------------------------------------------------------------------------- */

static int run_get(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *v = NULL;
    if (abx_config_get(cli->client, cli->args[0], &v, &e) < 0) return ui_fail(cli, e);
    if (cli->json) {
        out_json(v);
        return 0;
    }
    _cleanup_free_ char *text = ui_text(abx_value_get(v, "value"));
    out_foreign(text);
    out_str("\n");
    return 0;
}

/* All keys of the chosen provider, or the one named. */
static int explain(struct cli *cli, abx_value **ret, abx_error **reterr) {
    abx_value *one = NULL;
    if (!cli->arg_count) return abx_config_explain(cli->client, cli->provider, ret, reterr);
    int r = abx_config_get(cli->client, cli->args[0], &one, reterr);
    if (r < 0) return r;
    abx_value *list = abx_value_new_array();
    r = abx_value_append(list, one);
    *ret = list;
    return r < 0 ? err_nomem(reterr) : 0;
}

static int run_list(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *list = NULL;
    if (explain(cli, &list, &e) < 0) return ui_fail(cli, e);
    struct out_table t = {.columns = 3};
    for (size_t i = 0; i < abx_value_size(list) && !cli->json; i++) {
        const abx_value *v = abx_value_at(list, i);
        _cleanup_free_ char *text = ui_text(abx_value_get(v, "value"));
        if (!i) out_cell(&t, "KEY"), out_cell(&t, "VALUE"), out_cell(&t, "SOURCE");
        out_cell(&t, abx_value_get_string(v, "key"));
        out_cell(&t, text);
        out_cell(&t, abx_value_get_string(v, "source"));
    }
    if (cli->json) out_json(list);
    out_table(&t);
    return 0;
}

/* Every layer that has a value, the one in force first. */
static void print_layers(const abx_value *v) {
    const abx_value *layers = abx_value_get(v, "layers");
    for (size_t i = 0; i < abx_value_size(layers); i++) {
        const abx_value *layer = abx_value_at(layers, i);
        const char *name = abx_value_get_string(layer, "name");
        _cleanup_free_ char *text = ui_text(abx_value_get(layer, "value"));
        out_str(i ? "    hidden:   " : "    in force: ");
        out_foreign(text);
        out_str(" from ");
        out_foreign(abx_value_get_string(layer, "source"));
        if (name && *name) out_str(", ");
        out_foreign(name);
        out_str("\n");
    }
    if (!abx_value_size(layers)) out_str("    not set\n");
}

static int run_explain(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *list = NULL;
    if (explain(cli, &list, &e) < 0) return ui_fail(cli, e);
    if (cli->json) out_json(list);
    for (size_t i = 0; i < abx_value_size(list) && !cli->json; i++) {
        const abx_value *v = abx_value_at(list, i);
        const char *env = abx_value_get_string(v, "env");
        out_styled(OUT_BOLD, abx_value_get_string(v, "key") ?: "");
        if (abx_value_bool(abx_value_get(v, "secret"))) out_str(" (secret)");
        if (env && *env) out_str("  ");
        out_foreign(env);
        out_str("\n");
        print_layers(v);
    }
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

static const struct abx_opt set_options[] = {
    {"unset", 0, NULL, "remove the key"},
    {0},
};

/* The value from standard input, unseen when a person types it; an argument stands in process lists. */
static int ask_value(const struct cli *cli, char **ret, abx_error **reterr) {
    struct termios old, silent;
    bool terminal = tcgetattr(STDIN_FILENO, &old) == 0;
    if (terminal && !ui_can_ask(cli)) return err_set(reterr, ABX_E_CONFIG, "Pass VALUE, or --unset.", "There is no value to set.");
    if (terminal) {
        silent = old;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        out_err_bytes((abx_bytes){(const uint8_t *)"Value: ", 7});
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    }
    *ret = consent_read_line();
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
        out_note("%s", "");
    }
    if (*ret && **ret) return 0;
    if (ui_signal()) return err_set(reterr, -ECANCELED, "", "Cancelled.");
    return err_set(reterr, ABX_E_CONFIG, "Pass VALUE, or --unset.", "There is no value to set.");
}

static int run_set(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_free_ char *asked = NULL, *file = NULL;
    bool unset = opt_flag(cli, "unset");
    const char *key = cli->args[0], *value = cli->args[1];
    int r = 0;
    if (unset && value) r = err_set(&e, ABX_E_CONFIG, "", "--unset takes no value.");
    if (r == 0 && !unset && (!value || streq(value, "-"))) {
        r = ask_value(cli, &asked, &e);
        value = asked;
    }
    if (r == 0) r = abx_config_set(cli->client, key, value, &file, &e);
    if (r < 0) return ui_fail(cli, e);
    if (cli->json) {
        _cleanup_value_ abx_value *v = abx_value_new_object();
        abx_value_set_string(v, "key", key);
        abx_value_set_bool(v, "set", value != NULL);
        abx_value_set_string(v, "file", file);
        out_json(v);
    } else if (!cli->quiet) {
        out_str(unset ? "Removed " : "Set ");
        out_foreign(key);
        out_str(" in ");
        out_foreign(file);
        out_str("\n");
    }
    return 0;
}

const struct abx_cmd cmd_config_get = {
    .name = "config get",
    .args = {1, 1},
    .usage = "KEY",
    .summary = "print one setting; secrets are masked",
    .examples = "abx config get http_timeout\n",
    .run = run_get,
};

const struct abx_cmd cmd_config_set = {
    .name = "config set",
    .args = {1, 2},
    .usage = "KEY [VALUE]",
    .summary = "write a setting; without VALUE, or with -, it is read from standard input",
    .options = set_options,
    .examples = "abx config set core.provider my-cloud\nabx config set my-cloud.api_key\nabx config set http_timeout --unset\n",
    .run = run_set,
};

const struct abx_cmd cmd_config_list = {
    .name = "config list",
    .usage = "",
    .summary = "list the settings in force",
    .examples = "abx config list --provider my-cloud\n",
    .run = run_list,
};

const struct abx_cmd cmd_config_explain = {
    .name = "config explain",
    .args = {0, 1},
    .usage = "[KEY]",
    .summary = "show which layer gives each setting its value",
    .examples = "abx config explain provider\n",
    .run = run_explain,
};
