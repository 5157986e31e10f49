/* Inside of the configuration: settings, where they may stand, and what each layer says. */
#ifndef CONFIG_LAYERS_H
#define CONFIG_LAYERS_H

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/dotenv.h"

enum layer {
    LAYER_ARGUMENT,
    LAYER_ENVIRONMENT,
    LAYER_DOTENV,
    LAYER_HOME_DOTENV,
    LAYER_TOML,
    LAYER_DEFAULT,
    LAYER_COUNT
};

struct config {
    char *home, *dotenv;
    bool no_files;
    char **environ_;
    bool loaded;
    struct dotenv local, own; /* ./.env and ~/.abx/.env */
    abx_value *toml;          /* config.toml; NULL when there is none */
};

/* Reads the files once; E8002 when one is broken. */
int config_load(struct config *c, abx_error **reterr);
/* "~/.abx/NAME"; NULL when out of memory. */
char *config_path(const struct config *c, const char *name);
/* "environment", "./.env", …; what `source` is called. */
const char *layer_name(const struct config *c, enum layer layer);

struct core_key {
    const char *key, *table;
    enum field_type type;
    bool secret;
    const char *default_, *builtin_default, *description;
};
const struct core_key *core_key_at(size_t i); /* NULL past the end */
const struct core_key *core_key(const char *key);

#define TOML_NAMES 2
/* Something that can be set, with its names from the most specific on. */
struct setting {
    char *key; /* as explain shows it: "http_timeout", "my-cloud.token" */
    enum field_type type;
    bool secret, not_negative, upper;
    char **choices, **env;
    char **toml[TOML_NAMES];       /* paths; none for a secret */
    size_t toml_count, toml_write; /* which of them `config set` writes */
    abx_value *default_;
    const abx_value *argument; /* borrowed */
};

/* What a layer says: the name that said it, and the value as it stands there. */
struct found {
    char *name;
    abx_value *raw;
};
struct findings {
    struct found of[LAYER_COUNT];
};

void setting_done(struct setting *s);
void findings_done(struct findings *f);
#define _cleanup_setting_ _cleanup_(setting_done)
#define _cleanup_findings_ _cleanup_(findings_done)

/* 0 or -ENOMEM. builtin: with the defaults of the built-in provider. */
int setting_core(struct setting *ret, const struct core_key *k, bool builtin);
int setting_field(struct setting *ret, const char *id, const struct manifest_field *f);
/* A generic key as provider id sees it: ABX_<ID>_<KEY> before ABX_<KEY>. */
int setting_inherited(struct setting *ret, const char *id, const struct core_key *k);
/* Fills in every layer; blank values are absent. */
int setting_find(struct config *c, const struct setting *s, struct findings *ret,
                 abx_error **reterr);
enum layer findings_first(const struct findings *f); /* LAYER_COUNT: none */
/* The value that counts, typed, marked when secret; NULL when unset. */
int setting_value(struct config *c, const struct setting *s, abx_value **ret, abx_error **reterr);
/* coerce.c; name and source are for the error. */
int setting_coerce(const struct setting *s, const abx_value *raw, const char *name,
                   const char *source, abx_value **ret, abx_error **reterr);

/* credentials.c: the default of the built-in's address follows its region, unless the address
 * itself is set. base_url: the argument, or NULL. Leaves other settings alone. */
int setting_follow_region(struct config *c, struct setting *s, const char *region,
                          const abx_value *base_url, abx_error **reterr);

#endif
