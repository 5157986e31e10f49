/* Comparing what came with what was expected, and saying it in a line that is safe to print. */
#include "contract/test.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Enough to see what it is; reports are read by people. */
#define SHOWN_BYTES 80
#define SHOWN_PART 16

/* Whether the sanitizer of foreign text would leave the character alone. */
static bool printable(const char *s, size_t n) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    return utf8_sanitize(&b, s, n, false) == 0 && b.len == n && memcmp(b.data, s, n) == 0;
}

char *show_bytes(abx_bytes bytes) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    const char *s = (const char *)bytes.data;
    size_t i = 0;
    buf_char(&b, '"');
    while (i < bytes.len && i < SHOWN_BYTES) {
        uint32_t cp;
        size_t n = utf8_decode(s + i, bytes.len - i, &cp);
        if (s[i] == '\n')
            buf_str(&b, "\\n");
        else if (s[i] == '"' || s[i] == '\\')
            buf_printf(&b, "\\%c", s[i]);
        else if (n && s[i] != '\t' && printable(s + i, n))
            buf_append(&b, s + i, n);
        else
            for (size_t k = 0; k < (n ?: 1); k++) buf_printf(&b, "\\x%02x", (unsigned char)s[i + k]);
        i += n ?: 1;
    }
    buf_char(&b, '"');
    if (i < bytes.len) buf_printf(&b, "… (%zu bytes)", bytes.len);
    return buf_take(&b) ?: strdup("?");
}

char *show_value(const abx_value *v) {
    if (abx_value_is(v, ABX_TYPE_STRING) || abx_value_is(v, ABX_TYPE_BYTES)) return show_bytes(abx_value_bytes(v));
    _cleanup_free_ char *text = v ? abx_value_print(v, ABX_PRINT_SPACED, NULL) : strdup("nothing");
    _cleanup_free_ char *clean = text ? utf8_sanitize_str(text) : NULL;
    if (!clean) return strdup("?");
    if (strlen(clean) <= 2 * SHOWN_BYTES) return TAKE_PTR(clean);
    size_t n = 2 * SHOWN_BYTES;
    n -= utf8_incomplete_tail(clean, n);
    return str_printf("%.*s…", (int)n, clean) ?: strdup("?");
}

void check_int(struct test *t, const char *what, int64_t came, int64_t expected) {
    if (came != expected) test_fail(t, "%s: expected %" PRId64 ", came %" PRId64, what, expected, came);
}

void check_bytes(struct test *t, const char *what, abx_bytes came, abx_bytes expected) {
    size_t n = MIN_OF(came.len, expected.len), at = 0;
    if (!test_ok(t) || (came.len == expected.len && (n == 0 || memcmp(came.data, expected.data, n) == 0))) return;
    while (at < n && came.data[at] == expected.data[at]) at++;
    /* Of long ones the place where they part says more than their beginnings. */
    bool longer = expected.len > SHOWN_BYTES;
    size_t from = longer ? at : 0, most = longer ? SHOWN_PART : SIZE_MAX;
    _cleanup_free_ char *a = show_bytes((abx_bytes){expected.data + from, MIN_OF(expected.len - from, most)});
    _cleanup_free_ char *b = show_bytes((abx_bytes){came.data ? came.data + from : NULL, MIN_OF(came.len - from, most)});
    if (longer)
        test_fail(t, "%s: expected %zu bytes, came %zu; at byte %zu expected %s, came %s", what, expected.len, came.len, at, a,
                  b);
    else
        test_fail(t, "%s: expected %s, came %s", what, a, b);
}

void check_text(struct test *t, const char *what, const abx_value *came, const char *expected) {
    if (!test_ok(t)) return;
    if (abx_value_is(came, ABX_TYPE_STRING)) return check_bytes(t, what, abx_value_bytes(came), bytes_of(expected));
    _cleanup_free_ char *a = show_bytes(bytes_of(expected)), *b = show_value(came);
    test_fail(t, "%s: expected %s, came %s", what, a, b);
}
