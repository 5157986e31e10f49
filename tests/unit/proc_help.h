/* For test_proc.c: the parts its program plays as its own plugin, and what every test uses. */
#ifndef TESTS_PROC_HELP_H
#define TESTS_PROC_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "proc/proc.h"

extern char **environ;

#define PATIENCE_MS 20000
#define MARK "abx-test-proc"

static char self[PATH_MAX];
static char *supervisor;

/* ---- parts ----------------------------------------------------------------------- */

/* One line with the pid, in one write, so that lines of several processes do not mix. */
static void say_pid(void) {
    char line[32];
    int n = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (write(1, line, (size_t)n) != n) _exit(90);
}

static void sleep_forever(void) {
    for (;;) pause();
}

/* A child in the group, a grandchild in its own session deaf to SIGTERM, and one whose parent
 * has ended: four lines with the plugin's own. */
static void tree(bool leader_waits) {
    if (fork() == 0) {
        say_pid();
        if (fork() == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            signal(SIGHUP, SIG_IGN);
            say_pid();
            sleep_forever();
        }
        sleep_forever();
    }
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() == 0) {
            setsid();
            say_pid();
            sleep_forever();
        }
        _exit(0);
    }
    waitpid(middle, NULL, 0);
    say_pid();
    if (leader_waits) sleep_forever();
    char c;
    while (read(0, &c, 1) > 0) continue;
    _exit(3);
}

static void list_fds(void) {
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
}

static void signal_state(void) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0) fputs(line, stdout);
    if (f) fclose(f);
}

static void on_exit_store(struct proc *p, const struct proc_exit *e, void *user);

/* A host of its own, to be killed: passes on what its plugin writes. With "fork", a copy of it
 * keeps every descriptor and outlives it. */
static int host(bool with_fork) {
    struct loop *l;
    struct proc *p;
    int in, out, err;
    struct proc_exit e = {0};
    const char *argv[] = {self, "tree", NULL};
    struct proc_spec spec = {.supervisor = supervisor, .argv = argv, .env = (const char *const *)environ};
    if (loop_new(&l) < 0 || proc_spawn(&p, l, &spec, &in, &out, &err, on_exit_store, &e, NULL) < 0) return 91;
    if (with_fork && fork() == 0) {
        alarm(60);
        say_pid();
        sleep_forever();
    }
    char buf[256];
    for (;;) {
        struct pollfd fd = {.fd = out, .events = POLLIN};
        poll(&fd, 1, -1);
        ssize_t n = read(out, buf, sizeof buf);
        if (n > 0 && write(1, buf, (size_t)n) != n) return 92;
        if (n == 0) return 93;
    }
}

/* A host without 0, 1 and 2: tells by its exit code whether the plugin's echo came back. */
static int closed_stdio(void) {
    struct loop *l;
    struct proc *p;
    int in, out, err;
    struct proc_exit e = {.code = -1000};
    const char *argv[] = {self, "echo", NULL};
    struct proc_spec spec = {.supervisor = supervisor, .argv = argv, .env = (const char *const *)environ};
    for (int fd = 0; fd < 3; fd++) close(fd);
    if (loop_new(&l) < 0) return 81;
    if (proc_spawn(&p, l, &spec, &in, &out, &err, on_exit_store, &e, NULL) < 0) return 82;
    if (in <= 3 || out <= 3 || err <= 3 || write(in, "hello", 5) != 5) return 83;
    close(in);
    while (e.code == -1000)
        if (loop_pump(l, PATIENCE_MS) < 0) return 84;
    char buf[16];
    if (read(out, buf, sizeof buf) != 5 || memcmp(buf, "hello", 5) != 0) return 85;
    close(out);
    close(err);
    proc_free(p);
    loop_free(l);
    return e.code;
}

static int play(int argc, char **argv) {
    const char *part = argv[1];
    if (streq(part, "exit")) return atoi(argv[2]);
    if (streq(part, "signal")) return kill(getpid(), atoi(argv[2])), 94;
    if (streq(part, "pause")) say_pid(), sleep_forever();
    if (streq(part, "tree")) tree(true);
    if (streq(part, "leave")) tree(false);
    if (streq(part, "fds")) return list_fds(), 0;
    if (streq(part, "signals")) return signal_state(), 0;
    if (streq(part, "host")) return host(false);
    if (streq(part, "host-fork")) return host(true);
    if (streq(part, "closed-stdio")) return closed_stdio();
    if (streq(part, "where")) {
        char cwd[PATH_MAX];
        printf("%s %s %d\n", argv[0], getcwd(cwd, sizeof cwd), argc);
        printf("%d\n", getsid(0) == getpid() && getpgrp() == getpid());
        for (char **e = environ; *e; e++) puts(*e);
        return 0;
    }
    if (streq(part, "echo")) {
        char buf[4096];
        for (ssize_t n; (n = read(0, buf, sizeof buf)) > 0;)
            if (write(1, buf, (size_t)n) != n) return 95;
        return write(2, "done", 4) == 4 ? 0 : 96;
    }
    return 97;
}

/* ---- helpers --------------------------------------------------------------------- */

struct child {
    struct loop *l;
    struct proc *p;
    int in, out, err;
    int exits;
    struct proc_exit e;
    abx_error *error;
};

static void on_exit_store(struct proc *p, const struct proc_exit *e, void *user) {
    (void)p;
    *(struct proc_exit *)user = *e;
}

static void on_exit_count(struct proc *p, const struct proc_exit *e, void *user) {
    struct child *c = user;
    assert_ptr_equal(p, c->p);
    assert_false(proc_running(p));
    c->exits++;
    c->e = *e;
}

static int start_spec(struct child *c, struct proc_spec spec) {
    *c = (struct child){.in = -1, .out = -1, .err = -1};
    assert_int_equal(loop_new(&c->l), 0);
    if (!spec.supervisor) spec.supervisor = supervisor;
    if (!spec.env) spec.env = (const char *const *)environ;
    return proc_spawn(&c->p, c->l, &spec, &c->in, &c->out, &c->err, on_exit_count, c, &c->error);
}

static void start(struct child *c, const char *part, const char *arg) {
    const char *argv[] = {self, part, arg, NULL};
    assert_int_equal(start_spec(c, (struct proc_spec){.argv = argv}), 0);
    assert_int_equal(c->exits, 0);
}

static void await_exit(struct child *c) {
    while (!c->exits) assert_int_equal(loop_pump(c->l, PATIENCE_MS), 0);
    assert_int_equal(c->exits, 1);
}

static void finish(struct child *c) {
    proc_free(c->p);
    loop_free(c->l);
    safe_close(c->in);
    safe_close(c->out);
    safe_close(c->err);
    abx_error_unref(c->error);
    /* Not one child is left, running or dead, that was not taken in. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

/* Everything that comes until the end of file, or until so many lines. */
static size_t slurp(int fd, char *buf, size_t size, int lines) {
    size_t n = 0;
    while (n < size - 1 && lines != 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t got = read(fd, buf + n, lines > 0 ? 1 : size - 1 - n);
        assert_true(got >= 0);
        if (got == 0) break;
        n += (size_t)got;
        if (lines > 0 && buf[n - 1] == '\n') lines--;
    }
    buf[n] = '\0';
    return n;
}

#define TREE_MAX 8
struct pids {
    int n, fd[TREE_MAX];
};

/* Reads as many pids and holds on to the processes. */
static void read_pids(struct pids *t, int fd, int n) {
    char buf[256], *at = buf;
    slurp(fd, buf, sizeof buf, n);
    t->n = n;
    for (int i = 0; i < n; i++) {
        long pid = strtol(at, &at, 10);
        assert_true(pid > 1);
        t->fd[i] = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
        assert_true(t->fd[i] >= 0);
    }
}

static void assert_pids_end(struct pids *t) {
    for (int i = 0; i < t->n; i++) {
        struct pollfd p = {.fd = t->fd[i], .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        close(t->fd[i]);
    }
}

static void assert_pids_ended(struct pids *t) {
    for (int i = 0; i < t->n; i++) {
        struct pollfd p = {.fd = t->fd[i], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 0), 1);
        close(t->fd[i]);
    }
}

#endif
