/* What the user named as the source of a plugin, and whether such a source is allowed. */
#ifndef STORE_SOURCE_H
#define STORE_SOURCE_H

#include <abx/error.h>
#include <abx/store.h>
#include <stdbool.h>

#include "base/cleanup.h"

struct source {
    bool git;
    char *path;   /* local: absolute, resolved, with the subdirectory */
    char *url;    /* git */
    char *ref;    /* git: "HEAD" when none was named; a full commit id in lower case */
    char *subdir; /* git: "" when none */
    bool ref_is_commit;
};
void source_done(struct source *s);
#define _cleanup_source_ _cleanup_(source_done)

int source_parse(struct source *ret, const abx_install_opts *o, abx_error **reterr);
/* From a receipt of type git; ref NULL: the recorded one. */
int source_from_receipt(struct source *ret, const abx_value *source, const char *ref, bool insecure, abx_error **reterr);
/* {type, path} or {type, url, ref, commit, subdir}; NULL when out of memory. */
abx_value *source_to_value(const struct source *s, bool link, const char *commit);
bool source_is_ssh(const char *url);

#endif
