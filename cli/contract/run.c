/* Runs the cases: chooses, gives each its time, kills what it left, keeps what it found. */
#include <errno.h>

#include "base/util.h"
#include "contract/test.h"
#include "out.h"

static contract_fn find_case(const char *name) {
    static const struct test_row *const tables[] = {test_manifest_cases, test_lifecycle_cases, test_exec_cases, test_stream_cases,
                                                    test_process_cases, test_files_cases, test_error_cases};
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        for (const struct test_row *row = tables[i]; row->name; row++)
            if (streq(row->name, name)) return row->run;
    return NULL;
}

const struct contract_case *contract_case_at(size_t index) {
    static struct contract_case cases[] = {
#define CASE(name, features, about) {name, features, about, NULL},
#include "contract/cases.def"
#undef CASE
    };
    if (index >= ARRAY_SIZE(cases)) return NULL;
    if (!cases[index].run) cases[index].run = find_case(cases[index].name);
    return &cases[index];
}

const char *contract_word(enum contract_outcome o) {
    static const char *const words[] = {"passed", "failed", "skipped"};
    return words[o];
}

void contract_run_done(struct contract_run *run) {
    for (size_t i = 0; i < run->count; i++) free(run->results[i].detail);
    free(run->results);
}

/* ---- one case ------------------------------------------------------------------------------ */

static bool declares(const abx_value *info, const char *feature, size_t n) {
    const abx_value *list = abx_value_get(info, "features");
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const char *s = abx_value_string(abx_value_at(list, i));
        if (s && strncmp(s, feature, n) == 0 && !s[n]) return true;
    }
    return false;
}

static void skip_undeclared(struct test *t) {
    for (const char *p = t->which->features; *p;) {
        size_t n = strcspn(p, " ");
        if (!declares(t->info, p, n)) test_skip(t, "%s does not declare %.*s", t->id, (int)n, p);
        p += n + (p[n] == ' ');
    }
}

/* Plugins run only while a handle needs them; one that kept its sandboxes in memory would forget them. */
static int open_anchor(struct test *t, abx_error **reterr) {
    _cleanup_free_ char *ref = str_printf("%s:%s", t->id, UNKNOWN_SANDBOX);
    return ref ? abx_sandbox_attach(&t->anchor, t->cli->client, ref, t->provider, reterr) : err_nomem(reterr);
}

/* A new client, and with it a new plugin. */
static int start_anew(struct test *t, abx_error **reterr) {
    t->anchor = abx_sandbox_unref(t->anchor);
    ui_client_close(t->cli);
    int r = ui_client_new(t->cli, reterr);
    return r < 0 ? r : open_anchor(t, reterr);
}

/* Kills what is left; where a plugin does not answer, a new one is asked. */
static int clean(struct test *t, abx_error **reterr) {
    bool all = test_clean(t), again = !all || t->stuck;
    _cleanup_strv_ char **refs = NULL;
    for (size_t i = 0; i < t->box_count; i++)
        if (!t->boxes[i].killed && strv_append(&refs, abx_sandbox_ref_string(t->boxes[i].sb)) < 0) break;
    test_forget(t);
    int r = again ? start_anew(t, reterr) : 0;
    for (char **ref = refs; r >= 0 && ref && *ref; ref++) {
        _cleanup_call_ struct ui_call c = {0};
        struct test k = {.cli = t->cli, .timeout_s = 10, .deadline_ms = time_mono_ms() + 10000, .cleaning = true};
        if (abx_sandbox_attach(&c.sb, t->cli->client, *ref, t->provider, &c.error) < 0 ||
            test_end(&k, &c, abx_sandbox_kill_start(&c.op, c.sb, &c.error), "sandbox.kill") < 0)
            out_note("%swarning:%s sandbox %s of case %s could not be killed: %s", out_err_style(OUT_YELLOW),
                     out_err_style(OUT_PLAIN), *ref, t->which->name, abx_error_message(c.error));
        free(k.detail);
    }
    return r;
}

static int run_case(struct test *t, struct contract_result *ret, abx_error **reterr) {
    int64_t began_ms = time_mono_ms();
    t->outcome = CONTRACT_PASSED;
    t->detail = NULL;
    t->stuck = false;
    t->deadline_ms = began_ms + t->timeout_s * 1000;
    skip_undeclared(t);
    if (test_ok(t)) t->which->run(t);
    *ret = (struct contract_result){t->which, t->outcome, (double)(time_mono_ms() - began_ms) / 1000, t->detail ?: strdup("")};
    return clean(t, reterr);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void count(struct contract_run *run, enum contract_outcome o) {
    run->count++;
    run->passed += o == CONTRACT_PASSED;
    run->failed += o == CONTRACT_FAILED;
    run->skipped += o == CONTRACT_SKIPPED;
}

static int run_all(struct test *t, const struct contract_opts *o, struct contract_run *run, abx_error **reterr) {
    const struct contract_case *c;
    int64_t began_ms = time_mono_ms();
    int r = 0;
    for (size_t i = 0; r >= 0 && (c = contract_case_at(i)); i++) {
        if (!o->chosen(c, o->user)) continue;
        t->which = c;
        ui_progress(t->cli, c->name);
        struct contract_result *result = &run->results[run->count];
        r = run_case(t, result, reterr);
        ui_progress(t->cli, NULL);
        run->seconds = (double)(time_mono_ms() - began_ms) / 1000;
        run->signal = ui_signal();
        if (t->interrupted) { /* it did not come to an end: nothing is known */
            free(result->detail);
            break;
        }
        count(run, result->outcome);
        if (r >= 0 && o->report(run, o->user) < 0) break;
        run->stopped = o->stop && result->outcome == CONTRACT_FAILED;
        if (run->stopped || run->signal) break;
    }
    return r;
}

int contract_run(struct cli *cli, const struct contract_opts *o, struct contract_run *ret, abx_error **reterr) {
    struct test t = {.cli = cli, .id = o->id, .info = o->info, .provider = o->provider, .timeout_s = o->timeout_s};
    *ret = (struct contract_run){.id = o->id};
    for (size_t i = 0; contract_case_at(i); i++) ret->planned += o->chosen(contract_case_at(i), o->user);
    ret->results = calloc(ret->planned + 1, sizeof *ret->results);
    int r = ret->results ? open_anchor(&t, reterr) : err_nomem(reterr);
    if (r >= 0) r = run_all(&t, o, ret, reterr);
    abx_sandbox_unref(t.anchor);
    free(t.boxes);
    return r;
}
