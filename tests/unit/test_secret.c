/* Secrets: nothing of them is left in any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/secret.h"

static void secrets_of(struct secrets *s, const char *const *values) {
    for (; *values; values++)
        assert_int_equal(secrets_add(s, *values, strlen(*values)), 0);
}
#define SECRETS(s, ...)                                                                            \
    _cleanup_(secrets_done) struct secrets s = {0};                                                \
    secrets_of(&s, (const char *const[]){__VA_ARGS__, NULL})

static void check(const struct secrets *s, const char *text, const char *want) {
    _cleanup_free_ char *got = secrets_redact_str(s, text);
    assert_non_null(got);
    assert_string_equal(got, want);
}

static void test_plain(void **state) {
    (void)state;
    SECRETS(s, "hunter22");
    check(&s, "", "");
    check(&s, "nothing here", "nothing here");
    check(&s, "hunter22", "***");
    check(&s, "xhunter22y hunter2 hunter22", "x***y hunter2 ***");
    check(&s, "hunter22hunter22", "******");
    check(NULL, "text", "text");
    struct secrets none = {0};
    check(&none, "text", "text");
    secrets_done(&none);
    secrets_done(NULL);
}

static void test_longest_and_overlap(void **state) {
    (void)state;
    SECRETS(s, "token", "token-long-one", "one-more");
    check(&s, "token-long-one", "***");
    check(&s, "token-longer", "***-longer");
    /* The end of one is the beginning of the other: no letter of either is left. */
    check(&s, "<token-long-one-more>", "<***>");
    assert_int_equal(s.len, 3);
    assert_int_equal(secrets_add(&s, "token", 5), 0);
    assert_int_equal(s.len, 3);
}

static void test_short(void **state) {
    (void)state;
    SECRETS(s, "a", "x1", "42");
    check(&s, "a banana ate a x1x x1", "*** banana ate *** x1x ***");
    check(&s, "port 4242 is 42.", "port 4242 is ***.");
    check(&s, "key=a;\"a\"", "key=***;\"***\"");
    SECRETS(longer, "true");
    check(&longer, "untrue", "un***");
    SECRETS(blank, "", " ", "\n\t ");
    check(&blank, "a b  c", "a b  c");
}

static void test_json_forms(void **state) {
    (void)state;
    SECRETS(s, "p\"a\\ss/w&rd\x01é😀");
    check(&s, "raw p\"a\\ss/w&rd\x01é😀.", "raw ***.");
    check(&s, "{\"k\":\"p\\\"a\\\\ss/w&rd\\u0001é😀\"}", "{\"k\":\"***\"}");
    check(&s, "{\"k\":\"p\\\"a\\\\ss/w&rd\\u0001\\u00e9\\ud83d\\ude00\"}", "{\"k\":\"***\"}");
    check(&s, "{\"k\":\"p\\\"a\\\\ss/w&rd\\u0001\\u00E9\\uD83D\\uDE00\"}", "{\"k\":\"***\"}");
    check(&s, "{\"k\":\"p\\\"a\\\\ss\\/w&rd\\u0001\\u00e9\\ud83d\\ude00\"}", "{\"k\":\"***\"}");
    check(&s, "{\"k\":\"p\\\"a\\\\ss/w\\u0026rd\\u0001é😀\"}", "{\"k\":\"***\"}");
    /* As it looks after its control characters were taken out. */
    check(&s, "p\"a\\ss/w&rdé😀", "***");
}

#define FIRST "MIIEvQIBADANBgkqhkiG"
#define SECOND "AbCdEfGhIjKlMnOpQrSt"
static void test_lines(void **state) {
    (void)state;
    SECRETS(s, "-----BEGIN KEY-----\n" FIRST "\n{\n" SECOND "\n-----END KEY-----\n");
    check(&s, "log: " FIRST, "log: ***");
    check(&s, SECOND " {", "*** {");
    check(&s, "k=-----BEGIN KEY-----\\n" FIRST "\\n{\\n" SECOND "\\n-----END KEY-----.", "k=***.");
    SECRETS(file, "from-a-file\n");
    check(&file, "token from-a-file is bad", "token *** is bad");
    check(&file, "from-a-file\nnext", "***\nnext");
}

static void test_nul_and_limit(void **state) {
    (void)state;
    _cleanup_(secrets_done) struct secrets s = {0};
    assert_int_equal(secrets_add(&s, "ab\0cd", 5), 0);
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    assert_int_equal(secrets_redact(&s, "x ab\0cd y\0z", 11, &out), 0);
    assert_int_equal(out.len, 9);
    assert_memory_equal(out.data, "x *** y\0z", 9);
    check(&s, "ab\\u0000cd", "***");
    _cleanup_buf_ struct buf small = BUF_INIT(4);
    assert_int_equal(secrets_redact(&s, "too long for it", 15, &small), -EMSGSIZE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_longest_and_overlap),
        cmocka_unit_test(test_short),      cmocka_unit_test(test_json_forms),
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_nul_and_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
