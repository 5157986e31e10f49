/* A plugin's files on their way from a source into a directory, and their digest (store.md). */
#ifndef STORE_TREE_H
#define STORE_TREE_H

#include <abx/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/codec.h"
#include "store/store.h"

struct tree_entry {
    char *path; /* relative, POSIX */
    bool exec;
    char sha256[SHA256_HEX];
};
struct tree;

/* dir: an empty directory the files are written into. */
int tree_new(struct tree **ret, const char *dir, abx_error **reterr);
struct tree *tree_free(struct tree *t);
static inline _unused_ void tree_freep(struct tree **t) { tree_free(*t); }
#define _cleanup_tree_ _cleanup_(tree_freep)

/* True for what neither is installed nor hashed: .git and the receipt, at the top. */
bool tree_left_out(const char *path, size_t n);
/* Name rules, collisions and the number of files; the entry's index. */
int tree_admit(struct tree *t, const char *path, size_t n, size_t *ret_index, abx_error **reterr);
/* The size rules, before anything of the file is read. */
int tree_fits(struct tree *t, size_t index, uint64_t size, abx_error **reterr);
/* Hashes and writes one admitted file. */
int tree_write(struct tree *t, size_t index, bool exec, const void *data, size_t n, abx_error **reterr);
const char *tree_path(const struct tree *t, size_t index);
int tree_digest(struct tree *t, char out[SHA256_HEX], abx_error **reterr);
/* Everything written so far is on the disk. */
int tree_sync(struct tree *t, abx_error **reterr);

/* E8010 "Unsafe entry '...' in provider source (why)." with control and foreign bytes escaped. */
int tree_unsafe(const char *path, size_t n, const char *why, const char *hint, abx_error **reterr);
/* Whether a relative path follows the name rules; also used for --subdir. */
bool tree_path_valid(const char *path, size_t n);
char *tree_show_path(const char *path, size_t n);

/* Sorts the entries by path. */
int tree_digest_entries(struct tree_entry *e, size_t n, char out[SHA256_HEX]);

/* Copies a local directory, each file through one descriptor. */
int tree_read_dir(struct tree *t, const char *dir, struct store_cancel *cancel, abx_error **reterr);

/* The digest of what is on disk. installed: also .git is refused, and data must be a directory.
 * -EBADMSG with the entry (free()) when one is no regular file or there are too many. */
int digest_dir(const char *dir, bool installed, char out[SHA256_HEX], char **ret_bad);

#endif
