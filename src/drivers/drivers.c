/* Which driver serves which kind, and helpers that several drivers share. */
#include "drivers/drivers.h"

#include <string.h>

#include "base/cleanup.h"

static const abx_driver *const drivers[] = {&driver_exec};

const abx_driver *driver_for_kind(const char *kind) {
    for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
        if (strcmp(drivers[i]->kind, kind) == 0) return drivers[i];
    return NULL;
}

int secrets_add_value(struct secrets *s, const abx_value *v) {
    if (abx_value_is(v, ABX_TYPE_STRING)) {
        abx_bytes b = abx_value_bytes(v);
        return abx_value_is_secret(v) && b.len ? secrets_add(s, (const char *)b.data, b.len) : 0;
    }
    for (size_t i = 0; i < abx_value_size(v); i++) {
        int r = secrets_add_value(s, abx_value_at(v, i));
        if (r < 0) return r;
    }
    return 0;
}

const char *driver_bytes_member(const char *method) {
    enum { COMMAND, STREAM, SANDBOX, KILL, RECORD, GLOBAL };
    static const struct {
        const char *name, *bytes;
    } rows[] = {
#define METHOD(name, feature, idempotent, fallback, bytes, traits) {name, bytes},
#include "provider/methods.def"
#undef METHOD
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].bytes && strcmp(rows[i].name, method) == 0) return rows[i].bytes;
    return NULL;
}
