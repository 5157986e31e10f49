/* Plugin processes: start, end, and that nothing is left of them. The program is its own plugin:
 * with an argument it plays one of the parts in proc_help.h. */
#include "proc_help.h"

/* ---- ends -------------------------------------------------------------------------- */

static void test_exit_code(void **state) {
    (void)state;
    static const int codes[] = {0, 1, 7, 127, 255};
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        struct child c;
        char arg[8];
        snprintf(arg, sizeof arg, "%d", codes[i]);
        start(&c, "exit", arg);
        assert_true(proc_running(c.p));
        await_exit(&c);
        assert_int_equal(c.e.exec_errno, 0);
        assert_int_equal(c.e.code, codes[i]);
        assert_true(proc_pid(c.p) > 1);
        assert_int_equal(loop_pump(c.l, 0), 0);
        assert_int_equal(c.exits, 1);
        proc_terminate(c.p);
        proc_kill(c.p);
        finish(&c);
    }
}

static void test_signal(void **state) {
    (void)state;
    struct child c;
    start(&c, "signal", "9");
    await_exit(&c);
    assert_int_equal(c.e.code, -SIGKILL);
    finish(&c);
    start(&c, "signal", "10");
    await_exit(&c);
    assert_int_equal(c.e.code, -SIGUSR1);
    finish(&c);
}

static void test_stdio(void **state) {
    (void)state;
    struct child c;
    char buf[64];
    start(&c, "echo", NULL);
    assert_true(fcntl(c.in, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(c.out, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(c.err, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(c.in, F_GETFD) & fcntl(c.out, F_GETFD) & fcntl(c.err, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(c.in, "hello", 5), 5);
    c.in = safe_close(c.in);
    slurp(c.out, buf, sizeof buf, -1);
    assert_string_equal(buf, "hello");
    slurp(c.err, buf, sizeof buf, -1);
    assert_string_equal(buf, "done");
    await_exit(&c);
    assert_int_equal(c.e.code, 0);
    finish(&c);
}

static void test_free_in_callback_of(struct proc *p, const struct proc_exit *e, void *user) {
    *(int *)user = e->code;
    proc_free(p);
}

static void test_free_in_callback(void **state) {
    (void)state;
    struct loop *l;
    struct proc *p;
    int in, out, err, code = -1;
    const char *argv[] = {self, "exit", "5", NULL};
    struct proc_spec spec = {.supervisor = supervisor, .argv = argv, .env = (const char *const *)environ};
    assert_int_equal(loop_new(&l), 0);
    assert_int_equal(proc_spawn(&p, l, &spec, &in, &out, &err, test_free_in_callback_of, &code, NULL), 0);
    while (code < 0) assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(code, 5);
    assert_int_equal(loop_pump(l, 0), 0);
    loop_free(l);
    close(in);
    close(out);
    close(err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

/* ---- starts ------------------------------------------------------------------------- */

static void test_not_in_path(void **state) {
    (void)state;
    struct child c;
    static const char *const env[] = {"PATH=relative:/nonexistent:", NULL};
    const char *argv[] = {"abx-no-such-program", NULL};
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv, .env = env}), ABX_E_PLUGIN_PROCESS);
    assert_string_equal(abx_error_message(c.error), "Cannot start 'abx-no-such-program': not found in PATH.");
    assert_null(c.p);
    assert_int_equal(c.in, -1);
    finish(&c);
    const char *none[] = {NULL};
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = none}), ABX_E_PLUGIN_PROCESS);
    finish(&c);
}

static void test_in_path(void **state) {
    (void)state;
    struct child c;
    static const char *const env[] = {"PATH=/nonexistent:/bin:/usr/bin", "A=b", NULL};
    const char *argv[] = {"sh", "-c", "exit 6", NULL};
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv, .env = env}), 0);
    await_exit(&c);
    assert_int_equal(c.e.code, 6);
    finish(&c);
}

static void test_exec_fails(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int error;
    } cases[] = {{"/nonexistent/program", ENOENT}, {"/", EACCES}, {"/dev/null", EACCES}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct child c;
        const char *argv[] = {cases[i].path, NULL};
        assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv}), 0);
        assert_int_equal(c.exits, 0);
        await_exit(&c);
        assert_int_equal(c.e.exec_errno, cases[i].error);
        assert_int_equal(proc_pid(c.p), 0);
        finish(&c);
    }
}

static void test_no_supervisor(void **state) {
    (void)state;
    struct child c;
    const char *argv[] = {self, "exit", "0", NULL};
    int r = start_spec(&c, (struct proc_spec){.supervisor = "/nonexistent/abx-supervise", .argv = argv});
    assert_int_equal(r, ABX_E_PLUGIN_PROCESS);
    assert_non_null(strstr(abx_error_message(c.error), "/nonexistent/abx-supervise"));
    finish(&c);
    r = start_spec(&c, (struct proc_spec){.argv = argv, .cwd = "/nonexistent/place"});
    assert_int_equal(r, ABX_E_PLUGIN_PROCESS);
    assert_non_null(strstr(abx_error_message(c.error), "/nonexistent/place"));
    finish(&c);
}

static void test_surroundings(void **state) {
    (void)state;
    struct child c;
    char buf[2 * PATH_MAX], want[2 * PATH_MAX];
    static const char *const env[] = {"ONE=1", "PATH=/bin", "EMPTY=", NULL};
    const char *argv[] = {self, "where", "", "last", NULL};
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv, .env = env, .cwd = "/"}), 0);
    slurp(c.out, buf, sizeof buf, -1);
    snprintf(want, sizeof want, "%s / 4\n1\nONE=1\nPATH=/bin\nEMPTY=\n", self);
    assert_string_equal(buf, want);
    await_exit(&c);
    finish(&c);
}

/* Whatever the host ignores or blocks: a plugin begins with nothing of it. */
static void test_signals_are_default(void **state) {
    (void)state;
    struct child c;
    char buf[256];
    sigset_t block, old, now;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    sigprocmask(SIG_BLOCK, &block, &old);
    start(&c, "signals", NULL);
    slurp(c.out, buf, sizeof buf, -1);
    sigprocmask(SIG_SETMASK, &old, &now);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    assert_string_equal(buf, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    assert_true(sigismember(&now, SIGUSR2));
    assert_false(sigismember(&now, SIGTERM));
    await_exit(&c);
    finish(&c);
}

/* Not even a descriptor that the host left open on purpose. */
static void test_descriptors_of_child(void **state) {
    (void)state;
    struct child c;
    char buf[256];
    int stray = dup(2), high = fcntl(2, F_DUPFD, 200);
    assert_int_equal(fcntl(stray, F_GETFD) & FD_CLOEXEC, 0);
    start(&c, "fds", NULL);
    slurp(c.out, buf, sizeof buf, -1);
    close(stray);
    close(high);
    assert_string_equal(buf, "0 1 2 ");
    await_exit(&c);
    finish(&c);
}

/* Runs this program in another part and gives what waitpid() says. */
static pid_t run_self(const char *part, int out_fd) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays should a test fail */
        if (out_fd >= 0) dup2(out_fd, 1);
        execl(self, self, part, NULL);
        _exit(99);
    }
    return pid;
}

static void test_host_without_stdio(void **state) {
    (void)state;
    int status;
    pid_t pid = run_self("closed-stdio", -1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void on_close_timer(struct timer *t);
struct closing {
    struct timer t;
    int fd;
};
static void on_close_timer(struct timer *t) {
    struct closing *k = (struct closing *)t;
    k->fd = safe_close(k->fd);
}

/* The program is still open for writing when it is started. */
static void test_text_file_busy(void **state) {
    (void)state;
    char dir[] = "/tmp/" MARK "-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/program", dir);
    int from = open(self, O_RDONLY | O_CLOEXEC);
    struct closing k = {.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755)};
    char buf[65536];
    for (ssize_t n; (n = read(from, buf, sizeof buf)) > 0;) assert_int_equal(write(k.fd, buf, (size_t)n), n);
    close(from);
    struct child c;
    const char *argv[] = {path, "exit", "4", NULL};
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv}), 0);
    timer_init(&k.t, on_close_timer);
    assert_int_equal(timer_start(c.l, &k.t, 10), 0);
    await_exit(&c);
    assert_int_equal(k.fd, -1);
    assert_int_equal(c.e.exec_errno, 0);
    assert_int_equal(c.e.code, 4);
    finish(&c);
    /* Held for good, it is an error after a bounded time. */
    int hold = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(start_spec(&c, (struct proc_spec){.argv = argv}), 0);
    await_exit(&c);
    assert_int_equal(c.e.exec_errno, ETXTBSY);
    finish(&c);
    close(hold);
    unlink(path);
    rmdir(dir);
}

/* ---- trees --------------------------------------------------------------------------- */

static void test_terminate(void **state) {
    (void)state;
    struct child c;
    char buf[32];
    start(&c, "pause", NULL);
    slurp(c.out, buf, sizeof buf, 1);
    while (!proc_pid(c.p)) loop_pump(c.l, PATIENCE_MS);
    assert_int_equal(atoi(buf), proc_pid(c.p));
    proc_terminate(c.p);
    await_exit(&c);
    assert_int_equal(c.e.code, -SIGTERM);
    finish(&c);
}

static void test_kill_tree(void **state) {
    (void)state;
    struct child c;
    struct pids t;
    start(&c, "tree", NULL);
    read_pids(&t, c.out, 4);
    proc_kill(c.p);
    await_exit(&c);
    assert_int_equal(c.e.code, -SIGKILL);
    assert_pids_end(&t);
    finish(&c);
}

/* The end of the plugin itself is told even though its children hold the pipes. */
static void test_leavings(void **state) {
    (void)state;
    struct child c;
    struct pids t;
    start(&c, "leave", NULL);
    read_pids(&t, c.out, 4);
    c.in = safe_close(c.in);
    await_exit(&c);
    assert_int_equal(c.e.code, 3);
    assert_pids_end(&t);
    finish(&c);
}

static void test_free_kills(void **state) {
    (void)state;
    struct child c;
    struct pids t;
    start(&c, "tree", NULL);
    read_pids(&t, c.out, 4);
    proc_free(TAKE_PTR(c.p));
    assert_int_equal(c.exits, 0);
    assert_pids_ended(&t); /* already, not soon */
    finish(&c);
}

static void test_free_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct child c;
        start(&c, "pause", NULL);
        finish(&c);
        assert_int_equal(c.exits, 0);
    }
    proc_free(NULL);
}

static void host_dies(const char *part, int pids) {
    int out[2];
    struct pids t;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t host_pid = run_self(part, out[1]);
    close(out[1]);
    read_pids(&t, out[0], pids);
    assert_int_equal(kill(host_pid, SIGKILL), 0);
    assert_int_equal(waitpid(host_pid, NULL, 0), host_pid);
    close(out[0]);
    if (pids == 5) {
        /* The copy of the host is none of the plugin's; the other four go though it lives. */
        int alive = 0, copy = -1;
        struct pollfd p[TREE_MAX];
        do {
            alive = 0;
            for (int i = 0; i < t.n; i++) p[i] = (struct pollfd){.fd = t.fd[i], .events = POLLIN};
            poll(p, (nfds_t)t.n, 0);
            for (int i = 0; i < t.n; i++)
                if (!p[i].revents) alive++, copy = t.fd[i];
            struct pollfd wait[TREE_MAX];
            int n = 0;
            for (int i = 0; i < t.n; i++)
                if (!p[i].revents) wait[n++] = p[i];
            if (alive > 1) assert_true(poll(wait, (nfds_t)n, PATIENCE_MS) > 0);
        } while (alive > 1);
        assert_int_equal(alive, 1);
        syscall(SYS_pidfd_send_signal, copy, SIGKILL, NULL, 0);
    }
    assert_pids_end(&t);
}

static void test_host_killed(void **state) {
    (void)state;
    host_dies("host", 4);
}

static void test_host_killed_with_copy(void **state) {
    (void)state;
    host_dies("host-fork", 5);
}

static pid_t parent_of(pid_t pid) {
    char path[64], buf[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, buf, sizeof buf - 1);
    close(fd);
    assert_true(n > 0);
    buf[n] = '\0';
    return atoi(strrchr(buf, ')') + 4);
}

/* Only SIGKILL ends a supervisor; the plugin goes with it and that is told. */
static void test_supervisor_killed(void **state) {
    (void)state;
    struct child c;
    struct pids t;
    start(&c, "pause", NULL);
    read_pids(&t, c.out, 1);
    while (!proc_pid(c.p)) loop_pump(c.l, PATIENCE_MS);
    pid_t sup = parent_of(proc_pid(c.p));
    assert_int_not_equal(sup, getpid());
    assert_int_equal(kill(sup, SIGTERM), 0);
    assert_int_equal(kill(sup, SIGINT), 0);
    assert_int_equal(kill(sup, SIGHUP), 0);
    assert_int_equal(loop_pump(c.l, 0), 0);
    assert_int_equal(c.exits, 0);
    assert_int_equal(kill(sup, SIGKILL), 0);
    await_exit(&c);
    assert_int_equal(c.e.exec_errno, 0);
    assert_int_equal(c.e.code, -SIGKILL);
    assert_pids_end(&t);
    finish(&c);
}

/* A fork of the host frees its copy: the process is not its own to end. */
static void test_freed_by_fork(void **state) {
    (void)state;
    struct child c;
    struct pids t;
    int status;
    start(&c, "pause", NULL);
    read_pids(&t, c.out, 1);
    pid_t pid = fork();
    if (pid == 0) {
        proc_kill(c.p);
        proc_free(c.p);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    struct pollfd p = {.fd = t.fd[0], .events = POLLIN};
    assert_int_equal(loop_pump(c.l, 0), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    proc_terminate(c.p);
    await_exit(&c);
    assert_int_equal(c.e.code, -SIGTERM);
    assert_pids_end(&t);
    finish(&c);
}

/* ---- the host's own children ------------------------------------------------------------ */

static volatile sig_atomic_t handler_calls, stolen;
static void steal(int s) {
    (void)s;
    int saved = errno;
    handler_calls++;
    while (waitpid(-1, NULL, WNOHANG) > 0) stolen++;
    errno = saved;
}

/* A host that takes in every child it hears of: no end is lost, none is waited for in vain, and
 * its handler stays. */
static void test_foreign_reaper(void **state) {
    (void)state;
    struct sigaction sa = {.sa_handler = steal, .sa_flags = SA_RESTART}, old, now;
    sigaction(SIGCHLD, &sa, &old);
    for (int i = 0; i < 20; i++) {
        struct child c;
        start(&c, "exit", "9");
        await_exit(&c);
        assert_int_equal(c.e.code, 9);
        finish(&c);
    }
    sigaction(SIGCHLD, &old, &now);
    assert_ptr_equal(now.sa_handler, steal);

    /* The same with ends taken in by the kernel. */
    signal(SIGCHLD, SIG_IGN);
    struct child c;
    struct pids t;
    start(&c, "exit", "9");
    await_exit(&c);
    assert_int_equal(c.e.code, 9);
    finish(&c);
    start(&c, "leave", NULL);
    read_pids(&t, c.out, 4);
    proc_free(TAKE_PTR(c.p));
    assert_pids_ended(&t);
    finish(&c);
    assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

/* A child of the host's own is left to the host. */
static void test_foreign_child(void **state) {
    (void)state;
    int status;
    pid_t mine = fork();
    if (mine == 0) _exit(21);
    struct child c;
    start(&c, "exit", "2");
    await_exit(&c);
    proc_free(TAKE_PTR(c.p));
    assert_int_equal(waitpid(mine, &status, 0), mine);
    assert_int_equal(WEXITSTATUS(status), 21);
    finish(&c);
}

static int count_fds(void) {
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_no_descriptor_leaks(void **state) {
    (void)state;
    int before = count_fds();
    for (int i = 0; i < 10; i++) {
        struct child c;
        const char *missing[] = {"/nonexistent/x", NULL};
        start(&c, i % 2 ? "exit" : "pause", "0");
        if (i % 2) await_exit(&c);
        finish(&c);
        assert_int_equal(start_spec(&c, (struct proc_spec){.argv = missing}), 0);
        if (i % 2) await_exit(&c);
        finish(&c);
        assert_true(start_spec(&c, (struct proc_spec){.argv = missing, .supervisor = "/nonexistent/s"}) < 0);
        finish(&c);
    }
    assert_int_equal(count_fds(), before);
}

static void test_find(void **state) {
    (void)state;
    _cleanup_free_ char *found = NULL;
    assert_int_equal(proc_find_supervisor(&found, NULL), 0);
    assert_int_equal(found[0], '/');
    assert_true(str_ends(found, "/abx-supervise"));
    assert_int_equal(access(found, X_OK), 0);
}

int main(int argc, char **argv) {
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *build = getenv("ABX_TEST_BUILD");
    if (n <= 0) return 98;
    if (build)
        supervisor = str_printf("%s/src/supervise/abx-supervise", build);
    else
        proc_find_supervisor(&supervisor, NULL);
    if (argc > 1) {
        int r = play(argc, argv);
        free(supervisor);
        return r;
    }
    alarm(180);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_code),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_stdio),
        cmocka_unit_test(test_free_in_callback),
        cmocka_unit_test(test_not_in_path),
        cmocka_unit_test(test_in_path),
        cmocka_unit_test(test_exec_fails),
        cmocka_unit_test(test_no_supervisor),
        cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_signals_are_default),
        cmocka_unit_test(test_descriptors_of_child),
        cmocka_unit_test(test_host_without_stdio),
        cmocka_unit_test(test_text_file_busy),
        cmocka_unit_test(test_terminate),
        cmocka_unit_test(test_kill_tree),
        cmocka_unit_test(test_leavings),
        cmocka_unit_test(test_free_kills),
        cmocka_unit_test(test_free_at_once),
        cmocka_unit_test(test_host_killed),
        cmocka_unit_test(test_host_killed_with_copy),
        cmocka_unit_test(test_supervisor_killed),
        cmocka_unit_test(test_freed_by_fork),
        cmocka_unit_test(test_foreign_reaper),
        cmocka_unit_test(test_foreign_child),
        cmocka_unit_test(test_no_descriptor_leaks),
        cmocka_unit_test(test_find),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    free(supervisor);
    return r;
}
