/* clone() with shared memory: as cheap as vfork(), with a descriptor for the child. */
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "supervise/wire.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#define P_PIDFD_TYPE ((idtype_t)3)

/* execve() and the dynamic linker's lazy binding of it, with room to spare. */
#define CHILD_STACK (64 * 1024)

/* Our own descriptors are close-on-exec from birth; this is for the host's that are not. */
static void seal_from(int first) {
    if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
    struct rlimit lim;
    int end = getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < 65536 ? (int)lim.rlim_cur : 65536;
    for (int fd = first; fd < end; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Becomes the program; when that fails, the path it failed on and errno. */
static const char *become(struct spawn *s) {
    for (int i = 0; i < SPAWN_FDS; i++)
        if (dup2(s->fds[i], i) < 0) return s->path;
    seal_from(SPAWN_FDS);
    if (s->cwd && chdir(s->cwd) < 0) return s->cwd;
    execve(s->path, s->argv, s->envp);
    return s->path;
}

/* Runs on the parent's memory, so nothing here may take a lock or change what others see. The
 * socket tells it as well, for a parent whose memory is not shared after all (under valgrind). */
static int child_main(void *arg) {
    struct spawn *s = arg;
    const char *failed = become(s);
    s->error = errno;
    s->failed = failed;
    struct wire_msg m = {.type = WIRE_NOSUPERVISOR, .value = s->error};
    send(s->fds[SPAWN_FDS - 1], &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
    _exit(127);
}

/* All signals are blocked around it: a handler of the host must not run in a child that shares
 * its memory, and the supervisor is to begin that way. The exit signal is 0, so that a child
 * which never gets to exec goes unseen; exec itself makes it SIGCHLD again. */
int spawn_start(struct spawn *s, pid_t *ret_pid, int *ret_pidfd) {
    char *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -errno;
    sigset_t all, old;
    int pidfd = -1, saved = errno;
    s->error = 0;
    s->failed = NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid_t pid = clone(child_main, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, s, &pidfd);
    int r = pid < 0 ? -errno : 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    munmap(stack, CHILD_STACK);
    errno = saved;
    if (r < 0) return r;
    if (s->error) {
        spawn_reap(pid, pidfd);
        safe_close(pidfd);
        return -s->error;
    }
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return 0;
}

void spawn_reap(pid_t pid, int pidfd) {
    siginfo_t si;
    int saved = errno, r;
    do r = pidfd >= 0 ? waitid(P_PIDFD_TYPE, (id_t)pidfd, &si, WEXITED | __WALL)
                      : waitid(P_PID, (id_t)pid, &si, WEXITED | __WALL);
    while (r < 0 && errno == EINTR);
    errno = saved;
}
