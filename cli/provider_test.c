/* abx provider test */
#include <errno.h>
#include <fcntl.h>

#include "commands.h"
#include "contract/report.h"
#include "out.h"
#include "ui.h"

#define CASE_SECONDS 60

static const struct abx_opt options[] = {
    {"match", 'k', "PATTERN", "run the cases whose name has PATTERN in it (repeatable: any of them)"},
    {"fail-fast", 'x', NULL, "stop at the first failure"},
    {"timeout", 0, "SECONDS", "time of a case (default 60)", OPT_NUMBER},
    {"list", 0, NULL, "show the cases and what they need; run nothing"},
    {"tap", 0, NULL, "print the results as TAP version 14"},
    {"junit", 0, "FILE", "write the results as JUnit XML; - is standard output"},
    {0},
};

struct testing {
    struct cli *cli;
    abx_value *patterns; /* strings; NULL: every case */
    enum report_form form;
    const char *junit;   /* file name, "-" or NULL */
    int fd;              /* of that file, or -1 */
};

static void testing_done(struct testing *t) {
    abx_value_unref(t->patterns);
    safe_close(t->fd);
}

/* ---- choice ---------------------------------------------------------------------------- */

static int make_string(const char *text, abx_value **ret, abx_error **reterr) {
    *ret = abx_value_new_string(text);
    return *ret ? 0 : err_set(reterr, ABX_E_CONFIG, "", "The value of --match is not UTF-8.");
}

static bool chosen(const struct contract_case *c, void *user) {
    const struct testing *t = user;
    size_t n = abx_value_size(t->patterns);
    for (size_t i = 0; i < n; i++)
        if (strstr(c->name, abx_value_string(abx_value_at(t->patterns, i)) ?: "")) return true;
    return n == 0;
}

static int check_chosen(struct testing *t, abx_error **reterr) {
    for (size_t i = 0; contract_case_at(i); i++)
        if (chosen(contract_case_at(i), t)) return 0;
    return err_set(reterr, ABX_E_CONFIG, "Run 'abx provider test --list' to see the cases.", "No case matches '%s'.",
                   abx_value_string(abx_value_at(t->patterns, 0)));
}

/* Two documents can't share standard output. */
static int choose_form(struct testing *t, abx_error **reterr) {
    bool tap = opt_flag(t->cli, "tap"), to_stdout = t->junit && streq(t->junit, "-");
    if (tap + to_stdout + t->cli->json > 1)
        return err_set(reterr, ABX_E_CONFIG, "Use --junit with the name of a file.",
                       "--json, --tap and --junit - each need standard output; choose one of them.");
    t->form = t->cli->json ? REPORT_JSON : tap ? REPORT_TAP : to_stdout ? REPORT_NOTHING : REPORT_PEOPLE;
    return 0;
}

/* Opened first: that a report can't be written is no news for the end of a long run. */
static int open_junit(struct testing *t, abx_error **reterr) {
    if (!t->junit || streq(t->junit, "-")) return 0;
    t->fd = open(t->junit, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return t->fd < 0 ? err_errno(reterr, ABX_E_GENERIC, -errno, "Cannot write '%s'", t->junit) : 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int report(const struct contract_run *run, void *user) {
    struct testing *t = user;
    return report_case(t->cli, t->form, run);
}

static int write_junit(const struct testing *t, const struct contract_run *run, abx_error **reterr) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (!t->junit) return 0;
    report_junit(&b, run);
    if (b.err) return err_nomem(reterr);
    if (t->fd < 0) {
        out_bytes((abx_bytes){(const uint8_t *)b.data, b.len});
        return 0;
    }
    for (size_t done = 0; done < b.len;) {
        ssize_t n = write(t->fd, b.data + done, b.len - done);
        if (n < 0 && errno != EINTR) return err_errno(reterr, ABX_E_GENERIC, -errno, "Cannot write '%s'", t->junit);
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* ---- the verb ---------------------------------------------------------------------------------- */

/* The id in force: the argument, --provider, or the default. */
static int find_id(struct cli *cli, char **ret, abx_error **reterr) {
    const char *id = cli->arg_count ? cli->args[0] : cli->provider;
    if (!id) return abx_provider_default(cli->client, ret, reterr);
    *ret = strdup(id);
    return *ret ? 0 : err_nomem(reterr);
}

static int run_cases(struct testing *t, abx_error **reterr) {
    _cleanup_(contract_run_done) struct contract_run run = {0};
    _cleanup_free_ char *id = NULL;
    _cleanup_value_ abx_value *info = NULL;
    int r = find_id(t->cli, &id, reterr);
    if (r >= 0) r = abx_provider_info(t->cli->client, id, &info, reterr);
    if (r >= 0) r = open_junit(t, reterr);
    if (r < 0) return r;
    abx_provider_opts p = ui_provider(t->cli);
    p.provider = id;
    const struct contract_opts o = {
        .id = id,
        .info = info,
        .provider = &p,
        .chosen = chosen,
        .report = report,
        .user = t,
        .timeout_s = MAX_OF(opt_number(t->cli, "timeout", CASE_SECONDS), (int64_t)1),
        .stop = opt_flag(t->cli, "fail-fast"),
    };
    r = contract_run(t->cli, &o, &run, reterr);
    if (r < 0 && run.count == 0) return r;
    report_end(t->cli, t->form, &run);
    int w = write_junit(t, &run, r < 0 ? NULL : reterr);
    if (r < 0 || w < 0) return MIN_OF(r, w);
    if (!run.signal) return run.failed > 0;
    if (!t->cli->quiet) out_note("Interrupted.");
    return 128 + run.signal;
}

static int run(struct cli *cli) {
    _cleanup_error_ abx_error *e = NULL;
    _cleanup_(testing_done) struct testing t = {.cli = cli, .junit = opt_text(cli, "junit"), .fd = -1};
    int r = opt_each(cli, "match", make_string, &t.patterns, &e);
    if (r >= 0) r = check_chosen(&t, &e);
    if (r >= 0) r = choose_form(&t, &e);
    if (r >= 0 && opt_flag(cli, "list")) {
        report_list(cli, chosen, &t);
        return 0;
    }
    if (r >= 0) r = run_cases(&t, &e);
    return r < 0 ? ui_fail(cli, e) : r;
}

const struct abx_cmd cmd_provider_test = {
    .name = "provider test",
    .args = {0, 1},
    .usage = "[ID]",
    .summary = "check that a provider keeps the contract, case by case; 1 when one fails",
    .options = options,
    .examples = "abx provider test my-cloud\n"
                "abx provider test my-cloud -x -k exec_ -k files_ --option region=eu\n"
                "abx provider test my-cloud --junit report.xml\n",
    .run = run,
};
