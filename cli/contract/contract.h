/* The contract of a provider: its cases, each about one point, the runner, and what it found. */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include "cmd.h"

struct test;
typedef void (*contract_fn)(struct test *t);

struct contract_case {
    const char *name, *features, *about; /* features: by spaces, "" for every provider */
    contract_fn run;
};

enum contract_outcome { CONTRACT_PASSED, CONTRACT_FAILED, CONTRACT_SKIPPED };
const char *contract_word(enum contract_outcome o); /* "passed", "failed" or "skipped" */

struct contract_result {
    const struct contract_case *which;
    enum contract_outcome outcome;
    double seconds;
    char *detail; /* one printable line: what was expected and what came, or why it was skipped; "" when passed */
};

/* What a run found, in the order of the cases. */
struct contract_run {
    const char *id;
    size_t planned; /* cases that were chosen */
    struct contract_result *results;
    size_t count, passed, failed, skipped;
    double seconds;
    int signal; /* the one that ended it early, or 0 */
    bool stopped; /* at the first failure */
};
void contract_run_done(struct contract_run *run);

/* The cases of cases.def; NULL past the end. */
const struct contract_case *contract_case_at(size_t index);

struct contract_opts {
    const char *id;
    const abx_value *info;       /* of the provider */
    const abx_provider_opts *provider;
    bool (*chosen)(const struct contract_case *c, void *user);
    int (*report)(const struct contract_run *run, void *user); /* after each case; negative ends the run */
    void *user;
    int64_t timeout_s; /* of a case */
    bool stop;         /* at the first failure */
};
/* Runs the chosen cases one after the other. 0, also when cases failed; negative when the provider can't be
 * asked at all. Whatever happens, the sandboxes of the cases are killed. */
int contract_run(struct cli *cli, const struct contract_opts *o, struct contract_run *ret, abx_error **reterr);

#endif
