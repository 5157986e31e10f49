/* The hash map: open addressing with linear probing, keyed SipHash-1-3. */
#include "base/map.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

struct map_entry {
    char *key; /* NULL: never used; tombstone: was removed */
    size_t n;
    uint64_t hash;
    void *value;
};

static char tombstone[1];

static bool live(const struct map_entry *e) { return e->key && e->key != tombstone; }

static uint64_t rotl(uint64_t x, int b) { return x << b | x >> (64 - b); }

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

/* SipHash-1-3; both key halves come from the one seed, which is secret enough for a table
 * that lives as long as a process. */
static uint64_t hash_bytes(uint64_t seed, const void *key, size_t n) {
    uint64_t k0 = seed, k1 = rotl(seed, 29) * 0x9e3779b97f4a7c15u;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    const unsigned char *p = key;
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        word = le64toh(word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The entry of key, or NULL. */
static struct map_entry *find(const struct map *m, uint64_t hash, const void *key, size_t n) {
    if (m->cap == 0) return NULL;
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_entry *e = &m->slots[i];
        if (!e->key) return NULL;
        if (e->key == tombstone || e->hash != hash || e->n != n) continue;
        if (n == 0 || memcmp(e->key, key, n) == 0) return e;
    }
}

/* A table of cap slots without the tombstones. */
static int rehash(struct map *m, size_t cap) {
    struct map_entry *slots = calloc(cap, sizeof(*slots));
    if (!slots) return -ENOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        if (!live(&m->slots[i])) continue;
        size_t at = m->slots[i].hash & (cap - 1);
        while (slots[at].key)
            at = (at + 1) & (cap - 1);
        slots[at] = m->slots[i];
    }
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
    m->used = m->len;
    return 0;
}

/* Keeps a quarter of the slots never used, so that every probe ends. */
static int make_room(struct map *m) {
    if (m->cap == 0) {
        if (random_bytes(&m->seed, sizeof(m->seed)) < 0)
            m->seed = (uint64_t)time_mono_us() * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)m;
        return rehash(m, 16);
    }
    if (m->used + 1 <= m->cap - m->cap / 4) return 0;
    if (m->cap > SIZE_MAX / 2 / sizeof(struct map_entry)) return -ENOMEM;
    return rehash(m, m->len * 2 >= m->cap ? m->cap * 2 : m->cap);
}

void map_done(struct map *m) {
    if (!m) return;
    for (size_t i = 0; i < m->cap; i++)
        if (live(&m->slots[i])) free(m->slots[i].key);
    free(m->slots);
    *m = (struct map){0};
}

int map_put(struct map *m, const void *key, size_t n, void *value, void **ret_old) {
    assert(value); /* NULL says "absent" everywhere else */
    int r = make_room(m);
    if (r < 0) return r;
    uint64_t hash = hash_bytes(m->seed, key, n);
    struct map_entry *e = find(m, hash, key, n);
    void *old = NULL;
    if (e) {
        old = e->value;
        e->value = value;
    } else {
        char *copy = malloc(n + 1);
        if (!copy) return -ENOMEM;
        if (n) memcpy(copy, key, n);
        copy[n] = '\0';
        size_t i = hash & (m->cap - 1);
        while (live(&m->slots[i]))
            i = (i + 1) & (m->cap - 1);
        if (!m->slots[i].key) m->used++;
        m->slots[i] = (struct map_entry){copy, n, hash, value};
        m->len++;
    }
    if (ret_old) *ret_old = old;
    return 0;
}

void *map_get(const struct map *m, const void *key, size_t n) {
    if (m->len == 0) return NULL;
    struct map_entry *e = find(m, hash_bytes(m->seed, key, n), key, n);
    return e ? e->value : NULL;
}

void *map_remove(struct map *m, const void *key, size_t n) {
    if (m->len == 0) return NULL;
    struct map_entry *e = find(m, hash_bytes(m->seed, key, n), key, n);
    if (!e) return NULL;
    void *value = e->value;
    free(e->key);
    *e = (struct map_entry){.key = tombstone};
    m->len--;
    /* Nothing is moved, so a walk goes on; tombstones that end a run are not needed. */
    size_t i = (size_t)(e - m->slots);
    if (!m->slots[(i + 1) & (m->cap - 1)].key)
        for (; m->slots[i].key == tombstone; i = (i - 1) & (m->cap - 1)) {
            m->slots[i].key = NULL;
            m->used--;
        }
    return value;
}

void *map_next(const struct map *m, size_t *pos) {
    for (; *pos < m->cap; ++*pos)
        if (live(&m->slots[*pos])) return m->slots[(*pos)++].value;
    return NULL;
}
