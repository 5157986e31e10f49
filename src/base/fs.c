/* Files: whole reads, atomic writes, safe removal. */
#include "base/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/util.h"

/* How deep a removal goes with one descriptor a level; deeper directories are moved up first. */
#define REMOVE_DEPTH 16
/* How often a directory that others fill is swept again. */
#define REMOVE_PASSES 8

static int read_all(int fd, size_t guess, size_t max, char **ret, size_t *ret_len) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    size_t step = MIN_OF(guess, max) + 1;
    for (;;) {
        char *p = buf_reserve(&b, step);
        if (!p) return b.err;
        ssize_t n = read(fd, p, step);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0) break;
        buf_commit(&b, (size_t)n);
        if (b.len > max) return -EFBIG;
        step = MAX_OF(step - (size_t)n, (size_t)4096);
        if (step > max - b.len) step = max - b.len + 1;
    }
    size_t len = b.len;
    char *text = buf_take(&b);
    if (!text) return -ENOMEM;
    *ret = text;
    if (ret_len) *ret_len = len;
    return 0;
}

int fs_read(const char *path, size_t max, char **ret, size_t *ret_len) {
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) return -errno;
    if (S_ISDIR(st.st_mode)) return -EISDIR;
    bool sized = S_ISREG(st.st_mode) && st.st_size > 0;
    if (sized && (uintmax_t)st.st_size > max) return -EFBIG;
    return read_all(fd, sized ? (size_t)st.st_size : 4096, max, ret, ret_len);
}

int fs_read_at(int dirfd, const char *name, size_t max, char **ret, size_t *ret_len) {
    struct stat st;
    /* Not blocking: a FIFO would wait for its writer before its kind is known. */
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
    _cleanup_close_ int fd = openat(dirfd, name, flags);
    if (fd < 0 || fstat(fd, &st) < 0) return -errno;
    if (S_ISDIR(st.st_mode)) return -EISDIR;
    if (!S_ISREG(st.st_mode)) return -EINVAL;
    if ((uintmax_t)st.st_size > max) return -EFBIG;
    return read_all(fd, (size_t)st.st_size, max, ret, ret_len);
}

static int write_all(int fd, const char *p, size_t n) {
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return -errno;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

static int random_suffix(char out[17]) {
    uint64_t v;
    int r = random_bytes(&v, sizeof(v));
    if (r < 0) return r;
    snprintf(out, 17, "%016llx", (unsigned long long)v);
    return 0;
}

/* The directory part of path, "." when it has none. */
static char *parent_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

int fs_write_atomic(const char *path, const void *data, size_t n, mode_t mode) {
    char suffix[17];
    size_t len = strlen(path);
    if (len == 0 || path[len - 1] == '/') return -EISDIR;
    int r = random_suffix(suffix);
    if (r < 0) return r;
    _cleanup_free_ char *dir = parent_of(path);
    /* The name is not taken over: with it a long one would not fit. */
    _cleanup_free_ char *temp = dir ? str_printf("%s/.abx-%s.tmp", dir, suffix) : NULL;
    if (!temp) return -ENOMEM;

    _cleanup_close_ int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return -errno;
    r = write_all(fd, data, n);
    if (r == 0 && fsync(fd) < 0) r = -errno;
    if (r == 0 && rename(temp, path) < 0) r = -errno;
    if (r < 0) {
        unlink(temp);
        return r;
    }
    return fs_sync_dir(dir);
}

int fs_mkdir_p(const char *path, mode_t mode) {
    _cleanup_free_ char *part = strdup(path);
    if (!part) return -ENOMEM;
    if (!*part) return -ENOENT;
    for (char *p = part + 1;; p++) {
        char c = *p;
        if (c && (c != '/' || p[-1] == '/')) continue;
        *p = '\0';
        if (mkdir(part, mode) < 0) {
            int r = -errno; /* EEXIST, but also EROFS and EACCES for what is there */
            if (!fs_is_dir(part)) return r == -EEXIST ? -ENOTDIR : r;
        }
        if (!c) return 0;
        *p = c;
    }
}

/* A directory opened for reading and emptying; its owner's missing permissions are added. */
static int open_dir(int at, const char *name, int *ret) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    _cleanup_close_ int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES) {
        /* By descriptor, since chmod by name would follow a link put in its place. */
        char link[64];
        _cleanup_close_ int path = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (path < 0) return -errno;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
        if (chmod(link, 0700) < 0) return -EACCES;
        fd = openat(at, name, flags);
    }
    if (fd < 0) return -errno;
    struct stat st;
    if (fstat(fd, &st) < 0) return -errno;
    if ((st.st_mode & 0700) != 0700 && fchmod(fd, 0700) < 0 && errno != EPERM) return -errno;
    *ret = TAKE_FD(fd);
    return 0;
}

static int remove_dir(int top, int at, const char *name, int depth);

/* Moves a directory to the top of the removal, where a later pass finds it. */
static int move_up(int top, int at, const char *name) {
    char fresh[32] = ".abx-rm-", *suffix = fresh + strlen(fresh);
    int r = random_suffix(suffix);
    if (r < 0) return r;
    if (renameat(at, name, top, fresh) == 0) return 0;
    if (errno != EACCES) return -errno;
    /* A directory that changes its parent must itself be writable, which opening sees to. */
    _cleanup_close_ int fd = -1;
    r = open_dir(at, name, &fd);
    if (r < 0) return r;
    return renameat(at, name, top, fresh) < 0 ? -errno : 0;
}

/* Removes what is in the directory fd, which it takes; 1 when there was anything. */
static int sweep(int top, int fd, int depth) {
    _cleanup_closedir_ DIR *dir = fdopendir(fd);
    if (!dir) {
        int r = -errno;
        safe_close(fd);
        return r;
    }
    int seen = 0, failed = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e) return failed ? failed : errno ? -errno : seen;
        if (streq(e->d_name, ".") || streq(e->d_name, "..")) continue;
        seen = 1;
        int r = 0;
        if (e->d_type == DT_DIR || (unlinkat(dirfd(dir), e->d_name, 0) < 0 && errno != ENOENT)) {
            r = e->d_type == DT_DIR ? -EISDIR : -errno;
            if (r == -EISDIR || r == -EPERM) {
                int d = remove_dir(top, dirfd(dir), e->d_name, depth + 1);
                r = d == -ENOTDIR ? r : d;
            }
        }
        if (r < 0 && !failed) failed = r; /* the rest goes all the same */
    }
}

/* Removes one directory. top is the uppermost one, -1 when this is it. */
static int remove_dir(int top, int at, const char *name, int depth) {
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    if (errno == ENOTDIR) return -ENOTDIR;
    if (depth >= REMOVE_DEPTH) {
        int r = move_up(top, at, name);
        return r == -ENOENT ? 0 : r;
    }
    _cleanup_close_ int fd = -1;
    int r = open_dir(at, name, &fd);
    if (r < 0) return r == -ENOENT ? 0 : r;
    /* The top is swept until nothing new was moved up; the others until they are gone. */
    for (int pass = 0; top < 0 || pass < REMOVE_PASSES; pass++) {
        int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (own < 0) return -errno;
        int seen = sweep(top < 0 ? fd : top, own, depth);
        if (seen < 0) return seen;
        if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return -errno;
        if (top < 0 && seen == 0) return -ENOTEMPTY;
    }
    return -ENOTEMPTY;
}

int fs_remove_tree(const char *path) {
    _cleanup_free_ char *name = strdup(path);
    if (!name) return -ENOMEM;
    /* "link/" would be what the link points to. */
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    if (unlink(name) == 0 || errno == ENOENT) return 0;
    int r = -errno;
    if (r != -EISDIR && r != -EPERM) return r;
    int d = remove_dir(-1, AT_FDCWD, name, 0);
    return d == -ENOTDIR ? r : d;
}

int fs_sync_dir(const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    /* Some file systems have nothing to sync here. */
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS) return -errno;
    return 0;
}

int fs_exchange(const char *a, const char *b) {
    if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0) return 0;
    return errno == EINVAL ? -ENOSYS : -errno;
}

bool fs_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

bool fs_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *path_join(const char *a, const char *b) {
    if (!*a) return strdup(b);
    if (!*b) return strdup(a);
    while (*b == '/')
        b++;
    return str_printf("%s%s%s", a, str_ends(a, "/") ? "" : "/", b);
}

int fs_mkdtemp(const char *parent, const char *prefix, char **ret) {
    for (int i = 0; i < 16; i++) {
        char suffix[17];
        int r = random_suffix(suffix);
        if (r < 0) return r;
        _cleanup_free_ char *path = str_printf("%s/%s%s", parent, prefix, suffix);
        if (!path) return -ENOMEM;
        if (mkdir(path, 0700) == 0) {
            *ret = TAKE_PTR(path);
            return 0;
        }
        if (errno != EEXIST) return -errno;
    }
    return -EEXIST;
}

int fs_find_program(const char *name, const char *path, char **ret) {
    int r = -ENOENT;
    for (const char *end; *name && *path; path = *end ? end + 1 : end) {
        end = strchrnul(path, ':');
        if (*path != '/') continue;
        _cleanup_free_ char *full = str_printf("%.*s/%s", (int)(end - path), path, name);
        if (!full) return -ENOMEM;
        struct stat st;
        if (stat(full, &st) < 0 || !S_ISREG(st.st_mode)) continue;
        if (access(full, X_OK) == 0) {
            *ret = TAKE_PTR(full);
            return 0;
        }
        r = -EACCES;
    }
    return r;
}
