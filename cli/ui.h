/* Waiting for ops, with signals, progress and the helpers that every verb needs. */
#ifndef CLI_UI_H
#define CLI_UI_H

#include "cmd.h"

/* What one call needs, released together: `_cleanup_call_ struct ui_call c = {0};` */
struct ui_call {
    abx_sandbox *sb; /* opened, or made by the op */
    abx_plan *plan;  /* made by the op */
    abx_op *op;      /* between its start and ui_run() */
    abx_value *value; /* result of the last op */
    abx_error *error;
};
void ui_call_done(struct ui_call *c);
#define _cleanup_call_ _cleanup_(ui_call_done)

/* SIGPIPE is ignored. The first SIGINT, SIGTERM or SIGHUP cancels what runs, the second kills. */
void ui_init(void);
int ui_client_new(struct cli *cli, abx_error **reterr);
void ui_client_close(struct cli *cli);
/* The signal that asked for an end, or 0. */
int ui_signal(void);
/* Does not heed that signal for what follows: for cleaning up. */
void ui_signal_forget(void);
bool ui_can_ask(const struct cli *cli); /* a person is there: both ends are terminals */

/* The settings of --provider and --option. */
abx_provider_opts ui_provider(const struct cli *cli);
/* A handle on the sandbox REF: no question is sent. */
int ui_open(struct cli *cli, struct ui_call *c, const char *ref);
/* Runs c->op to its end, unless r (the result of its start) is negative, into c->value or c->error. */
int ui_run(struct cli *cli, struct ui_call *c, int r);
/* What takes part while the op runs; a negative answer of either cancels the op. */
struct ui_watch {
    int (*event)(void *user, const abx_event *e);
    /* Before each wait: whether fd was readable; sets fd to the one to wait for too, or -1. NULL: none. */
    int (*turn)(void *user, bool readable, int *fd);
    void *user;
};
int ui_run_watch(struct cli *cli, struct ui_call *c, int r, const struct ui_watch *w);
/* Prints why it failed, or that it was interrupted; the exit status. */
int ui_fail(const struct cli *cli, const abx_error *e);

/* A line that is written over, on a terminal only. NULL takes it away. */
void ui_progress(const struct cli *cli, const char *text);
/* "done": one line of text, or {"ref": REF, key: value} with --json (takes value). */
void ui_report(const struct cli *cli, const char *ref, const char *key, abx_value *value, const char *fmt, ...) _printf_(5, 6);
/* The sandbox record with "ref" and "provider" in front. */
abx_value *ui_record(const char *ref, const char *provider, const abx_value *record);
/* "KEY: VALUE" lines, values of objects and arrays as JSON. */
void ui_print_members(const abx_value *v);
/* {"sandbox_id": 1} -> text of any scalar, "" for null; free(). */
char *ui_text(const abx_value *v);

#endif
