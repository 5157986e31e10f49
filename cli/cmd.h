/* Commands: one const row each. Parsing, help, the manual page and the completions are made
 * from the rows, so that none of them can say something else. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <abx/abx.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

enum opt_check {
    OPT_TEXT,
    OPT_NUMBER, /* whole, not negative */
    OPT_PAIR    /* KEY=VALUE           */
};

/* One option. Rows end with an empty one. A value of the form "a|b|c" names the only choices. */
struct abx_opt {
    const char *name;    /* without the dashes */
    char letter;         /* 0: none */
    const char *value;   /* what the value is called; NULL: a flag */
    const char *summary;
    enum opt_check check;
};

enum cmd_flags {
    CMD_LOCAL = 1,   /* needs no client */
    CMD_SANDBOX = 2, /* also known as `abx sandbox NAME` */
    CMD_HIDDEN = 4,  /* not in lists of commands */
    CMD_COMMAND = 8  /* takes a command line after "--" */
};

struct cli;

struct abx_cmd {
    const char *name;              /* "create" or "provider list" */
    struct { int min, max; } args; /* positional arguments; max -1: any number */
    const char *usage;             /* their names, "REF PID [SIG]" */
    const char *summary;           /* one line, no full stop */
    const struct abx_opt *options; /* NULL: only the global ones */
    const char *examples;          /* lines, or NULL */
    unsigned flags;
    int (*run)(struct cli *cli);   /* the exit status */
};

struct opt_given {
    const struct abx_opt *opt;
    const char *value; /* NULL for a flag */
};

/* What one invocation is about: filled by opt_parse(), read by the commands. */
struct cli {
    const struct abx_cmd *cmd; /* NULL: none was named */
    const char *group;         /* "provider" when only the group was named */
    char **args;               /* positional arguments, NULL-ended, borrowed from argv */
    size_t arg_count;
    char **command;            /* what follows "--" of a CMD_COMMAND; NULL when there was no "--" */
    struct opt_given *given;
    size_t given_count;
    bool json, quiet, verbose, no_input;
    const char *provider;      /* --provider */
    abx_value *options;        /* --option, an object; NULL when there are none */
    abx_client *client;        /* NULL for CMD_LOCAL */
};

/* commands.c */
extern const struct abx_cmd *const cmd_table[]; /* in the order of the help, NULL-ended */

/* cmd.c */
const struct abx_cmd *cmd_find(const char *name);
bool cmd_is_group(const char *name); /* first word of a two-word name, or "sandbox" */
/* The words that may follow group ("" for the first word), each once, NULL-ended, hidden ones left
 * out; strv_free(). NULL when out of memory. */
char **cmd_words(const char *group);
/* Sets an E8002 "Unknown command" with the nearest one. */
int cmd_unknown(const char *group, const char *word, abx_error **reterr);
/* "abx exec REF [options] -- CMD [ARG...]"; NULL when out of memory. */
char *cmd_usage_line(const struct abx_cmd *cmd);

/* opt.c */
extern const struct abx_opt opt_globals[];
int opt_parse(struct cli *cli, char **argv, abx_error **reterr);
void opt_done(struct cli *cli);
/* What was given; the last one wins. name must be in the table of the command or a global one. */
bool opt_flag(const struct cli *cli, const char *name);
const char *opt_text(const struct cli *cli, const char *name);               /* NULL: not given */
int64_t opt_number(const struct cli *cli, const char *name, int64_t otherwise);
/* Every KEY=VALUE of name as an object of strings; NULL when there is none. */
int opt_pairs(const struct cli *cli, const char *name, abx_value **ret, abx_error **reterr);
/* Every value of name as an array, through make(). */
int opt_each(const struct cli *cli, const char *name, int (*make)(const char *text, abx_value **ret, abx_error **reterr),
             abx_value **ret, abx_error **reterr);
int opt_to_number(const char *what, const char *text, int64_t *ret, abx_error **reterr);
/* "--force" or "-q, --quiet" or "--ref REF", for help. NULL when out of memory. */
char *opt_label(const struct abx_opt *opt);
/* The choices of a value "a|b|c", NULL-ended, strv_free(); NULL when any text will do. */
char **opt_choices(const struct abx_opt *opt);
char **opt_split_choices(const char *value);

/* help.c */
int help_command(const struct abx_cmd *cmd);
int help_group(const char *group); /* "" for all */

#endif
