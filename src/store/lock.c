/* The lock file, as the other hosts of this store take it: made exclusively, with the holder's pid,
 * and removed at the end. On top of it we hold a flock, which ends with its holder. */
#include "store/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"
#include "base/util.h"
#include "store/layout.h"

/* After this the other hosts take a lock for abandoned. */
#define STALE_S 300
#define POLL_MS 50

static void pause_ms(int ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static bool still_there(int fd, const char *path) {
    struct stat held, now;
    return fstat(fd, &held) == 0 && lstat(path, &now) == 0 && held.st_ino == now.st_ino && held.st_dev == now.st_dev;
}

/* The leading zero tells our own locks from those without a flock; as a number it is the same. */
static int write_pid(int fd) {
    char text[32];
    int n = snprintf(text, sizeof text, "0%d", (int)getpid());
    /* In this order it is never empty, which would say nothing about its holder. */
    ssize_t k = pwrite(fd, text, (size_t)n, 0);
    if (k != n) return k < 0 ? -errno : -EIO;
    if (ftruncate(fd, n) < 0) return -errno;
    return futimens(fd, NULL) < 0 ? -errno : 0;
}

/* Asked while we hold the flock: nobody of our kind lives behind this file. */
static bool abandoned(int fd) {
    char text[32] = {0};
    struct stat st;
    if (fstat(fd, &st) < 0) return false;
    if (time(NULL) - st.st_mtime > STALE_S) return true;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ')) text[--n] = '\0';
    long long pid;
    if (n <= 0 || strspn(text, "0123456789") != (size_t)n || str_to_i64(*text == '0' ? text + 1 : text, &pid) < 0)
        return false; /* being made, or not understood: its age decides */
    if (*text == '0') return true;
    return pid > 0 && pid <= INT32_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* The file appears whole, held and with its number: a death in the middle blocks nobody.
 * 1: somebody was faster. */
static int make(const char *path, int *ret) {
    unsigned char id[8];
    int r = random_bytes(id, sizeof id);
    if (r < 0) return r;
    uint64_t number;
    memcpy(&number, id, sizeof number);
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *temp = str_printf("%.*s/.abx-%016llx.tmp", (int)(slash - path), path, (unsigned long long)number);
    if (!temp) return -ENOMEM;
    _cleanup_close_ int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) r = -errno;
    if (r == 0) r = write_pid(fd);
    /* Like making it exclusively under its own name. */
    if (r == 0 && renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) < 0) r = -errno;
    if (r == -EINVAL || r == -ENOSYS) r = link(temp, path) < 0 ? -errno : 0;
    unlink(temp);
    if (r < 0) return r == -EEXIST || r == -ENOENT ? 1 : r;
    *ret = TAKE_FD(fd);
    return 0;
}

/* 1: held by somebody. */
static int try_take(const char *path, int *ret) {
    _cleanup_close_ int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? make(path, ret) : -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) return errno == EWOULDBLOCK ? 1 : -errno;
    if (!still_there(fd, path) || !abandoned(fd)) return 1;
    int r = write_pid(fd);
    if (r < 0) return r;
    if (!still_there(fd, path)) return 1;
    *ret = TAKE_FD(fd);
    return 0;
}

int store_lock_take(struct store_lock *ret, const struct store *s, int wait_ms, abx_error **reterr) {
    _cleanup_free_ char *path = layout_path(s, LAYOUT_LOCK);
    if (!path) return err_nomem(reterr);
    int64_t end = time_mono_ms() + wait_ms;
    for (;;) {
        int r = try_take(path, &ret->fd);
        if (r == 0) {
            ret->path = TAKE_PTR(path);
            return 0;
        }
        if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot take the lock '%s'", path);
        int64_t left = end - time_mono_ms();
        if (left <= 0) break;
        pause_ms((int)MIN_OF(left, (int64_t)POLL_MS));
    }
    return err_set(reterr, ABX_E_INSTALL, "Try again when it has ended.",
                   "Another provider install/update is in progress.");
}

void store_lock_release(struct store_lock *l) {
    if (l->fd >= 0 && l->path && still_there(l->fd, l->path)) unlink(l->path);
    l->fd = safe_close(l->fd);
    free(l->path);
    l->path = NULL;
}
