/* A child process tree under its supervisor: spawned, watched, ended as a whole.
 *
 * The supervisor (src/supervise/) is the direct child; the plugin is its child. It tells
 * by a socket whether exec worked and how the plugin ended, and kills every descendant
 * when the plugin ends, when told to, or when the host is gone. */
#ifndef PROC_PROC_H
#define PROC_PROC_H

#include <abx/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop/loop.h"

struct proc;

struct proc_spec {
    const char *supervisor;      /* absolute path of the supervisor program             */
    const char *const *argv;     /* argv[0] without a slash is looked up in the PATH of env */
    const char *const *env;      /* the whole environment of the child                  */
    const char *cwd;
};
struct proc_exit {
    int exec_errno; /* > 0: the program could not be started                            */
    int code;       /* exit code, or -signal                                            */
};

/* stdin_fd, stdout_fd, stderr_fd: our ends, non-blocking, close-on-exec, owned by the caller.
 * on_exit comes once, from the loop, also when exec failed; never from proc_spawn(). */
int proc_spawn(struct proc **ret, struct loop *l, const struct proc_spec *spec, int *ret_stdin, int *ret_stdout, int *ret_stderr,
               void (*on_exit)(struct proc *p, const struct proc_exit *e, void *user), void *user, abx_error **reterr);
pid_t proc_pid(struct proc *p);       /* of the plugin; 0 before it is known */
void proc_terminate(struct proc *p);  /* SIGTERM to the plugin's group       */
void proc_kill(struct proc *p);       /* SIGKILL to every descendant         */
bool proc_running(struct proc *p);
/* Kills what is left, reaps the supervisor and frees. No callback any more. */
void proc_free(struct proc *p);

/* The supervisor beside the library or the program, or of a build tree; never from PATH or the
 * environment. Absolute path, free(). */
int proc_find_supervisor(char **ret, abx_error **reterr);

#endif
