/* abx/config.h: the layers of the configuration, as a person sees and edits them.
 *
 * A key is "http_timeout", "core.provider", or "ID.FIELD" for a field of a provider. */
#ifndef ABX_CONFIG_H
#define ABX_CONFIG_H

#include <abx/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Array of {key, value, source, secret, env, layers: [{source, name, value}]} for every
 * known key, those of provider (NULL: the default one) included; secrets are masked. */
ABX_API ABX_MUST_CHECK int abx_config_explain(abx_client *c, const char *provider, abx_value **ret, abx_error **reterr);
/* The same for one key; E8002 with the nearest name when it is unknown. */
ABX_API ABX_MUST_CHECK int abx_config_get(abx_client *c, const char *key, abx_value **ret, abx_error **reterr);
/* Writes config.toml, or for a secret ~/.abx/.env (0600). value NULL removes the key.
 * ret_file: where it went, free(). */
ABX_API ABX_MUST_CHECK int abx_config_set(abx_client *c, const char *key, const char *value, char **ret_file, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
