/* Files: what is written is read, and directories tell the truth. */
#include "contract/test.h"

#include "base/limits.h"

#define MISSING "/abx-contract-missing.txt"
#define PUT_TEXT(t, sb, path, text) put(t, sb, path, bytes_of(text))

/* ---- steps ------------------------------------------------------------------------------ */

static void put(struct test *t, abx_sandbox *sb, const char *path, abx_bytes data) {
    _cleanup_call_ struct ui_call c = {0};
    if (sb && test_ok(t)) test_done(t, &c, abx_files_write_start(&c.op, sb, path, data, &c.error), "files.write");
}

static void check_file(struct test *t, abx_sandbox *sb, const char *path, abx_bytes expected) {
    _cleanup_call_ struct ui_call c = {0};
    if (!sb || !test_ok(t) || !test_done(t, &c, abx_files_read_start(&c.op, sb, path, &c.error), "files.read")) return;
    check_bytes(t, "content", abx_value_bytes(abx_value_get(c.value, "content")), expected);
}

static void check_roundtrip(struct test *t, const char *path, abx_bytes data) {
    abx_sandbox *sb = test_sandbox(t);
    put(t, sb, path, data);
    check_file(t, sb, path, data);
}

/* Gone is what can't be read, or is something else: how a missing file is reported is a point of its own. */
static void check_gone(struct test *t, abx_sandbox *sb, const char *path, const char *content, const char *after) {
    _cleanup_call_ struct ui_call c = {0};
    if (!test_ok(t) || test_end(t, &c, abx_files_read_start(&c.op, sb, path, &c.error), "files.read") < 0) return;
    abx_bytes came = abx_value_bytes(abx_value_get(c.value, "content"));
    if (came.len == strlen(content) && memcmp(came.data, content, came.len) == 0)
        test_fail(t, "files.read after %s: expected nothing under the old name, came the file", after);
}

/* ---- contents ----------------------------------------------------------------------------- */

static void files_roundtrip(struct test *t) { check_roundtrip(t, "/abx-contract.txt", bytes_of("hello\n")); }

static void files_binary(struct test *t) {
    uint8_t data[1024];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 256);
    check_roundtrip(t, "/abx-contract.bin", (abx_bytes){data, sizeof data});
}

static void files_unicode(struct test *t) { check_roundtrip(t, "/abx-контракт-世界.txt", bytes_of("héllo 世界 привет 🙂 e\u0301\n")); }

static void files_overwrite_truncates(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    PUT_TEXT(t, sb, "/abx-contract.txt", "a longer text than the one that comes next");
    PUT_TEXT(t, sb, "/abx-contract.txt", "short");
    check_file(t, sb, "/abx-contract.txt", bytes_of("short"));
}

static void files_empty(struct test *t) { check_roundtrip(t, "/abx-contract.empty", bytes_of("")); }

/* Bytes that no compression or cut at a power of two leaves alone. */
static void files_large(struct test *t) {
    const size_t n = 2 * MIB + 1;
    _cleanup_free_ uint8_t *data = malloc(n);
    uint32_t x = 2463534242u;
    if (!data) return test_fail(t, "out of memory");
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (uint8_t)(x >> 24);
    }
    check_roundtrip(t, "/abx-contract.large", (abx_bytes){data, n});
}

/* ---- directories ---------------------------------------------------------------------------- */

static void files_mkdir_and_list(struct test *t) {
    _cleanup_call_ struct ui_call made = {0}, c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_done(t, &made, abx_files_mkdir_start(&made.op, sb, "/abx-contract", &made.error), "files.mkdir")) return;
    PUT_TEXT(t, sb, "/abx-contract/a.txt", "a");
    if (!test_ok(t) || !test_done(t, &c, abx_files_list_start(&c.op, sb, "/abx-contract", &c.error), "files.list")) return;
    const abx_value *entries = abx_value_get(c.value, "entries");
    _cleanup_free_ char *shown = show_value(c.value);
    if (abx_value_size(entries) != 1 || !streq0(abx_value_get_string(abx_value_at(entries, 0), "name"), "a.txt"))
        test_fail(t, "files.list: expected one entry, a.txt; came %s", shown);
}

static void files_stat(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    PUT_TEXT(t, sb, "/abx-contract.txt", "12345");
    if (!test_ok(t) || !test_done(t, &c, abx_files_stat_start(&c.op, sb, "/abx-contract.txt", &c.error), "files.stat")) return;
    check_text(t, "name of files.stat", abx_value_get(c.value, "name"), "abx-contract.txt");
    check_text(t, "type of files.stat", abx_value_get(c.value, "type"), "file");
    check_int(t, "size of files.stat", abx_value_int(abx_value_get(c.value, "size"), -1), 5);
}

static void files_move(struct test *t) {
    static const char from[] = "/abx-contract.old", to[] = "/abx-contract.new";
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    PUT_TEXT(t, sb, from, "moved");
    if (!test_ok(t) || !test_done(t, &c, abx_files_move_start(&c.op, sb, from, to, 0, &c.error), "files.move")) return;
    check_file(t, sb, to, bytes_of("moved"));
    check_gone(t, sb, from, "moved", "files.move");
}

static void files_remove(struct test *t) {
    static const char path[] = "/abx-contract.txt";
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    PUT_TEXT(t, sb, path, "removed");
    if (test_ok(t) && test_done(t, &c, abx_files_remove_start(&c.op, sb, path, &c.error), "files.remove"))
        check_gone(t, sb, path, "removed", "files.remove");
}

/* ---- what is not there ------------------------------------------------------------------------ */

static void missing_file_is_a_typed_not_found(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb) return;
    test_refused(t, &c, abx_files_read_start(&c.op, sb, MISSING, &c.error), "files.read of a missing file", ABX_E_FILE_NOT_FOUND,
                 ABX_E_RESOURCE_NOT_FOUND);
}

/* exists is files.stat, and false for these two errors only. */
static void files_exists_is_false_only_for_missing(struct test *t) {
    static const char path[] = "/abx-contract.txt";
    _cleanup_call_ struct ui_call there = {0}, missing = {0};
    abx_sandbox *sb = test_sandbox(t);
    PUT_TEXT(t, sb, path, "there");
    if (!test_ok(t) || !test_done(t, &there, abx_files_stat_start(&there.op, sb, path, &there.error), "files.stat")) return;
    test_refused(t, &missing, abx_files_stat_start(&missing.op, sb, MISSING, &missing.error), "files.stat of a missing file",
                 ABX_E_FILE_NOT_FOUND, ABX_E_RESOURCE_NOT_FOUND);
}

const struct test_row test_files_cases[] = {
    TEST_ROW(files_roundtrip),
    TEST_ROW(files_binary),
    TEST_ROW(files_unicode),
    TEST_ROW(files_overwrite_truncates),
    TEST_ROW(files_empty),
    TEST_ROW(files_large),
    TEST_ROW(files_mkdir_and_list),
    TEST_ROW(files_stat),
    TEST_ROW(files_move),
    TEST_ROW(files_remove),
    TEST_ROW(missing_file_is_a_typed_not_found),
    TEST_ROW(files_exists_is_false_only_for_missing),
    {0},
};
