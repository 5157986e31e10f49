/* A copy of a plugin's data/ that is kept while a new version is tried, and put back from. */
#ifndef STORE_DATA_H
#define STORE_DATA_H

#include <stdint.h>

/* Copies the directory from to the new directory to. Sockets, pipes and devices are left out.
 * 0, -EFBIG over LIMIT_DATA_COPY bytes or LIMIT_DATA_ENTRIES entries, or -errno. */
int data_copy(const char *from, const char *to);
/* Makes the directory at to equal to the copy, touching only what differs: programs that work in it
 * keep their files. */
int data_restore(const char *copy, const char *to);

#endif
