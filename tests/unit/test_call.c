/* The one way of a call, over a driver in memory: gate, map, redaction, retry, deadline, events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <abx/abx.h>
#include <abx/sys/provider.h>

/* What the driver under the test does; one per test. */
struct fake {
    int opens, calls, cancels, destroys;
    const char *features;       /* of the handshake; NULL: as the manifest */
    const char *protocol;
    int fail_code;              /* answers this error … */
    const char *fail_message;
    const char *fail_data;
    int fail_times;             /* … that often, then well */
    int silent;                 /* never answers */
    int slow_open;              /* never answers initialize */
    int open_stream;            /* a stream that is named and goes on */
    const char *said;           /* on its stderr */
    int dead;
    const char *result;         /* JSON */
    int stream_events;          /* so many 1 KiB events before the exit */
    abx_call *pending;
    char last_method[64];
    abx_value *last_params;
};

static abx_value *json(const char *text) {
    abx_value *v = NULL;
    abx_error *e = NULL;
    if (abx_value_parse(&v, text, strlen(text), &e) < 0) fail_msg("%s: %s", text, abx_error_message(e));
    return v;
}

static int fake_open(void **ret, abx_client *c, const abx_value *manifest, const abx_value *settings, void *user, abx_call *done,
                     abx_error **reterr) {
    (void)c, (void)manifest, (void)settings, (void)reterr;
    struct fake *f = user;
    char text[256];
    f->opens++;
    f->dead = 0;
    *ret = f;
    snprintf(text, sizeof text, "{\"protocol\":\"%s\",\"features\":%s}", f->protocol ? f->protocol : "epp/1", f->features ? f->features : "[]");
    if (!f->slow_open) abx_call_finish(done, json(text));
    return 0;
}

static int fake_call(void *instance, const char *method, const abx_value *params, abx_call *call, abx_error **reterr) {
    (void)reterr;
    struct fake *f = instance;
    f->calls++;
    snprintf(f->last_method, sizeof f->last_method, "%s", method);
    abx_value_unref(f->last_params);
    f->last_params = abx_value_ref(params);
    if (f->silent) {
        f->pending = call;
        return 0;
    }
    if (f->fail_code && f->fail_times-- > 0) {
        abx_value *data = f->fail_data ? json(f->fail_data) : NULL;
        abx_call_fail_rpc(call, f->fail_code, f->fail_message, data);
        abx_value_unref(data);
        return 0;
    }
    if (strcmp(method, "sandbox.create") == 0 || strcmp(method, "sandbox.get") == 0) {
        abx_call_finish(call, json("{\"sandbox_id\":\"s1\"}"));
        return 0;
    }
    if (f->open_stream) {
        abx_value *named = json("{\"process_id\":\"p1\"}");
        abx_event e = {sizeof e, ABX_EVENT_STARTED, {NULL, 0}, 0, named};
        abx_call_emit(call, &e);
        abx_value_unref(named);
        return 0;
    }
    if (f->stream_events) {
        char block[1024];
        memset(block, 'x', sizeof block);
        abx_value *named = json("{\"process_id\":\"p1\"}");
        abx_event e = {sizeof e, ABX_EVENT_STARTED, {NULL, 0}, 0, named};
        abx_call_emit(call, &e);
        abx_value_unref(named);
        for (int i = 0; i < f->stream_events; i++) {
            abx_event out = {sizeof out, ABX_EVENT_STDOUT, {(uint8_t *)block, sizeof block}, 0, NULL};
            abx_call_emit(call, &out);
        }
        abx_event end = {sizeof end, ABX_EVENT_EXIT, {NULL, 0}, 3, NULL};
        abx_call_emit(call, &end);
    }
    abx_call_finish(call, json(f->result ? f->result : "{}"));
    return 0;
}

static void fake_cancel(void *instance, abx_call *call) {
    struct fake *f = instance;
    (void)call;
    f->cancels++;
    f->pending = NULL;
}
static void fake_destroy(void *instance) { ((struct fake *)instance)->destroys++; }
static char *fake_hint(void *instance) {
    const char *said = ((struct fake *)instance)->said;
    return said ? strdup(said) : NULL;
}
static int fake_alive(void *instance) { return !((struct fake *)instance)->dead; }

static const abx_driver driver = {sizeof driver, "test", fake_open, fake_call, fake_cancel, NULL, NULL, fake_destroy, fake_alive, fake_hint};

static const char manifest[] =
    "{\"manifest_version\":1,\"provider\":{\"id\":\"fake\",\"version\":\"1.0\"},\"compat\":{\"protocol\":\"epp/1\"},"
    "\"runtime\":{\"kind\":\"exec\",\"command\":[\"x\"],\"call_timeout_ms\":100,\"startup_timeout_ms\":250},"
    "\"features\":{\"supported\":[\"sandbox.lifecycle\",\"exec.run\",\"exec.stream\",\"process.manage\",\"files.rw\"]},"
    "\"config\":{\"fields\":{\"token\":{\"secret\":true},\"region\":{}}}}";

struct fixture {
    abx_client *c;
    struct fake f;
    abx_sandbox *sb;
};

static int setup(void **state) {
    static const char *const env[] = {"ABX_FAKE_TOKEN=hunter2-secret", NULL};
    struct fixture *x = calloc(1, sizeof *x);
    abx_client_opts o = ABX_CLIENT_OPTS_INIT;
    abx_error *e = NULL;
    o.environ_ = env;
    o.no_config = 1;
    o.dotenv = "";
    assert_int_equal(abx_client_new(&x->c, &o, &e), 0);
    abx_value *m = json(manifest);
    if (abx_client_add_provider(x->c, &driver, m, &x->f, NULL, &e) < 0) fail_msg("%s", abx_error_message(e));
    abx_value_unref(m);
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    p.provider = "fake";
    if (abx_sandbox_attach(&x->sb, x->c, "s1", &p, &e) < 0) fail_msg("%s", abx_error_message(e));
    *state = x;
    return 0;
}

static int teardown(void **state) {
    struct fixture *x = *state;
    abx_sandbox_unref(x->sb);
    abx_client_unref(x->c);
    abx_value_unref(x->f.last_params);
    assert_int_equal(x->f.destroys, x->f.opens); /* every instance that came up went down */
    free(x);
    return 0;
}

/* Starts files.stat, waits; the code. */
static int stat_now(struct fixture *x, abx_error **ret) {
    abx_op *op = NULL;
    int r = abx_files_stat_start(&op, x->sb, "/f", ret);
    return r < 0 ? r : abx_op_finish(&op, NULL, ret);
}

static void parameters_get_the_sandbox(void **state) {
    struct fixture *x = *state;
    assert_int_equal(stat_now(x, NULL), 0);
    assert_string_equal(abx_value_get_string(x->f.last_params, "sandbox_id"), "s1");
    assert_string_equal(abx_value_get_string(x->f.last_params, "path"), "/f");
    assert_int_equal(x->f.opens, 1);
}

static void undeclared_is_refused_before_anything(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    abx_error *e = NULL;
    assert_int_equal(abx_sandbox_pause_start(&op, x->sb, &e), ABX_E_FEATURE);
    assert_string_equal(abx_error_id(e), "E8004");
    assert_string_equal(abx_error_provider(e), "fake");
    assert_string_equal(abx_value_get_string(abx_error_data(e), "feature"), "sandbox.pause");
    assert_int_equal(x->f.opens + x->f.calls, 0);
    abx_error_unref(e);
}

static void the_handshake_takes_away(void **state) {
    struct fixture *x = *state;
    x->f.features = "[\"sandbox.lifecycle\"]";
    assert_int_equal(stat_now(x, NULL), ABX_E_FEATURE);
    assert_int_equal(x->f.calls, 0);
    assert_int_equal(abx_sandbox_has_feature(x->sb, "files.rw"), 0);
}

static void another_protocol_is_a_version_error(void **state) {
    struct fixture *x = *state;
    abx_error *e = NULL;
    x->f.protocol = "epp/2";
    assert_int_equal(stat_now(x, &e), ABX_E_VERSION);
    assert_string_equal(abx_error_message(e), "Provider 'fake' answered protocol 'epp/2', expected 'epp/1'.");
    abx_error_unref(e);
}

static void codes_are_mapped(void **state) {
    struct fixture *x = *state;
    static const struct {
        int code;
        const char *data;
        int want;
    } rows[] = {
        {-32000, NULL, ABX_E_PROVIDER},     {-32000, "{\"sdk_code\":\"E4001\"}", ABX_E_FILE_NOT_FOUND},
        {-32001, NULL, ABX_E_AUTHENTICATION}, {-32001, "{\"sdk_code\":\"E1001\"}", ABX_E_API_KEY},
        {-32002, NULL, ABX_E_RESOURCE_NOT_FOUND}, {-32002, "{\"sdk_code\":\"E2009\"}", ABX_E_SANDBOX_NOT_FOUND},
        {-32002, "{\"sdk_code\":\"E9999\"}", ABX_E_RESOURCE_NOT_FOUND}, {-32000, "{\"sdk_code\":\"E8011\"}", ABX_E_PROVIDER},
        {-32003, NULL, ABX_E_FEATURE},      {-32004, NULL, ABX_E_QUOTA},
        {-32005, NULL, ABX_E_TIMEOUT},      {-32006, NULL, ABX_E_CONFIG},
        {-32601, NULL, ABX_E_PROTOCOL},     {-32602, NULL, ABX_E_PROTOCOL},
        {42, NULL, ABX_E_PROTOCOL},         {0, NULL, ABX_E_PROTOCOL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        abx_error *e = NULL;
        x->f.fail_code = rows[i].code;
        x->f.fail_times = 1;
        x->f.fail_message = "because";
        x->f.fail_data = rows[i].data;
        if (rows[i].code == 0) x->f.fail_code = -1;
        assert_int_equal(stat_now(x, &e), rows[i].want);
        assert_string_equal(abx_error_message(e), "because");
        abx_error_unref(e);
    }
}

static void a_sandbox_that_is_gone(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.fail_code = -32002;
    x->f.fail_times = 2;
    assert_int_equal(abx_sandbox_info_start(&op, x->sb, NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_SANDBOX_NOT_FOUND);
    assert_int_equal(abx_sandbox_kill_start(&op, x->sb, NULL), 0); /* idempotent */
    assert_int_equal(abx_op_finish(&op, NULL, NULL), 0);
}

static void secrets_and_escapes_never_come_back(void **state) {
    struct fixture *x = *state;
    abx_error *e = NULL;
    x->f.fail_code = -32000;
    x->f.fail_times = 1;
    x->f.fail_message = "bad \x1b[31mtoken\x1b[0m hunter2-\x1b[1msecret or hunter2-secret";
    x->f.fail_data = "{\"suggestion\":\"use hunter2-secret\",\"details\":{\"hunter2-secret\":[\"hunter2-secret\"]}}";
    assert_int_equal(stat_now(x, &e), ABX_E_PROVIDER);
    abx_value *v = abx_error_to_value(e);
    char *all = abx_value_print(v, 0, NULL), *data = abx_value_print(abx_error_data(e), 0, NULL);
    assert_null(strstr(all, "hunter2"));
    assert_null(strstr(data, "hunter2"));
    assert_null(strchr(abx_error_message(e), '\x1b'));
    assert_non_null(strstr(abx_error_message(e), "***"));
    free(all);
    free(data);
    abx_value_unref(v);
    abx_error_unref(e);
}

static void idempotent_and_retryable_is_tried_again(void **state) {
    struct fixture *x = *state;
    x->f.fail_code = -32000;
    x->f.fail_times = 2;
    x->f.fail_data = "{\"retryable\":true,\"retry_after_ms\":1}";
    assert_int_equal(stat_now(x, NULL), 0);
    assert_int_equal(x->f.calls, 3);
    x->f.calls = 0;
    x->f.fail_times = 9;
    assert_int_equal(stat_now(x, NULL), ABX_E_PROVIDER);
    assert_int_equal(x->f.calls, 3);
}

static void others_are_not(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.fail_code = -32000;
    x->f.fail_times = 9;
    assert_int_equal(stat_now(x, NULL), ABX_E_PROVIDER); /* not marked */
    assert_int_equal(x->f.calls, 1);
    x->f.fail_data = "{\"retryable\":true,\"retry_after_ms\":1}";
    assert_int_equal(abx_files_write_start(&op, x->sb, "/f", (abx_bytes){NULL, 0}, NULL), 0); /* not idempotent */
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_PROVIDER);
    assert_int_equal(x->f.calls, 2);
    x->f.fail_data = "{\"retryable\":true,\"retry_after_ms\":5000}"; /* past the deadline */
    assert_int_equal(stat_now(x, NULL), ABX_E_PROVIDER);
    assert_int_equal(x->f.calls, 3);
}

static void silence_ends_at_the_deadline(void **state) {
    struct fixture *x = *state;
    abx_error *e = NULL;
    x->f.silent = 1;
    assert_int_equal(stat_now(x, &e), ABX_E_TIMEOUT);
    assert_string_equal(abx_error_message(e), "Provider 'fake' did not answer 'files.stat' within 0.1s.");
    assert_int_equal(x->f.cancels, 1);
    abx_error_unref(e);
    x->f.silent = 0;
    assert_int_equal(stat_now(x, NULL), 0); /* the provider stays up */
    assert_int_equal(x->f.opens, 1);
}

static void cancel_ends_once(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.silent = 1;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    while (!x->f.pending) abx_pump(x->c, -1);
    abx_op_cancel(op);
    abx_op_cancel(op);
    assert_int_equal(abx_op_poll(op), ABX_OP_CANCELLED);
    assert_int_equal(x->f.cancels, 1);
    abx_op_unref(op);
}

static void dropping_a_running_op_cancels_it(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.silent = 1;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    while (!x->f.pending) abx_pump(x->c, -1);
    abx_op_unref(op);
    assert_int_equal(x->f.cancels, 1);
}

static void a_dead_provider_is_opened_again(void **state) {
    struct fixture *x = *state;
    assert_int_equal(stat_now(x, NULL), 0);
    x->f.dead = 1;
    assert_int_equal(stat_now(x, NULL), 0);
    assert_int_equal(x->f.opens, 2);
}

static void look(abx_op *op, void *user) {
    (void)op;
    ++*(int *)user;
}

static void notifications_come_from_dispatch_alone(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    int looks = 0;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    assert_int_equal(abx_op_poll(op), ABX_OP_RUNNING); /* never inside its start */
    abx_op_set_notify(op, look, &looks, NULL);
    while (abx_op_poll(op) == ABX_OP_RUNNING) abx_pump(x->c, -1);
    assert_int_equal(looks, 0);
    assert_int_equal(abx_timeout_ms(x->c), 0);
    struct pollfd p = {abx_fd(x->c), POLLIN, 0};
    assert_int_equal(poll(&p, 1, 0), 1); /* a foreign loop is woken for it */
    assert_int_equal(abx_dispatch(x->c), 1);
    assert_int_equal(looks, 1);
    assert_int_equal(abx_dispatch(x->c), 0);
    abx_op_unref(op);
}

static void streams_keep_their_order(void **state) {
    struct fixture *x = *state;
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_event e;
    int out = 0, r;
    o.argv = argv;
    x->f.stream_events = 100;
    x->f.result = "{\"exit_code\":3}";
    assert_int_equal(abx_exec_stream_start(&op, x->sb, &o, NULL), 0);
    abx_op_wait(op, -1);
    assert_int_equal(abx_op_next(op, &e), 1);
    assert_int_equal(e.type, ABX_EVENT_STARTED);
    while ((r = abx_op_next(op, &e)) == 1 && e.type == ABX_EVENT_STDOUT) out += (int)e.bytes.len;
    assert_int_equal(out, 100 * 1024);
    assert_int_equal(r, 1);
    assert_int_equal(e.type, ABX_EVENT_EXIT);
    assert_int_equal(e.exit_code, 3);
    assert_int_equal(abx_op_next(op, &e), -1);
    abx_op_unref(op);
}

static void sandboxes_of_one_configuration_share(void **state) {
    struct fixture *x = *state;
    abx_sandbox *other = NULL, *third = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    abx_value *options = json("{\"region\":\"elsewhere\"}");
    abx_op *op = NULL;
    assert_int_equal(abx_sandbox_attach(&other, x->c, "fake:s2", NULL, NULL), 0);
    p.options = options;
    assert_int_equal(abx_sandbox_attach(&third, x->c, "fake:s3", &p, NULL), 0);
    assert_int_equal(stat_now(x, NULL), 0);
    assert_int_equal(abx_files_stat_start(&op, other, "/f", NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), 0);
    assert_int_equal(x->f.opens, 1);
    assert_int_equal(abx_files_stat_start(&op, third, "/f", NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), 0);
    assert_int_equal(x->f.opens, 2);
    abx_sandbox_unref(other);
    abx_sandbox_unref(third);
    abx_value_unref(options);
}

static void a_conflicting_prefix_is_refused(void **state) {
    struct fixture *x = *state;
    abx_sandbox *sb = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    p.provider = "other";
    assert_int_equal(abx_sandbox_attach(&sb, x->c, "fake:s1", &p, NULL), ABX_E_MISMATCH);
}

static void bad_records_are_protocol_errors(void **state) {
    struct fixture *x = *state;
    static const char *const bad[] = {"null", "[]", "{}", "{\"sandbox_id\":\"\"}", "{\"sandbox_id\":7}"};
    abx_op *op = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        x->f.result = bad[i];
        assert_int_equal(abx_call_start(&op, x->sb, "sandbox.connect", NULL, NULL), 0);
        assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_PROTOCOL);
    }
    x->f.result = "{\"exit_code\":\"zz\"}";
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    o.argv = argv;
    assert_int_equal(abx_exec_run_start(&op, x->sb, &o, NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_PROTOCOL);
    x->f.result = "{}";
    assert_int_equal(abx_files_read_start(&op, x->sb, "/f", NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_PROTOCOL);
}

static void connect_falls_back_to_get(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.fail_code = -32601;
    x->f.fail_times = 1;
    assert_int_equal(abx_sandbox_connect_start(&op, x->c, "fake:s1", NULL, NULL), 0);
    abx_op_wait(op, -1);
    assert_int_equal(abx_op_poll(op), ABX_OP_DONE);
    assert_string_equal(x->f.last_method, "sandbox.get");
    abx_sandbox *sb = abx_op_take_sandbox(op);
    assert_string_equal(abx_sandbox_ref_string(sb), "fake:s1");
    abx_sandbox_unref(sb);
    abx_op_unref(op);
}

static void an_undeclared_option_is_named(void **state) {
    struct fixture *x = *state;
    abx_sandbox *sb = NULL;
    abx_error *e = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    abx_value *options = json("{\"regin\":\"x\"}");
    p.provider = "fake";
    p.options = options;
    assert_int_equal(abx_sandbox_attach(&sb, x->c, "s1", &p, &e), ABX_E_CONFIG);
    assert_non_null(strstr(abx_error_message(e), "regin"));
    abx_error_unref(e);
    abx_value_unref(options);
}

static void closing_ends_what_runs(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.silent = 1;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    while (!x->f.pending) abx_pump(x->c, -1);
    assert_int_equal(abx_client_close(x->c, 0), 0);
    assert_int_equal(abx_op_poll(op), ABX_OP_CANCELLED);
    assert_int_equal(x->f.destroys, 1);
    abx_op_unref(op);
}

/* Nobody is left to pump: the start-up that is queued must not keep the client, nor hang it. */
static void dropping_all_before_the_first_turn(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    abx_op_unref(op);
    x->sb = abx_sandbox_unref(x->sb);
    x->c = abx_client_unref(x->c);
    assert_int_equal(x->f.opens, 0);
}

/* A plugin that went away without a word for its calls: the next call's start ends them. */
static void what_a_dead_provider_left_open_fails(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.silent = 1;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    while (!x->f.pending) abx_pump(x->c, -1);
    x->f.silent = 0;
    x->f.dead = 1;
    assert_int_equal(stat_now(x, NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_PLUGIN_PROCESS);
}

/* The plugin is gone while a call waits for its next try, and the new one does not come up in time. */
static void the_deadline_holds_over_a_new_start(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL;
    x->f.fail_code = -32000;
    x->f.fail_times = 1;
    x->f.fail_data = "{\"retryable\":true,\"retry_after_ms\":1}";
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    while (!x->f.calls) abx_pump(x->c, -1);
    x->f.dead = x->f.slow_open = 1;
    assert_int_equal(abx_op_wait(op, 2000), 1);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), ABX_E_TIMEOUT);
    assert_int_equal(x->f.opens, 2);
    assert_int_equal(x->f.calls, 1);
}

/* A stream is cancelled and dropped, its kill is not answered: the client goes nonetheless. */
static void the_last_kill_does_not_keep_the_client(void **state) {
    struct fixture *x = *state;
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    o.argv = argv;
    o.timeout_s = INT64_MAX; /* no overflow either */
    x->f.open_stream = 1;
    assert_int_equal(abx_exec_stream_start(&op, x->sb, &o, NULL), 0);
    assert_int_equal(abx_op_wait_event(op, -1), 1);
    x->f.open_stream = 0;
    x->f.silent = 1;
    abx_op_cancel(op);
    assert_string_equal(x->f.last_method, "process.kill");
    abx_op_unref(op);
    x->sb = abx_sandbox_unref(x->sb);
    x->c = abx_client_unref(x->c);
    assert_int_equal(x->f.destroys, 1);
}

static void what_the_plugin_said_goes_with_a_timeout(void **state) {
    struct fixture *x = *state;
    abx_error *e = NULL;
    x->f.silent = 1;
    x->f.said = "Plugin stderr: waiting for a licence";
    assert_int_equal(stat_now(x, &e), ABX_E_TIMEOUT);
    assert_string_equal(abx_error_hint(e), "Raise runtime.call_timeout_ms of the provider, or the timeout of the command. "
                                           "Plugin stderr: waiting for a licence");
    e = abx_error_unref(e);
    x->f.silent = 0;
    x->f.dead = 1;
    x->f.slow_open = 1;
    assert_int_equal(stat_now(x, &e), ABX_E_TIMEOUT);
    assert_string_equal(abx_error_hint(e), x->f.said);
    abx_error_unref(e);
}

/* What lies behind the end of an older driver's struct is not its own: reading it as a pointer would crash. */
static void an_older_driver_has_no_later_slots(void **state) {
    struct fixture *x = *state;
    union {
        abx_driver d;
        unsigned char bytes[sizeof(abx_driver)];
    } old;
    const size_t size = offsetof(abx_driver, alive);
    memset(&old, 0x5a, sizeof old);
    memcpy(&old, &driver, size);
    old.d.size = size;
    old.d.cancel = NULL;
    abx_error *e = NULL;
    static const char other[] =
        "{\"manifest_version\":1,\"provider\":{\"id\":\"older\",\"version\":\"1.0\"},\"compat\":{\"protocol\":\"epp/1\"},"
        "\"runtime\":{\"kind\":\"exec\",\"command\":[\"x\"],\"call_timeout_ms\":100,\"startup_timeout_ms\":250},"
        "\"features\":{\"supported\":[\"sandbox.lifecycle\",\"exec.run\",\"exec.stream\",\"files.rw\"]}}";
    abx_value *m = json(other);
    old.d.size = offsetof(abx_driver, destroy);
    assert_int_equal(abx_client_add_provider(x->c, &old.d, m, &x->f, NULL, &e), ABX_E_CONFIG);
    e = abx_error_unref(e);
    old.d.size = size;
    assert_int_equal(abx_client_add_provider(x->c, &old.d, m, &x->f, NULL, &e), 0);
    abx_value_unref(m);
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    p.provider = "older";
    x->sb = abx_sandbox_unref(x->sb);
    assert_int_equal(abx_sandbox_attach(&x->sb, x->c, "s1", &p, &e), 0);
    assert_int_equal(stat_now(x, &e), 0); /* alive */
    x->f.silent = 1;
    assert_int_equal(stat_now(x, &e), ABX_E_TIMEOUT); /* cancel, hint */
    assert_int_equal(x->f.cancels, 0);
    e = abx_error_unref(e);
    x->f.silent = 0;
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_event ev;
    o.argv = argv;
    x->f.stream_events = 100;
    x->f.result = "{\"exit_code\":3}";
    assert_int_equal(abx_exec_stream_start(&op, x->sb, &o, NULL), 0);
    while (abx_op_wait_event(op, 2000) == 1 && abx_op_next(op, &ev) == 1) /* flow */
        ;
    assert_int_equal(abx_op_finish(&op, NULL, NULL), 0);
    x->sb = abx_sandbox_unref(x->sb);
    assert_int_equal(abx_client_close(x->c, 1000), 0); /* close */
    x->c = abx_client_unref(x->c);
    assert_int_equal(x->f.destroys, 1);
}

/* The stream had its answer: what did not end in time is the command, not the provider. */
static void a_stream_without_an_end_is_a_command_timeout(void **state) {
    struct fixture *x = *state;
    static const char *const argv[] = {"cmd", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_op *op = NULL;
    abx_error *e = NULL;
    o.argv = argv;
    o.timeout_s = 1;
    x->f.open_stream = 1;
    assert_int_equal(abx_exec_stream_start(&op, x->sb, &o, NULL), 0);
    assert_int_equal(abx_op_wait_event(op, -1), 1);
    x->f.open_stream = 0;
    assert_int_equal(abx_op_wait(op, 20000), 1);
    assert_int_equal(abx_op_finish(&op, NULL, &e), ABX_E_COMMAND_TIMEOUT);
    assert_string_equal(x->f.last_method, "process.kill");
    assert_string_equal(abx_error_provider(e), "fake");
    abx_error_unref(e);
}

static abx_op *start_create(struct fixture *x) {
    abx_op *op = NULL;
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    p.provider = "fake";
    assert_int_equal(abx_sandbox_create_start(&op, x->c, &p, NULL, NULL), 0);
    return op;
}

/* The sandbox comes although nobody waits for it any more. */
static void comes_late(struct fixture *x) {
    abx_call *call = x->f.pending;
    assert_non_null(call);
    x->f.silent = 0;
    abx_call_finish(call, json("{\"sandbox_id\":\"late1\"}"));
    while (strcmp(x->f.last_method, "sandbox.kill") != 0) assert_int_equal(abx_pump(x->c, 2000), 0);
    assert_string_equal(abx_value_get_string(x->f.last_params, "sandbox_id"), "late1");
}

static void a_sandbox_that_comes_after_a_cancel_is_killed(void **state) {
    struct fixture *x = *state;
    x->f.silent = 1;
    abx_op *op = start_create(x);
    while (!x->f.pending) abx_pump(x->c, -1);
    abx_op_cancel(op);
    assert_int_equal(abx_op_wait(op, 2000), 1);
    assert_int_equal(abx_op_poll(op), ABX_OP_CANCELLED);
    abx_op_unref(op);
    comes_late(x);
}

static void a_sandbox_that_comes_after_its_time_is_killed(void **state) {
    struct fixture *x = *state;
    abx_error *e = NULL;
    x->f.silent = 1;
    abx_op *op = start_create(x);
    assert_int_equal(abx_op_finish(&op, NULL, &e), ABX_E_TIMEOUT);
    assert_string_equal(abx_error_method(e), "sandbox.create");
    abx_error_unref(e);
    comes_late(x);
}

static void a_late_create_that_fails_kills_nothing(void **state) {
    struct fixture *x = *state;
    x->f.silent = 1;
    abx_op *op = start_create(x);
    while (!x->f.pending) abx_pump(x->c, -1);
    abx_op_unref(op); /* dropped: the same as cancelled */
    abx_call_fail_rpc(x->f.pending, -32000, "no", NULL);
    abx_pump(x->c, 0);
    assert_string_equal(x->f.last_method, "sandbox.create");
}

static void a_late_create_does_not_outlast_the_client(void **state) {
    struct fixture *x = *state;
    x->f.silent = 1;
    abx_op *op = start_create(x);
    while (!x->f.pending) abx_pump(x->c, -1);
    abx_op_unref(op);
    assert_int_equal(abx_client_close(x->c, 50), 0);
    assert_int_equal(x->f.cancels, 1);
}

static void closing_a_handle_ends_its_provider(void **state) {
    struct fixture *x = *state;
    abx_sandbox *other = NULL;
    abx_op *op = NULL;
    abx_value *killed = NULL;
    abx_error *e = NULL;
    assert_int_equal(abx_sandbox_attach(&other, x->c, "fake:s2", NULL, NULL), 0);
    assert_int_equal(stat_now(x, NULL), 0);
    assert_int_equal(abx_sandbox_close_start(&op, x->sb, NULL), 0);
    assert_int_equal(abx_op_poll(op), ABX_OP_RUNNING); /* never inside of its start */
    assert_int_equal(abx_op_finish(&op, &killed, NULL), 0);
    assert_int_equal(abx_value_bool(killed), 0);
    abx_value_unref(killed);
    assert_int_equal(x->f.destroys, 0); /* the other one holds it */
    assert_int_equal(stat_now(x, &e), ABX_E_PROVIDER);
    assert_string_equal(abx_sandbox_provider(x->sb), "fake");
    e = abx_error_unref(e);
    assert_int_equal(abx_sandbox_close_start(&op, x->sb, &e), ABX_E_PROVIDER);
    abx_error_unref(e);
    assert_int_equal(abx_sandbox_close_start(&op, other, NULL), 0);
    assert_int_equal(abx_op_finish(&op, NULL, NULL), 0);
    assert_int_equal(x->f.destroys, 1);
    abx_sandbox_unref(other);
}

/* Who keeps an op that has ended keeps no provider. */
static void an_ended_op_holds_nothing(void **state) {
    struct fixture *x = *state;
    abx_op *op = NULL, *closing = NULL;
    assert_int_equal(abx_files_stat_start(&op, x->sb, "/f", NULL), 0);
    assert_int_equal(abx_op_wait(op, 2000), 1);
    assert_int_equal(abx_sandbox_close_start(&closing, x->sb, NULL), 0);
    assert_int_equal(abx_op_finish(&closing, NULL, NULL), 0);
    assert_int_equal(x->f.destroys, 1);
    assert_non_null(abx_op_value(op));
    abx_op_cancel(op);
    abx_op_unref(op);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(parameters_get_the_sandbox), T(undeclared_is_refused_before_anything), T(the_handshake_takes_away),
        T(another_protocol_is_a_version_error), T(codes_are_mapped), T(a_sandbox_that_is_gone),
        T(secrets_and_escapes_never_come_back), T(idempotent_and_retryable_is_tried_again), T(others_are_not),
        T(silence_ends_at_the_deadline), T(cancel_ends_once), T(dropping_a_running_op_cancels_it),
        T(a_dead_provider_is_opened_again), T(notifications_come_from_dispatch_alone), T(streams_keep_their_order),
        T(sandboxes_of_one_configuration_share), T(a_conflicting_prefix_is_refused), T(bad_records_are_protocol_errors),
        T(connect_falls_back_to_get), T(an_undeclared_option_is_named), T(closing_ends_what_runs),
        T(dropping_all_before_the_first_turn), T(what_a_dead_provider_left_open_fails), T(the_deadline_holds_over_a_new_start),
        T(the_last_kill_does_not_keep_the_client), T(what_the_plugin_said_goes_with_a_timeout),
        T(an_older_driver_has_no_later_slots), T(a_stream_without_an_end_is_a_command_timeout),
        T(a_sandbox_that_comes_after_a_cancel_is_killed), T(a_sandbox_that_comes_after_its_time_is_killed),
        T(a_late_create_that_fails_kills_nothing), T(a_late_create_does_not_outlast_the_client),
        T(closing_a_handle_ends_its_provider), T(an_ended_op_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
