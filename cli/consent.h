/* Asking a person whether a plugin may be installed or updated. */
#ifndef CLI_CONSENT_H
#define CLI_CONSENT_H

#include "cmd.h"

/* What is known before the plan is made: lets refusals come early. */
abx_consent consent_known(const struct cli *cli);
/* Shows the plan on standard error and asks; ABX_CONSENT_NONE when the answer is no or nobody can
 * answer. verb: "Install" or "Update". A plan that needs no consent, or has --yes, shows nothing. */
abx_consent consent_ask(const struct cli *cli, abx_plan *plan, const char *verb);
/* Reads one line from standard input without its newline; NULL at its end or after a signal. */
char *consent_read_line(void);

#endif
