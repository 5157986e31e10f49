/* abx man: the manual page from the table, for the build. */
#include "commands.h"
#include "out.h"
#include "ui.h"

/* Text in roff: no escapes, no request at the start of a line, hyphens that can be copied. */
static void roff(const char *s) {
    for (const char *start = s; *s; s++) {
        bool line_start = s == start || s[-1] == '\n';
        if (line_start && (*s == '.' || *s == '\'')) out_str("\\&");
        if (*s == '\\')
            out_str("\\e");
        else if (*s == '-')
            out_str("\\-");
        else
            out_printf("%c", *s);
    }
}

static void options(const struct abx_opt *table) {
    for (; table && table->name; table++) {
        _cleanup_free_ char *label = opt_label(table);
        out_str(".TP\n.B ");
        roff(label ?: table->name);
        out_str("\n");
        roff(table->summary);
        out_str(".\n");
    }
}

static void command(const struct abx_cmd *cmd) {
    _cleanup_free_ char *usage = cmd_usage_line(cmd);
    out_str(".SS ");
    roff(usage ?: cmd->name);
    out_str("\n");
    roff(cmd->summary);
    out_str(".\n");
    options(cmd->options);
    if (!cmd->examples) return;
    out_str(".PP\nExamples:\n.PP\n.nf\n.RS\n");
    roff(cmd->examples);
    out_str(".RE\n.fi\n");
}

static int run(struct cli *cli) {
    (void)cli;
    out_printf(".TH ABX 1 \"\" \"abx %s\" \"User Commands\"\n", abx_version_string());
    out_str(".SH NAME\nabx \\- run code in sandboxes of any provider, and manage the providers\n"
            ".SH SYNOPSIS\n.B abx\nCOMMAND [arguments] [options]\n"
            ".SH DESCRIPTION\n"
            "REF is PROVIDER:SANDBOX, or a sandbox id alone with \\-\\-provider or the default provider.\n"
            "Results go to standard output, everything else to standard error.\n"
            "The first Ctrl\\-C cancels what is running, the second kills.\n"
            ".SH GLOBAL OPTIONS\nThey may stand anywhere.\n");
    options(opt_globals);
    out_str(".SH COMMANDS\n\"abx sandbox COMMAND\" is the same as \"abx COMMAND\" for the sandbox commands.\n");
    for (size_t i = 0; cmd_table[i]; i++)
        if (!(cmd_table[i]->flags & CMD_HIDDEN)) command(cmd_table[i]);
    out_str(".SH EXIT STATUS\n"
            ".B exec\nand\n.B run\nexit with the status of the command, 128 + signal when it was killed.\n"
            ".TP\n0\nDone.\n"
            ".TP\n1\nAny other error, or the output could not be written.\n"
            ".TP\n2\nWrong usage, configuration, trust (E8012), or a reference of another provider; a doctor that found something.\n"
            ".TP\n3\nCredentials.\n"
            ".TP\n4\nNot found: template, sandbox, file, provider.\n"
            ".TP\n5\nTimed out.\n"
            ".TP\n6\nQuota exceeded.\n"
            ".TP\n128 + signal\nInterrupted, also by a reader of the output that left.\n"
            ".SH ENVIRONMENT\n"
            ".TP\n.B ABX_HOME\nDirectory of the configuration and the plugins (default ~/.abx).\n"
            ".TP\n.B ABX_PROVIDER\nThe default provider.\n"
            ".TP\n.B NO_COLOR\nNo colour unless \\-\\-color=always.\n"
            ".SH FILES\n~/.abx/config.toml, ~/.abx/.env, ~/.abx/providers\n");
    return 0;
}

const struct abx_cmd cmd_man = {
    .name = "man",
    .usage = "",
    .summary = "print the manual page",
    .flags = CMD_LOCAL | CMD_HIDDEN,
    .run = run,
};
