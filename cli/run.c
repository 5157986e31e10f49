/* abx run: create, exec, kill. */
#include "commands.h"
#include "create.h"
#include "exec.h"
#include "out.h"

static const struct abx_opt options[] = {
    {"keep", 0, NULL, "do not kill the sandbox; its reference goes to standard error"},
    {"sandbox-timeout", 0, "SECONDS", "life of the sandbox (default 300)", OPT_NUMBER},
    EXEC_OPTIONS,
    CREATE_OPTIONS,
    {0},
};

/* Also after a Ctrl-C, which is over with the command it ended: a sandbox left running costs money. */
static int kill_sandbox(struct cli *cli, abx_sandbox *sb) {
    _cleanup_call_ struct ui_call k = {0};
    ui_signal_forget();
    if (ui_run(cli, &k, abx_sandbox_kill_start(&k.op, sb, &k.error)) == 0) return 0;
    out_note("Sandbox %s was not killed.", abx_sandbox_ref_string(sb));
    return ui_fail(cli, k.error);
}

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    if (create_sandbox(cli, &c, cli->args[0], opt_number(cli, "sandbox-timeout", 0), NULL) < 0) return ui_fail(cli, c.error);
    int status = exec_command(cli, &c);
    if (opt_flag(cli, "keep")) {
        out_note("%s", abx_sandbox_ref_string(c.sb));
        return status;
    }
    int killed = kill_sandbox(cli, c.sb);
    return status ?: killed;
}

const struct abx_cmd cmd_run = {
    .name = "run",
    .args = {0, 1},
    .usage = "[TEMPLATE] -- CMD [ARG...]",
    .summary = "create a sandbox, run a command in it and kill it",
    .options = options,
    .examples = "abx run -- uname -a\nabx run base --keep --timeout 60 -- make test\n",
    .flags = CMD_SANDBOX | CMD_COMMAND,
    .run = run,
};
