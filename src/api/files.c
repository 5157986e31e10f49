/* Files: typed forms over the method table; contents are bytes, never text. */
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "base/codec.h"
#include "base/limits.h"
#include "base/utf8.h"

static int path_params(abx_value **ret, const char *key, const char *path, abx_error **reterr) {
    if (!path || !*path) return err_set(reterr, ABX_E_CONFIG, NULL, "There is no path.");
    if (!utf8_valid(path, strlen(path))) return err_set(reterr, ABX_E_CONFIG, NULL, "The path is not UTF-8.");
    abx_value *v = abx_value_new_object();
    if (abx_value_set_string(v, key, path) < 0) {
        abx_value_unref(v);
        return err_nomem(reterr);
    }
    *ret = v;
    return 0;
}

static int path_call(abx_op **ret, abx_sandbox *sb, const char *method, const char *path, const struct call_opts *o, abx_error **reterr) {
    abx_value *params = NULL;
    int r = path_params(&params, "path", path, reterr);
    return r < 0 ? r : sandbox_call(ret, sb, method, params, o, reterr);
}

/* {"content_b64": bytes} -> {"content": bytes}. */
static int shape_read(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again;
    const abx_value *content = abx_value_get(*value, "content_b64");
    if (!abx_value_is(content, ABX_TYPE_BYTES))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered files.read without content_b64.");
    abx_value *v = abx_value_new_object();
    if (abx_value_set(v, "content", abx_value_ref(content)) < 0) {
        abx_value_unref(v);
        return err_nomem(reterr);
    }
    abx_value_unref(*value);
    *value = v;
    return 0;
}

static int shape_list(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again, (void)value;
    const abx_value *entries = abx_value_get(*value, "entries");
    if (!abx_value_is(entries, ABX_TYPE_ARRAY))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered files.list without an array 'entries'.");
    for (size_t i = 0; i < abx_value_size(entries); i++)
        if (!abx_value_get_string(abx_value_at(entries, i), "name"))
            return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered files.list with an entry without a name.");
    return 0;
}

static int shape_stat(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    (void)user, (void)again;
    if (!abx_value_is(*value, ABX_TYPE_OBJECT))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered files.stat with no file entry.");
    return 0;
}

int abx_files_read_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr) {
    struct call_opts o = {.shape = shape_read};
    return path_call(ret, sb, "files.read", path, &o, reterr);
}

int abx_files_write_value_start(abx_op **ret, abx_sandbox *sb, const char *path, const abx_value *data, int mode, abx_error **reterr) {
    abx_value *params = NULL, *content = NULL;
    abx_bytes b = abx_value_bytes(data);
    int r = path_params(&params, "path", path, reterr);
    if (r < 0) return r;
    /* The largest line less room for the path, which JSON may write six times as long. */
    if (base64_encoded_len(b.len) + 6 * strlen(path) + 1024 > LIMIT_LINE) {
        abx_value_unref(params);
        return err_set(reterr, ABX_E_FILE_SIZE, "Split the file, or upload it by another way.",
                       "'%s' is too large for one request: %zu bytes; the protocol's line takes about 6 MiB.", path, b.len);
    }
    if (abx_value_is(data, ABX_TYPE_BYTES))
        content = abx_value_ref(data);
    else
        content = abx_value_new_bytes(b.data, b.len);
    abx_value_set(params, "content_b64", content);
    if (mode >= 0) abx_value_set_int(params, "mode", mode);
    return sandbox_call(ret, sb, "files.write", params, NULL, reterr);
}

int abx_files_write_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_bytes data, abx_error **reterr) {
    _cleanup_value_ abx_value *v = abx_value_new_bytes(data.data, data.len);
    return v ? abx_files_write_value_start(ret, sb, path, v, -1, reterr) : err_nomem(reterr);
}

int abx_files_list_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr) {
    struct call_opts o = {.shape = shape_list};
    return path_call(ret, sb, "files.list", path, &o, reterr);
}

int abx_files_stat_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr) {
    struct call_opts o = {.shape = shape_stat};
    return path_call(ret, sb, "files.stat", path, &o, reterr);
}

int abx_files_mkdir_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr) {
    return path_call(ret, sb, "files.mkdir", path, NULL, reterr);
}

int abx_files_remove_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr) {
    return path_call(ret, sb, "files.remove", path, NULL, reterr);
}

int abx_files_move_start(abx_op **ret, abx_sandbox *sb, const char *source, const char *destination, int overwrite, abx_error **reterr) {
    abx_value *params = NULL;
    int r = path_params(&params, "source", source, reterr);
    if (r < 0) return r;
    if (!destination || !*destination) {
        abx_value_unref(params);
        return err_set(reterr, ABX_E_CONFIG, NULL, "There is no path to move to.");
    }
    abx_value_set_string(params, "destination", destination);
    if (overwrite) abx_value_set_bool(params, "overwrite", 1);
    return sandbox_call(ret, sb, "files.move", params, NULL, reterr);
}
