/* Makes plans: fetch, validate, digest, and the words a person agrees to. */
#include "store/plan.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"

int plan_new(struct store_plan **ret, const struct store *s, abx_error **reterr) {
    _cleanup_plan_ struct store_plan *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(reterr);
    p->stage = STAGE_INIT;
    p->lock = STORE_LOCK_INIT;
    p->home = strdup(s->home);
    p->host_name = strdup(s->host_name ? s->host_name : "libabx");
    if (!p->home || !p->host_name) return err_nomem(reterr);
    p->store = (struct store){.home = p->home, .host_name = p->host_name, .log = s->log};
    int r = stage_new(&p->stage, s, reterr);
    if (r < 0) return r;
    p->tree = path_join(p->stage.path, "tree");
    if (!p->tree) return err_nomem(reterr);
    r = mkdir(p->tree, 0700) < 0 || chmod(p->tree, 0700) < 0 ? -errno : 0;
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the staging folder");
    *ret = TAKE_PTR(p);
    return 0;
}

struct store_plan *store_plan_free(struct store_plan *p) {
    if (!p) return NULL;
    if (p->state == PLAN_SWAPPED) store_plan_rollback(p, NULL);
    store_lock_release(&p->lock);
    stage_done(&p->stage);
    journal_done(&p->journal);
    source_done(&p->source);
    manifest_unref(p->manifest);
    abx_value_unref(p->source_value);
    abx_value_unref(p->consent);
    abx_value_unref(p->previous);
    abx_value_unref(p->changes);
    abx_value_unref(p->old_receipt);
    free(p->tree);
    free(p->home);
    free(p->host_name);
    free(p);
    return NULL;
}

const abx_value *store_plan_consent(struct store_plan *p) { return p->consent; }
const abx_value *store_plan_previous(struct store_plan *p) { return p->previous; }
bool store_plan_pinned(struct store_plan *p) { return streq(p->trust, "pinned"); }
bool store_plan_no_verify(struct store_plan *p) { return p->no_verify; }
const char *store_plan_id(struct store_plan *p) { return p->manifest->id; }

/* An update that changes nothing at risk needs none, when the moving ref was allowed by hand. */
bool store_plan_needs_consent(struct store_plan *p) {
    if (!p->update) return true;
    return abx_value_size(p->changes) > 0 || (streq(p->trust, "unpinned") && !p->allow_unpinned);
}

int plan_trust(const struct store_plan *p, abx_consent how, abx_error **reterr) {
    if (streq(p->trust, "unpinned") && how == ABX_CONSENT_YES_FLAG && !p->allow_unpinned) {
        _cleanup_free_ char *hint = str_printf("Pin it: --ref %s (or --sha256 <digest>); or pass --allow-unpinned to "
                                               "accept the current head.", p->commit);
        return err_set(reterr, ABX_E_TRUST, hint,
                       "Refusing an unpinned git source without review (--yes does not accept a moving ref).");
    }
    if (how == ABX_CONSENT_NONE && store_plan_needs_consent((struct store_plan *)p))
        return err_set(reterr, ABX_E_TRUST, "Nobody agreed: answer in a terminal, or re-run with --yes after reviewing.", p->update ? "Update cancelled." : "Installation cancelled.");
    return 0;
}

static int fetch_git(struct store_plan *p, const struct store *s, struct tree *t, bool insecure, const char *known_commit,
                     struct store_cancel *cancel, store_progress_fn progress, void *user, abx_error **reterr) {
    _cleanup_git_ struct git *g = NULL;
    int r = git_new(&g, s, p->stage.path, &p->source, insecure, cancel, progress, user, reterr);
    if (r == 0) r = git_fetch(g, p->commit, reterr);
    if (r < 0) return r;
    if (known_commit && streq(known_commit, p->commit)) return 1;
    r = git_export(g, p->commit, t, reterr);
    if (r < 0) return r;
    /* The repository is not needed any more and may be large. */
    _cleanup_free_ char *repo = path_join(p->stage.path, "git");
    if (repo) fs_remove_tree(repo);
    return 0;
}

int plan_fetch(struct store_plan *p, const struct store *s, bool insecure, const char *known_commit, struct store_cancel *cancel,
               store_progress_fn progress, void *user, abx_error **reterr) {
    if (p->link) return 0;
    _cleanup_tree_ struct tree *t = NULL;
    int r = tree_new(&t, p->tree, reterr);
    if (r < 0) return r;
    if (p->source.git)
        r = fetch_git(p, s, t, insecure, known_commit, cancel, progress, user, reterr);
    else
        r = tree_read_dir(t, p->source.path, cancel, reterr);
    if (r != 0) return r;
    r = tree_digest(t, p->sha256, reterr);
    return r < 0 ? r : tree_sync(t, reterr);
}

/* Anything but data/ under the id counts: a receipt that is broken hides none of it. */
static bool holds_more_than_data(const char *dir) {
    _cleanup_closedir_ DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (!streq(e->d_name, ".") && !streq(e->d_name, "..") && !streq(e->d_name, "data")) return true;
    return false;
}

int plan_look(const struct store_plan *p, bool *ret_existed, abx_value **ret_receipt, abx_error **reterr) {
    _cleanup_free_ char *dir = layout_path(&p->store, p->manifest->id);
    if (!dir) return err_nomem(reterr);
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_value_ abx_value *receipt = NULL;
    if (fs_exists(dir) && !layout_is_dir(dir))
        return err_set(reterr, ABX_E_INSTALL, "Move it away.", "'%s' is not a directory.", dir);
    if (receipt_read(&receipt, dir, p->manifest->id, &e) == -ENOMEM) return err_nomem(reterr);
    *ret_existed = receipt || e || holds_more_than_data(dir);
    *ret_receipt = TAKE_PTR(receipt);
    return 0;
}

int plan_examine(struct store_plan *p, const char *want_sha256, abx_error **reterr) {
    if (want_sha256 && p->link)
        return err_set(reterr, ABX_E_INSTALL, NULL, "--sha256 does not go with --link: linked code is not pinned.");
    if (want_sha256 && strcasecmp(want_sha256, p->sha256) != 0)
        return err_set(reterr, ABX_E_INTEGRITY, "Review the plugin source and pass the digest you verified.",
                       "Tree digest mismatch: expected %s, got %s.", want_sha256, p->sha256);
    if (p->link)
        p->trust = "link";
    else if (want_sha256)
        p->trust = "pinned";
    else if (!p->source.git)
        p->trust = "local";
    else
        p->trust = p->source.ref_is_commit ? "pinned" : "unpinned";
    int r = manifest_load(&p->manifest, p->link ? p->source.path : p->tree, true, reterr);
    if (r == 0) r = plan_look(p, &p->existed, &p->old_receipt, reterr);
    if (r < 0) return r;
    p->source_value = source_to_value(&p->source, p->link, p->commit);
    return p->source_value ? 0 : err_nomem(reterr);
}

static int compare_fields(const void *a, const void *b) {
    return strcmp((*(const struct manifest_field *const *)a)->key, (*(const struct manifest_field *const *)b)->key);
}

static abx_value *describe_fields(const struct manifest *m) {
    _cleanup_value_ abx_value *list = abx_value_new_array();
    _cleanup_free_ const struct manifest_field **sorted = calloc(m->field_count + 1, sizeof *sorted);
    if (!list || !sorted) return NULL;
    for (size_t i = 0; i < m->field_count; i++) sorted[i] = &m->fields[i];
    if (m->field_count) qsort(sorted, m->field_count, sizeof *sorted, compare_fields);
    for (size_t i = 0; i < m->field_count; i++) {
        abx_value *row = abx_value_new_object();
        int r = abx_value_set_string(row, "key", sorted[i]->key);
        r |= abx_value_set_bool(row, "secret", sorted[i]->secret);
        if (abx_value_append(list, row) < 0 || r) return NULL;
    }
    return TAKE_PTR(list);
}

/* Members of what is agreed to, in the order of the consent screen. Absent ones stay absent. */
static int take(abx_value *v, const abx_value *from, const char *const *keys) {
    int r = 0;
    for (; *keys && r == 0; keys++) {
        const abx_value *member = abx_value_get(from, *keys);
        if (member) r = abx_value_set(v, *keys, abx_value_ref(member));
    }
    return r;
}

/* What was agreed to before, and of which version from where. */
static int describe_previous(struct store_plan *p) {
    static const char *const about[] = {"version", "source", "tree_sha256", "trust", NULL};
    const abx_value *consented = abx_value_get(p->old_receipt, "consented");
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = v ? 0 : -ENOMEM;
    for (size_t i = 0; i < abx_value_size(consented) && r == 0; i++)
        r = abx_value_set(v, abx_value_key_at(consented, i), abx_value_ref(abx_value_at(consented, i)));
    if (r == 0) r = take(v, p->old_receipt, about);
    if (r == 0) p->previous = TAKE_PTR(v);
    return r;
}

int plan_describe(struct store_plan *p, abx_error **reterr) {
    static const char *const runtime[] = {"runtime", NULL};
    static const char *const contract[] = {"features",        "operation_contract_version", "operations",
                                           "workflow_inputs", "startup_modes",              "commands",
                                           "security",        NULL};
    static const char *const inherit[] = {"inherit", NULL};
    const struct manifest *m = p->manifest;
    _cleanup_value_ abx_value *now = manifest_consented(m);
    if (!now || (p->old_receipt && describe_previous(p) < 0)) return err_nomem(reterr);
    p->changes = receipt_changes(abx_value_get(p->old_receipt, "consented"), now);
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = abx_value_set_string(v, "id", m->id);
    r |= abx_value_set_string(v, "name", m->name ? m->name : m->id);
    r |= abx_value_set_string(v, "name_zh", m->name_zh ? m->name_zh : "");
    r |= abx_value_set_string(v, "version", m->version);
    r |= abx_value_set(v, "source", abx_value_ref(p->source_value));
    r |= abx_value_set_string(v, "tree_sha256", p->sha256);
    r |= abx_value_set_string(v, "trust", p->trust);
    r |= take(v, now, runtime);
    r |= abx_value_set_string(v, "kind", m->kind);
    r |= take(v, now, contract);
    r |= abx_value_set(v, "fields", describe_fields(m));
    r |= take(v, now, inherit);
    r |= abx_value_set(v, "changes", abx_value_ref(p->changes));
    if (r || !p->changes) return err_nomem(reterr);
    p->consent = TAKE_PTR(v);
    return 0;
}

/* Before anything is fetched: a pin that can't match is a slip of the hand, not an attack. */
static int check_sha256(const char *text, abx_error **reterr) {
    if (!text || (strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64)) return 0;
    _cleanup_free_ char *shown = tree_show_path(text, strlen(text));
    return err_set(reterr, ABX_E_CONFIG, "Pass the tree digest as the consent screen or 'abx provider info' shows it.",
                   "--sha256 needs 64 hexadecimal digits, not '%s'.", shown ? shown : "");
}

int store_plan_install(const struct store *s, const abx_install_opts *o, struct store_cancel *cancel, store_progress_fn progress,
                       void *user, struct store_plan **ret, abx_error **reterr) {
    _cleanup_plan_ struct store_plan *p = NULL;
    _cleanup_source_ struct source source = {0};
    int r = check_sha256(o->sha256, reterr);
    if (r == 0) r = source_parse(&source, o, reterr);
    if (r < 0) return r;
    if (o->link && o->consent == ABX_CONSENT_NONE)
        return err_set(reterr, ABX_E_TRUST, "Re-run with --yes after reviewing the directory.",
                       "--link requires --yes (the linked code is not pinned).");
    r = plan_new(&p, s, reterr);
    if (r < 0) return r;
    p->source = source;
    source = (struct source){0};
    p->link = o->link;
    p->force = o->force;
    p->allow_unpinned = o->allow_unpinned;
    p->no_verify = o->no_verify;
    r = plan_fetch(p, s, o->allow_insecure_transport, NULL, cancel, progress, user, reterr);
    if (r == 0) r = plan_examine(p, o->sha256, reterr);
    if (r < 0) return r;
    if (p->existed && !p->force)
        return err_set(reterr, ABX_E_CONFLICT, "Re-run with --force to replace it.",
                       "Provider id '%s' is already installed.", p->manifest->id);
    r = o->consent == ABX_CONSENT_YES_FLAG ? plan_trust(p, o->consent, reterr) : 0;
    if (r == 0) r = plan_describe(p, reterr);
    if (r < 0) return r;
    *ret = TAKE_PTR(p);
    return 0;
}
