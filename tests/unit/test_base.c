/* Buffers, maps, strings, codecs, errors, files and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/str.h"
#include "base/util.h"

static void test_buf(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(10);
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_str(&b, "abc"), 0);
    assert_int_equal(buf_printf(&b, "%d-%s", 42, "xy"), 0);
    assert_int_equal(buf_char(&b, '!'), 0);
    assert_string_equal(buf_cstr(&b), "abc42-xy!");
    assert_int_equal(buf_append(&b, "zz", 2), -EMSGSIZE);
    assert_int_equal(buf_append(&b, "z", 1), -EMSGSIZE);
    assert_int_equal(buf_printf(&b, "z"), -EMSGSIZE);
    assert_int_equal(b.len, 9);
    assert_null(buf_cstr(&b));
    assert_null(buf_take(&b));
    assert_null(buf_reserve(&b, 1));
    buf_reset(&b);
    assert_int_equal(buf_printf(&b, "%s", "0123456789"), 0);
    assert_string_equal(buf_cstr(&b), "0123456789");
    buf_consume(&b, 0);
    buf_consume(&b, 8);
    assert_string_equal(buf_cstr(&b), "89");
    buf_consume(&b, 99);
    assert_int_equal(b.len, 0);

    _cleanup_buf_ struct buf big = BUF_INIT(0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_printf(&big, "%04d%200s", i, ""), 0);
    assert_int_equal(big.len, 204000);
    assert_memory_equal(big.data + 204 * 999, "0999 ", 5);
    char *p = buf_reserve(&big, 3);
    memcpy(p, "end", 3);
    buf_commit(&big, 3);
    _cleanup_free_ char *all = buf_take(&big);
    assert_string_equal(all + 204000, "end");
    assert_null(big.data);
    assert_int_equal(buf_append(&big, "x", SIZE_MAX / 2), -ENOMEM);
}

static void test_map(void **state) {
    (void)state;
    enum { N = 5000 };
    static int values[N];
    _cleanup_(map_done) struct map m = {0};
    char key[16];
    size_t pos = 0;
    assert_null(map_get(&m, "a", 1));
    assert_null(map_remove(&m, "a", 1));
    assert_null(map_next(&m, &pos));
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(map_put(&m, key, strlen(key), &values[i], NULL), 0);
    }
    assert_int_equal(m.len, N);
    void *old = &key;
    assert_int_equal(map_put(&m, "key7", 4, &values[8], &old), 0);
    assert_ptr_equal(old, &values[7]);
    assert_int_equal(map_put(&m, "key7", 4, &values[7], NULL), 0);
    assert_int_equal(map_put(&m, "a\0b", 3, &values[0], &old), 0);
    assert_null(old);
    assert_null(map_get(&m, "a", 1));
    assert_null(map_get(&m, "a\0c", 3));
    assert_ptr_equal(map_remove(&m, "a\0b", 3), &values[0]);
    assert_int_equal(map_put(&m, "", 0, &values[1], NULL), 0);
    assert_ptr_equal(map_get(&m, "", 0), &values[1]);
    assert_ptr_equal(map_remove(&m, NULL, 0), &values[1]);

    /* Each comes once, though every second one is removed on the way. */
    pos = 0;
    for (int *v; (v = map_next(&m, &pos));) {
        int i = (int)(v - values);
        assert_int_equal(values[i]++, 0);
        snprintf(key, sizeof(key), "key%d", i);
        if (i % 2) assert_ptr_equal(map_remove(&m, key, strlen(key)), v);
    }
    assert_int_equal(m.len, N / 2);
    for (int i = 0; i < N; i++) {
        assert_int_equal(values[i], 1);
        snprintf(key, sizeof(key), "key%d", i);
        assert_ptr_equal(map_get(&m, key, strlen(key)), i % 2 ? NULL : &values[i]);
    }
}

/* A map that stays small does not grow by coming and going. */
static void test_map_churn(void **state) {
    (void)state;
    static int value;
    _cleanup_(map_done) struct map m = {0};
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(map_put(&m, &i, sizeof(i), &value, NULL), 0);
        if (i < 5) continue;
        unsigned gone = i - 5;
        assert_ptr_equal(map_remove(&m, &gone, sizeof(gone)), &value);
    }
    assert_int_equal(m.len, 5);
    assert_true(m.cap <= 32);
}

static void test_str(void **state) {
    (void)state;
    assert_true(str_starts("provider", "pro") && str_starts("x", "") && !str_starts("pr", "pro"));
    assert_true(str_ends("a.toml", ".toml") && !str_ends("toml", ".toml"));
    assert_true(str_blank(NULL) && str_blank("") && str_blank(" \t\n") && !str_blank(" x"));
    _cleanup_free_ char *env = str_upper_env("my-cloud.2x");
    assert_string_equal(env, "MY_CLOUD_2X");
    _cleanup_free_ char *text = str_printf("%s=%d", "a", 1);
    assert_string_equal(text, "a=1");

    assert_int_equal(str_distance("", ""), 0);
    assert_int_equal(str_distance("abc", ""), 3);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_distance("docker", "dokcer"), 1);
    char longer[100];
    memset(longer, 'a', 99);
    longer[99] = '\0';
    assert_true(str_distance(longer, "a") == SIZE_MAX);
    longer[64] = '\0';
    assert_int_equal(str_distance(longer, ""), 64);
    static const char *const ids[] = {"docker", "e2b", "opensandbox", "local", NULL};
    assert_string_equal(str_nearest("dokcer", ids), "docker");
    assert_string_equal(str_nearest("e2", ids), "e2b");
    assert_string_equal(str_nearest("opensandbx", ids), "opensandbox");
    assert_null(str_nearest("modal", ids));
    assert_null(str_nearest("", ids));
    assert_null(str_nearest("x", NULL));
}

static void test_numbers(void **state) {
    (void)state;
    long long i = 5;
    static const char *const bad[] = {"", "-", "+1", " 1", "1 ", "0x10", "1.0", "1e3", "--1", "١"};
    for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
        assert_int_equal(str_to_i64(bad[k], &i), -EINVAL);
    assert_int_equal(str_to_i64("9223372036854775808", &i), -ERANGE);
    assert_int_equal(str_to_i64("-9223372036854775809", &i), -ERANGE);
    assert_int_equal(str_to_i64("99999999999999999999999999", &i), -ERANGE);
    assert_int_equal(str_to_i64("99999999999999999999999x", &i), -EINVAL);
    assert_int_equal(i, 5);
    assert_int_equal(str_to_i64("9223372036854775807", &i), 0);
    assert_true(i == INT64_MAX);
    assert_int_equal(str_to_i64("-9223372036854775808", &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(str_to_i64("-0042", &i), 0);
    assert_int_equal(i, -42);

    double d = 5;
    static const char *const bad_double[] = {"", ".", "inf", "nan", "0x1p3", "1e", " 1", "1,5",
                                             "1.5x", "e5", "-"};
    for (size_t k = 0; k < ARRAY_SIZE(bad_double); k++)
        assert_int_equal(str_to_double(bad_double[k], &d), -EINVAL);
    assert_int_equal(str_to_double("1e999", &d), -ERANGE);
    assert_true(d > 4.9 && d < 5.1);
    assert_int_equal(str_to_double("-1.25e2", &d), 0);
    assert_true(fabs(d + 125) < 1e-9);
    assert_int_equal(str_to_double(".5", &d), 0);
    assert_true(fabs(d - 0.5) < 1e-9);
}

static void test_strv(void **state) {
    (void)state;
    _cleanup_strv_ char **v = NULL;
    assert_int_equal(strv_len(v), 0);
    assert_false(strv_contains(v, "a"));
    assert_int_equal(strv_append(&v, "b"), 0);
    assert_int_equal(strv_append(&v, "\xc3\xa9"), 0);
    assert_int_equal(strv_take(&v, strdup("a")), 0);
    assert_int_equal(strv_take(&v, NULL), -ENOMEM);
    assert_int_equal(strv_len(v), 3);
    strv_sort(v);
    assert_string_equal(v[0], "a");
    assert_string_equal(v[1], "b");
    assert_string_equal(v[2], "\xc3\xa9");
    assert_true(strv_contains(v, "b") && !strv_contains(v, "c"));
    _cleanup_strv_ char **copy = strv_copy((const char *const *)v);
    assert_int_equal(strv_len(copy), 3);
    assert_ptr_not_equal(copy[0], v[0]);
    _cleanup_strv_ char **empty = strv_copy(NULL);
    assert_non_null(empty);
    assert_null(empty[0]);
    assert_null(strv_free(NULL));
}

static void test_base64(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar",
                                           "Zm9vYmFy"},
                                           {"\xfb\xff\xbf", "+/+/"}};
    char out[64];
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        size_t n = strlen(pairs[i][0]), len = base64_encoded_len(n);
        assert_int_equal(len, strlen(pairs[i][1]));
        base64_encode(out, pairs[i][0], n);
        if (len) assert_memory_equal(out, pairs[i][1], len);
        assert_int_equal(base64_decode(out, pairs[i][1], len), n);
        if (n) assert_memory_equal(out, pairs[i][0], n);
    }
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n",
                                      "Zm 9", "Zm-_", "====",
                                      "Z===", "=AAA", "A=AA", "Zm9vZ=Zv", "\xff\xff\xff\xff",
                                      "Zm9v\x80m9v"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(base64_decode(out, bad[i], strlen(bad[i])), -EINVAL);
    /* Every byte in every place, in exactly the room that is promised, and in place. */
    for (size_t n = 0; n < 200; n++) {
        unsigned char *data = malloc(n + 1);
        for (size_t i = 0; i < n; i++)
            data[i] = (unsigned char)(i * 37 + n * 11);
        size_t len = base64_encoded_len(n);
        char *text = malloc(len + (len == 0));
        base64_encode(text, data, n);
        unsigned char *back = malloc(len / 4 * 3 + (len == 0));
        assert_int_equal(base64_decode(back, text, len), n);
        if (n) assert_memory_equal(back, data, n);
        assert_int_equal(base64_decode(text, text, len), n);
        if (n) assert_memory_equal(text, data, n);
        free(data);
        free(text);
        free(back);
    }
    /* Each of the 256 bytes is a digit in all four places or in none. */
    for (int c = 0; c < 256; c++)
        for (int at = 0; at < 4; at++) {
            char group[9] = "AAAAAAAA";
            group[at] = (char)c;
            bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
            bool digit = letter || (c >= '0' && c <= '9') || c == '+' || c == '/';
            assert_int_equal(base64_decode(out, group, 8), digit ? 6 : -EINVAL);
        }
}

static void test_digests(void **state) {
    (void)state;
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char none[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    char out[SHA256_HEX];
    assert_int_equal(sha256_hex("abc", 3, out), 0);
    assert_string_equal(out, abc);
    struct sha256 *h = sha256_new();
    assert_non_null(h);
    assert_int_equal(sha256_update(h, "ab", 2), 0);
    assert_int_equal(sha256_update(h, "c", 1), 0);
    assert_int_equal(sha256_final_hex(h, out), 0);
    assert_string_equal(out, abc);
    assert_int_equal(sha256_final_hex(h, out), 0);
    assert_string_equal(out, none);
    sha256_free(h);
    sha256_free(NULL);
    char id[41];
    assert_int_equal(sha1_hex("blob 0", 7, NULL, 0, id), 0);
    assert_string_equal(id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_int_equal(sha1_hex("blob 6", 7, "hello\n", 6, id), 0);
    assert_string_equal(id, "ce013625030ba8dba906f756967f9e9ca394464a");
}

static void test_error(void **state) {
    (void)state;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(err_set(&e, ABX_E_PROVIDER_NOT_FOUND, NULL, "no\nprovider \x1b[1m'%s'\n",
                     "x"), -8001);
    assert_int_equal(abx_error_code(e), -8001);
    assert_string_equal(abx_error_id(e), "E8001");
    assert_string_equal(abx_error_message(e), "no provider 'x'");
    assert_true(str_starts(abx_error_hint(e), "Run 'abx provider list'"));
    /* The first error stays. */
    assert_int_equal(err_set(&e, ABX_E_CONFIG, NULL, "second"), -8002);
    assert_int_equal(abx_error_code(e), -8001);
    assert_int_equal(err_set(NULL, ABX_E_CONFIG, NULL, "nobody"), -8002);

    assert_null(abx_error_provider(e));
    assert_int_equal(err_retry_after_ms(e), -1);
    err_set_provider(e, "docker");
    err_set_method(e, "exec.run");
    err_set_retryable(e, 1, 250);
    err_set_hint(e, "one\ntwo");
    assert_string_equal(abx_error_provider(e), "docker");
    assert_string_equal(abx_error_method(e), "exec.run");
    assert_int_equal(abx_error_retryable(e), 1);
    assert_int_equal(err_retry_after_ms(e), 250);
    assert_string_equal(abx_error_hint(e), "one\ntwo");
    err_set_hint(e, NULL);
    assert_string_equal(abx_error_hint(e), "");

    abx_error *same = abx_error_ref(e);
    err_set_provider(e, "other");
    assert_string_equal(abx_error_provider(e), "docker");
    abx_error_unref(same);

    _cleanup_error_ abx_error *quiet = NULL;
    err_set(&quiet, ABX_E_API_KEY, "", "bad key");
    assert_string_equal(abx_error_hint(quiet), "");
    _cleanup_error_ abx_error *empty = NULL;
    err_set(&empty, ABX_E_PROVIDER, NULL, "%s", "\n");
    assert_string_equal(abx_error_message(empty), "provider error");
}

static void test_error_errno(void **state) {
    (void)state;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(err_errno(&e, ABX_E_INSTALL, -ENOENT, "cannot read %s", "f"), -8010);
    assert_string_equal(abx_error_message(e), "cannot read f: No such file or directory.");
    _cleanup_error_ abx_error *plain = NULL;
    assert_int_equal(err_errno(&plain, -EMFILE, -EMFILE, "pipe"), -EMFILE);
    assert_string_equal(abx_error_id(plain), "E0000");
    assert_int_equal(abx_error_exit_status(plain), 1);
    _cleanup_error_ abx_error *nomem = NULL;
    assert_int_equal(err_nomem(&nomem), -ENOMEM);
    err_set_provider(nomem, "x");
    assert_null(abx_error_provider(nomem));
    abx_error *again = abx_error_ref(nomem);
    assert_null(abx_error_unref(again));
    assert_null(abx_error_unref(again));
    assert_string_equal(abx_error_message(again), "out of memory");
    assert_int_equal(err_nomem(NULL), -ENOMEM);
    _cleanup_error_ abx_error *generic = NULL;
    err_set(&generic, ABX_E_GENERIC, NULL, "x");
    assert_string_equal(abx_error_id(generic), "E0000");
}

static int released;
static abx_value *release(abx_value *v) {
    free(v);
    released++;
    return NULL;
}

static void test_error_parts(void **state) {
    (void)state;
    released = 0;
    abx_error *e = NULL, *cause = NULL;
    err_set(&e, ABX_E_PROTOCOL, NULL, "outer");
    err_set_data(e, malloc(1), release);
    err_set_data(e, malloc(1), release);
    assert_int_equal(released, 1);
    assert_non_null(abx_error_data(e));
    err_set_data(NULL, malloc(1), release);
    assert_int_equal(released, 2);
    err_set(&cause, ABX_E_NETWORK, NULL, "inner");
    err_set_data(cause, malloc(1), release);
    err_set_cause(e, cause);
    assert_ptr_equal(abx_error_cause(e), cause);

    abx_error *out = NULL;
    assert_int_equal(err_pass(&out, e), -8020);
    assert_ptr_equal(out, e);
    assert_null(abx_error_unref(out));
    assert_int_equal(released, 4);
    abx_error *dropped = NULL;
    err_set(&dropped, ABX_E_FILE, NULL, "x");
    assert_int_equal(err_pass(NULL, dropped), -4000);
    /* As long a chain as one likes. */
    abx_error *chain = NULL;
    for (int i = 0; i < 200000; i++) {
        abx_error *outer = NULL;
        err_set(&outer, ABX_E_FILE, "", "x");
        err_set_cause(outer, chain);
        chain = outer;
    }
    abx_error_unref(chain);

    assert_int_equal(abx_error_code(NULL), 0);
    assert_int_equal(abx_error_exit_status(NULL), 0);
    assert_string_equal(abx_error_message(NULL), "");
    assert_string_equal(abx_error_hint(NULL), "");
    assert_null(abx_error_cause(NULL));
    assert_null(abx_error_unref(NULL));
}

static void test_error_table(void **state) {
    (void)state;
    static const struct {
        int code, status;
    } cases[] = {{8002, 2}, {8012, 2}, {8030, 2}, {1000, 3}, {1001, 3}, {1004, 3}, {2001, 4},
                 {2009, 4}, {4001, 4},
                 {8001, 4}, {8005, 4}, {3001, 5}, {8022, 5}, {2002, 6}, {2000, 1}, {8000, 1},
                 {8020, 1}, {9999, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_error_ abx_error *e = NULL;
        err_set(&e, -cases[i].code, NULL, "x");
        assert_int_equal(abx_error_exit_status(e), cases[i].status);
    }
    size_t n = 0;
    for (const abx_error_row *row; (row = abx_error_row_at(n)); n++) {
        assert_ptr_equal(err_row(row->number), row);
        assert_ptr_equal(err_row(-row->number), row);
        assert_true(*row->text && row->hint);
        _cleanup_error_ abx_error *e = NULL;
        char id[16];
        snprintf(id, sizeof(id), "E%04d", row->number == 9999 ? 0 : row->number);
        err_set(&e, -row->number, NULL, "x");
        assert_string_equal(abx_error_id(e), id);
        assert_string_equal(abx_error_hint(e), row->hint);
    }
    assert_true(n > 40);
    assert_null(abx_error_row_at(SIZE_MAX));
    assert_null(err_row(-7777));
    assert_null(err_row(INT32_MIN));
}

/* Each file test has a directory of its own. */
static int make_dir(void **state) {
    const char *base = getenv("TMPDIR");
    char *dir;
    if (fs_mkdtemp(base && *base ? base : "/tmp", "abx-test-", &dir) < 0) return -1;
    *state = dir;
    return 0;
}

static int remove_made(void **state) {
    int r = fs_remove_tree(*state);
    bool left = fs_exists(*state);
    free(*state);
    return r < 0 || left ? -1 : 0;
}

static int touch(const char *dir, const char *name, const char *text) {
    _cleanup_free_ char *path = path_join(dir, name);
    return fs_write_atomic(path, text, strlen(text), 0644);
}

static void test_read_write(void **state) {
    _cleanup_free_ char *path = path_join(*state, "f");
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    assert_int_equal(fs_read(path, 100, &text, &n), -ENOENT);
    assert_int_equal(fs_read(*state, 100, &text, &n), -EISDIR);
    assert_int_equal(fs_write_atomic(path, "a\0b", 3, 0600), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fs_read(path, 2, &text, &n), -EFBIG);
    assert_null(text);
    assert_int_equal(fs_read(path, 3, &text, &n), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(text, "a\0b", 4);
    assert_int_equal(fs_write_atomic(path, "", 0, 0600), 0);
    free(TAKE_PTR(text));
    assert_int_equal(fs_read(path, 0, &text, &n), 0);
    assert_string_equal(text, "");
    /* A file that does not know its size is read and limited all the same. */
    free(TAKE_PTR(text));
    assert_int_equal(fs_read("/proc/self/status", 1 << 20, &text, &n), 0);
    assert_true(n > 100 && str_starts(text, "Name:"));
    free(TAKE_PTR(text));
    assert_int_equal(fs_read("/dev/zero", 100000, &text, &n), -EFBIG);

    /* A failed write leaves the old file and no other. */
    _cleanup_free_ char *taken = path_join(*state, "d");
    assert_int_equal(mkdir(taken, 0700), 0);
    assert_int_equal(touch(taken, "x", ""), 0);
    assert_int_equal(fs_write_atomic(taken, "x", 1, 0600), -EISDIR);
    _cleanup_closedir_ DIR *dir = opendir(*state);
    int entries = 0;
    while (readdir(dir))
        entries++;
    assert_int_equal(entries, 4);
}

static void test_read_at(void **state) {
    _cleanup_close_ int dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    size_t n = 0;
    assert_int_equal(touch(*state, "f", "hello"), 0);
    assert_int_equal(symlinkat("f", dir, "link"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(fs_read_at(dir, "link", 10, &text, &n), -ELOOP);
    assert_int_equal(fs_read_at(dir, "fifo", 10, &text, &n), -EINVAL);
    assert_int_equal(fs_read_at(dir, ".", 10, &text, &n), -EISDIR);
    assert_int_equal(fs_read_at(dir, "f", 4, &text, &n), -EFBIG);
    assert_int_equal(fs_read_at(dir, "f", 5, &text, NULL), 0);
    assert_string_equal(text, "hello");
}

static void test_mkdir_p(void **state) {
    _cleanup_free_ char *deep = path_join(*state, "a//b/c/");
    _cleanup_free_ char *file = path_join(*state, "f");
    _cleanup_free_ char *under = path_join(file, "x");
    _cleanup_free_ char *link = path_join(*state, "link");
    _cleanup_free_ char *below = path_join(link, "new");
    assert_int_equal(fs_mkdir_p(deep, 0700), 0);
    assert_int_equal(fs_mkdir_p(deep, 0700), 0);
    assert_true(fs_is_dir(deep));
    assert_int_equal(fs_mkdir_p("/", 0700), 0);
    assert_int_equal(fs_mkdir_p("", 0700), -ENOENT);
    assert_int_equal(touch(*state, "f", ""), 0);
    assert_int_equal(fs_mkdir_p(file, 0700), -ENOTDIR);
    assert_int_equal(fs_mkdir_p(under, 0700), -ENOTDIR);
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(fs_mkdir_p(below, 0700), 0);
    _cleanup_free_ char *real = path_join(*state, "a/new");
    assert_true(fs_is_dir(real));
}

static void test_remove_tree(void **state) {
    _cleanup_free_ char *tree = path_join(*state, "tree");
    _cleanup_free_ char *kept = path_join(*state, "kept");
    _cleanup_free_ char *in_kept = path_join(kept, "f");
    _cleanup_free_ char *locked = path_join(tree, "locked");
    _cleanup_free_ char *shut = path_join(tree, "shut");
    _cleanup_free_ char *link = path_join(tree, "link");
    _cleanup_free_ char *top_link = path_join(*state, "top/");
    assert_int_equal(fs_remove_tree(tree), 0);
    assert_int_equal(fs_mkdir_p(kept, 0700), 0);
    assert_int_equal(touch(kept, "f", ""), 0);
    assert_int_equal(fs_mkdir_p(locked, 0700), 0);
    assert_int_equal(touch(locked, "f", ""), 0);
    assert_int_equal(chmod(locked, 0500), 0);
    assert_int_equal(fs_mkdir_p(shut, 0700), 0);
    assert_int_equal(touch(shut, "f", ""), 0);
    assert_int_equal(chmod(shut, 0), 0);
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(fs_remove_tree(tree), 0);
    assert_false(fs_exists(tree));
    assert_true(fs_exists(in_kept));

    top_link[strlen(top_link) - 1] = '\0';
    assert_int_equal(symlink(kept, top_link), 0);
    top_link[strlen(top_link)] = '/';
    assert_int_equal(fs_remove_tree(top_link), 0);
    assert_true(fs_exists(in_kept));
    assert_int_equal(fs_remove_tree(in_kept), 0);
    assert_false(fs_exists(in_kept));
    assert_int_equal(fs_remove_tree(in_kept), 0);
}

/* Far deeper than there are descriptors, and than a path may be long. */
static void test_remove_deep(void **state) {
    struct rlimit limit, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    _cleanup_close_ int at = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(at, "deep", 0700), 0);
        int next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (i % 7 == 0) assert_int_equal(symlinkat("/", at, "root"), 0);
        if (i % 40 == 3) assert_int_equal(fchmod(at, 0500), 0);
        close(at);
        at = next;
    }
    at = safe_close(at);
    low = limit;
    low.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    _cleanup_free_ char *tree = path_join(*state, "deep");
    int r = fs_remove_tree(tree);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, 0);
    assert_false(fs_exists(tree));
}

static void test_paths(void **state) {
    _cleanup_free_ char *plain = path_join("a", "b"), *slash = path_join("a/", "/b"),
                                           *root = path_join("/", "b");
    _cleanup_free_ char *left = path_join("", "b"), *right = path_join("a", "");
    assert_string_equal(plain, "a/b");
    assert_string_equal(slash, "a/b");
    assert_string_equal(root, "/b");
    assert_string_equal(left, "b");
    assert_string_equal(right, "a");

    _cleanup_free_ char *a = NULL, *b = NULL;
    assert_int_equal(fs_mkdtemp(*state, "t-", &a), 0);
    assert_int_equal(fs_mkdtemp(*state, "t-", &b), 0);
    assert_string_not_equal(a, b);
    struct stat st;
    assert_int_equal(stat(a, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(touch(a, "in-a", ""), 0);
    int r = fs_exchange(a, b);
    if (r != -ENOSYS) {
        assert_int_equal(r, 0);
        _cleanup_free_ char *moved = path_join(b, "in-a");
        assert_true(fs_exists(moved));
    }
    _cleanup_free_ char *missing = path_join(*state, "missing");
    assert_int_equal(fs_exchange(a, missing), -ENOENT);
    assert_int_equal(fs_mkdtemp(missing, "t-", &missing), -ENOENT);
    assert_int_equal(fs_sync_dir(*state), 0);
    assert_int_equal(symlink("nowhere", missing), 0);
    assert_true(fs_exists(missing));
    assert_false(fs_is_dir(missing));
}

static void test_time(void **state) {
    (void)state;
    static const struct {
        const char *s;
        int64_t us;
    } cases[] = {{"1970-01-01T00:00:00Z", 0},
                 {"2026-11-30T02:23:49Z", 1796005429000000},
                 {"2026-11-30 02:23:49", 1796005429000000},
                 {"2026-11-30t04:23:49.5+02:00", 1796005429500000},
                 {"2026-11-29T23:53:49.1234567-02:30", 1796005429123456},
                 {"2000-02-29T00:00:00Z", 951782400000000},
                 {"1969-12-31T23:59:59Z", -1000000}};
    int64_t us = 7;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(time_parse_rfc3339(cases[i].s, &us), 0);
        assert_true(us == cases[i].us);
    }
    static const char *const bad[] = {"", "2026-11-30", "2026-13-01T00:00:00Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z", "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00Zx",
                                      "2026-01-01T00:00:00+1", "26-01-01T00:00:00Z",
                                      "2026-01-01X00:00:00Z"};
    us = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(time_parse_rfc3339(bad[i], &us), -EINVAL);
    assert_true(us == 7);
    char now[TIME_RFC3339];
    time_rfc3339_now(now);
    assert_int_equal(strlen(now), 20);
    assert_int_equal(time_parse_rfc3339(now, &us), 0);
    assert_true(us > 1700000000000000);
    int64_t before = time_mono_us();
    assert_true(before / 1000 <= time_mono_ms());
}

static void test_env(void **state) {
    (void)state;
    static const char *const env[] = {"HOMELY=x", "HOME=/home/u/", "EMPTY=", "HOME=/later", NULL};
    assert_string_equal(env_get(env, "HOME"), "/home/u/");
    assert_string_equal(env_get(env, "EMPTY"), "");
    assert_null(env_get(env, "HOM"));
    assert_null(env_get(NULL, "HOME"));
    _cleanup_free_ char *home = NULL, *own = NULL, *relative = NULL, *root = NULL;
    assert_int_equal(env_abx_home(env, &home), 0);
    assert_string_equal(home, "/home/u/.abx");
    assert_int_equal(env_abx_home((const char *const[]){"HOME=/h", "ABX_HOME=/own//", NULL},
                     &own), 0);
    assert_string_equal(own, "/own");
    assert_int_equal(env_abx_home((const char *const[]){"HOME=/h", "ABX_HOME=rel", NULL}, &relative), -EINVAL);
    assert_int_equal(env_abx_home((const char *const[]){"HOME=rel", NULL}, &relative), -EINVAL);
    assert_null(relative);
    assert_int_equal(env_abx_home((const char *const[]){"HOME=/", "ABX_HOME=", NULL}, &root), 0);
    assert_string_equal(root, "/.abx");
    unsigned char a[32] = {0}, b[32] = {0};
    assert_int_equal(random_bytes(a, sizeof(a)), 0);
    assert_int_equal(random_bytes(b, sizeof(b)), 0);
    assert_memory_not_equal(a, b, sizeof(a));
    assert_string_equal(abx_version_string(), "0.1.0");
    assert_int_equal(abx_version(), 0x000100);
}

static void keep_line(void *user, abx_log_level level, const char *component, const char *line) {
    buf_printf(user, "%d %s %s\n", level, component, line);
}

static void test_log(void **state) {
    (void)state;
    _cleanup_buf_ struct buf got = BUF_INIT(0);
    struct logger l = {keep_line, &got, ABX_LOG_INFO};
    log_line(NULL, ABX_LOG_ERROR, "x", "nobody");
    log_line(&l, ABX_LOG_DEBUG, "rpc", "too fine");
    log_line(&l, ABX_LOG_INFO, "rpc", "two\nlines %d\x1b[0m", 7);
    assert_string_equal(buf_cstr(&got), "2 rpc two lines 7\n");
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_made)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf),         cmocka_unit_test(test_map),
                             cmocka_unit_test(test_map_churn),
        cmocka_unit_test(test_str),         cmocka_unit_test(test_numbers),
                         cmocka_unit_test(test_strv),
        cmocka_unit_test(test_base64),      cmocka_unit_test(test_digests),
                         cmocka_unit_test(test_error),
        cmocka_unit_test(test_error_errno), cmocka_unit_test(test_error_parts),
        cmocka_unit_test(test_error_table), FILE_TEST(test_read_write),     FILE_TEST(test_read_at),
        FILE_TEST(test_mkdir_p),            FILE_TEST(test_remove_tree),
                     FILE_TEST(test_remove_deep),
        FILE_TEST(test_paths),              cmocka_unit_test(test_time),
                     cmocka_unit_test(test_env),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
