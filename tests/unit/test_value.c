/* abx_value: ownership, limits, getters, printing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "json/json.h"

static void assert_prints(const abx_value *v, unsigned flags, const char *want) {
    size_t n = 0;
    _cleanup_free_ char *text = abx_value_print(v, flags, &n);
    assert_non_null(text);
    assert_string_equal(text, want);
    assert_int_equal(n, strlen(want));
}

static void test_build_and_get(void **state) {
    (void)state;
    _cleanup_value_ abx_value *o = abx_value_new_object();
    assert_int_equal(abx_value_set_string(o, "s", "text"), 0);
    assert_int_equal(abx_value_set_string(o, "none", NULL), 0);
    assert_int_equal(abx_value_set_int(o, "i", -5), 0);
    assert_int_equal(abx_value_set_bool(o, "b", 7), 0);
    assert_int_equal(abx_value_set_int(o, "s2", 1), 0);
    assert_int_equal(abx_value_set_int(o, "i", 6), 0); /* replaced where it stands */
    assert_int_equal(abx_value_size(o), 5);
    assert_string_equal(abx_value_key_at(o, 2), "i");
    assert_int_equal(abx_value_int(abx_value_at(o, 2), 0), 6);
    assert_string_equal(abx_value_get_string(o, "s"), "text");
    assert_null(abx_value_get_string(o, "i"));
    assert_null(abx_value_get(o, "absent"));
    assert_true(abx_value_is(abx_value_get(o, "none"), ABX_TYPE_NULL));
    assert_int_equal(abx_value_bool(abx_value_get(o, "b")), 1);
    assert_null(abx_value_at(o, 5));
    assert_prints(o, 0, "{\"s\":\"text\",\"none\":null,\"i\":6,\"b\":true,\"s2\":1}");
}

static void test_null_is_harmless(void **state) {
    (void)state;
    assert_null(abx_value_unref(NULL));
    assert_null(abx_value_ref(NULL));
    abx_value_mark_secret(NULL);
    assert_int_equal(abx_value_type(NULL), ABX_TYPE_NULL);
    assert_int_equal(abx_value_is(NULL, ABX_TYPE_NULL), 0);
    assert_int_equal(abx_value_int(NULL, 3), 3);
    assert_null(abx_value_string(NULL));
    assert_null(abx_value_bytes(NULL).data);
    assert_null(abx_value_get(NULL, "k"));
    assert_int_equal(abx_value_size(NULL), 0);
    assert_int_equal(abx_value_set_int(NULL, "k", 1), -ENOMEM);
    _cleanup_value_ abx_value *o = abx_value_new_object();
    assert_int_equal(abx_value_set(o, "k", NULL), -ENOMEM);
    assert_prints(NULL, 0, "null");
}

static void test_only_the_sole_owner_fills(void **state) {
    (void)state;
    _cleanup_value_ abx_value *a = abx_value_new_array(), *parent = abx_value_new_array();
    abx_value *other = abx_value_ref(a);
    assert_int_equal(abx_value_append_string(a, "x"), -EBUSY);
    abx_value_unref(other);
    assert_int_equal(abx_value_append_string(a, "x"), 0);
    assert_int_equal(abx_value_append(parent, abx_value_ref(a)), 0);
    assert_int_equal(abx_value_append_string(a, "y"), -EBUSY);
    assert_int_equal(abx_value_append(parent, abx_value_ref(parent)), -EBUSY); /* no cycle */
    /* What is in a container is final, also when its maker still knows where it is. */
    abx_value *inner = abx_value_new_object();
    assert_int_equal(abx_value_append(parent, inner), 0);
    assert_int_equal(abx_value_set_int(inner, "k", 1), -EBUSY);
}

static void test_wrong_targets(void **state) {
    (void)state;
    _cleanup_value_ abx_value *a = abx_value_new_array(), *o = abx_value_new_object(), *i = abx_value_new_int(1);
    assert_int_equal(abx_value_set_int(a, "k", 1), -EINVAL);
    assert_int_equal(abx_value_append_string(o, "k"), -EINVAL);
    assert_int_equal(abx_value_append_string(i, "k"), -EINVAL);
    assert_int_equal(abx_value_set_int(o, "\xff", 1), -EINVAL);
    assert_int_equal(abx_value_set_string(o, "k", "\xc3"), -EINVAL);
    assert_null(abx_value_new_string("\xed\xa0\x80"));
    assert_null(abx_value_new_double(INFINITY));
    assert_null(abx_value_new_double(NAN));
    assert_int_equal(abx_value_size(o) + abx_value_size(a), 0);
}

static void test_depth_is_bounded(void **state) {
    (void)state;
    _cleanup_value_ abx_value *v = abx_value_new_array();
    for (int depth = 2; depth <= LIMIT_JSON_DEPTH; depth++) {
        abx_value *outer = abx_value_new_array();
        assert_int_equal(abx_value_append(outer, TAKE_PTR(v)), 0);
        v = outer;
    }
    _cleanup_value_ abx_value *over = abx_value_new_object();
    assert_int_equal(abx_value_set(over, "k", abx_value_ref(v)), -E2BIG);
    assert_int_equal(abx_value_size(over), 0);
}

static void test_many_keys(void **state) {
    (void)state;
    _cleanup_value_ abx_value *o = abx_value_new_object(), *back = abx_value_new_object();
    char key[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(abx_value_set_int(o, key, i), 0);
        snprintf(key, sizeof(key), "k%d", 4999 - i);
        assert_int_equal(abx_value_set_int(back, key, 4999 - i), 0);
    }
    assert_int_equal(abx_value_set_int(o, "k77", 77), 0);
    assert_int_equal(abx_value_size(o), 5000);
    assert_string_equal(abx_value_key_at(o, 4999), "k4999");
    assert_int_equal(abx_value_int(abx_value_get(o, "k4321"), 0), 4321);
    assert_null(abx_value_get(o, "k5000"));
    assert_true(abx_value_equal(o, back));
    assert_int_equal(abx_value_set_int(back, "k9", 0), 0);
    assert_false(abx_value_equal(o, back));
}

static void test_numbers(void **state) {
    (void)state;
    _cleanup_value_ abx_value *whole = abx_value_new_double(3.0), *half = abx_value_new_double(0.5),
                              *big = abx_value_new_uint(UINT64_MAX), *small = abx_value_new_uint(5),
                              *huge = abx_value_new_double(1e19), *neg = abx_value_new_int(-1);
    assert_int_equal(abx_value_int(whole, 0), 3);
    assert_int_equal(abx_value_int(half, -9), -9);
    assert_int_equal(abx_value_int(big, -9), -9);
    assert_int_equal(abx_value_int(huge, -9), -9);
    assert_true(abx_value_uint(huge, 0) == 10000000000000000000u);
    assert_true(abx_value_uint(big, 0) == UINT64_MAX);
    assert_int_equal(abx_value_uint(neg, 4), 4);
    assert_int_equal(abx_value_type(big), ABX_TYPE_UINT);
    assert_int_equal(abx_value_type(small), ABX_TYPE_INT);
    assert_true(abx_value_double(small, 0) == 5.0);
    assert_prints(big, 0, "18446744073709551615");
    _cleanup_value_ abx_value *min = abx_value_new_int(INT64_MIN);
    assert_prints(min, 0, "-9223372036854775808");
}

static void test_doubles_as_python(void **state) {
    (void)state;
    static const struct { double d; const char *text; } rows[] = {
        {0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {0.1, "0.1"}, {-2.5, "-2.5"}, {100.0, "100.0"},
        {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {123456789012345680.0, "1.2345678901234568e+17"},
        {1e22, "1e+22"}, {0.0001, "0.0001"}, {0.00012345, "0.00012345"}, {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"}, {5e-324, "5e-324"}, {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.30000000000000004, "0.30000000000000004"}, {9007199254740993.0, "9007199254740992.0"},
        {1234.5678, "1234.5678"}, {2.2250738585072014e-308, "2.2250738585072014e-308"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_value_ abx_value *v = abx_value_new_double(rows[i].d);
        assert_prints(v, 0, rows[i].text);
    }
}

static void test_doubles_read_back(void **state) {
    (void)state;
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 20000; i++) {
        double d;
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&d, &bits, sizeof(d));
        if (!isfinite(d)) continue;
        _cleanup_value_ abx_value *v = abx_value_new_double(d);
        _cleanup_free_ char *text = abx_value_print(v, 0, NULL);
        assert_true(strtod(text, NULL) == d);
    }
}

static void test_layouts(void **state) {
    (void)state;
    abx_error *e = NULL;
    _cleanup_value_ abx_value *v = NULL;
    const char *text = "{\"b\":[1,{\"x\":null}],\"a\":{},\"\xc3\xa9\":[],\"B\":\"y\"}";
    assert_int_equal(abx_value_parse(&v, text, strlen(text), &e), 0);
    assert_prints(v, ABX_PRINT_COMPACT, text);
    assert_prints(v, ABX_PRINT_SPACED, "{\"b\": [1, {\"x\": null}], \"a\": {}, \"\xc3\xa9\": [], \"B\": \"y\"}");
    assert_prints(v, ABX_PRINT_SORTED, "{\"B\":\"y\",\"a\":{},\"b\":[1,{\"x\":null}],\"\xc3\xa9\":[]}");
    assert_prints(v, ABX_PRINT_PRETTY,
                  "{\n  \"b\": [\n    1,\n    {\n      \"x\": null\n    }\n  ],\n  \"a\": {},\n"
                  "  \"\xc3\xa9\": [],\n  \"B\": \"y\"\n}");
}

static void test_escapes(void **state) {
    (void)state;
    _cleanup_value_ abx_value *v = abx_value_new_string("\"\\\n\r\t\b\f\x01\x1f\x7f/\xe2\x80\xa8\xf0\x9f\x98\x80");
    assert_prints(v, 0, "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001f\x7f/\xe2\x80\xa8\xf0\x9f\x98\x80\"");
    _cleanup_value_ abx_value *nul = abx_value_new_string_n("a\0b", 3);
    assert_prints(nul, 0, "\"a\\u0000b\"");
    /* Every place a character can have within the eight bytes looked at together. */
    for (size_t at = 0; at < 24; at++) {
        for (unsigned c = 0; c < 0x80; c++) {
            char text[25], want[64];
            memset(text, 'x', 24);
            text[at] = (char)c;
            const char *esc = c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
            _cleanup_buf_ struct buf out = BUF_INIT(0);
            assert_int_equal(json_write_string(&out, text, 24), 0);
            if (esc) {
                snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, "xxxxxxxxxxxxxxxxxxxxxxxx", esc,
                         (int)(23 - at), "xxxxxxxxxxxxxxxxxxxxxxxx");
                assert_int_equal(out.len, strlen(want));
                assert_memory_equal(out.data, want, out.len);
            } else if (c >= 0x20) {
                assert_int_equal(out.len, 26);
                assert_memory_equal(out.data + 1, text, 24);
            } else {
                assert_true(out.len > 26);
                assert_int_equal(out.data[at + 1], '\\');
            }
        }
    }
}

static void test_bytes_and_secrets(void **state) {
    (void)state;
    _cleanup_value_ abx_value *o = abx_value_new_object(), *hidden = abx_value_new_object();
    assert_int_equal(abx_value_set(o, "data", abx_value_new_bytes("\0\xff" "a", 3)), 0);
    assert_int_equal(abx_value_set(o, "empty", abx_value_new_bytes(NULL, 0)), 0);
    assert_int_equal(abx_value_set_string(hidden, "token", "hunter2"), 0);
    abx_value_mark_secret(hidden);
    assert_true(abx_value_is_secret(abx_value_get(hidden, "token")));
    assert_int_equal(abx_value_set(o, "auth", abx_value_ref(hidden)), 0);
    assert_prints(o, 0, "{\"data\":\"AP9h\",\"empty\":\"\",\"auth\":\"***\"}");
    assert_prints(o, ABX_PRINT_SECRETS, "{\"data\":\"AP9h\",\"empty\":\"\",\"auth\":{\"token\":\"hunter2\"}}");
    abx_bytes b = abx_value_bytes(abx_value_get(o, "data"));
    assert_int_equal(b.len, 3);
    assert_null(abx_value_string(abx_value_get(o, "data")));
    assert_int_equal(abx_value_bytes(abx_value_get(hidden, "token")).len, 7);
}

static void count_release(void *data, void *user) {
    (void)data;
    ++*(int *)user;
}

static void test_bytes_take(void **state) {
    (void)state;
    int released = 0;
    char storage[] = "abc";
    abx_value *v = abx_value_new_bytes_take(storage, 3, count_release, &released);
    assert_ptr_equal(abx_value_bytes(v).data, storage);
    abx_value *more = abx_value_ref(v);
    abx_value_unref(v);
    assert_int_equal(released, 0);
    abx_value_unref(more);
    assert_int_equal(released, 1);
}

static void test_equal(void **state) {
    (void)state;
    static const struct { const char *a, *b; int equal; } rows[] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", 1}, {"[1,2]", "[2,1]", 0}, {"1", "1.0", 0},
        {"\"a\"", "\"a\"", 1}, {"\"a\\u0000b\"", "\"a\\u0000c\"", 0}, {"{\"a\":1}", "{\"a\":1,\"b\":1}", 0},
        {"null", "false", 0}, {"{\"a\":1}", "{\"b\":1}", 0}, {"[[],{}]", "[[],{}]", 1}, {"[[]]", "[{}]", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_value_ abx_value *a = NULL, *b = NULL;
        assert_int_equal(abx_value_parse(&a, rows[i].a, strlen(rows[i].a), NULL), 0);
        assert_int_equal(abx_value_parse(&b, rows[i].b, strlen(rows[i].b), NULL), 0);
        assert_int_equal(abx_value_equal(a, b), rows[i].equal);
    }
}

static void test_nul_in_keys(void **state) {
    (void)state;
    _cleanup_value_ abx_value *v = NULL;
    const char *text = "{\"a\\u0000b\":1,\"a\\u0000c\":2}";
    assert_int_equal(abx_value_parse(&v, text, strlen(text), NULL), 0);
    assert_null(abx_value_get(v, "a")); /* no truncated match */
    assert_prints(v, 0, text);
}

static void test_parse_error_object(void **state) {
    (void)state;
    _cleanup_value_ abx_value *v = NULL;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(abx_value_parse(&v, "{\"a\":}", 6, &e), ABX_E_CONFIG);
    assert_null(v);
    assert_int_equal(abx_error_code(e), ABX_E_CONFIG);
    _cleanup_value_ abx_value *shown = abx_error_to_value(e);
    assert_string_equal(abx_value_get_string(shown, "code"), "E8002");
    assert_string_equal(abx_value_key_at(shown, 1), "message");
    assert_non_null(abx_value_get_string(shown, "suggestion"));
    assert_string_equal(abx_value_get_string(shown, "docs_url"), "");
    assert_int_equal(abx_value_size(shown), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_get),
        cmocka_unit_test(test_null_is_harmless),
        cmocka_unit_test(test_only_the_sole_owner_fills),
        cmocka_unit_test(test_wrong_targets),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_doubles_as_python),
        cmocka_unit_test(test_doubles_read_back),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_bytes_and_secrets),
        cmocka_unit_test(test_bytes_take),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_nul_in_keys),
        cmocka_unit_test(test_parse_error_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
