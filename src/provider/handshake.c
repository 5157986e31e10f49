/* What initialize answered, held against the manifest (epp.md, "Handshake"). */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "provider/call.h"

static int differs(const struct manifest *m, const char *what, abx_error **reterr) {
    return err_set(reterr, ABX_E_VERSION, "Reinstall the provider; its manifest and its program are of different versions.",
                   "Provider '%s': %s of the handshake differs from its manifest.", m->id, what);
}

/* Equal as sets of strings. */
static bool same(char *const *want, const abx_value *have) {
    if (!abx_value_is(have, ABX_TYPE_ARRAY) || abx_value_size(have) != strv_len(want)) return false;
    for (size_t i = 0; i < abx_value_size(have); i++) {
        const char *item = abx_value_string(abx_value_at(have, i));
        if (!item || !strv_contains(want, item)) return false;
    }
    return true;
}

static int check_contract(const struct manifest *m, const abx_value *result, abx_error **reterr) {
    if (!m->has_contract) return 0;
    const abx_value *ops = abx_value_get(result, "operations");
    if (abx_value_int(abx_value_get(result, "operation_contract_version"), -1) != 1)
        return differs(m, "operation_contract_version", reterr);
    if (!same(m->operations_cli, abx_value_get(ops, "cli")) || !same(m->operations_python, abx_value_get(ops, "python")))
        return differs(m, "operations", reterr);
    if (!same(m->workflow_inputs, abx_value_get(result, "workflow_inputs"))) return differs(m, "workflow_inputs", reterr);
    if (!same(m->startup_modes, abx_value_get(result, "startup_modes"))) return differs(m, "startup_modes", reterr);
    return 0;
}

int handshake_check(const struct session *s, const abx_value *result, char ***ret_features, abx_error **reterr) {
    const struct manifest *m = s->manifest;
    if (!abx_value_is(result, ABX_TYPE_OBJECT))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "Provider '%s': the answer to initialize is not an object.", m->id);
    const char *protocol = abx_value_get_string(result, "protocol");
    if (!streq0(protocol, m->protocol)) {
        _cleanup_buf_ struct buf b = BUF_INIT(0);
        const char *shown = secrets_clean(&s->secrets, protocol ?: "none", strlen(protocol ?: "none"), &b) < 0 ? NULL : buf_cstr(&b);
        return err_set(reterr, ABX_E_VERSION, "Install a version of the provider made for this protocol, or update abx.",
                       "Provider '%s' answered protocol '%s', expected '%s'.", m->id, shown ?: "?", m->protocol);
    }
    int r = check_contract(m, result, reterr);
    if (r < 0) return r;
    const abx_value *list = abx_value_get(result, "features");
    if (list && !abx_value_is(list, ABX_TYPE_ARRAY) && !abx_value_is(list, ABX_TYPE_NULL))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "Provider '%s': features of the handshake is not an array.", m->id);
    _cleanup_strv_ char **features = NULL;
    bool all = abx_value_size(list) == 0;
    for (size_t i = 0; m->features && m->features[i]; i++) {
        bool has = all;
        for (size_t k = 0; !has && k < abx_value_size(list); k++)
            has = streq0(abx_value_string(abx_value_at(list, k)), m->features[i]);
        if (has && strv_append(&features, m->features[i]) < 0) return err_nomem(reterr);
    }
    if (!features && !(features = calloc(1, sizeof *features))) return err_nomem(reterr);
    *ret_features = TAKE_PTR(features);
    return 0;
}
