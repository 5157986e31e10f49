/* A plan: a validated version in a staging folder, what must be agreed to, and its swap. */
#ifndef STORE_PLAN_H
#define STORE_PLAN_H

#include "store/git.h"
#include "store/journal.h"
#include "store/receipt.h"

enum plan_state { PLAN_READY, PLAN_SWAPPED, PLAN_OVER };

struct store_plan {
    struct store store; /* home and host_name are our copies; no environment */
    char *home, *host_name;
    struct stage stage;
    char *tree; /* <stage>/tree */
    struct manifest *manifest;
    struct source source;
    char commit[GIT_OID_MAX];
    char sha256[SHA256_HEX]; /* "" for a link */
    const char *trust;
    abx_value *source_value, *consent, *previous, *changes;
    bool existed;           /* something was installed under the id */
    abx_value *old_receipt; /* of that; NULL when there is none or it is broken */
    bool update, link, force, allow_unpinned, no_verify;
    enum plan_state state;
    struct store_lock lock;
    struct journal journal;
};
static inline _unused_ void store_plan_freep(struct store_plan **p) { store_plan_free(*p); }
#define _cleanup_plan_ _cleanup_(store_plan_freep)

int plan_new(struct store_plan **ret, const struct store *s, abx_error **reterr);
/* From the source into the staging folder; known_commit (or NULL): 1 when it is still the same. */
int plan_fetch(struct store_plan *p, const struct store *s, bool insecure, const char *known_commit, struct store_cancel *cancel,
               store_progress_fn progress, void *user, abx_error **reterr);
/* Manifest, digest, trust and what there is under the id. want_sha256: of --sha256, or NULL. */
int plan_examine(struct store_plan *p, const char *want_sha256, abx_error **reterr);
int plan_describe(struct store_plan *p, abx_error **reterr);
/* What is installed under the plan's id now. */
int plan_look(const struct store_plan *p, bool *ret_existed, abx_value **ret_receipt, abx_error **reterr);
/* The trust rule. */
int plan_trust(const struct store_plan *p, abx_consent how, abx_error **reterr);

#endif
