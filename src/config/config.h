/* The configuration of one client: layers first, then names (spec: docs/config.md).
 *
 * explicit argument > process environment > ./.env > ~/.abx/.env > ~/.abx/config.toml > default.
 * A blank value is unset. Within a layer the most specific name wins. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <abx/error.h>
#include <abx/value.h>
#include <stdbool.h>

#include "base/secret.h"
#include "provider/manifest.h"

struct config; /* a snapshot: files are read once, at the first need */

/* home: ~/.abx; dotenv: path, or NULL for none; environ_: the process's list (copied). */
int config_new(struct config **ret, const char *home, const char *dotenv, bool no_files, const char *const *environ_, abx_error **reterr);
struct config *config_free(struct config *c);
void config_reload(struct config *c); /* forget what was read */

/* Which provider: explicit (may be NULL) > prefix of ref (may be NULL) > configuration > built-in.
 * E8030 when both are given and differ, E8002 for an empty id or malformed reference. Whether it is
 * installed is not asked here. ret_sandbox (may be NULL): the bare sandbox id. A ref whose text before
 * the first ':' is no valid provider id is a bare sandbox id. */
int config_select(struct config *c, const char *explicit_, const char *ref, char **ret_provider, char **ret_sandbox, abx_error **reterr);

/* A core key ("http_timeout"): its typed value, or NULL value when unset. */
int config_core(struct config *c, const char *key, abx_value **ret, abx_error **reterr);

/* The settings a provider gets: {"config": {declared keys that have a value, typed}, "core": {consented
 * inherited keys, "http_timeout"}}. core: generic keys the caller said (object of strings or NULL), before every
 * layer. options: provider_options (object or NULL); an undeclared key, a value
 * that can't be coerced, a missing required field and an incomplete any_of are errors (config.md,
 * manifest.md). Secret values are marked and added to secrets. consented_inherit: the receipt's. */
int config_provider(struct config *c, const struct manifest *m, const abx_value *options, const abx_value *core, char *const *consented_inherit,
                    struct secrets *secrets, abx_value **ret, abx_error **reterr);

/* For `config list|get|set|explain`; see abx/config.h. m NULL: core keys only. */
int config_explain(struct config *c, const struct manifest *m, abx_value **ret, abx_error **reterr);
/* field_of: the manifest when key is "ID.FIELD", else NULL. value NULL removes. ret_file: where, free(). */
int config_set(struct config *c, const char *key, const struct manifest *field_of, const char *value, char **ret_file, abx_error **reterr);
/* Removes [providers.ID] and ABX_<ID>_* of ~/.abx/.env. */
int config_purge_provider(struct config *c, const char *id, abx_error **reterr);

#endif
