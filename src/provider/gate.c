/* The feature gate: what is not declared, or not implemented, is refused before anything is sent. */
#include "base/err.h"
#include "base/str.h"
#include "provider/call.h"

bool session_has_feature(const struct session *s, const char *feature) {
    return s->features ? strv_contains(s->features, feature) : manifest_has_feature(s->manifest, feature);
}

int gate_check(const struct session *s, const char *feature, const char *method, abx_error **reterr) {
    if (!feature || session_has_feature(s, feature)) return 0;
    _cleanup_free_ char *hint = str_printf("Run 'abx provider info %s' to see supported features.", s->manifest->id);
    abx_error *e = NULL;
    err_set(&e, ABX_E_FEATURE, hint, "Provider '%s' does not support '%s'.", s->manifest->id, feature);
    if (e) {
        err_set_provider(e, s->manifest->id);
        err_set_method(e, method);
        abx_value *data = abx_value_new_object();
        abx_value_set_string(data, "feature", feature);
        err_set_data(e, data, abx_value_unref);
    }
    return err_pass(reterr, e);
}
