/* Sources: what a text means, and what is not let in. */
#include "store_help.h"

#include "store/source.h"

static abx_install_opts opts(const char *source, const char *ref, const char *subdir, int insecure) {
    abx_install_opts o = ABX_INSTALL_OPTS_INIT;
    o.source = source;
    o.ref = ref;
    o.subdir = subdir;
    o.allow_insecure_transport = insecure;
    return o;
}

struct row {
    const char *source, *ref, *subdir;
    int insecure;
    const char *url, *want_ref, *want_subdir;
};

#define HEX "8cd6b21b8267831993e5e4c48327772560c290ee"
#define HEX_UP "8CD6B21B8267831993E5E4C48327772560C290EE"

static void test_good(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"acme/cloud", NULL, NULL, 0, "https://github.com/acme/cloud.git", "HEAD", ""},
        {"acme/cloud.git", NULL, NULL, 0, "https://github.com/acme/cloud.git", "HEAD", ""},
        {"acme/cloud//sub/dir", NULL, NULL, 0, "https://github.com/acme/cloud.git", "HEAD", "sub/dir"},
        {"acme/cloud//sub@v1", NULL, NULL, 0, "https://github.com/acme/cloud.git", "v1", "sub"},
        {"acme/cloud@feature/x", NULL, NULL, 0, "https://github.com/acme/cloud.git", "feature/x", ""},
        {"acme/cloud//@scope/p@v1", NULL, NULL, 0, "https://github.com/acme/cloud.git", "v1", "@scope/p"},
        {"acme/cloud", HEX_UP, "sub/", 0, "https://github.com/acme/cloud.git", HEX, "sub"},
        {"acme/cloud//sub@" HEX, HEX_UP, "sub", 0, "https://github.com/acme/cloud.git", HEX, "sub"},
        {"https://h.example/a/b.git", NULL, NULL, 0, "https://h.example/a/b.git", "HEAD", ""},
        {"git+https://h.example/a", "main", "p", 0, "https://h.example/a", "main", "p"},
        {"ssh://git@h.example:22/a", NULL, NULL, 0, "ssh://git@h.example:22/a", "HEAD", ""},
        {"git@github.com:acme/x.git", "v1.2.0", NULL, 0, "git@github.com:acme/x.git", "v1.2.0", ""},
        {"file:///srv/x", NULL, NULL, 1, "file:///srv/x", "HEAD", ""},
        {"http://h/x", NULL, NULL, 1, "http://h/x", "HEAD", ""},
        {"git://h/x", NULL, NULL, 1, "git://h/x", "HEAD", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_source_ struct source s = {0};
        abx_error *e = NULL;
        const abx_install_opts o = opts(rows[i].source, rows[i].ref, rows[i].subdir, rows[i].insecure);
        assert_ok(source_parse(&s, &o, &e), e);
        assert_true(s.git);
        assert_string_equal(s.url, rows[i].url);
        assert_string_equal(s.ref, rows[i].want_ref);
        assert_string_equal(s.subdir, rows[i].want_subdir);
        assert_int_equal(s.ref_is_commit, streq(rows[i].want_ref, HEX));
    }
}

#define INSECURE(s) "Insecure provider source '" s "'."
#define CREDENTIALS "Insecure provider source: credentials in URLs are not accepted."
#define NO_SOURCE(s) "Cannot fetch provider source: '" s "' is not a directory or a git URL."

static void test_bad(void **state) {
    (void)state;
    static const struct {
        const char *source, *ref, *subdir;
        int insecure, code;
        const char *message;
    } rows[] = {
        {"file:///srv/x", NULL, NULL, 0, ABX_E_TRUST, INSECURE("file:///srv/x")},
        {"http://example.com/a/b.git", NULL, NULL, 0, ABX_E_TRUST, INSECURE("http://example.com/a/b.git")},
        {"git://example.com/a", NULL, NULL, 0, ABX_E_TRUST, INSECURE("git://example.com/a")},
        {"ext::sh", NULL, NULL, 1, ABX_E_TRUST, INSECURE("ext::sh")},
        {"ftp://x/y", NULL, NULL, 1, ABX_E_TRUST, INSECURE("ftp://x/y")},
        {"ssh://-oProxyCommand=x/y", NULL, NULL, 1, ABX_E_TRUST, INSECURE("ssh://-oProxyCommand=x/y")},
        {"ssh://git@-x/y", NULL, NULL, 1, ABX_E_TRUST, INSECURE("ssh://git@-x/y")},
        {"https://user:tok@example.com/a/b.git", NULL, NULL, 0, ABX_E_TRUST, CREDENTIALS},
        {"https://tok@example.com/a/b.git", NULL, NULL, 0, ABX_E_TRUST, CREDENTIALS},
        {"http://user:tok@example.com/a", NULL, NULL, 0, ABX_E_TRUST, CREDENTIALS},
        {"ssh://u:p@h/x", NULL, NULL, 0, ABX_E_TRUST, CREDENTIALS},
        {"nosuchdir", NULL, NULL, 0, ABX_E_INSTALL, NO_SOURCE("nosuchdir")},
        {"./no/such", NULL, NULL, 0, ABX_E_INSTALL, NO_SOURCE("./no/such")},
        {"a/b/c", NULL, NULL, 0, ABX_E_INSTALL, NO_SOURCE("a/b/c")},
        {"/no/such", NULL, NULL, 0, ABX_E_INSTALL, NO_SOURCE("/no/such")},
        {"https://h/x y", NULL, NULL, 0, ABX_E_INSTALL,
         "The source URL holds white space or control characters."},
        {"a/b", NULL, "../x", 0, ABX_E_INSTALL, "Unsafe --subdir '../x'."},
        {"a/b", NULL, "/x", 0, ABX_E_INSTALL, "Unsafe --subdir '/x'."},
        {"a/b", "-x", NULL, 0, ABX_E_INSTALL, "Unsafe --ref '-x'."},
        {"a/b", "a:b", NULL, 0, ABX_E_INSTALL, "Unsafe --ref 'a:b'."},
        {"a/b", "", NULL, 0, ABX_E_INSTALL, "Unsafe --ref ''."},
        {"a/b//x", NULL, "y", 0, ABX_E_INSTALL, "The source says subdir 'x' and --subdir says 'y'."},
        {"a/b@v1", "v2", NULL, 0, ABX_E_INSTALL, "The source says ref 'v1' and --ref says 'v2'."},
        {"a/b//..", NULL, NULL, 0, ABX_E_INSTALL, "Unsafe --subdir '..'."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct source s = {0};
        abx_error *e = NULL;
        const abx_install_opts o = opts(rows[i].source, rows[i].ref, rows[i].subdir, rows[i].insecure);
        int r = source_parse(&s, &o, &e);
        assert_error(r, e, rows[i].code, rows[i].message);
        assert_null(s.url);
    }
}

static void test_hints(void **state) {
    (void)state;
    struct source s = {0};
    abx_error *e = NULL;
    abx_install_opts o = opts("http://h/x", NULL, NULL, 0);
    assert_true(source_parse(&s, &o, &e) < 0);
    assert_string_equal(abx_error_hint(e),
                        "Use https:// or ssh:// (or --allow-insecure-transport for testing).");
    e = abx_error_unref(e);
    o = opts("nosuchdir", NULL, NULL, 0);
    assert_true(source_parse(&s, &o, &e) < 0);
    assert_string_equal(abx_error_hint(e),
                        "Pass a local directory, owner/repo//subdir[@ref], or an https://, ssh:// or "
                        "git@host:path URL.");
    abx_error_unref(e);
}

static void test_local(void **state) {
    (void)state;
    _cleanup_source_ struct source s = {0};
    abx_error *e = NULL;
    put("d/sub/x", "x");
    _cleanup_free_ char *text = strdup(at("d/../d"));
    _cleanup_free_ char *want = realpath(at("d/sub"), NULL);
    abx_install_opts o = opts(text, NULL, "sub", 0);
    assert_ok(source_parse(&s, &o, &e), e);
    assert_false(s.git);
    assert_string_equal(s.path, want);
    _cleanup_value_ abx_value *v = source_to_value(&s, false, NULL);
    _cleanup_free_ char *json = abx_value_print(v, 0, NULL);
    _cleanup_free_ char *want_json = str_printf("{\"type\":\"local\",\"path\":\"%s\"}", want);
    assert_string_equal(json, want_json);

    struct source none = {0};
    o = opts(text, "v1", NULL, 0);
    int r = source_parse(&none, &o, &e);
    assert_error(r, e, ABX_E_INSTALL, NULL);
    e = NULL;
    o = opts(at("d/sub/x"), NULL, NULL, 0); /* a file */
    r = source_parse(&none, &o, &e);
    assert_error(r, e, ABX_E_INSTALL, NULL);
    e = NULL;
    o = opts("file:///srv/x", NULL, NULL, 1);
    o.link = 1;
    r = source_parse(&none, &o, &e);
    assert_error(r, e, ABX_E_INSTALL, "--link needs a local directory.");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
    const struct CMUnitTest tests[] = {T(test_good), T(test_bad), T(test_hints), T(test_local)};
    return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
