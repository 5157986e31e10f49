/* Receipts: their bytes on disk, what is kept, what is refused, and what asks for a new consent. */
#include "store_help.h"

#include "store/receipt.h"

static struct manifest *load(const char *more) {
    put_manifest("p", "bench-c", "1.0.0", more);
    struct manifest *m = NULL;
    abx_error *e = NULL;
    assert_ok(manifest_load(&m, at("p"), true, &e), e);
    return m;
}

static abx_value *parse(const char *text) {
    abx_value *v = NULL;
    assert_int_equal(abx_value_parse(&v, text, strlen(text), NULL), 0);
    return v;
}

#define DIGEST "b9df4826545b21eb54f114911ab15222f2dc71d99c69fd27ff2d16ce941812c6"

static void test_bytes(void **state) {
    (void)state;
    _cleanup_manifest_ struct manifest *m = load("");
    _cleanup_value_ abx_value *source = parse("{\"type\":\"local\",\"path\":\"/w/src/\xe4\xb8\xad\"}");
    _cleanup_value_ abx_value *old = parse("{\"id\":\"other\",\"zeta\":{\"b\":1,\"a\":[]},\"aaa\":true}");
    _cleanup_value_ abx_value *v = receipt_new(m, source, DIGEST, "local", "abx-test", old);
    assert_non_null(v);
    static const char *const order[] = {
        "receipt_version", "id",        "version",      "source",       "tree_sha256", "manifest_sha256",
        "trust",           "consented", "installed_at", "installed_by", "zeta",        "aaa"};
    assert_int_equal(abx_value_size(v), ARRAY_SIZE(order));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) assert_string_equal(abx_value_key_at(v, i), order[i]);

    abx_error *e = NULL;
    assert_ok(receipt_write(root, v, &e), e);
    assert_int_equal(mode_of(".abx-install.json"), 0600);
    _cleanup_free_ char *want = str_printf(
        "{\n  \"aaa\": true,\n  \"consented\": {\n    \"commands\": [],\n    \"features\": [\n      "
        "\"exec.run\",\n"
        "      \"sandbox.lifecycle\"\n    ],\n    \"fields\": [],\n    \"inherit\": [],\n    \"runtime\": [\n"
        "      \"./plugin\"\n    ],\n    \"security\": {\n      \"env_passthrough\": [],\n      "
        "\"filesystem\": [],\n"
        "      \"network\": [],\n      \"spawns_processes\": false\n    }\n  },\n  \"id\": \"bench-c\",\n"
        "  \"installed_at\": \"%s\",\n  \"installed_by\": {\n    \"tool\": \"abx-test\"\n  },\n"
        "  \"manifest_sha256\": \"%s\",\n  \"receipt_version\": 1,\n  \"source\": {\n"
        "    \"path\": \"/w/src/\xe4\xb8\xad\",\n    \"type\": \"local\"\n  },\n  \"tree_sha256\": \"" DIGEST
        "\",\n"
        "  \"trust\": \"local\",\n  \"version\": \"1.0.0\",\n  \"zeta\": {\n    \"a\": [],\n    \"b\": 1\n  "
        "}\n}\n",
        abx_value_get_string(v, "installed_at"), m->sha256);
    assert_file(".abx-install.json", want);

    _cleanup_value_ abx_value *back = NULL;
    assert_ok(receipt_read(&back, root, "bench-c", &e), e);
    assert_true(abx_value_equal(back, v));
}

static void refuse(const char *text) {
    put(".abx-install.json", text);
    abx_value *v = NULL;
    abx_error *e = NULL;
    int r = receipt_read(&v, root, "a-b", &e);
    assert_error(r, e, ABX_E_INTEGRITY, NULL);
    assert_null(v);
}

static void test_faults(void **state) {
    (void)state;
    abx_value *v = NULL;
    abx_error *e = NULL;
    assert_int_equal(receipt_read(&v, root, "a-b", &e), -ENOENT);
    assert_int_equal(receipt_read(&v, at("nowhere"), "a-b", &e), -ENOENT);
    assert_null(e);
#define REST "\"version\":\"1\",\"consented\":{},\"tree_sha256\":\"" DIGEST "\""
    refuse("");
    refuse("[]");
    refuse("{\"receipt_version\":1");
    refuse("{\"receipt_version\":2,\"id\":\"a-b\",\"source\":{\"type\":\"local\"},\"trust\":\"local\"," REST
           "}");
    refuse("{\"receipt_version\":1,\"id\":\"a-c\",\"source\":{\"type\":\"local\"},\"trust\":\"local\"," REST
           "}");
    refuse("{\"receipt_version\":1,\"id\":\"a-b\",\"source\":{\"type\":\"link\",\"path\":\"x\"},\"trust\":"
           "\"link\"," REST "}");
    refuse("{\"receipt_version\":1,\"id\":\"a-b\",\"source\":{\"type\":\"link\",\"path\":\"/"
           "x\"},\"trust\":\"local\"," REST "}");
    refuse("{\"receipt_version\":1,\"id\":\"a-b\",\"source\":{\"type\":\"git\"},\"trust\":\"sure\"," REST
           "}");
    refuse("{\"receipt_version\":1,\"id\":\"a-b\",\"source\":{\"type\":\"git\"},\"trust\":\"pinned\","
           "\"version\":\"1\",\"consented\":{}}");
    put(".abx-install.json",
        "{\"receipt_version\":1,\"id\":\"a-b\",\"source\":{\"type\":\"catalog\"},\"trust\":\"pinned\"," REST
        "}");
    assert_ok(receipt_read(&v, root, "a-b", &e), e);
    abx_value_unref(v);
    v = NULL;
    assert_int_equal(rename(at(".abx-install.json"), at("elsewhere")), 0);
    assert_int_equal(symlink("elsewhere", at(".abx-install.json")), 0);
    int r = receipt_read(&v, root, "a-b", &e);
    assert_error(r, e, ABX_E_INTEGRITY, NULL);
}

static void expect_changes(const char *before, const char *now, const char *want) {
    _cleanup_value_ abx_value *a = parse(before), *b = parse(now);
    _cleanup_value_ abx_value *list = receipt_changes(a, b);
    _cleanup_free_ char *text = abx_value_print(list, 0, NULL);
    assert_string_equal(text, want);
}

static void test_changes(void **state) {
    (void)state;
    expect_changes("{\"runtime\":[\"a\"],\"features\":[]}", "{\"runtime\":[\"a\"],\"features\":[]}", "[]");
    expect_changes("{\"runtime\":[\"a\"]}", "{\"runtime\":[\"b\"],\"security\":{\"network\":[\"*\"]}}",
                   "[\"runtime\",\"security\"]");
    expect_changes("{\"inherit\":[\"a\",\"b\"]}", "{\"inherit\":[\"b\"]}", "[]");
    expect_changes("{\"inherit\":[\"a\"]}", "{\"inherit\":[\"a\",\"b\"]}", "[\"inherit\"]");
    expect_changes("{}", "{\"commands\":[],\"workflow_inputs\":[]}", "[]");
    expect_changes("{}", "{\"operation_contract_version\":1,\"commands\":[1]}",
                   "[\"operation_contract_version\",\"commands\"]");
    expect_changes("{\"fields\":[\"a\"]}", "{\"fields\":[]}", "[\"fields\"]");
    _cleanup_value_ abx_value *first = parse("{\"runtime\":[]}");
    _cleanup_value_ abx_value *none = receipt_changes(NULL, first);
    assert_int_equal(abx_value_size(none), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
    const struct CMUnitTest tests[] = {T(test_bytes), T(test_faults), T(test_changes)};
    return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
