/* The tree digest of what is on disk: walked without following a link, hashed by two threads. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/tree.h"

/* Below this a second thread costs more than it saves. */
#define THREAD_MIN_FILES 96
/* Consecutive files mostly share a directory, which stays open within a share. */
#define SHARE 16

struct walk {
    bool installed;
    struct tree_entry *list;
    size_t len, cap, dirs;
    struct buf path;
    int root_fd;
    atomic_size_t next, bad; /* bad: index + 1 of an entry that is no regular file */
    atomic_int err;
};

static int add_file(struct walk *w) {
    if (w->len >= LIMIT_TREE_FILES) return -EBADMSG;
    if (w->len == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        struct tree_entry *grown = reallocarray(w->list, cap, sizeof *grown);
        if (!grown) return -ENOMEM;
        w->list = grown;
        w->cap = cap;
    }
    char *path = strndup(w->path.data, w->path.len);
    if (!path) return -ENOMEM;
    w->list[w->len++] = (struct tree_entry){.path = path};
    return 0;
}

/* 1: not part of the digest. */
static int top_level(struct walk *w, const char *name, unsigned type) {
    if (streq(name, "data")) return w->installed && type != DT_DIR ? -EBADMSG : 1;
    if (streq(name, RECEIPT_NAME)) return w->installed && type != DT_REG ? -EBADMSG : 1;
    if (streq(name, ".git")) return w->installed ? -EBADMSG : 1;
    return 0;
}

static unsigned entry_type(int fd, const struct dirent *e) {
    if (e->d_type != DT_UNKNOWN) return e->d_type;
    struct stat st;
    if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) return DT_UNKNOWN;
    return IFTODT(st.st_mode);
}

/* Owns fd. On -EBADMSG w->path names the entry. */
static int walk_level(struct walk *w, int fd, unsigned depth) {
    _cleanup_closedir_ DIR *d = fdopendir(fd);
    if (!d) {
        safe_close(fd);
        return -ENOMEM;
    }
    size_t base = w->path.len;
    struct stat st;
    if (w->installed && fstat(fd, &st) == 0 && (st.st_mode & 022)) return -EPERM;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e) return -errno;
        if (streq(e->d_name, ".") || streq(e->d_name, "..")) continue;
        unsigned type = entry_type(fd, e);
        if (base) buf_char(&w->path, '/');
        if (buf_str(&w->path, e->d_name) < 0) return -ENOMEM;
        int r = depth ? 0 : top_level(w, e->d_name, type);
        if (r < 0) return r;
        if (r == 0 && type == DT_REG) {
            r = add_file(w);
        } else if (r == 0 && type == DT_DIR) {
            if (depth >= LIMIT_TREE_DEPTH || ++w->dirs > LIMIT_TREE_DIRS) return -EBADMSG;
            int sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (sub < 0) return errno == ELOOP || errno == ENOTDIR ? -EBADMSG : -errno;
            r = walk_level(w, sub, depth + 1);
        } else if (r == 0) {
            r = -EBADMSG;
        }
        if (r < 0) return r;
        w->path.len = base;
    }
}

/* Opens the directory part of path below root, link by link refused. */
static int open_dir(int root, const char *path, size_t n) {
    _cleanup_free_ char *copy = strndup(path, n);
    if (!copy) return -ENOMEM;
    _cleanup_close_ int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return -errno;
    char *save = NULL;
    for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) return -errno;
        safe_close(fd);
        fd = next;
    }
    return TAKE_FD(fd);
}

static int hash_fd(int fd, bool installed, struct tree_entry *e, char *chunk, struct sha256 *h) {
    struct stat st;
    if (fstat(fd, &st) < 0) return -errno;
    if (!S_ISREG(st.st_mode)) return -EBADMSG;
    if (installed && (st.st_mode & 022)) return -EPERM;
    e->exec = st.st_mode & S_IXUSR;
    for (uint64_t total = 0;;) {
        ssize_t n = read(fd, chunk, LIMIT_READ_CHUNK);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        if (n == 0) return sha256_final_hex(h, e->sha256);
        total += (uint64_t)n;
        if (total > LIMIT_TREE_TOTAL) return -EBADMSG; /* never installed by us; do not read on */
        int r = sha256_update(h, chunk, (size_t)n);
        if (r < 0) return r;
        /* A regular file reads short only at its end: 2000 small files need no second read each. */
        if ((size_t)n < LIMIT_READ_CHUNK) return sha256_final_hex(h, e->sha256);
    }
}

static int hash_share(struct walk *w, size_t from, size_t to, char *chunk, struct sha256 *h) {
    _cleanup_close_ int dir_fd = -1;
    const char *dir = NULL;
    size_t dir_len = 0;
    for (size_t i = from; i < to; i++) {
        struct tree_entry *e = &w->list[i];
        const char *slash = strrchr(e->path, '/');
        int at = w->root_fd;
        if (slash) {
            size_t n = (size_t)(slash - e->path);
            if (!dir || n != dir_len || memcmp(dir, e->path, n) != 0) {
                dir_fd = safe_close(dir_fd);
                dir_fd = open_dir(w->root_fd, e->path, n);
                if (dir_fd < 0) {
                    atomic_store(&w->bad, i + 1);
                    return -EBADMSG;
                }
                dir = e->path;
                dir_len = n;
            }
            at = dir_fd;
        }
        _cleanup_close_ int fd = openat(at, slash ? slash + 1 : e->path,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r = fd >= 0 ? hash_fd(fd, w->installed, e, chunk, h) : errno == EMFILE || errno == ENFILE ? -errno : -EBADMSG;
        if (r == -EBADMSG || r == -EPERM) atomic_store(&w->bad, i + 1);
        if (r < 0) return r;
    }
    return 0;
}

static void *hash_files(void *user) {
    struct walk *w = user;
    _cleanup_free_ char *chunk = malloc(LIMIT_READ_CHUNK);
    struct sha256 *h = sha256_new();
    int r = chunk && h ? 0 : -ENOMEM;
    while (r >= 0 && !atomic_load(&w->err)) {
        size_t from = atomic_fetch_add(&w->next, SHARE);
        if (from >= w->len) break;
        r = hash_share(w, from, MIN_OF(from + SHARE, w->len), chunk, h);
    }
    if (r < 0) atomic_store(&w->err, r);
    sha256_free(h);
    return NULL;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

static int hash_all(struct walk *w) {
    if (w->len) qsort(w->list, w->len, sizeof *w->list, compare_paths);
    bool second = false;
    pthread_t thread;
    if (w->len >= THREAD_MIN_FILES) {
        sigset_t all, old; /* the host's signals stay with the host's threads */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &old);
        second = pthread_create(&thread, NULL, hash_files, w) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    hash_files(w);
    if (second) pthread_join(thread, NULL);
    return atomic_load(&w->err);
}

int digest_dir(const char *dir, bool installed, char out[SHA256_HEX], char **ret_bad) {
    struct walk w = {.installed = installed, .path = BUF_INIT(0)};
    _cleanup_close_ int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return -errno;
    w.root_fd = root;
    int again = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = again < 0 ? -errno : walk_level(&w, again, 0);
    const char *bad = r == -EBADMSG || r == -EPERM ? w.path.data : NULL;
    size_t bad_len = w.path.len;
    if (r >= 0) {
        r = hash_all(&w);
        size_t index = atomic_load(&w.bad);
        if ((r == -EBADMSG || r == -EPERM) && index) {
            bad = w.list[index - 1].path;
            bad_len = strlen(bad);
        }
    }
    if (r >= 0) r = tree_digest_entries(w.list, w.len, out);
    if (r == -EBADMSG || r == -EPERM) {
        *ret_bad = tree_show_path(bad ? bad : "", bad ? bad_len : 0);
        if (!*ret_bad) r = -ENOMEM;
    }
    for (size_t i = 0; i < w.len; i++) free(w.list[i].path);
    free(w.list);
    buf_done(&w.path);
    return r;
}

int tree_digest_dir(const char *dir, char out[65], abx_error **reterr) {
    _cleanup_free_ char *bad = NULL;
    int r = digest_dir(dir, false, out, &bad);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r == -EBADMSG)
        return err_set(reterr, ABX_E_INTEGRITY, NULL, "Unsafe entry '%s' in plugin directory '%s'.", bad, dir);
    if (r < 0) return err_errno(reterr, ABX_E_INTEGRITY, r, "Cannot read the plugin directory '%s'", dir);
    return 0;
}
