/* Runs a program by posix_spawn() and poll(); no signal of the host program is touched. */
#include "store/subproc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "base/util.h"

/* How long a stop by flag alone may go unseen. */
#define CANCEL_POLL_MS 100

struct child {
    pid_t pid;
    int pidfd, out, err;
    bool reaped;
    int status;
};

/* A pipe below 3 would be overwritten while the child's stdio is put in place. */
static int above_stdio(int fd) {
    if (fd < 0 || fd > 2) return fd;
    int up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    safe_close(fd);
    return up;
}

static int make_pipe(int *ret_read, int *ret_write) {
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0) return -errno;
    _cleanup_close_ int r = above_stdio(p[0]);
    _cleanup_close_ int w = above_stdio(p[1]);
    if (r < 0 || w < 0) return -EMFILE;
    if (fcntl(r, F_SETFL, O_NONBLOCK) < 0) return -errno;
    *ret_read = TAKE_FD(r);
    *ret_write = TAKE_FD(w);
    return 0;
}

static int spawn(const struct subproc_spec *s, int in, int out, int err, pid_t *ret) {
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int r = posix_spawn_file_actions_init(&fa);
    if (r) return -r;
    r = posix_spawnattr_init(&attr);
    if (r) {
        posix_spawn_file_actions_destroy(&fa);
        return -r;
    }
    r = posix_spawn_file_actions_adddup2(&fa, in, 0);
    if (!r) r = posix_spawn_file_actions_adddup2(&fa, out, 1);
    if (!r) r = posix_spawn_file_actions_adddup2(&fa, err, 2);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    if (!r) r = posix_spawn_file_actions_addclosefrom_np(&fa, 3);
#endif
    if (!r) r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!r) r = posix_spawnattr_setpgroup(&attr, 0);
    if (!r) r = posix_spawnattr_setsigdefault(&attr, &all);
    if (!r) r = posix_spawnattr_setsigmask(&attr, &none);
    if (!r) r = posix_spawn(ret, s->path, &fa, &attr, s->argv, s->env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&fa);
    return -r;
}

/* Ends the group while the leader, even as a zombie, still keeps the number taken. */
static void reap(struct child *c) {
    if (c->reaped) return;
    kill(-c->pid, SIGKILL);
    int status;
    pid_t got;
    while ((got = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR)
        ;
    c->reaped = true;
    c->status = got != c->pid ? SUBPROC_STATUS_UNKNOWN : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void child_done(struct child *c) {
    if (c->pid > 0) reap(c);
    c->pidfd = safe_close(c->pidfd);
    c->out = safe_close(c->out);
    c->err = safe_close(c->err);
}

/* Reads what is there. 1: more may come, 0: the pipe ended. */
static int drain_stdout(const struct subproc_spec *s, int fd, char *chunk) {
    for (;;) {
        ssize_t n = read(fd, chunk, LIMIT_READ_CHUNK);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? 1 : -errno;
        if (n == 0) return 0;
        int r = s->on_output(s->output_user, chunk, (size_t)n);
        if (r < 0) return r;
        if ((size_t)n < LIMIT_READ_CHUNK) return 1;
    }
}

static int drain_stderr(const struct subproc_spec *s, int fd, struct buf *tail) {
    char chunk[4096];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? 1 : -errno;
        if (n == 0) return 0;
        if (tail->len + (size_t)n > LIMIT_STDERR_RING) buf_consume(tail, tail->len / 2);
        if (buf_append(tail, chunk, (size_t)n) < 0) return -ENOMEM;
        if (s->on_stderr) s->on_stderr(s->stderr_user, chunk, (size_t)n);
        if ((size_t)n < sizeof chunk) return 1;
    }
}

static int poll_timeout(const struct subproc_spec *s) {
    int64_t left = s->deadline_ms - time_mono_ms();
    if (left < 0) left = 0;
    bool by_flag = s->cancel && s->cancel->event_fd < 0;
    return (int)(by_flag && left > CANCEL_POLL_MS ? CANCEL_POLL_MS : left);
}

static int watch(const struct subproc_spec *s, struct child *c, struct buf *tail, char *chunk) {
    /* A program that it left behind may keep the pipes open: its end is the end. Without a
     * pidfd (its status was taken before we looked) only the pipes can tell. */
    bool ended = false;
    while (c->out >= 0 || c->err >= 0 || (c->pidfd >= 0 && !ended)) {
        struct pollfd p[] = {{c->out, POLLIN, 0},
                             {c->err, POLLIN, 0},
                             {ended ? -1 : c->pidfd, POLLIN, 0},
                             {s->cancel ? s->cancel->event_fd : -1, POLLIN, 0}};
        if (!ended && poll(p, ARRAY_SIZE(p), poll_timeout(s)) < 0 && errno != EINTR) return -errno;
        if (s->cancel && atomic_load(&s->cancel->stop)) return -ECANCELED;
        if (!ended && p[2].revents) ended = true;
        int r = c->out >= 0 ? drain_stdout(s, c->out, chunk) : 1;
        if (r < 0) return r;
        if (r == 0) c->out = safe_close(c->out);
        int e = c->err >= 0 ? drain_stderr(s, c->err, tail) : 1;
        if (e < 0) return e;
        if (e == 0) c->err = safe_close(c->err);
        if (ended) {
            struct pollfd left[] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
            if (poll(left, 2, 0) <= 0) return 0;
        }
        if (time_mono_ms() >= s->deadline_ms) return ended ? 0 : -ETIMEDOUT;
    }
    return 0;
}

static void child_donep(struct child *c) { child_done(c); }

int subproc_run(const struct subproc_spec *s, struct buf *ret_stderr, int *ret_status) {
    _cleanup_(child_donep) struct child c = {.pidfd = -1, .out = -1, .err = -1};
    _cleanup_close_ int out = -1, err = -1, in = -1;
    _cleanup_free_ char *chunk = malloc(LIMIT_READ_CHUNK);
    if (!chunk) return -ENOMEM;
    if (s->cancel && atomic_load(&s->cancel->stop)) return -ECANCELED;
    int r = make_pipe(&c.out, &out);
    if (r == 0) r = make_pipe(&c.err, &err);
    if (r < 0) return r;
    in = above_stdio(s->stdin_fd >= 0 ? fcntl(s->stdin_fd, F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (in < 0) return -errno;
    r = spawn(s, in, out, err, &c.pid);
    if (r < 0) {
        c.pid = 0;
        return r;
    }
    out = safe_close(out);
    err = safe_close(err);
    c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
    r = watch(s, &c, ret_stderr, chunk);
    reap(&c);
    if (r < 0) return r;
    *ret_status = c.status;
    return 0;
}
