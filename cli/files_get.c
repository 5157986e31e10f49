/* abx files get: a file or a tree out of a sandbox. Names come from the plugin and are not
 * trusted: every step goes through a directory descriptor and follows no link. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/limits.h"
#include "commands.h"
#include "files.h"
#include "out.h"

static int write_error(struct files_copy *copy, int r, const char *name) {
    return err_errno(&copy->target.call.error, r == -EACCES || r == -EPERM ? ABX_E_PERMISSION : ABX_E_FILE, r, "Cannot write '%s'", name);
}

static bool name_ok(const char *name) {
    return name && *name && !strchr(name, '/') && !streq(name, ".") && !streq(name, "..");
}

static int write_all(int fd, abx_bytes b) {
    for (size_t done = 0; done < b.len;) {
        ssize_t n = write(fd, b.data + done, b.len - done);
        if (n < 0 && errno != EINTR) return -errno;
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

/* Beside its place first: a copy that is interrupted leaves the old file or the new one. own: the
 * name is the user's, who may mean a link or a device by it. */
static int save(int dirfd, const char *name, abx_bytes content, int mode, bool own) {
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)) {
        if (!own) return S_ISDIR(st.st_mode) ? -EISDIR : -ELOOP;
        _cleanup_close_ int out = openat(dirfd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
        return out < 0 ? -errno : write_all(out, content);
    }
    _cleanup_free_ char *temp = str_printf(".%.200s.abx-%ld", name, (long)getpid());
    if (!temp) return -ENOMEM;
    /* What is private in the sandbox is never readable here, not even for a moment. */
    _cleanup_close_ int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode >= 0 ? 0600 : 0666);
    if (fd < 0) return -errno;
    int r = write_all(fd, content);
    if (r == 0 && mode >= 0 && fchmod(fd, (mode_t)mode) < 0) r = -errno;
    if (r == 0 && close(TAKE_FD(fd)) < 0) r = -errno;
    if (r == 0 && renameat(dirfd, temp, dirfd, name) < 0) r = -errno;
    if (r < 0) unlinkat(dirfd, temp, 0);
    return r;
}

static int get_file(struct files_copy *copy, const char *remote, int dirfd, const char *name, int mode, bool own) {
    struct ui_call *c = &copy->target.call;
    int r = ui_run(copy->cli, c, abx_files_read_start(&c->op, c->sb, remote, &c->error));
    if (r < 0) return r;
    abx_bytes content = abx_value_bytes(abx_value_get(c->value, "content"));
    r = save(dirfd, name, content, mode, own);
    if (r < 0) return write_error(copy, r, name);
    files_copied(copy, remote, content.len);
    return 0;
}

static int get_any(struct files_copy *copy, const abx_value *entry, const char *remote, int dirfd, const char *name, unsigned depth);

static int get_dir(struct files_copy *copy, const char *remote, int dirfd, const char *name, int mode, unsigned depth) {
    struct ui_call *c = &copy->target.call;
    if (mkdirat(dirfd, name, 0777) < 0 && errno != EEXIST) return write_error(copy, -errno, name);
    /* The user's own link at the top is fine; below it a link would lead out of the copy. */
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
    if (fd < 0) return write_error(copy, -errno, name);
    int r = ui_run(copy->cli, c, abx_files_list_start(&c->op, c->sb, remote, &c->error));
    if (r < 0) return r;
    _cleanup_value_ abx_value *list = abx_value_ref(abx_value_get(c->value, "entries"));
    for (size_t i = 0; r == 0 && i < abx_value_size(list); i++) {
        const abx_value *entry = abx_value_at(list, i);
        const char *member = abx_value_get_string(entry, "name");
        if (!name_ok(member)) {
            files_skip(copy, member ?: "?", "its name is not safe");
            continue;
        }
        _cleanup_free_ char *path = path_join(remote, member);
        r = path ? get_any(copy, entry, path, fd, member, depth + 1) : err_nomem(&c->error);
    }
    /* Last: a directory that may not be written could not be filled. */
    if (r == 0 && mode >= 0 && depth && fchmod(fd, (mode_t)mode) < 0) r = write_error(copy, -errno, name);
    return r;
}

static int get_any(struct files_copy *copy, const abx_value *entry, const char *remote, int dirfd, const char *name, unsigned depth) {
    if (files_is_link(entry) && depth) {
        files_skip(copy, remote, "it is a symbolic link");
        return 0;
    }
    if (!files_is_dir(entry)) return get_file(copy, remote, dirfd, name, files_mode(entry), depth == 0);
    if (depth < LIMIT_TREE_DEPTH) return get_dir(copy, remote, dirfd, name, files_mode(entry), depth);
    files_skip(copy, remote, "it is too deep");
    return 0;
}

/* Into an existing directory under the file's own name, else under the given one: the directory
 * opened, and the name in it. */
static int local_place(struct files_copy *copy, const char *local, const char *remote, int *ret_dir, char **ret_name) {
    struct stat st;
    bool into = str_ends(local, "/") || (stat(local, &st) == 0 && S_ISDIR(st.st_mode));
    const char *base = files_base(into ? remote : local);
    size_t dir_len = into ? strlen(local) : (size_t)(base - local);
    _cleanup_free_ char *own = strndup(base, strcspn(base, "/")), *dir = dir_len ? strndup(local, dir_len) : strdup(".");
    /* The root of a sandbox has no name: its members go straight into the directory. */
    _cleanup_free_ char *name = own ? strdup(into && !name_ok(own) ? "." : own) : NULL;
    if (!name || !dir) return err_nomem(&copy->target.call.error);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return write_error(copy, -errno, dir);
    *ret_dir = fd;
    *ret_name = TAKE_PTR(name);
    return 0;
}

static int run(struct cli *cli) {
    struct files_copy copy = {.cli = cli};
    struct files_target *t = &copy.target;
    struct ui_call *c = &t->call;
    _cleanup_free_ char *name = NULL;
    _cleanup_close_ int dirfd = -1;
    int r = files_open(cli, t, cli->args[0]);
    if (r == 0) r = ui_run(cli, c, abx_files_stat_start(&c->op, c->sb, t->path, &c->error));
    if (r == 0) r = local_place(&copy, cli->args[1] ?: ".", t->path, &dirfd, &name);
    if (r == 0) {
        _cleanup_value_ abx_value *entry = abx_value_ref(c->value);
        r = get_any(&copy, entry, t->path, dirfd, name, 0);
    }
    int status = r < 0 ? ui_fail(cli, c->error) : files_report(&copy, "Got");
    files_done(t);
    return status;
}

const struct abx_cmd cmd_files_get = {
    .name = "files get",
    .args = {1, 2},
    .usage = "REF:PATH [LOCAL]",
    .summary = "copy a file or a directory tree out of a sandbox, with its mode bits",
    .examples = "abx files get my-cloud:sbx-1:/tmp/note.txt\nabx files get my-cloud:sbx-1:/work ./copy\n",
    .run = run,
};
