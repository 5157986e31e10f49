/* Ports: where a port of a sandbox can be reached. */
#include "api/api.h"

/* {"url", "headers"}; a URL without a scheme would be guessed at by every caller. */
static int shape_url(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again;
    const char *url = abx_value_get_string(*value, "url");
    const abx_value *headers = abx_value_get(*value, "headers");
    if (!url || !*url) return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered ports.url without a url.");
    _cleanup_value_ abx_value *v = abx_value_new_object();
    if (abx_value_set_string(v, "url", url) < 0 ||
        abx_value_set(v, "headers", abx_value_is(headers, ABX_TYPE_OBJECT) ? abx_value_ref(headers) : abx_value_new_object()) < 0)
        return err_nomem(reterr);
    abx_value_unref(*value);
    *value = TAKE_PTR(v);
    return 0;
}

int abx_ports_url_start(abx_op **ret, abx_sandbox *sb, int port, abx_error **reterr) {
    if (port < 1 || port > 65535) return err_set(reterr, ABX_E_CONFIG, NULL, "%d is no port: 1 to 65535.", port);
    abx_value *params = abx_value_new_object();
    abx_value_set_int(params, "port", port);
    struct call_opts o = {.shape = shape_url};
    return sandbox_call(ret, sb, "ports.url", params, &o, reterr);
}
