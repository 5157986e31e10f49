/* abx-provider.toml: parsed, validated, refcounted. */
#ifndef PROVIDER_MANIFEST_H
#define PROVIDER_MANIFEST_H

#include <abx/error.h>
#include <abx/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define MANIFEST_NAME "abx-provider.toml"
/* What this host is for compat.requires: the level of the reference it is compatible with. */
#define COMPAT_SDK_VERSION "0.4.0a6"
#define COMPAT_CLI_VERSION "0.4.0a6"
#define BUILTIN_PROVIDER "alicloud-express"

enum field_type { FIELD_STR, FIELD_INT, FIELD_FLOAT, FIELD_BOOL, FIELD_ENUM, FIELD_PATH, FIELD_URL, FIELD_CSV };

struct manifest_field {
    char *key;
    enum field_type type;
    bool required, secret, credential;
    abx_value *default_; /* NULL: none */
    char **env;          /* the vendor's own names */
    char **choices;
    char *description, *description_zh;
};

struct manifest {
    unsigned refs;
    char *id, *name, *name_zh, *version, *description, *license, *homepage;
    char *kind, *protocol;      /* "exec" "rest" "builtin" */
    char **command;             /* exec */
    int startup_timeout_ms, call_timeout_ms;
    char **platforms;
    char **features;            /* as declared, registry order not imposed */
    bool has_contract;          /* operation_contract_version was given: the four below are shown and recorded */
    char **operations_cli, **operations_python, **workflow_inputs, **startup_modes;
    char **network, **filesystem, **env_passthrough;
    bool spawns_processes;
    char **inherit;
    abx_value *auth_any_of;     /* array of arrays of strings */
    struct manifest_field *fields;
    size_t field_count;
    abx_value *endpoint;        /* rest: the table as it is; else NULL */
    abx_value *requires;        /* object of strings */
    abx_value *commands;        /* array of descriptors, sorted by id */
    abx_value *raw;             /* the whole document */
    char **unknown_keys;        /* dotted names this host ignores */
    char sha256[65];
};

/* Any violation is E8014 naming the field; protocol it cannot speak, requires and platform
 * E8013. check_host false: requires and platform are not looked at. */
int manifest_parse(struct manifest **ret, const char *text, size_t n, bool check_host, abx_error **reterr);
/* From the document as a value: for providers registered from code (any runtime.kind is fine). */
int manifest_from_value(struct manifest **ret, const abx_value *doc, abx_error **reterr);
/* Reads <dir>/abx-provider.toml (regular file, not through a link); E8014 when it is missing. */
int manifest_load(struct manifest **ret, const char *dir, bool check_host, abx_error **reterr);
/* The built-in alicloud-express, made from the tables in this room. */
int manifest_builtin(struct manifest **ret, abx_error **reterr);
struct manifest *manifest_ref(struct manifest *m);
struct manifest *manifest_unref(struct manifest *m);
static inline _unused_ void manifest_unrefp(struct manifest **m) { manifest_unref(*m); }
#define _cleanup_manifest_ _cleanup_(manifest_unrefp)

const struct manifest_field *manifest_field(const struct manifest *m, const char *key);
bool manifest_has_feature(const struct manifest *m, const char *feature);
/* What consent is asked for and the receipt records ("consented"): store.md. NULL: out of memory. */
abx_value *manifest_consented(const struct manifest *m);
/* NULL when id may be used by a plugin; else the sentence E8014/E8002 says. free() never needed: static or *scratch. */
const char *provider_id_problem(const char *id, char scratch[128]);

/* PEP 440. */
int version_compare(const char *a, const char *b, int *ret);              /* -EINVAL: not a version */
int version_satisfies(const char *have, const char *spec, bool *ret, char **ret_bad); /* -EINVAL: ret_bad, free() */

#endif
