/* The abx command: parse, find the row, run it, and end with the right status. */
#include <fcntl.h>
#include <sys/stat.h>

#include "out.h"
#include "ui.h"

/* A standard descriptor that is closed would be given to the next file opened. What is written
 * to one is lost, and a result that is lost is a failure: /dev/full says so. */
static void open_standard(void) {
    struct stat st;
    for (int fd = 0; fd <= 2; fd++)
        if (fstat(fd, &st) < 0 && open(fd == 1 ? "/dev/full" : "/dev/null", fd ? O_WRONLY : O_RDONLY) < 0) _exit(1);
}

static int dispatch(struct cli *cli, abx_error **reterr) {
    if (opt_flag(cli, "version")) return cmd_find("version")->run(cli);
    if (opt_flag(cli, "help")) return cli->cmd ? help_command(cli->cmd) : help_group(cli->group ?: "");
    if (!cli->cmd) {
        const char *space = cli->group ? " " : "", *group = cli->group ?: "";
        _cleanup_free_ char *hint = str_printf("Run 'abx %s%s--help' to see the commands.", group, space);
        return err_set(reterr, ABX_E_CONFIG, hint, "'abx%s%s' needs a command.", space, group);
    }
    int r = cli->cmd->flags & CMD_LOCAL ? 0 : ui_client_new(cli, reterr);
    return r < 0 ? r : cli->cmd->run(cli);
}

int main(int argc, char **argv) {
    struct cli cli = {0};
    _cleanup_error_ abx_error *e = NULL;
    (void)argc;
    open_standard();
    ui_init();
    int r = opt_parse(&cli, argv[0] ? argv + 1 : argv, &e);
    out_init(cli.given ? opt_text(&cli, "color") : NULL, cli.json);
    if (r == 0) r = dispatch(&cli, &e);
    if (r < 0) r = ui_fail(&cli, e);
    ui_client_close(&cli);
    r = out_finish(r);
    opt_done(&cli);
    return r;
}
