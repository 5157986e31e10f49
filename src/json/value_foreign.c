/* Values made of what is no value yet: JSON text, and errors. */
#include <abx/error.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "json/json.h"

static inline void json_parserp(struct json_parser **p) {
    json_parser_free(*p);
}

int abx_value_parse(abx_value **ret, const char *text, size_t n, abx_error **reterr) {
    if (n > SIZE_MAX - JSON_PADDING) return err_nomem(reterr);
    _cleanup_(json_parserp) struct json_parser *parser = json_parser_new(n);
    _cleanup_free_ char *padded = calloc(1, n + JSON_PADDING);
    if (!parser || !padded) return err_nomem(reterr);
    if (n > 0) memcpy(padded, text, n);
    struct json_ref root;
    const char *why = NULL;
    int r = json_parse(parser, padded, n, &root, &why);
    if (r == 0) r = json_to_value(root, NULL, ret);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r < 0) return err_set(reterr, ABX_E_CONFIG, NULL, "This is not valid JSON: %s.", why ? why : "unknown");
    return 0;
}

/* Sets foreign text, made valid UTF-8 first when it is not. */
static int set_foreign(abx_value *object, const char *key, const char *s) {
    if (utf8_valid(s, strlen(s))) return abx_value_set_string(object, key, s);
    _cleanup_free_ char *clean = utf8_sanitize_str(s);
    return clean ? abx_value_set_string(object, key, clean) : -ENOMEM;
}

abx_value *abx_error_to_value(const abx_error *e) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    if (abx_value_set_string(v, "code", abx_error_id(e)) < 0 ||
        set_foreign(v, "message", abx_error_message(e)) < 0 ||
        set_foreign(v, "suggestion", abx_error_hint(e)) < 0 ||
        abx_value_set_string(v, "docs_url", "") < 0)
        return NULL;
    return TAKE_PTR(v);
}
