/* abx/provider.h: which providers there are, what they declare, and the default. */
#ifndef ABX_PROVIDER_H
#define ABX_PROVIDER_H

#include <abx/op.h>
#include <abx/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Array of {id, name, name_zh, version, kind, trust, features, default} in the order of the
 * registry; a broken one has "error": {code, message, …} and what could still be read. */
ABX_API ABX_MUST_CHECK int abx_provider_list(abx_client *c, abx_value **ret, abx_error **reterr);
/* Everything about one: the reference's shape plus "unknown_keys" and "directory". */
ABX_API ABX_MUST_CHECK int abx_provider_info(abx_client *c, const char *id, abx_value **ret, abx_error **reterr);
/* The id in force, to be released with free(). */
ABX_API ABX_MUST_CHECK int abx_provider_default(abx_client *c, char **ret, abx_error **reterr);
/* Writes [core] provider of config.toml. */
ABX_API ABX_MUST_CHECK int abx_provider_set_default(abx_client *c, const char *id, abx_error **reterr);
/* Value: {id, ok, checks: [{name, ok, detail}]}. Finding something wrong is a result, not a
 * failure of the op. p->provider NULL: the default. */
ABX_API ABX_MUST_CHECK int abx_provider_doctor_start(abx_op **ret, abx_client *c, const abx_provider_opts *p, int no_handshake,
                                                     abx_error **reterr);
/* "sandbox(lifecycle,pause) exec(run)": the one-line form of a features array; free(). */
ABX_API char *abx_features_line(const abx_value *features);
/* The 18 features in registry order; NULL past the end. */
ABX_API const char *abx_feature_at(size_t index);
/* A plugin skeleton in directory dir (which must not exist or be empty).
 * lang: python, node, c or shell; kind: exec or rest. */
ABX_API ABX_MUST_CHECK int abx_provider_scaffold(const char *id, const char *dir, const char *kind, const char *lang, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
