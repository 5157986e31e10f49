/* Real plugin processes under a client: what they say at their end, and ends in the wrong moment. */
#include "store_help.h"

#include <abx/abx.h>
#include <abx/sys/provider.h>

#include "base/util.h"

/* A plugin in the shell: $line is the request, $id its id; `more` are cases of its own. */
#define SERVE(more)                                                                                          \
    "while read -r line; do id=${line#*\\\"id\\\":}; id=${id%%,*}\n"                                         \
    "case $line in\n" more "*'\"initialize\"'*) echo '{\"id\":'$id',\"result\":{\"protocol\":\"epp/1\"}}';;\n" \
    "*) echo '{\"id\":'$id',\"result\":{}}';; esac; done\n"

static void put_plugin(const char *dir, const char *version, const char *script) {
    _cleanup_free_ char *toml = str_printf("%s/abx-provider.toml", dir), *program = str_printf("%s/plugin", dir);
    _cleanup_free_ char *manifest =
        str_printf("manifest_version = 1\n[provider]\nid = \"fake\"\nversion = \"%s\"\n[compat]\nprotocol = \"epp/1\"\n"
                   "[runtime]\nkind = \"exec\"\ncommand = [\"./plugin\"]\nstartup_timeout_ms = 1000\n[features]\n"
                   "supported = [\"sandbox.lifecycle\", \"exec.run\", \"exec.stream\"]\n"
                   "[config.fields.tok]\ntype = \"string\"\nsecret = true\n", version);
    _cleanup_free_ char *text = str_printf("#!/bin/sh\n%s", script);
    put(toml, manifest);
    put_n(program, text, strlen(text), 0755);
}

/* Drivers without these are refused; nobody calls them here. */
static int no_open(void **ret, abx_client *c, const abx_value *manifest, const abx_value *settings, void *user, abx_call *done,
                   abx_error **reterr) {
    (void)ret, (void)c, (void)manifest, (void)settings, (void)user, (void)done, (void)reterr;
    return ABX_E_PROVIDER;
}
static int no_call(void *instance, const char *method, const abx_value *params, abx_call *call, abx_error **reterr) {
    (void)instance, (void)method, (void)params, (void)call, (void)reterr;
    return ABX_E_PROVIDER;
}
static void no_destroy(void *instance) { (void)instance; }

static abx_client *client_with(void (*freed)(void *), void *user) {
    static const char *env[] = {"ABX_FAKE_TOK=hunter2-secret", "PATH=/usr/bin:/bin", NULL};
    abx_client *c = NULL;
    abx_error *e = NULL;
    abx_client_opts o = ABX_CLIENT_OPTS_INIT;
    o.home = at("home");
    o.environ_ = env;
    o.dotenv = "";
    assert_ok(abx_client_new(&c, &o, &e), e);
    if (!freed) return c;
    /* Its user is freed with the client. */
    static const abx_driver none = {.size = sizeof none, .kind = "test", .open = no_open, .call = no_call, .destroy = no_destroy};
    static const char text[] = "{\"manifest_version\":1,\"provider\":{\"id\":\"mark\",\"version\":\"1.0\"},\"compat\":{\"protocol\":\"epp/1\"},"
                               "\"runtime\":{\"kind\":\"exec\",\"command\":[\"x\"]},\"features\":{\"supported\":[\"sandbox.lifecycle\"]}}";
    _cleanup_value_ abx_value *m = NULL;
    assert_ok(abx_value_parse(&m, text, strlen(text), &e), e);
    assert_ok(abx_client_add_provider(c, &none, m, user, freed, &e), e);
    return c;
}

static abx_plan *plan(abx_client *c, const char *dir, bool no_verify) {
    abx_op *op = NULL;
    abx_error *e = NULL;
    abx_install_opts o = ABX_INSTALL_OPTS_INIT;
    o.source = at(dir);
    o.force = 1;
    o.no_verify = no_verify;
    o.consent = ABX_CONSENT_PERSON;
    assert_ok(abx_install_plan_start(&op, c, &o, &e), e);
    assert_int_equal(abx_op_wait(op, -1), 1);
    if (abx_op_error(op)) fail_msg("%s", abx_error_message(abx_op_error(op)));
    abx_plan *p = abx_op_take_plan(op);
    abx_op_unref(op);
    return p;
}

static void install(abx_client *c, const char *dir) {
    abx_op *op = NULL;
    abx_error *e = NULL;
    abx_plan *p = plan(c, dir, true);
    assert_ok(abx_plan_apply_start(&op, p, ABX_CONSENT_PERSON, &e), e);
    assert_ok(abx_op_finish(&op, NULL, &e), e);
    abx_plan_unref(p);
}

static abx_sandbox *sandbox(abx_client *c) {
    abx_sandbox *sb = NULL;
    abx_error *e = NULL;
    assert_ok(abx_sandbox_attach(&sb, c, "fake:s1", NULL, &e), e);
    return sb;
}

static int run(abx_sandbox *sb, abx_error **reterr) {
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    o.argv = argv;
    int r = abx_exec_run_start(&op, sb, &o, reterr);
    return r < 0 ? r : abx_op_finish(&op, NULL, reterr);
}

static void version_is(abx_client *c, const char *want) {
    _cleanup_value_ abx_value *list = NULL;
    abx_error *e = NULL;
    assert_ok(abx_provider_list(c, &list, &e), e);
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const abx_value *row = abx_value_at(list, i);
        if (!streq(abx_value_get_string(row, "id"), "fake")) continue;
        assert_string_equal(abx_value_get_string(row, "version"), want);
        return;
    }
    fail_msg("not installed");
}

static void a_silent_start_quotes_stderr(void **state) {
    (void)state;
    put_plugin("p", "1.0.0", "printf 'no licence for hunter2-\\033[1msecret\\n' >&2\nwhile read -r line; do :; done\n");
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    abx_error *e = NULL;
    assert_int_equal(run(sb, &e), ABX_E_TIMEOUT);
    assert_string_equal(abx_error_message(e), "Provider 'fake' did not initialize within 1s.");
    assert_string_equal(abx_error_hint(e), "Plugin stderr: no licence for ***");
    abx_error_unref(e);
    abx_sandbox_unref(sb);
    abx_client_unref(c);
}

static void a_broken_answer_quotes_stderr(void **state) {
    (void)state;
    put_plugin("p", "1.0.0", SERVE("*'\"exec.run\"'*) echo 'out of cheese' >&2; echo '{\"id\":'$id',\"result\":{\"exit_code\":\"zz\"}}';;\n"));
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    abx_error *e = NULL;
    assert_int_equal(run(sb, &e), ABX_E_PROTOCOL);
    assert_non_null(strstr(abx_error_hint(e), "Plugin stderr: out of cheese"));
    abx_error_unref(e);
    abx_sandbox_unref(sb);
    abx_client_unref(c);
}

/* The plugin closes its stdout first and is not hurried after that. */
static void a_shutdown_has_its_time(void **state) {
    (void)state;
    put_plugin("p", "1.0.0", SERVE("*'\"exec.run\"'*) echo '{\"id\":'$id',\"result\":{\"exit_code\":0}}';;\n"
                                   "*'\"shutdown\"'*) echo '{\"id\":'$id',\"result\":{}}'; exec >&-; sleep 0.8; echo x >end; exit;;\n"));
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    abx_error *e = NULL;
    assert_ok(run(sb, &e), e);
    assert_int_equal(abx_client_close(c, -1), 0);
    assert_file("home/providers/fake/data/end", "x\n");
    abx_sandbox_unref(sb);
    abx_client_unref(c);
}

static void mark(void *user) { *(bool *)user = true; }

static void a_close_without_grace_leaves_nothing(void **state) {
    (void)state;
    bool freed = false;
    put_plugin("p", "1.0.0", SERVE("*'\"exec.run\"'*) echo '{\"id\":'$id',\"result\":{\"exit_code\":0}}';;\n"
                                   "*'\"shutdown\"'*) ;;\n"));
    abx_client *c = client_with(mark, &freed);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    abx_error *e = NULL;
    assert_ok(run(sb, &e), e);
    assert_int_equal(abx_client_close(c, 0), 1);
    abx_sandbox_unref(sb);
    abx_client_unref(c);
    assert_true(freed);
}

/* Dropped with everything else while a thread still checks the files, and while work is on one. */
static void everything_dropped_in_the_check(void **state) {
    (void)state;
    static const char *const argv[] = {"cmd", NULL};
    bool freed = false;
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_error *e = NULL;
    put_plugin("p", "1.0.0", SERVE(""));
    abx_client *c = client_with(mark, &freed);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    o.argv = argv;
    assert_ok(abx_exec_run_start(&op, sb, &o, &e), e);
    abx_op_unref(op);
    abx_sandbox_unref(sb);
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    p.provider = "fake";
    assert_ok(abx_provider_doctor_start(&op, c, &p, 1, &e), e);
    abx_op_unref(op);
    abx_client_unref(c);
    assert_true(freed);
}

/* More than the consumer's bound, and the plugin goes at once: nothing of it is lost. */
static void what_a_dead_plugin_wrote_arrives(void **state) {
    (void)state;
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_error *e = NULL;
    abx_event ev;
    put_plugin("p", "1.0.0", SERVE("*'\"exec.start\"'*) echo '{\"id\":'$id',\"result\":{\"process_id\":\"p\"}}'\n"
               "x=$(head -c 64000 /dev/zero | tr '\\0' x); i=0\n"
               "while [ $i -lt 67 ]; do i=$((i+1)); echo '{\"method\":\"exec.output\",\"params\":{\"process_id\":\"p\",\"data\":\"'$x'\"}}'; done\n"
               "echo '{\"method\":\"exec.exit\",\"params\":{\"process_id\":\"p\",\"exit_code\":0}}'; exit 0;;\n"));
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    abx_sandbox *sb = sandbox(c);
    o.argv = argv;
    assert_ok(abx_exec_stream_start(&op, sb, &o, &e), e);
    assert_int_equal(abx_op_wait(op, 20000), 1);
    assert_int_equal(abx_op_poll(op), ABX_OP_DONE);
    size_t n = 0;
    while (abx_op_next(op, &ev) == 1) n += ev.bytes.len;
    assert_int_equal(n, 67 * 64000);
    abx_op_unref(op);
    abx_sandbox_unref(sb);
    abx_client_unref(c);
}

/* The second version hangs in its handshake; a stop brings the first one back. */
static void stop_an_apply(bool early, bool close) {
    abx_op *op = NULL;
    abx_error *e = NULL;
    _cleanup_free_ char *script = str_printf("echo x >'%s'\nwhile read -r line; do :; done\n", at("started"));
    put_plugin("one", "1.0.0", SERVE(""));
    put_plugin("two", "2.0.0", script);
    abx_client *c = client_with(NULL, NULL);
    install(c, "one");
    abx_plan *p = plan(c, "two", false);
    assert_ok(abx_plan_apply_start(&op, p, ABX_CONSENT_PERSON, &e), e);
    while (!early && abx_op_poll(op) == ABX_OP_RUNNING && access(at("started"), F_OK) < 0) abx_pump(c, 10);
    if (close)
        abx_client_close(c, -1);
    else
        abx_op_cancel(op);
    assert_int_equal(abx_op_wait(op, -1), 1);
    assert_int_equal(abx_op_poll(op), ABX_OP_CANCELLED);
    abx_op_unref(op);
    abx_plan_unref(p);
    version_is(c, "1.0.0");
    abx_client_unref(c);
}
static void a_cancelled_handshake_brings_the_old_version_back(void **state) { (void)state; stop_an_apply(false, false); }
static void a_cancel_during_the_swap_does_too(void **state) { (void)state; stop_an_apply(true, false); }
static void so_does_a_close(void **state) { (void)state; stop_an_apply(false, true); }

/* Nobody holds the op when its thread comes back: its end frees it. */
static void a_dropped_doctor_ends_in_peace(void **state) {
    (void)state;
    abx_op *op = NULL;
    abx_error *e = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    put_plugin("p", "1.0.0", SERVE(""));
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    p.provider = "fake";
    assert_ok(abx_provider_doctor_start(&op, c, &p, 1, &e), e);
    abx_op_unref(op);
    for (int i = 0; i < 2; i++) {
        assert_ok(abx_provider_doctor_start(&op, c, &p, 1, &e), e);
        assert_ok(abx_op_finish(&op, NULL, &e), e);
    }
    abx_client_unref(c);
}

static void a_doctor_can_be_sent_away(void **state) {
    (void)state;
    abx_op *op = NULL;
    abx_error *e = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    _cleanup_free_ char *script = str_printf("echo x >'%s'\nwhile read -r line; do :; done\n", at("started"));
    put_plugin("p", "1.0.0", script);
    abx_client *c = client_with(NULL, NULL);
    install(c, "p");
    p.provider = "fake";
    assert_ok(abx_provider_doctor_start(&op, c, &p, 0, &e), e);
    while (abx_op_poll(op) == ABX_OP_RUNNING && access(at("started"), F_OK) < 0) abx_pump(c, 10);
    abx_op_cancel(op);
    assert_int_equal(abx_op_wait(op, -1), 1);
    assert_int_equal(abx_op_poll(op), ABX_OP_CANCELLED);
    abx_op_unref(op);
    abx_client_unref(c);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, make_root, drop_root)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_silent_start_quotes_stderr), T(a_broken_answer_quotes_stderr), T(a_shutdown_has_its_time),
        T(a_close_without_grace_leaves_nothing), T(everything_dropped_in_the_check), T(what_a_dead_plugin_wrote_arrives),
        T(a_cancelled_handshake_brings_the_old_version_back), T(a_cancel_during_the_swap_does_too), T(so_does_a_close),
        T(a_dropped_doctor_ends_in_peace), T(a_doctor_can_be_sent_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
