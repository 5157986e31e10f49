/* Makes the folders of the store and sweeps what dead commands left. */
#include "store/layout.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"

/* Ours alone are swept: another host of the same store may have folders there too. */
#define STAGE_PREFIX "abx-"
#define STAGE_TRIES 8

char *layout_path(const struct store *s, const char *name) {
    return str_printf("%s/providers%s%s", s->home, name ? "/" : "", name ? name : "");
}

static int make_private(const char *path) {
    if (mkdir(path, 0700) == 0) return chmod(path, 0700) < 0 ? -errno : 0;
    int r = -errno;
    if (fs_is_dir(path)) return 0;
    return r == -EEXIST ? -ENOTDIR : r;
}

int layout_make(const struct store *s, abx_error **reterr) {
    _cleanup_free_ char *providers = layout_path(s, NULL);
    _cleanup_free_ char *staging = layout_path(s, LAYOUT_STAGING);
    if (!providers || !staging) return err_nomem(reterr);
    int r = 0;
    if (!fs_is_dir(s->home)) {
        r = fs_mkdir_p(s->home, 0700);
        if (r == 0 && chmod(s->home, 0700) < 0) r = -errno;
    }
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot make the folder '%s'", s->home);
    r = make_private(providers);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot make the folder '%s'", providers);
    r = make_private(staging);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot make the folder '%s'", staging);
    return 0;
}

bool layout_is_dir(const char *path) { return layout_inode(path) != 0; }

uint64_t layout_inode(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? (uint64_t)st.st_ino : 0;
}

/* 1: the folder was swept away by another command before it was held. */
static int hold(struct stage *st) {
    st->fd = open(st->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (st->fd < 0) return errno == ENOENT ? 1 : -errno;
    if (flock(st->fd, LOCK_EX | LOCK_NB) < 0) return errno == EWOULDBLOCK ? 1 : -errno;
    struct stat now, held;
    if (fstat(st->fd, &held) < 0) return -errno;
    if (lstat(st->path, &now) < 0 || now.st_ino != held.st_ino) return 1;
    return fchmod(st->fd, 0700) < 0 ? -errno : 0;
}

int stage_new(struct stage *ret, const struct store *s, abx_error **reterr) {
    int r = layout_make(s, reterr);
    if (r < 0) return r;
    _cleanup_free_ char *staging = layout_path(s, LAYOUT_STAGING);
    if (!staging) return err_nomem(reterr);
    for (int i = 0; i < STAGE_TRIES; i++) {
        _cleanup_stage_ struct stage st = STAGE_INIT;
        r = fs_mkdtemp(staging, STAGE_PREFIX, &st.path);
        if (r == 0) r = hold(&st);
        if (r < 0) break;
        if (r == 1) continue;
        st.name = strdup(strrchr(st.path, '/') + 1);
        if (!st.name) return err_nomem(reterr);
        *ret = st;
        st = STAGE_INIT;
        return 0;
    }
    return err_errno(reterr, ABX_E_INSTALL, r < 0 ? r : -EBUSY, "Cannot make a folder in '%s'", staging);
}

void stage_done(struct stage *st) {
    if (st->path) fs_remove_tree(st->path);
    st->fd = safe_close(st->fd);
    free(st->name);
    free(st->path);
    *st = STAGE_INIT;
}

/* Atomic writes of the journal that were cut off. */
static void sweep_temps(const struct store *s) {
    _cleanup_free_ char *dir = layout_path(s, NULL);
    _cleanup_closedir_ DIR *d = dir ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (str_starts(e->d_name, ".abx-") && str_ends(e->d_name, ".tmp")) unlinkat(dirfd(d), e->d_name, 0);
}

void layout_sweep(const struct store *s, const char *keep) {
    _cleanup_free_ char *staging = layout_path(s, LAYOUT_STAGING);
    _cleanup_closedir_ DIR *d = staging ? opendir(staging) : NULL;
    if (!d) return;
    sweep_temps(s);
    for (struct dirent *e; (e = readdir(d));) {
        if (!str_starts(e->d_name, STAGE_PREFIX) || (keep && streq(e->d_name, keep))) continue;
        _cleanup_close_ int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) continue;
        _cleanup_free_ char *path = path_join(staging, e->d_name);
        if (path) fs_remove_tree(path);
    }
}
