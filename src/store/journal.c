/* The journal file, and recovery by it. */
#include "store/journal.h"

#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/util.h"

#define JOURNAL_MAX 4096
#define WAIT_STEP_MS 5

static const char *const op_names[] = {"install", "update", "uninstall"};

void journal_done(struct journal *j) {
    free(j->id);
    free(j->stage);
    *j = (struct journal){0};
}

int journal_write(const struct store *s, const struct journal *j, abx_error **reterr) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = abx_value_set_string(v, "op", op_names[j->op]);
    r |= abx_value_set_bool(v, "moving", j->moving);
    r |= abx_value_set_string(v, "id", j->id);
    r |= abx_value_set_string(v, "stage", j->stage);
    r |= abx_value_set(v, "new_inode", abx_value_new_uint(j->new_inode));
    r |= abx_value_set(v, "old_inode", abx_value_new_uint(j->old_inode));
    r |= abx_value_set_bool(v, "had_data", j->had_data);
    r |= abx_value_set_bool(v, "backup", j->backup);
    size_t n = 0;
    _cleanup_free_ char *text = r ? NULL : abx_value_print(v, ABX_PRINT_COMPACT, &n);
    _cleanup_free_ char *path = layout_path(s, LAYOUT_JOURNAL);
    if (!text || !path) return err_nomem(reterr);
    r = fs_write_atomic(path, text, n, 0600);
    return r < 0 ? err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the journal '%s'", path) : 0;
}

static bool plain_name(const char *s) { return s && *s && *s != '/' && !strchr(s, '/') && !streq(s, ".") && !streq(s, ".."); }

int journal_read(const struct store *s, struct journal *ret) {
    _cleanup_free_ char *path = layout_path(s, LAYOUT_JOURNAL);
    _cleanup_free_ char *text = NULL;
    size_t n;
    if (!path) return -ENOMEM;
    int r = fs_read(path, JOURNAL_MAX, &text, &n);
    if (r == -ENOENT || r == -ENOTDIR) return -ENOENT;
    if (r < 0) return r;
    _cleanup_value_ abx_value *v = NULL;
    _cleanup_error_ abx_error *e = NULL;
    if (abx_value_parse(&v, text, n, &e) < 0) return -EBADMSG;
    const char *op = abx_value_get_string(v, "op"), *id = abx_value_get_string(v, "id");
    const char *stage = abx_value_get_string(v, "stage");
    char scratch[128];
    if (!op || !plain_name(stage) || !id || provider_id_problem(id, scratch)) return -EBADMSG;
    _cleanup_journal_ struct journal j = {0};
    size_t i = 0;
    while (i < ARRAY_SIZE(op_names) && !streq(op, op_names[i])) i++;
    if (i == ARRAY_SIZE(op_names)) return -EBADMSG;
    j.op = (enum journal_op)i;
    j.moving = abx_value_bool(abx_value_get(v, "moving"));
    j.new_inode = abx_value_uint(abx_value_get(v, "new_inode"), 0);
    j.old_inode = abx_value_uint(abx_value_get(v, "old_inode"), 0);
    j.had_data = abx_value_bool(abx_value_get(v, "had_data"));
    j.backup = abx_value_bool(abx_value_get(v, "backup"));
    j.id = strdup(id);
    j.stage = strdup(stage);
    if (!j.id || !j.stage) return -ENOMEM;
    *ret = j;
    j = (struct journal){0};
    return 0;
}

int journal_drop(const struct store *s, abx_error **reterr) {
    _cleanup_free_ char *path = layout_path(s, LAYOUT_JOURNAL);
    _cleanup_free_ char *dir = layout_path(s, NULL);
    if (!path || !dir) return err_nomem(reterr);
    int r = unlink(path) < 0 && errno != ENOENT ? -errno : fs_sync_dir(dir);
    return r < 0 ? err_errno(reterr, ABX_E_INSTALL, r, "Cannot remove the journal '%s'", path) : 0;
}

static int settle(const struct store *s, struct journal *j, char **ret_note, abx_error **reterr) {
    bool removal = j->op == JOURNAL_UNINSTALL;
    /* The journal of a removal stands from before its one step that counts until its end. */
    int r = removal ? swap_finish_removal(s, j) : swap_back(s, j);
    if (r < 0)
        return err_errno(reterr, ABX_E_INSTALL, r, "Cannot %s the interrupted %s of '%s'", removal ? "finish" : "undo",
                         op_names[j->op], j->id);
    char *note = str_printf("%s the interrupted %s of '%s'.", removal && r == 0 ? "Finished" : "Undid", op_names[j->op], j->id);
    if (!note) return err_nomem(reterr);
    free(*ret_note);
    *ret_note = note;
    return 0;
}

int journal_recover(const struct store *s, const char *own_stage, char **ret_note, abx_error **reterr) {
    _cleanup_journal_ struct journal j = {0};
    int r = journal_read(s, &j);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r == 0) {
        r = settle(s, &j, ret_note, reterr);
        if (r < 0) return r;
    } else if (r == -EBADMSG) {
        /* It is written in one piece: this one is not ours to act on. */
        char *note = strdup("Removed a journal that is not readable.");
        if (!note) return err_nomem(reterr);
        free(*ret_note);
        *ret_note = note;
    } else if (r != -ENOENT) {
        return err_errno(reterr, ABX_E_INSTALL, r, "Cannot read the journal of the provider store");
    }
    if (r != -ENOENT) {
        r = journal_drop(s, reterr);
        if (r < 0) return r;
    }
    layout_sweep(s, own_stage);
    return 0;
}

int store_recover(const struct store *s, char **ret_note, abx_error **reterr) {
    _cleanup_free_ char *path = layout_path(s, LAYOUT_JOURNAL);
    _cleanup_free_ char *dir = layout_path(s, NULL);
    if (!path || !dir) return err_nomem(reterr);
    int64_t end = time_mono_ms() + STORE_LOCK_WAIT_MS;
    while (fs_exists(path)) {
        _cleanup_store_lock_ struct store_lock lock = STORE_LOCK_INIT;
        if (access(dir, W_OK) < 0) return 0; /* a read-only store stays as it is */
        if (store_lock_take(&lock, s, 0, NULL) == 0) return journal_recover(s, NULL, ret_note, reterr);
        /* Its owner lives: what is being moved is whole again in a moment. */
        _cleanup_journal_ struct journal j = {0};
        if (journal_read(s, &j) < 0 || !j.moving || time_mono_ms() >= end) return 0;
        const struct timespec step = {0, WAIT_STEP_MS * 1000000};
        nanosleep(&step, NULL);
    }
    return 0;
}
