/* What the manifest says; no sandbox is needed. */
#include "contract/test.h"

static bool known(const char *feature) {
    for (size_t i = 0; abx_feature_at(i); i++)
        if (streq(abx_feature_at(i), feature)) return true;
    return false;
}

static void declared_features_are_known(struct test *t) {
    const abx_value *list = abx_value_get(t->info, "features");
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const char *feature = abx_value_string(abx_value_at(list, i));
        _cleanup_free_ char *shown = show_value(abx_value_at(list, i));
        if (!feature || !known(feature)) test_fail(t, "features.supported: expected ids of the registry, came %s", shown);
    }
}

/* The default itself is not shown: it may be a real secret. */
static void describe_never_exposes_secret_defaults(struct test *t) {
    const abx_value *fields = abx_value_get(t->info, "config_fields");
    for (size_t i = 0; i < abx_value_size(fields); i++) {
        const abx_value *field = abx_value_at(fields, i), *value = abx_value_get(field, "default");
        if (!abx_value_bool(abx_value_get(field, "secret")) || abx_value_type(value) == ABX_TYPE_NULL) continue;
        if (!streq0(abx_value_string(value), ""))
            test_fail(t, "config.fields.%s: expected no default of a secret field, came one", abx_value_get_string(field, "key"));
    }
}

const struct test_row test_manifest_cases[] = {
    TEST_ROW(declared_features_are_known),
    TEST_ROW(describe_never_exposes_secret_defaults),
    {0},
};
