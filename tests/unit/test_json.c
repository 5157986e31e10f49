/* The JSON parser: what it refuses, what references give, and what it copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "json/json.h"

static struct json_parser *parser;

static int set_up(void **state) {
    (void)state;
    parser = json_parser_new(LIMIT_LINE);
    return parser ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    json_parser_free(parser);
    return 0;
}

/* The document borrows nothing of the text: a copy with exactly the padding promised. */
static int parse_n(const char *text, size_t n, struct json_ref *root, const char **why) {
    _cleanup_free_ char *padded = malloc(n + JSON_PADDING);
    memcpy(padded, text, n);
    memset(padded + n, 'x', JSON_PADDING);
    return json_parse(parser, padded, n, root, why);
}

static struct json_ref parse(const char *text) {
    struct json_ref root = {0};
    const char *why = "";
    if (parse_n(text, strlen(text), &root, &why) < 0) fail_msg("%s: %s", text, why);
    return root;
}

static void test_refuses(void **state) {
    (void)state;
    static const char *const rows[] = {
        "", " ", "{", "[1,]", "{\"a\":1,}", "nul", "tru", "01", "+1", "1.", ".5", "0x1", "NaN", "Infinity", "-",
        "\"a", "'a'", "\"\\x\"", "\"\n\"", "[1] 2", "{\"a\" 1}", "{1:2}", "// c\n1", "\xef\xbb\xbf" "1",
        "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\xc3",
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\u0041\"", "\"\\udc00\\ud800\"", "\"\\ud800\\ud800\"",
        "{\"\\udfff\":1}", "\"x\\udead\"", "\"\\uD83D\\uD83D\"",
        "18446744073709551616", "-9223372036854775809", "1e400", "-1e400", "[1e99999]",
        "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "[{\"x\":{\"k\":1,\"l\":2,\"k\":3}}]", "{\"\":1,\"\":1}",
        "[{\"a\":{}},{\"b\":[],\"b\":[]}]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct json_ref root = {0};
        const char *why = NULL;
        int r = parse_n(rows[i], strlen(rows[i]), &root, &why);
        if (r != -EBADMSG || !why || json_present(root)) fail_msg("taken: %s (%d)", rows[i], r);
        assert_null(strchr(why, '\n'));
    }
}

static void test_accepts(void **state) {
    (void)state;
    static const char *const rows[] = {
        "1", " \t\r\n1 \n", "\"\"", "null", "-0", "1e5", "1E+2", "0.0", "{}", "[]", "\"\\/\"", "\"\\u0000\"",
        "\"\\ud83d\\ude00\"", "18446744073709551615", "-9223372036854775808", "{\"a\":{\"a\":1},\"b\":{\"a\":1}}",
        "\"\xed\x9f\xbf\\u00e9\"", "\"\xf4\x8f\xbf\xbf\"", "\"\x7f\"", "1e-400",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) assert_true(json_present(parse(rows[i])));
}

static void test_depth(void **state) {
    (void)state;
    static const char *const open[] = {"[", "{\"a\":"}, *const close[] = {"]", "}"};
    for (int kind = 0; kind < 2; kind++) {
        for (int more = 0; more <= 1; more++) {
            _cleanup_buf_ struct buf b = BUF_INIT(0);
            struct json_ref root;
            for (int i = 0; i < LIMIT_JSON_DEPTH + more; i++) buf_str(&b, open[kind]);
            buf_str(&b, "1");
            for (int i = 0; i < LIMIT_JSON_DEPTH + more; i++) buf_str(&b, close[kind]);
            assert_int_equal(parse_n(b.data, b.len, &root, NULL), more ? -EBADMSG : 0);
            if (more) continue;
            _cleanup_value_ abx_value *v = NULL;
            assert_int_equal(json_to_value(root, NULL, &v), 0);
        }
    }
    _cleanup_buf_ struct buf deep = BUF_INIT(0);
    struct json_ref root;
    const char *why = "";
    for (int i = 0; i < 1000000; i++) buf_char(&deep, '[');
    assert_int_equal(parse_n(deep.data, deep.len, &root, &why), -EBADMSG);
}

static void test_many_keys(void **state) {
    (void)state;
    for (int twice = 0; twice <= 1; twice++) {
        _cleanup_buf_ struct buf b = BUF_INIT(0);
        struct json_ref root, hit;
        int64_t i64;
        buf_char(&b, '{');
        for (int i = 0; i < 3000; i++) buf_printf(&b, "\"key%d\":%d,", i, i);
        buf_printf(&b, "\"key%d\":0}", twice ? 1234 : 3000);
        assert_int_equal(parse_n(b.data, b.len, &root, NULL), twice ? -EBADMSG : 0);
        if (twice) continue;
        hit = json_get(root, "key2999");
        assert_true(json_int(hit, &i64));
        assert_int_equal(i64, 2999);
        _cleanup_value_ abx_value *v = NULL;
        assert_int_equal(json_to_value(root, NULL, &v), 0);
        assert_int_equal(abx_value_size(v), 3001);
        assert_int_equal(abx_value_int(abx_value_get(v, "key2000"), 0), 2000);
    }
}

static void test_refs(void **state) {
    (void)state;
    struct json_ref root = parse("{\"s\":\"a\\u0000b\",\"i\":-3,\"w\":4.0,\"h\":0.5,\"u\":18446744073709551615,"
                                 "\"t\":true,\"f\":false,\"n\":null,\"l\":[1,[2],{\"x\":3}],\"e\":{},\"z\":9}");
    const char *s;
    size_t n;
    int64_t i;
    bool b;
    assert_int_equal(json_type(root), ABX_TYPE_OBJECT);
    assert_true(json_string(json_get(root, "s"), &s, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(s, "a\0b", 4);
    assert_true(json_int(json_get(root, "i"), &i));
    assert_int_equal(i, -3);
    assert_true(json_int(json_get(root, "w"), &i));
    assert_int_equal(i, 4);
    assert_false(json_int(json_get(root, "h"), &i));
    assert_false(json_int(json_get(root, "u"), &i));
    assert_false(json_int(json_get(root, "s"), &i));
    assert_true(json_bool(json_get(root, "t"), &b) && b);
    assert_true(json_bool(json_get(root, "f"), &b) && !b);
    assert_false(json_bool(json_get(root, "n"), &b));
    assert_true(json_present(json_get(root, "n")));
    assert_int_equal(json_type(json_get(root, "n")), ABX_TYPE_NULL);
    assert_int_equal(json_type(json_get(root, "u")), ABX_TYPE_UINT);
    assert_false(json_present(json_get(root, "x"))); /* the nested one does not count */
    assert_false(json_present(json_get(json_get(root, "absent"), "x")));
    assert_false(json_present(json_get(json_get(root, "l"), "x")));
    assert_false(json_string((struct json_ref){0}, &s, &n));
    assert_true(json_int(json_get(root, "z"), &i));
}

static void test_iterate(void **state) {
    (void)state;
    struct json_ref root = parse("{\"a\":1,\"b\":[10,\"x\",{\"k\":[]},11.0],\"c\":{},\"d\":\"end\"}"), v;
    struct json_iter it = json_iter(root);
    const char *key, *keys = "abcd";
    size_t n, count = 0;
    while (json_next(&it, &key, &n, &v)) {
        assert_int_equal(n, 1);
        assert_int_equal(key[0], keys[count++]);
    }
    assert_int_equal(count, 4);
    assert_true(json_string(v, &key, &n));
    assert_string_equal(key, "end");
    static const abx_type types[] = {ABX_TYPE_INT, ABX_TYPE_STRING, ABX_TYPE_OBJECT, ABX_TYPE_DOUBLE};
    it = json_iter(json_get(root, "b"));
    for (count = 0; json_next(&it, &key, &n, &v); count++) {
        assert_null(key);
        assert_int_equal(json_type(v), types[count]);
    }
    assert_int_equal(count, 4);
    it = json_iter(json_get(root, "c"));
    assert_false(json_next(&it, NULL, NULL, &v));
    it = json_iter(json_get(root, "d"));
    assert_false(json_next(&it, NULL, NULL, &v));
    it = json_iter((struct json_ref){0});
    assert_false(json_next(&it, NULL, NULL, &v));
}

static void test_copies_outlive_the_document(void **state) {
    (void)state;
    const char *text = "{\"z\":[1,-2,2.5,true,null],\"a\":\"\\u00e9\\n\",\"u\":18446744073709551615,\"o\":{\"k\":{}}}";
    _cleanup_value_ abx_value *v = NULL;
    assert_int_equal(json_to_value(parse(text), NULL, &v), 0);
    parse("[\"something else entirely\"]");
    _cleanup_free_ char *out = abx_value_print(v, 0, NULL);
    assert_string_equal(out, "{\"z\":[1,-2,2.5,true,null],\"a\":\"\xc3\xa9\\n\",\"u\":18446744073709551615,\"o\":{\"k\":{}}}");
}

static unsigned places;
static char place[8];

static void *make_place(size_t n, void **ret_owner) {
    if (n + 1 > sizeof place) return NULL;
    memset(place, 'x', sizeof place);
    places++;
    *ret_owner = &places;
    return place;
}

static void free_place(void *at, void *owner) {
    assert_ptr_equal(at, place);
    assert_ptr_equal(owner, &places);
    places--;
}

/* Bytes go where the embedder says, are one longer by a NUL, and are given back once. */
static void test_bytes_place(void **state) {
    (void)state;
    const struct json_bytes data = {.key = "data", .make = make_place, .release = free_place};
    _cleanup_value_ abx_value *v = NULL, *none = NULL;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {{"AP9hYg==", 4}, {"AP9hYmM=", 5}, {"AP9hYmNk", 6}, {"", 0}};
    for (size_t i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"data\":\"%s\"}", cases[i].text);
        assert_int_equal(json_to_value(parse(text), &data, &v), 0);
        const abx_value *b = abx_value_get(v, "data");
        assert_ptr_equal(abx_value_bytes(b).data, place);
        assert_int_equal(abx_value_bytes(b).len, cases[i].n);
        assert_int_equal(place[cases[i].n], 0);
        assert_int_equal(place[cases[i].n + 1], 'x');
        assert_ptr_equal(abx_value_owner(b, free_place), &places);
        assert_null(abx_value_owner(v, free_place));
        assert_null(abx_value_owner(b, NULL));
        v = abx_value_unref(v);
        assert_int_equal(places, 0);
    }
    assert_int_equal(json_to_value(parse("{\"data\":\"A===\"}"), &data, &none), -EINVAL);
    assert_int_equal(json_to_value(parse("{\"data\":\"AAAAAAAAAAAA\"}"), &data, &none), -ENOMEM);
    assert_null(none);
    assert_int_equal(places, 0);
}

static void test_bytes_key(void **state) {
    (void)state;
    const struct json_bytes data = {.key = "data"};
    _cleanup_value_ abx_value *v = NULL, *bad = NULL, *number = NULL;
    assert_int_equal(json_to_value(parse("{\"data\":\"AP9h\",\"o\":{\"data\":\"!\"},\"data2\":\"AA==\"}"), &data, &v), 0);
    abx_bytes b = abx_value_bytes(abx_value_get(v, "data"));
    assert_true(abx_value_is(abx_value_get(v, "data"), ABX_TYPE_BYTES));
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "\0\xff" "a", 3);
    assert_string_equal(abx_value_get_string(abx_value_get(v, "o"), "data"), "!");
    assert_string_equal(abx_value_get_string(v, "data2"), "AA==");
    assert_int_equal(json_to_value(parse("{\"x\":[],\"data\":\"AP9\"}"), &data, &bad), -EINVAL);
    assert_int_equal(json_to_value(parse("{\"data\":\"AB==\"}"), &data, &bad), -EINVAL);
    assert_null(bad);
    assert_int_equal(json_to_value(parse("{\"data\":7}"), &data, &number), 0);
    assert_int_equal(abx_value_int(abx_value_get(number, "data"), 0), 7);
}

static void test_grows_and_shrinks(void **state) {
    (void)state;
    size_t n = 5 * MIB;
    _cleanup_free_ char *big = malloc(n + JSON_PADDING);
    memset(big, 'A', n);
    big[0] = big[n - 1] = '"';
    struct json_ref root;
    for (int round = 0; round < 2; round++) {
        const char *s;
        size_t len;
        assert_int_equal(json_parse(parser, big, n, &root, NULL), 0);
        assert_true(json_string(root, &s, &len));
        assert_int_equal(len, n - 2);
        for (int i = 0; i < 200; i++) {
            int64_t i64;
            assert_true(json_int(json_get(parse("{\"id\":12}"), "id"), &i64));
            assert_int_equal(i64, 12);
        }
    }
}

static void test_too_long(void **state) {
    (void)state;
    struct json_parser *small = json_parser_new(100);
    char text[200 + JSON_PADDING];
    const char *why = NULL;
    struct json_ref root;
    memset(text, ' ', sizeof(text));
    text[0] = '1';
    assert_int_equal(json_parse(small, text, 100, &root, &why), 0);
    assert_int_equal(json_parse(small, text, 101, &root, &why), -EBADMSG);
    assert_non_null(why);
    assert_int_equal(json_parse(small, text, 1, &root, &why), 0);
    json_parser_free(small);
    json_parser_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accepts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_iterate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies_outlive_the_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_grows_and_shrinks, set_up, tear_down),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
