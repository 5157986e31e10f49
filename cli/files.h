/* What the files verbs share: REF:PATH, one call on it, and what a copy counts. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "ui.h"

/* "my-cloud:sbx-1:/tmp/x": a call with its sandbox opened, and the path. */
struct files_target {
    struct ui_call call;
    char *path;
};
void files_done(struct files_target *t);
#define _cleanup_files_ _cleanup_(files_done)

/* Splits at the first ":/", or at the last colon when there is none. E8002 without a path. */
int files_split(const char *text, char **ret_ref, char **ret_path, abx_error **reterr);
int files_open(struct cli *cli, struct files_target *t, const char *text);
/* Opens, starts and runs a call that takes nothing but the path; the exit status. */
typedef int (*files_start_fn)(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
int files_call(struct cli *cli, struct files_target *t, const char *text, files_start_fn start);

/* Entry of a stat or a list. */
bool files_is_dir(const abx_value *entry);
bool files_is_link(const abx_value *entry);
int files_mode(const abx_value *entry); /* 0..0777, -1: not said */
/* 1 when path is a directory in the sandbox, 0 when it is something else or missing. */
int files_stat_dir(struct cli *cli, struct files_target *t, const char *path);
const char *files_base(const char *path);            /* last part, "" of "/" */

/* A copy on its way. */
struct files_copy {
    struct cli *cli;
    struct files_target target;
    uint64_t count, bytes;
    int skipped;
    int64_t shown_ms;
};
void files_copied(struct files_copy *copy, const char *path, size_t bytes); /* counts and shows */
void files_skip(struct files_copy *copy, const char *path, const char *why);
/* The last word of a copy: the exit status, 1 when something was left out. */
int files_report(struct files_copy *copy, const char *word);

#endif
