/* abx_provider_scaffold(): what it writes, what it refuses, and that a failure leaves nothing. */
#include <abx/abx.h>
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "provider/manifest.h"

static int set_up(void **state) {
    char *dir = NULL;
    if (fs_mkdtemp(getenv("TMPDIR") ?: "/tmp", "abx-scaffold-", &dir) < 0) return -1;
    *state = dir;
    return 0;
}

static int tear_down(void **state) {
    int r = fs_remove_tree(*state);
    free(*state);
    return r;
}

static size_t count(const char *dir) {
    _cleanup_closedir_ DIR *d = opendir(dir);
    size_t n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += !streq(e->d_name, ".") && !streq(e->d_name, "..");
    return n;
}

static mode_t mode_of(const char *dir, const char *name) {
    _cleanup_free_ char *path = path_join(dir, name);
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    return st.st_mode & 0777;
}

static void refuses(const char *id, const char *dir, const char *kind, const char *lang, const char *says) {
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(abx_provider_scaffold(id, dir, kind, lang, &e), ABX_E_CONFIG);
    assert_non_null(e);
    assert_int_equal(abx_error_code(e), ABX_E_CONFIG);
    _cleanup_free_ char *text = str_printf("%s %s", abx_error_message(e), abx_error_hint(e));
    if (!strstr(text, says)) fail_msg("'%s' does not say '%s'", text, says);
}

static void writes_each_kind(void **state) {
    static const struct {
        const char *kind, *lang, *command, *program;
        size_t files;
        mode_t mode;
    } rows[] = {
        {"exec", "python", "./provider.py", "provider.py", 3, 0755}, {"exec", "node", "./provider.mjs", "provider.mjs", 3, 0755},
        {"exec", "c", "./provider", "provider.c", 5, 0644},          {"exec", "shell", "./provider.sh", "provider.sh", 3, 0755},
        {"rest", "python", NULL, "README.md", 2, 0644},
    };
    mode_t mask = umask(022);
    umask(mask);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *dir = str_printf("%s/new/%zu", (char *)*state, i);
        _cleanup_error_ abx_error *e = NULL;
        _cleanup_manifest_ struct manifest *m = NULL;
        assert_int_equal(abx_provider_scaffold("my-cloud", dir, rows[i].kind, rows[i].lang, &e), 0);
        assert_null(e);
        assert_int_equal(count(dir), rows[i].files);
        assert_int_equal(mode_of(dir, rows[i].program), rows[i].mode & ~mask);
        assert_int_equal(mode_of(dir, MANIFEST_NAME), 0644 & ~mask);
        assert_int_equal(manifest_load(&m, dir, true, &e), 0);
        assert_string_equal(m->id, "my-cloud");
        assert_string_equal(m->kind, rows[i].kind);
        assert_null(m->unknown_keys && *m->unknown_keys ? *m->unknown_keys : NULL);
        if (rows[i].command) assert_true(strv_contains(m->command, rows[i].command));

        _cleanup_free_ char *path = path_join(dir, "README.md"), *text = NULL;
        assert_int_equal(fs_read(path, 65536, &text, NULL), 0);
        assert_null(strchr(text, '@'));
        assert_non_null(strstr(text, "my-cloud"));
    }
}

static void takes_an_empty_directory(void **state) {
    assert_int_equal(abx_provider_scaffold("my-cloud", *state, "rest", "c", NULL), 0);
    assert_int_equal(count(*state), 2);
}

static void refuses_what_is_wrong(void **state) {
    _cleanup_free_ char *dir = path_join(*state, "a/b"), *file = path_join(*state, "file"), *link = path_join(*state, "link");
    refuses("My", dir, "exec", "python", "provider id must be 2-40 chars");
    refuses("abx-x", dir, "exec", "python", "'abx-x' is reserved");
    refuses("my-cloud", dir, "exec", "rust", "python, node, c, shell");
    refuses("my-cloud", dir, "python", "python", "exec, rest");
    refuses("my-cloud", "", "exec", "python", "no name");
    assert_int_equal(count(*state), 0);

    assert_int_equal(fs_write_atomic(file, "x", 1, 0600), 0);
    assert_int_equal(symlink("nowhere", link), 0);
    refuses("my-cloud", *state, "exec", "python", *state);
    refuses("my-cloud", file, "exec", "python", file);
    refuses("my-cloud", link, "exec", "python", link);
    assert_int_equal(count(*state), 2);
}

/* The manifest fits under the limit of file sizes and the README does not. */
static void leaves_nothing_after_a_failure(void **state) {
    _cleanup_free_ char *dir = path_join(*state, "a/b/c/"), *there = path_join(*state, "there");
    struct rlimit limit, small;
    assert_int_equal(mkdir(there, 0700), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){1500, limit.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    refuses("my-cloud", dir, "exec", "c", "README.md");
    refuses("my-cloud", there, "exec", "c", "README.md");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, before);
    assert_int_equal(count(*state), 1);
    assert_int_equal(count(there), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_each_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_an_empty_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_nothing_after_a_failure, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
