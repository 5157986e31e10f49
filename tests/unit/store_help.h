/* What the tests of the store share: a scratch directory, files in it, a valid manifest. */
#ifndef TESTS_STORE_HELP_H
#define TESTS_STORE_HELP_H

/* cmocka wants these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"

static char *root; /* of the running test; removed after it */

static _unused_ int make_root(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    return fs_mkdtemp(tmp ? tmp : "/tmp", "abx-test-", &root);
}

static _unused_ int drop_root(void **state) {
    (void)state;
    fs_remove_tree(root);
    free(root);
    root = NULL;
    return 0;
}

/* root/name; a few live at a time. */
static _unused_ const char *at(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", root, name);
    return p;
}

static _unused_ void put_n(const char *name, const void *data, size_t n, mode_t mode) {
    char dir[512];
    snprintf(dir, sizeof dir, "%s", at(name));
    *strrchr(dir, '/') = '\0';
    assert_int_equal(fs_mkdir_p(dir, 0755), 0);
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static _unused_ void put(const char *name, const char *text) { put_n(name, text, strlen(text), 0644); }

static _unused_ char *get(const char *name) {
    char *text = NULL;
    size_t n;
    return fs_read(at(name), 16 * MIB, &text, &n) < 0 ? NULL : text;
}

static _unused_ void assert_file(const char *name, const char *want) {
    _cleanup_free_ char *text = get(name);
    assert_non_null(text);
    assert_string_equal(text, want);
}

static _unused_ mode_t mode_of(const char *name) {
    struct stat st;
    assert_int_equal(lstat(at(name), &st), 0);
    return st.st_mode & 07777;
}

static _unused_ void check_error(int r, abx_error *e, int code, const char *message) {
    if (r != code || !e || (message && !streq(abx_error_message(e), message)))
        print_error("got %d: %s\n", r, e ? abx_error_message(e) : "(none)");
    assert_int_equal(r, code);
    assert_non_null(e);
    if (message) assert_string_equal(abx_error_message(e), message);
    abx_error_unref(e);
}

/* Takes and checks an error. */
#define assert_error(r, e, code, message) (check_error(r, e, code, message), (void)((e) = NULL))

static _unused_ void assert_ok(int r, abx_error *e) {
    if (r < 0) print_error("got %d: %s\n", r, e ? abx_error_message(e) : "(none)");
    assert_true(r >= 0);
    assert_null(e);
}

static _unused_ void put_manifest(const char *dir, const char *id, const char *version, const char *more) {
    _cleanup_free_ char *text = str_printf("manifest_version = 1\n[provider]\nid = \"%s\"\nversion = \"%s\"\n"
                                           "[compat]\nprotocol = \"epp/1\"\n[runtime]\nkind = \"exec\"\n"
                                           "command = [\"./plugin\"]\n[features]\n"
                                           "supported = [\"sandbox.lifecycle\", \"exec.run\"]\n%s",
                                           id, version, more);
    _cleanup_free_ char *name = str_printf("%s/abx-provider.toml", dir);
    put(name, text);
    _cleanup_free_ char *plugin = str_printf("%s/plugin", dir);
    put_n(plugin, "#!/bin/sh\n", 10, 0755);
}

#endif
