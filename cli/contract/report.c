/* Results for people and as JSON; the other forms have files of their own. */
#include "contract/report.h"

#include "out.h"

static size_t name_width(void) {
    size_t width = 0;
    for (size_t i = 0; contract_case_at(i); i++) width = MAX_OF(width, strlen(contract_case_at(i)->name));
    return width;
}

/* ---- people ---------------------------------------------------------------------------------- */

static void print_case(const struct cli *cli, const struct contract_result *r) {
    static const struct { const char *word; enum out_style style; } marks[] = {
        {"ok  ", OUT_GREEN}, {"FAIL", OUT_RED}, {"skip", OUT_YELLOW}};
    if (cli->quiet && r->outcome != CONTRACT_FAILED) return;
    out_styled(marks[r->outcome].style, marks[r->outcome].word);
    out_str(" ");
    out_column(r->which->name, name_width());
    if (r->outcome == CONTRACT_SKIPPED)
        out_foreign(r->detail);
    else
        out_printf("%6.2fs", r->seconds);
    out_str("\n");
    if (cli->verbose || r->outcome == CONTRACT_FAILED) out_printf("     %s\n", r->which->about);
    if (r->outcome == CONTRACT_FAILED) {
        out_str("     ");
        out_foreign(r->detail);
        out_str("\n");
    }
}

static void print_end(const struct cli *cli, const struct contract_run *run) {
    if (cli->quiet) return;
    out_styled(run->failed ? OUT_RED : OUT_GREEN, run->id);
    out_printf(": %zu passed, %zu failed, %zu skipped", run->passed, run->failed, run->skipped);
    if (run->count < run->planned) out_printf(", %zu not run", run->planned - run->count);
    out_printf(" in %.2fs\n", run->seconds);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void print_json(const struct contract_run *run) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    abx_value *cases = abx_value_new_array();
    for (size_t i = 0; i < run->count; i++) {
        const struct contract_result *r = &run->results[i];
        abx_value *row = abx_value_new_object();
        abx_value_set_string(row, "name", r->which->name);
        abx_value_set_string(row, "outcome", contract_word(r->outcome));
        abx_value_set(row, "seconds", abx_value_new_double(r->seconds));
        abx_value_set_string(row, "detail", r->detail);
        abx_value_append(cases, row);
    }
    abx_value_set_string(v, "id", run->id);
    abx_value_set(v, "cases", cases);
    abx_value_set_int(v, "passed", (int64_t)run->passed);
    abx_value_set_int(v, "failed", (int64_t)run->failed);
    abx_value_set_int(v, "skipped", (int64_t)run->skipped);
    out_json(v);
}

/* ---- all ----------------------------------------------------------------------------------------- */

int report_case(const struct cli *cli, enum report_form form, const struct contract_run *run) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (form == REPORT_PEOPLE) print_case(cli, &run->results[run->count - 1]);
    if (form == REPORT_TAP) report_tap(&b, run);
    if (b.len) out_str(buf_cstr(&b) ?: "");
    return out_flush();
}

void report_end(const struct cli *cli, enum report_form form, const struct contract_run *run) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (form == REPORT_PEOPLE) print_end(cli, run);
    if (form == REPORT_JSON) print_json(run);
    if (form == REPORT_TAP) report_tap_end(&b, run);
    if (b.len) out_str(buf_cstr(&b) ?: "");
}

static abx_value *feature_array(const char *features) {
    abx_value *list = abx_value_new_array();
    for (const char *p = features; *p;) {
        size_t n = strcspn(p, " ");
        abx_value_append(list, abx_value_new_string_n(p, n));
        p += n + (p[n] == ' ');
    }
    return list;
}

void report_list(const struct cli *cli, bool (*chosen)(const struct contract_case *c, void *user), void *user) {
    _cleanup_value_ abx_value *list = abx_value_new_array();
    struct out_table table = {.columns = 3};
    const struct contract_case *c;
    out_cell(&table, "CASE");
    out_cell(&table, "FEATURES");
    out_cell(&table, "WHAT IS TRUE");
    for (size_t i = 0; (c = contract_case_at(i)); i++) {
        if (!chosen(c, user)) continue;
        abx_value *row = abx_value_new_object();
        abx_value_set_string(row, "name", c->name);
        abx_value_set(row, "features", feature_array(c->features));
        abx_value_set_string(row, "about", c->about);
        abx_value_append(list, row);
        out_cell(&table, c->name);
        out_cell(&table, *c->features ? c->features : "-");
        out_cell(&table, c->about);
    }
    if (cli->json) {
        table.cells = strv_free(table.cells);
        return out_json(list);
    }
    out_table(&table);
}
