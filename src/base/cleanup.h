/* Cleanup attributes: what a scope owns is released when it ends, on every path. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _unused_ __attribute__((unused))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

/* Moves a pointer out of its variable. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) *take_p_ = &(p);                                                             \
        __typeof__(p) take_v_ = *take_p_;                                                          \
        *take_p_ = NULL;                                                                           \
        take_v_;                                                                                   \
    })
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *take_fd_ = &(fd);                                                                     \
        int take_v_ = *take_fd_;                                                                   \
        *take_fd_ = -1;                                                                            \
        take_v_;                                                                                   \
    })

#define DEFINE_CLEANUP(type, name, free_fn)                                                        \
    static inline _unused_ void name(type *p) {                                                    \
        if (*p) free_fn(*p);                                                                       \
    }

static inline _unused_ void freep(void *p) { free(*(void **)p); }
/* Closes and leaves errno alone; always -1, so that `fd = safe_close(fd)`. */
static inline _unused_ int safe_close(int fd) {
    if (fd >= 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return -1;
}
static inline _unused_ void closep(int *fd) { *fd = safe_close(*fd); }
DEFINE_CLEANUP(DIR *, closedirp, closedir)
DEFINE_CLEANUP(FILE *, fclosep, fclose)

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_closedir_ _cleanup_(closedirp)
#define _cleanup_fclose_ _cleanup_(fclosep)
#define _cleanup_error_ _cleanup_(abx_error_unrefp)
#define _cleanup_value_ _cleanup_(abx_value_unrefp)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

#endif
