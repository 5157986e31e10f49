/* The files of src/api/scaffold/, as tools/embed.py puts them into the library. */
#ifndef API_SCAFFOLD_H
#define API_SCAFFOLD_H

#include <stddef.h>

struct embedded {
    const char *name; /* NULL: the end */
    const char *data;
    size_t size;
};
extern const struct embedded scaffold_files[];

#endif
