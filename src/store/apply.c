/* Applies a plan: the swap under the lock, then its commit or its undoing. */
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/data.h"
#include "store/plan.h"
#include "store/tree.h"

static int out_of_date(const struct store_plan *p, abx_error **reterr) {
    return err_set(reterr, ABX_E_INSTALL, "Start again.", "Provider '%s' was changed by another command meanwhile.",
                   p->manifest->id);
}

/* Between plan and swap a person may have read for an hour. */
static int check_still_valid(struct store_plan *p, abx_error **reterr) {
    bool existed;
    _cleanup_value_ abx_value *receipt = NULL;
    int r = plan_look(p, &existed, &receipt, reterr);
    if (r < 0) return r;
    bool same = existed == p->existed && !receipt == !p->old_receipt &&
                (!receipt || abx_value_equal(receipt, p->old_receipt));
    if (!same && p->update) return out_of_date(p, reterr);
    if (!same && !p->force)
        return err_set(reterr, ABX_E_CONFLICT, "Re-run with --force to replace it.", "Provider id '%s' is already installed.",
                       p->manifest->id);
    if (!same) { /* --force replaces whatever is there by what was agreed to */
        abx_value_unref(p->old_receipt);
        p->old_receipt = TAKE_PTR(receipt);
        p->existed = existed;
    }
    if (p->link) {
        _cleanup_manifest_ struct manifest *m = NULL;
        r = manifest_load(&m, p->source.path, true, reterr);
        if (r < 0) return r;
        return streq(m->sha256, p->manifest->sha256) ? 0 : out_of_date(p, reterr);
    }
    char hex[SHA256_HEX];
    r = tree_digest_dir(p->tree, hex, reterr);
    if (r < 0) return r;
    return streq(hex, p->sha256) ? 0 : err_set(reterr, ABX_E_INTEGRITY, NULL, "The staged files of '%s' were changed.",
                                               p->manifest->id);
}

/* A handshake lets the new version at data/: a copy makes what it does there undoable. */
static int back_up_data(struct store_plan *p, const char *data, abx_error **reterr) {
    if (p->no_verify) return 0;
    _cleanup_free_ char *copy = path_join(p->stage.path, "backup");
    if (!copy) return err_nomem(reterr);
    int r = data_copy(data, copy);
    if (r == -EFBIG || r == -EACCES || r == -EPERM) {
        fs_remove_tree(copy);
        log_line(p->store.log, ABX_LOG_WARN, "store", "%s: data/ %s, so it is not copied before the new version is tried",
                 p->manifest->id, r == -EFBIG ? "is too large" : "cannot be read");
        return 0;
    }
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot copy the data of '%s'", p->manifest->id);
    p->journal.backup = true;
    return 0;
}

static int prepare(struct store_plan *p, abx_error **reterr) {
    _cleanup_free_ char *id_dir = layout_path(&p->store, p->manifest->id);
    _cleanup_free_ char *data = id_dir ? path_join(id_dir, "data") : NULL;
    if (!data) return err_nomem(reterr);
    journal_done(&p->journal);
    p->journal = (struct journal){.op = p->update ? JOURNAL_UPDATE : JOURNAL_INSTALL, .moving = true};
    p->journal.id = strdup(p->manifest->id);
    p->journal.stage = strdup(p->stage.name);
    if (!p->journal.id || !p->journal.stage) return err_nomem(reterr);
    p->journal.new_inode = layout_inode(p->tree);
    p->journal.old_inode = layout_inode(id_dir);
    p->journal.had_data = layout_is_dir(data);
    return p->journal.had_data ? back_up_data(p, data, reterr) : 0;
}

static int swap_in(struct store_plan *p, abx_error **reterr) {
    int r = prepare(p, reterr);
    if (r == 0) r = journal_write(&p->store, &p->journal, reterr);
    if (r < 0) return r;
    p->state = PLAN_SWAPPED; /* from here on there is something to undo */
    r = swap_forward(&p->store, &p->journal);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot swap in the new version of '%s'", p->manifest->id);
    p->journal.moving = false;
    return journal_write(&p->store, &p->journal, reterr);
}

int store_plan_swap(struct store_plan *p, abx_consent how, abx_value **ret_receipt, abx_error **reterr) {
    if (p->state != PLAN_READY) return err_set(reterr, -EALREADY, NULL, "The plan was applied already.");
    int r = plan_trust(p, how, reterr);
    if (r == 0) r = layout_make(&p->store, reterr);
    if (r == 0) r = store_lock_take(&p->lock, &p->store, STORE_LOCK_WAIT_MS, reterr);
    if (r < 0) return r;
    _cleanup_free_ char *note = NULL;
    _cleanup_value_ abx_value *receipt = NULL;
    r = journal_recover(&p->store, p->stage.name, &note, reterr);
    if (note) log_line(p->store.log, ABX_LOG_WARN, "store", "%s", note);
    if (r == 0) r = check_still_valid(p, reterr);
    if (r == 0) {
        receipt = receipt_new(p->manifest, p->source_value, p->sha256, p->trust, p->host_name, p->old_receipt);
        r = receipt ? receipt_write(p->tree, receipt, reterr) : err_nomem(reterr);
    }
    if (r == 0) r = swap_in(p, reterr);
    if (r < 0) {
        if (p->state == PLAN_SWAPPED) store_plan_rollback(p, NULL);
        store_lock_release(&p->lock);
        return r;
    }
    *ret_receipt = TAKE_PTR(receipt);
    return 0;
}

static int over(struct store_plan *p) {
    p->state = PLAN_OVER;
    store_lock_release(&p->lock);
    stage_done(&p->stage);
    return 0;
}

int store_plan_commit(struct store_plan *p, abx_error **reterr) {
    if (p->state != PLAN_SWAPPED) return err_set(reterr, -EALREADY, NULL, "There is nothing to commit.");
    /* The new version stands when the journal is gone; what was before is only rubbish then. */
    int r = journal_drop(&p->store, reterr);
    if (r < 0) return r;
    return over(p);
}

int store_plan_rollback(struct store_plan *p, abx_error **reterr) {
    if (p->state != PLAN_SWAPPED) return err_set(reterr, -EALREADY, NULL, "There is nothing to roll back.");
    int r = swap_back(&p->store, &p->journal);
    if (r < 0) {
        /* The journal stays for the next command, and so does the folder it names. */
        p->state = PLAN_OVER;
        store_lock_release(&p->lock);
        p->stage.fd = safe_close(p->stage.fd);
        free(p->stage.path);
        p->stage.path = NULL;
        return err_errno(reterr, ABX_E_INSTALL, r, "Cannot put back the old version of '%s'", p->manifest->id);
    }
    r = journal_drop(&p->store, reterr);
    over(p);
    return r;
}
