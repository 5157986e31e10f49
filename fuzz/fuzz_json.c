/* Any bytes as JSON: what is taken must print and read back the same. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "fuzz_main.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct json_parser *parser;
    _cleanup_free_ char *text = malloc(n + JSON_PADDING);
    _cleanup_value_ abx_value *v = NULL, *again = NULL, *bytes = NULL;
    struct json_ref root;
    if (!parser) parser = json_parser_new(LIMIT_LINE);
    if (!parser || !text) return 0;
    if (n > 0) memcpy(text, data, n);
    memset(text + n, 0, JSON_PADDING);
    if (json_parse(parser, text, n, &root, NULL) < 0 || json_to_value(root, NULL, &v) < 0) return 0;
    if (json_to_value(root, &(struct json_bytes){.key = "data"}, &bytes) < 0 && !abx_value_get(v, "data")) abort();
    for (unsigned flags = 0; flags < 16; flags++) {
        size_t len;
        _cleanup_free_ char *out = abx_value_print(v, flags, &len);
        if (!out || abx_value_parse(&again, out, len, NULL) < 0 || !abx_value_equal(v, again)) abort();
        again = abx_value_unref(again);
    }
    return 0;
}
