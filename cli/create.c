/* abx create */
#include "create.h"

#include <limits.h>

#include "commands.h"
#include "out.h"

static const struct abx_opt options[] = {
    {"timeout", 0, "SECONDS", "life of the sandbox (default 300)", OPT_NUMBER},
    {"env", 0, "KEY=VALUE", "environment of the sandbox (repeatable)", OPT_PAIR},
    CREATE_OPTIONS,
    {0},
};

/* "source=vol-1,target=/data" or "{…}". */
static int parse_object(const char *text, abx_value **ret, abx_error **reterr) {
    _cleanup_value_ abx_value *v = NULL;
    if (*text == '{') return abx_value_parse(ret, text, strlen(text), reterr);
    v = abx_value_new_object();
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ",");
        const char *eq = memchr(p, '=', n);
        _cleanup_free_ char *key = eq ? strndup(p, (size_t)(eq - p)) : NULL;
        if (!key || !*key)
            return err_set(reterr, ABX_E_CONFIG, "Write KEY=VALUE,KEY=VALUE or a JSON object.", "'%s' is no list of settings.", text);
        abx_value *member = abx_value_new_string_n(eq + 1, (size_t)(p + n - eq - 1));
        if (abx_value_set(v, key, member) < 0) return err_nomem(reterr);
        p += n + (p[n] == ',');
    }
    *ret = TAKE_PTR(v);
    return 0;
}

static int number(struct cli *cli, const char *name) { return (int)MIN_OF(opt_number(cli, name, 0), (int64_t)INT_MAX); }

int create_sandbox(struct cli *cli, struct ui_call *c, const char *template_, int64_t timeout_s, const abx_value *env) {
    _cleanup_value_ abx_value *metadata = NULL, *mounts = NULL, *vpc = NULL;
    abx_sandbox_create_opts o = ABX_SANDBOX_CREATE_OPTS_INIT;
    abx_provider_opts p = ui_provider(cli);
    const char *vpc_text = opt_text(cli, "vpc");
    int r = opt_pairs(cli, "metadata", &metadata, &c->error);
    if (r == 0) r = opt_each(cli, "mount", parse_object, &mounts, &c->error);
    if (r == 0 && vpc_text) r = parse_object(vpc_text, &vpc, &c->error);
    if (r < 0) return r;
    o.template_ = template_;
    o.timeout_s = timeout_s;
    o.secure = opt_flag(cli, "no-secure") ? -1 : opt_flag(cli, "secure");
    o.metadata = metadata;
    o.envs = env;
    o.cpu = number(cli, "cpu");
    o.memory_mb = number(cli, "memory");
    o.disk_mb = number(cli, "disk");
    o.gpu = opt_text(cli, "gpu");
    o.volume_mounts = mounts;
    o.vpc = vpc;
    return ui_run(cli, c, abx_sandbox_create_start(&c->op, cli->client, &p, &o, &c->error));
}

static int run(struct cli *cli) {
    _cleanup_call_ struct ui_call c = {0};
    _cleanup_value_ abx_value *env = NULL;
    int r = opt_pairs(cli, "env", &env, &c.error);
    if (r == 0) r = create_sandbox(cli, &c, cli->args[0], opt_number(cli, "timeout", 0), env);
    if (r < 0) return ui_fail(cli, c.error);
    if (cli->json) {
        _cleanup_value_ abx_value *v = ui_record(abx_sandbox_ref_string(c.sb), abx_sandbox_provider(c.sb), abx_sandbox_record(c.sb));
        out_json(v);
    } else {
        out_foreign(abx_sandbox_ref_string(c.sb));
        out_str("\n");
    }
    return 0;
}

const struct abx_cmd cmd_create = {
    .name = "create",
    .args = {0, 1},
    .usage = "[TEMPLATE]",
    .summary = "create a sandbox and print its reference",
    .options = options,
    .examples = "abx create base --timeout 600 --env LANG=C.UTF-8\nabx create --provider my-cloud --metadata owner=ci\n",
    .flags = CMD_SANDBOX,
    .run = run,
};
