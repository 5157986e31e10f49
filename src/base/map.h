/* A hash map from byte strings to pointers, seeded per map against chosen collisions. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_entry;
struct map {
    struct map_entry *slots;
    size_t cap, len, used;
    uint64_t seed;
};

void map_done(struct map *m); /* keys are copies and freed; values are the caller's */
/* Replaces; the old value comes back in *ret_old when given. 0 or -ENOMEM. */
int map_put(struct map *m, const void *key, size_t n, void *value, void **ret_old);
void *map_get(const struct map *m, const void *key, size_t n);
void *map_remove(struct map *m, const void *key, size_t n); /* the value, or NULL */
/* Walks in no order: *pos starts at 0; the value, or NULL at the end. Removing the
 * entry just returned is allowed. */
void *map_next(const struct map *m, size_t *pos);

#endif
