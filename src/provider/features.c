/* The registry of features, and its one-line form. */
#include "provider/features.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

static const char *const features[] = {
#define FEATURE(id) id,
#include "provider/features.def"
#undef FEATURE
};

static const char *const operations[] = {
#define OPERATION(id) id,
#include "provider/operations.def"
#undef OPERATION
};

const char *abx_feature_at(size_t index) {
    return index < ARRAY_SIZE(features) ? features[index] : NULL;
}

int feature_index(const char *id) {
    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        if (streq(features[i], id)) return (int)i;
    return -1;
}

bool operation_known(const char *id) {
    for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
        if (streq(operations[i], id)) return true;
    return false;
}

static bool has(const abx_value *list, const char *id) {
    for (size_t i = 0; i < abx_value_size(list); i++)
        if (streq0(abx_value_string(abx_value_at(list, i)), id)) return true;
    return false;
}

/* Length of the group of a feature: "sandbox" of "sandbox.pause". */
static size_t group_len(const char *id) { return strcspn(id, "."); }

char *abx_features_line(const abx_value *list) {
    _cleanup_buf_ struct buf out = BUF_INIT(0);
    size_t open = 0; /* length of the group whose parenthesis is open */
    const char *last = NULL;
    buf_str(&out, "");
    for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
        const char *id = features[i];
        size_t n = group_len(id);
        if (!has(list, id)) continue;
        if (open && n == open && strncmp(id, last, n) == 0) {
            buf_printf(&out, ",%s", id + n + 1);
            continue;
        }
        if (open) buf_char(&out, ')');
        if (last) buf_char(&out, ' ');
        buf_append(&out, id, n);
        if (id[n]) buf_printf(&out, "(%s", id + n + 1);
        open = id[n] ? n : 0;
        last = id;
    }
    if (open) buf_char(&out, ')');
    return buf_take(&out);
}
