#ifndef API_RECORD_H
#define API_RECORD_H

#include <abx/value.h>

/* A copy of a plugin's sandbox record in the form of epp.md; E8020 when it can't be one. */
int record_check(const abx_value *raw, abx_value **ret, abx_error **reterr);

#endif
