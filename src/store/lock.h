/* The lock of the store: one command changes it at a time, also between hosts. */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include "store/store.h"

struct store_lock {
    int fd;
    char *path;
};
#define STORE_LOCK_INIT ((struct store_lock){.fd = -1})

/* Waits at most wait_ms, then E8010. The folders exist already. */
int store_lock_take(struct store_lock *ret, const struct store *s, int wait_ms, abx_error **reterr);
void store_lock_release(struct store_lock *l);
#define _cleanup_store_lock_ _cleanup_(store_lock_release)

#endif
