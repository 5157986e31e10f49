/* A sandbox provider: EPP/1 on standard input and output, one JSON object a line.
 *
 * A sandbox is a directory <data>/sandboxes/<id>/ with record.json and root/; a path of the sandbox is
 * a path under root/. This is a place to start from and no isolation: commands run as you. Linux 5.6
 * or newer: openat2() keeps paths inside and pidfds tell when a command ends. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"

#define LINE_LIMIT (8L * 1024 * 1024)
#define MAX_RUNNING 64
#define INIT                                                                                          \
    "\"features\":[\"sandbox.lifecycle\",\"exec.run\",\"files.rw\"],\"operation_contract_version\":1," \
    "\"operations\":{\"cli\":[],\"python\":[\"exec.run\",\"files.list\",\"files.move\",\"files.read\"," \
    "\"files.remove\",\"files.stat\",\"files.write\",\"sandbox.create\",\"sandbox.delete\","            \
    "\"sandbox.get\",\"sandbox.list\"]},\"workflow_inputs\":[],\"startup_modes\":[]"

/* A command at work. */
struct run {
    long request, timeout;
    char sandbox[64];
    pid_t pid;
    int pidfd, out, err, late;
    struct timespec deadline;
};
static struct run running[MAX_RUNNING];
static size_t running_count;
static char boxes[PATH_MAX]; /* <data>/sandboxes */
static struct {
    int code;
    const char *sdk_code, *feature;
    char message[512];
} failure; /* of the request being answered */

__attribute__((format(printf, 3, 4))) static int fail(int code, const char *sdk_code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(failure.message, sizeof failure.message, fmt, ap);
    va_end(ap);
    failure.code = code;
    failure.sdk_code = sdk_code;
    return -1;
}

/* The failure that errno stands for. */
static int fail_errno(const char *what) {
    if (errno == EXDEV) return fail(-32000, "E4002", "%s leaves the sandbox", what);
    if (errno == ENOENT) return fail(-32002, "E4001", "%s: no such file or directory", what);
    return fail(-32000, errno == EACCES || errno == EPERM ? "E4002" : NULL, "%s: %s", what, strerror(errno));
}

/* Strings of the parameters live until the request is answered. */
static char *strings[32];
static size_t string_count;
static char *keep(char *s) {
    if (s && string_count < sizeof strings / sizeof *strings) return strings[string_count++] = s;
    free(s);
    return NULL;
}
static char *text(struct json p, const char *key) { return keep(json_string(json_get(p, key))); }

static void write_all(int fd, const char *p, size_t n) {
    for (ssize_t w; n > 0; p += w, n -= (size_t)w)
        if ((w = write(fd, p, n)) < 0) _exit(1); /* the host is gone */
}

static void answer(long id, const char *result, size_t n) {
    char *line = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&line, &len);
    if (result && n > (size_t)LINE_LIMIT - 64) {
        fail(-32000, NULL, "the answer is longer than 8 MiB");
        result = NULL;
    }
    fprintf(f, "{\"jsonrpc\":\"2.0\",\"id\":%ld,", id);
    if (result) {
        fputs("\"result\":", f);
        fwrite(result, 1, n, f);
    } else {
        fprintf(f, "\"error\":{\"code\":%d,\"message\":", failure.code);
        json_put(f, failure.message, strlen(failure.message));
        if (failure.sdk_code) fprintf(f, ",\"data\":{\"sdk_code\":\"%s\"}", failure.sdk_code);
        if (failure.feature) fprintf(f, ",\"data\":{\"details\":{\"feature\":\"%s\"}}", failure.feature);
        putc('}', f);
    }
    fputs("}\n", f);
    fclose(f);
    write_all(1, line, len);
    free(line);
}

/* ---- places ------------------------------------------------------------------------- */

/* Opens a path of the sandbox; the kernel refuses, with EXDEV, whatever leads out of root. */
static int open_in(int root, const char *path, int flags, mode_t mode) {
    while (*path == '/') path++;
    /* Not blocking: a FIFO would wait for its other end. */
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK)),
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
}

/* What record.json says, kept. The pattern keeps ids from being paths. */
static int load(struct json p, const char **ret_id, struct json *ret) {
    char path[PATH_MAX + 64];
    struct stat st;
    const char *id = text(p, "sandbox_id");
    if (!id) return fail(-32602, NULL, "sandbox_id must be a string");
    snprintf(path, sizeof path, "%s/%s/record.json", boxes, id);
    int fd = -1;
    if (strlen(id) == 20 && strncmp(id, "sbx-", 4) == 0 && strspn(id + 4, "0123456789abcdef") == 16)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) return fail(-32002, "E2009", "there is no sandbox %s", id);
    char *raw = keep(calloc(1, (size_t)st.st_size + 1));
    ssize_t n = raw ? read(fd, raw, (size_t)st.st_size) : -1;
    close(fd);
    if (n < 0) return fail(-32000, NULL, "the record of %s can't be read", id);
    if (ret) *ret = (struct json){raw, (size_t)n};
    *ret_id = id;
    return 0;
}

static int open_root(struct json p) {
    char path[PATH_MAX + 64];
    const char *id;
    if (load(p, &id, NULL) < 0) return -1;
    snprintf(path, sizeof path, "%s/%s/root", boxes, id);
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : fail_errno(id);
}

/* The directory that holds a path, and the last name; "." and ".." are left to the kernel. */
static int open_parent(int root, char *path, char **ret_name) {
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/') path[--n] = '\0';
    char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (!**ret_name || !strcmp(*ret_name, ".") || !strcmp(*ret_name, "..")) return errno = EXDEV, -1;
    char *parent = keep(slash ? strndup(path, (size_t)(slash - path)) : strdup("."));
    return parent ? open_in(root, parent, O_PATH | O_DIRECTORY, 0) : -1;
}

/* Makes the first n bytes of path a directory, with its parents. */
static int make_dirs(int root, const char *path, size_t n) {
    char *part = strndup(path, n), *name;
    int r, dir = part ? open_in(root, part, O_PATH | O_DIRECTORY, 0) : -1;
    if (dir < 0 && errno == ENOENT) {
        size_t up = n;
        while (up > 0 && part[up - 1] == '/') up--;
        while (up > 0 && part[up - 1] != '/') up--;
        if (make_dirs(root, part, up) == 0 && (dir = open_parent(root, part, &name)) >= 0 &&
            (r = mkdirat(dir, name, 0777)) < 0 && errno != EEXIST) {
            close(dir);
            dir = -1;
        }
    }
    free(part);
    return dir < 0 ? -1 : close(dir);
}

static int remove_at(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0) return 0;
    if (errno != EISDIR && errno != EPERM) return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) remove_at(dirfd(d), e->d_name);
    closedir(d);
    return unlinkat(dir, name, AT_REMOVEDIR);
}

static void put_entry(FILE *out, const char *path, const struct stat *st) {
    char when[32];
    struct tm tm;
    const char *slash = strrchr(path, '/');
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&st->st_mtime, &tm));
    fputs("{\"name\":", out);
    json_put(out, slash[1] ? slash + 1 : path, strlen(slash[1] ? slash + 1 : path));
    fputs(",\"path\":", out);
    json_put(out, path, strlen(path));
    fprintf(out, ",\"type\":\"%s\",\"size\":%lld,\"mtime\":\"%s\",\"mode\":%u}",
            S_ISDIR(st->st_mode) ? "dir" : S_ISLNK(st->st_mode) ? "symlink" : "file", (long long)st->st_size, when,
            st->st_mode & 07777);
}

/* ---- sandboxes ---------------------------------------------------------------------- */

static int initialize(struct json p, FILE *out) {
    const char *id = text(p, "provider_id");
    fputs("{\"protocol\":\"epp/1\",\"plugin\":{\"name\":", out);
    json_put(out, id ? id : "provider", strlen(id ? id : "provider"));
    fputs(",\"version\":\"0.1.0\"}," INIT "}", out);
    return 0;
}

static int done(struct json p, FILE *out) {
    (void)p;
    fputs("{}", out);
    return 0;
}

static int sandbox_create(struct json p, FILE *out) {
    struct json metadata = json_get(p, "metadata"), envs = json_get(p, "envs");
    const char *template = text(p, "template");
    char id[32], path[PATH_MAX + 64], when[32], *record = NULL;
    size_t n = 0;
    uint64_t random;
    time_t now = time(NULL);
    struct tm tm;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return fail_errno("a random id");
    snprintf(id, sizeof id, "sbx-%016llx", (unsigned long long)random);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    FILE *f = open_memstream(&record, &n);
    fprintf(f, "{\"sandbox_id\":\"%s\",\"template\":", id);
    json_put(f, template ? template : "", template ? strlen(template) : 0);
    fprintf(f, ",\"status\":\"running\",\"created_at\":\"%s\",\"metadata\":%.*s}", when, metadata.p ? (int)metadata.n : 2,
            metadata.p ? metadata.p : "{}");
    fclose(f);
    keep(record);
    snprintf(path, sizeof path, "%s/%s", boxes, id);
    int r = mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/root", boxes, id);
    if (r == 0) r = mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/record.json", boxes, id);
    if (r < 0 || !(f = fopen(path, "we"))) return fail_errno(id);
    fprintf(f, "{\"record\":%s,\"envs\":%.*s}", record, envs.p ? (int)envs.n : 2, envs.p ? envs.p : "{}");
    if (fclose(f) != 0) return fail_errno(id);
    fputs(record, out);
    return 0;
}

static int sandbox_get(struct json p, FILE *out) {
    struct json all, record;
    const char *id;
    if (load(p, &id, &all) < 0) return -1;
    record = json_get(all, "record");
    fwrite(record.p, 1, record.n, out);
    return 0;
}

static int sandbox_list(struct json p, FILE *out) {
    struct dirent **names;
    const char *status = text(p, "status"), *after = text(p, "cursor"), *last = "";
    long limit = json_long(json_get(p, "limit"), 0), count = 0;
    int more = 0, n = scandir(boxes, &names, NULL, alphasort);
    if (n < 0) return fail_errno("the list");
    fputs("{\"sandboxes\":[", out);
    for (int i = 0; i < n; i++) {
        char request[NAME_MAX + 32], *record = NULL;
        size_t len = 0;
        const char *id = names[i]->d_name;
        if ((status && *status && strcmp(status, "running")) || strcmp(id, after ? after : "") <= 0 || more) continue;
        size_t before = string_count;
        FILE *f = open_memstream(&record, &len);
        int asked = snprintf(request, sizeof request, "{\"sandbox_id\":\"%s\"}", id);
        int r = sandbox_get((struct json){request, (size_t)asked}, f);
        fclose(f);
        while (string_count > before) free(strings[--string_count]);
        if (r == 0 && limit > 0 && count == limit) more = 1;
        if (r == 0 && !more) {
            fprintf(out, "%s%s", count++ ? "," : "", record);
            last = id;
        }
        free(record);
    }
    fputs("]", out);
    if (more) fprintf(out, ",\"next\":\"%s\"", last);
    fputs("}", out);
    while (n-- > 0) free(names[n]);
    free(names);
    return 0;
}

static int sandbox_kill(struct json p, FILE *out) {
    const char *id;
    if (load(p, &id, NULL) < 0) return -1;
    for (size_t i = 0; i < running_count; i++)
        if (!strcmp(running[i].sandbox, id)) kill(-running[i].pid, SIGKILL);
    int dir = open(boxes, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? -1 : remove_at(dir, id);
    if (dir >= 0) close(dir);
    return r < 0 ? fail_errno(id) : done(p, out);
}

/* ---- commands ----------------------------------------------------------------------- */

/* Sets NAME=VALUE in a list with room for it; the later one wins. */
static void set_env(char **list, struct json name, struct json value) {
    char *k = json_string(name), *v = json_string(value), *both = NULL;
    size_t i = 0, n = k ? strlen(k) + 1 : 0;
    if (k && v && asprintf(&both, "%s=%s", k, v) > 0) {
        while (list[i] && strncmp(list[i], both, n) != 0) i++;
        free(list[i]);
        list[i] = both;
    }
    free(k);
    free(v);
}

static char **free_list(char **list) {
    for (size_t i = 0; list && list[i]; i++) free(list[i]);
    free(list);
    return NULL;
}

static char **environment(const char *id, struct json saved, struct json given) {
    struct json name, value, all[] = {saved, given};
    size_t n = 3;
    for (size_t i = 0; i < 2; i++)
        for (const char *at = NULL; json_each(all[i], &at, &name, &value);) n++;
    char **list = calloc(n, sizeof *list);
    if (!list) return NULL;
    const char *path = getenv("PATH");
    if (asprintf(&list[0], "PATH=%s", path ? path : "/usr/bin:/bin") < 0 || asprintf(&list[1], "HOME=%s/%s/root", boxes, id) < 0)
        return free_list(list);
    for (size_t i = 0; i < 2; i++)
        for (const char *at = NULL; json_each(all[i], &at, &name, &value);) set_env(list, name, value);
    return list;
}

static char **arguments(const char *cmd, struct json args) {
    struct json value;
    size_t n = 2;
    for (const char *at = NULL; json_each(args, &at, NULL, &value);) n++;
    char **list = calloc(n, sizeof *list);
    if (!list || !(list[0] = strdup(cmd))) return free_list(list);
    n = 1;
    for (const char *at = NULL; json_each(args, &at, NULL, &value);)
        if (!(list[n++] = json_string(value))) return free_list(list);
    return list;
}

/* A file without a name: output goes there, so that a background child can't hold up the answer. */
static int scratch(void) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/.out-XXXXXX", boxes);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

/* Is there a file of that name in PATH? A directory that can't be read makes execvp() say EACCES. */
static int in_path(const char *name) {
    char path[PATH_MAX];
    const char *dir = getenv("PATH");
    if (strchr(name, '/') || !dir) return 1;
    for (size_t n; n = strcspn(dir, ":"), *dir; dir += n + (dir[n] == ':')) {
        snprintf(path, sizeof path, "%.*s/%s", (int)n, dir, name);
        if (access(path, F_OK) == 0) return 1;
    }
    return 0;
}

static void command(char **argv, char **env, int cwd, int out, int err) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || fchdir(cwd) < 0) _exit(126);
    environ = env;
    execvp(argv[0], argv);
    if (errno == EACCES && !in_path(argv[0])) errno = ENOENT;
    int missing = errno == ENOENT;
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(missing ? 127 : 126);
}

/* Starts argv without a shell; finish() answers. */
static int exec_start(long id, struct json p) {
    struct json all;
    const char *sandbox, *cmd = text(p, "cmd"), *where = text(p, "cwd");
    struct run run = {.request = id, .timeout = json_long(json_get(p, "timeout"), 0), .out = -1, .err = -1, .pidfd = -1};
    if (load(p, &sandbox, &all) < 0) return -1;
    char **argv = cmd ? arguments(cmd, json_get(p, "args")) : NULL, **env = NULL;
    int root = -1, cwd = -1, r = -1;
    if (!argv)
        fail(-32602, NULL, "cmd and args must be strings");
    else if (running_count == MAX_RUNNING)
        fail(-32000, NULL, "%d commands run already", MAX_RUNNING);
    else if ((root = open_root(p)) < 0 || (cwd = open_in(root, where ? where : "/", O_PATH | O_DIRECTORY, 0)) < 0)
        fail_errno(where ? where : "/");
    else if (!(env = environment(sandbox, json_get(all, "envs"), json_get(p, "env"))) || (run.out = scratch()) < 0 ||
             (run.err = scratch()) < 0 || (run.pid = fork()) < 0)
        fail_errno(cmd);
    else {
        if (run.pid == 0) command(argv, env, cwd, run.out, run.err);
        run.pidfd = (int)syscall(SYS_pidfd_open, run.pid, 0);
        clock_gettime(CLOCK_MONOTONIC, &run.deadline);
        run.deadline.tv_sec += run.timeout;
        snprintf(run.sandbox, sizeof run.sandbox, "%s", sandbox);
        running[running_count++] = run;
        r = 0;
    }
    if (root >= 0) close(root);
    if (cwd >= 0) close(cwd);
    if (r < 0 && run.out >= 0) close(run.out);
    free_list(argv);
    free_list(env);
    return r;
}

static void put_output(FILE *out, const char *name, int fd) {
    struct stat st;
    fprintf(out, "\"%s\":", name);
    size_t n = fstat(fd, &st) == 0 ? (size_t)(st.st_size < LINE_LIMIT ? st.st_size : LINE_LIMIT) : 0;
    char *data = malloc(n + 1);
    ssize_t got = data ? pread(fd, data, n, 0) : 0;
    json_put(out, data, got > 0 ? (size_t)got : 0);
    free(data);
}

static void finish(size_t i) {
    struct run run = running[i];
    int status = 0;
    char *result = NULL;
    size_t n = 0;
    running[i] = running[--running_count];
    waitpid(run.pid, &status, 0);
    FILE *f = open_memstream(&result, &n);
    putc('{', f);
    put_output(f, "stdout", run.out);
    putc(',', f);
    put_output(f, "stderr", run.err);
    fprintf(f, ",\"exit_code\":%d}", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    fclose(f);
    memset(&failure, 0, sizeof failure);
    if (run.late) fail(-32000, "E3001", "the command ran longer than %ld s", run.timeout);
    answer(run.request, run.late ? NULL : result, n);
    free(result);
    close(run.pidfd);
    close(run.out);
    close(run.err);
}

/* ---- files -------------------------------------------------------------------------- */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(FILE *out, const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        putc(base64[v >> 18], out);
        putc(base64[v >> 12 & 63], out);
        putc(i + 1 < n ? base64[v >> 6 & 63] : '=', out);
        putc(i + 2 < n ? base64[v & 63] : '=', out);
    }
}

/* Decodes in place; the length, or -1. */
static ssize_t decode_base64(char *s) {
    size_t n = strlen(s), pad = n && s[n - 1] == '=' ? (n > 1 && s[n - 2] == '=' ? 2 : 1) : 0, at = 0;
    if (n % 4) return -1;
    for (size_t i = 0; i < n; i += 4) {
        unsigned v = 0;
        for (size_t k = i; k < i + 4; k++) {
            const char *d = strchr(base64, s[k]);
            if (!d && k < n - pad) return -1;
            v = v << 6 | (unsigned)(d && k < n - pad ? d - base64 : 0);
        }
        for (int k = 16; k >= 0; k -= 8) s[at++] = (char)(v >> k);
    }
    return (ssize_t)(at - pad);
}

static int files_read(struct json p, int root, char *path, FILE *out) {
    struct stat st;
    long offset = json_long(json_get(p, "offset"), 0), length = json_long(json_get(p, "length"), LINE_LIMIT);
    if (offset < 0 || length < 0) return fail(-32602, NULL, "offset and length can't be negative");
    int fd = open_in(root, path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, &st) < 0) return fail_errno(path);
    long left = st.st_size > offset ? st.st_size - offset : 0;
    size_t n = (size_t)(length < left ? length : left);
    if (n > LINE_LIMIT) n = LINE_LIMIT;
    unsigned char *data = malloc(n + 1);
    ssize_t got = data ? pread(fd, data, n, offset) : -1;
    if (!S_ISREG(st.st_mode)) {
        got = -1;
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    }
    close(fd);
    fputs("{\"content_b64\":\"", out);
    if (got > 0) put_base64(out, data, (size_t)got);
    fputs("\"}", out);
    free(data);
    return got < 0 ? fail_errno(path) : 0;
}

static int files_write(struct json p, int root, char *path, FILE *out) {
    char *content = text(p, "content_b64");
    ssize_t n = content ? decode_base64(content) : -1;
    struct json append = json_get(p, "append");
    long mode = json_long(json_get(p, "mode"), -1);
    char *slash = strrchr(path, '/');
    if (n < 0) return fail(-32602, NULL, "content_b64 must be base64");
    if (slash && make_dirs(root, path, (size_t)(slash - path)) < 0) return fail_errno(path);
    int fd = open_in(root, path, O_WRONLY | O_CREAT | (append.p && *append.p == 't' ? O_APPEND : O_TRUNC), 0666);
    if (fd < 0) return fail_errno(path);
    for (ssize_t at = 0, w; at < n; at += w)
        if ((w = write(fd, content + at, (size_t)(n - at))) < 0) {
            fail_errno(path);
            close(fd);
            return -1;
        }
    if (mode >= 0) fchmod(fd, (mode_t)mode & 0777);
    close(fd);
    return done(p, out);
}

static int files_list(struct json p, int root, char *path, FILE *out) {
    struct dirent **names = NULL;
    struct stat st;
    char link[64], full[PATH_MAX], top[PATH_MAX];
    (void)p;
    int dir = open_in(root, path, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0) return fail_errno(path);
    /* The real places, for a path that went through links. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t full_n = readlink(link, full, sizeof full - 1);
    snprintf(link, sizeof link, "/proc/self/fd/%d", root);
    ssize_t top_n = readlink(link, top, sizeof top - 1);
    int n = scandirat(dir, ".", &names, NULL, alphasort), count = 0;
    fputs("{\"entries\":[", out);
    for (int i = 0; i < n; i++) {
        char *place = NULL;
        if (strcmp(names[i]->d_name, ".") && strcmp(names[i]->d_name, "..") && full_n >= top_n && top_n > 0 &&
            fstatat(dir, names[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            asprintf(&place, "%.*s/%s", (int)(full_n - top_n), full + top_n, names[i]->d_name) > 0) {
            if (count++) putc(',', out);
            put_entry(out, place, &st);
            free(place);
        }
        free(names[i]);
    }
    fputs("]}", out);
    free(names);
    close(dir);
    return n < 0 ? fail_errno(path) : 0;
}

static int files_stat(struct json p, int root, char *path, FILE *out) {
    struct stat st;
    (void)p;
    int fd = open_in(root, path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0) return fail_errno(path);
    close(fd);
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/') path[--n] = '\0';
    char *shown = NULL;
    while (*path == '/') path++;
    if (asprintf(&shown, "/%s", path) < 0) return fail_errno(path);
    put_entry(out, keep(shown), &st);
    return 0;
}

static int files_mkdir(struct json p, int root, char *path, FILE *out) {
    return make_dirs(root, path, strlen(path)) < 0 ? fail_errno(path) : done(p, out);
}

static int files_remove(struct json p, int root, char *path, FILE *out) {
    char *name;
    int dir = open_parent(root, path, &name), r = dir < 0 ? -1 : remove_at(dir, name);
    if (r < 0) fail_errno(path);
    if (dir >= 0) close(dir);
    return r < 0 ? -1 : done(p, out);
}

static int files_move(struct json p, int root, char *path, FILE *out) {
    char *target = text(p, "destination"), *from_name, *to_name;
    struct json overwrite = json_get(p, "overwrite");
    struct stat st, other;
    int from, to = -1, r = -1;
    if (!target) return fail(-32602, NULL, "destination must be a string");
    if ((from = open_parent(root, path, &from_name)) < 0 || fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = fail_errno(path);
    else if ((strrchr(target, '/') && make_dirs(root, target, (size_t)(strrchr(target, '/') - target)) < 0) ||
             (to = open_parent(root, target, &to_name)) < 0)
        r = fail_errno(target);
    else if (fstatat(to, to_name, &other, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == other.st_ino)
        r = fail(-32000, NULL, "%s can't be moved to %s", path, target);
    else if ((r = renameat2(from, from_name, to, to_name, RENAME_NOREPLACE)) < 0 && errno == EEXIST &&
             overwrite.p && *overwrite.p == 't') {
        /* An exchange first: the source is never lost, and a directory is not removed from under it. */
        if ((r = renameat2(from, from_name, to, to_name, RENAME_EXCHANGE)) == 0) r = remove_at(from, from_name);
        if (r < 0) fail_errno(target);
    } else if (r < 0)
        fail_errno(target);
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    return r < 0 ? -1 : done(p, out);
}

/* ---- requests ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*call)(struct json p, FILE *out);
    int (*file)(struct json p, int root, char *path, FILE *out);
} methods[] = {
    {"initialize", initialize, NULL},
    {"shutdown", done, NULL},
    {"sandbox.create", sandbox_create, NULL},
    {"sandbox.get", sandbox_get, NULL},
    {"sandbox.list", sandbox_list, NULL},
    {"sandbox.kill", sandbox_kill, NULL},
    {"files.read", NULL, files_read},
    {"files.write", NULL, files_write},
    {"files.list", NULL, files_list},
    {"files.stat", NULL, files_stat},
    {"files.mkdir", NULL, files_mkdir},
    {"files.remove", NULL, files_remove},
    {"files.move", NULL, files_move},
};
/* Methods, or how they begin, of the features this provider lacks. */
static const char *const lacking[][2] = {
    {"sandbox.set_timeout", "sandbox.timeout"}, {"sandbox.pause", "sandbox.pause"}, {"sandbox.resume", "sandbox.pause"},
    {"exec.start", "exec.stream"}, {"files.watch", "files.watch"}, {"files.unwatch", "files.watch"},
    {"process.", "process.manage"}, {"pty.", "pty"}, {"ports.", "ports.url"}, {"session.", "sessions"},
};

static int dispatch(const char *method, struct json p, FILE *out) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(method, methods[i].name)) continue;
        if (methods[i].call) return methods[i].call(p, out);
        char *path = text(p, methods[i].file == files_move ? "source" : "path");
        if (!path) return fail(-32602, NULL, "the path must be a string");
        int root = open_root(p), r = root < 0 ? -1 : methods[i].file(p, root, path, out);
        if (root >= 0) close(root);
        return r;
    }
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        if (!strncmp(method, lacking[i][0], strlen(lacking[i][0]))) {
            failure.feature = lacking[i][1];
            return fail(-32003, NULL, "%s is not supported", method);
        }
    return fail(-32601, NULL, "there is no method %s", method);
}

/* One line; 1 when it was the last. */
static int take(const char *line, size_t n) {
    struct json request = {line, n}, p, id;
    const char *start = json_space(line, line + n), *end = json_skip(start, line + n, 0);
    if (!end || *start != '{') return 0; /* the host sends none */
    request = (struct json){start, (size_t)(end - start)};
    p = json_get(request, "params");
    id = json_get(request, "id");
    char *method = text(request, "method"), *result = NULL;
    size_t len = 0;
    int last = method && !strcmp(method, "shutdown"), r = 0;
    memset(&failure, 0, sizeof failure);
    if (method && !strcmp(method, "$/cancel")) {
        for (size_t i = 0; i < running_count; i++)
            if (running[i].request == json_long(json_get(p, "id"), -1)) kill(-running[i].pid, SIGKILL);
    } else if (method && id.p && !strcmp(method, "exec.run")) {
        if (exec_start(json_long(id, 0), p) < 0) answer(json_long(id, 0), NULL, 0);
    } else if (method && id.p) {
        FILE *out = open_memstream(&result, &len);
        r = dispatch(method, p, out);
        fclose(out);
        answer(json_long(id, 0), r < 0 ? NULL : result, len);
        free(result);
    }
    while (string_count > 0) free(strings[--string_count]);
    return last;
}

/* Milliseconds until the nearest deadline; what is over is killed, and answered when it has ended. */
static int next_timeout(void) {
    struct timespec now;
    long nearest = -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (size_t i = 0; i < running_count; i++) {
        struct run *run = &running[i];
        if (run->timeout <= 0 || run->late) continue;
        long left = (run->deadline.tv_sec - now.tv_sec) * 1000 + (run->deadline.tv_nsec - now.tv_nsec) / 1000000 + 1;
        if (left <= 1) {
            run->late = 1;
            kill(-run->pid, SIGKILL);
        } else if (nearest < 0 || left < nearest)
            nearest = left;
    }
    return nearest > 3600000 ? 3600000 : (int)nearest;
}

int main(void) {
    const char *data = getenv("ABX_PROVIDER_DATA_DIR");
    char *real = realpath(data ? data : ".", NULL), *in = NULL, *newline;
    size_t len = 0, cap = 0, seen = 0;
    if (!real || snprintf(boxes, sizeof boxes, "%s/sandboxes", real) >= (int)sizeof boxes) return 1;
    if (mkdir(boxes, 0700) < 0 && errno != EEXIST) return 1;
    for (int last = 0; !last;) {
        struct pollfd fds[MAX_RUNNING + 1] = {{.fd = 0, .events = POLLIN}};
        size_t count = running_count;
        for (size_t i = 0; i < count; i++) fds[i + 1] = (struct pollfd){.fd = running[i].pidfd, .events = POLLIN};
        if (poll(fds, count + 1, next_timeout()) < 0) break;
        while (count-- > 0) /* from the end: finish() moves the last one into the gap */
            if (fds[count + 1].revents) finish(count);
        if (!fds[0].revents) continue;
        if (cap - len < 65536 && !(in = realloc(in, cap = cap * 2 + 131072))) return 1;
        ssize_t n = read(0, in + len, cap - len);
        if (n <= 0) break;
        len += (size_t)n;
        while (!last && (newline = memchr(in + seen, '\n', len - seen))) {
            size_t line = (size_t)(newline - in);
            last = take(in, line);
            memmove(in, newline + 1, len -= line + 1);
            seen = 0;
        }
        seen = len;
    }
    for (size_t i = 0; i < running_count; i++) kill(-running[i].pid, SIGKILL);
    free(in);
    free(real);
    return 0;
}
