/* A plugin's JSON-RPC error as one of ours (epp.md, "Errors"), cleaned and redacted. */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "provider/call.h"

/* What an sdk_code of a plugin may become. */
static const int mapped[] = {1001, 1002, 1003, 1004, 2000, 2001, 2002, 2003, 2009, 3001, 4001, 4002, 5000, 5001};

static int sdk_code(const abx_value *data) {
    const char *s = abx_value_get_string(data, "sdk_code");
    long long n;
    if (!s || s[0] != 'E' || str_to_i64(s + 1, &n) < 0) return 0;
    for (size_t i = 0; i < ARRAY_SIZE(mapped); i++)
        if (mapped[i] == n) return (int)-n;
    return 0;
}

static int map_code(const struct method *m, int code, int sdk) {
    switch (code) {
    case -32000: return sdk ? sdk : ABX_E_PROVIDER;
    case -32001: return sdk ? sdk : ABX_E_AUTHENTICATION;
    case -32002: return sdk ? sdk : m && (m->traits & SANDBOX) ? ABX_E_SANDBOX_NOT_FOUND : ABX_E_RESOURCE_NOT_FOUND;
    case -32003: return ABX_E_FEATURE;
    case -32004: return ABX_E_QUOTA;
    case -32005: return ABX_E_TIMEOUT;
    case -32006: return ABX_E_CONFIG;
    default: return ABX_E_PROTOCOL;
    }
}

/* Foreign text, safe to show; "" for none. */
static char *clean(const struct session *s, const char *text) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (text && secrets_clean(&s->secrets, text, strlen(text), &b) < 0) return NULL;
    return buf_take(&b);
}

/* The plugin's data with every string cleaned: it is shown by --json and by bindings. */
static abx_value *clean_value(const struct session *s, const abx_value *v) {
    if (abx_value_is(v, ABX_TYPE_STRING)) {
        _cleanup_free_ char *text = clean(s, abx_value_string(v));
        return text ? abx_value_new_string(text) : NULL;
    }
    if (abx_value_is(v, ABX_TYPE_ARRAY)) {
        abx_value *a = abx_value_new_array();
        for (size_t i = 0; i < abx_value_size(v); i++) abx_value_append(a, clean_value(s, abx_value_at(v, i)));
        return a;
    }
    if (abx_value_is(v, ABX_TYPE_OBJECT)) {
        abx_value *o = abx_value_new_object();
        for (size_t i = 0; i < abx_value_size(v); i++) {
            _cleanup_free_ char *key = clean(s, abx_value_key_at(v, i));
            if (key) abx_value_set(o, key, clean_value(s, abx_value_at(v, i)));
        }
        return o;
    }
    return abx_value_ref(v);
}

abx_error *errmap(const struct session *s, const struct method *m, int code, const char *message, const abx_value *data) {
    if (m && (m->traits & KILL) && code == -32002) return NULL;
    int to = map_code(m, code, sdk_code(data));
    _cleanup_free_ char *text = clean(s, message), *hint = NULL;
    const char *suggestion = abx_value_get_string(data, "suggestion");
    if (suggestion && *suggestion) hint = clean(s, suggestion);
    if (!hint && to == ABX_E_FEATURE) hint = str_printf("Run 'abx provider info %s' to see supported features.", s->manifest->id);
    _cleanup_free_ char *bare = NULL;
    if (!text || !*text) bare = str_printf("Provider '%s' answered '%s' with error %d.", s->manifest->id, m ? m->name : "initialize", code);
    abx_error *e = NULL;
    err_set(&e, to, hint, "%s", bare ?: text);
    if (!e) return NULL;
    err_set_provider(e, s->manifest->id);
    if (m) err_set_method(e, m->name);
    err_set_retryable(e, abx_value_bool(abx_value_get(data, "retryable")),
                      (int)abx_value_int(abx_value_get(data, "retry_after_ms"), -1));
    if (data) err_set_data(e, clean_value(s, data), abx_value_unref);
    return e;
}
