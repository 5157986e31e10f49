/* What is installed: found, loaded, and checked before a start. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "store/layout.h"
#include "store/receipt.h"
#include "store/tree.h"

/* How often a reader starts again when an update came in between. */
#define READ_TRIES 5

void installed_done(struct installed *p) {
    free(p->id);
    free(p->dir);
    free(p->plugin_dir);
    free(p->data_dir);
    abx_value_unref(p->receipt);
    manifest_unref(p->manifest);
    abx_error_unref(p->error);
    *p = (struct installed){0};
}
#define _cleanup_installed_ _cleanup_(installed_done)

static bool is_there(int dirfd, const char *id, const char *name) {
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", id, name);
    return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What lost its receipt, or became a link, is told as broken, not passed over; data/ alone is what an uninstall left. */
static bool looks_installed(int dirfd, const char *id) {
    struct stat st;
    if (fstatat(dirfd, id, &st, AT_SYMLINK_NOFOLLOW) < 0) return false;
    return S_ISLNK(st.st_mode) || is_there(dirfd, id, RECEIPT_NAME) || is_there(dirfd, id, MANIFEST_NAME);
}

int store_ids(const struct store *s, char ***ret, abx_error **reterr) {
    _cleanup_free_ char *dir = layout_path(s, NULL);
    _cleanup_strv_ char **ids = calloc(1, sizeof *ids);
    if (!dir || !ids) return err_nomem(reterr);
    _cleanup_closedir_ DIR *d = opendir(dir);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return err_errno(reterr, ABX_E_INSTALL, -errno, "Cannot read the folder '%s'", dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        char scratch[128];
        if (*e->d_name == '.' || provider_id_problem(e->d_name, scratch) || !looks_installed(dirfd(d), e->d_name)) continue;
        if (strv_append(&ids, e->d_name) < 0) return err_nomem(reterr);
    }
    strv_sort(ids);
    *ret = TAKE_PTR(ids);
    return 0;
}

static int not_installed(const struct store *s, const char *id, abx_error **reterr) {
    _cleanup_strv_ char **ids = NULL;
    _cleanup_free_ char *hint = NULL;
    const abx_error_row *row = err_row(ABX_E_PROVIDER_NOT_FOUND);
    const char *near = store_ids(s, &ids, NULL) == 0 ? str_nearest(id, (const char *const *)ids) : NULL;
    if (near) hint = str_printf("Did you mean '%s'? %s", near, row ? row->hint : "");
    _cleanup_free_ char *shown = tree_show_path(id, strlen(id));
    return err_set(reterr, ABX_E_PROVIDER_NOT_FOUND, hint, "Provider '%s' is not installed.", shown ? shown : "");
}

static int changed(const struct installed *p, const char *what, abx_error **reterr) {
    const char *hint = "Reinstall it with 'abx provider install --force <source>', or run 'abx provider update'.";
    abx_error *e = NULL;
    int code = what ? err_set(&e, ABX_E_INTEGRITY, hint, "Provider '%s': files changed since install ('%s').", p->id, what)
                    : err_set(&e, ABX_E_INTEGRITY, hint, "Provider '%s': files changed since install.", p->id);
    err_set_provider(e, p->id);
    (void)code;
    return err_pass(reterr, e);
}

/* Nothing says what is there: -ENOENT when it is nothing of a plugin. */
static int no_receipt(struct installed *p) {
    struct stat st;
    _cleanup_free_ char *manifest = path_join(p->dir, MANIFEST_NAME);
    if (!manifest) return -ENOMEM;
    if (lstat(p->dir, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(&p->error, ABX_E_INTEGRITY, "Remove the link; then install it again with 'abx provider install <source>'.",
                       "Provider '%s': '%s' is a symbolic link, not a directory.", p->id, p->dir);
    if (!layout_is_dir(p->dir) || !fs_exists(manifest)) return -ENOENT;
    return err_set(&p->error, ABX_E_INTEGRITY, "Reinstall it with 'abx provider install --force <source>'.",
                   "Provider '%s': there is no install receipt ('%s').", p->id, RECEIPT_NAME);
}

/* Before it is read: once installed, a manifest that is gone or no file is a change like any other. */
static int check_manifest_file(struct installed *p) {
    struct stat st;
    _cleanup_free_ char *path = path_join(p->dir, MANIFEST_NAME);
    if (!path) return err_nomem(&p->error);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode)) return 0;
    return changed(p, MANIFEST_NAME, &p->error);
}

/* Fills what can be had; what is broken goes into p->error. -ENOENT: no receipt. */
static int load_once(struct installed *p, abx_error **reterr) {
    int r = receipt_read(&p->receipt, p->dir, p->id, &p->error);
    if (r == -ENOENT && !p->error) r = no_receipt(p);
    if ((r == -ENOENT || r == -ENOMEM) && !p->error) return r;
    const abx_value *source = abx_value_get(p->receipt, "source");
    bool link = streq0(abx_value_get_string(source, "type"), "link");
    const char *where = link ? abx_value_get_string(source, "path") : p->dir;
    p->plugin_dir = strdup(where);
    if (!p->plugin_dir) return err_nomem(reterr);
    if (r < 0 || (!link && check_manifest_file(p) < 0)) return 0;
    if (manifest_load(&p->manifest, p->plugin_dir, true, &p->error) < 0) return 0;
    if (streq(p->manifest->id, p->id)) return 0;
    err_set(&p->error, ABX_E_MANIFEST, NULL, "Provider '%s': the manifest is of '%s'.", p->id, p->manifest->id);
    p->manifest = manifest_unref(p->manifest);
    return 0;
}

int store_load(const struct store *s, const char *id, struct installed *ret, abx_error **reterr) {
    char scratch[128];
    if (provider_id_problem(id, scratch)) return not_installed(s, id, reterr);
    for (int i = 0; i < READ_TRIES; i++) {
        _cleanup_installed_ struct installed p = {.id = strdup(id), .dir = layout_path(s, id)};
        if (p.id && p.dir) p.data_dir = path_join(p.dir, "data");
        if (!p.data_dir) return err_nomem(reterr);
        uint64_t before = layout_inode(p.dir);
        int r = load_once(&p, reterr);
        if (r == -ENOMEM) return r;
        /* Receipt and manifest must be of one version. */
        if (before != layout_inode(p.dir) && i + 1 < READ_TRIES) continue;
        if (r == -ENOENT) return not_installed(s, id, reterr);
        if (p.error) err_set_provider(p.error, id);
        *ret = p;
        p = (struct installed){0};
        return 0;
    }
    return err_nomem(reterr); /* not reached */
}

static int make_data(const struct installed *p, abx_error **reterr) {
    if (mkdir(p->data_dir, 0700) == 0) {
        chmod(p->data_dir, 0700);
        return 0;
    }
    int r = -errno;
    if (layout_is_dir(p->data_dir)) return 0;
    if (r == -EEXIST) return changed(p, "data", reterr);
    return err_errno(reterr, ABX_E_INSTALL, r, "Provider '%s': cannot make '%s'", p->id, p->data_dir);
}

static int check_digest(const struct installed *p, abx_error **reterr) {
    char hex[SHA256_HEX];
    _cleanup_free_ char *bad = NULL;
    int r = digest_dir(p->dir, true, hex, &bad);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r == -EBADMSG) return changed(p, bad, reterr);
    if (r == -EPERM)
        return err_set(reterr, ABX_E_INTEGRITY, "Find out who changed it; then reinstall with --force.",
                       "Provider '%s': '%s' can be written by other users.", p->id, bad && *bad ? bad : p->dir);
    if (r < 0) return err_errno(reterr, ABX_E_INTEGRITY, r, "Provider '%s': cannot read '%s'", p->id, p->dir);
    if (!streq0(abx_value_get_string(p->receipt, "tree_sha256"), hex)) return changed(p, NULL, reterr);
    return 0;
}

int store_verify(const struct store *s, struct installed *p, abx_error **reterr) {
    for (int i = 0;; i++) {
        if (p->error) return err_pass(reterr, abx_error_ref(p->error));
        if (!streq(p->plugin_dir, p->dir)) break; /* a link has no digest */
        _cleanup_error_ abx_error *e = NULL;
        uint64_t inode = layout_inode(p->dir);
        int r = check_digest(p, &e);
        if (r == 0) break;
        /* An update may have come between loading and reading: then it is another receipt. */
        _cleanup_installed_ struct installed now = {0};
        if (i + 1 >= READ_TRIES || store_load(s, p->id, &now, NULL) < 0 ||
            (abx_value_equal(now.receipt, p->receipt) && layout_inode(p->dir) == inode))
            return err_pass(reterr, TAKE_PTR(e));
        struct installed old = *p;
        *p = now;
        now = old;
    }
    return make_data(p, reterr);
}
