/* UTF-8: validity, cutting, sanitising, columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/utf8.h"

static void test_valid(void **state) {
    (void)state;
    static const char *const good[] = {"", "plain ascii text", "é", "\xed\x9f\xbf",
                                       "\xee\x80\x80", "\xf4\x8f\xbf\xbf",
                                       "eight by and then €"};
    static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
                                      "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82",
                                      "\xff",
                                      "12345678\xc3", "1234567\xc3(", "abc\xe2\x28\xa1"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(utf8_valid(bad[i], strlen(bad[i])));
    assert_true(utf8_valid("a\0b", 3));
}

static void test_round_trip(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        if (cp == 0xd800) cp = 0xe000;
        char out[4];
        uint32_t back = 0;
        size_t n = utf8_encode(cp, out);
        assert_int_equal(utf8_decode(out, n, &back), n);
        assert_int_equal(back, cp);
        assert_int_equal(utf8_decode(out, n - 1, &back), 0);
    }
    char out[4];
    assert_int_equal(utf8_encode(0xd800, out), 3);
    assert_memory_equal(out, "\xef\xbf\xbd", 3);
}

static void test_incomplete_tail(void **state) {
    (void)state;
    static const struct {
        const char *s;
        size_t want;
    } cases[] = {{"", 0}, {"abc", 0}, {"a\xc3", 1}, {"a\xc3\xa9", 0}, {"a\xe2", 1}, {"a\xe2\x82",
                 2},
                 {"\xe2\x82\xac", 0}, {"\xf0\x9f\x98", 3}, {"\xf0\x9f", 2}, {"\xf0", 1},
                 {"\xf0\x9f\x98\x80", 0},
                 {"\xe0\x80", 0}, {"\xed\xa0", 0}, {"\xf4\x90", 0}, {"\xf0\x8f\xbf", 0},
                 {"\x80\x80", 0},
                 {"\xff", 0}, {"\xc0", 0}, {"\xe0\xa0", 2}, {"\xed\x9f", 2}, {"\xf4\x8f", 2}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(utf8_incomplete_tail(cases[i].s, strlen(cases[i].s)), cases[i].want);
}

static void check(const char *in, bool lines, const char *want) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    assert_int_equal(utf8_sanitize(&b, in, strlen(in), lines), 0);
    assert_string_equal(buf_cstr(&b), want);
    assert_true(utf8_valid(b.data, b.len));
}

static void test_sanitize(void **state) {
    (void)state;
    check("plain", false, "plain");
    check("\x1b[31;1mred\x1b[0m", false, "red");
    check("a\x1b[?25l\x1b[2 qb", false, "ab");
    check("\x1b]0;title\x07text", false, "text");
    check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", false, "link");
    check("\x1bP1$r0m\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", false, "xyz");
    check("\xc2\x9b" "31mred\xc2\x9d" "0;t\xc2\x9cx", false, "redx");
    check("\x1b(Babc\x1b" "7\x1b" "c", false, "abc");
    check("end\x1b", false, "end");
    check("end\x1b[", false, "end");
    check("end\x1b[31", false, "end");
    check("\x1b[3\x1b[31mx", false, "x");
    check("\x1b]0;never ended\nnext", true, "\nnext");
    check("\x1b]a\x1b[1mx", false, "x");
    check("a\tb\nc\r\nd", false, "a b c d");
    check("a\tb\nc\r\nd", true, "a b\nc\nd");
    check("a\x01\x08\x7f\xc2\x85z", false, "az");
    check("\xe2\x80\xae" "evil\xe2\x80\xac \xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c", false, "evil x");
    check("z\xe2\x80\x8bw\xe2\x80\x8dj\xef\xbb\xbf\xe2\x81\xa0", false, "zwj");
    check("l\xe2\x80\xa8p\xe2\x80\xa9.", true, "lp.");
    check("t\xf3\xa0\x81\xa1g", false, "tg");
    check("bad\xff\xc3(", false, "bad\xef\xbf\xbd\xef\xbf\xbd(");
    check("\xe4\xb8\xad\xe6\x96\x87 é 😀", false, "\xe4\xb8\xad\xe6\x96\x87 é 😀");

    _cleanup_free_ char *line = utf8_sanitize_str("one\n\x1b[1mtwo");
    assert_string_equal(line, "one two");
    _cleanup_buf_ struct buf nul = BUF_INIT(0);
    assert_int_equal(utf8_sanitize(&nul, "a\0b", 3, false), 0);
    assert_string_equal(buf_cstr(&nul), "ab");
    _cleanup_buf_ struct buf small = BUF_INIT(3);
    assert_int_equal(utf8_sanitize(&small, "abcdef", 6, false), -EMSGSIZE);
}

/* Whatever comes in, what goes out is printable and stays as it is the second time. */
static void test_sanitize_any(void **state) {
    (void)state;
    static const char alphabet[] = "\x1b\x1b[]P\\;m0a\n\x07\xc2\x9b\x9d\x9c\xe2\x80\xae\xff\xf0";
    uint32_t seed = 12345;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        for (size_t i = 0; i < sizeof(text); i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        _cleanup_buf_ struct buf once = BUF_INIT(0);
        _cleanup_buf_ struct buf twice = BUF_INIT(0);
        assert_int_equal(utf8_sanitize(&once, text, sizeof(text), false), 0);
        assert_true(utf8_valid(once.data, once.len));
        for (size_t i = 0; i < once.len; i++)
            assert_true((unsigned char)once.data[i] >= 0x20 && once.data[i] != 0x7f);
        assert_int_equal(utf8_sanitize(&twice, once.data, once.len, false), 0);
        assert_int_equal(once.len, twice.len);
        if (once.len) assert_memory_equal(once.data, twice.data, once.len);
    }
}

static void test_width(void **state) {
    (void)state;
    assert_int_equal(utf8_width(""), 0);
    assert_int_equal(utf8_width("abc"), 3);
    assert_int_equal(utf8_width("é…"), 2);
    assert_int_equal(utf8_width("e\xcc\x81"), 1);
    assert_int_equal(utf8_width("\xe4\xb8\xad\xe6\x96\x87"), 4);
    assert_int_equal(utf8_width("\xed\x95\x9c"), 2);
    assert_int_equal(utf8_width("\xef\xbc\xa1"), 2);
    assert_int_equal(utf8_width("😀!"), 3);
    assert_int_equal(utf8_width("a\xe2\x80\x8b" "b"), 2);
    assert_int_equal(utf8_width("\xe2\x9c\x94\xef\xb8\x8f"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),    cmocka_unit_test(test_round_trip),
                           cmocka_unit_test(test_incomplete_tail),
        cmocka_unit_test(test_sanitize), cmocka_unit_test(test_sanitize_any),
                         cmocka_unit_test(test_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
