/* abx files stat */
#include "commands.h"
#include "files.h"
#include "out.h"

/* As ls(1) and chmod(1) show it: the number itself says nothing to people. */
static abx_value *readable(const abx_value *entry) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    for (size_t i = 0; i < abx_value_size(entry); i++) {
        const char *key = abx_value_key_at(entry, i);
        const abx_value *member = abx_value_at(entry, i);
        char octal[32];
        snprintf(octal, sizeof octal, "%04llo", (unsigned long long)abx_value_int(member, 0) & 07777);
        bool mode = streq(key, "mode") && abx_value_is(member, ABX_TYPE_INT);
        if ((mode ? abx_value_set_string(v, key, octal) : abx_value_set(v, key, abx_value_ref(member))) < 0) return NULL;
    }
    return TAKE_PTR(v);
}

static int run(struct cli *cli) {
    _cleanup_files_ struct files_target t = {0};
    int status = files_call(cli, &t, cli->args[0], abx_files_stat_start);
    if (status) return status;
    _cleanup_value_ abx_value *shown = readable(t.call.value);
    if (cli->json)
        out_json(t.call.value);
    else
        ui_print_members(shown ?: t.call.value);
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
