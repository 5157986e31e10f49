/* The moves of a swap. The old and the new directory are told apart by their inodes, so that a
 * crash between any two of them can be undone. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"
#include "store/data.h"
#include "store/journal.h"

struct places {
    char *id, *stage, *tree, *spare, *backup, *providers;
};

static void places_done(struct places *p) {
    free(p->id);
    free(p->stage);
    free(p->tree);
    free(p->spare);
    free(p->backup);
    free(p->providers);
}

static int places_get(struct places *p, const struct store *s, const struct journal *j) {
    p->providers = layout_path(s, NULL);
    p->id = layout_path(s, j->id);
    p->stage = str_printf("%s/providers/" LAYOUT_STAGING "/%s", s->home, j->stage);
    if (!p->stage) return -ENOMEM;
    p->tree = path_join(p->stage, "tree");
    p->spare = path_join(p->stage, "spare");
    p->backup = path_join(p->stage, "backup");
    return p->providers && p->id && p->tree && p->spare && p->backup ? 0 : -ENOMEM;
}

static int move(const char *from, const char *to) { return rename(from, to) < 0 ? -errno : 0; }

static int sync_places(const struct places *p) {
    int r = fs_sync_dir(p->providers);
    if (r == 0 && fs_is_dir(p->stage)) r = fs_sync_dir(p->stage);
    if (r == 0 && layout_is_dir(p->id)) r = fs_sync_dir(p->id);
    if (r == 0 && layout_is_dir(p->tree)) r = fs_sync_dir(p->tree);
    return r;
}

/* data/ goes from the old version to the new one. One that is there was made by a reader just now. */
static int move_data(const char *from, const char *to) {
    _cleanup_free_ char *a = path_join(from, "data");
    _cleanup_free_ char *b = path_join(to, "data");
    if (!a || !b) return -ENOMEM;
    if (!layout_is_dir(a)) return 0;
    int r = move(a, b);
    return r == -ENOTEMPTY || r == -EEXIST ? fs_exchange(a, b) : r;
}

/* And back, unless it never left. */
static int move_data_back(const char *from, const char *to) {
    _cleanup_free_ char *a = path_join(from, "data");
    _cleanup_free_ char *b = path_join(to, "data");
    if (!a || !b) return -ENOMEM;
    return layout_is_dir(b) || !layout_is_dir(a) ? 0 : move(a, b);
}

int swap_forward(const struct store *s, const struct journal *j) {
    _cleanup_(places_done) struct places p = {0};
    int r = places_get(&p, s, j);
    if (r < 0) return r;
    const char *old = NULL;
    if (!j->old_inode) {
        r = move(p.tree, p.id);
    } else {
        r = fs_exchange(p.tree, p.id);
        old = p.tree;
        if (r == -ENOSYS) { /* this file system cannot: readers wait for the journal meanwhile */
            r = move(p.id, p.spare);
            if (r == 0) r = move(p.tree, p.id);
            old = p.spare;
        }
    }
    if (r == 0) r = sync_places(&p);
    if (r == 0 && j->had_data) r = move_data(old, p.id);
    return r == 0 ? sync_places(&p) : r;
}

/* Where the old version is, or NULL. */
static const char *find_old(const struct places *p, const struct journal *j) {
    if (layout_inode(p->id) == j->old_inode) return p->id;
    if (layout_inode(p->tree) == j->old_inode) return p->tree;
    return layout_inode(p->spare) == j->old_inode ? p->spare : NULL;
}

static int put_old_back(const struct places *p, const struct journal *j, const char *old) {
    uint64_t here = layout_inode(p->id);
    if (here == 0) return move(old, p->id);
    int r = j->had_data ? move_data_back(p->id, old) : 0;
    if (r == 0) r = sync_places(p);
    if (r == 0) r = fs_exchange(p->id, old);
    if (r == -ENOSYS) {
        _cleanup_free_ char *undone = path_join(p->stage, "undone");
        if (!undone) return -ENOMEM;
        r = move(p->id, undone);
        if (r == 0) r = move(old, p->id);
    }
    return r;
}

int swap_back(const struct store *s, const struct journal *j) {
    _cleanup_(places_done) struct places p = {0};
    int r = places_get(&p, s, j);
    if (r < 0) return r;
    if (!j->old_inode) {
        if (layout_inode(p.id) == j->new_inode) r = move(p.id, p.tree);
        return r == 0 ? sync_places(&p) : r;
    }
    const char *old = find_old(&p, j);
    uint64_t here = layout_inode(p.id);
    /* Another host may have put something else there, or taken the old version away. */
    if (!old || (here && here != j->new_inode && here != j->old_inode)) return 0;
    if (old != p.id) r = put_old_back(&p, j, old);
    if (r == 0 && j->backup && layout_is_dir(p.backup)) {
        _cleanup_free_ char *data = path_join(p.id, "data");
        r = data ? data_restore(p.backup, data) : -ENOMEM;
    }
    return r == 0 ? sync_places(&p) : r;
}

int swap_finish_removal(const struct store *s, const struct journal *j) {
    _cleanup_(places_done) struct places p = {0};
    int r = places_get(&p, s, j);
    if (r < 0) return r;
    if (layout_inode(p.id) == j->old_inode) return 1;
    const char *old = find_old(&p, j);
    if (layout_inode(p.id) == 0 && layout_is_dir(p.tree) && old != p.tree) r = move(p.tree, p.id);
    if (r == 0 && old && j->had_data) r = move_data(old, p.id);
    if (r < 0) return r;
    _cleanup_free_ char *data = path_join(p.id, "data");
    if (!data) return -ENOMEM;
    if (!layout_is_dir(data) && rmdir(p.id) < 0 && errno != ENOENT) return -errno;
    return sync_places(&p);
}
