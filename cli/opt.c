/* Options, parsed from the tables: --long, --long=value, -q, bundles like -qv; "--" ends them. */
#include <assert.h>
#include <errno.h>

#include "cmd.h"

const struct abx_opt opt_globals[] = {
    {"json", 0, NULL, "print machine-readable results and errors"},
    {"provider", 0, "ID", "use this provider"},
    {"option", 'o', "KEY=VALUE", "set an option of the provider (repeatable)", OPT_PAIR},
    {"quiet", 'q', NULL, "print results and errors only"},
    {"verbose", 'v', NULL, "trace the protocol on standard error, secrets redacted"},
    {"color", 0, "auto|always|never", "when to use colour (default auto; NO_COLOR is honoured)"},
    {"no-input", 0, NULL, "never ask; what would need an answer fails"},
    {"help", 'h', NULL, "show help and exit"},
    {"version", 0, NULL, "show the version and exit"},
    {0},
};

/* ---- tables ----------------------------------------------------------------------- */

static const struct abx_opt *row_in(const struct abx_opt *table, const char *name, size_t n, char letter) {
    for (; table && table->name; table++)
        if (name ? strncmp(table->name, name, n) == 0 && !table->name[n] : table->letter == letter) return table;
    return NULL;
}

static const struct abx_opt *row(const struct cli *cli, const char *name, size_t n, char letter) {
    const struct abx_opt *found = cli->cmd ? row_in(cli->cmd->options, name, n, letter) : NULL;
    return found ?: row_in(opt_globals, name, n, letter);
}

char **opt_split_choices(const char *value) {
    char **list = NULL;
    if (!strchr(value, '|')) return NULL;
    for (const char *p = value; *p;) {
        size_t n = strcspn(p, "|");
        if (strv_take(&list, strndup(p, n)) < 0) return strv_free(list);
        p += n + (p[n] == '|');
    }
    return list;
}

char **opt_choices(const struct abx_opt *opt) { return opt->value ? opt_split_choices(opt->value) : NULL; }

char *opt_label(const struct abx_opt *opt) {
    char letter[5] = "";
    if (opt->letter) memcpy(letter, (char[]){'-', opt->letter, ',', ' ', 0}, sizeof letter);
    return str_printf("%s--%s%s%s", letter, opt->name, opt->value ? " " : "", opt->value ?: "");
}

/* ---- checks ------------------------------------------------------------------------ */

int opt_to_number(const char *what, const char *text, int64_t *ret, abx_error **reterr) {
    long long n;
    if (str_to_i64(text, &n) < 0 || n < 0)
        return err_set(reterr, ABX_E_CONFIG, "", "%s must be a whole number that is not negative, not '%s'.", what, text);
    *ret = n;
    return 0;
}

static int check_value(const struct abx_opt *opt, const char *value, abx_error **reterr) {
    _cleanup_free_ char *what = str_printf("--%s", opt->name);
    _cleanup_strv_ char **choices = opt_choices(opt);
    int64_t n;
    if (!what) return err_nomem(reterr);
    if (choices && !strv_contains(choices, value)) {
        const char *near = str_nearest(value, (const char *const *)choices);
        _cleanup_free_ char *hint = near ? str_printf("Did you mean '%s'?", near) : NULL;
        return err_set(reterr, ABX_E_CONFIG, hint ?: "", "%s must be one of %s, not '%s'.", what, opt->value, value);
    }
    if (opt->check == OPT_NUMBER) return opt_to_number(what, value, &n, reterr);
    /* The text itself is not quoted: what stands there may be a secret. */
    if (opt->check == OPT_PAIR && (!strchr(value, '=') || *value == '='))
        return err_set(reterr, ABX_E_CONFIG, "", "%s needs the form KEY=VALUE.", what);
    return 0;
}

/* typed: with its dashes, without its value. */
static int unknown(const struct cli *cli, const char *typed, abx_error **reterr) {
    _cleanup_strv_ char **names = NULL;
    const struct abx_opt *tables[] = {cli->cmd ? cli->cmd->options : NULL, opt_globals};
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        for (const struct abx_opt *o = tables[i]; o && o->name; o++)
            if (strv_append(&names, o->name) < 0) return err_nomem(reterr);
    const char *near = str_starts(typed, "--") ? str_nearest(typed + 2, (const char *const *)names) : NULL;
    if (!near && cli->cmd && cli->cmd->flags & CMD_COMMAND) {
        _cleanup_free_ char *line = cmd_usage_line(cli->cmd);
        _cleanup_free_ char *usage = line ? str_printf("A command and its options go after '--': %s", line) : NULL;
        return err_set(reterr, ABX_E_CONFIG, usage ?: "", "Unknown option '%s' of 'abx %s'.", typed, cli->cmd->name);
    }
    const char *verb = cli->cmd ? cli->cmd->name : cli->group ?: "";
    _cleanup_free_ char *hint = near ? str_printf("Did you mean '--%s'?", near)
                                     : str_printf("Run 'abx %s%s--help' to see the options.", verb, *verb ? " " : "");
    return err_set(reterr, ABX_E_CONFIG, hint, "Unknown option '%s'.", typed);
}

/* ---- parsing ----------------------------------------------------------------------- */

static int take(struct cli *cli, const struct abx_opt *opt, const char *value, abx_error **reterr) {
    int r = value ? check_value(opt, value, reterr) : 0;
    if (r < 0) return r;
    cli->given[cli->given_count++] = (struct opt_given){opt, value};
    return 0;
}

/* One argument that begins with "--"; *next moves when the value stands in the next argument. */
static int parse_long(struct cli *cli, const char *arg, char ***next, abx_error **reterr) {
    const char *name = arg + 2, *value = strchr(name, '=');
    size_t n = value ? (size_t)(value - name) : strlen(name);
    const struct abx_opt *opt = n ? row(cli, name, n, 0) : NULL;
    if (!opt) {
        _cleanup_free_ char *typed = strndup(arg, n + 2);
        return typed ? unknown(cli, typed, reterr) : err_nomem(reterr);
    }
    if (value) value++;
    if (!opt->value && value) return err_set(reterr, ABX_E_CONFIG, "", "Option '--%s' takes no value.", opt->name);
    if (opt->value && !value) {
        value = **next;
        if (!value) return err_set(reterr, ABX_E_CONFIG, "", "Option '--%s' needs a value: %s.", opt->name, opt->value);
        ++*next;
    }
    return take(cli, opt, value, reterr);
}

static int parse_letters(struct cli *cli, const char *arg, char ***next, abx_error **reterr) {
    for (const char *p = arg + 1; *p; p++) {
        const struct abx_opt *opt = row(cli, NULL, 0, *p);
        if (!opt) return unknown(cli, (char[]){'-', *p, 0}, reterr);
        const char *value = NULL;
        if (opt->value) {
            value = p[1] ? p + 1 : *(*next)++;
            if (!value) return err_set(reterr, ABX_E_CONFIG, "", "Option '-%c' needs a value: %s.", *p, opt->value);
        }
        int r = take(cli, opt, value, reterr);
        if (r < 0 || value) return r;
    }
    return 0;
}

/* A word that is no option: part of the command's name until that is complete, then an argument. */
static int parse_word(struct cli *cli, char *word, abx_error **reterr) {
    if (cli->cmd) {
        cli->args[cli->arg_count++] = word;
        return 0;
    }
    _cleanup_free_ char *name = cli->group ? str_printf("%s %s", cli->group, word) : strdup(word);
    if (!name) return err_nomem(reterr);
    if ((cli->cmd = cmd_find(name))) return 0;
    if (cli->group || !cmd_is_group(word)) return cmd_unknown(cli->group ?: "", word, reterr);
    cli->group = word;
    return 0;
}

static int check_args(const struct cli *cli, abx_error **reterr) {
    const struct abx_cmd *cmd = cli->cmd;
    _cleanup_free_ char *line = cmd_usage_line(cmd);
    _cleanup_free_ char *usage = line ? str_printf("Usage: %s", line) : NULL;
    if ((cmd->flags & CMD_COMMAND) && !(cli->command && *cli->command))
        return err_set(reterr, ABX_E_CONFIG, usage, "The command to run goes after '--'.");
    if ((int)cli->arg_count < cmd->args.min)
        return err_set(reterr, ABX_E_CONFIG, usage, "'abx %s' needs %s.", cmd->name, cmd->usage);
    if (cmd->args.max >= 0 && (int)cli->arg_count > cmd->args.max)
        return err_set(reterr, ABX_E_CONFIG, usage, "'abx %s' does not take '%s'.", cmd->name, cli->args[cmd->args.max]);
    return 0;
}

int opt_parse(struct cli *cli, char **argv, abx_error **reterr) {
    size_t n = strv_len(argv);
    int r = 0;
    cli->args = calloc(n + 1, sizeof *cli->args);
    /* A bundle of letters is the one way to give more options than arguments. */
    size_t most = n;
    for (size_t i = 0; i < n; i++) most += argv[i][0] == '-' ? strlen(argv[i]) : 0;
    cli->given = calloc(most + 1, sizeof *cli->given);
    if (!cli->args || !cli->given) return err_nomem(reterr);
    /* An error in what comes before --json is to be printed as JSON too. */
    for (char **p = argv; *p && !streq(*p, "--"); p++) cli->json |= streq(*p, "--json");
    for (char **next = argv; r == 0 && *next;) {
        char *arg = *next++;
        if (streq(arg, "--")) {
            if (cli->cmd && (cli->cmd->flags & CMD_COMMAND)) {
                cli->command = next;
                break;
            }
            while (r == 0 && *next) r = parse_word(cli, *next++, reterr);
        } else if (str_starts(arg, "--")) {
            r = parse_long(cli, arg, &next, reterr);
        } else if (arg[0] == '-' && arg[1]) {
            r = parse_letters(cli, arg, &next, reterr);
        } else {
            r = parse_word(cli, arg, reterr);
        }
    }
    cli->json = opt_flag(cli, "json") || (r < 0 && cli->json);
    cli->quiet = opt_flag(cli, "quiet");
    cli->verbose = opt_flag(cli, "verbose");
    cli->no_input = opt_flag(cli, "no-input");
    cli->provider = opt_text(cli, "provider");
    if (r == 0) r = opt_pairs(cli, "option", &cli->options, reterr);
    if (r == 0 && cli->cmd && !opt_flag(cli, "help") && !opt_flag(cli, "version")) r = check_args(cli, reterr);
    return r;
}

void opt_done(struct cli *cli) {
    free(cli->args);
    free(cli->given);
    abx_value_unref(cli->options);
}

/* ---- answers ------------------------------------------------------------------------ */

/* The last one given, or NULL. */
static const struct opt_given *last(const struct cli *cli, const char *name) {
    const struct abx_opt *opt = row(cli, name, strlen(name), 0);
    assert(opt);
    for (size_t i = cli->given_count; i > 0; i--)
        if (cli->given[i - 1].opt == opt) return &cli->given[i - 1];
    return NULL;
}

bool opt_flag(const struct cli *cli, const char *name) { return last(cli, name) != NULL; }

const char *opt_text(const struct cli *cli, const char *name) {
    const struct opt_given *g = last(cli, name);
    return g ? g->value : NULL;
}

int64_t opt_number(const struct cli *cli, const char *name, int64_t otherwise) {
    const char *text = opt_text(cli, name);
    int64_t n = otherwise;
    if (text) opt_to_number(name, text, &n, NULL);
    return n;
}

int opt_pairs(const struct cli *cli, const char *name, abx_value **ret, abx_error **reterr) {
    const struct abx_opt *opt = row(cli, name, strlen(name), 0);
    _cleanup_value_ abx_value *object = NULL;
    for (size_t i = 0; i < cli->given_count; i++) {
        if (cli->given[i].opt != opt) continue;
        const char *text = cli->given[i].value, *eq = strchr(text, '=');
        _cleanup_free_ char *key = strndup(text, (size_t)(eq - text));
        if (!object && !(object = abx_value_new_object())) return err_nomem(reterr);
        abx_value *v = abx_value_new_string(eq + 1);
        if (!key || !v) {
            abx_value_unref(v);
            return err_set(reterr, ABX_E_CONFIG, "", "The value of --%s is not UTF-8.", name);
        }
        if (abx_value_set(object, key, v) < 0) return err_nomem(reterr);
    }
    *ret = TAKE_PTR(object);
    return 0;
}

int opt_each(const struct cli *cli, const char *name, int (*make)(const char *text, abx_value **ret, abx_error **reterr),
             abx_value **ret, abx_error **reterr) {
    const struct abx_opt *opt = row(cli, name, strlen(name), 0);
    _cleanup_value_ abx_value *array = NULL;
    for (size_t i = 0; i < cli->given_count; i++) {
        if (cli->given[i].opt != opt) continue;
        abx_value *v = NULL;
        if (!array && !(array = abx_value_new_array())) return err_nomem(reterr);
        int r = make(cli->given[i].value, &v, reterr);
        if (r < 0) return r;
        if (abx_value_append(array, v) < 0) return err_nomem(reterr);
    }
    *ret = TAKE_PTR(array);
    return 0;
}
