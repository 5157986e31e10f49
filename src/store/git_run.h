/* What the files about git share: the repository at hand, and one run of the program in it. */
#ifndef STORE_GIT_RUN_H
#define STORE_GIT_RUN_H

#include "base/buf.h"
#include "store/git.h"

struct git {
    char *program, *repo, *home, *url, *ref, *subdir;
    char **env;
    const char *supervisor; /* the store's */
    bool ref_is_commit;
    bool sha256; /* the repository's object format */
    struct store_cancel *cancel;
    store_progress_fn progress;
    void *user;
    int64_t deadline_ms;
    struct buf stderr_tail; /* of the last run */
    char line[160];         /* the progress line being read */
    size_t line_len;
    int64_t told_ms;
};

/* argv without the program's name. A failure to run is an error; an exit status is not. */
int git_run(struct git *g, const char *const *argv, int stdin_fd, int (*on_output)(void *user, const char *data, size_t n),
            void *output_user, int *ret_status, abx_error **reterr);
/* The error of a run that exited with status, from what git said. */
int git_failed(struct git *g, int status, abx_error **reterr);

#endif
