/* Ports, refusals, and errors that keep secrets. */
#include "contract/test.h"

#include "base/util.h"

/* ---- ports ------------------------------------------------------------------------------- */

static void ports_url(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_done(t, &c, abx_ports_url_start(&c.op, sb, 8080, &c.error), "ports.url")) return;
    const char *url = abx_value_get_string(c.value, "url");
    if (url && (str_starts(url, "http://") || str_starts(url, "https://"))) return;
    _cleanup_free_ char *shown = show_value(abx_value_get(c.value, "url"));
    test_fail(t, "url of ports.url: expected one with http:// or https://, came %s", shown);
}

/* ---- what is not declared ------------------------------------------------------------------ */

/* Whether a call was refused at once, with nothing sent: r is the result of its start. */
static void check_refused(struct test *t, struct ui_call *c, int r, const char *feature) {
    _cleanup_free_ char *what = str_printf("a call of the undeclared %s", feature);
    if (r == ABX_E_FEATURE) return;
    test_end(t, c, r, what ?: feature);
    test_unexpected(t, c, what ?: feature, "E8004 before anything is sent");
}

static void refuse_method(struct test *t, abx_sandbox *sb, const char *feature, const char *method) {
    _cleanup_call_ struct ui_call c = {0};
    check_refused(t, &c, abx_call_start(&c.op, sb, method, NULL, &c.error), feature);
}

/* Features that are an option of create: a sandbox that comes all the same is killed. */
static void refuse_option(struct test *t, const char *feature) {
    _cleanup_call_ struct ui_call c = {0};
    _cleanup_value_ abx_value *mounts = abx_value_new_array(), *vpc = abx_value_new_object();
    abx_sandbox_create_opts o = ABX_SANDBOX_CREATE_OPTS_INIT;
    abx_sandbox *sb;
    if (streq(feature, "storage.mount"))
        o.volume_mounts = mounts;
    else
        o.vpc = vpc;
    if (test_create(t, &c, t->provider, &o, &sb) != ABX_E_FEATURE) test_unexpected(t, &c, feature, "E8004");
}

static void undeclared_features_fail_with_e8004(struct test *t) {
    /* One method of each feature that has methods; NULL: an option of create. */
    static const struct { const char *feature, *method; } probes[] = {
        {"sandbox.timeout", "sandbox.set_timeout"}, {"sandbox.pause", "sandbox.pause"}, {"exec.run", "exec.run"},
        {"exec.stream", "exec.start"}, {"process.manage", "process.list"}, {"pty", "pty.open"}, {"files.rw", "files.read"},
        {"ports.url", "ports.url"}, {"storage.mount", NULL}, {"network.vpc", NULL},
    };
    abx_sandbox *sb = test_sandbox(t);
    size_t asked = 0;
    for (size_t i = 0; sb && i < ARRAY_SIZE(probes) && test_ok(t); i++) {
        if (abx_sandbox_has_feature(sb, probes[i].feature)) continue;
        asked++;
        if (probes[i].method)
            refuse_method(t, sb, probes[i].feature, probes[i].method);
        else
            refuse_option(t, probes[i].feature);
    }
    if (asked == 0) test_skip(t, "%s declares every feature that can be asked for", t->id);
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* The part of the canary that is looked for: an error that has all but the end of a secret gives it away, too,
 * and there the host can't take it out. */
#define CANARY_HEAD "abx-canary-"
#define CANARY_KEPT 12

/* A value nobody else has, in the form of the field; NULL when its type leaves no room for one. */
static char *canary_for(const abx_value *field, const char *canary) {
    const char *type = abx_value_get_string(field, "type");
    if (streq0(type, "url")) return str_printf("https://%s.invalid/", canary);
    if (streq0(type, "path")) return str_printf("/%s", canary);
    return streq0(type, "str") || streq0(type, "csv") ? strdup(canary) : NULL;
}

static abx_value *canary_options(const struct test *t, const char *canary, size_t *ret_count) {
    const abx_value *fields = abx_value_get(t->info, "config_fields"), *given = t->provider->options;
    abx_value *options = abx_value_new_object();
    *ret_count = 0;
    for (size_t i = 0; i < abx_value_size(given); i++)
        abx_value_set(options, abx_value_key_at(given, i), abx_value_ref(abx_value_at(given, i)));
    for (size_t i = 0; i < abx_value_size(fields); i++) {
        const abx_value *field = abx_value_at(fields, i);
        if (!abx_value_bool(abx_value_get(field, "secret"))) continue;
        _cleanup_free_ char *value = canary_for(field, canary);
        if (value && abx_value_set_string(options, abx_value_get_string(field, "key"), value) == 0) ++*ret_count;
    }
    return options;
}

static bool has_canary(const abx_error *e, const char *canary) {
    for (; e; e = abx_error_cause(e)) {
        _cleanup_free_ char *data = abx_error_data(e) ? abx_value_print(abx_error_data(e), ABX_PRINT_SECRETS, NULL) : NULL;
        const char *texts[] = {abx_error_message(e), abx_error_hint(e), data};
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
            if (texts[i] && strstr(texts[i], canary)) return true;
    }
    return false;
}

/* The text of the error is not quoted: it has the value. */
static void check_error(struct test *t, const struct ui_call *c, const char *what, const char *canary) {
    if (has_canary(c->error, canary))
        test_fail(t, "the error of %s ([%s]): expected no value of a secret field, came one", what, abx_error_id(c->error));
}

static void secret_options_are_redacted_from_errors(struct test *t) {
    uint64_t id = 0;
    size_t count;
    random_bytes(&id, sizeof id);
    _cleanup_free_ char *value = str_printf(CANARY_HEAD "%016llx", (unsigned long long)id);
    _cleanup_free_ char *canary = value ? strndup(value + strlen(CANARY_HEAD), CANARY_KEPT) : NULL;
    _cleanup_free_ char *unknown = str_printf("%s:%s", t->id, UNKNOWN_SANDBOX);
    if (!value || !canary || !unknown) return test_fail(t, "out of memory");
    _cleanup_value_ abx_value *options = canary_options(t, value, &count);
    if (count == 0) return test_skip(t, "%s has no secret field of text", t->id);
    const abx_provider_opts p = {sizeof p, t->provider->provider, options};
    _cleanup_call_ struct ui_call create = {0}, connect = {0}, run = {0}, read = {0};
    abx_sandbox *sb = NULL;
    test_create(t, &create, &p, NULL, &sb);
    check_error(t, &create, "sandbox.create", canary);
    test_end(t, &connect, abx_sandbox_connect_start(&connect.op, t->cli->client, unknown, &p, &connect.error), "sandbox.connect");
    check_error(t, &connect, "sandbox.connect", canary);
    if (!sb || !test_ok(t)) return;
    const char *const argv[] = {"/abx-contract-missing", NULL};
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    o.argv = argv;
    test_end(t, &run, abx_exec_run_start(&run.op, sb, &o, &run.error), "exec.run");
    check_error(t, &run, "exec.run", canary);
    test_end(t, &read, abx_files_read_start(&read.op, sb, "/abx-contract-missing", &read.error), "files.read");
    check_error(t, &read, "files.read", canary);
}

const struct test_row test_error_cases[] = {
    TEST_ROW(ports_url),
    TEST_ROW(undeclared_features_fail_with_e8004),
    TEST_ROW(secret_options_are_redacted_from_errors),
    {0},
};
