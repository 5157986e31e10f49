/* Runs a program by posix_spawn() and poll(); no signal of the host program is touched. */
#include "store/subproc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/util.h"
#include "supervise/wire.h"

/* How long a stop by flag alone may go unseen. */
#define CANCEL_POLL_MS 100

struct child {
    pid_t pid;
    int pidfd, out, err;
    int control; /* to the supervisor; -1: none */
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

/* The same program under the supervisor, whose socket is control (wire.h). NULL: out of memory. */
static char **supervised_argv(const struct subproc_spec *s, char host[16]) {
    char **argv = calloc(strv_len(s->argv) + 4, sizeof *argv);
    if (!argv) return NULL;
    snprintf(host, 16, "%d", (int)getpid());
    argv[0] = (char *)"abx-supervise";
    argv[1] = host;
    argv[2] = (char *)s->path;
    memcpy(argv + 3, s->argv, strv_len(s->argv) * sizeof *argv);
    return argv;
}

static int spawn(const struct subproc_spec *s, int in, int out, int err, int control, pid_t *ret) {
    char host[16];
    _cleanup_free_ char **argv = control >= 0 ? supervised_argv(s, host) : NULL;
    if (control >= 0 && !argv) return -ENOMEM;

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
    if (!r && control >= 0) r = posix_spawn_file_actions_adddup2(&fa, control, WIRE_CONTROL_FD);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    if (!r) r = posix_spawn_file_actions_addclosefrom_np(&fa, control >= 0 ? WIRE_CONTROL_FD + 1 : 3);
#endif
    if (!r) r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!r) r = posix_spawnattr_setpgroup(&attr, 0);
    if (!r) r = posix_spawnattr_setsigdefault(&attr, &all);
    if (!r) r = posix_spawnattr_setsigmask(&attr, control >= 0 ? &all : &none);
    if (!r) r = control >= 0 ? posix_spawn(ret, s->supervisor, &fa, &attr, argv, s->env)
                               : posix_spawn(ret, s->path, &fa, &attr, s->argv, s->env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&fa);
    return -r;
}

/* Ends the group while the leader, even as a zombie, still keeps the number taken. */
static void reap(struct child *c) {
    if (c->reaped) return;
    if (c->control >= 0)
        shutdown(c->control, SHUT_WR); /* the supervisor kills all that is left, and ends */
    else
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
    c->control = safe_close(c->control);
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

static int make_control(int *ours, int *theirs) {
    int p[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0) return -errno;
    *ours = above_stdio(p[0]);
    /* dup2() onto itself would leave it close-on-exec. */
    *theirs = fcntl(p[1], F_DUPFD_CLOEXEC, WIRE_CONTROL_FD + 1);
    safe_close(p[1]);
    return *ours < 0 || *theirs < 0 ? -EMFILE : 0;
}

/* The last word of a supervisor that is gone: how the program ended. */
static int told_status(int control, int *ret) {
    struct wire_msg m;
    while (recv(control, &m, sizeof m, MSG_WAITALL) == (ssize_t)sizeof m) {
        if (m.type == WIRE_NOEXEC) return -m.value;
        if (m.type == WIRE_EXITED) *ret = m.value;
        if (m.type == WIRE_SIGNALED) *ret = 128 + m.value;
    }
    return 0;
}

static void child_donep(struct child *c) { child_done(c); }

int subproc_run(const struct subproc_spec *s, struct buf *ret_stderr, int *ret_status) {
    _cleanup_(child_donep) struct child c = {.pidfd = -1, .out = -1, .err = -1, .control = -1};
    _cleanup_close_ int out = -1, err = -1, in = -1, control = -1;
    _cleanup_free_ char *chunk = malloc(LIMIT_READ_CHUNK);
    if (!chunk) return -ENOMEM;
    if (s->cancel && atomic_load(&s->cancel->stop)) return -ECANCELED;
    int r = make_pipe(&c.out, &out);
    if (r == 0) r = make_pipe(&c.err, &err);
    if (r < 0) return r;
    in = above_stdio(s->stdin_fd >= 0 ? fcntl(s->stdin_fd, F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (in < 0) return -errno;
    if (s->supervisor) r = make_control(&c.control, &control);
    if (r == 0) r = spawn(s, in, out, err, control, &c.pid);
    if (r < 0) {
        c.pid = 0;
        return r;
    }
    out = safe_close(out);
    err = safe_close(err);
    control = safe_close(control);
    c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
    r = watch(s, &c, ret_stderr, chunk);
    reap(&c);
    if (r == 0 && c.control >= 0) r = told_status(c.control, &c.status);
    if (r < 0) return r;
    *ret_status = c.status;
    return 0;
}
