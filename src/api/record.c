/* Sandbox records: what a plugin says about a sandbox, checked and in one form (epp.md, "Records"). */
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "api/record.h"
#include "base/util.h"

static const char *const statuses[] = {"creating", "running", "paused", "pausing", "stopping", "stopped", "error"};

static const char *known_status(const char *s) {
    for (size_t i = 0; s && i < ARRAY_SIZE(statuses); i++)
        if (streq(s, statuses[i])) return s;
    return "running";
}

static int copy_string(abx_value *to, const abx_value *from, const char *key) {
    const char *s = abx_value_get_string(from, key);
    return abx_value_set_string(to, key, s ?: "");
}

static int copy_time(abx_value *to, const abx_value *from, const char *key) {
    int64_t us;
    const char *s = abx_value_get_string(from, key);
    return abx_value_set_string(to, key, s && time_parse_rfc3339(s, &us) == 0 ? s : NULL);
}

/* Values that are no strings are dropped: metadata is text to text. */
static abx_value *copy_metadata(const abx_value *from) {
    abx_value *to = abx_value_new_object();
    for (size_t i = 0; i < abx_value_size(from); i++) {
        const char *key = abx_value_key_at(from, i);
        if (key && abx_value_string(abx_value_at(from, i))) abx_value_set(to, key, abx_value_ref(abx_value_at(from, i)));
    }
    return to;
}

int record_check(const abx_value *raw, abx_value **ret, abx_error **reterr) {
    if (!abx_value_is(raw, ABX_TYPE_OBJECT))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "returned a sandbox record that is not an object.");
    const char *id = abx_value_get_string(raw, "sandbox_id");
    if (!id || !*id) return err_set(reterr, ABX_E_PROTOCOL, NULL, "returned a sandbox without an id.");
    _cleanup_value_ abx_value *v = abx_value_new_object();
    const char *url = abx_value_get_string(raw, "envd_url") ?: abx_value_get_string(raw, "url");
    int r = abx_value_set_string(v, "sandbox_id", id);
    if (r == 0) r = copy_string(v, raw, "template");
    if (r == 0) r = abx_value_set_string(v, "status", known_status(abx_value_get_string(raw, "status")));
    if (r == 0) r = abx_value_set(v, "metadata", copy_metadata(abx_value_get(raw, "metadata")));
    if (r == 0) r = abx_value_set_string(v, "envd_url", url ?: "");
    if (r == 0) r = copy_time(v, raw, "created_at");
    if (r == 0) r = copy_time(v, raw, "expires_at");
    if (r == 0) r = copy_string(v, raw, "region");
    if (r == 0 && abx_value_get_string(raw, "envd_access_token")) {
        abx_value *token = abx_value_ref(abx_value_get(raw, "envd_access_token"));
        abx_value_mark_secret(token);
        r = abx_value_set(v, "envd_access_token", token);
    }
    if (r < 0) return err_nomem(reterr);
    *ret = TAKE_PTR(v);
    return 0;
}

int shape_record(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again;
    abx_value *checked = NULL;
    int r = record_check(*value, &checked, reterr);
    if (r < 0) return r;
    abx_value_unref(*value);
    *value = checked;
    return 0;
}
