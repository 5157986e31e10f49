/* The folders of the store (store.md), and the private one a plan works in. */
#ifndef STORE_LAYOUT_H
#define STORE_LAYOUT_H

#include "store/store.h"

/* <home>/providers/<name>; NULL when out of memory. */
char *layout_path(const struct store *s, const char *name);
#define LAYOUT_STAGING ".staging"
#define LAYOUT_LOCK ".lock"
#define LAYOUT_JOURNAL ".journal"

/* Makes home, providers and .staging, private. E8010 when that cannot be. */
int layout_make(const struct store *s, abx_error **reterr);
bool layout_is_dir(const char *path); /* a directory itself, not a link to one */
/* Inode of a directory itself, 0 when there is none. */
uint64_t layout_inode(const char *path);

/* A folder in .staging. Its descriptor holds a flock for as long as somebody works in it. */
struct stage {
    char *name, *path;
    int fd;
};
#define STAGE_INIT ((struct stage){.fd = -1})
int stage_new(struct stage *ret, const struct store *s, abx_error **reterr);
void stage_done(struct stage *st); /* and removes it */
#define _cleanup_stage_ _cleanup_(stage_done)
/* With the lock held: removes what dead commands left in .staging and beside it; keep: one that is not looked at, or NULL. */
void layout_sweep(const struct store *s, const char *keep);

#endif
