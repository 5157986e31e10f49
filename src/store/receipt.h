/* .abx-install.json: what was installed, from where, and what was agreed to. */
#ifndef STORE_RECEIPT_H
#define STORE_RECEIPT_H

#include "store/store.h"

/* Reads and checks <dir>/.abx-install.json. -ENOENT (no error object) when there is none. */
int receipt_read(abx_value **ret, const char *dir, const char *id, abx_error **reterr);
int receipt_write(const char *dir, const abx_value *receipt, abx_error **reterr);
/* In the order the commands print it; unknown members of old (or NULL) are kept behind.
 * source: a new reference is taken. NULL: out of memory. */
abx_value *receipt_new(const struct manifest *m, const abx_value *source, const char *tree_sha256, const char *trust,
                       const char *tool, const abx_value *old);
/* Names of what differs between two consents and asks for a new one. NULL: out of memory. */
abx_value *receipt_changes(const abx_value *before, const abx_value *now);

#endif
