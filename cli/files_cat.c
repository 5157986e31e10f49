/* abx files cat */
#include "commands.h"
#include "files.h"
#include "out.h"

static int run(struct cli *cli) {
    for (char **arg = cli->args; *arg; arg++) {
        _cleanup_files_ struct files_target t = {0};
        int status = files_call(cli, &t, *arg, abx_files_read_start);
        if (status) return status;
        if (out_bytes(abx_value_bytes(abx_value_get(t.call.value, "content"))) < 0) return 1;
    }
    return 0;
}

const struct abx_cmd cmd_files_cat = {
    .name = "files cat",
    .args = {1, -1},
    .usage = "REF:PATH...",
    .summary = "write files of a sandbox to standard output",
    .examples = "abx files cat my-cloud:sbx-1:/etc/os-release\n",
    .run = run,
};
