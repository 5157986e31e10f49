/* TOML: what is read and refused, and edits that touch nothing else. */
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
#include "toml/toml.h"

#define PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_parse(void **state) {
    (void)state;
    const char *text =
        "# head\r\nz = 1\r\na.b = 'x'\n\"q k\" = [1, 2.5, true]\n[t.u]\nd = 1979-05-27T07:32:00Z\n"
        "day = 1979-05-27\ntime = 07:32:00\nspaced = 1979-05-27 07:32:00\nbig = inf\ns = \"\"\"\na\nb\"\"\"\n"
        "[[arr]]\nk = 1\n[[arr]]\nk = 2\n[b]\ni = {y = 1, x = 2}\n";
    _cleanup_value_ abx_value *v = NULL;
    assert_int_equal(toml_parse(text, strlen(text), &v, NULL, NULL), 0);
    _cleanup_free_ char *json = abx_value_print(v, 0, NULL);
    assert_string_equal(json,
                        "{\"z\":1,\"a\":{\"b\":\"x\"},\"q k\":[1,2.5,true],\"t\":{\"u\":{\"d\":\"1979-05-27T07:32:00Z\","
                        "\"day\":\"1979-05-27\",\"time\":\"07:32:00\",\"spaced\":\"1979-05-27T07:32:00\",\"big\":\"inf\","
                        "\"s\":\"a\\nb\"}},\"arr\":[{\"k\":1},{\"k\":2}],\"b\":{\"i\":{\"y\":1,\"x\":2}}}");
    _cleanup_value_ abx_value *empty = NULL;
    assert_int_equal(toml_parse("", 0, &empty, NULL, NULL), 0);
    assert_int_equal(abx_value_size(empty), 0);
}

static void assert_refused(const char *text, size_t n, unsigned line, unsigned column) {
    _cleanup_value_ abx_value *v = NULL;
    _cleanup_free_ char *why = NULL;
    struct toml_pos pos = {0, 0};
    if (toml_parse(text, n, &v, &why, &pos) != -EBADMSG) fail_msg("taken: %s", text);
    assert_null(v);
    assert_non_null(why);
    assert_true(*why);
    for (const char *c = why; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    if (line) assert_int_equal(pos.line, line);
    if (column) assert_int_equal(pos.column, column);
}

static void test_refuses(void **state) {
    (void)state;
    static const struct { const char *text; unsigned line, column; } rows[] = {
        {"a = 1\nb = \n", 2, 0}, {"a = 1\na = 2\n", 2, 0}, {"x = \"abc", 1, 0}, {"[a]\n[a]\n", 2, 0},
        {"# \xc3\xa9\xc3\xa9\nk = '\xc3\xa9\xff'", 2, 7}, {"\xc3\x28", 1, 1}, {"k = 99999999999999999999", 1, 0},
        {"a = 1 b = 2", 1, 0}, {"\"a\\u0000b\" = 1", 1, 0}, {"= 1", 1, 0}, {"k = \x1b[31m", 1, 0},
        {"k = [1, 2", 1, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_refused(rows[i].text, strlen(rows[i].text), rows[i].line, rows[i].column);
}

static void test_hostile_shapes(void **state) {
    (void)state;
    for (int more = 0; more <= 1; more++) {
        _cleanup_buf_ struct buf key = BUF_INIT(0), nest = BUF_INIT(0), header = BUF_INIT(0);
        _cleanup_value_ abx_value *a = NULL, *b = NULL;
        for (int i = 0; i < LIMIT_TOML_KEY_SEGMENTS + more; i++) buf_str(&key, i ? " . \"a.b\"" : "a");
        buf_str(&key, " = 1\n");
        buf_str(&nest, "k = ");
        for (int i = 0; i < LIMIT_TOML_DEPTH + more; i++) buf_str(&nest, "[ ");
        for (int i = 0; i < LIMIT_TOML_DEPTH + more; i++) buf_str(&nest, "]");
        if (more) {
            assert_refused(key.data, key.len, 1, 0);
            assert_refused(nest.data, nest.len, 1, 0);
        } else {
            assert_int_equal(toml_parse(key.data, key.len, &a, NULL, NULL), 0);
            assert_int_equal(toml_parse(nest.data, nest.len, &b, NULL, NULL), 0);
        }
    }
    static const char *const units[] = {"a.", "[", "{a=", "[a.", "\"\".", "[[", "x=[{", "'a'.", "a={b."};
    for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
        _cleanup_buf_ struct buf b = BUF_INIT(0);
        for (int i = 0; i < 100000; i++) buf_str(&b, units[u]);
        assert_refused(b.data, b.len, 1, 0);
    }
    /* Within both limits, but deeper than a value may be. */
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    for (int i = 0; i < LIMIT_TOML_DEPTH; i++) {
        buf_str(&b, i ? "{a" : "a");
        for (int k = 1; k < LIMIT_TOML_KEY_SEGMENTS; k++) buf_str(&b, ".a");
        buf_str(&b, "=");
    }
    buf_str(&b, "1");
    for (int i = 1; i < LIMIT_TOML_DEPTH; i++) buf_str(&b, "}");
    assert_refused(b.data, b.len, 1, 0);
    /* Brackets and dots in strings and comments are no nesting. */
    _cleanup_buf_ struct buf fine = BUF_INIT(0);
    _cleanup_value_ abx_value *v = NULL;
    buf_str(&fine, "# ");
    for (int i = 0; i < 500; i++) buf_str(&fine, "[.{");
    buf_str(&fine, "\na = \"\\\"");
    for (int i = 0; i < 500; i++) buf_str(&fine, "[.{");
    buf_str(&fine, "\"\nb = '''\n'");
    for (int i = 0; i < 500; i++) buf_str(&fine, "[.{\"");
    buf_str(&fine, "'''''\nc = 1\n");
    assert_int_equal(toml_parse(fine.data, fine.len, &v, NULL, NULL), 0);
    assert_int_equal(abx_value_size(v), 3);
}

static void test_find(void **state) {
    (void)state;
    const struct { const char *text; const char *const *path; const char *want; } rows[] = {
        {"a = 1", PATH("a"), "1"},
        {"[core]\nprovider = \"x#y\" # c\n", PATH("core", "provider"), "\"x#y\""},
        {"core . 'pro vider'= 0x10\n", PATH("core", "pro vider"), "0x10"},
        {"core = { a = 1, provider = [1, # ]\n 2] }", PATH("core", "provider"), "[1, # ]\n 2]"},
        {"[a]\nb = {c.d = {e = 'x'}}", PATH("a", "b", "c", "d", "e"), "'x'"},
        {"d = 1979-05-27 07:32:00 # c", PATH("d"), "1979-05-27 07:32:00"},
        {"d = 1979-05-27 # 07:32", PATH("d"), "1979-05-27"},
        {"s = \"\"\"\n[x]\na = 1\"\"\"\"\"\na = 2", PATH("a"), "2"},
        {"\xef\xbb\xbf" "a = '\xc3\xa9'\r\nb = true\r\n", PATH("b"), "true"},
        {"\"\\u0061\\n\" = 5", PATH("a\n"), "5"},
        {"[x]\na = 1\n[[y]]\na = 2\n[z]\na = 3", PATH("z", "a"), "3"},
        {"[x]\na = 1", PATH("x"), NULL},
        {"[[y]]\na = 2", PATH("y", "a"), NULL},
        {"a = 1", PATH("a", "b"), NULL},
        {"a = 1", PATH("b"), NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t start = 0, end = 0;
        int r = toml_find(rows[i].text, strlen(rows[i].text), rows[i].path, &start, &end);
        if (!rows[i].want) {
            assert_int_equal(r, -ENOENT);
            continue;
        }
        if (r != 0) fail_msg("%s: %d", rows[i].text, r);
        assert_int_equal(end - start, strlen(rows[i].want));
        assert_memory_equal(rows[i].text + start, rows[i].want, end - start);
    }
    size_t start, end;
    assert_int_equal(toml_find("a =", 3, PATH("a"), &start, &end), -EBADMSG);
}

static void test_edit(void **state) {
    (void)state;
    const struct { const char *text; const char *const *path; const char *literal, *want; } rows[] = {
        /* set where it stands */
        {"# c\n[core]\nprovider = 'old' # why\n\nx=1\n", PATH("core", "provider"), "\"new\"",
         "# c\n[core]\nprovider = \"new\" # why\n\nx=1\n"},
        {"a = [\n 1, # one\n]\nb = 2", PATH("a"), "[]", "a = []\nb = 2"},
        {"core = { a = 1, b = 2 } # c", PATH("core", "a"), "9", "core = { a = 9, b = 2 } # c"},
        {"core.a = 1", PATH("core", "a"), "9", "core.a = 9"},
        /* a new key in its table */
        {"[core]\n# c\na = 1 # d\n\n[z]\n", PATH("core", "b"), "2", "[core]\n# c\na = 1 # d\nb = 2\n\n[z]\n"},
        {"[core]", PATH("core", "b"), "2", "[core]\nb = 2\n"},
        {"[core] # c\n[z]\n", PATH("core", "b"), "2", "[core] # c\nb = 2\n[z]\n"},
        {"[core]\n  a = 1\n", PATH("core", "b"), "2", "[core]\n  a = 1\n  b = 2\n"},
        {"[core]\r\na = 1\r\n\r\n[z]\r\n", PATH("core", "b"), "2", "[core]\r\na = 1\r\nb = 2\r\n\r\n[z]\r\n"},
        {"core.a = 1\n[z]\n", PATH("core", "b"), "2", "core.a = 1\ncore.b = 2\n[z]\n"},
        {"[p]\nx.a = 1\n", PATH("p", "x", "b"), "2", "[p]\nx.a = 1\nx.b = 2\n"},
        {"core = {}", PATH("core", "b"), "2", "core = { b = 2 }"},
        {"core = { a = 1 }", PATH("core", "b"), "2", "core = { a = 1, b = 2 }"},
        {"core = { a = {} }", PATH("core", "a", "x", "y"), "2", "core = { a = { x.y = 2 } }"},
        /* a new table */
        {"", PATH("core", "b"), "2", "[core]\nb = 2\n"},
        {"a = 1", PATH("core", "b"), "2", "a = 1\n\n[core]\nb = 2\n"},
        {"a = 1\r\n", PATH("pro.viders", "my-cloud", "\xc3\xa9"), "'x'",
         "a = 1\r\n\r\n[\"pro.viders\".my-cloud]\r\n\"\xc3\xa9\" = 'x'\r\n"},
        {"[a.b.c]\nx = 1\n", PATH("a", "b", "k"), "2", "[a.b.c]\nx = 1\n\n[a.b]\nk = 2\n"},
        {"[[arr]]\nk = 1\n", PATH("core", "k"), "2", "[[arr]]\nk = 1\n\n[core]\nk = 2\n"},
        /* a new key at the top */
        {"", PATH("k"), "2", "k = 2\n"},
        {"# only\n", PATH("k"), "2", "# only\nk = 2\n"},
        {"a = 1\n\n[core]\n", PATH("k"), "2", "a = 1\nk = 2\n\n[core]\n"},
        {"# top\n\n# about\n[core]\n", PATH("k"), "2", "# top\n\nk = 2\n# about\n[core]\n"},
        {"\xef\xbb\xbf[core]\n", PATH("k"), "2", "\xef\xbb\xbfk = 2\n[core]\n"},
        /* removed */
        {"[core]\na = 1 # gone too\n# stays\nb = 2\n", PATH("core", "a"), NULL, "[core]\n# stays\nb = 2\n"},
        {"a = [\n1\n]\nb = 2\n", PATH("a"), NULL, "b = 2\n"},
        {"core = { a = 1, b = 2, c = 3 }", PATH("core", "a"), NULL, "core = { b = 2, c = 3 }"},
        {"core = { a = 1, b = 2, c = 3 }", PATH("core", "b"), NULL, "core = { a = 1, c = 3 }"},
        {"core = { a = 1, b = 2 }", PATH("core", "b"), NULL, "core = { a = 1 }"},
        {"core.a = 1\nb = 2", PATH("core", "a"), NULL, "b = 2"},
        {"[core]\r\na = 1\r\nb = 2", PATH("core", "b"), NULL, "[core]\r\na = 1\r\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *out = NULL;
        int r = toml_edit(rows[i].text, strlen(rows[i].text), rows[i].path, rows[i].literal, &out);
        if (r != 0) fail_msg("%s: %d", rows[i].text, r);
        assert_string_equal(out, rows[i].want);
    }
}

static void test_edit_refuses(void **state) {
    (void)state;
    const struct { const char *text; const char *const *path; const char *literal; int want; } rows[] = {
        {"a = 1", PATH("a"), "1\nb = 2", -EINVAL},
        {"a = 1", PATH("a"), "nonsense", -EINVAL},
        {"a = 1", PATH("a"), "", -EINVAL},
        {"a =", PATH("a"), "1", -EBADMSG},
        {"a = 1", PATH("a", "b"), "1", -ENOTDIR},
        {"[[a]]\nb = 1", PATH("a", "b"), "1", -ENOTDIR},
        {"[a]\nb = 1", PATH("a"), "1", -ENOTSUP},
        {"a = 1", PATH("b"), NULL, -ENOENT},
        {"[a]\nb = 1", PATH("a"), NULL, -ENOTSUP},
        {"a = {b = 1, c = 2}", PATH("a", "b"), "1 # c", -ENOTSUP},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *out = NULL;
        int r = toml_edit(rows[i].text, strlen(rows[i].text), rows[i].path, rows[i].literal, &out);
        if (r != rows[i].want) fail_msg("%s: %d, not %d", rows[i].text, r, rows[i].want);
        assert_null(out);
    }
}

static void test_remove_table(void **state) {
    (void)state;
    const struct { const char *text; const char *const *path; const char *want; } rows[] = {
        {"[core]\na = 1\n\n[p.x]\nk = 1\n\n# about y\n[p.y]\nk = 2\n", PATH("p", "x"),
         "[core]\na = 1\n\n# about y\n[p.y]\nk = 2\n"},
        {"[core]\na = 1\n\n[p.x]\nk = 1\n", PATH("p", "x"), "[core]\na = 1\n"},
        {"[p.x]\nk = 1\n", PATH("p", "x"), ""},
        {"[p.x]\nk = 1\n[p.x.sub]\nl = 1\n[p.xy]\nk = 2\n", PATH("p", "x"), "[p.xy]\nk = 2\n"},
        {"[p.x]\nk = 1\n[[p.x.list]]\nl = 1\n[q]\n", PATH("p", "x"), "[q]\n"},
        {"[p]\nx.k = 1\nx.l = 2\ny.k = 3\n", PATH("p", "x"), "[p]\ny.k = 3\n"},
        {"p = { x = {k = 1}, y = {} }\n", PATH("p", "x"), "p = { y = {} }\n"},
        {"[p]\nx = {k = 1} # c\nz = 1\n", PATH("p", "x"), "[p]\nz = 1\n"},
        {"[a]\r\nk = 1\r\n\r\n[b]\r\nk = 2\r\n", PATH("a"), "[b]\r\nk = 2\r\n"},
        {"# top\n[a]\nk = 1\n# inside\nl = 2\n", PATH("a"), "# top\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *out = NULL;
        int r = toml_remove_table(rows[i].text, strlen(rows[i].text), rows[i].path, &out);
        if (r != 0) fail_msg("%s: %d", rows[i].text, r);
        assert_string_equal(out, rows[i].want);
    }
    char *out = NULL;
    assert_int_equal(toml_remove_table("[a]\n", 4, PATH("b"), &out), -ENOENT);
    assert_int_equal(toml_remove_table("a = 1\n", 6, PATH("a"), &out), -ENOENT);
    assert_null(out);
}

static void test_headers_without_names(void **state) {
    (void)state;
    static const char *const bad[] = {"[\n", "[[\n]]\n", "[ #\n]\n", "a = 1\n  [\n=1\n", "[\xc3\xa9]\n", "[]\n", "[", "[["};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        abx_value *v = NULL;
        char *reason = NULL;
        assert_int_equal(toml_parse(bad[i], strlen(bad[i]), &v, &reason, NULL), -EBADMSG);
        assert_string_equal(reason, "a table header has no name");
        free(reason);
    }
    static const char good[] = "x = [\n[1],\n  [2] ]\ns = '''\n[\n'''\n[ \"a\" . b ]\n[[ c ]]\n";
    _cleanup_value_ abx_value *v = NULL;
    assert_int_equal(toml_parse(good, strlen(good), &v, NULL, NULL), 0);
}

static void test_quote(void **state) {
    (void)state;
    _cleanup_free_ char *q = toml_quote("a\"\\\n\t\x01\x7f\xc3\xa9'");
    assert_string_equal(q, "\"a\\\"\\\\\\n\\t\\u0001\\u007F\xc3\xa9'\"");
    _cleanup_free_ char *text = NULL;
    assert_int_equal(toml_edit("", 0, PATH("k"), q, &text), 0);
    _cleanup_value_ abx_value *v = NULL;
    assert_int_equal(toml_parse(text, strlen(text), &v, NULL, NULL), 0);
    assert_string_equal(abx_value_get_string(v, "k"), "a\"\\\n\t\x01\x7f\xc3\xa9'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_refuses),      cmocka_unit_test(test_hostile_shapes),
        cmocka_unit_test(test_find),         cmocka_unit_test(test_edit),         cmocka_unit_test(test_edit_refuses),
        cmocka_unit_test(test_remove_table), cmocka_unit_test(test_quote),
        cmocka_unit_test(test_headers_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
