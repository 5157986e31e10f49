/* One case on its way, and what cases are written with. The first failure stays: after it every helper does
 * nothing and gives nothing, so that a case is a list of steps. */
#ifndef CONTRACT_TEST_H
#define CONTRACT_TEST_H

#include "contract/contract.h"
#include "ui.h"

#define UNKNOWN_SANDBOX "does-not-exist-0000"

struct test_box {
    abx_sandbox *sb;
    bool killed; /* by the case */
};

struct test {
    struct cli *cli;
    const char *id;
    const abx_value *info;
    const abx_provider_opts *provider;
    abx_sandbox *anchor; /* a handle of no sandbox: keeps the plugin running from case to case */
    const struct contract_case *which;
    int64_t timeout_s, deadline_ms;
    enum contract_outcome outcome;
    char *detail;
    bool stuck;       /* the time was up: the plugin is not to be trusted with the next case */
    bool interrupted; /* by a signal */
    bool cleaning;    /* signals are not heeded */
    struct test_box *boxes;
    size_t box_count;
};

/* A table of cases, one for each file of them. */
struct test_row {
    const char *name;
    contract_fn run;
};
extern const struct test_row test_manifest_cases[], test_lifecycle_cases[], test_exec_cases[], test_stream_cases[],
    test_process_cases[], test_files_cases[], test_error_cases[];
#define TEST_ROW(name) {#name, name}

/* ---- outcome ---- */
bool test_ok(const struct test *t);
void test_fail(struct test *t, const char *fmt, ...) _printf_(2, 3);
void test_skip(struct test *t, const char *fmt, ...) _printf_(2, 3);

/* ---- calls ---- */
/* Waits for something to happen; false when the time is up or a signal came, with the outcome set. */
bool test_turn(struct test *t, const char *what);
/* Runs c->op to its end unless r (the result of its start) is negative. 0, or the code of c->error. */
int test_end(struct test *t, struct ui_call *c, int r, const char *what);
/* The same for what must succeed: true, else the case failed. */
bool test_done(struct test *t, struct ui_call *c, int r, const char *what);
/* The same for what must fail with code or (unless 0) other. */
void test_refused(struct test *t, struct ui_call *c, int r, const char *what, int code, int other);
/* Fails: what was expected, and the error or the success that came. */
void test_unexpected(struct test *t, const struct ui_call *c, const char *what, const char *expected);

/* ---- sandboxes, killed when the case ends ---- */
abx_sandbox *test_sandbox(struct test *t); /* borrowed; NULL when the case is over */
/* With other settings, and without an opinion about failure: 0, or the code of c->error. */
int test_create(struct test *t, struct ui_call *c, const abx_provider_opts *p, const abx_sandbox_create_opts *o,
                abx_sandbox **ret);
bool test_kill(struct test *t, abx_sandbox *sb);
/* A handle on an id, never asked for: abx_sandbox_unref(). */
abx_sandbox *test_attach(struct test *t, const char *sandbox_id);
/* Kills what the case left; false when one could not be killed. */
bool test_clean(struct test *t);
void test_forget(struct test *t); /* drops the handles */

/* ---- checks ---- */
void check_int(struct test *t, const char *what, int64_t came, int64_t expected);
void check_bytes(struct test *t, const char *what, abx_bytes came, abx_bytes expected);
void check_text(struct test *t, const char *what, const abx_value *came, const char *expected);
/* Foreign bytes in quotes, escaped and cut: always one printable line. "?" when out of memory: never NULL; free(). */
char *show_bytes(abx_bytes b);
char *show_value(const abx_value *v);
static inline _unused_ abx_bytes bytes_of(const char *s) { return (abx_bytes){(const uint8_t *)s, strlen(s)}; }

#endif
