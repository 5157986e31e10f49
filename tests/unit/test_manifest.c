/* Manifests: what is read, what is refused and in which words, what consent covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "provider/features.h"
#include "provider/manifest.h"

static const char base[] =
    "manifest_version = 1\n"
    "operation_contract_version = 1\n"
    "[provider]\n"
    "id = \"bench-c\"\n"
    "name = \"bench-c\"\n"
    "version = \"1.0.0\"\n"
    "[compat]\n"
    "protocol = \"epp/1\"\n"
    "[runtime]\n"
    "kind = \"exec\"\n"
    "command = [\"./plugin\", \"./init.json\"]\n"
    "startup_timeout_ms = 10000\n"
    "call_timeout_ms = 60000\n"
    "[features]\n"
    "supported = [\"sandbox.lifecycle\", \"exec.run\", \"exec.stream\", \"files.rw\"]\n"
    "[operations]\n"
    "cli = []\n"
    "python = [\"sandbox.create\", \"exec.run\", \"files.stat\"]\n"
    "[workflow]\n"
    "inputs = []\n"
    "startups = []\n"
    "[security]\n"
    "network = []\n"
    "filesystem = [\"data_dir\"]\n"
    "spawns_processes = false\n";

/* The line that starts with `line` (NULL: none) replaced; more behind the text. free() it. */
static char *variant(const char *line, const char *with, const char *more) {
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    bool hit = !line;
    for (const char *p = base; *p;) {
        size_t n = strcspn(p, "\n") + 1;
        if (line && str_starts(p, line)) {
            if (*with) buf_printf(&out, "%s\n", with);
            hit = true;
        } else {
            buf_append(&out, p, n);
        }
        p += n;
    }
    buf_str(&out, more);
    assert_true(hit);
    return buf_take(&out);
}

static void assert_error(const char *text, int code, const char *message) {
    struct manifest *m = NULL;
    _cleanup_error_ abx_error *e = NULL;
    int r = manifest_parse(&m, text, strlen(text), true, &e);
    if (r >= 0) fail_msg("taken, instead of: %s", message);
    assert_null(m);
    assert_string_equal(abx_error_message(e), message);
    assert_int_equal(r, code);
    assert_int_equal(abx_error_code(e), code);
}

#define BAD "Invalid abx-provider.toml: "

static void test_words(void **state) {
    (void)state;
    /* What replaces the line that starts with the first, and what is said then. */
    static const struct {
        const char *line, *with, *more, *say;
    } rows[] = {
        {"manifest_version", "manifest_version = 2", "", "manifest_version must be 1."},
        {"manifest_version", "manifest_version = true", "", "manifest_version must be 1."},
        {"operation_contract_version", "", "", "operation_contract_version must be 1."},
        {"operation_contract_version", "operation_contract_version = 1.0", "",
         "operation_contract_version must be 1."},
        {"id =", "id = \"core\"", "", "provider id 'core' is reserved."},
        {"id =", "id = \"abx-foo\"", "", "provider id 'abx-foo' is reserved."},
        {"id =", "id = \"alicloud-express\"", "", "provider id 'alicloud-express' is reserved."},
        {"id =", "id = \"Bench\"", "",
         "provider id must be 2-40 chars of lowercase letters, digits and single hyphens, starting with a letter."},
        {"id =", "id = \"../x\"", "",
         "provider id must be 2-40 chars of lowercase letters, digits and single hyphens, starting with a letter."},
        {"id =", "id = 7", "", "provider.id must be a string."},
        {"id =", "", "", "provider.id is required."},
        {"name =", "name = [\"x\"]", "", "provider.name must be a string."},
        {"version =", "version = \"one\"", "", "provider.version: Invalid version: 'one'."},
        {"version =", "version = 1.0", "", "provider.version must be a string."},
        {"kind =", "kind = \"wasm\"", "", "runtime.kind must be 'exec' or 'rest'."},
        {"kind =", "kind = \"node\"", "",
         "runtime.kind 'node' is not supported by this host; write the provider as 'exec' (a process that speaks EPP/1)."},
        {"kind =", "kind = \"python\"", "",
         "runtime.kind 'python' is no longer supported; register the provider from code, or write it as 'exec' (a process that "
         "speaks EPP/1)."},
        {"protocol =", "requires = {sdk = \"=>1\"}", "",
         "compat.requires.sdk: invalid version comparator '=>1'."},
        {"protocol =", "requires = {sdk = 1}", "", "compat.requires must be a table of strings."},
        {"protocol =", "requires = \">=1\"", "", "compat.requires must be a table of strings."},
        {"command =", "command = []", "",
         "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "", "", "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "command = \"./plugin\"", "",
         "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "command = [\"./plugin\", 1]", "",
         "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "command = [\"./plugin\", \"\"]", "",
         "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "command = [\"./plugin\", \"a\\u0000b\"]", "",
         "runtime.command must be a non-empty array of non-empty strings."},
        {"command =", "command = [\"../x\"]", "",
         "runtime.command executable must stay inside the plugin directory."},
        {"command =", "command = [\"./a/../../x\"]", "",
         "runtime.command executable must stay inside the plugin directory."},
        {"command =", "command = [\"bin/../..\\\\..\\\\x\"]", "",
         "runtime.command executable must stay inside the plugin directory."},
        {"command =", "command = [\"./x.BAT\"]", "",
         "runtime.command may not start a .bat/.cmd/.ps1 launcher (they need a shell); use an .exe or an interpreter plus script."},
        {"startup_timeout_ms", "startup_timeout_ms = 50", "",
         "runtime.startup_timeout_ms must be an integer between 100 and 3600000."},
        {"startup_timeout_ms", "startup_timeout_ms = true", "",
         "runtime.startup_timeout_ms must be an integer between 100 and 3600000."},
        {"call_timeout_ms", "call_timeout_ms = 1000.0", "",
         "runtime.call_timeout_ms must be an integer between 100 and 3600000."},
        {"call_timeout_ms", "call_timeout_ms = 3600001", "",
         "runtime.call_timeout_ms must be an integer between 100 and 3600000."},
        {"call_timeout_ms", "platforms = [\"beos\"]", "",
         "runtime.platforms: 'beos' is not one of linux, darwin, windows, with -x64 or -arm64 or without."},
        {"supported =", "supported = [\"files.nope\", \"exec.run\", \"a\"]", "",
         "unknown feature(s): a, files.nope."},
        {"supported =", "", "", "features.supported is required."},
        {"supported =", "supported = \"pty\"", "",
         "features.supported must be an array of strings."},
        {"python =", "python = [\"files.nope\"]", "",
         "operations.python contains duplicate or unknown operations."},
        {"python =", "python = [\"exec.run\", \"exec.run\"]", "",
         "operations.python contains duplicate or unknown operations."},
        {"python =", "python = [\"code.execute\"]", "",
         "exec Python bridge does not implement interpreter operations."},
        {"python =", "python = [\"template.prepare\"]", "",
         "operations.python template.prepare has no implementation."},
        {"python =", "", "", "operations must declare exactly cli and python arrays."},
        {"startups =", "", "",
         "workflow must declare inputs and startups; only source_placeholders is optional."},
        {"inputs =", "inputs = [\"x\"]", "",
         "workflow.inputs contains duplicate or unknown values."},
        {"startups =", "startups = []\nsource_placeholders = [\"<tag>\"]", "",
         "workflow.source_placeholders requires CLI template.prepare and source input."},
        {"filesystem =", "filesystem = [\"root\"]", "",
         "security.filesystem: unknown scope 'root'."},
        {"network =", "network = [\"a b\"]", "",
         "security.network: 'a b' is not a host, host:port or *."},
        {"network =", "network = [\"\"]", "",
         "security.network: '' is not a host, host:port or *."},
        {"network =", "env_passthrough = [\"abx_X\"]", "",
         "security.env_passthrough may not name 'abx_X'."},
        {"network =", "env_passthrough = [\"A=B\"]", "",
         "security.env_passthrough may not name 'A=B'."},
        {"spawns_processes", "spawns_processes = 1", "",
         "security.spawns_processes must be true or false."},
        {NULL, NULL, "[core]\ninherit = [\"region\"]\n",
         "core.inherit may only contain sandbox_api_key, sandbox_base_url, sandbox_domain (got region)."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"bytes\"\n",
         "config.fields.tok.type 'bytes' is not one of string, int, float, bool, enum, path, url, csv."},
        {NULL, NULL, "[config.fields.tok]\nsecret = true\ndefault = \"x\"\n",
         "config.fields.tok: secret fields may not have a default."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"enum\"\n",
         "config.fields.tok: enum fields need 'choices'."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"enum\"\nchoices = [\"a\"]\ndefault = \"b\"\n",
         "config.fields.tok.default is not one of its choices."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"int\"\ndefault = \"5\"\n",
         "config.fields.tok.default does not fit the type int."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"int\"\ndefault = true\n",
         "config.fields.tok.default does not fit the type int."},
        {NULL, NULL, "[config.fields.tok]\ntype = \"bool\"\ndefault = 1\n",
         "config.fields.tok.default does not fit the type bool."},
        {NULL, NULL, "[config.fields.tok]\ndefault = 1\n",
         "config.fields.tok.default does not fit the type string."},
        {NULL, NULL, "[config.fields.tok]\nsecret = \"yes\"\n",
         "config.fields.tok.secret must be true or false."},
        {NULL, NULL, "[config.fields.tok]\nenv = [\"E2B_API_KEY\"]\n",
         "config.fields.tok.env may not use the reserved name 'E2B_API_KEY'."},
        {NULL, NULL, "[config.fields.tok]\nenv = [\"GITHUB_TOKEN\"]\n",
         "config.fields.tok.env may not use the reserved name 'GITHUB_TOKEN'."},
        {NULL, NULL, "[config.fields.Tok]\n", "field key 'Tok' must match ^[a-z][a-z0-9_]*$."},
        {NULL, NULL, "[config.fields.http_timeout]\n",
         "field key 'http_timeout' collides with a core key."},
        {NULL, NULL, "[config.fields.default_template]\n",
         "field key 'default_template' collides with a core key."},
        {NULL, NULL, "[config.fields]\ntok = 1\n", "config.fields.tok must be a table."},
        {NULL, NULL, "[config]\nfields = []\n", "[config.fields] must be a table."},
        {"id =", "id = \"sandbox\"", "[config.fields.api_key]\n",
         "config.fields.api_key: its variable ABX_SANDBOX_API_KEY is not the provider's."},
        {"id =", "id = \"alicloud\"", "[config.fields.express_access_key_secret]\n",
         "config.fields.express_access_key_secret: its variable ABX_ALICLOUD_EXPRESS_ACCESS_KEY_SECRET is not the provider's."},
        {NULL, NULL, "[auth]\nany_of = [[\"nofield\"]]\n",
         "auth.any_of references undeclared field(s): nofield."},
        {NULL, NULL, "[auth]\nany_of = [[]]\n", "auth.any_of may not have an empty group."},
        {NULL, NULL, "[auth]\nany_of = [\"a\"]\n",
         "auth.any_of must be an array of arrays of strings."},
        {NULL, NULL, "[commands]\nprotocol = \"x\"\n",
         "commands.protocol must be 'provider-commands/1'."},
        {NULL, NULL, "[commands]\nprotocol = \"provider-commands/1\"\n",
         "commands.entries must be an array of at most 128 entries."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *text = variant(rows[i].line, rows[i].with, rows[i].more);
        _cleanup_free_ char *say = str_printf(BAD "%s", rows[i].say);
        assert_error(text, ABX_E_MANIFEST, say);
    }
}

static void test_host(void **state) {
    (void)state;
    static const struct {
        const char *line, *with, *say;
    } rows[] = {
        {"protocol =", "protocol = \"epp/2\"",
         "Provider 'bench-c' uses protocol 'epp/2', which this host does not support."},
        {"protocol =", "requires = {sdk = \">=99\"}",
         "Provider 'bench-c' requires sdk >=99 (this is 0.4.0a6)."},
        {"call_timeout_ms", "platforms = [\"windows\"]",
         "Provider 'bench-c' does not run on this platform; it is for windows."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *text = variant(rows[i].line, rows[i].with, "");
        assert_error(text, ABX_E_VERSION, rows[i].say);
        if (i == 0) continue;
        _cleanup_manifest_ struct manifest *m = NULL;
        assert_int_equal(manifest_parse(&m, text, strlen(text), false, NULL), 0);
    }
    _cleanup_free_ char *fits =
        variant("protocol =", "requires = {sdk = \">=0.4.0a1\", other = \">99\"}", "");
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_parse(&m, fits, strlen(fits), true, NULL), 0);
}

static void test_syntax(void **state) {
    (void)state;
    _cleanup_free_ char *text = variant("name =", "name = ", "");
    _cleanup_error_ abx_error *e = NULL;
    struct manifest *m = NULL;
    assert_int_equal(manifest_parse(&m, text, strlen(text), true, &e), ABX_E_MANIFEST);
    assert_true(str_starts(abx_error_message(e), BAD));
    assert_non_null(strstr(abx_error_message(e), "(at line 5, column "));
    _cleanup_free_ char *large = calloc(1, LIMIT_MANIFEST + 2);
    memset(large, '#', LIMIT_MANIFEST + 1);
    assert_error(large, ABX_E_MANIFEST, BAD "file exceeds 256 KiB.");
    assert_error("", ABX_E_MANIFEST, BAD "manifest_version must be 1.");
    assert_error("manifest_version = 1", ABX_E_MANIFEST, BAD "missing [provider] table.");
    assert_error("manifest_version = 1\nprovider = 1", ABX_E_MANIFEST,
                 BAD "[provider] must be a table.");
}

static void test_minimal(void **state) {
    (void)state;
    static const char text[] =
        "manifest_version = 1\nprovider = {id = \"p1\", version = \"1\"}\nfoo = 1\n"
        "runtime = {kind = \"exec\", command = [\"python3\", \"p.py\"], shiny = true}\n"
        "features = {supported = [\"pty\", \"pty\"]}\n[bogus]\nx = 1\n[config.fields.a]\nicon = \"x\"\n";
    _cleanup_manifest_ struct manifest *m = NULL;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(manifest_parse(&m, text, strlen(text), true, &e), 0);
    assert_string_equal(m->name, "p1");
    assert_string_equal(m->name_zh, "");
    assert_string_equal(m->protocol, "epp/1");
    assert_int_equal(m->startup_timeout_ms, DEFAULT_STARTUP_TIMEOUT_MS);
    assert_int_equal(m->call_timeout_ms, DEFAULT_CALL_TIMEOUT_MS);
    assert_false(m->has_contract);
    assert_true(manifest_has_feature(m, "pty"));
    assert_false(manifest_has_feature(m, "exec.run"));
    assert_int_equal(strv_len(m->features), 1);
    assert_int_equal(manifest_field(m, "a")->type, FIELD_STR);
    assert_null(manifest_field(m, "b"));
    static const char *const unknown[] = {"foo", "runtime.shiny", "bogus", "config.fields.a.icon"};
    assert_int_equal(strv_len(m->unknown_keys), ARRAY_SIZE(unknown));
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
        assert_true(strv_contains(m->unknown_keys, unknown[i]));
    assert_int_equal(strlen(m->sha256), 64);
    _cleanup_value_ abx_value *consented = manifest_consented(m);
    assert_null(abx_value_get(consented, "operations"));
    assert_null(abx_value_get(consented, "operation_contract_version"));
}

static void test_fields(void **state) {
    (void)state;
    _cleanup_free_ char *text = variant(
        NULL, NULL,
        "[config.fields.n]\ntype = \"int\"\ndefault = 5\nrequired = true\ndescription = \"d\"\nenv = [\"MY_N\", \"MY_N\"]\n"
        "[config.fields.f]\ntype = \"float\"\ndefault = 2\n[config.fields.e]\ntype = \"enum\"\nchoices = [\"a\", \"b\"]\ndefault = \"b\"\n"
        "[config.fields.s]\nsecret = true\ncredential = true\ndefault = \"\"\n[config.fields.b]\ntype = \"bool\"\ndefault = false\n"
        "[config.fields.i]\ntype = \"int\"\ndefault = \"\"\n[config.fields.region]\n"
        "[auth]\nany_of = [[\"s\"], [\"sandbox_api_key\", \"n\"]]\n[core]\ninherit = [\"sandbox_api_key\", \"sandbox_api_key\"]\n");
    _cleanup_manifest_ struct manifest *m = NULL;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(manifest_parse(&m, text, strlen(text), true, &e), 0);
    const struct manifest_field *n = manifest_field(m, "n"), *f = manifest_field(m, "f"),
                                *s = manifest_field(m, "s");
    assert_int_equal(n->type, FIELD_INT);
    assert_int_equal(abx_value_int(n->default_, 0), 5);
    assert_true(n->required && !n->secret && !n->credential);
    assert_int_equal(strv_len(n->env), 1);
    assert_true(abx_value_is(f->default_, ABX_TYPE_DOUBLE));
    assert_true(s->secret && s->credential && !s->default_);
    assert_null(manifest_field(m, "i")->default_);
    assert_true(abx_value_is(manifest_field(m, "b")->default_, ABX_TYPE_BOOL));
    assert_string_equal(abx_value_string(manifest_field(m, "e")->default_), "b");
    assert_int_equal(m->field_count, 7);
    assert_int_equal(strv_len(m->inherit), 1);
    assert_int_equal(abx_value_size(m->auth_any_of), 2);
}

static void test_consented(void **state) {
    (void)state;
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_parse(&m, base, strlen(base), true, NULL), 0);
    _cleanup_value_ abx_value *v = manifest_consented(m);
    _cleanup_free_ char *text = abx_value_print(v, ABX_PRINT_SORTED, NULL);
    assert_string_equal(
        text,
        "{\"commands\":[],\"features\":[\"exec.run\",\"exec.stream\",\"files.rw\",\"sandbox.lifecycle\"],\"fields\":[],\"inherit\":[],"
        "\"operation_contract_version\":1,\"operations\":{\"cli\":[],\"python\":[\"exec.run\",\"files.stat\",\"sandbox.create\"]},"
        "\"runtime\":[\"./plugin\",\"./init.json\"],\"security\":{\"env_passthrough\":[],\"filesystem\":[\"data_dir\"],\"network\":[],"
        "\"spawns_processes\":false},\"startup_modes\":[],\"workflow_inputs\":[]}");
}

static void test_rest(void **state) {
    (void)state;
    static const char head[] =
        "manifest_version = 1\nprovider = {id = \"r1\", version = \"1\"}\nruntime = {kind = \"rest\"}\n"
        "features = {supported = [\"sandbox.lifecycle\"]}\n";
    static const char *const rows[][2] = {
        {"", "missing [endpoint] table."},
        {"[endpoint]\nbase_url = \"ftp://x\"\n", "endpoint.base_url must be an http(s) URL."},
        {"[endpoint]\nbase_url = \"https://\"\n", "endpoint.base_url must be an http(s) URL."},
        {"[endpoint]\nauth = {scheme = \"basic\"}\n",
         "endpoint.auth.scheme must be 'bearer' or 'header'."},
        {"[endpoint]\nauth = {scheme = \"header\"}\n", "endpoint.auth.header is required."},
        {"[endpoint]\nauth = {scheme = \"header\", header = \"X:\"}\n",
         "endpoint.auth.header must be the name of a header."},
        {"[endpoint]\nderive = {region = \"x\"}\n", "endpoint.derive.region is not derivable."},
        {"[endpoint]\nderive = {sandbox_domain = 1}\n",
         "endpoint.derive must be a table of strings."},
        {"[endpoint]\n[commands]\nprotocol = \"provider-commands/1\"\nentries = [{}]\n",
         "only exec providers may declare commands."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *text = str_printf("%s%s", head, rows[i][0]),
                            *say = str_printf(BAD "%s", rows[i][1]);
        assert_error(text, ABX_E_MANIFEST, say);
    }
    _cleanup_free_ char *text = str_printf("%s[endpoint]\nbase_url = \"https://a.b\"\n", head);
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_parse(&m, text, strlen(text), true, NULL), 0);
    assert_string_equal(m->protocol, "e2b-rest/1");
    _cleanup_value_ abx_value *v = manifest_consented(m);
    _cleanup_free_ char *runtime = abx_value_print(abx_value_get(v, "runtime"), 0, NULL);
    assert_string_equal(runtime, "[\"rest\",\"https://a.b\"]");
}

#define ENTRY(id, more)                                                                            \
    "{id = \"" id "\", description = \"d\", description_zh = \"d\", output_schema = {}, " more "}"
#define INPUT                                                                                      \
    "input_schema = {type = \"object\", additionalProperties = false, properties = {pattern = {type = \"string\"}}}"

static void test_commands(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {ENTRY("A", INPUT),
         "commands entry id must be a lowercase operation id of at most 80 characters."},
        {ENTRY("a..b", INPUT),
         "commands entry id must be a lowercase operation id of at most 80 characters."},
        {ENTRY("a", INPUT ", effect = \"burn\""),
         "commands.a.effect must be read, write or delete."},
        {ENTRY("a", INPUT ", effect = \"read\""), "commands.a.idempotent must be a boolean."},
        {ENTRY("a", "effect = \"read\", idempotent = true"),
         "commands.a.input_schema must be a schema object."},
        {ENTRY("a", "effect = \"read\", idempotent = true, input_schema = {type = \"object\"}"),
         "commands.a.input_schema must declare type object and additionalProperties = false."},
        {ENTRY(
             "a",
             "effect = \"read\", idempotent = true, input_schema = {type = \"object\", additionalProperties = false, "
             "properties = {x = {pattern = \"(a+)+\"}}}"),
         "commands.a.input_schema may not use references, ids, asynchronous schemas, patterns or formats."},
        {ENTRY("a", INPUT ", shell = \"rm\""),
         "commands entry must be a descriptor with known fields."},
        {ENTRY("a", INPUT ", effect = \"read\", idempotent = true") ", " ENTRY(
             "a", INPUT ", effect = \"read\", idempotent = true"),
         "duplicate commands entry 'a'."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *more = str_printf(
            "[commands]\nprotocol = \"provider-commands/1\"\nentries = [%s]\n", rows[i][0]);
        _cleanup_free_ char *text = variant(NULL, NULL, more),
                            *say = str_printf(BAD "%s", rows[i][1]);
        assert_error(text, ABX_E_MANIFEST, say);
    }
    _cleanup_free_ char *text = variant(
        NULL, NULL,
        "[commands]\nprotocol = \"provider-commands/1\"\nentries = [" ENTRY(
            "b.x", INPUT
            ", effect = \"read\", idempotent = true") ", " ENTRY("a", INPUT
                                                                 ", effect = \"delete\", idempotent = false") "]\n");
    _cleanup_manifest_ struct manifest *m = NULL;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(manifest_parse(&m, text, strlen(text), true, &e), 0);
    assert_string_equal(abx_value_get_string(abx_value_at(m->commands, 0), "id"), "a");
    assert_string_equal(abx_value_get_string(abx_value_at(m->commands, 1), "id"), "b.x");
}

static void test_from_value(void **state) {
    (void)state;
    static const char json[] =
        "{\"provider\":{\"id\":\"mine\"},\"features\":{\"supported\":[\"exec.run\"]}}";
    _cleanup_value_ abx_value *doc = NULL, *number = abx_value_new_int(1);
    assert_int_equal(abx_value_parse(&doc, json, strlen(json), NULL), 0);
    _cleanup_manifest_ struct manifest *m = NULL, *other = NULL;
    assert_int_equal(manifest_from_value(&m, doc, NULL), 0);
    assert_string_equal(m->id, "mine");
    assert_int_equal(strlen(m->sha256), 64);
    assert_int_equal(manifest_from_value(&other, number, NULL), ABX_E_MANIFEST);
    static const char kind[] =
        "{\"provider\":{\"id\":\"mine\",\"version\":\"2\"},\"runtime\":{\"kind\":\"python\"},\"features\":{\"supported\":[]}}";
    _cleanup_value_ abx_value *doc2 = NULL;
    assert_int_equal(abx_value_parse(&doc2, kind, strlen(kind), NULL), 0);
    assert_int_equal(manifest_from_value(&other, doc2, NULL), 0);
    assert_string_equal(other->kind, "python");
    assert_string_not_equal(other->sha256, m->sha256);
}

static void test_load(void **state) {
    (void)state;
    _cleanup_free_ char *dir = NULL;
    assert_int_equal(fs_mkdtemp(getenv("TMPDIR") ?: "/tmp", "abx-manifest-", &dir), 0);
    _cleanup_free_ char *file = path_join(dir, MANIFEST_NAME), *real = path_join(dir, "real");
    struct manifest *m = NULL;
    abx_error *e = NULL;
    assert_int_equal(manifest_load(&m, dir, true, &e), ABX_E_MANIFEST);
    assert_string_equal(abx_error_message(e), BAD "file not found at the plugin root.");
    assert_string_equal(
        abx_error_hint(e),
        "Point SOURCE at the directory that contains abx-provider.toml (owner/repo//subdir or --subdir).");
    e = abx_error_unref(e);
    assert_int_equal(fs_write_atomic(real, base, strlen(base), 0600), 0);
    assert_int_equal(symlink(real, file), 0);
    assert_int_equal(manifest_load(&m, dir, true, &e), ABX_E_MANIFEST);
    assert_string_equal(abx_error_message(e), BAD "not a regular file.");
    e = abx_error_unref(e);
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_int_equal(manifest_load(&m, dir, true, NULL), ABX_E_MANIFEST);
    unlink(file);
    assert_int_equal(rename(real, file), 0);
    assert_int_equal(manifest_load(&m, dir, true, &e), 0);
    m = manifest_unref(m);
    assert_int_equal(fs_remove_tree(dir), 0);
}

static void test_builtin(void **state) {
    (void)state;
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_builtin(&m, NULL), 0);
    assert_string_equal(m->id, BUILTIN_PROVIDER);
    assert_string_equal(m->version, COMPAT_SDK_VERSION);
    assert_int_equal(strv_len(m->features), 18);
    assert_int_equal(strv_len(m->inherit), 3);
    assert_true(manifest_field(m, "access_key_secret")->secret);
    assert_string_equal(abx_value_string(manifest_field(m, "region")->default_), "cn-hangzhou");
    _cleanup_value_ abx_value *v = manifest_consented(m);
    assert_non_null(v);
    struct manifest *again = manifest_ref(m);
    assert_ptr_equal(again, m);
    assert_null(manifest_unref(again));
    assert_null(manifest_unref(NULL));
}

static void test_ids(void **state) {
    (void)state;
    static const char *const good[] = {"e2b",      "opensandbox", "alicloud-container",
                                       "my-cloud", "a1",          "x-1-y"};
    static const char *const bad[] = {
        "",          "a",           "1a",
        "-a",        "a-",          "a--b",
        "a_b",       "default",     "all",
        "none",      "builtin",     "shortcuts-x",
        "transport", "providers",   "alicloud-x",
        "abx-x",     "caf\xc3\xa9", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char scratch[128];
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (provider_id_problem(good[i], scratch)) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (!provider_id_problem(bad[i], scratch)) fail_msg("taken: %s", bad[i]);
}

static void test_features_line(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"[\"files.rw\",\"sandbox.pause\",\"pty\",\"exec.stream\",\"sandbox.lifecycle\",\"exec.run\"]",
         "sandbox(lifecycle,pause) exec(run,stream) pty files(rw)"},
        {"[]", ""},
        {"[\"pty\"]", "pty"},
        {"[\"sessions\",\"ports.url\"]", "ports(url) sessions"},
        {"[\"nope\",1,\"exec.run\"]", "exec(run)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_value_ abx_value *v = NULL;
        assert_int_equal(abx_value_parse(&v, rows[i][0], strlen(rows[i][0]), NULL), 0);
        _cleanup_free_ char *line = abx_features_line(v);
        assert_string_equal(line, rows[i][1]);
    }
    size_t n = 0;
    while (abx_feature_at(n)) n++;
    assert_int_equal(n, 18);
    assert_int_equal(feature_index("sandbox.lifecycle"), 0);
    assert_int_equal(feature_index("sessions"), 17);
    assert_int_equal(feature_index("nope"), -1);
    assert_true(operation_known("ports.resolve"));
    assert_false(operation_known("ports.url"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),         cmocka_unit_test(test_host),
        cmocka_unit_test(test_syntax),        cmocka_unit_test(test_minimal),
        cmocka_unit_test(test_fields),        cmocka_unit_test(test_consented),
        cmocka_unit_test(test_rest),          cmocka_unit_test(test_commands),
        cmocka_unit_test(test_from_value),    cmocka_unit_test(test_load),
        cmocka_unit_test(test_builtin),       cmocka_unit_test(test_ids),
        cmocka_unit_test(test_features_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
