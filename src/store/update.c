/* Plans an update: the recorded source again, and whether there is anything to do. */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "store/plan.h"

#define BUNDLED                                                                                        \
    "This provider ships with the Python SDK. Upgrade client and server packages together using their " \
    "original installation method; upgrade abx separately for Node management commands. Restart only "  \
    "engines you own. This operation does not check host releases or change installed software."

/* The two orders of members are the reference's. */
static abx_value *make_result(const char *id, const char *status, const char *installed, const char *available,
                              const abx_value *changes, bool status_first) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = abx_value_set_string(v, "id", id);
    if (status_first) r |= abx_value_set_string(v, "status", status);
    r |= abx_value_set_string(v, "installed", installed);
    r |= abx_value_set_string(v, "available", available);
    r |= abx_value_set(v, "changes", changes ? abx_value_ref(changes) : abx_value_new_array());
    if (!status_first) r |= abx_value_set_string(v, "status", status);
    return r ? NULL : TAKE_PTR(v);
}

static int bundled(const abx_update_opts *o, abx_value **ret_result, abx_error **reterr) {
    if (o->ref)
        return err_set(reterr, ABX_E_INSTALL, NULL,
                       "The bundled provider cannot use ref. Select a matching client/server SDK release.");
    _cleanup_value_ abx_value *v = make_result(o->id, "bundled", NULL, NULL, NULL, true);
    if (abx_value_set_string(v, "message", BUNDLED) < 0) return err_nomem(reterr);
    *ret_result = TAKE_PTR(v);
    return 0;
}

static int check_type(const char *id, const char *type, abx_error **reterr) {
    if (streq0(type, "git")) return 0;
    if (streq0(type, "local") || streq0(type, "link"))
        return err_set(reterr, ABX_E_INSTALL, NULL,
                       "Provider '%s' was installed from a local directory; reinstall it with 'abx provider install "
                       "--force <path>'.",
                       id);
    return err_set(reterr, ABX_E_INSTALL, "Reinstall it from a directory or a git URL with --force.",
                   "Provider '%s' was installed from a source of type '%s', which this host cannot fetch.", id,
                   type ? type : "");
}

/* Same commit, same pin, and the files as they were: an update repairs what was changed. */
static bool nothing_to_do(const struct store *s, const struct store_plan *p, struct installed *now) {
    const char *trust = abx_value_get_string(now->receipt, "trust");
    const char *ref = abx_value_get_string(abx_value_get(now->receipt, "source"), "ref");
    bool pin_changes = p->source.ref_is_commit != streq(trust, "pinned") || !streq0(ref, p->source.ref);
    if (pin_changes) return false;
    _cleanup_error_ abx_error *e = NULL;
    int r = store_verify(s, now, &e);
    return r != ABX_E_INTEGRITY && r != ABX_E_MANIFEST;
}

/* 1: ret_result says all there is to say. */
static int plan_new_version(struct store_plan *p, const struct store *s, const abx_update_opts *o, struct installed *now,
                            struct store_cancel *cancel, store_progress_fn progress, void *user, abx_value **ret_result,
                            abx_error **reterr) {
    const abx_value *source = abx_value_get(now->receipt, "source");
    int r = source_from_receipt(&p->source, source, o->ref, o->allow_insecure_transport, reterr);
    if (r < 0) return r;
    const char *commit = abx_value_get_string(source, "commit");
    const char *known = nothing_to_do(s, p, now) ? commit : NULL;
    r = plan_fetch(p, s, o->allow_insecure_transport, known, cancel, progress, user, reterr);
    if (r < 0) return r;
    if (r == 1) {
        *ret_result = make_result(o->id, "up-to-date", commit, p->commit, NULL, false);
        return *ret_result ? 1 : err_nomem(reterr);
    }
    r = plan_examine(p, NULL, reterr);
    if (r < 0) return r;
    if (!streq(p->manifest->id, o->id))
        return err_set(reterr, ABX_E_INSTALL, "Install it under its own id.",
                       "The new version of '%s' has another id, '%s'.", o->id, p->manifest->id);
    r = plan_describe(p, reterr);
    if (r < 0) return r;
    *ret_result = make_result(o->id, "available", commit, p->commit, p->changes, false);
    if (!*ret_result) return err_nomem(reterr);
    return o->check ? 1 : 0;
}

int store_plan_update(const struct store *s, const abx_update_opts *o, struct store_cancel *cancel, store_progress_fn progress,
                      void *user, struct store_plan **ret, abx_value **ret_result, abx_error **reterr) {
    if (streq0(o->id, BUILTIN_PROVIDER)) return bundled(o, ret_result, reterr);
    struct installed now = {0};
    int r = store_load(s, o->id ? o->id : "", &now, reterr);
    if (r < 0) return r;
    _cleanup_plan_ struct store_plan *p = NULL;
    _cleanup_value_ abx_value *result = NULL;
    const abx_value *source = abx_value_get(now.receipt, "source");
    bool done = false;
    /* Only the receipt is needed: an update is how a broken version is repaired. */
    if (!now.receipt) r = err_pass(reterr, abx_error_ref(now.error));
    if (r == 0) r = check_type(o->id, abx_value_get_string(source, "type"), reterr);
    if (r == 0 && !o->ref && streq0(abx_value_get_string(now.receipt, "trust"), "pinned")) {
        result = make_result(o->id, "pinned", abx_value_get_string(source, "commit"), NULL, NULL, true);
        r = result ? 0 : err_nomem(reterr);
        done = true;
    }
    if (r == 0 && !done) r = plan_new(&p, s, reterr);
    if (r == 0 && !done) {
        p->update = true;
        p->force = true;
        p->allow_unpinned = o->allow_unpinned;
        p->no_verify = o->no_verify;
        r = plan_new_version(p, s, o, &now, cancel, progress, user, &result, reterr);
        done = r == 1;
        if (r == 0 && o->consent == ABX_CONSENT_YES_FLAG) r = plan_trust(p, o->consent, reterr);
    }
    installed_done(&now);
    if (r < 0) return r;
    *ret_result = TAKE_PTR(result);
    if (!done) *ret = TAKE_PTR(p);
    return 0;
}
