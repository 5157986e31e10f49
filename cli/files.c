/* What the files verbs share. */
#include "files.h"

#include "base/util.h"
#include "out.h"

void files_done(struct files_target *t) {
    ui_call_done(&t->call);
    free(t->path);
}

int files_split(const char *text, char **ret_ref, char **ret_path, abx_error **reterr) {
    const char *colon = strstr(text, ":/") ?: strrchr(text, ':');
    if (!colon || colon == text || !colon[1])
        return err_set(reterr, ABX_E_CONFIG, "Write it as REF:PATH, for example my-cloud:sbx-1:/tmp/note.txt.", "'%s' names no file of a sandbox.", text);
    char *ref = strndup(text, (size_t)(colon - text)), *path = strdup(colon + 1);
    if (!ref || !path) {
        free(ref);
        free(path);
        return err_nomem(reterr);
    }
    *ret_ref = ref;
    *ret_path = path;
    return 0;
}

int files_open(struct cli *cli, struct files_target *t, const char *text) {
    _cleanup_free_ char *ref = NULL;
    int r = files_split(text, &ref, &t->path, &t->call.error);
    /* One colon alone may belong to a reference whose path was forgotten. */
    if (r == 0 && !cli->provider && !strchr(ref, ':') && !strchr("/.~", t->path[0]))
        r = err_set(&t->call.error, ABX_E_CONFIG, "Write it as REF:PATH, for example my-cloud:sbx-1:/tmp/note.txt.",
                    "'%s' names no file of a sandbox.", text);
    return r < 0 ? r : ui_open(cli, &t->call, ref);
}

int files_call(struct cli *cli, struct files_target *t, const char *text, files_start_fn start) {
    int r = files_open(cli, t, text);
    if (r == 0) r = start(&t->call.op, t->call.sb, t->path, &t->call.error);
    return ui_run(cli, &t->call, r) < 0 ? ui_fail(cli, t->call.error) : 0;
}

/* ---- entries ------------------------------------------------------------------------------ */

bool files_is_dir(const abx_value *entry) {
    const char *type = abx_value_get_string(entry, "type");
    return streq0(type, "dir") || streq0(type, "directory");
}

bool files_is_link(const abx_value *entry) { return streq0(abx_value_get_string(entry, "type"), "symlink"); }

/* A number is the bits; a string is octal, as chmod writes it. */
int files_mode(const abx_value *entry) {
    const abx_value *v = abx_value_get(entry, "mode");
    const char *text = abx_value_string(v);
    if (!text) return abx_value_is(v, ABX_TYPE_INT) ? (int)(abx_value_int(v, 0) & 0777) : -1;
    char *end = NULL;
    long mode = strtol(text, &end, 8);
    return *text && !*end ? (int)(mode & 0777) : -1;
}

int files_stat_dir(struct cli *cli, struct files_target *t, const char *path) {
    struct ui_call *c = &t->call;
    int r = ui_run(cli, c, abx_files_stat_start(&c->op, c->sb, path, &c->error));
    if (r == 0) return files_is_dir(c->value);
    if (r != ABX_E_FILE_NOT_FOUND && r != ABX_E_RESOURCE_NOT_FOUND && r != ABX_E_FILE) return r;
    c->error = abx_error_unref(c->error);
    return 0;
}

const char *files_base(const char *path) {
    size_t n = strlen(path);
    const char *p = path + n;
    while (p > path && p[-1] == '/') p--;
    while (p > path && p[-1] != '/') p--;
    return p;
}

/* ---- copies -------------------------------------------------------------------------------- */

static const char *amount(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t unit = 0;
    for (; n >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++) n /= 1024;
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return out;
}

void files_copied(struct files_copy *copy, const char *path, size_t bytes) {
    char size[32];
    copy->count++;
    copy->bytes += bytes;
    int64_t now = time_mono_ms();
    if (now - copy->shown_ms < 100) return;
    copy->shown_ms = now;
    _cleanup_free_ char *text = str_printf("%llu files, %s  %s", (unsigned long long)copy->count, amount(copy->bytes, size), path);
    ui_progress(copy->cli, text);
}

void files_skip(struct files_copy *copy, const char *path, const char *why) {
    _cleanup_error_ abx_error *e = NULL;
    err_set(&e, ABX_E_FILE, "", "'%s' was left out: %s.", path, why); /* cleans the name */
    ui_progress(copy->cli, NULL);
    out_note("%s", abx_error_message(e));
    copy->skipped++;
}

int files_report(struct files_copy *copy, const char *word) {
    char size[32];
    ui_progress(copy->cli, NULL);
    if (copy->cli->json) {
        _cleanup_value_ abx_value *v = abx_value_new_object();
        abx_value_set_int(v, "files", (int64_t)copy->count);
        abx_value_set_int(v, "bytes", (int64_t)copy->bytes);
        abx_value_set_int(v, "skipped", copy->skipped);
        out_json(v);
    } else if (!copy->cli->quiet) {
        out_note("%s %llu %s, %s", word, (unsigned long long)copy->count, copy->count == 1 ? "file" : "files",
                   amount(copy->bytes, size));
    }
    return copy->skipped ? 1 : 0;
}
