/* Help from the table, abx help and abx version. */
#include <ctype.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "commands.h"
#include "out.h"
#include "ui.h"

static void print_options(const char *title, const struct abx_opt *table) {
    size_t width = 0;
    for (const struct abx_opt *o = table; o->name; o++) {
        _cleanup_free_ char *label = opt_label(o);
        width = MAX_OF(width, label ? utf8_width(label) : 0);
    }
    out_str("\n");
    out_styled(OUT_BOLD, title);
    out_str("\n");
    for (const struct abx_opt *o = table; o->name; o++) {
        _cleanup_free_ char *label = opt_label(o);
        out_str("  ");
        out_column(label, width + 1);
        out_printf("%s\n", o->summary);
    }
}

int help_command(const struct abx_cmd *cmd) {
    _cleanup_free_ char *usage = cmd_usage_line(cmd);
    out_printf("Usage: %s\n\n%c%s.\n", usage ?: cmd->name, toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
    if (cmd->options) print_options("Options:", cmd->options);
    print_options("Global options:", opt_globals);
    if (cmd->examples) {
        out_str("\n");
        out_styled(OUT_BOLD, "Examples:");
        out_str("\n");
        for (const char *p = cmd->examples; *p;) {
            size_t n = strcspn(p, "\n");
            out_printf("  %.*s\n", (int)n, p);
            p += n + (p[n] == '\n');
        }
    }
    return 0;
}

static bool in_group(const struct abx_cmd *cmd, const char *group) {
    if (cmd->flags & CMD_HIDDEN) return false;
    if (streq(group, "sandbox")) return cmd->flags & CMD_SANDBOX;
    size_t n = strlen(group);
    return !n || (strncmp(cmd->name, group, n) == 0 && cmd->name[n] == ' ');
}

int help_group(const char *group) {
    size_t width = 0;
    out_printf("Usage: abx %s%sCOMMAND [arguments] [options]\n\n", group, *group ? " " : "");
    if (!*group) out_str("Run code in sandboxes of any provider, and manage the providers.\n\n");
    out_styled(OUT_BOLD, "Commands:");
    out_str("\n");
    for (size_t i = 0; cmd_table[i]; i++)
        if (in_group(cmd_table[i], group)) width = MAX_OF(width, strlen(cmd_table[i]->name));
    for (size_t i = 0; cmd_table[i]; i++) {
        if (!in_group(cmd_table[i], group)) continue;
        out_str("  ");
        out_column(cmd_table[i]->name, width + 1);
        out_printf("%s\n", cmd_table[i]->summary);
    }
    print_options("Global options:", opt_globals);
    out_printf("\nREF is PROVIDER:SANDBOX, or a sandbox id alone with --provider or the default provider.\n"
               "'abx %s%sCOMMAND --help' says more about a command.\n", group, *group ? " " : "");
    return 0;
}

/* abx help provider install; abx help provider; abx help. */
static int run_help(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    for (char **arg = cli->args; *arg; arg++) buf_printf(&b, "%s%s", b.len ? " " : "", *arg);
    const char *name = buf_cstr(&b) ?: "";
    const struct abx_cmd *cmd = *name ? cmd_find(name) : NULL;
    if (cmd) return help_command(cmd);
    if (!*name || cmd_is_group(name)) return help_group(name);
    bool deep = cli->arg_count > 1 && cmd_is_group(cli->args[0]);
    cmd_unknown(deep ? cli->args[0] : "", cli->args[deep], &e);
    return ui_fail(cli, e);
}

static int run_version(struct cli *cli) {
    if (cli->json) {
        _cleanup_value_ abx_value *v = abx_value_new_object();
        abx_value_set_string(v, "version", abx_version_string());
        out_json(v);
    } else {
        out_printf("abx %s\n", abx_version_string());
    }
    return 0;
}

const struct abx_cmd cmd_help = {
    .name = "help",
    .args = {0, -1},
    .usage = "[COMMAND]",
    .summary = "show help for a command",
    .examples = "abx help provider install\n",
    .flags = CMD_LOCAL,
    .run = run_help,
};

const struct abx_cmd cmd_version = {
    .name = "version",
    .usage = "",
    .summary = "show the version",
    .flags = CMD_LOCAL,
    .run = run_version,
};
