/* Copies and restores a data directory without following a link. */
#include "store/data.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"

struct budget {
    uint64_t bytes;
    size_t entries;
};

static int open_dir_at(int at, const char *name) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int list_dir(int fd, char ***ret) {
    _cleanup_strv_ char **names = NULL;
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0) return -errno;
    _cleanup_closedir_ DIR *d = fdopendir(again);
    if (!d) {
        safe_close(again);
        return -ENOMEM;
    }
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e) break;
        if (streq(e->d_name, ".") || streq(e->d_name, "..")) continue;
        if (strv_append(&names, e->d_name) < 0) return -ENOMEM;
    }
    if (errno) return -errno;
    *ret = TAKE_PTR(names);
    return 0;
}

static int copy_content(int in, int out) {
    char chunk[16 * 1024];
    for (;;) {
        ssize_t n = copy_file_range(in, NULL, out, NULL, LIMIT_TREE_TOTAL, 0);
        if (n == 0) break;
        if (n < 0) break; /* not between these: by hand, from where it stopped */
    }
    for (;;) {
        ssize_t n = read(in, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0) return 0;
        for (ssize_t done = 0; done < n;) {
            ssize_t k = write(out, chunk + done, (size_t)(n - done));
            if (k < 0 && errno == EINTR) continue;
            if (k < 0) return -errno;
            done += k;
        }
    }
}

static int copy_file(int from, const char *name, int to, const char *as, struct budget *b) {
    _cleanup_close_ int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0) return -errno;
    struct stat st;
    if (fstat(in, &st) < 0) return -errno;
    if (!S_ISREG(st.st_mode)) return 0;
    if (b) {
        b->bytes += (uint64_t)st.st_blocks * 512;
        if (b->bytes > LIMIT_DATA_COPY || (uint64_t)st.st_size > LIMIT_DATA_COPY) return -EFBIG;
    }
    _cleanup_close_ int out = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) return -errno;
    int r = copy_content(in, out);
    if (r < 0) return r;
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    if (fchmod(out, st.st_mode & 07777) < 0 || futimens(out, times) < 0) return -errno;
    return fsync(out) < 0 ? -errno : 0;
}

static int copy_link(int from, const char *name, int to, const char *as) {
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0) return -errno;
    target[n] = '\0';
    return symlinkat(target, to, as) < 0 ? -errno : 0;
}

static int copy_level(int from, int to, struct budget *b, unsigned depth);

static int copy_dir(int from, const char *name, int to, const struct stat *st, struct budget *b, unsigned depth) {
    if (depth >= LIMIT_TREE_DEPTH) return -EFBIG;
    _cleanup_close_ int in = open_dir_at(from, name);
    if (in < 0) return in;
    if (mkdirat(to, name, 0700) < 0) return -errno;
    _cleanup_close_ int out = open_dir_at(to, name);
    if (out < 0) return out;
    int r = copy_level(in, out, b, depth + 1);
    if (r < 0) return r;
    return fchmod(out, st->st_mode & 07777) < 0 ? -errno : 0;
}

static int copy_entry(int from, const char *name, int to, struct budget *b, unsigned depth) {
    struct stat st;
    if (b && ++b->entries > LIMIT_DATA_ENTRIES) return -EFBIG;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
    if (S_ISREG(st.st_mode)) return copy_file(from, name, to, name, b);
    if (S_ISLNK(st.st_mode)) return copy_link(from, name, to, name);
    if (S_ISDIR(st.st_mode)) return copy_dir(from, name, to, &st, b, depth);
    return 0;
}

static int copy_level(int from, int to, struct budget *b, unsigned depth) {
    _cleanup_strv_ char **names = NULL;
    int r = list_dir(from, &names);
    for (size_t i = 0; r >= 0 && names && names[i]; i++) {
        r = copy_entry(from, names[i], to, b, depth);
        if (r == -ENOENT) r = 0; /* a running plugin may have removed it meanwhile */
    }
    return r;
}

int data_copy(const char *from, const char *to) {
    struct budget b = {0};
    _cleanup_close_ int in = open_dir_at(AT_FDCWD, from);
    if (in < 0) return in;
    if (mkdir(to, 0700) < 0) return -errno;
    _cleanup_close_ int out = open_dir_at(AT_FDCWD, to);
    if (out < 0) return out;
    int r = copy_level(in, out, &b, 0);
    if (r < 0) return r;
    return fsync(out) < 0 ? -errno : 0;
}

static int same_content(int a_at, int b_at, const char *name) {
    char a[8192], b[8192];
    _cleanup_close_ int x = openat(a_at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    _cleanup_close_ int y = openat(b_at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (x < 0 || y < 0) return 0;
    for (off_t at = 0;;) {
        ssize_t n = pread(x, a, sizeof a, at), m = pread(y, b, sizeof b, at);
        if (n < 0 || n != m || memcmp(a, b, (size_t)n) != 0) return 0;
        if (n == 0) return 1;
        at += n;
    }
}

static bool same_entry(int from, const struct stat *a, int to, const struct stat *b, const char *name) {
    if ((a->st_mode & S_IFMT) != (b->st_mode & S_IFMT)) return false;
    if (S_ISDIR(a->st_mode)) return true;
    if (S_ISLNK(a->st_mode)) {
        char x[4096], y[4096];
        ssize_t n = readlinkat(from, name, x, sizeof x), m = readlinkat(to, name, y, sizeof y);
        return n >= 0 && n == m && !memcmp(x, y, (size_t)n);
    }
    return a->st_mode == b->st_mode && a->st_size == b->st_size && same_content(from, to, name);
}

static int remove_at(int at, const char *name) {
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return -errno;
    _cleanup_free_ char *path = str_printf("/proc/self/fd/%d/%s", at, name);
    return path ? fs_remove_tree(path) : -ENOMEM;
}

static int restore_level(int from, int to, unsigned depth);

static int restore_entry(int from, int to, const char *name, unsigned depth) {
    struct stat a, b;
    if (fstatat(from, name, &a, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
    bool there = fstatat(to, name, &b, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && same_entry(from, &a, to, &b, name)) {
        if (!S_ISDIR(a.st_mode)) return 0;
        _cleanup_close_ int x = open_dir_at(from, name);
        _cleanup_close_ int y = open_dir_at(to, name);
        if (x < 0 || y < 0) return x < 0 ? x : y;
        int r = restore_level(x, y, depth + 1);
        if (r < 0) return r;
        return fchmod(y, a.st_mode & 07777) < 0 ? -errno : 0;
    }
    int r = there ? remove_at(to, name) : 0;
    return r < 0 ? r : copy_entry(from, name, to, NULL, depth);
}

static int restore_level(int from, int to, unsigned depth) {
    _cleanup_strv_ char **have = NULL, **want = NULL;
    if (depth > LIMIT_TREE_DEPTH) return -EFBIG;
    int r = list_dir(from, &want);
    if (r >= 0) r = list_dir(to, &have);
    for (size_t i = 0; r >= 0 && have && have[i]; i++) {
        struct stat st;
        if (want && strv_contains(want, have[i])) continue;
        /* What is never copied is not missing from the copy. */
        if (fstatat(to, have[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)) continue;
        r = remove_at(to, have[i]);
    }
    for (size_t i = 0; r >= 0 && want && want[i]; i++) r = restore_entry(from, to, want[i], depth);
    if (r >= 0 && fsync(to) < 0) r = -errno;
    return r;
}

int data_restore(const char *copy, const char *to) {
    if (mkdir(to, 0700) < 0 && errno != EEXIST) return -errno;
    _cleanup_close_ int in = open_dir_at(AT_FDCWD, copy);
    if (in < 0) return in;
    _cleanup_close_ int out = open_dir_at(AT_FDCWD, to);
    if (out < 0) return out;
    return restore_level(in, out, 0);
}
