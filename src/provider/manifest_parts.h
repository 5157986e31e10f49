/* Inside of the manifest: how its parts are read. Every function sets E8014 naming the field. */
#ifndef PROVIDER_MANIFEST_PARTS_H
#define PROVIDER_MANIFEST_PARTS_H

#include "base/err.h"
#include "base/str.h"
#include "provider/manifest.h"

/* manifest_read.c */
/* "Invalid abx-provider.toml: <text>."; ABX_E_MANIFEST. */
int manifest_bad(abx_error **reterr, const char *fmt, ...) _printf_(2, 3);
/* Table `key` of doc, called `name` in messages; *ret NULL when it may be and is missing. */
int read_table(const abx_value *doc, const char *key, const char *name, bool required,
               const abx_value **ret, abx_error **reterr);
/* A string without NUL; otherwise when it is missing (NULL: it is required and not blank). */
int read_string(const abx_value *table, const char *where, const char *key, const char *otherwise,
                char **ret, abx_error **reterr);
/* An array of strings, never NULL; empty when it is missing. */
int read_list(const abx_value *table, const char *where, const char *key, char ***ret,
              abx_error **reterr);
int read_bool(const abx_value *table, const char *where, const char *key, bool *ret,
              abx_error **reterr);
/* The text of a string value without NUL, or NULL. */
const char *plain_text(const abx_value *v);
bool has_duplicates(char *const *list);
void drop_duplicates(char **list);
/* "a, b" of a list; NULL when out of memory. */
char *join(char *const *list);
/* Dotted names of doc that no rule of the manifest knows. */
int manifest_unknown(const abx_value *doc, char ***ret);

/* manifest_runtime.c; any: from code, every kind is fine. */
int read_runtime(struct manifest *m, const abx_value *doc, bool any, abx_error **reterr);
int check_host_fits(const struct manifest *m, abx_error **reterr);
/* manifest_security.c */
int read_security(struct manifest *m, const abx_value *doc, abx_error **reterr);
/* manifest_fields.c: [config.fields] and [auth] */
int read_fields(struct manifest *m, const abx_value *doc, abx_error **reterr);
bool is_generic_key(const char *key);
/* manifest_contract.c: operation_contract_version, [operations], [workflow] */
int read_contract(struct manifest *m, const abx_value *doc, abx_error **reterr);
/* manifest_commands.c */
int read_commands(struct manifest *m, const abx_value *doc, abx_error **reterr);

#endif
