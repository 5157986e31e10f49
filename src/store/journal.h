/* The journal of a swap or removal under way, and how a dead command's is undone or finished. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "store/layout.h"
#include "store/lock.h"

enum journal_op { JOURNAL_INSTALL, JOURNAL_UPDATE, JOURNAL_UNINSTALL };

struct journal {
    enum journal_op op;
    bool moving;  /* directories are being moved: a reader waits; else the new version is on trial */
    char *id;
    char *stage;  /* name in .staging; "tree" in it is what is swapped in, then what was swapped out */
    uint64_t new_inode, old_inode; /* of the two directories; old 0: there was none */
    bool had_data;
    bool backup; /* "backup" in the stage is a copy of data/ from before */
};
void journal_done(struct journal *j);
#define _cleanup_journal_ _cleanup_(journal_done)

int journal_write(const struct store *s, const struct journal *j, abx_error **reterr);
/* -ENOENT: none; -EBADMSG: not readable as one. */
int journal_read(const struct store *s, struct journal *ret);
int journal_drop(const struct store *s, abx_error **reterr);

/* The moves themselves, each of which may be repeated after a crash. */
int swap_forward(const struct store *s, const struct journal *j);
int swap_back(const struct store *s, const struct journal *j);
/* After swap_forward() of a removal: data/ stays when the journal says so, else the id's directory
 * goes too. 1: the removal had not begun. */
int swap_finish_removal(const struct store *s, const struct journal *j);

/* With the lock held: settles what a dead command left and sweeps. *ret_note as store_recover(). */
int journal_recover(const struct store *s, const char *own_stage, char **ret_note, abx_error **reterr);

#endif
