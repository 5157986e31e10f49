/* A local directory as a source: walked in the order of names, read through one descriptor a file. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/tree.h"

struct reader {
    struct tree *tree;
    struct store_cancel *cancel;
    struct buf path; /* of the entry at hand */
    struct buf content;
    size_t dirs;
    char *modules; /* .gitmodules at the top */
};

static int unsafe(struct reader *rd, const char *why, const char *hint, abx_error **reterr) {
    return tree_unsafe(rd->path.data, rd->path.len, why, hint, reterr);
}

static int cannot_read(struct reader *rd, int r, abx_error **reterr) {
    _cleanup_free_ char *shown = tree_show_path(rd->path.data, rd->path.len);
    return err_errno(reterr, ABX_E_INSTALL, r, "Cannot read '%s' of the provider source", shown ? shown : "");
}

static int read_all(struct reader *rd, int fd, size_t index, abx_error **reterr) {
    buf_reset(&rd->content);
    for (;;) {
        char *room = buf_reserve(&rd->content, LIMIT_READ_CHUNK);
        if (!room) return err_nomem(reterr);
        ssize_t n = read(fd, room, LIMIT_READ_CHUNK);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot_read(rd, -errno, reterr);
        if (n == 0) return 0;
        buf_commit(&rd->content, (size_t)n);
        /* The file may grow while it is read. */
        int r = tree_fits(rd->tree, index, rd->content.len, reterr);
        if (r < 0) return r;
    }
}

/* What is checked is what is read: the type, the links and the content are of one descriptor. */
static int read_file(struct reader *rd, int at, const char *name, abx_error **reterr) {
    _cleanup_close_ int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENXIO)) return unsafe(rd, NULL, NULL, reterr);
    if (fd < 0) return cannot_read(rd, -errno, reterr);
    struct stat st;
    if (fstat(fd, &st) < 0) return cannot_read(rd, -errno, reterr);
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1) return unsafe(rd, NULL, NULL, reterr);
    size_t index;
    int r = tree_admit(rd->tree, rd->path.data, rd->path.len, &index, reterr);
    if (r < 0) return r;
    r = tree_fits(rd->tree, index, (uint64_t)st.st_size, reterr);
    if (r < 0) return r;
    r = read_all(rd, fd, index, reterr);
    if (r < 0) return r;
    if (streq0(buf_cstr(&rd->path), ".gitmodules") && !rd->modules) {
        rd->modules = strndup(rd->content.len ? rd->content.data : "", rd->content.len);
        if (!rd->modules) return err_nomem(reterr);
    }
    return tree_write(rd->tree, index, st.st_mode & S_IXUSR, rd->content.len ? rd->content.data : "",
                      rd->content.len, reterr);
}

static int read_level(struct reader *rd, int fd, unsigned depth, abx_error **reterr);

static int read_entry(struct reader *rd, int at, const char *name, unsigned depth, abx_error **reterr) {
    if (rd->cancel && atomic_load(&rd->cancel->stop))
        return err_set(reterr, -ECANCELED, NULL, "Cancelled.");
    if (tree_left_out(rd->path.data, rd->path.len)) return 0;
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return cannot_read(rd, -errno, reterr);
    if (S_ISREG(st.st_mode)) return read_file(rd, at, name, reterr);
    if (!S_ISDIR(st.st_mode)) return unsafe(rd, NULL, NULL, reterr);
    if (depth >= LIMIT_TREE_DEPTH || ++rd->dirs > LIMIT_TREE_DIRS)
        return err_set(reterr, ABX_E_INSTALL, NULL, "Provider source exceeds the size/file-count limits.");
    _cleanup_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) return unsafe(rd, NULL, NULL, reterr);
    if (fd < 0) return cannot_read(rd, -errno, reterr);
    return read_level(rd, fd, depth + 1, reterr);
}

static int list_names(int fd, char ***ret) {
    _cleanup_strv_ char **names = NULL;
    int again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (again < 0) return -errno;
    _cleanup_closedir_ DIR *d = fdopendir(again);
    if (!d) {
        safe_close(again);
        return -ENOMEM;
    }
    size_t n = 0, cap = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e) break;
        if (streq(e->d_name, ".") || streq(e->d_name, "..")) continue;
        if (n + 2 > cap) {
            cap = cap ? cap * 2 : 32;
            char **grown = reallocarray(names, cap, sizeof *grown);
            if (!grown) return -ENOMEM;
            names = grown;
        }
        names[n] = strdup(e->d_name);
        names[n + 1] = NULL;
        if (!names[n]) return -ENOMEM;
        if (++n > LIMIT_TREE_FILES + LIMIT_TREE_DIRS) return -E2BIG;
    }
    if (errno) return -errno;
    if (names) strv_sort(names);
    *ret = TAKE_PTR(names);
    return 0;
}

static int read_level(struct reader *rd, int fd, unsigned depth, abx_error **reterr) {
    _cleanup_strv_ char **names = NULL;
    int r = list_names(fd, &names);
    if (r == -E2BIG)
        return err_set(reterr, ABX_E_INSTALL, NULL, "Provider source exceeds the size/file-count limits.");
    if (r < 0) return cannot_read(rd, r, reterr);
    size_t base = rd->path.len;
    for (size_t i = 0; names && names[i]; i++) {
        if (base) buf_char(&rd->path, '/');
        buf_str(&rd->path, names[i]);
        if (rd->path.err) return err_nomem(reterr);
        r = read_entry(rd, fd, names[i], depth, reterr);
        if (r < 0) return r;
        rd->path.len = base;
    }
    return 0;
}

static bool is_empty_dir(int root, const char *path) {
    int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    _cleanup_strv_ char **names = NULL;
    bool empty = list_names(fd, &names) == 0 && !names;
    safe_close(fd);
    return empty;
}

/* A clone without its submodules has empty directories in their place: a plugin without its code. */
static int check_modules(struct reader *rd, int root, abx_error **reterr) {
    char *save = NULL;
    for (char *l = strtok_r(rd->modules, "\r\n", &save); l; l = strtok_r(NULL, "\r\n", &save)) {
        l += strspn(l, " \t");
        if (!str_starts(l, "path")) continue;
        l += 4 + strspn(l + 4, " \t");
        if (*l != '=') continue;
        l += 1 + strspn(l + 1, " \t");
        size_t n = strlen(l);
        while (n && (l[n - 1] == ' ' || l[n - 1] == '\t')) l[--n] = '\0';
        if (tree_path_valid(l, n) && is_empty_dir(root, l))
            return tree_unsafe(l, n, "submodule that is not checked out",
                               "Run 'git submodule update --init' in the source, then install it again.", reterr);
    }
    return 0;
}

int tree_read_dir(struct tree *t, const char *dir, struct store_cancel *cancel, abx_error **reterr) {
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(reterr, ABX_E_INSTALL, -errno, "Cannot fetch provider source: cannot open '%s'", dir);
    struct reader rd = {.tree = t, .cancel = cancel, .path = BUF_INIT(0), .content = BUF_INIT(0)};
    int r = read_level(&rd, fd, 0, reterr);
    if (r == 0 && rd.modules) r = check_modules(&rd, fd, reterr);
    free(rd.modules);
    buf_done(&rd.path);
    buf_done(&rd.content);
    return r;
}
