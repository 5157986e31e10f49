/* Names, limits, collisions and digests of a plugin tree; the copy of data/. */
#include "store_help.h"

#include "base/utf8.h"
#include "store/casefold.h"
#include "store/data.h"
#include "store/tree.h"

static int read_into(const char *from, const char *to, char out[65], abx_error **e) {
    _cleanup_tree_ struct tree *t = NULL;
    assert_int_equal(fs_mkdir_p(at(to), 0700), 0);
    assert_int_equal(tree_new(&t, at(to), e), 0);
    int r = tree_read_dir(t, at(from), NULL, e);
    if (r == 0) r = tree_digest(t, out, e);
    return r < 0 ? r : tree_sync(t, e);
}

static void refuse(const char *message) {
    char hex[65];
    abx_error *e = NULL;
    int r = read_into("src", "dst", hex, &e);
    assert_error(r, e, ABX_E_INSTALL, message);
    assert_int_equal(fs_remove_tree(at("dst")), 0);
    assert_int_equal(fs_remove_tree(at("src")), 0);
    put("src/plugin", "x");
}

static void accept(void) {
    char hex[65];
    abx_error *e = NULL;
    assert_ok(read_into("src", "dst", hex, &e), e);
    assert_int_equal(fs_remove_tree(at("dst")), 0);
}

static void test_names(void **state) {
    (void)state;
    static const char *const good[] = {"a",         "a/b",  ".x",   "a b",      "con1", "com0",
                                       "com10.txt", "conx", "a\nb", "\xc3\xa9", "ab:c", "..a"};
    static const char *const bad[] = {"",       "/a",          "a/",     "a//b", ".",       "..",
                                      "a/../b", "a/.",         "a\\b",   "c:x",  "C:/x",    "a.",
                                      "a ",     "a./b",        "con",    "CON",  "con.txt", "x/nul",
                                      "Com1",   "lpt9.tar.gz", "aux .c", "\xff", "a\xc3"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (!tree_path_valid(good[i], strlen(good[i]))) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (tree_path_valid(bad[i], strlen(bad[i]))) fail_msg("accepted: %s", bad[i]);
    assert_false(tree_path_valid("a\0b", 3));
    char deep[2 * LIMIT_TREE_DEPTH + 4];
    for (size_t i = 0; i < sizeof deep; i++) deep[i] = i % 2 ? '/' : 'd';
    assert_true(tree_path_valid(deep, 2 * LIMIT_TREE_DEPTH - 1));
    assert_false(tree_path_valid(deep, 2 * LIMIT_TREE_DEPTH + 1));
}

static void assert_folds(const char *s, const char *want) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    assert_int_equal(casefold(&b, s, strlen(s)), 0);
    assert_string_equal(buf_cstr(&b), want);
}

static void test_casefold(void **state) {
    (void)state;
    assert_folds("AbZ[_", "abz[_");
    assert_folds("\xc3\x89", "\xc3\xa9"); /* É */
    assert_folds("stra\xc3\x9f"
                 "e",
                 "strasse");                              /* ß */
    assert_folds("\xe1\xba\x9e", "ss");                   /* capital sharp s */
    assert_folds("\xe2\x84\xaa", "k");                    /* Kelvin sign */
    assert_folds("\xce\xa3\xcf\x82", "\xcf\x83\xcf\x83"); /* sigma, final sigma */
    assert_folds("\xc4\x80\xc4\x81", "\xc4\x81\xc4\x81"); /* a range with a step */
    assert_folds("\xf0\x90\x90\x80", "\xf0\x90\x90\xa8"); /* Deseret */
    assert_folds("\xc3\xb7\xe4\xb8\xad", "\xc3\xb7\xe4\xb8\xad");
}

static int admit(struct tree *t, const char *path, abx_error **e) {
    size_t i;
    return tree_admit(t, path, strlen(path), &i, e);
}

static void test_collisions(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"A", "a"},
                                           {"a", "a"},
                                           {"D/x", "d/X"},
                                           {"a", "A/x"},
                                           {"a/b", "A"},
                                           {"stra\xc3\x9f"
                                            "e",
                                            "STRASSE"},
                                           {"x/y/z", "X/Y"}};
    static const char *const fine[][2] = {
        {"D/x", "d/y"}, {"a", "ab"}, {"a/b", "a/c"}, {"e\xcc\x81", "\xc3\xa9"}, {"database", "a"}};
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        _cleanup_tree_ struct tree *t = NULL;
        abx_error *e = NULL;
        assert_int_equal(tree_new(&t, root, NULL), 0);
        assert_ok(admit(t, pairs[i][0], &e), e);
        _cleanup_free_ char *want =
            str_printf("Unsafe entry '%s' in provider source (case collision).", pairs[i][1]);
        int r = admit(t, pairs[i][1], &e);
        assert_error(r, e, ABX_E_INSTALL, want);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
        _cleanup_tree_ struct tree *t = NULL;
        abx_error *e = NULL;
        assert_int_equal(tree_new(&t, root, NULL), 0);
        assert_ok(admit(t, fine[i][0], &e), e);
        assert_ok(admit(t, fine[i][1], &e), e);
    }
}

static void test_dir_rules(void **state) {
    (void)state;
    put("src/plugin", "x");
    assert_int_equal(symlink("plugin", at("src/ln")), 0);
    refuse("Unsafe entry 'ln' in provider source.");
    assert_int_equal(symlink("/tmp", at("src/dl")), 0);
    refuse("Unsafe entry 'dl' in provider source.");
    assert_int_equal(link(at("src/plugin"), at("src/hl")), 0);
    refuse("Unsafe entry 'hl' in provider source.");
    assert_int_equal(mkfifo(at("src/ff"), 0600), 0);
    refuse("Unsafe entry 'ff' in provider source.");
    put("src/con.txt", "x");
    refuse("Unsafe entry 'con.txt' in provider source.");
    put("src/a.", "x");
    refuse("Unsafe entry 'a.' in provider source.");
    put("src/sub/a\\b", "x");
    refuse("Unsafe entry 'sub/a\\b' in provider source.");
    put("src/\xff", "x");
    refuse("Unsafe entry '\\xff' in provider source.");
    put("src/A", "x"), put("src/a", "y");
    refuse("Unsafe entry 'a' in provider source (case collision).");
    put("src/data/x", "x");
    refuse("The top-level 'data/' directory is reserved for plugin state.");
    put("src/data", "x");
    refuse("The top-level 'data/' directory is reserved for plugin state.");
    put("src/model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n");
    refuse("Unsafe entry 'model.bin' in provider source (Git LFS pointer).");
    put("src/.gitmodules", "[submodule \"a\"]\n\tpath = vendor/a\n\turl = x\n");
    assert_int_equal(fs_mkdir_p(at("src/vendor/a"), 0700), 0);
    refuse("Unsafe entry 'vendor/a' in provider source (submodule that is not checked out).");
    assert_int_equal(truncate(at("src/plugin"), LIMIT_TREE_FILE + 1), 0);
    refuse("Unsafe entry 'plugin' in provider source (file too large).");
    for (int i = 0; i < 6; i++) {
        _cleanup_free_ char *name = str_printf("src/z%d", i);
        put(name, "");
        assert_int_equal(truncate(at(name), 9000000), 0);
    }
    refuse("Provider source exceeds the size/file-count limits.");
    for (int i = 0; i < LIMIT_TREE_FILES; i++) {
        _cleanup_free_ char *name = str_printf("src/f%d", i);
        put(name, "");
    }
    refuse("Provider source exceeds the size/file-count limits.");

    assert_int_equal(mkdir(at("src/data"), 0700), 0); /* empty: holds nothing */
    put("src/.git/x", "x"), put("src/.abx-install.json", "{}"), put("src/a\nb", "x"),
        put("src/sub/data/x", "y");
    assert_int_equal(truncate(at("src/plugin"), LIMIT_TREE_FILE), 0);
    accept();
}

/* The constant was made by another program from the words of store.md. */
static void test_digest_known(void **state) {
    (void)state;
    char hex[65], disk[65];
    abx_error *e = NULL;
    put("src/b.txt", "bee\n");
    put_n("src/a/run", "#!/bin/sh\r\n", 11, 0755);
    put("src/a-b", "");
    put("src/\xc3\xa9", "x");
    put("src/.git/config", "no"), put("src/.abx-install.json", "no");
    assert_ok(read_into("src", "dst", hex, &e), e);
    assert_string_equal(hex, "2bdd8e1f518519d0c9109cd0dcc650df901ebb2b9cefefe60b945d6a1d0a880a");
    assert_ok(tree_digest_dir(at("dst"), disk, &e), e);
    assert_string_equal(disk, hex);
    assert_ok(tree_digest_dir(at("src"), disk, &e), e);
    assert_string_equal(disk, hex);
    assert_false(fs_exists(at("dst/.git")));
    assert_false(fs_exists(at("dst/.abx-install.json")));
    assert_int_equal(mode_of("dst/a/run"), 0700);
    assert_int_equal(mode_of("dst/a"), 0700);
    assert_int_equal(mode_of("dst/b.txt"), 0600);
    assert_file("dst/a/run", "#!/bin/sh\r\n");
}

static void test_umask(void **state) {
    (void)state;
    char hex[65];
    abx_error *e = NULL;
    put("src/d/x", "x");
    assert_int_equal(mkdir(at("dst"), 0700), 0);
    mode_t old = umask(0177);
    int r = read_into("src", "dst", hex, &e);
    umask(old);
    assert_ok(r, e);
    assert_int_equal(mode_of("dst/d"), 0700);
    assert_int_equal(mode_of("dst/d/x"), 0600);
}

static void expect_bad(bool installed, const char *name) {
    char hex[65];
    _cleanup_free_ char *bad = NULL;
    assert_int_equal(digest_dir(at("p"), installed, hex, &bad), -EBADMSG);
    assert_string_equal(bad, name);
}

static void test_digest_changes(void **state) {
    (void)state;
    char first[65], now[65];
    _cleanup_free_ char *bad = NULL;
    for (int i = 0; i < 300; i++) { /* enough for two threads */
        _cleanup_free_ char *name = str_printf("p/d%d/f%d", i % 7, i);
        put(name, name);
    }
    put("p/data/x", "1"), put("p/.abx-install.json", "{}");
    assert_int_equal(digest_dir(at("p"), true, first, &bad), 0);
    put("p/data/y", "2"), put("p/.abx-install.json", "{ }");
    assert_int_equal(mkdir(at("p/empty"), 0700), 0);
    assert_int_equal(digest_dir(at("p"), true, now, &bad), 0);
    assert_string_equal(now, first);

    put("p/d3/f3", "p/d3/fX");
    assert_int_equal(digest_dir(at("p"), true, now, &bad), 0);
    assert_string_not_equal(now, first);
    put("p/d3/f3", "p/d3/f3");
    assert_int_equal(chmod(at("p/d3/f3"), 0744), 0);
    assert_int_equal(digest_dir(at("p"), true, now, &bad), 0);
    assert_string_not_equal(now, first);
    assert_int_equal(chmod(at("p/d3/f3"), 0444), 0);
    assert_int_equal(digest_dir(at("p"), true, now, &bad), 0);
    assert_string_equal(now, first);
    assert_int_equal(chmod(at("p/d3/f3"), 0666), 0); /* others could change it after the check */
    assert_int_equal(digest_dir(at("p"), true, now, &bad), -EPERM);
    assert_string_equal(bad, "d3/f3");
    free(TAKE_PTR(bad));
    assert_int_equal(chmod(at("p/d3/f3"), 0600), 0);
    put("p/d3/new", "");
    assert_int_equal(digest_dir(at("p"), true, now, &bad), 0);
    assert_string_not_equal(now, first);
    assert_int_equal(unlink(at("p/d3/new")), 0);

    assert_int_equal(symlink("d3", at("p/link")), 0);
    expect_bad(true, "link");
    assert_int_equal(unlink(at("p/link")), 0);
    assert_int_equal(mkfifo(at("p/d3/pipe"), 0600), 0);
    expect_bad(true, "d3/pipe");
    expect_bad(false, "d3/pipe");
    assert_int_equal(unlink(at("p/d3/pipe")), 0);
    assert_int_equal(mkdir(at("p/.git"), 0700), 0);
    expect_bad(true, ".git");
    assert_int_equal(digest_dir(at("p"), false, now, &bad), 0);
    assert_string_equal(now, first);
    assert_int_equal(rmdir(at("p/.git")), 0);
    assert_int_equal(fs_remove_tree(at("p/data")), 0);
    assert_int_equal(symlink("d3", at("p/data")), 0);
    expect_bad(true, "data");
}

static void test_data_copy(void **state) {
    (void)state;
    put("data/keep", "same"), put("data/change", "before"), put("data/gone", "x"), put("data/d/e/f", "deep");
    assert_int_equal(symlink("keep", at("data/l")), 0);
    assert_int_equal(mkfifo(at("data/pipe"), 0600), 0);
    assert_int_equal(data_copy(at("data"), at("copy")), 0);
    assert_false(fs_exists(at("copy/pipe")));
    struct stat before, after;
    assert_int_equal(stat(at("data/keep"), &before), 0);
    put("data/change", "after!"), put("data/new/x", "x"), put("data/d/e/g", "more");
    unlink(at("data/gone")), unlink(at("data/l")), unlink(at("data/d/e/f"));
    assert_int_equal(mkdir(at("data/d/e/f"), 0700), 0); /* a directory where a file was */
    assert_int_equal(data_restore(at("copy"), at("data")), 0);
    assert_int_equal(stat(at("data/keep"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not touched */
    assert_file("data/change", "before");
    assert_file("data/gone", "x");
    assert_file("data/d/e/f", "deep");
    assert_false(fs_exists(at("data/new")));
    assert_false(fs_exists(at("data/d/e/g")));
    assert_true(fs_exists(at("data/pipe")));
    char target[16] = {0};
    assert_int_equal(readlink(at("data/l"), target, sizeof target - 1), 4);
    assert_string_equal(target, "keep");
    put("data/big", "");
    assert_int_equal(truncate(at("data/big"), (off_t)LIMIT_DATA_COPY + 1), 0);
    assert_int_equal(data_copy(at("data"), at("copy2")), -EFBIG);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
    const struct CMUnitTest tests[] = {T(test_names),          T(test_casefold),     T(test_collisions),
                                       T(test_dir_rules),      T(test_digest_known), T(test_umask),
                                       T(test_digest_changes), T(test_data_copy)};
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
