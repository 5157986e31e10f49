/* The rules of a plugin tree: names, limits, collisions; each file written as it is hashed. */
#include "store/tree.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/casefold.h"

#define LFS_HEAD "version https://git-lfs.github.com/spec/v1\n"
#define LFS_POINTER_MAX 1024
/* Up to here each file is synced by itself, which leaves other writers of the disk alone. */
#define SYNC_EACH_MAX 64

struct tree {
    char *dir;
    int root_fd;
    struct tree_entry *entries;
    size_t len, cap;
    uint64_t total;
    struct map files;   /* folded path -> entry's path  */
    struct map parents; /* folded path of directories   */
    char *last_dir;     /* the directory of dir_fd      */
    int dir_fd;
    struct sha256 *hash;
};

static const char in_map[1]; /* any non-NULL value */

int tree_new(struct tree **ret, const char *dir, abx_error **reterr) {
    _cleanup_tree_ struct tree *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(reterr);
    t->dir_fd = -1;
    t->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->root_fd < 0)
        return err_errno(reterr, ABX_E_INSTALL, -errno, "Cannot open the staging folder '%s'", dir);
    t->dir = strdup(dir);
    t->hash = sha256_new();
    if (!t->dir || !t->hash) return err_nomem(reterr);
    *ret = TAKE_PTR(t);
    return 0;
}

struct tree *tree_free(struct tree *t) {
    if (!t) return NULL;
    for (size_t i = 0; i < t->len; i++) free(t->entries[i].path);
    free(t->entries);
    map_done(&t->files);
    map_done(&t->parents);
    free(t->last_dir);
    free(t->dir);
    sha256_free(t->hash);
    safe_close(t->dir_fd);
    safe_close(t->root_fd);
    free(t);
    return NULL;
}

char *tree_show_path(const char *path, size_t n) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    size_t i = 0;
    while (i < n && b.len < LIMIT_STDERR_QUOTE) {
        uint32_t cp;
        size_t len = utf8_decode(path + i, n - i, &cp);
        if (!len || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
            buf_printf(&b, "\\x%02x", (unsigned char)path[i]);
            i++;
            continue;
        }
        buf_append(&b, path + i, len);
        i += len;
    }
    if (i < n) buf_str(&b, "...");
    return buf_take(&b);
}

int tree_unsafe(const char *path, size_t n, const char *why, const char *hint, abx_error **reterr) {
    _cleanup_free_ char *shown = tree_show_path(path, n);
    if (!shown) return err_nomem(reterr);
    return err_set(reterr, ABX_E_INSTALL, hint, "Unsafe entry '%s' in provider source%s%s%s.", shown,
                   why ? " (" : "", why ? why : "", why ? ")" : "");
}

bool tree_left_out(const char *path, size_t n) {
    const char *slash = memchr(path, '/', n);
    size_t top = slash ? (size_t)(slash - path) : n;
    return (top == 4 && !memcmp(path, ".git", 4)) ||
           (top == strlen(RECEIPT_NAME) && !memcmp(path, RECEIPT_NAME, top));
}

/* Windows opens a device for these, whatever follows the first dot. */
static bool device_name(const char *part, size_t n) {
    const char *dot = memchr(part, '.', n);
    size_t stem = dot ? (size_t)(dot - part) : n;
    while (stem && part[stem - 1] == ' ') stem--;
    if (stem == 3)
        return !strncasecmp(part, "con", 3) || !strncasecmp(part, "prn", 3) || !strncasecmp(part, "aux", 3) ||
               !strncasecmp(part, "nul", 3);
    return stem == 4 && (!strncasecmp(part, "com", 3) || !strncasecmp(part, "lpt", 3)) && part[3] >= '1' &&
           part[3] <= '9';
}

static bool part_valid(const char *part, size_t n) {
    if (n == 0 || part[n - 1] == '.' || part[n - 1] == ' ') return false; /* also "." and ".." */
    return !device_name(part, n);
}

bool tree_path_valid(const char *path, size_t n) {
    if (n == 0 || memchr(path, 0, n) || memchr(path, '\\', n) || !utf8_valid(path, n)) return false;
    if (n >= 2 && path[1] == ':' && ((path[0] | 32) >= 'a' && (path[0] | 32) <= 'z')) return false;
    size_t depth = 0;
    for (const char *p = path, *end = path + n;; depth++) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        if (!part_valid(p, (size_t)((slash ? slash : end) - p)) || depth >= LIMIT_TREE_DEPTH) return false;
        if (!slash) return true;
        p = slash + 1;
    }
}

/* Folds the path and notes it, and every directory above it. A file may be neither the same
 * as another nor as a directory; two directories may differ by case alone. */
static int note_folded(struct tree *t, char *path, abx_error **reterr) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    size_t n = strlen(path);
    int r = casefold(&b, path, n);
    if (r < 0) return r == -ENOMEM ? err_nomem(reterr) : tree_unsafe(path, n, NULL, NULL, reterr);
    bool taken = map_get(&t->files, b.data, b.len) || map_get(&t->parents, b.data, b.len);
    for (size_t i = 0; i < b.len && !taken; i++)
        if (b.data[i] == '/') taken = map_get(&t->files, b.data, i);
    if (taken) return tree_unsafe(path, n, "case collision", NULL, reterr);
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i] == '/' && !map_get(&t->parents, b.data, i) &&
            map_put(&t->parents, b.data, i, (void *)in_map, NULL) < 0)
            return err_nomem(reterr);
    if (map_put(&t->files, b.data, b.len, path, NULL) < 0) return err_nomem(reterr);
    return 0;
}

static int too_much(abx_error **reterr) {
    return err_set(reterr, ABX_E_INSTALL, NULL, "Provider source exceeds the size/file-count limits.");
}

int tree_admit(struct tree *t, const char *path, size_t n, size_t *ret_index, abx_error **reterr) {
    if (!tree_path_valid(path, n)) return tree_unsafe(path, n, NULL, NULL, reterr);
    if (n >= 4 && !memcmp(path, "data", 4) && (n == 4 || path[4] == '/'))
        return err_set(reterr, ABX_E_INSTALL, NULL,
                       "The top-level 'data/' directory is reserved for plugin state.");
    if (t->len >= LIMIT_TREE_FILES) return too_much(reterr);
    if (t->len == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 32;
        struct tree_entry *grown = reallocarray(t->entries, cap, sizeof *grown);
        if (!grown) return err_nomem(reterr);
        t->entries = grown;
        t->cap = cap;
    }
    _cleanup_free_ char *copy = strndup(path, n);
    if (!copy) return err_nomem(reterr);
    int r = note_folded(t, copy, reterr);
    if (r < 0) return r;
    t->entries[t->len] = (struct tree_entry){.path = TAKE_PTR(copy)};
    *ret_index = t->len++;
    return 0;
}

int tree_fits(struct tree *t, size_t index, uint64_t size, abx_error **reterr) {
    const char *path = t->entries[index].path;
    if (size > LIMIT_TREE_FILE) return tree_unsafe(path, strlen(path), "file too large", NULL, reterr);
    if (t->total + size > LIMIT_TREE_TOTAL) return too_much(reterr);
    return 0;
}

const char *tree_path(const struct tree *t, size_t index) { return t->entries[index].path; }

/* The directory of a file, made when missing; the last one stays open, files come in order. */
static int open_parent(struct tree *t, const char *path, int *ret) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        *ret = t->root_fd;
        return 0;
    }
    size_t n = (size_t)(slash - path);
    if (t->last_dir && strlen(t->last_dir) == n && !memcmp(t->last_dir, path, n)) {
        *ret = t->dir_fd;
        return 0;
    }
    _cleanup_free_ char *dir = strndup(path, n);
    _cleanup_free_ char *kept = strndup(path, n);
    if (!dir || !kept) return -ENOMEM;
    _cleanup_close_ int fd = fcntl(t->root_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return -errno;
    char *save = NULL;
    for (char *part = strtok_r(dir, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        bool made = mkdirat(fd, part, 0700) == 0;
        if (!made && errno != EEXIST) return -errno;
        int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) return -errno;
        safe_close(fd);
        fd = next;
        if (made && fchmod(fd, 0700) < 0) return -errno;
    }
    free(t->last_dir);
    t->last_dir = TAKE_PTR(kept);
    safe_close(t->dir_fd);
    *ret = t->dir_fd = TAKE_FD(fd);
    return 0;
}

static int write_file(struct tree *t, const char *path, bool exec, const char *data, size_t n) {
    int dir = -1;
    int r = open_parent(t, path, &dir);
    if (r < 0) return r;
    const char *slash = strrchr(path, '/');
    _cleanup_close_ int fd =
        openat(dir, slash ? slash + 1 : path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    while (n) {
        ssize_t k = write(fd, data, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -errno;
        data += k;
        n -= (size_t)k;
    }
    /* The umask of the host program must not decide what a plugin may read. */
    return fchmod(fd, exec ? 0700 : 0600) < 0 ? -errno : 0;
}

int tree_write(struct tree *t, size_t index, bool exec, const void *data, size_t n, abx_error **reterr) {
    struct tree_entry *e = &t->entries[index];
    int r = tree_fits(t, index, n, reterr);
    if (r < 0) return r;
    if (n >= strlen(LFS_HEAD) && n <= LFS_POINTER_MAX && !memcmp(data, LFS_HEAD, strlen(LFS_HEAD)))
        return tree_unsafe(e->path, strlen(e->path), "Git LFS pointer",
                           "The file's content is not in the source: install from a directory that holds "
                           "the real files (clone it, run 'git lfs pull').",
                           reterr);
    r = sha256_update(t->hash, data, n);
    if (r >= 0) r = sha256_final_hex(t->hash, e->sha256);
    if (r < 0) return err_nomem(reterr);
    r = write_file(t, e->path, exec, data, n);
    if (r < 0) {
        _cleanup_free_ char *shown = tree_show_path(e->path, strlen(e->path));
        return err_errno(reterr, ABX_E_INSTALL, r, "Cannot write '%s' of the provider", shown ? shown : "");
    }
    e->exec = exec;
    t->total += n;
    return 0;
}

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

int tree_digest_entries(struct tree_entry *e, size_t n, char out[SHA256_HEX]) {
    if (n) qsort(e, n, sizeof *e, compare_entries);
    struct sha256 *h = sha256_new();
    if (!h) return -ENOMEM;
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = sha256_update(h, e[i].path, strlen(e[i].path) + 1);
        if (r >= 0) r = sha256_update(h, e[i].exec ? "x" : "-", 2);
        if (r >= 0) r = sha256_update(h, e[i].sha256, strlen(e[i].sha256));
        if (r >= 0) r = sha256_update(h, "\n", 1);
    }
    if (r >= 0) r = sha256_final_hex(h, out);
    sha256_free(h);
    return r < 0 ? r : 0;
}

int tree_digest(struct tree *t, char out[SHA256_HEX], abx_error **reterr) {
    return tree_digest_entries(t->entries, t->len, out) < 0 ? err_nomem(reterr) : 0;
}

static int sync_dirs(int at, const char *name) {
    _cleanup_close_ int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -errno;
    struct stat st;
    if (fstat(fd, &st) < 0) return -errno;
    if (S_ISDIR(st.st_mode)) {
        int again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (again < 0) return -errno;
        _cleanup_closedir_ DIR *d = fdopendir(again);
        if (!d) {
            safe_close(again);
            return -ENOMEM;
        }
        for (struct dirent *e; (e = readdir(d));) {
            if (streq(e->d_name, ".") || streq(e->d_name, "..")) continue;
            int r = sync_dirs(fd, e->d_name);
            if (r < 0) return r;
        }
    }
    return fsync(fd) < 0 ? -errno : 0;
}

int tree_sync(struct tree *t, abx_error **reterr) {
    int r = t->len <= SYNC_EACH_MAX ? sync_dirs(t->root_fd, ".") : syncfs(t->root_fd) < 0 ? -errno : 0;
    return r < 0 ? err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the provider files") : 0;
}
