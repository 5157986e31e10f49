/* abx files mkdir, rm, mv */
#include "commands.h"
#include "files.h"

/* Each path in turn, until one fails. */
static int change_each(struct cli *cli, files_start_fn start, const char *key, const char *word) {
    for (char **arg = cli->args; *arg; arg++) {
        _cleanup_files_ struct files_target t = {0};
        int status = files_call(cli, &t, *arg, start);
        if (status) return status;
        ui_report(cli, abx_sandbox_ref_string(t.call.sb), key, abx_value_new_string(t.path), "%s %s", word, t.path);
    }
    return 0;
}

static int run_mkdir(struct cli *cli) { return change_each(cli, abx_files_mkdir_start, "created", "Created"); }
static int run_rm(struct cli *cli) { return change_each(cli, abx_files_remove_start, "removed", "Removed"); }

static const struct abx_opt mv_options[] = {
    {"overwrite", 0, NULL, "replace a file that is there already"},
    {0},
};

/* The second path may be written with or without the sandbox, which must be the same. */
static int destination(struct cli *cli, struct files_target *from, struct files_target *to) {
    const char *text = cli->args[1];
    if (*text == '/') {
        to->path = strdup(text);
        return to->path ? 0 : err_nomem(&from->call.error);
    }
    int r = files_open(cli, to, text);
    if (r < 0) return err_pass(&from->call.error, TAKE_PTR(to->call.error));
    if (!streq(abx_sandbox_ref_string(from->call.sb), abx_sandbox_ref_string(to->call.sb)))
        return err_set(&from->call.error, ABX_E_CONFIG, "Use 'abx files get' and 'abx files put'.", "A file can't be moved between sandboxes.");
    return 0;
}

static int run_mv(struct cli *cli) {
    _cleanup_files_ struct files_target from = {0}, to = {0};
    struct ui_call *c = &from.call;
    int r = files_open(cli, &from, cli->args[0]);
    if (r == 0) r = destination(cli, &from, &to);
    if (r == 0) r = abx_files_move_start(&c->op, c->sb, from.path, to.path, opt_flag(cli, "overwrite"), &c->error);
    if (ui_run(cli, c, r) < 0) return ui_fail(cli, c->error);
    ui_report(cli, abx_sandbox_ref_string(c->sb), "moved", abx_value_new_string(to.path), "Moved %s to %s", from.path, to.path);
    return 0;
}

const struct abx_cmd cmd_files_mkdir = {
    .name = "files mkdir",
    .args = {1, -1},
    .usage = "REF:PATH...",
    .summary = "make directories in a sandbox",
    .examples = "abx files mkdir my-cloud:sbx-1:/tmp/work\n",
    .run = run_mkdir,
};

const struct abx_cmd cmd_files_rm = {
    .name = "files rm",
    .args = {1, -1},
    .usage = "REF:PATH...",
    .summary = "remove files and directories of a sandbox",
    .examples = "abx files rm my-cloud:sbx-1:/tmp/note.txt\n",
    .run = run_rm,
};

const struct abx_cmd cmd_files_mv = {
    .name = "files mv",
    .args = {2, 2},
    .usage = "REF:PATH [REF:]PATH",
    .summary = "rename a file of a sandbox",
    .options = mv_options,
    .examples = "abx files mv my-cloud:sbx-1:/tmp/a my-cloud:sbx-1:/tmp/b --overwrite\n",
    .run = run_mv,
};
