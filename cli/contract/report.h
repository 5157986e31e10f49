/* The forms in which the results of a run are told. */
#ifndef CONTRACT_REPORT_H
#define CONTRACT_REPORT_H

#include "base/buf.h"
#include "contract/contract.h"

enum report_form { REPORT_PEOPLE, REPORT_TAP, REPORT_JSON, REPORT_NOTHING };

/* The last result of run, to standard output at once. 0, or -errno when nobody reads any more. */
int report_case(const struct cli *cli, enum report_form form, const struct contract_run *run);
/* What comes behind the last one. */
void report_end(const struct cli *cli, enum report_form form, const struct contract_run *run);
/* The list of the chosen cases. */
void report_list(const struct cli *cli, bool (*chosen)(const struct contract_case *c, void *user), void *user);

void report_tap(struct buf *out, const struct contract_run *run);     /* the last result, the head before the first */
void report_tap_end(struct buf *out, const struct contract_run *run);
void report_junit(struct buf *out, const struct contract_run *run);   /* the whole document */

#endif
