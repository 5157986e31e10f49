/* Receipts: read with checks, written byte for byte as the other hosts do. */
#include "store/receipt.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"

#define RECEIPT_VERSION 1

static const char *const known[] = {"receipt_version", "id",       "version",   "source",       "tree_sha256",
                                    "manifest_sha256", "trust",    "consented", "installed_at", "installed_by",
                                    NULL};
static const char *const trusts[] = {"pinned", "unpinned", "local", "link", NULL};

static bool is_one_of(const char *s, const char *const *list) {
    for (; s && *list; list++)
        if (streq(s, *list)) return true;
    return false;
}

static bool is_digest(const char *s) {
    return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

/* What is wrong with it, or NULL. */
static const char *find_fault(const abx_value *v, const char *id) {
    if (!abx_value_is(v, ABX_TYPE_OBJECT)) return "it is no object";
    int64_t version = abx_value_int(abx_value_get(v, "receipt_version"), 0);
    if (version > RECEIPT_VERSION) return "receipt_version is of a newer host";
    if (version != RECEIPT_VERSION) return "receipt_version is missing";
    if (!streq0(abx_value_get_string(v, "id"), id)) return "id is of another provider";
    if (!abx_value_get_string(v, "version")) return "version is missing";
    const char *trust = abx_value_get_string(v, "trust");
    if (!is_one_of(trust, trusts)) return "trust is not known";
    const abx_value *source = abx_value_get(v, "source");
    const char *type = abx_value_get_string(source, "type");
    if (!type) return "source is missing";
    bool link = streq(type, "link");
    if (link != streq(trust, "link")) return "source and trust do not agree";
    const char *path = abx_value_get_string(source, "path");
    if (link && (!path || *path != '/')) return "source.path is missing";
    if (!link && !is_digest(abx_value_get_string(v, "tree_sha256"))) return "tree_sha256 is missing";
    if (!abx_value_is(abx_value_get(v, "consented"), ABX_TYPE_OBJECT)) return "consented is missing";
    return NULL;
}

int receipt_read(abx_value **ret, const char *dir, const char *id, abx_error **reterr) {
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? -ENOENT
                       : err_errno(reterr, ABX_E_INTEGRITY, -errno, "Cannot open '%s'", dir);
    _cleanup_free_ char *text = NULL;
    size_t n;
    int r = fs_read_at(fd, RECEIPT_NAME, LIMIT_RECEIPT, &text, &n);
    if (r == -ENOENT) return r;
    if (r == -ELOOP || r == -EISDIR || r == -EINVAL || r == -ENXIO)
        return err_set(reterr, ABX_E_INTEGRITY, "Find out who changed it; then reinstall it with 'abx provider install --force <source>'.",
                       "Provider '%s': the install receipt '%s/%s' is not a regular file.", id, dir, RECEIPT_NAME);
    if (r < 0) return err_errno(reterr, ABX_E_INTEGRITY, r, "Provider '%s': cannot read %s", id, RECEIPT_NAME);
    _cleanup_value_ abx_value *v = NULL;
    _cleanup_error_ abx_error *e = NULL;
    const char *fault = abx_value_parse(&v, text, n, &e) < 0 ? "it is no valid JSON" : find_fault(v, id);
    if (fault)
        return err_set(reterr, ABX_E_INTEGRITY, "Reinstall it with 'abx provider install --force <source>'.",
                       "Provider '%s': the install receipt is not valid (%s).", id, fault);
    *ret = TAKE_PTR(v);
    return 0;
}

int receipt_write(const char *dir, const abx_value *receipt, abx_error **reterr) {
    size_t n;
    _cleanup_free_ char *text = abx_value_print(receipt, ABX_PRINT_PRETTY | ABX_PRINT_SORTED, &n);
    _cleanup_free_ char *path = path_join(dir, RECEIPT_NAME);
    if (!text || !path) return err_nomem(reterr);
    char *line = realloc(text, n + 2);
    if (!line) return err_nomem(reterr);
    text = line;
    memcpy(text + n, "\n", 2);
    int r = fs_write_atomic(path, text, n + 1, 0600);
    return r < 0 ? err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the install receipt") : 0;
}

static int keep_unknown(abx_value *v, const abx_value *old) {
    for (size_t i = 0; i < abx_value_size(old); i++) {
        const char *key = abx_value_key_at(old, i);
        if (is_one_of(key, known)) continue;
        int r = abx_value_set(v, key, abx_value_ref(abx_value_at(old, i)));
        if (r < 0) return r;
    }
    return 0;
}

abx_value *receipt_new(const struct manifest *m, const abx_value *source, const char *tree_sha256, const char *trust,
                       const char *tool, const abx_value *old) {
    char now[TIME_RFC3339];
    time_rfc3339_now(now);
    _cleanup_value_ abx_value *v = abx_value_new_object();
    _cleanup_value_ abx_value *by = abx_value_new_object();
    int r = abx_value_set_string(by, "tool", tool);
    r |= abx_value_set_int(v, "receipt_version", RECEIPT_VERSION);
    r |= abx_value_set_string(v, "id", m->id);
    r |= abx_value_set_string(v, "version", m->version);
    r |= abx_value_set(v, "source", abx_value_ref(source));
    r |= abx_value_set_string(v, "tree_sha256", tree_sha256);
    r |= abx_value_set_string(v, "manifest_sha256", m->sha256);
    r |= abx_value_set_string(v, "trust", trust);
    r |= abx_value_set(v, "consented", manifest_consented(m));
    r |= abx_value_set_string(v, "installed_at", now);
    r |= abx_value_set(v, "installed_by", TAKE_PTR(by));
    if (r == 0) r = keep_unknown(v, old);
    return r ? NULL : TAKE_PTR(v);
}

/* True when every string of now is in before: fewer keys are no new risk. */
static bool only_fewer(const abx_value *before, const abx_value *now) {
    for (size_t i = 0; i < abx_value_size(now); i++) {
        bool found = false;
        for (size_t k = 0; k < abx_value_size(before) && !found; k++)
            found = abx_value_equal(abx_value_at(before, k), abx_value_at(now, i));
        if (!found) return false;
    }
    return true;
}

/* An older receipt leaves out lists that are empty. */
static bool same(const abx_value *a, const abx_value *b) {
    if (a && b) return abx_value_equal(a, b);
    const abx_value *one = a ? a : b;
    return !one || (abx_value_is(one, ABX_TYPE_ARRAY) && abx_value_size(one) == 0);
}

abx_value *receipt_changes(const abx_value *before, const abx_value *now) {
    static const char *const keys[] = {"runtime",  "security",        "features",      "operation_contract_version",
                                       "operations", "workflow_inputs", "startup_modes", "inherit",
                                       "fields",   "commands"};
    _cleanup_value_ abx_value *list = abx_value_new_array();
    if (!list) return NULL;
    for (size_t i = 0; before && i < ARRAY_SIZE(keys); i++) {
        const abx_value *a = abx_value_get(before, keys[i]), *b = abx_value_get(now, keys[i]);
        bool equal = streq(keys[i], "inherit") ? only_fewer(a, b) : same(a, b);
        if (!equal && abx_value_append_string(list, keys[i]) < 0) return NULL;
    }
    return TAKE_PTR(list);
}
