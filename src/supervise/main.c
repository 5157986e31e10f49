/* abx-supervise: the process between the library and a plugin.
 *
 * It starts the plugin, tells how that went and how it ended, and leaves no descendant of it
 * behind: not when the plugin ends, not when told to, not when the host program is gone. It
 * runs with every signal blocked, so that only SIGKILL ends it. wire.h is its interface. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "supervise/sys.h"
#include "supervise/wire.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define KERNEL_SIGNALS 64
#define KERNEL_SIGSET 8 /* bytes */

/* A program that somebody still writes to is tried again, 1 + 2 + 4 + ... + 128 ms in all. */
#define BUSY_TRIES 8

/* Deeper descendants become our own children once their ancestors are dead. */
#define DEPTH_MAX 48

static int plugin; /* its pid until it is reaped, else 0 */

static void tell(uint8_t type, int value) {
    struct wire_msg m = {.type = type, .value = value};
    sys(SYS_sendto, WIRE_CONTROL_FD, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT, 0);
}

static void sleep_ms(int ms) {
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    sys(SYS_nanosleep, &ts, 0);
}

/* ---- the tree ------------------------------------------------------------------ */

static char *put_str(char *p, const char *s) {
    while (*s) *p++ = *s++;
    *p = '\0';
    return p;
}

static char *put_int(char *p, unsigned n) {
    char digits[12], *d = digits + sizeof digits - 1;
    *d = '\0';
    do *--d = (char)('0' + n % 10);
    while (n /= 10);
    return put_str(p, d);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int get_int(const char *s) {
    int n = 0;
    while (is_digit(*s)) n = n * 10 + (*s++ - '0');
    return n;
}

static int open_path(const char *path, int flags) {
    return (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0);
}

static void walk(int pid, int sig, int depth);

static void signal_below(int pid, int sig, int depth) {
    sys(SYS_kill, pid, sig);
    if (depth < DEPTH_MAX) walk(pid, sig, depth + 1);
}

/* /proc/PID/task/TID/children: "12 34 56 ". */
static bool walk_children(int pid, int tid, int sig, int depth) {
    char path[64], buf[128];
    put_str(put_int(put_str(put_int(put_str(path, "/proc/"), (unsigned)pid), "/task/"), (unsigned)tid), "/children");
    int fd = open_path(path, 0);
    if (fd < 0) return false;
    int child = 0;
    for (long n; (n = sys(SYS_read, fd, buf, sizeof buf)) > 0;) {
        for (long i = 0; i < n; i++) {
            if (is_digit(buf[i])) {
                child = child * 10 + (buf[i] - '0');
            } else if (child) {
                signal_below(child, sig, depth);
                child = 0;
            }
        }
    }
    sys(SYS_close, fd);
    return true;
}

/* The fourth field of /proc/PID/stat; the second is in parentheses and may hold anything. */
static int parent_of(int pid) {
    char path[32], buf[512];
    put_str(put_int(put_str(path, "/proc/"), (unsigned)pid), "/stat");
    int fd = open_path(path, 0);
    if (fd < 0) return -1;
    long n = sys(SYS_read, fd, buf, sizeof buf - 1);
    sys(SYS_close, fd);
    if (n <= 0) return -1;
    buf[n] = '\0';
    while (n > 0 && buf[n] != ')') n--;
    return buf[n] && buf[n + 1] && buf[n + 2] ? get_int(buf + n + 4) : -1;
}

/* Calls back for every entry of a /proc directory that is a number. */
static bool each_number(const char *dir, bool (*fn)(int n, int pid, int sig, int depth), int pid, int sig, int depth) {
    _Alignas(struct dirent64) char buf[512];
    int fd = open_path(dir, O_DIRECTORY);
    bool ok = fd >= 0;
    for (long n; ok && (n = sys(SYS_getdents64, fd, buf, sizeof buf)) > 0;) {
        for (long at = 0; at < n;) {
            struct dirent64 *d = (struct dirent64 *)(buf + at);
            if (is_digit(d->d_name[0])) ok = fn(get_int(d->d_name), pid, sig, depth) && ok;
            at += d->d_reclen;
        }
    }
    if (fd >= 0) sys(SYS_close, fd);
    return ok;
}

static bool visit_task(int tid, int pid, int sig, int depth) { return walk_children(pid, tid, sig, depth); }

static bool visit_process(int n, int pid, int sig, int depth) {
    if (parent_of(n) == pid) signal_below(n, sig, depth);
    return true;
}

/* Signals the descendants of pid, parents before children: a stopped parent neither forks nor
 * reaps, so the numbers read from it stay valid. A kernel without "children" files costs a
 * look at every process. */
static void walk(int pid, int sig, int depth) {
    char path[32];
    put_str(put_int(put_str(path, "/proc/"), (unsigned)pid), "/task");
    if (!each_number(path, visit_task, pid, sig, depth)) each_number("/proc", visit_process, pid, sig, depth);
}

/* ---- the end -------------------------------------------------------------------- */

/* Takes in what has ended; the plugin's end is told at once. False when no child is left. */
static bool reap(void) {
    int status = 0;
    long pid;
    while ((pid = sys(SYS_wait4, -1, &status, WNOHANG | __WALL, 0)) > 0) {
        if (pid != plugin) continue;
        plugin = 0;
        if (WIFEXITED(status))
            tell(WIRE_EXITED, WEXITSTATUS(status));
        else
            tell(WIRE_SIGNALED, WTERMSIG(status));
    }
    return pid == 0;
}

/* Ends every descendant, however long one takes that may not be killed (another user's). */
static void kill_all(struct pollfd *child_ended) {
    int self = (int)sys(SYS_getpid);
    for (int wait_ms = 1; reap();) {
        walk(self, SIGSTOP, 0);
        walk(self, SIGKILL, 0);
        if (plugin) sys(SYS_kill, -plugin, SIGKILL); /* also where /proc shows nothing */
        struct timespec ts = {.tv_sec = 0, .tv_nsec = wait_ms * 1000000L};
        char info[128];
        if (sys(SYS_ppoll, child_ended, 1, &ts, 0, KERNEL_SIGSET) > 0)
            sys(SYS_read, child_ended->fd, info, sizeof info);
        else if (wait_ms < 500)
            wait_ms *= 2;
    }
}

/* ---- the start ------------------------------------------------------------------ */

/* In the child, on the parent's memory: only an exec or an exit may follow. */
static __attribute__((noinline, noreturn)) void child_main(const char *path, char **argv, char **envp, volatile int *err) {
    uint64_t none = 0;
    sys(SYS_setsid);
    sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, KERNEL_SIGSET);
    long r = sys(SYS_execve, path, argv, envp);
    for (int i = 0; r == -ETXTBSY && i < BUSY_TRIES; i++) {
        sleep_ms(1 << i);
        r = sys(SYS_execve, path, argv, envp);
    }
    *err = (int)-r;
    for (;;) sys(SYS_exit, 127);
}

/* Its pid when exec succeeded, else -errno. Apart, for nothing else may live in this frame. */
static __attribute__((noinline)) int start_plugin(const char *path, char **argv, char **envp) {
    volatile int err = 0;
    long pid = sys_vfork();
    if (pid == 0) child_main(path, argv, envp, &err);
    return err ? -err : (int)pid;
}

/* The host may have ignored some; ignored survives exec, and SIGCHLD must not be here. */
static void reset_signals(void) {
    static const long dfl[4]; /* the kernel's struct sigaction, whatever its order */
    uint64_t all = ~UINT64_C(0);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, KERNEL_SIGSET);
    for (int s = 1; s <= KERNEL_SIGNALS; s++) sys(SYS_rt_sigaction, s, dfl, 0, KERNEL_SIGSET);
}

int supervise(int argc, char **argv, char **envp) {
    if (argc < 4 || !is_digit(argv[1][0])) return 2;
    if (sys(SYS_fcntl, WIRE_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0) return 2;
    reset_signals();
    sys(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);

    /* A process the host forked may hold the socket, so its end alone does not tell. Parent 0 is
     * one outside of our pid namespace, for which the socket has to do. */
    int host = get_int(argv[1]);
    int host_fd = (int)sys(SYS_pidfd_open, host, 0);
    int parent = (int)sys(SYS_getppid);
    if (parent != host) {
        if (parent != 0) return 0;
        host_fd = -1;
    }
    uint64_t chld = UINT64_C(1) << (SIGCHLD - 1);
    int chld_fd = (int)sys(SYS_signalfd4, -1, &chld, KERNEL_SIGSET, O_CLOEXEC | O_NONBLOCK);
    if (chld_fd < 0) {
        tell(WIRE_NOEXEC, -chld_fd);
        return 0;
    }

    int pid = start_plugin(argv[2], argv + 3, envp);
    if (pid < 0) {
        tell(WIRE_NOEXEC, -pid);
        return 0;
    }
    plugin = pid;
    tell(WIRE_STARTED, plugin);
    for (int fd = 0; fd <= 2; fd++) sys(SYS_close, fd);

    struct pollfd p[] = {
        {.fd = chld_fd, .events = POLLIN},
        {.fd = WIRE_CONTROL_FD, .events = POLLIN},
        {.fd = host_fd < 0 ? -1 : host_fd, .events = POLLIN},
    };
    for (bool end = false; !end;) {
        if (sys(SYS_ppoll, p, 3, 0, 0, KERNEL_SIGSET) <= 0) continue;
        char buf[128];
        if (p[0].revents) {
            sys(SYS_read, chld_fd, buf, sizeof buf);
            reap();
            end = plugin == 0;
        }
        if (p[1].revents) {
            long n = sys(SYS_read, WIRE_CONTROL_FD, buf, sizeof buf);
            if (n <= 0) end = true;
            for (long i = 0; i < n; i++) {
                if (buf[i] == WIRE_TERM && plugin) sys(SYS_kill, -plugin, SIGTERM);
                if (buf[i] == WIRE_KILL) end = true;
            }
        }
        if (p[2].revents) end = true;
    }
    kill_all(p);
    return 0;
}
