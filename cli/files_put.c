/* abx files put: a file or a tree into a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/limits.h"
#include "commands.h"
#include "files.h"
#include "out.h"

static int local_error(struct files_copy *copy, int r, const char *path) {
    int code = r == -ENOENT ? ABX_E_FILE_NOT_FOUND : r == -EACCES || r == -EPERM ? ABX_E_PERMISSION : ABX_E_FILE;
    if (r == -EFBIG)
        return err_set(&copy->target.call.error, ABX_E_FILE_SIZE, "Split the file, or upload it by another way.",
                       "'%s' is too large for one request.", path);
    return err_errno(&copy->target.call.error, code, r, "Cannot read '%s'", path);
}

static void release(void *data, void *user) {
    (void)user;
    free(data);
}

/* "-" is the standard input; it has no mode to keep: -1. */
static int put_file(struct files_copy *copy, const char *local, const char *remote, int mode) {
    struct ui_call *c = &copy->target.call;
    char *data = NULL;
    size_t n = 0;
    int r = fs_read(streq(local, "-") ? "/dev/stdin" : local, LIMIT_LINE, &data, &n);
    if (r < 0) return local_error(copy, r, local);
    _cleanup_value_ abx_value *content = abx_value_new_bytes_take(data, n, release, NULL);
    if (!content) return err_nomem(&c->error);
    r = abx_files_write_value_start(&c->op, c->sb, remote, content, mode, &c->error);
    r = ui_run(copy->cli, c, r);
    if (r == 0) files_copied(copy, remote, n);
    return r;
}

/* A backend may refuse to make what is there; then that has to be a directory. */
static int put_dir(struct files_copy *copy, const char *remote) {
    struct ui_call *c = &copy->target.call;
    int r = ui_run(copy->cli, c, abx_files_mkdir_start(&c->op, c->sb, remote, &c->error));
    if (r == 0 || abx_error_code(c->error) == -ECANCELED) return r;
    _cleanup_error_ abx_error *first = TAKE_PTR(c->error);
    if (files_stat_dir(copy->cli, &copy->target, remote) == 1) return 0;
    abx_error_unref(c->error);
    c->error = TAKE_PTR(first);
    return r;
}

static int put_any(struct files_copy *copy, const char *local, const char *remote, unsigned depth);

static int put_members(struct files_copy *copy, const char *local, const char *remote, unsigned depth) {
    _cleanup_closedir_ DIR *d = opendir(local);
    _cleanup_strv_ char **names = NULL;
    if (!d) return local_error(copy, -errno, local);
    for (struct dirent *e; (errno = 0, e = readdir(d));)
        if (!streq(e->d_name, ".") && !streq(e->d_name, "..") && strv_append(&names, e->d_name) < 0)
            return err_nomem(&copy->target.call.error);
    if (errno) return local_error(copy, -errno, local);
    strv_sort(names);
    int r = 0;
    for (size_t i = 0; r == 0 && names && names[i]; i++) {
        _cleanup_free_ char *from = path_join(local, names[i]), *to = path_join(remote, names[i]);
        r = from && to ? put_any(copy, from, to, depth + 1) : err_nomem(&copy->target.call.error);
    }
    return r;
}

/* Links below the top are left out: what they point to may be outside, or the tree itself. */
static int put_any(struct files_copy *copy, const char *local, const char *remote, unsigned depth) {
    struct stat st;
    if (depth == 0 && streq(local, "-")) return put_file(copy, local, remote, -1);
    if ((depth ? lstat(local, &st) : stat(local, &st)) < 0) return local_error(copy, -errno, local);
    if (S_ISREG(st.st_mode)) return put_file(copy, local, remote, (int)(st.st_mode & 0777));
    if (S_ISDIR(st.st_mode) && depth < LIMIT_TREE_DEPTH) {
        int r = put_dir(copy, remote);
        return r < 0 ? r : put_members(copy, local, remote, depth);
    }
    files_skip(copy, local, S_ISLNK(st.st_mode) ? "it is a symbolic link" : S_ISDIR(st.st_mode) ? "it is too deep" : "it is no regular file");
    return 0;
}

static int run(struct cli *cli) {
    struct files_copy copy = {.cli = cli};
    struct files_target *t = &copy.target;
    size_t sources = cli->arg_count - 1;
    int r = files_open(cli, t, cli->args[sources]);
    bool into = r == 0 && (sources > 1 || str_ends(t->path, "/"));
    if (r == 0 && !into) r = files_stat_dir(cli, t, t->path);
    into |= r == 1;
    for (size_t i = 0; r >= 0 && i < sources; i++) {
        if (into && streq(cli->args[i], "-")) {
            r = err_set(&t->call.error, ABX_E_CONFIG, "Name the file: REF:PATH/NAME.", "Standard input has no name to put into '%s'.", t->path);
            break;
        }
        const char *base = files_base(cli->args[i]);
        _cleanup_free_ char *name = strndup(base, strcspn(base, "/"));
        bool named = name && *name && !streq(name, ".") && !streq(name, "..");
        _cleanup_free_ char *remote = into && named ? path_join(t->path, name) : strdup(t->path);
        r = name && remote ? put_any(&copy, cli->args[i], remote, 0) : err_nomem(&t->call.error);
    }
    int status = r < 0 ? ui_fail(cli, t->call.error) : files_report(&copy, "Put");
    files_done(t);
    return status;
}

const struct abx_cmd cmd_files_put = {
    .name = "files put",
    .args = {2, -1},
    .usage = "LOCAL... REF:PATH",
    .summary = "copy files, directory trees or standard input (-) into a sandbox",
    .examples = "abx files put note.txt my-cloud:sbx-1:/tmp/note.txt\nabx files put ./src my-cloud:sbx-1:/work/\ndate | abx files put - my-cloud:sbx-1:/tmp/date\n",
    .run = run,
};
