/* Any bytes as TOML, and edits of them: an edit that is delivered says what it should. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fuzz_main.h"
#include "toml/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const paths[][4] = {{"a"}, {"a", "b"}, {"core", "provider"}, {"a", "b", "c"}, {"x y", "\xc3\xa9"}};
    const char *text = (const char *)data;
    _cleanup_value_ abx_value *v = NULL;
    if (toml_parse(text, n, &v, NULL, NULL) < 0) return 0;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        _cleanup_free_ char *set = NULL, *cut = NULL, *gone = NULL;
        size_t start = 0, end = 0;
        if (toml_find(text, n, paths[i], &start, &end) == 0 && (start >= end || end > n)) abort();
        if (toml_edit(text, n, paths[i], "'new'", &set) == 0) {
            if (toml_find(set, strlen(set), paths[i], &start, &end) < 0) abort();
            if (end - start != 5 || memcmp(set + start, "'new'", 5) != 0) abort();
        }
        (void)!toml_edit(text, n, paths[i], NULL, &cut);
        (void)!toml_remove_table(text, n, paths[i], &gone);
    }
    return 0;
}
