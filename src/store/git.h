/* A git source: fetched into a bare repository in the staging folder, never checked out. */
#ifndef STORE_GIT_H
#define STORE_GIT_H

#include "store/source.h"
#include "store/tree.h"

#define GIT_OID_MAX 65 /* hex of SHA-1 or SHA-256, with NUL */

struct git;
/* stage: a private directory; "git" and "git-home" are made in it. */
int git_new(struct git **ret, const struct store *s, const char *stage, const struct source *source, bool allow_insecure,
            struct store_cancel *cancel, store_progress_fn progress, void *user, abx_error **reterr);
struct git *git_free(struct git *g);
static inline _unused_ void git_freep(struct git **g) { git_free(*g); }
#define _cleanup_git_ _cleanup_(git_freep)

int git_fetch(struct git *g, char ret_commit[GIT_OID_MAX], abx_error **reterr);
/* Writes the files of the commit's subdirectory into t. */
int git_export(struct git *g, const char *commit, struct tree *t, abx_error **reterr);

#endif
