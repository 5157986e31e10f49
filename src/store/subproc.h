/* A short program run to its end in its own process group, watched by its pidfd. */
#ifndef STORE_SUBPROC_H
#define STORE_SUBPROC_H

#include <stdint.h>

#include "base/buf.h"
#include "store/store.h"

#define SUBPROC_STATUS_UNKNOWN (-1) /* somebody else in this process took the exit status */

struct subproc_spec {
    const char *path; /* absolute */
    const char *supervisor; /* kills all of it when the host is gone; NULL: none */
    char *const *argv, *const *env;
    int stdin_fd; /* -1: nothing to read */
    struct store_cancel *cancel;
    int64_t deadline_ms; /* monotonic */
    /* A negative answer kills the program and is returned. */
    int (*on_output)(void *user, const char *data, size_t n);
    void *output_user;
    void (*on_stderr)(void *user, const char *data, size_t n); /* may be NULL */
    void *stderr_user;
};
/* 0 and the exit code (128 + signal); -ECANCELED, -ETIMEDOUT, or what starting it failed with.
 * When it returns nothing of the group runs any more. ret_stderr keeps the tail. */
int subproc_run(const struct subproc_spec *spec, struct buf *ret_stderr, int *ret_status);

#endif
