/* Reads a commit's files out of the repository: the list first, every rule on it, then the contents,
 * each hashed again as it comes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/git_run.h"

/* A listing within all limits is far below this. */
#define LISTING_MAX (16 * MIB)
#define HEADER_MAX 128

struct item {
    size_t index;
    bool exec;
    char oid[GIT_OID_MAX];
};

struct export {
    struct git *g;
    struct tree *tree;
    struct item *items;
    size_t len, at; /* at: whose content comes next */
    struct buf header, content;
    size_t want; /* bytes of content still to come, with the newline behind it */
    bool in_content;
    abx_error *error;
};

static int take_listing(void *user, const char *data, size_t n) { return buf_append(user, data, n); }

/* "<mode> <type> <oid>\t<path>" */
static int admit_line(struct export *x, const char *line, size_t n, abx_error **reterr) {
    const char *tab = memchr(line, '\t', n);
    const char *oid = tab ? memrchr(line, ' ', (size_t)(tab - line)) : NULL;
    size_t oid_len = oid ? (size_t)(tab - oid - 1) : 0;
    if (!oid || oid_len != (x->g->sha256 ? 64u : 40u))
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: git's listing is not understood.");
    const char *path = tab + 1;
    size_t path_len = n - (size_t)(path - line);
    if (tree_left_out(path, path_len)) return 0;
    bool exec = str_starts(line, "100755 ");
    if (str_starts(line, "160000 "))
        return tree_unsafe(path, path_len, NULL,
                           "It is a git submodule: clone the repository with its submodules and install the directory.",
                           reterr);
    if (!exec && !str_starts(line, "100644 ")) return tree_unsafe(path, path_len, NULL, NULL, reterr);
    struct item *it = &x->items[x->len];
    int r = tree_admit(x->tree, path, path_len, &it->index, reterr);
    if (r < 0) return r;
    it->exec = exec;
    memcpy(it->oid, oid + 1, oid_len);
    it->oid[oid_len] = '\0';
    x->len++;
    return 0;
}

/* The commit is there, and so is all of its trees: only the directory can be missing. */
static int no_subdir(struct git *g, const char *commit, int status, abx_error **reterr) {
    const char *said = buf_cstr(&g->stderr_tail);
    if (!said || (!strstr(said, "Not a valid object name") && !strstr(said, "not a tree object")))
        return git_failed(g, status, reterr);
    return err_set(reterr, ABX_E_INSTALL, "Pass the directory that holds abx-provider.toml, as seen from the root of the repository.",
                   "Cannot fetch provider source: there is no directory '%s' in commit %s.", g->subdir, commit);
}

static int list_files(struct export *x, const char *commit, abx_error **reterr) {
    _cleanup_buf_ struct buf out = BUF_INIT(LISTING_MAX);
    _cleanup_free_ char *what = str_printf("%s:%s", commit, x->g->subdir);
    if (!what) return err_nomem(reterr);
    const char *argv[] = {"ls-tree", "-r", "-z", "--full-tree", what, NULL};
    int status;
    int r = git_run(x->g, argv, -1, take_listing, &out, &status, reterr);
    if (r == -EMSGSIZE)
        return err_set(reterr, ABX_E_INSTALL, NULL, "Provider source exceeds the size/file-count limits.");
    if (r < 0) return r;
    if (status && *x->g->subdir) return no_subdir(x->g, commit, status, reterr);
    if (status) return git_failed(x->g, status, reterr);
    x->items = calloc(LIMIT_TREE_FILES, sizeof *x->items);
    if (!x->items) return err_nomem(reterr);
    for (size_t i = 0; i < out.len;) {
        const char *end = memchr(out.data + i, 0, out.len - i);
        size_t n = end ? (size_t)(end - out.data) - i : out.len - i;
        r = admit_line(x, out.data + i, n, reterr);
        if (r < 0) return r;
        i += n + 1;
    }
    return 0;
}

static int corrupt(struct export *x) {
    return err_set(&x->error, ABX_E_INSTALL, NULL, "Cannot fetch provider source: object %s of '%s' is damaged.",
                   x->items[x->at].oid, tree_path(x->tree, x->items[x->at].index));
}

/* The id git gives a blob: the digest of its header and its content. */
static int check_oid(struct export *x, const struct item *it) {
    char head[32], hex[SHA256_HEX];
    size_t n = (size_t)snprintf(head, sizeof head, "blob %zu", x->content.len) + 1;
    int r;
    if (x->g->sha256) {
        struct sha256 *h = sha256_new();
        if (!h) return err_nomem(&x->error);
        r = sha256_update(h, head, n);
        if (r >= 0) r = sha256_update(h, x->content.data, x->content.len);
        if (r >= 0) r = sha256_final_hex(h, hex);
        sha256_free(h);
    } else {
        r = sha1_hex(head, n, x->content.data, x->content.len, hex);
    }
    if (r < 0) return err_errno(&x->error, ABX_E_INSTALL, r, "Cannot fetch provider source: no digest");
    return streq(hex, it->oid) ? 0 : corrupt(x);
}

static int begin_content(struct export *x) {
    const struct item *it = &x->items[x->at];
    const char *line = buf_cstr(&x->header);
    if (!line) return err_nomem(&x->error);
    size_t n = strlen(it->oid);
    if (!str_starts(line, it->oid) || line[n] != ' ') return corrupt(x);
    line += n + 1;
    const char *path = tree_path(x->tree, it->index);
    /* The fetch left out what is over the limit. */
    if (streq(line, "missing")) return tree_unsafe(path, strlen(path), "file too large", NULL, &x->error);
    long long size;
    if (!str_starts(line, "blob ") || str_to_i64(line + 5, &size) < 0 || size < 0) return corrupt(x);
    int r = tree_fits(x->tree, it->index, (uint64_t)size, &x->error);
    if (r < 0) return r;
    x->want = (size_t)size + 1;
    x->in_content = true;
    buf_reset(&x->content);
    buf_reset(&x->header);
    return 0;
}

static int end_content(struct export *x) {
    struct item *it = &x->items[x->at];
    if (x->content.data[--x->content.len] != '\n') return corrupt(x);
    int r = check_oid(x, it);
    if (r == 0) r = tree_write(x->tree, it->index, it->exec, x->content.data, x->content.len, &x->error);
    x->in_content = false;
    x->at++;
    return r;
}

/* Output of cat-file --batch: a line, the content, a newline, for each object in our order. */
static int take_objects(void *user, const char *data, size_t n) {
    struct export *x = user;
    while (n) {
        size_t k;
        int r = 0;
        if (x->at >= x->len) return -EBADMSG;
        if (x->in_content) {
            k = MIN_OF(n, x->want);
            if (buf_append(&x->content, data, k) < 0) r = err_nomem(&x->error);
            x->want -= k;
            if (r == 0 && x->want == 0) r = end_content(x);
        } else {
            const char *nl = memchr(data, '\n', n);
            k = nl ? (size_t)(nl - data) : n;
            if (x->header.len + k > HEADER_MAX || buf_append(&x->header, data, k) < 0) r = corrupt(x);
            if (r == 0 && nl) {
                k++;
                r = begin_content(x);
            }
        }
        if (r < 0) return -EBADMSG;
        data += k;
        n -= k;
    }
    return 0;
}

/* The ids go in by a file: git may read them whenever it likes, and nobody waits for the other. */
static int open_ids(struct export *x, abx_error **reterr) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    for (size_t i = 0; i < x->len; i++) {
        buf_str(&b, x->items[i].oid);
        buf_char(&b, '\n');
    }
    _cleanup_free_ char *path = path_join(x->g->repo, "abx-ids");
    if (b.err || !path) return err_nomem(reterr);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : 0;
    if (r == 0 && b.len) {
        ssize_t n = write(fd, b.data, b.len);
        r = n < 0 ? -errno : (size_t)n == b.len ? 0 : -ENOSPC;
    }
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0) r = -errno;
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the staging folder");
    return TAKE_FD(fd);
}

static void export_done(struct export *x) {
    free(x->items);
    buf_done(&x->header);
    buf_done(&x->content);
    abx_error_unref(x->error);
}

int git_export(struct git *g, const char *commit, struct tree *t, abx_error **reterr) {
    _cleanup_(export_done) struct export x = {.g = g, .tree = t, .header = BUF_INIT(0), .content = BUF_INIT(0)};
    int r = list_files(&x, commit, reterr);
    if (r < 0 || x.len == 0) return r;
    _cleanup_close_ int ids = open_ids(&x, reterr);
    if (ids < 0) return ids;
    const char *argv[] = {"cat-file", "--batch", NULL};
    int status;
    r = git_run(g, argv, ids, take_objects, &x, &status, reterr);
    if (x.error) return err_pass(reterr, TAKE_PTR(x.error));
    if (r == -EBADMSG || (r == 0 && status == 0 && x.at != x.len))
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: git's answer is not understood.");
    if (r < 0) return r;
    return status ? git_failed(g, status, reterr) : 0;
}
