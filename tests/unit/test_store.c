/* The store as a whole: install, update, rollback, crashes, locks, removal, and git sources. */
#include "store_help.h"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <time.h>

#include "store/journal.h"
#include "store/receipt.h"
#include "store/subproc.h"
#include "store/tree.h"

extern char **environ;

static struct store store;
static char home[512];

static int setup(void **state) {
    int r = make_root(state);
    snprintf(home, sizeof home, "%s/home", root);
    store = (struct store){.home = home, .environ_ = (const char *const *)environ, .host_name = "abx-test",
                           .supervisor = getenv("ABX_TEST_SUPERVISOR")};
    return r;
}

static abx_install_opts install_opts(const char *source) {
    abx_install_opts o = ABX_INSTALL_OPTS_INIT;
    o.source = source;
    o.consent = ABX_CONSENT_YES_FLAG;
    o.no_verify = 1;
    o.allow_insecure_transport = 1;
    return o;
}

static struct store_plan *plan(const abx_install_opts *o) {
    struct store_plan *p = NULL;
    abx_error *e = NULL;
    assert_ok(store_plan_install(&store, o, NULL, NULL, NULL, &p, &e), e);
    return p;
}

static abx_value *swap(struct store_plan *p) {
    abx_value *receipt = NULL;
    abx_error *e = NULL;
    assert_ok(store_plan_swap(p, ABX_CONSENT_YES_FLAG, &receipt, &e), e);
    return receipt;
}

static void apply(struct store_plan *p) {
    abx_error *e = NULL;
    abx_value_unref(swap(p));
    assert_ok(store_plan_commit(p, &e), e);
    store_plan_free(p);
}

static void install(const char *source, int force) {
    abx_install_opts o = install_opts(source);
    o.force = force;
    apply(plan(&o));
}

static void refuse(const abx_install_opts *o, int code, const char *message) {
    struct store_plan *p = NULL;
    abx_error *e = NULL;
    int r = store_plan_install(&store, o, NULL, NULL, NULL, &p, &e);
    assert_error(r, e, code, message);
    assert_null(p);
}

static void expect_verify(const char *id, int code, const char *message) {
    struct installed p = {0};
    abx_error *e = NULL;
    assert_ok(store_load(&store, id, &p, &e), e);
    int r = store_verify(&store, &p, &e);
    if (code)
        assert_error(r, e, code, message);
    else
        assert_ok(r, e);
    installed_done(&p);
}

static void expect_ids(const char *want) {
    char **ids = NULL;
    abx_error *e = NULL;
    assert_ok(store_ids(&store, &ids, &e), e);
    char text[256] = "";
    for (size_t i = 0; ids[i]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", ids[i]);
    assert_string_equal(text, want);
    strv_free(ids);
}

static size_t count_entries(const char *name) {
    DIR *d = opendir(at(name));
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) n += *e->d_name != '.' || strlen(e->d_name) > 2;
    if (d) closedir(d);
    return n;
}

static void expect_tidy(void) {
    assert_int_equal(count_entries("home/providers/.staging"), 0);
    assert_false(fs_exists(at("home/providers/.journal")));
    assert_false(fs_exists(at("home/providers/.lock")));
}

static void expect_version(const char *id, const char *version) {
    struct installed p = {0};
    abx_error *e = NULL;
    assert_ok(store_load(&store, id, &p, &e), e);
    assert_null(p.error);
    assert_string_equal(abx_value_get_string(p.receipt, "version"), version);
    assert_string_equal(p.manifest->version, version);
    installed_done(&p);
}

/* ---- local ------------------------------------------------------------------------- */

static void test_install(void **state) {
    (void)state;
    expect_ids("");
    put_manifest("src", "my-cloud", "1.0.0", "[config.fields.token]\nsecret = true\n[config.fields.area]\n");
    put("src/lib/x.txt", "x");
    abx_install_opts o = install_opts(at("src"));
    struct store_plan *p = plan(&o);
    static const char *const order[] = {"id",          "name",     "name_zh", "version", "source",
                                        "tree_sha256", "trust",    "runtime", "kind",    "features",
                                        "commands",    "security", "fields",  "inherit", "changes"};
    const abx_value *c = store_plan_consent(p);
    assert_int_equal(abx_value_size(c), ARRAY_SIZE(order));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) assert_string_equal(abx_value_key_at(c, i), order[i]);
    _cleanup_free_ char *fields = abx_value_print(abx_value_get(c, "fields"), 0, NULL);
    assert_string_equal(fields, "[{\"key\":\"area\",\"secret\":false},{\"key\":\"token\",\"secret\":true}]");
    assert_null(store_plan_previous(p));
    assert_true(store_plan_needs_consent(p));
    assert_false(store_plan_pinned(p));
    expect_ids("");

    abx_value *receipt = NULL;
    abx_error *e = NULL;
    int r = store_plan_swap(p, ABX_CONSENT_NONE, &receipt, &e);
    assert_error(r, e, ABX_E_TRUST, "Installation cancelled.");
    apply(p);
    expect_ids("my-cloud");
    expect_tidy();
    assert_int_equal(mode_of("home"), 0700);
    assert_int_equal(mode_of("home/providers"), 0700);
    assert_int_equal(mode_of("home/providers/my-cloud"), 0700);
    assert_int_equal(mode_of("home/providers/my-cloud/plugin"), 0700);
    assert_int_equal(mode_of("home/providers/my-cloud/lib/x.txt"), 0600);
    assert_int_equal(mode_of("home/providers/my-cloud/.abx-install.json"), 0600);
    expect_verify("my-cloud", 0, NULL);
    assert_int_equal(mode_of("home/providers/my-cloud/data"), 0700);

    o = install_opts(at("src"));
    refuse(&o, ABX_E_CONFLICT, "Provider id 'my-cloud' is already installed.");
    struct installed none = {0};
    r = store_load(&store, "my-clud", &none, &e);
    assert_string_equal(
        abx_error_hint(e),
        "Did you mean 'my-cloud'? Run 'abx provider list'; install with 'abx provider install "
        "<path-or-git-url>'.");
    assert_error(r, e, ABX_E_PROVIDER_NOT_FOUND, "Provider 'my-clud' is not installed.");
    e = NULL;
    r = store_load(&store, "../../etc", &none, &e);
    assert_error(r, e, ABX_E_PROVIDER_NOT_FOUND, "Provider '../../etc' is not installed.");
}

static void test_force(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    install(at("src"), 0);
    put("home/providers/my-cloud/data/k", "kept");
    _cleanup_free_ char *receipt = get("home/providers/my-cloud/.abx-install.json");
    /* Another host may have left words of its own. */
    _cleanup_free_ char *more =
        str_printf("%.*s,\"other_host\": [1]}", (int)(strrchr(receipt, '}') - receipt), receipt);
    put("home/providers/my-cloud/.abx-install.json", more);
    put_manifest("src2", "my-cloud", "2.0.0", "[security]\nnetwork = [\"*\"]\n");
    abx_install_opts o = install_opts(at("src2"));
    o.force = 1;
    struct store_plan *p = plan(&o);
    _cleanup_free_ char *changes = abx_value_print(abx_value_get(store_plan_consent(p), "changes"), 0, NULL);
    assert_string_equal(changes, "[\"security\"]");
    assert_string_equal(abx_value_get_string(store_plan_previous(p), "version"), "1.0.0");
    assert_non_null(abx_value_get(store_plan_previous(p), "source"));
    assert_non_null(abx_value_get(store_plan_previous(p), "runtime"));
    apply(p);
    expect_version("my-cloud", "2.0.0");
    assert_file("home/providers/my-cloud/data/k", "kept");
    _cleanup_free_ char *now = get("home/providers/my-cloud/.abx-install.json");
    assert_non_null(strstr(now, "\"other_host\": [\n    1\n  ]"));
    expect_verify("my-cloud", 0, NULL);
    expect_tidy();
}

static void test_tampering(void **state) {
    (void)state;
#define CHANGED "Provider 'my-cloud': files changed since install"
    put_manifest("src", "my-cloud", "1.0.0", "");
    install(at("src"), 0);
    put("home/providers/my-cloud/new", "x");
    expect_verify("my-cloud", ABX_E_INTEGRITY, CHANGED ".");
    unlink(at("home/providers/my-cloud/new"));
    expect_verify("my-cloud", 0, NULL);
    /* What others may write could change between the check and the start. */
    assert_int_equal(chmod(at("home/providers/my-cloud/plugin"), 0720), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, "Provider 'my-cloud': 'plugin' can be written by other users.");
    assert_int_equal(chmod(at("home/providers/my-cloud/plugin"), 0700), 0);
    assert_int_equal(chmod(at("home/providers/my-cloud"), 0777), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, NULL);
    assert_int_equal(chmod(at("home/providers/my-cloud"), 0700), 0);
    assert_int_equal(mkdir(at("home/providers/my-cloud/.git"), 0700), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, CHANGED " ('.git').");
    rmdir(at("home/providers/my-cloud/.git"));
    assert_int_equal(symlink("data", at("home/providers/my-cloud/d")), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, CHANGED " ('d').");
    unlink(at("home/providers/my-cloud/d"));
    assert_int_equal(mkfifo(at("home/providers/my-cloud/f"), 0600), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, CHANGED " ('f').");
    unlink(at("home/providers/my-cloud/f"));
    assert_int_equal(chmod(at("home/providers/my-cloud/plugin"), 0600), 0);
    expect_verify("my-cloud", ABX_E_INTEGRITY, CHANGED ".");
    put("home/providers/my-cloud/abx-provider.toml", "broken");
    struct installed p = {0};
    abx_error *e = NULL;
    assert_ok(store_load(&store, "my-cloud", &p, &e), e); /* a row with an error, not a failure */
    assert_int_equal(abx_error_code(p.error), ABX_E_MANIFEST);
    assert_string_equal(abx_error_provider(p.error), "my-cloud");
    assert_null(p.manifest);
    assert_non_null(p.receipt);
    installed_done(&p);
}

static void test_link(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    abx_install_opts o = install_opts(at("src"));
    o.link = 1;
    o.consent = ABX_CONSENT_NONE;
    refuse(&o, ABX_E_TRUST, "--link requires --yes (the linked code is not pinned).");
    o.consent = ABX_CONSENT_YES_FLAG;
    apply(plan(&o));
    put("src/new", "x"); /* no digest */
    struct installed p = {0};
    abx_error *e = NULL;
    assert_ok(store_load(&store, "my-cloud", &p, &e), e);
    assert_ok(store_verify(&store, &p, &e), e);
    _cleanup_free_ char *real = realpath(at("src"), NULL);
    assert_string_equal(p.plugin_dir, real);
    assert_string_equal(abx_value_get_string(p.receipt, "tree_sha256"), "");
    installed_done(&p);
    assert_int_equal(count_entries("home/providers/my-cloud"), 2); /* receipt and data */
}

static void test_sha256(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    char hex[65];
    assert_int_equal(tree_digest_dir(at("src"), hex, NULL), 0);
    abx_install_opts o = install_opts(at("src"));
    o.sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
    _cleanup_free_ char *want = str_printf("Tree digest mismatch: expected %s, got %s.", o.sha256, hex);
    refuse(&o, ABX_E_INTEGRITY, want);
    o.sha256 = hex;
    struct store_plan *p = plan(&o);
    assert_true(store_plan_pinned(p));
    apply(p);
    expect_version("my-cloud", "1.0.0");
}

/* ---- failure and crash --------------------------------------------------------------- */

static void test_rollback(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    install(at("src"), 0);
    put("home/providers/my-cloud/data/k", "before");
    _cleanup_free_ char *before = get("home/providers/my-cloud/.abx-install.json");
    put_manifest("src", "my-cloud", "2.0.0", "");
    abx_install_opts o = install_opts(at("src"));
    o.force = 1;
    o.no_verify = 0;
    struct store_plan *p = plan(&o);
    abx_value_unref(swap(p));
    expect_version("my-cloud", "2.0.0");
    assert_file("home/providers/my-cloud/data/k", "before");
    put("home/providers/my-cloud/data/k", "after"); /* the handshake of the new one */
    put("home/providers/my-cloud/data/new", "x");
    abx_error *e = NULL;
    assert_ok(store_plan_rollback(p, &e), e);
    store_plan_free(p);
    expect_version("my-cloud", "1.0.0");
    assert_file("home/providers/my-cloud/data/k", "before");
    assert_false(fs_exists(at("home/providers/my-cloud/data/new")));
    assert_file("home/providers/my-cloud/.abx-install.json", before);
    expect_tidy();

    put_manifest("other", "other", "1.0.0", ""); /* and a first install leaves nothing */
    o = install_opts(at("other"));
    p = plan(&o);
    abx_value_unref(swap(p));
    store_plan_free(p); /* an owner that gives up */
    expect_ids("my-cloud");
    assert_false(fs_exists(at("home/providers/other")));
    expect_tidy();
}

/* Swaps in another process and dies with nothing settled. */
static void crash_in_trial(const char *source) {
    pid_t pid = fork();
    if (pid == 0) {
        abx_install_opts o = install_opts(source);
        o.force = 1;
        o.no_verify = 0;
        struct store_plan *p = NULL;
        abx_value *receipt = NULL;
        if (store_plan_install(&store, &o, NULL, NULL, NULL, &p, NULL) < 0) _exit(2);
        if (store_plan_swap(p, ABX_CONSENT_YES_FLAG, &receipt, NULL) < 0) _exit(3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(fs_exists(at("home/providers/.journal")));
}

static void expect_recovered(const char *want) {
    _cleanup_free_ char *note = NULL;
    abx_error *e = NULL;
    assert_ok(store_recover(&store, &note, &e), e);
    if (want)
        assert_string_equal(note, want);
    else
        assert_null(note);
    expect_tidy();
}

static void test_crash(void **state) {
    (void)state;
    expect_recovered(NULL);
    put_manifest("src", "my-cloud", "1.0.0", "");
    install(at("src"), 0);
    put("home/providers/my-cloud/data/k", "kept");
    put_manifest("src2", "my-cloud", "2.0.0", "");
    crash_in_trial(at("src2"));
    put("home/providers/my-cloud/data/k", "changed");
    expect_recovered("Undid the interrupted install of 'my-cloud'.");
    expect_version("my-cloud", "1.0.0");
    expect_verify("my-cloud", 0, NULL);
    assert_file("home/providers/my-cloud/data/k", "kept");
    expect_recovered(NULL);

    crash_in_trial(at("src2")); /* the next command that changes something does the same */
    put_manifest("b", "b-b", "1.0.0", "");
    install(at("b"), 0);
    expect_version("my-cloud", "1.0.0");
    assert_file("home/providers/my-cloud/data/k", "kept");
    expect_tidy();

    crash_in_trial(at("b"));
    put("home/providers/.journal", "rubbish");
    expect_recovered("Removed a journal that is not readable.");
}

/* Every state that a crash between two moves can leave. */
static void test_crash_between(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    put_manifest("src2", "my-cloud", "2.0.0", "");
    install(at("src"), 0);
    put("home/providers/my-cloud/data/k", "kept");
    for (int step = 0; step < 5; step++) {
        assert_int_equal(fs_mkdir_p(at("home/providers/.staging/abx-x"), 0700), 0);
        struct journal j = {.op = JOURNAL_UPDATE,
                            .moving = true,
                            .had_data = true,
                            .id = (char *)"my-cloud",
                            .stage = (char *)"abx-x"};
        put_manifest("home/providers/.staging/abx-x/tree", "my-cloud", "2.0.0", "");
        j.new_inode = layout_inode(at("home/providers/.staging/abx-x/tree"));
        j.old_inode = layout_inode(at("home/providers/my-cloud"));
        assert_int_equal(journal_write(&store, &j, NULL), 0);
        const char *id = at("home/providers/my-cloud"), *tree = at("home/providers/.staging/abx-x/tree");
        const char *spare = at("home/providers/.staging/abx-x/spare");
        if (step == 1) assert_int_equal(fs_exchange(id, tree), 0);
        if (step == 2) assert_int_equal(swap_forward(&store, &j), 0);
        if (step == 3) assert_int_equal(rename(id, spare), 0); /* the way without an exchange */
        if (step == 4) {
            assert_int_equal(rename(id, spare), 0);
            assert_int_equal(rename(tree, id), 0);
            put("home/providers/my-cloud/data/reader", "x");
        }
        expect_recovered("Undid the interrupted update of 'my-cloud'.");
        expect_version("my-cloud", "1.0.0");
        expect_verify("my-cloud", 0, NULL);
        assert_file("home/providers/my-cloud/data/k", "kept");
    }
}

static void test_crash_removal(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    for (int step = 0; step < 3; step++) {
        install(at("src"), 1);
        put("home/providers/my-cloud/data/k", "kept");
        assert_int_equal(fs_mkdir_p(at("home/providers/.staging/abx-x/tree"), 0700), 0);
        struct journal j = {.op = JOURNAL_UNINSTALL,
                            .moving = true,
                            .had_data = true,
                            .id = (char *)"my-cloud",
                            .stage = (char *)"abx-x"};
        j.new_inode = layout_inode(at("home/providers/.staging/abx-x/tree"));
        j.old_inode = layout_inode(at("home/providers/my-cloud"));
        assert_int_equal(journal_write(&store, &j, NULL), 0);
        if (step == 1)
            assert_int_equal(
                fs_exchange(at("home/providers/my-cloud"), at("home/providers/.staging/abx-x/tree")), 0);
        if (step == 2)
            assert_int_equal(rename(at("home/providers/my-cloud"), at("home/providers/.staging/abx-x/spare")),
                             0);
        expect_recovered(step ? "Finished the interrupted uninstall of 'my-cloud'."
                              : "Undid the interrupted uninstall of 'my-cloud'.");
        expect_ids(step ? "" : "my-cloud");
        assert_file("home/providers/my-cloud/data/k", "kept");
    }
}

static void test_stale_plan(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    abx_install_opts o = install_opts(at("src"));
    struct store_plan *a = plan(&o), *b = plan(&o);
    apply(a);
    abx_value *receipt = NULL;
    abx_error *e = NULL;
    int r = store_plan_swap(b, ABX_CONSENT_PERSON, &receipt, &e);
    assert_error(r, e, ABX_E_CONFLICT, "Provider id 'my-cloud' is already installed.");
    store_plan_free(b);
    expect_tidy();

    o.force = 1; /* whatever is there is replaced by what was agreed to */
    a = plan(&o);
    b = plan(&o);
    apply(a);
    apply(b);
    expect_tidy();

    e = NULL; /* nor may the staged files change while somebody reads the screen */
    o.force = 1;
    struct store_plan *p = plan(&o);
    _cleanup_closedir_ DIR *d = opendir(at("home/providers/.staging"));
    for (struct dirent *x; (x = readdir(d));) {
        if (*x->d_name == '.') continue;
        _cleanup_free_ char *name = str_printf("home/providers/.staging/%s/tree/plugin", x->d_name);
        put_n(name, "evil", 4, 0700);
    }
    r = store_plan_swap(p, ABX_CONSENT_PERSON, &receipt, &e);
    assert_error(r, e, ABX_E_INTEGRITY, "The staged files of 'my-cloud' were changed.");
    store_plan_free(p);
    expect_verify("my-cloud", 0, NULL);
}

/* ---- the lock ---------------------------------------------------------------------- */

static int try_lock(int wait_ms) {
    struct store_lock l = STORE_LOCK_INIT;
    abx_error *e = NULL;
    int r = store_lock_take(&l, &store, wait_ms, &e);
    if (r < 0) assert_string_equal(abx_error_message(e), "Another provider install/update is in progress.");
    abx_error_unref(e);
    store_lock_release(&l);
    return r;
}

static void test_lock(void **state) {
    (void)state;
    assert_int_equal(layout_make(&store, NULL), 0);
    struct store_lock l = STORE_LOCK_INIT;
    assert_int_equal(store_lock_take(&l, &store, 0, NULL), 0);
    _cleanup_free_ char *text = get("home/providers/.lock");
    assert_int_equal(atoi(text), getpid());
    assert_int_equal(try_lock(0), ABX_E_INSTALL);
    assert_int_equal(try_lock(60), ABX_E_INSTALL);
    store_lock_release(&l);
    assert_false(fs_exists(at("home/providers/.lock")));
    assert_int_equal(try_lock(0), 0);

    /* One of another host, which holds no flock: its process and its age decide. */
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    put("home/providers/.lock", pid);
    assert_int_equal(try_lock(0), ABX_E_INSTALL);
    const struct timespec old[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - 301}};
    assert_int_equal(utimensat(AT_FDCWD, at("home/providers/.lock"), old, 0), 0);
    assert_int_equal(try_lock(0), 0);
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    snprintf(pid, sizeof pid, "%d\n", (int)dead);
    put("home/providers/.lock", pid);
    assert_int_equal(try_lock(0), 0);
    put("home/providers/.lock", "");
    assert_int_equal(try_lock(0), ABX_E_INSTALL);
    unlink(at("home/providers/.lock"));

    /* One of ours whose holder was killed: free at once, whoever has its number now. */
    snprintf(pid, sizeof pid, "0%d", (int)getpid());
    put("home/providers/.lock", pid);
    int fd = open(at("home/providers/.lock"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(try_lock(0), ABX_E_INSTALL);
    close(fd);
    assert_int_equal(try_lock(0), 0);
}

/* Several at once: each waits its turn, none is lost. */
static void test_parallel(void **state) {
    (void)state;
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        char dir[32], id[32];
        snprintf(dir, sizeof dir, "src%d", i);
        snprintf(id, sizeof id, "cloud-%d", i);
        put_manifest(dir, id, "1.0.0", "");
    }
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char dir[16];
            snprintf(dir, sizeof dir, "src%d", i);
            abx_install_opts o = install_opts(at(dir));
            struct store_plan *p = NULL;
            abx_value *receipt = NULL;
            int r = store_plan_install(&store, &o, NULL, NULL, NULL, &p, NULL);
            if (r == 0) r = store_plan_swap(p, ABX_CONSENT_YES_FLAG, &receipt, NULL);
            if (r == 0) r = store_plan_commit(p, NULL);
            abx_value_unref(receipt);
            store_plan_free(p);
            _exit(r < 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    expect_ids("cloud-0 cloud-1 cloud-2 cloud-3");
    expect_tidy();
}

/* ---- homes that do not do ----------------------------------------------------------- */

static void test_home(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    put("home", "a file");
    abx_install_opts o = install_opts(at("src"));
    refuse(&o, ABX_E_INSTALL, NULL);
    assert_file("home", "a file");
    expect_ids("");
    unlink(at("home"));
    assert_int_equal(mkdir(at("real"), 0755), 0);
    assert_int_equal(symlink("real", at("home")), 0);
    install(at("src"), 0);
    expect_version("my-cloud", "1.0.0");
    assert_true(fs_exists(at("real/providers/my-cloud/plugin")));
    assert_int_equal(mode_of("real"), 0755); /* what was there keeps its mode */
    fs_remove_tree(at("real/providers/my-cloud"));
    put("real/providers/my-cloud", "a file in the way");
    refuse(&o, ABX_E_INSTALL, NULL);
    unlink(at("real/providers/my-cloud"));
    if (geteuid() == 0) return; /* root writes everywhere */
    assert_int_equal(chmod(at("real/providers"), 0500), 0);
    refuse(&o, ABX_E_INSTALL, NULL);
    assert_int_equal(chmod(at("real/providers"), 0700), 0);
}

/* ---- uninstall --------------------------------------------------------------------- */

static void expect_gone(const char *id, bool purge) {
    abx_error *e = NULL;
    int r = store_uninstall(&store, id, purge, &e);
    _cleanup_free_ char *want = str_printf("Provider '%s' is not installed.", id);
    assert_error(r, e, ABX_E_PROVIDER_NOT_FOUND, want);
}

static void test_uninstall(void **state) {
    (void)state;
    abx_error *e = NULL;
    put_manifest("src", "my-cloud", "1.0.0", "");
    expect_gone("my-cloud", false);
    expect_gone("..", true);
    int r = store_uninstall(&store, "alicloud-express", false, &e);
    assert_error(r, e, ABX_E_CONFLICT, "The built-in provider cannot be removed.");
    e = NULL;

    install(at("src"), 0);
    assert_ok(store_uninstall(&store, "my-cloud", false, &e), e);
    assert_false(fs_exists(at("home/providers/my-cloud")));

    install(at("src"), 0);
    put("home/providers/my-cloud/data/k", "kept");
    assert_ok(store_uninstall(&store, "my-cloud", false, &e), e);
    expect_ids("");
    expect_gone("my-cloud", false);
    assert_int_equal(count_entries("home/providers/my-cloud"), 1);
    assert_file("home/providers/my-cloud/data/k", "kept");
    install(at("src"), 0); /* no --force: nothing is installed */
    assert_file("home/providers/my-cloud/data/k", "kept");
    assert_ok(store_uninstall(&store, "my-cloud", true, &e), e);
    assert_false(fs_exists(at("home/providers/my-cloud")));
    expect_gone("my-cloud", true);
    expect_tidy();

    install(at("src"), 0); /* a broken one can be removed all the same */
    put("home/providers/my-cloud/.abx-install.json", "{");
    assert_ok(store_uninstall(&store, "my-cloud", false, &e), e);
    expect_ids("");
}

/* ---- git --------------------------------------------------------------------------- */

static void sh(const char *fmt, ...) _printf_(1, 2);
static void sh(const char *fmt, ...) {
    char text[2048], full[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(
        full, sizeof full,
        "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a "
        "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a; unset GIT_DIR GIT_WORK_TREE; set -e; cd '%s'; { %s ; "
        "} >/dev/null 2>&1",
        root, text);
    int status = system(full);
    if (status) print_error("failed: %s\n", text);
    assert_int_equal(status, 0);
}

/* The commit that rev names in the repository; static, a few live at a time. */
static const char *commit_of(const char *repo, const char *rev) {
    static char ids[4][80];
    static unsigned next;
    char *id = ids[next++ % 4];
    sh("git -C %s rev-parse '%s^{commit}' | tr -d '\\n' >'%s/id'", repo, rev, root);
    _cleanup_free_ char *text = get("id");
    snprintf(id, sizeof ids[0], "%s", text);
    return id;
}

static const char *url_of(const char *repo) {
    static char url[600];
    snprintf(url, sizeof url, "file://%s", at(repo));
    return url;
}

static void commit_version(const char *repo, const char *version, const char *more) {
    put_manifest(repo, "gitp", version, more);
    sh("cd %s && git add -A && git commit -qm %s", repo, version);
}

static void make_repo(const char *repo) {
    sh("git init -q -b main %s", repo);
    commit_version(repo, "1.0.0", "");
    sh("git -C %s tag -a -m x v1", repo);
}

static void test_git_install(void **state) {
    (void)state;
    make_repo("g");
    const char *first = commit_of("g", "HEAD");
    abx_install_opts o = install_opts(url_of("g"));
    o.allow_insecure_transport = 0;
    _cleanup_free_ char *insecure = str_printf("Insecure provider source '%s'.", o.source);
    refuse(&o, ABX_E_TRUST, insecure);
    o.allow_insecure_transport = 1;
    struct store_plan *p = NULL;
    abx_error *e = NULL;
    int r = store_plan_install(&store, &o, NULL, NULL, NULL, &p, &e);
    _cleanup_free_ char *hint = str_printf(
        "Pin it: --ref %s (or --sha256 <digest>); or pass --allow-unpinned to accept the current head.",
        first);
    assert_string_equal(abx_error_hint(e), hint);
    assert_error(r, e, ABX_E_TRUST,
                 "Refusing an unpinned git source without review (--yes does not accept a moving ref).");
    expect_ids("");
    assert_int_equal(count_entries("home/providers/.staging"), 0);

    e = NULL; /* a person may; --yes at the end may not */
    o.consent = ABX_CONSENT_NONE;
    p = plan(&o);
    abx_value *receipt = NULL;
    r = store_plan_swap(p, ABX_CONSENT_YES_FLAG, &receipt, &e);
    assert_error(r, e, ABX_E_TRUST,
                 "Refusing an unpinned git source without review (--yes does not accept a moving ref).");
    e = NULL;
    r = store_plan_swap(p, ABX_CONSENT_NONE, &receipt, &e);
    assert_error(r, e, ABX_E_TRUST, "Installation cancelled.");
    e = NULL;
    assert_ok(store_plan_swap(p, ABX_CONSENT_PERSON, &receipt, &e), e);
    _cleanup_free_ char *source = abx_value_print(abx_value_get(receipt, "source"), 0, NULL);
    _cleanup_free_ char *want =
        str_printf("{\"type\":\"git\",\"url\":\"%s\",\"ref\":\"HEAD\",\"commit\":\"%s\",\"subdir\":\"\"}",
                   o.source, first);
    assert_string_equal(source, want);
    assert_string_equal(abx_value_get_string(receipt, "trust"), "unpinned");
    assert_ok(store_plan_commit(p, &e), e);
    abx_value_unref(receipt);
    store_plan_free(p);
    expect_verify("gitp", 0, NULL);
    assert_int_equal(mode_of("home/providers/gitp/plugin"), 0700);
    assert_int_equal(mode_of("home/providers/gitp/abx-provider.toml"), 0600);
    expect_tidy();

    o.consent = ABX_CONSENT_YES_FLAG;
    o.force = 1;
    char upper[80];
    snprintf(upper, sizeof upper, "%s", first);
    for (char *c = upper; *c; c++) *c = (char)(*c >= 'a' && *c <= 'f' ? *c - 32 : *c);
    o.ref = upper;
    p = plan(&o);
    assert_true(store_plan_pinned(p));
    apply(p);
    o.ref = "v1"; /* an annotated tag comes back as its commit */
    o.allow_unpinned = 1;
    p = plan(&o);
    assert_string_equal(abx_value_get_string(abx_value_get(store_plan_consent(p), "source"), "commit"),
                        first);
    assert_false(store_plan_pinned(p));
    store_plan_free(p);
    o.ref = NULL; /* the digest pins as well */
    o.allow_unpinned = 0;
    char hex[65];
    assert_int_equal(tree_digest_dir(at("g"), hex, NULL), 0);
    o.sha256 = hex;
    p = plan(&o);
    assert_true(store_plan_pinned(p));
    store_plan_free(p);
}

static void test_git_refs(void **state) {
    (void)state;
    make_repo("g");
    const char *first = commit_of("g", "HEAD");
    commit_version("g", "1.1.0", "");
    abx_install_opts o = install_opts(url_of("g"));
    o.ref = "nosuch";
    refuse(&o, ABX_E_INSTALL, "Cannot fetch provider source: there is no branch or tag 'nosuch'.");
    o.ref = "0123456789012345678901234567890123456789";
    refuse(&o, ABX_E_INSTALL,
           "Cannot fetch provider source: the repository has no commit 0123456789012345678901234567890123456789.");
    /* A branch that is named like a commit leads elsewhere: the commit of that name counts. */
    sh("git -C g update-ref refs/heads/%s HEAD && git -C g update-ref "
       "refs/heads/0123456789012345678901234567890123456789 HEAD",
       first);
    refuse(&o, ABX_E_INSTALL, NULL);
    o.ref = first;
    struct store_plan *p = plan(&o);
    assert_string_equal(abx_value_get_string(store_plan_consent(p), "version"), "1.0.0");
    store_plan_free(p);
    /* The id of a tag object is no commit. */
    sh("git -C g rev-parse v1 | tr -d '\\n' >'%s/tag'", root);
    _cleanup_free_ char *tag = get("tag");
    o.ref = tag;
    refuse(&o, ABX_E_INSTALL, NULL);
    o.ref = first;
    o.subdir = "nodir";
    _cleanup_free_ char *want =
        str_printf("Cannot fetch provider source: there is no directory 'nodir' in commit %s.", first);
    refuse(&o, ABX_E_INSTALL, want);
    const char *const none[] = {"PATH=/nonexistent", NULL};
    store.environ_ = none;
    refuse(&o, ABX_E_INSTALL, "Cannot fetch provider source: git is not installed.");
}

static void refuse_head(const char *message) {
    abx_install_opts o = install_opts(url_of("g"));
    o.allow_unpinned = 1;
    refuse(&o, ABX_E_INSTALL, message);
    sh("git -C g reset -q --hard v1 && git -C g clean -fdxq");
}

static void test_git_entries(void **state) {
    (void)state;
    make_repo("g");
    sh("cd g && ln -s plugin ln && git add -A && git commit -qm x");
    refuse_head("Unsafe entry 'ln' in provider source.");
    sh("cd g && git update-index --add --cacheinfo 160000,%s,sub && git commit -qm x",
       commit_of("g", "HEAD"));
    refuse_head("Unsafe entry 'sub' in provider source.");
    sh("cd g && echo x >A && echo y >a && git add -A && git commit -qm x");
    refuse_head("Unsafe entry 'a' in provider source (case collision).");
    sh("cd g && mkdir data && echo x >data/x && git add -A && git commit -qm x");
    refuse_head("The top-level 'data/' directory is reserved for plugin state.");
    sh("cd g && printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n' >m && git add "
       "-A && git commit -qm x");
    refuse_head("Unsafe entry 'm' in provider source (Git LFS pointer).");
    sh("cd g && head -c 10485761 /dev/zero >big && git add -A && git commit -qm x");
    refuse_head("Unsafe entry 'big' in provider source (file too large).");
    sh("cd g && git config uploadpack.allowFilter true && head -c 10485761 /dev/zero >big && git add -A && "
       "git commit -qm x");
    refuse_head("Unsafe entry 'big' in provider source (file too large)."); /* left out by the fetch */
    sh("cd g && for i in $(seq 2001); do echo >f$i; done && git add -A && git commit -qm x");
    refuse_head("Provider source exceeds the size/file-count limits.");
    sh("cd g && echo '* text eol=crlf' >.gitattributes && printf 'a\\n' >t && git add -A && git commit -qm "
       "x");
    abx_install_opts o = install_opts(url_of("g"));
    o.allow_unpinned = 1;
    apply(plan(&o));
    assert_file("home/providers/gitp/t", "a\n"); /* never a checkout: bytes as they were committed */
}

static void test_git_subdir_and_sha256(void **state) {
    (void)state;
    sh("git init -q -b main --object-format=sha256 g2");
    put("g2/README", "x");
    commit_version("g2/deep/plug", "1.0.0", "");
    abx_install_opts o = install_opts(url_of("g2"));
    o.subdir = "deep/plug";
    o.ref = commit_of("g2", "HEAD");
    assert_int_equal(strlen(o.ref), 64);
    struct store_plan *p = plan(&o);
    assert_true(store_plan_pinned(p));
    apply(p);
    assert_false(fs_exists(at("home/providers/gitp/README")));
    o.ref = NULL;
    o.allow_unpinned = o.force = 1;
    apply(plan(&o));
    expect_verify("gitp", 0, NULL);
}

static void test_git_host(void **state) {
    (void)state;
    make_repo("g");
    abx_install_opts o = install_opts(url_of("g"));
    o.allow_unpinned = 1;
    /* A host that ignores its children takes the exit status away from us. */
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    struct store_plan *p = NULL;
    int r = store_plan_install(&store, &o, NULL, NULL, NULL, &p, NULL);
    o.ref = "nosuch";
    abx_error *e = NULL;
    struct store_plan *none = NULL;
    int r2 = store_plan_install(&store, &o, NULL, NULL, NULL, &none, &e);
    signal(SIGCHLD, old);
    assert_int_equal(r, 0);
    store_plan_free(p);
    assert_error(r2, e, ABX_E_INSTALL,
                 "Cannot fetch provider source: there is no branch or tag 'nosuch'.");
}

struct stopper {
    struct store_cancel cancel;
    int told, after;
};

static void stop_at_progress(void *user, const char *what) {
    (void)what;
    struct stopper *s = user;
    if (++s->told >= s->after) atomic_store(&s->cancel.stop, true);
}

static void test_cancel(void **state) {
    (void)state;
    make_repo("g");
    put_manifest("src", "my-cloud", "1.0.0", "");
    struct stopper s = {.cancel = {.event_fd = -1}};
    abx_install_opts o = install_opts(url_of("g"));
    struct store_plan *p = NULL;
    abx_error *e = NULL;
    int r = store_plan_install(&store, &o, &s.cancel, stop_at_progress, &s, &p, &e);
    assert_error(r, e, -ECANCELED, NULL);
    assert_int_equal(s.told, 1);
    e = NULL;
    o = install_opts(at("src"));
    r = store_plan_install(&store, &o, &s.cancel, NULL, NULL, &p, &e);
    assert_error(r, e, -ECANCELED, NULL);
    assert_int_equal(count_entries("home/providers/.staging"), 0);
}

/* A git that is none: writes down its environment, or makes a child and never ends. */
static void put_fake_git(const char *script) {
    _cleanup_free_ char *text = str_printf("#!/bin/sh\n%s\n", script);
    put_n("bin/git", text, strlen(text), 0755);
}

static void expect_env(const char *url, const char *want) {
    _cleanup_free_ char *path = str_printf("PATH=%s", at("bin"));
    const char *const env[] = {
        path,         "HOME=/real/home",        "SSH_AUTH_SOCK=/agent", "ABX_TOKEN=secret",
        "GIT_DIR=/x", "https_proxy=http://p:1", "SSL_CERT_FILE=/ca",    "GIT_SSH_COMMAND=evil",
        NULL};
    store.environ_ = env;
    abx_install_opts o = install_opts(url);
    refuse(&o, ABX_E_INSTALL, "Cannot fetch provider source: fatal: not today.");
    _cleanup_free_ char *got = get("env");
    for (char *p; (p = strstr(got, "/home/providers/.staging/abx-"));) { /* its random part */
        char *end = p + strlen("/home/providers/.staging/abx-") + 16;
        memmove(p, end, strlen(end) + 1);
    }
    for (char *p; (p = strstr(got, root));) memmove(p, p + strlen(root), strlen(p + strlen(root)) + 1);
    assert_string_equal(got, want);
}

static void test_git_environment(void **state) {
    (void)state;
    _cleanup_free_ char *script = str_printf(
        "/usr/bin/env | /usr/bin/grep -v '^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD=' | /usr/bin/sort >'%s'\n"
        "echo 'fatal: not today.' >&2; exit 128",
        at("env"));
    put_fake_git(script);
#define GIT_PART(allow, config, ssh, home)                                                                   \
    "GIT_ALLOW_PROTOCOL=" allow "\nGIT_CONFIG_GLOBAL=" config                                                \
    "\nGIT_CONFIG_NOSYSTEM=1\nGIT_NO_LAZY_FETCH=1\n" ssh "GIT_TERMINAL_PROMPT=0\nHOME=" home                 \
    "\nLC_ALL=C\nPATH=/bin\n"
    expect_env("https://h.example/x", GIT_PART("https:ssh:http:git:file", "/dev/null", "",
                                               "/git-home") "SSL_CERT_FILE=/ca\nhttps_proxy=http://p:1\n");
    expect_env("git@h.example:x",
               GIT_PART("https:ssh:http:git:file", "/dev/null",
                        "GIT_SSH_COMMAND=ssh -o BatchMode=yes\nGIT_SSH_VARIANT=ssh\n",
                        "/real/home") "SSH_AUTH_SOCK=/agent\nSSL_CERT_FILE=/ca\nhttps_proxy=http://p:1\n");
}

/* Gone, or dead and waiting for whoever adopted it. */
static bool is_dead(const char *pid_file) {
    _cleanup_free_ char *pid = get(pid_file), *text = NULL;
    assert_non_null(pid);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", atoi(pid));
    if (fs_read(path, 4096, &text, NULL) < 0) return true;
    const char *p = strrchr(text, ')');
    return p && (p[2] == 'Z' || p[2] == 'X');
}

static void test_git_cancel_kills(void **state) {
    (void)state;
    _cleanup_free_ char *script =
        str_printf("/bin/sleep 600 & echo $! >'%s'; echo $$ >'%s'; echo 'Receiving 1%%' >&2; wait",
                   at("child"), at("self"));
    put_fake_git(script);
    _cleanup_free_ char *path = str_printf("PATH=%s", at("bin"));
    const char *const env[] = {path, NULL};
    store.environ_ = env;
    struct stopper s = {.cancel = {.event_fd = -1}, .after = 2};
    abx_install_opts o = install_opts("https://h.example/x");
    struct store_plan *p = NULL;
    abx_error *e = NULL;
    int r = store_plan_install(&store, &o, &s.cancel, stop_at_progress, &s, &p, &e);
    assert_error(r, e, -ECANCELED, NULL);
    assert_int_equal(s.told, 2);
    assert_true(is_dead("self"));
    while (!is_dead("child")) /* killed already: only its end may take a moment */
        sched_yield();
}

static int ignore(void *user, const char *data, size_t n) {
    (void)user, (void)data, (void)n;
    return 0;
}

static void test_subproc(void **state) {
    (void)state;
    char *const env[] = {NULL};
    char *const hang[] = {(char *)"sleep", (char *)"600", NULL};
    struct subproc_spec spec = {.path = "/bin/sleep",
                                .argv = hang,
                                .env = env,
                                .stdin_fd = -1,
                                .on_output = ignore,
                                .deadline_ms = time_mono_ms() + 20};
    _cleanup_buf_ struct buf err = BUF_INIT(0);
    int status = 0;
    assert_int_equal(subproc_run(&spec, &err, &status), -ETIMEDOUT);
    /* A program that leaves somebody with its pipes behind has ended all the same. */
    char *const leave[] = {(char *)"sh", (char *)"-c", (char *)"/bin/sleep 600 & echo bad >&2; exit 7", NULL};
    spec.path = "/bin/sh";
    spec.argv = leave;
    spec.deadline_ms = time_mono_ms() + 60000;
    assert_int_equal(subproc_run(&spec, &err, &status), 0);
    assert_int_equal(status, 7);
    assert_string_equal(buf_cstr(&err), "bad\n");
    spec.path = "/no/such/program";
    assert_int_equal(subproc_run(&spec, &err, &status), -ENOENT);
}

/* ---- update ------------------------------------------------------------------------ */

static abx_update_opts update_opts(const char *id) {
    abx_update_opts o = ABX_UPDATE_OPTS_INIT;
    o.id = id;
    o.allow_insecure_transport = 1;
    o.no_verify = 1;
    o.consent = ABX_CONSENT_YES_FLAG;
    return o;
}

static void expect_result(const abx_update_opts *o, bool has_plan, const char *fmt, ...) _printf_(3, 4);
static void expect_result(const abx_update_opts *o, bool has_plan, const char *fmt, ...) {
    struct store_plan *p = NULL;
    abx_value *result = NULL;
    abx_error *e = NULL;
    assert_ok(store_plan_update(&store, o, NULL, NULL, NULL, &p, &result, &e), e);
    char want[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(want, sizeof want, fmt, ap);
    va_end(ap);
    _cleanup_free_ char *got = abx_value_print(result, 0, NULL);
    assert_string_equal(got, want);
    abx_value_unref(result);
    assert_int_equal(p != NULL, has_plan);
    if (p) apply(p);
}

static void refuse_update(const abx_update_opts *o, int code, const char *message) {
    struct store_plan *p = NULL;
    abx_value *result = NULL;
    abx_error *e = NULL;
    int r = store_plan_update(&store, o, NULL, NULL, NULL, &p, &result, &e);
    assert_error(r, e, code, message);
    assert_null(p);
    assert_null(result);
}

static void test_update(void **state) {
    (void)state;
    make_repo("g");
    const char *first = commit_of("g", "HEAD");
    abx_install_opts i = install_opts(url_of("g"));
    i.ref = first;
    apply(plan(&i));
    abx_update_opts o = update_opts("gitp");
    o.allow_insecure_transport = 0;
    expect_result(
        &o, false,
        "{\"id\":\"gitp\",\"status\":\"pinned\",\"installed\":\"%s\",\"available\":null,\"changes\":[]}",
        first);
    i.ref = "main";
    i.allow_unpinned = i.force = 1;
    apply(plan(&i));
    _cleanup_free_ char *insecure = str_printf("Insecure provider source '%s'.", i.source);
    refuse_update(&o, ABX_E_TRUST, insecure);
    o.allow_insecure_transport = 1;
    expect_result(&o, false,
                  "{\"id\":\"gitp\",\"installed\":\"%s\",\"available\":\"%s\",\"changes\":[],\"status\":\"up-"
                  "to-date\"}",
                  first, first);

    put("home/providers/gitp/data/k", "kept");
    put("home/providers/gitp/plugin", "broken"); /* an update repairs */
    expect_verify("gitp", ABX_E_INTEGRITY, NULL);
    o.allow_unpinned = 1;
    expect_result(
        &o, true,
        "{\"id\":\"gitp\",\"installed\":\"%s\",\"available\":\"%s\",\"changes\":[],\"status\":\"available\"}",
        first, first);
    expect_verify("gitp", 0, NULL);

    commit_version("g", "1.1.0", "");
    const char *second = commit_of("g", "HEAD");
    o.allow_unpinned = 0;
    refuse_update(&o, ABX_E_TRUST,
                  "Refusing an unpinned git source without review (--yes does not accept a moving ref).");
    o.allow_unpinned = 1;
    o.consent = ABX_CONSENT_NONE; /* nothing at risk changed: nobody need be asked */
    struct store_plan *p = NULL;
    abx_value *result = NULL, *receipt = NULL;
    abx_error *e = NULL;
    assert_ok(store_plan_update(&store, &o, NULL, NULL, NULL, &p, &result, &e), e);
    assert_false(store_plan_needs_consent(p));
    abx_value_unref(result);
    assert_ok(store_plan_swap(p, ABX_CONSENT_NONE, &receipt, &e), e);
    assert_ok(store_plan_commit(p, &e), e);
    abx_value_unref(receipt);
    store_plan_free(p);
    expect_version("gitp", "1.1.0");
    assert_file("home/providers/gitp/data/k", "kept");

    commit_version("g", "1.2.0", "[security]\nnetwork = [\"y.example\"]\n");
    const char *third = commit_of("g", "HEAD");
    o.check = 1;
    o.allow_unpinned = 0;
    expect_result(&o, false,
                  "{\"id\":\"gitp\",\"installed\":\"%s\",\"available\":\"%s\",\"changes\":[\"security\"],"
                  "\"status\":\"available\"}",
                  second, third);
    expect_version("gitp", "1.1.0");
    o.check = 0;
    o.allow_unpinned = 1;
    p = NULL;
    receipt = NULL;
    assert_ok(store_plan_update(&store, &o, NULL, NULL, NULL, &p, &result, &e), e);
    abx_value_unref(result);
    assert_true(store_plan_needs_consent(p)); /* even though the moving ref is allowed */
    int r = store_plan_swap(p, ABX_CONSENT_NONE, &receipt, &e);
    assert_error(r, e, ABX_E_TRUST, "Update cancelled.");
    store_plan_free(p);
    o.consent = ABX_CONSENT_YES_FLAG;
    o.allow_unpinned = 0;
    o.ref = third; /* --yes may accept what is pinned */
    expect_result(&o, true,
                  "{\"id\":\"gitp\",\"installed\":\"%s\",\"available\":\"%s\",\"changes\":[\"security\"],"
                  "\"status\":\"available\"}",
                  second, third);
    o.ref = NULL;
    expect_result(
        &o, false,
        "{\"id\":\"gitp\",\"status\":\"pinned\",\"installed\":\"%s\",\"available\":null,\"changes\":[]}",
        third);

    put_manifest("g", "another", "2.0.0", "");
    sh("cd g && git add -A && git commit -qm x");
    o.ref = commit_of("g", "HEAD");
    refuse_update(&o, ABX_E_INSTALL, "The new version of 'gitp' has another id, 'another'.");
    expect_tidy();
}

static void test_update_others(void **state) {
    (void)state;
    put_manifest("src", "my-cloud", "1.0.0", "");
    install(at("src"), 0);
    abx_update_opts o = update_opts("my-cloud");
    refuse_update(&o, ABX_E_INSTALL,
                  "Provider 'my-cloud' was installed from a local directory; reinstall it with 'abx provider "
                  "install --force <path>'.");
    o.id = "nope";
    refuse_update(&o, ABX_E_PROVIDER_NOT_FOUND, "Provider 'nope' is not installed.");
    o.id = "alicloud-express";
    struct store_plan *p = NULL;
    abx_value *result = NULL;
    abx_error *e = NULL;
    assert_ok(store_plan_update(&store, &o, NULL, NULL, NULL, &p, &result, &e), e);
    assert_string_equal(abx_value_get_string(result, "status"), "bundled");
    assert_true(
        str_starts(abx_value_get_string(result, "message"), "This provider ships with the Python SDK."));
    abx_value_unref(result);
    o.ref = "x";
    refuse_update(&o, ABX_E_INSTALL,
                  "The bundled provider cannot use ref. Select a matching client/server SDK release.");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, drop_root)
    const struct CMUnitTest tests[] = {
        T(test_install),
        T(test_force),
        T(test_tampering),
        T(test_link),
        T(test_sha256),
        T(test_rollback),
        T(test_crash),
        T(test_crash_between),
        T(test_crash_removal),
        T(test_stale_plan),
        T(test_lock),
        T(test_parallel),
        T(test_home),
        T(test_uninstall),
        T(test_git_install),
        T(test_git_refs),
        T(test_git_entries),
        T(test_git_subdir_and_sha256),
        T(test_git_host),
        T(test_cancel),
        T(test_git_environment),
        T(test_git_cancel_kills),
        T(test_subproc),
        T(test_update),
        T(test_update_others),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
