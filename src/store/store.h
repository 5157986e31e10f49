/* The plugin store, ~/.abx/providers (docs/store.md). Everything here blocks and is called from a
 * worker thread or a short synchronous call; `cancel` is polled while it works. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <abx/error.h>
#include <abx/store.h>
#include <abx/value.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/util.h"
#include "provider/manifest.h"

#define RECEIPT_NAME ".abx-install.json"

struct store {
    const char *home;             /* ~/.abx, absolute                          */
    const char *const *environ_;  /* for git: PATH, proxies, SSH_AUTH_SOCK     */
    const char *host_name;        /* installed_by.tool                         */
    const struct logger *log;
    const char *supervisor;       /* the program git runs under; NULL: none       */
};

/* Says stop to a running plan: set the flag, then close-proof wake of its child by fd. */
struct store_cancel {
    atomic_bool stop;
    int event_fd; /* becomes readable when stopped; -1: none */
};
typedef void (*store_progress_fn)(void *user, const char *what);

struct installed {
    char *id, *dir;        /* <home>/providers/<id>                                */
    char *plugin_dir;      /* where the code is: dir, or the linked directory      */
    char *data_dir;
    abx_value *receipt;
    struct manifest *manifest; /* NULL when broken                                */
    abx_error *error;      /* why it is broken, or NULL                            */
};
void installed_done(struct installed *p);

/* Ids of what is installed, sorted; a missing store is an empty list. */
int store_ids(const struct store *s, char ***ret, abx_error **reterr);
/* E8001 (with the nearest id) when not installed. A broken manifest or receipt is in ret->error. */
int store_load(const struct store *s, const char *id, struct installed *ret, abx_error **reterr);
/* The digest check of a start; E8011 naming the first entry that differs when it can be told. Makes
 * data/ (0700). A link has none. */
int store_verify(const struct store *s, struct installed *p, abx_error **reterr);
/* SHA-256 tree digest of a directory on disk (store.md); non-regular entries are -EBADMSG/E8011. */
int tree_digest_dir(const char *dir, char out[65], abx_error **reterr);

/* Plans. A plan holds a staging folder until freed. */
struct store_plan;
int store_plan_install(const struct store *s, const abx_install_opts *o, struct store_cancel *cancel, store_progress_fn progress,
                       void *user, struct store_plan **ret, abx_error **reterr);
/* *ret_result: {id,status,installed,available,changes}. *ret stays as it is when there is nothing to apply
 * (check, "up-to-date", "pinned", "bundled", which has a "message" too); else the status is "available". */
int store_plan_update(const struct store *s, const abx_update_opts *o, struct store_cancel *cancel, store_progress_fn progress,
                      void *user, struct store_plan **ret, abx_value **ret_result, abx_error **reterr);
const abx_value *store_plan_consent(struct store_plan *p);
/* The old receipt's "consented" with its version, source, tree_sha256 and trust beside; NULL at first. */
const abx_value *store_plan_previous(struct store_plan *p);
bool store_plan_pinned(struct store_plan *p);
bool store_plan_needs_consent(struct store_plan *p);
const char *store_plan_id(struct store_plan *p);
/* Checks the trust rule, takes the lock, writes the receipt, swaps in and keeps the old version aside.
 * After it exactly one of commit and rollback is called; until then a crash is undone by the next
 * command through the journal. *ret_receipt: the new receipt. */
int store_plan_swap(struct store_plan *p, abx_consent how, abx_value **ret_receipt, abx_error **reterr);
int store_plan_commit(struct store_plan *p, abx_error **reterr);
int store_plan_rollback(struct store_plan *p, abx_error **reterr);
/* What the plan was asked not to do: skip the handshake after the swap. */
bool store_plan_no_verify(struct store_plan *p);
struct store_plan *store_plan_free(struct store_plan *p);

int store_uninstall(const struct store *s, const char *id, bool purge, abx_error **reterr); /* files and, with purge, data/ */
/* Finishes or undoes what a dead command left; *ret_note: one sentence, or NULL; free(). */
int store_recover(const struct store *s, char **ret_note, abx_error **reterr);

#endif
