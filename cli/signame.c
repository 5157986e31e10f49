/* Signals by name or number. */
#include "signame.h"

#include <signal.h>
#include <strings.h>

#include "base/str.h"

int signame_parse(const char *text) {
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    long long n;
    if (str_to_i64(text, &n) == 0) return n > 0 && n < NSIG ? (int)n : 0;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && strcasecmp(name, sigabbrev_np(i)) == 0) return i;
    return 0;
}
