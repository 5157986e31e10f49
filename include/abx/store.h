/* abx/store.h: install, update and uninstall: plan, show, agree, apply.
 *
 * Nothing of a plugin is executed before the apply step; there only its handshake,
 * unless no_verify. Planning writes to a staging folder alone. */
#ifndef ABX_STORE_H
#define ABX_STORE_H

#include <abx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum abx_consent {
    ABX_CONSENT_NONE,     /* nobody was asked                          */
    ABX_CONSENT_YES_FLAG, /* --yes: not enough for a moving ref, E8012 */
    ABX_CONSENT_PERSON    /* a person saw the screen in a terminal     */
} abx_consent;

typedef struct abx_install_opts {
    size_t size;
    const char *source; /* directory, git URL, or owner/repo[//subdir][@ref] */
    const char *ref, *sha256, *subdir;
    int link, force, allow_unpinned, allow_insecure_transport, no_verify;
    abx_consent consent; /* what is known already: lets refusals come early  */
} abx_install_opts;
#define ABX_INSTALL_OPTS_INIT { sizeof(abx_install_opts), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, ABX_CONSENT_NONE }

/* Fetches, validates and digests. Events: PROGRESS. */
ABX_API ABX_MUST_CHECK int abx_install_plan_start(abx_op **ret, abx_client *c, const abx_install_opts *o, abx_error **reterr);

typedef struct abx_update_opts {
    size_t size;
    const char *id;
    const char *ref;
    int check, allow_unpinned, allow_insecure_transport, no_verify;
    abx_consent consent;
} abx_update_opts;
#define ABX_UPDATE_OPTS_INIT { sizeof(abx_update_opts), NULL, NULL, 0, 0, 0, 0, ABX_CONSENT_NONE }

/* Value: {id, status, installed, available, changes}; with status "available" and no
 * check there is a plan to take and to apply. */
ABX_API ABX_MUST_CHECK int abx_update_plan_start(abx_op **ret, abx_client *c, const abx_update_opts *o, abx_error **reterr);

ABX_API abx_plan *abx_op_take_plan(abx_op *op);           /* NULL when there is none */
/* Exactly what a consent screen must show, as the reference prints it. */
ABX_API const abx_value *abx_plan_consent(abx_plan *p);
/* What the receipt said before ("consented" of it), or NULL for a first install. */
ABX_API const abx_value *abx_plan_previous(abx_plan *p);
ABX_API int abx_plan_pinned(abx_plan *p);
/* 1 when somebody must agree; an update that changes nothing at risk needs no consent. */
ABX_API int abx_plan_needs_consent(abx_plan *p);
/* The trust rule lives here. Value: the receipt. The old version is back, byte for byte,
 * when anything fails. */
ABX_API ABX_MUST_CHECK int abx_plan_apply_start(abx_op **ret, abx_plan *p, abx_consent how, abx_error **reterr);
ABX_API abx_plan *abx_plan_unref(abx_plan *p);            /* drops the staging folder; NULL */

/* Value: {id, removed, purged, default_reset}. */
ABX_API ABX_MUST_CHECK int abx_uninstall(abx_client *c, const char *id, int purge, abx_value **ret, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
