/* A plugin process as the library sees it: pipes, the control socket and the supervisor's pidfd. */
#include "proc/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/util.h"
#include "proc/spawn.h"
#include "supervise/wire.h"

/* Where programs are looked for when the environment has no PATH. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

struct proc {
    struct loop *loop;
    struct watch control, ended; /* the socket; the supervisor's pidfd                    */
    int control_fd, pidfd;       /* pidfd -1: the kernel has none, or it is reaped        */
    pid_t supervisor, plugin;    /* supervisor 0: reaped                                  */
    int guard;                   /* the plugin's stdin, kept open for reading: see proc_spawn */
    pid_t owner;                 /* who started it: a fork of the host has only a copy    */
    bool running;                /* on_exit is still to come                              */
    union {
        char bytes[sizeof(struct wire_msg)];
        struct wire_msg msg;
    } in;
    size_t have;
    void (*on_exit)(struct proc *p, const struct proc_exit *e, void *user);
    void *user;
};

/* ---- news from the supervisor ---------------------------------------------------- */

static void reap(struct proc *p) {
    watch_remove(&p->ended);
    if (p->supervisor) spawn_reap(p->supervisor, p->pidfd);
    p->supervisor = 0;
    p->pidfd = safe_close(p->pidfd);
}

/* Once. The callback may free p: the caller returns at once. */
static void finish(struct proc *p, int exec_errno, int code) {
    p->running = false;
    p->on_exit(p, &(struct proc_exit){.exec_errno = exec_errno, .code = code}, p->user);
}

/* Reads what the supervisor has said. True when p may be gone. */
static bool hear(struct proc *p) {
    while (p->control.active) {
        ssize_t n = recv(p->control_fd, p->in.bytes + p->have, sizeof p->in - p->have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return false;
        if (n <= 0) {
            watch_remove(&p->control);
            return false;
        }
        p->have += (size_t)n;
        if (p->have < sizeof p->in) continue;
        p->have = 0;
        if (!p->running) continue;
        int value = p->in.msg.value;
        switch (p->in.msg.type) {
        case WIRE_STARTED:
            p->plugin = value;
            continue;
        case WIRE_NOEXEC:
        case WIRE_NOSUPERVISOR:
            return finish(p, value > 0 ? value : EIO, 127), true;
        case WIRE_EXITED:
            return finish(p, 0, value), true;
        case WIRE_SIGNALED:
            return finish(p, 0, -value), true;
        }
    }
    return false;
}

/* Silence is the end of the supervisor by force, and the plugin's with it. */
static void on_silence(struct proc *p) {
    if (!p->running) return;
    if (p->plugin)
        finish(p, 0, -SIGKILL);
    else
        finish(p, ECONNRESET, 127);
}

static void on_control(struct watch *w, uint32_t events) {
    (void)events;
    struct proc *p = (struct proc *)((char *)w - offsetof(struct proc, control));
    if (hear(p) || p->control.active) return;
    if (p->pidfd < 0) reap(p); /* no pidfd to tell us; the socket ends with the supervisor */
    on_silence(p);
}

static void on_ended(struct watch *w, uint32_t events) {
    (void)events;
    struct proc *p = (struct proc *)((char *)w - offsetof(struct proc, ended));
    reap(p);
    if (!hear(p)) on_silence(p);
}

/* ---- the start --------------------------------------------------------------------- */

/* Looks argv[0] up in the PATH the plugin will have. */
static int find_program(const char *name, const char *const *env, char **ret, abx_error **reterr) {
    if (strchr(name, '/')) return (*ret = strdup(name)) ? 0 : err_nomem(reterr);
    int r = fs_find_program(name, env_get(env, "PATH") ?: DEFAULT_PATH, ret);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r == 0) return 0;
    return err_set(reterr, ABX_E_PLUGIN_PROCESS, NULL, "Cannot start '%s': %s.", name,
                   r == -EACCES ? "the file in PATH is not executable" : "not found in PATH");
}

/* Keeps a descriptor out of the way of 0 to 3, which a host may have closed. */
static int raise_fd(int *fd) {
    if (*fd >= SPAWN_FDS) return 0;
    int up = fcntl(*fd, F_DUPFD_CLOEXEC, SPAWN_FDS);
    if (up < 0) return -errno;
    safe_close(*fd);
    *fd = up;
    return 0;
}

static int open_pipe(int *ours, int *theirs, bool we_write) {
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0) return -errno;
    *ours = p[we_write];
    *theirs = p[!we_write];
    int r = raise_fd(theirs);
    if (r == 0) r = raise_fd(ours);
    return r < 0 ? r : fcntl(*ours, F_SETFL, O_NONBLOCK | (we_write ? O_WRONLY : O_RDONLY)) < 0 ? -errno : 0;
}

static int open_socket(int *ours, int *theirs) {
    int p[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0) return -errno;
    *ours = p[0];
    *theirs = p[1];
    int r = raise_fd(theirs);
    return r < 0 ? r : raise_fd(ours);
}

static size_t list_len(const char *const *v) {
    size_t n = 0;
    while (v && v[n]) n++;
    return n;
}

int proc_spawn(struct proc **ret, struct loop *l, const struct proc_spec *spec, int *ret_stdin, int *ret_stdout, int *ret_stderr,
               void (*on_exit)(struct proc *p, const struct proc_exit *e, void *user), void *user, abx_error **reterr) {
    static const char *const no_env[] = {NULL};
    _cleanup_close_ int in = -1, out = -1, err = -1, control = -1, pidfd = -1;
    _cleanup_close_ int child_in = -1, child_out = -1, child_err = -1, child_control = -1;
    _cleanup_free_ char *path = NULL;
    _cleanup_free_ char **argv = NULL;
    _cleanup_free_ struct proc *p = calloc(1, sizeof *p);
    size_t argc = list_len(spec->argv);
    if (argc == 0) return err_set(reterr, ABX_E_PLUGIN_PROCESS, NULL, "Cannot start a program: the command is empty.");
    argv = calloc(argc + 4, sizeof *argv);
    if (!p || !argv) return err_nomem(reterr);
    int r = find_program(spec->argv[0], spec->env, &path, reterr);
    if (r < 0) return r;

    r = open_pipe(&in, &child_in, true);
    if (r == 0) r = open_pipe(&out, &child_out, false);
    if (r == 0) r = open_pipe(&err, &child_err, false);
    if (r == 0) r = open_socket(&control, &child_control);
    if (r < 0) return err_errno(reterr, ABX_E_PLUGIN_PROCESS, r, "cannot start \"%s\"", spec->argv[0]);

    char host[16];
    p->owner = getpid();
    snprintf(host, sizeof host, "%d", (int)p->owner);
    argv[0] = (char *)"abx-supervise";
    argv[1] = host;
    argv[2] = path;
    memcpy(argv + 3, spec->argv, argc * sizeof *argv);
    struct spawn s = {.path = spec->supervisor,
                      .argv = argv,
                      .envp = (char *const *)(spec->env ?: no_env),
                      .cwd = spec->cwd,
                      .fds = {child_in, child_out, child_err, child_control}};
    r = spawn_start(&s, &p->supervisor, &pidfd);
    if (r < 0) return err_errno(reterr, ABX_E_PLUGIN_PROCESS, r, "Cannot start '%s': %s.", spec->argv[0], s.failed ?: "clone");

    p->loop = l;
    p->running = true;
    /* While somebody could read, a write to a plugin that is gone raises no SIGPIPE in the host. */
    p->guard = TAKE_FD(child_in);
    p->on_exit = on_exit;
    p->user = user;
    p->control_fd = TAKE_FD(control);
    p->pidfd = TAKE_FD(pidfd);
    r = watch_add(l, &p->control, p->control_fd, EPOLLIN, on_control);
    if (r == 0 && p->pidfd >= 0) r = watch_add(l, &p->ended, p->pidfd, EPOLLIN, on_ended);
    if (r < 0) {
        proc_free(TAKE_PTR(p));
        return err_errno(reterr, ABX_E_PLUGIN_PROCESS, r, "cannot start \"%s\"", spec->argv[0]);
    }
    *ret = TAKE_PTR(p);
    *ret_stdin = TAKE_FD(in);
    *ret_stdout = TAKE_FD(out);
    *ret_stderr = TAKE_FD(err);
    return 0;
}

/* ---- the end ------------------------------------------------------------------------ */

pid_t proc_pid(struct proc *p) { return p->plugin; }
bool proc_running(struct proc *p) { return p->running; }

static void command(struct proc *p, char c) {
    if (p->owner != getpid()) return;
    int saved = errno;
    send(p->control_fd, &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* fails only when all is over */
    errno = saved;
}

void proc_terminate(struct proc *p) {
    if (p->running) command(p, WIRE_TERM);
}
void proc_kill(struct proc *p) { command(p, WIRE_KILL); }

/* Waits for the supervisor's end, which is also the end of its socket. */
static bool await_end(struct proc *p, int timeout_ms) {
    struct pollfd fd = {.fd = p->pidfd >= 0 ? p->pidfd : p->control_fd, .events = p->pidfd >= 0 ? POLLIN : 0};
    int64_t end = time_mono_ms() + timeout_ms;
    for (;;) {
        int64_t left = end - time_mono_ms();
        int r = poll(&fd, 1, left > 0 ? (int)left : 0);
        if (r > 0) return true;
        if (r == 0 || errno != EINTR) return false;
    }
}

/* The shutdown ends the socket even where a forked copy of the host holds our end of it. A
 * supervisor that cannot end the tree in time goes itself, and takes the plugin along. */
static void end_all(struct proc *p) {
    if (!p->supervisor) return;
    shutdown(p->control_fd, SHUT_WR);
    if (!await_end(p, PROC_FREE_MS)) {
        if (p->pidfd >= 0)
            syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
        else
            kill(p->supervisor, SIGKILL);
        if (!await_end(p, PROC_FREE_MS)) return; /* stuck in the kernel: not worth a hang */
    }
    spawn_reap(p->supervisor, p->pidfd);
}

void proc_free(struct proc *p) {
    if (!p) return;
    int saved = errno;
    if (p->owner == getpid()) {
        watch_remove(&p->control);
        watch_remove(&p->ended);
        end_all(p);
    }
    safe_close(p->control_fd);
    safe_close(p->pidfd);
    safe_close(p->guard);
    free(p);
    errno = saved;
}
