/* abx files stat */
#include "commands.h"
#include "files.h"
#include "out.h"

static int run(struct cli *cli) {
    _cleanup_files_ struct files_target t = {0};
    int status = files_call(cli, &t, cli->args[0], abx_files_stat_start);
    if (status) return status;
    if (cli->json)
        out_json(t.call.value);
    else
        ui_print_members(t.call.value);
    return 0;
}

const struct abx_cmd cmd_files_stat = {
    .name = "files stat",
    .args = {1, 1},
    .usage = "REF:PATH",
    .summary = "show what is known about a file of a sandbox",
    .examples = "abx files stat my-cloud:sbx-1:/etc/hosts\n",
    .run = run,
};
