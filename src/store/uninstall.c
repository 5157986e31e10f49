/* Removes a plugin in one step that counts: an empty directory is swapped in for it. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/journal.h"

static int swap_out(const struct store *s, const char *id, const char *dir, bool purge, struct stage *st, abx_error **reterr) {
    _cleanup_free_ char *empty = path_join(st->path, "tree");
    _cleanup_free_ char *data = path_join(dir, "data");
    if (!empty || !data) return err_nomem(reterr);
    if (mkdir(empty, 0700) < 0 || chmod(empty, 0700) < 0)
        return err_errno(reterr, ABX_E_INSTALL, -errno, "Cannot write the staging folder");
    _cleanup_journal_ struct journal j = {.op = JOURNAL_UNINSTALL, .moving = true};
    j.id = strdup(id);
    j.stage = strdup(st->name);
    if (!j.id || !j.stage) return err_nomem(reterr);
    j.new_inode = layout_inode(empty);
    j.old_inode = layout_inode(dir);
    j.had_data = !purge && layout_is_dir(data);
    int r = journal_write(s, &j, reterr);
    if (r < 0) return r;
    r = swap_forward(s, &j);
    if (r == 0) r = swap_finish_removal(s, &j);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot remove provider '%s'", id);
    return journal_drop(s, reterr);
}

int store_uninstall(const struct store *s, const char *id, bool purge, abx_error **reterr) {
    if (streq(id, BUILTIN_PROVIDER))
        return err_set(reterr, ABX_E_CONFLICT, NULL, "The built-in provider cannot be removed.");
    struct installed p = {0};
    _cleanup_free_ char *dir = layout_path(s, id), *data = dir ? path_join(dir, "data") : NULL, *note = NULL;
    char scratch[128];
    if (!data) return err_nomem(reterr);
    /* What an uninstall left behind can still be purged. */
    bool leftover = purge && !provider_id_problem(id, scratch) && layout_is_dir(dir) && layout_is_dir(data);
    int r = store_load(s, id, &p, leftover ? NULL : reterr);
    /* A link in the place of the directory: what it leads to is not ours to move. */
    if (r == 0 && fs_exists(dir) && !layout_is_dir(dir)) r = err_pass(reterr, abx_error_ref(p.error));
    installed_done(&p);
    if (r < 0 && !leftover) return r;
    _cleanup_stage_ struct stage st = STAGE_INIT;
    _cleanup_store_lock_ struct store_lock lock = STORE_LOCK_INIT;
    r = stage_new(&st, s, reterr);
    if (r == 0) r = store_lock_take(&lock, s, STORE_LOCK_WAIT_MS, reterr);
    if (r == 0) r = journal_recover(s, st.name, &note, reterr);
    if (note) log_line(s->log, ABX_LOG_WARN, "store", "%s", note);
    if (r < 0) return r;
    if (!layout_is_dir(dir)) { /* another command was faster */
        r = store_load(s, id, &p, reterr);
        if (r == 0) r = err_pass(reterr, abx_error_ref(p.error));
        installed_done(&p);
        return r;
    }
    r = swap_out(s, id, dir, purge, &st, reterr);
    if (r < 0 && fs_exists(st.path)) {
        /* Whatever the journal still names must stay until it is settled. */
        _cleanup_journal_ struct journal j = {0};
        if (journal_read(s, &j) == 0) {
            free(st.path);
            st.path = NULL;
        }
    }
    return r;
}
