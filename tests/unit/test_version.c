/* PEP 440: the order of versions, and comparators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "provider/manifest.h"

static void test_order(void **state) {
    (void)state;
    /* From the oldest to the newest. */
    static const char *const sorted[] = {
        "1.0.dev1",
        "1.0.dev456",
        "1.0a1",
        "1.0a2.dev456",
        "1.0a12.dev456",
        "1.0a12",
        "1.0b1.dev456",
        "1.0b2",
        "1.0b2.post345.dev456",
        "1.0b2.post345",
        "1.0rc1.dev456",
        "1.0rc1",
        "1.0",
        "1.0+abc.5",
        "1.0+abc.7",
        "1.0+5",
        "1.0+5.1",
        "1.0.post456.dev34",
        "1.0.post456",
        "1.1.dev1",
        "1.2+123abc",
        "1.2+123abc456",
        "1.2+abc",
        "1.2+abc123",
        "1.2+abc123def",
        "1.2+1234.abc",
        "1.2.r32+123456",
        "1.10",
        "99999999999999999999999.1",
        "1!0.1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
        for (size_t k = 0; k < ARRAY_SIZE(sorted); k++) {
            int r = 99;
            assert_int_equal(version_compare(sorted[i], sorted[k], &r), 0);
            if (r != (i > k) - (i < k)) fail_msg("%s and %s: %d", sorted[i], sorted[k], r);
        }
}

static void test_equal(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"1.0", "1"},
        {"1.0", "v1.0.0"},
        {"1.0a1", "1.0.ALPHA-1"},
        {"1.0rc1", "1.0c1"},
        {"1.0rc1", "1.0-pre_1"},
        {"1.0rc1", "1preview1"},
        {"1.0b0", "1.0beta"},
        {"1.0.post1", "1.0-1"},
        {"1.0.post1", "1.0r1"},
        {"1.0.post0", "1.0.post"},
        {"1.0.dev0", "1.0dev"},
        {"0!1.0", " 1.0\n"},
        {"1.0+a.b", "1.0+A-b"},
        {"01.002", "1.2"},
        {"1.0.rev3", "1.0post3"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        int r = 99;
        assert_int_equal(version_compare(pairs[i][0], pairs[i][1], &r), 0);
        if (r != 0) fail_msg("%s and %s: %d", pairs[i][0], pairs[i][1], r);
    }
}

static void test_no_version(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",      " ",        "one",           "1.",      ".1",      "1..2",  "1.0x",
        "1.0+",  "1.0+a..b", "1.0 1",         "1!",      "1.0a1b1", "1.0-",  "1.0.",
        "1.0.*", "v",        "1.0dev1.post1", "1.0+a b", "-1",      "1.0a1."};
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (version_compare(texts[i], "1", &r) != -EINVAL) fail_msg("taken: '%s'", texts[i]);
    char *huge = calloc(1, 400);
    memset(huge, '1', 300);
    assert_int_equal(version_compare("1", huge, &r), -EINVAL);
    free(huge);
}

static void test_satisfies(void **state) {
    (void)state;
    static const struct {
        const char *have, *spec;
        bool fits;
    } rows[] = {
        {"0.4.0a6", ">=0.4.0a1,<0.5", true},
        {"0.4.0a6", ">=99", false},
        {"0.4.0a6", ">=0.4.0", false},
        {"0.4.0a6", "", true},
        {"0.4.0a6", ">0.4.0a5", true},
        {"0.4.0a6", "<0.4.0", false},
        {"0.4.0a6", "<0.4.0a7", true},
        {"0.4.0a6", ">=0.4.dev0", true},
        {"0.4.0a6", "~=0.4.0a1", true},
        {"0.4.0a6", "~=0.4", false},
        {"0.4.0a6", "!=0.4.0", true},
        {"1.5", "~=1.4", true},
        {"2.0", "~=1.4", false},
        {"2.0a1", "~=1.4", false},
        {"1.4.5", "~=1.4.2", true},
        {"1.5.0", "~=1.4.2", false},
        {"1.0", " >= 1 , < 2 ", true},
        {"1.0", ">=1,,<2,", true},
        {"1.0+x", "==1.0", true},
        {"1.0+x", ">1.0", false},
        {"1.0+x", "==1.0+y", false},
        {"1.0+x", "!=1.0", false},
        {"1.0.post1", ">1.0", false},
        {"1.0.post1", ">1.0.post0", true},
        {"1.1", ">1.0", true},
        {"1.0", "==1.0.*", true},
        {"1.0.7", "==1.0.*", true},
        {"1.1", "==1.0.*", false},
        {"1.1", "!=1.0.*", true},
        {"1!1.0", "==1.*", false},
        {"1", "<=1.0", true},
        {"1.0", "==1.0.0", true},
        {"1", "~=1.0.0", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool fits = !rows[i].fits;
        assert_int_equal(version_satisfies(rows[i].have, rows[i].spec, &fits, NULL), 0);
        if (fits != rows[i].fits) fail_msg("%s %s: %d", rows[i].have, rows[i].spec, fits);
    }
}

static void test_bad_comparators(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"=>1", "=>1"},         {">=1,1.0", "1.0"},
        {">=", ">="},           {">=one", ">=one"},
        {"===1", "===1"},       {"~=1", "~=1"},
        {"^1", "^1"},           {" ==1.*.2 ", "==1.*.2"},
        {">=1.*", ">=1.*"},     {"<1+local", "<1+local"},
        {"==1a1.*", "==1a1.*"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *bad = NULL;
        bool fits = true;
        assert_int_equal(version_satisfies("1", rows[i][0], &fits, &bad), -EINVAL);
        assert_string_equal(bad, rows[i][1]);
        assert_true(fits);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),           cmocka_unit_test(test_equal),
        cmocka_unit_test(test_no_version),      cmocka_unit_test(test_satisfies),
        cmocka_unit_test(test_bad_comparators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
