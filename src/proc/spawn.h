/* Starting one program on prepared descriptors, unseen by the host's other threads. */
#ifndef PROC_SPAWN_H
#define PROC_SPAWN_H

#include <sys/types.h>

#define SPAWN_FDS 4 /* become 0, 1, 2 and 3 of the child; each must be at least this number */

struct spawn {
    const char *path;
    char *const *argv, *const *envp;
    const char *cwd; /* NULL: ours */
    int fds[SPAWN_FDS];
    /* Written by the child. */
    int error;          /* errno of what failed before the program ran */
    const char *failed; /* the path it is about                        */
};

/* The program runs when this returns, with all signals blocked and nothing inherited but fds.
 * -errno when it could not be started; s->failed is set when the child got that far. */
int spawn_start(struct spawn *s, pid_t *ret_pid, int *ret_pidfd);
/* Waits for that child, which ends, and for no other; fine when somebody else has. */
void spawn_reap(pid_t pid, int pidfd);

#endif
