/* abx files ls */
#include "commands.h"
#include "files.h"
#include "out.h"

static const struct abx_opt options[] = {
    {"long", 'l', NULL, "show type, mode, size and time too"},
    {0},
};

static void print_long(const abx_value *entries) {
    struct out_table t = {.columns = 5};
    static const char *const titles[] = {"TYPE", "MODE", "SIZE", "MODIFIED", "NAME"};
    for (size_t i = 0; i < t.columns; i++) out_cell(&t, titles[i]);
    for (size_t i = 0; i < abx_value_size(entries); i++) {
        const abx_value *e = abx_value_at(entries, i);
        char mode[8] = "";
        if (files_mode(e) >= 0) snprintf(mode, sizeof mode, "%04o", (unsigned)files_mode(e));
        _cleanup_free_ char *size = ui_text(abx_value_get(e, "size"));
        out_cell(&t, abx_value_get_string(e, "type"));
        out_cell(&t, mode);
        out_cell(&t, size);
        out_cell(&t, abx_value_get_string(e, "mtime"));
        out_cell(&t, abx_value_get_string(e, "name"));
    }
    out_table(&t);
}

static int run(struct cli *cli) {
    _cleanup_files_ struct files_target t = {0};
    int status = files_call(cli, &t, cli->args[0], abx_files_list_start);
    if (status) return status;
    const abx_value *entries = abx_value_get(t.call.value, "entries");
    if (cli->json) {
        out_json(entries);
    } else if (opt_flag(cli, "long")) {
        print_long(entries);
    } else {
        for (size_t i = 0; i < abx_value_size(entries); i++) {
            out_foreign(abx_value_get_string(abx_value_at(entries, i), "name"));
            out_str(files_is_dir(abx_value_at(entries, i)) ? "/\n" : "\n");
        }
    }
    return 0;
}

const struct abx_cmd cmd_files_ls = {
    .name = "files ls",
    .args = {1, 1},
    .usage = "REF:PATH",
    .summary = "list a directory of a sandbox",
    .options = options,
    .examples = "abx files ls my-cloud:sbx-1:/tmp -l\n",
    .run = run,
};
