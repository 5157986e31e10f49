/* Files: whole reads with a limit, atomic writes, trees removed without following links. */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Everything returns 0 or -errno. Paths are absolute or relative to the working directory. */
int fs_read(const char *path, size_t max, char **ret, size_t *ret_len); /* -EFBIG over max; NUL added */
int fs_read_at(int dirfd, const char *name, size_t max, char **ret, size_t *ret_len); /* O_NOFOLLOW, regular only */
/* Temp file beside it, fsync, rename, fsync of the directory. */
int fs_write_atomic(const char *path, const void *data, size_t n, mode_t mode);
int fs_mkdir_p(const char *path, mode_t mode); /* existing is fine; new parts get mode */
int fs_remove_tree(const char *path);          /* missing is fine; never follows a link */
int fs_sync_dir(const char *path);
int fs_exchange(const char *a, const char *b); /* RENAME_EXCHANGE; falls back with -ENOSYS */
bool fs_exists(const char *path);              /* links not followed */
bool fs_is_dir(const char *path);              /* links followed */
/* The program of that name in a PATH. Relative entries are passed over: what is run must not depend on a
 * directory somebody else filled. -ENOENT, or -EACCES when there is one that may not be run. */
int fs_find_program(const char *name, const char *path, char **ret);
char *path_join(const char *a, const char *b); /* NULL when out of memory */
/* A new private directory in parent, name "prefix" + random. */
int fs_mkdtemp(const char *parent, const char *prefix, char **ret);

#endif
