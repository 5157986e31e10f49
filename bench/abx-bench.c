/* What the library costs, one line "NAME VALUE UNIT" a measurement, for bench/table.py.
 *
 * usage: abx-bench PROVIDER MANY; the provider is the plugin of bench/plugin, installed in ABX_HOME. */
#include <abx/abx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(int r, abx_error *e) {
    if (r >= 0) return;
    fprintf(stderr, "abx-bench: [%s] %s %s\n", abx_error_id(e), abx_error_message(e), abx_error_hint(e));
    exit(1);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}

static void say(const char *name, double value, const char *unit) { printf("%s %.6g %s\n", name, value, unit); }

/* Resident memory now, KiB. */
static long rss_kib(void) {
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static abx_client *client(void) {
    abx_client *c = NULL;
    abx_error *e = NULL;
    check(abx_client_new(&c, NULL, &e), e);
    return c;
}

static abx_sandbox *create(abx_client *c, const char *provider, const abx_value *options) {
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    abx_op *op = NULL;
    abx_error *e = NULL;
    p.provider = provider;
    p.options = options;
    check(abx_sandbox_create_start(&op, c, &p, NULL, &e), e);
    abx_op_wait(op, -1);
    if (abx_op_error(op)) check(-1, abx_op_error(op));
    abx_sandbox *sb = abx_op_take_sandbox(op);
    abx_op_unref(op);
    return sb;
}

static void finish(abx_op *op) {
    abx_error *e = NULL;
    check(abx_op_finish(&op, NULL, &e), e);
}

/* Two processes that throw the bytes of a files.stat call back and forth: the floor. */
static void raw_ping_pong(void) {
    enum { N = 20000, ASK = 92, ANSWER = 93 };
    int to[2], from[2];
    char b[4096] = {0};
    if (pipe(to) < 0 || pipe(from) < 0) exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        while (read(to[0], b, sizeof b) == ASK)
            if (write(from[1], b, ANSWER) != ANSWER) break;
        _exit(0);
    }
    double *t = malloc(N * sizeof *t);
    for (int i = 0; i < N; i++) {
        double s = now();
        if (write(to[1], b, ASK) != ASK || read(from[0], b, sizeof b) != ANSWER) exit(1);
        t[i] = now() - s;
    }
    say("raw_ping_pong", median(t, N) * 1e6, "us");
    free(t);
    close(to[1]);
    kill(pid, 9);
    waitpid(pid, NULL, 0);
}

static void start_up(const char *provider) {
    enum { N = 30 };
    double t[N], end[N];
    for (int i = 0; i < N; i++) {
        double s = now();
        abx_client *c = client();
        abx_sandbox *sb = create(c, provider, NULL);
        t[i] = now() - s;
        s = now();
        abx_sandbox_unref(sb);
        abx_client_close(c, -1);
        abx_client_unref(c);
        end[i] = now() - s;
    }
    say("create", median(t, N) * 1e3, "ms");
    say("close", median(end, N) * 1e3, "ms");
}

static void calls(abx_sandbox *sb) {
    enum { N = 20000, M = 5000, TASKS = 100 };
    static const char *const argv[] = {"true", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_error *e = NULL;
    double *t = malloc(N * sizeof *t);
    o.argv = argv;
    for (int i = 0; i < N; i++) {
        abx_op *op = NULL;
        double s = now();
        check(abx_files_stat_start(&op, sb, "/f", &e), e);
        finish(op);
        t[i] = now() - s;
    }
    say("bare_call", median(t, N) * 1e6, "us");
    for (int i = 0; i < M; i++) {
        abx_op *op = NULL;
        double s = now();
        check(abx_exec_stream_start(&op, sb, &o, &e), e);
        finish(op);
        t[i] = now() - s;
    }
    say("command", median(t, M) * 1e6, "us");
    free(t);
    double s = now();
    for (int round = 0; round < M / TASKS; round++) {
        abx_op *ops[TASKS];
        for (int i = 0; i < TASKS; i++) check(abx_exec_stream_start(&ops[i], sb, &o, &e), e);
        for (int i = 0; i < TASKS; i++) finish(ops[i]);
    }
    say("concurrent_commands", M / (now() - s), "calls/s");
}

static void stream(abx_sandbox *sb, const char *name, const char *n, const char *size, const char *unit) {
    const char *argv[] = {"spew", n, size, NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_error *e = NULL;
    double t[3];
    size_t total = 0;
    o.argv = argv;
    for (int i = 0; i < 3; i++) {
        abx_op *op = NULL;
        abx_event ev;
        double s = now();
        total = 0;
        check(abx_exec_stream_start(&op, sb, &o, &e), e);
        for (int r;;) {
            while ((r = abx_op_next(op, &ev)) == 1) total += ev.bytes.len;
            if (r < 0) break;
            abx_op_wait_event(op, -1);
        }
        t[i] = now() - s;
        abx_op_unref(op);
    }
    double best = median(t, 3);
    if (strcmp(unit, "MB/s") == 0)
        say(name, (double)total / best / 1e6, unit);
    else
        say(name, atof(n) / best, unit);
}

/* A consumer that stops after one chunk: what the host's memory does in a second. */
static void stopped_consumer(abx_client *c, abx_sandbox *sb) {
    static const char *const argv[] = {"spew", "4000", "65000", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_error *e = NULL;
    long before = rss_kib();
    o.argv = argv;
    check(abx_exec_stream_start(&op, sb, &o, &e), e);
    for (double end = now() + 1; now() < end;) abx_pump(c, 50);
    say("stopped_consumer", (double)(rss_kib() - before) / 1024, "MiB");
    abx_op_unref(op);
}

static void files(abx_sandbox *sb) {
    static const struct {
        const char *name, *path;
        size_t size;
        int n;
    } rows[] = {{"1k", "/1024", 1024, 2000}, {"1m", "/1048576", 1048576, 50}, {"5m", "/5242880", 5242880, 15}};
    char name[32];
    abx_error *e = NULL;
    for (size_t k = 0; k < 3; k++) {
        double *t = malloc((size_t)rows[k].n * sizeof *t);
        char *data = calloc(1, rows[k].size);
        for (int i = 0; i < rows[k].n; i++) {
            abx_op *op = NULL;
            double s = now();
            check(abx_files_write_start(&op, sb, "/f", (abx_bytes){(uint8_t *)data, rows[k].size}, &e), e);
            finish(op);
            t[i] = now() - s;
        }
        snprintf(name, sizeof name, "write_%s", rows[k].name);
        say(name, median(t, rows[k].n) * 1e3, "ms");
        for (int i = 0; i < rows[k].n; i++) {
            abx_op *op = NULL;
            abx_value *v = NULL;
            double s = now();
            check(abx_files_read_start(&op, sb, rows[k].path, &e), e);
            check(abx_op_finish(&op, &v, &e), e);
            t[i] = now() - s;
            if (abx_value_bytes(abx_value_get(v, "content")).len != rows[k].size) exit(1);
            abx_value_unref(v);
        }
        snprintf(name, sizeof name, "read_%s", rows[k].name);
        say(name, median(t, rows[k].n) * 1e3, "ms");
        free(data);
        free(t);
    }
}

/* Many sandboxes of one provider: they share its process. */
static void many(const char *provider, int n) {
    abx_sandbox **sandboxes = calloc((size_t)n, sizeof *sandboxes);
    abx_client *c = client();
    long before = rss_kib();
    double s = now();
    for (int i = 0; i < n; i++) sandboxes[i] = create(c, provider, NULL);
    say("many_create", (now() - s) * 1e3 / n, "ms");
    say("many_memory", (double)(rss_kib() - before) / n, "KiB");
    s = now();
    for (int i = 0; i < n; i++) abx_sandbox_unref(sandboxes[i]);
    abx_client_close(c, -1);
    abx_client_unref(c);
    say("many_end", (now() - s) * 1e3 / n, "ms");
    free(sandboxes);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    raw_ping_pong();
    start_up(argv[1]);
    abx_client *c = client();
    abx_sandbox *sb = create(c, argv[1], NULL);
    calls(sb);
    stream(sb, "small_messages", "100000", "100", "msg/s");
    stream(sb, "stream_256m", "4096", "65536", "MB/s");
    files(sb);
    stopped_consumer(c, sb);
    abx_sandbox_unref(sb);
    abx_client_close(c, 0);
    abx_client_unref(c);
    many(argv[1], atoi(argv[2]));
    return 0;
}
