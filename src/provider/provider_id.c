/* Which ids a provider may have. */
#include "base/str.h"
#include "provider/manifest.h"

static const char *const reserved[] = {BUILTIN_PROVIDER, "default",   "all",
                                       "none",           "builtin",   "shortcuts",
                                       "core",           "transport", "providers"};
static const char *const reserved_prefixes[] = {"abx-", "alicloud-", "shortcuts"};
/* Ids of the catalog, also where a reserved prefix fits. */
static const char *const catalog[] = {"opensandbox", "cubesandbox", "e2b", "alicloud-container"};

#define SHAPE_PROBLEM                                                                              \
    "provider id must be 2-40 chars of lowercase letters, digits and single hyphens, starting with a letter"

/* Lower-case words of letters and digits with single hyphens between them, a letter first. */
static bool well_formed(const char *id) {
    size_t n = strnlen(id, 41);
    if (n < 2 || n > 40 || !(*id >= 'a' && *id <= 'z') || id[n - 1] == '-') return false;
    for (const char *p = id; *p; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        if (!word && !(*p == '-' && p[1] != '-')) return false;
    }
    return true;
}

const char *provider_id_problem(const char *id, char scratch[128]) {
    bool taken = false;
    if (!well_formed(id)) return SHAPE_PROBLEM;
    for (size_t i = 0; i < ARRAY_SIZE(catalog); i++)
        if (streq(id, catalog[i])) return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) taken |= streq(id, reserved[i]);
    for (size_t i = 0; i < ARRAY_SIZE(reserved_prefixes); i++)
        taken |= str_starts(id, reserved_prefixes[i]);
    if (!taken) return NULL;
    snprintf(scratch, 128, "provider id '%s' is reserved", id);
    return scratch;
}
