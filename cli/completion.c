/* abx completion: scripts for bash, zsh and fish, made from the table. */
#include "commands.h"
#include "out.h"
#include "ui.h"

/* How each shell finds out which command the line is about: the words that are neither options nor
 * their values, as far as they can be a command's name. */

/* ---- parts ------------------------------------------------------------------------------ */

/* Text inside single quotes. */
static void quoted(const char *s) {
    out_str("'");
    for (; *s; s++) {
        if (*s == '\'')
            out_str("'\\''");
        else
            out_printf("%c", *s);
    }
    out_str("'");
}

static void words(char *const *list) {
    for (size_t i = 0; list && list[i]; i++) out_printf("%s%s", i ? " " : "", list[i]);
}

static void option_names(const struct abx_opt *table) {
    for (; table && table->name; table++) out_printf(" --%s", table->name);
}

typedef void (*opt_visit)(const struct abx_opt *opt);

static void visit_new(const struct abx_opt *table, char ***seen, opt_visit visit) {
    for (; table && table->name; table++)
        if (!strv_contains(*seen, table->name) && strv_append(seen, table->name) == 0) visit(table);
}

/* Each option of any table once, by name. */
static void each_option(opt_visit visit) {
    _cleanup_strv_ char **seen = NULL;
    visit_new(opt_globals, &seen, visit);
    for (size_t i = 0; cmd_table[i]; i++) visit_new(cmd_table[i]->options, &seen, visit);
}

static void value_option(const struct abx_opt *o) {
    if (o->value) out_printf("--%s|", o->name);
}

/* The groups of the table, "" (no word yet) first. */
static char **groups(void) {
    char **list = NULL;
    strv_append(&list, "");
    for (size_t i = 0; cmd_table[i]; i++) {
        size_t n = strcspn(cmd_table[i]->name, " ");
        _cleanup_free_ char *group = cmd_table[i]->name[n] ? strndup(cmd_table[i]->name, n) : NULL;
        if (group && !strv_contains(list, group)) strv_append(&list, group);
    }
    strv_append(&list, "sandbox");
    return list;
}

/* Whether the first argument is the id of a provider that exists. */
static bool takes_provider(const struct abx_cmd *cmd) {
    return !(cmd->flags & CMD_LOCAL) && (streq(cmd->usage, "ID") || streq(cmd->usage, "[ID]"));
}

static const char *summary_of(const char *group, const char *word) {
    _cleanup_free_ char *name = str_printf("%s%s%s", group, *group ? " " : "", word);
    const struct abx_cmd *cmd = name ? cmd_find(name) : NULL;
    return cmd ? cmd->summary : "more commands";
}

/* ---- bash --------------------------------------------------------------------------------- */

static void bash_choices(const struct abx_opt *o) {
    _cleanup_strv_ char **choices = opt_choices(o);
    if (!choices) return;
    out_printf("    --%s) COMPREPLY=($(compgen -W \"", o->name);
    words(choices);
    out_str("\" -- \"$cur\")); return ;;\n");
}

/* The words before the cursor, common to bash and zsh but for where they are kept. */
static void walk(const char *loop, const char *word) {
    out_printf("    %s; do\n        w=%s\n", loop, word);
    out_str("        if [[ $w == -- ]]; then return 0; fi\n"
            "        if [[ -n $skip ]]; then skip=; continue; fi\n"
            "        case $w in\n        ");
    each_option(value_option);
    out_str("--) skip=1; continue ;;\n        -*|=) continue ;;\n        esac\n        case $name in\n");
    _cleanup_strv_ char **list = groups();
    out_str("        ");
    for (size_t i = 0; list && list[i]; i++) out_printf("%s\"%s\"", i ? "|" : "", list[i]);
    out_str(") [[ $name == sandbox ]] && name=; name=\"${name:+$name }$w\" ;;\n        esac\n    done\n");
}

static void bash(void) {
    _cleanup_strv_ char **list = groups();
    out_str("# bash completion for abx\n_abx() {\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} name= skip= words= w i\n"
            "    [[ $cur == '=' ]] && cur=\n"
            "    [[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
            "    COMPREPLY=()\n");
    walk("for ((i = 1; i < COMP_CWORD; i++))", "${COMP_WORDS[i]}");
    out_str("    case $prev in\n    --provider) COMPREPLY=($(compgen -W \"$(abx provider list --quiet 2>/dev/null)\" -- \"$cur\")); return ;;\n");
    each_option(bash_choices);
    out_str("    esac\n    case $name in\n");
    for (size_t i = 0; list && list[i]; i++) {
        _cleanup_strv_ char **members = cmd_words(list[i]);
        out_printf("    \"%s\") words=\"", list[i]);
        words(members);
        out_str("\" ;;\n");
    }
    for (size_t i = 0; cmd_table[i]; i++) {
        const struct abx_cmd *cmd = cmd_table[i];
        _cleanup_strv_ char **choices = opt_split_choices(cmd->usage);
        if (cmd->flags & CMD_HIDDEN) continue;
        out_printf("    \"%s\") words=\"", cmd->name);
        words(choices);
        if (takes_provider(cmd)) out_str("$(abx provider list --quiet 2>/dev/null)");
        option_names(cmd->options);
        out_str("\" ;;\n");
    }
    out_str("    esac\n    words+=\"");
    option_names(opt_globals);
    out_str("\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _abx abx\n");
}

/* ---- zsh ----------------------------------------------------------------------------------- */

static void zsh_pair(const char *name, const char *summary) {
    _cleanup_free_ char *text = str_printf("%s:%s", name, summary);
    out_str(" ");
    quoted(text ?: name);
}

static void zsh_options(const struct abx_opt *table) {
    for (; table && table->name; table++) {
        _cleanup_free_ char *name = str_printf("--%s", table->name);
        zsh_pair(name ?: "", table->summary);
    }
}

static void zsh_choices(const struct abx_opt *o) {
    _cleanup_strv_ char **choices = opt_choices(o);
    if (!choices) return;
    out_printf("    --%s) compadd -- ", o->name);
    words(choices);
    out_str("; return ;;\n");
}

static void zsh(void) {
    _cleanup_strv_ char **list = groups();
    out_str("#compdef abx\n_abx() {\n    local name= skip= w i\n    local -a verbs opts\n");
    walk("for ((i = 2; i < CURRENT; i++))", "${words[i]}");
    out_str("    case ${words[CURRENT-1]} in\n    --provider) compadd -- ${(f)\"$(abx provider list --quiet 2>/dev/null)\"}; return ;;\n");
    each_option(zsh_choices);
    out_str("    esac\n    case $name in\n");
    for (size_t i = 0; list && list[i]; i++) {
        _cleanup_strv_ char **members = cmd_words(list[i]);
        out_printf("    \"%s\") verbs=(", list[i]);
        for (size_t k = 0; members && members[k]; k++) zsh_pair(members[k], summary_of(list[i], members[k]));
        out_str(" ) ;;\n");
    }
    for (size_t i = 0; cmd_table[i]; i++) {
        const struct abx_cmd *cmd = cmd_table[i];
        _cleanup_strv_ char **choices = opt_split_choices(cmd->usage);
        if (cmd->flags & CMD_HIDDEN) continue;
        out_printf("    \"%s\") verbs=( ", cmd->name);
        words(choices);
        if (takes_provider(cmd)) out_str("${(f)\"$(abx provider list --quiet 2>/dev/null)\"}");
        out_str(" ); opts=(");
        zsh_options(cmd->options);
        out_str(" ) ;;\n");
    }
    out_str("    esac\n    opts+=(");
    zsh_options(opt_globals);
    out_str(" )\n    (( $#verbs )) && _describe argument verbs\n    [[ ${words[CURRENT]} == -* ]] && _describe -o option opts\n"
            "    (( $#verbs )) || [[ ${words[CURRENT]} == -* ]] || _files\n}\n"
            "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _abx \"$@\"; else compdef _abx abx; fi\n");
}

/* ---- fish ----------------------------------------------------------------------------------- */

static void fish_option(const char *name, const struct abx_opt *o) {
    _cleanup_strv_ char **choices = opt_choices(o);
    out_str("complete -c abx");
    if (name) {
        out_str(" -n ");
        _cleanup_free_ char *condition = str_printf("__abx_at \"%s\"", name);
        quoted(condition ?: "");
    }
    if (o->letter) out_printf(" -s %c", o->letter);
    out_printf(" -l %s", o->name);
    if (streq(o->name, "provider"))
        out_str(" -x -a '(abx provider list --quiet 2>/dev/null)'");
    else if (choices) {
        out_str(" -x -a '");
        words(choices);
        out_str("'");
    } else if (o->value) {
        out_str(" -r");
    }
    out_str(" -d ");
    quoted(o->summary);
    out_str("\n");
}

static void fish_word(const char *at, const char *word, const char *summary) {
    out_str("complete -c abx -f -n ");
    _cleanup_free_ char *condition = str_printf("__abx_at \"%s\"", at);
    quoted(condition ?: "");
    out_str(" -a ");
    quoted(word);
    out_str(" -d ");
    quoted(summary);
    out_str("\n");
}

static void fish_value_option(const struct abx_opt *o) {
    if (o->value) out_printf(" --%s", o->name);
}

static void fish(void) {
    _cleanup_strv_ char **list = groups();
    out_str("# fish completion for abx\nfunction __abx_at\n    set -l name ''\n    set -l skip ''\n"
            "    for w in (commandline -opc)[2..-1]\n"
            "        if test \"$w\" = --\n            return 1\n        end\n"
            "        if test -n \"$skip\"\n            set skip ''\n            continue\n        end\n"
            "        if contains -- $w");
    each_option(fish_value_option);
    out_str("\n            set skip 1\n        else if not string match -q -- '-*' $w\n            switch \"$name\"\n                case");
    for (size_t i = 0; list && list[i]; i++) out_printf(" '%s'", list[i]);
    out_str("\n                    set name (string trim -- (string replace -r '^sandbox$' '' -- \"$name\")\" $w\")\n"
            "            end\n        end\n    end\n    test \"$name\" = \"$argv[1]\"\nend\n");
    for (const struct abx_opt *o = opt_globals; o->name; o++) fish_option(NULL, o);
    for (size_t i = 0; list && list[i]; i++) {
        _cleanup_strv_ char **members = cmd_words(list[i]);
        for (size_t k = 0; members && members[k]; k++) fish_word(list[i], members[k], summary_of(list[i], members[k]));
    }
    for (size_t i = 0; cmd_table[i]; i++) {
        const struct abx_cmd *cmd = cmd_table[i];
        _cleanup_strv_ char **choices = opt_split_choices(cmd->usage);
        if (cmd->flags & CMD_HIDDEN) continue;
        for (size_t k = 0; choices && choices[k]; k++) fish_word(cmd->name, choices[k], "shell");
        if (takes_provider(cmd)) fish_word(cmd->name, "(abx provider list --quiet 2>/dev/null)", "provider");
        for (const struct abx_opt *o = cmd->options; o && o->name; o++) fish_option(cmd->name, o);
    }
}

/* ---- the command ------------------------------------------------------------------------------ */

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    static const struct { const char *name; void (*print)(void); } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
        if (streq(shells[i].name, cli->args[0])) {
            shells[i].print();
            return 0;
        }
    err_set(&e, ABX_E_CONFIG, "Use bash, zsh or fish.", "There is no completion for '%s'.", cli->args[0]);
    return ui_fail(cli, e);
}

const struct abx_cmd cmd_completion = {
    .name = "completion",
    .args = {1, 1},
    .usage = "bash|zsh|fish",
    .summary = "print a completion script",
    .examples = "source <(abx completion bash)\nabx completion fish > ~/.config/fish/completions/abx.fish\n",
    .flags = CMD_LOCAL,
    .run = run,
};
