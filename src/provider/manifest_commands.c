/* [commands]: management commands a provider describes; this host records them, it does not run
 * them. */
#include "base/limits.h"
#include "provider/manifest_parts.h"

#define COMMANDS_PROTOCOL "provider-commands/1"
#define COMMANDS_MAX 128
#define COMMAND_DEPTH 16
#define COMMAND_SIZE (64 * KIB)
#define COMMAND_ID_MAX 80

/* Words of lower-case letters and digits with a dot or hyphen between them, a letter first. */
static bool id_ok(const char *id) {
    if (!id || !(*id >= 'a' && *id <= 'z') || strlen(id) > COMMAND_ID_MAX) return false;
    for (const char *p = id; *p; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        if (!word && !((*p == '.' || *p == '-') && p[1] && p[1] != '.' && p[1] != '-'))
            return false;
    }
    return true;
}

static int bounded(const abx_value *v, int depth, abx_error **reterr) {
    int r = 0;
    if (depth > COMMAND_DEPTH) return manifest_bad(reterr, "commands entry exceeds depth 16");
    for (size_t i = 0; r == 0 && i < abx_value_size(v); i++) {
        const char *key = abx_value_key_at(v, i);
        if (key && (!*key || streq(key, "__proto__") || streq(key, "prototype") ||
                    streq(key, "constructor")))
            return manifest_bad(reterr,
                                "commands entries contain an invalid or forbidden JSON key");
        r = bounded(abx_value_at(v, i), depth + 1, reterr);
    }
    return r;
}

static bool in(const char *s, const char *const *list) {
    for (; *list; list++)
        if (streq(s, *list)) return true;
    return false;
}

/* names: the keys of v are names of properties, not words of the schema. */
static int check_schema(const abx_value *v, const char *name, bool names, abx_error **reterr) {
    static const char *const forbidden[] = {"$ref",   "$dynamicRef", "$recursiveRef",     "$id",
                                            "$async", "pattern",     "patternProperties", "format",
                                            NULL};
    static const char *const maps[] = {"properties", "definitions", "$defs", "dependencies", NULL};
    static const char *const data[] = {"enum", "const", "default", "examples", NULL};
    for (size_t i = 0; i < abx_value_size(v); i++) {
        const char *key = abx_value_key_at(v, i);
        bool word = key && !names;
        if (word && in(key, forbidden))
            return manifest_bad(
                reterr, "%s may not use references, ids, asynchronous schemas, patterns or formats",
                name);
        const char *dialect =
            word && streq(key, "$schema") ? plain_text(abx_value_at(v, i)) ?: "" : NULL;
        if (dialect && !streq(dialect, "http://json-schema.org/draft-07/schema#") &&
            !streq(dialect, "http://json-schema.org/draft-07/schema"))
            return manifest_bad(reterr, "%s must use JSON Schema draft 7", name);
        if (word && in(key, data)) continue;
        int r = check_schema(abx_value_at(v, i), name, word && in(key, maps), reterr);
        if (r < 0) return r;
    }
    return 0;
}

static int read_schema(const abx_value *entry, const char *where, const char *key, bool input,
                       abx_error **reterr) {
    _cleanup_free_ char *name = str_printf("%s.%s", where, key);
    const abx_value *v = abx_value_get(entry, key);
    if (!name) return err_nomem(reterr);
    if (!abx_value_is(v, ABX_TYPE_OBJECT))
        return manifest_bad(reterr, "%s must be a schema object", name);
    const abx_value *more = abx_value_get(v, "additionalProperties");
    bool closed = streq0(abx_value_get_string(v, "type"), "object") &&
                  abx_value_is(more, ABX_TYPE_BOOL) && !abx_value_bool(more);
    if (input && !closed)
        return manifest_bad(reterr, "%s must declare type object and additionalProperties = false",
                            name);
    return check_schema(v, name, false, reterr);
}

static int check_entry(const abx_value *entry, abx_error **reterr) {
    static const char *const keys[] = {
        "id",         "description", "description_zh", "input_schema", "output_schema", "effect",
        "idempotent", NULL};
    bool known = abx_value_is(entry, ABX_TYPE_OBJECT);
    for (size_t i = 0; known && i < abx_value_size(entry); i++)
        known = in(abx_value_key_at(entry, i), keys);
    if (!known)
        return manifest_bad(reterr, "commands entry must be a descriptor with known fields");
    int r = bounded(entry, 0, reterr);
    if (r < 0) return r;
    size_t size = 0;
    _cleanup_free_ char *text = abx_value_print(entry, 0, &size);
    if (!text) return err_nomem(reterr);
    if (size > COMMAND_SIZE) return manifest_bad(reterr, "commands entry exceeds 64 KiB");
    const char *id = plain_text(abx_value_get(entry, "id")),
               *effect = plain_text(abx_value_get(entry, "effect"));
    if (!id_ok(id))
        return manifest_bad(
            reterr, "commands entry id must be a lowercase operation id of at most 80 characters");
    if (!effect || !(streq(effect, "read") || streq(effect, "write") || streq(effect, "delete")))
        return manifest_bad(reterr, "commands.%s.effect must be read, write or delete", id);
    if (!abx_value_is(abx_value_get(entry, "idempotent"), ABX_TYPE_BOOL))
        return manifest_bad(reterr, "commands.%s.idempotent must be a boolean", id);
    _cleanup_free_ char *where = str_printf("commands.%s", id), *words = NULL;
    if (!where) return err_nomem(reterr);
    r = read_string(entry, where, "description", NULL, &words, reterr);
    if (r == 0) r = read_string(entry, where, "description_zh", NULL, &words, reterr);
    if (r == 0) r = read_schema(entry, where, "input_schema", true, reterr);
    return r < 0 ? r : read_schema(entry, where, "output_schema", false, reterr);
}

static int by_id(const void *a, const void *b) {
    const abx_value *const *x = a, *const *y = b;
    return strcmp(abx_value_get_string(*x, "id"), abx_value_get_string(*y, "id"));
}

int read_commands(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *table, *sorted[COMMANDS_MAX];
    int r = read_table(doc, "commands", "commands", false, &table, reterr);
    if (r < 0) return r;
    if (table && !streq0(plain_text(abx_value_get(table, "protocol")), COMMANDS_PROTOCOL))
        return manifest_bad(reterr, "commands.protocol must be '" COMMANDS_PROTOCOL "'");
    const abx_value *entries = abx_value_get(table, "entries");
    size_t n = abx_value_size(entries);
    if (table && (!abx_value_is(entries, ABX_TYPE_ARRAY) || n > COMMANDS_MAX))
        return manifest_bad(reterr, "commands.entries must be an array of at most 128 entries");
    if (n > 0 && streq(m->kind, "rest"))
        return manifest_bad(reterr, "only exec providers may declare commands");
    for (size_t i = 0; i < n; i++) {
        sorted[i] = abx_value_at(entries, i);
        r = check_entry(sorted[i], reterr);
        if (r < 0) return r;
    }
    if (n > 1) qsort(sorted, n, sizeof sorted[0], by_id);
    m->commands = abx_value_new_array();
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && by_id(&sorted[i - 1], &sorted[i]) == 0)
            return manifest_bad(reterr, "duplicate commands entry '%s'",
                                abx_value_get_string(sorted[i], "id"));
        if (abx_value_append(m->commands, abx_value_ref(sorted[i])) < 0) return err_nomem(reterr);
    }
    return m->commands ? 0 : err_nomem(reterr);
}
