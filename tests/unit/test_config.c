/* The configuration: layers, .env files, what a provider is given, and edits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/limits.h"
#include "config/layers.h"

static const char *const core_names[] = {
#define CORE_NAME(key) key,
#include "provider/core_names.def"
#undef CORE_NAME
};

/* A home of its own for each test. */
struct place {
    char *dir, *home, *dotenv;
    struct config *config;
};

static int setup(void **state) {
    struct place *p = calloc(1, sizeof *p);
    assert_int_equal(fs_mkdtemp(getenv("TMPDIR") ?: "/tmp", "abx-config-", &p->dir), 0);
    p->home = path_join(p->dir, "home");
    p->dotenv = path_join(p->dir, ".env");
    assert_int_equal(fs_mkdir_p(p->home, 0700), 0);
    *state = p;
    return 0;
}

static int teardown(void **state) {
    struct place *p = *state;
    config_free(p->config);
    assert_int_equal(fs_remove_tree(p->dir), 0);
    free(p->dir);
    free(p->home);
    free(p->dotenv);
    free(p);
    return 0;
}

/* Writes ./.env, ~/.abx/.env and config.toml (NULL: none), and makes the snapshot. */
static struct config *with(struct place *p, const char *const *env, const char *local,
                           const char *own, const char *toml) {
    _cleanup_free_ char *own_path = path_join(p->home, ".env"),
                        *toml_path = path_join(p->home, "config.toml");
    const char *const paths[] = {p->dotenv, own_path, toml_path},
                      *const texts[] = {local, own, toml}, *const none[] = {NULL};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        unlink(paths[i]);
        if (texts[i])
            assert_int_equal(fs_write_atomic(paths[i], texts[i], strlen(texts[i]), 0600), 0);
    }
    p->config = config_free(p->config);
    assert_int_equal(config_new(&p->config, p->home, p->dotenv, false, env ?: none, NULL), 0);
    return p->config;
}
#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *read_home(struct place *p, const char *name) {
    _cleanup_free_ char *path = path_join(p->home, name);
    char *text = NULL;
    return fs_read(path, LIMIT_CONFIG_FILE, &text, NULL) == 0 ? text : NULL;
}

static void assert_core(struct config *c, const char *key, const char *want) {
    _cleanup_value_ abx_value *v = NULL;
    assert_int_equal(config_core(c, key, &v, NULL), 0);
    _cleanup_free_ char *got = v ? abx_value_print(v, ABX_PRINT_SECRETS, NULL) : strdup("unset");
    if (!streq(got, want)) fail_msg("%s is %s, not %s", key, got, want);
}

/* ---- .env ----------------------------------------------------------------------------------- */

static void assert_dotenv(const char *text, const char *key, const char *want) {
    _cleanup_(dotenv_done) struct dotenv d = {0};
    assert_int_equal(dotenv_parse(&d, text, strlen(text)), 0);
    const char *got = dotenv_get(&d, key);
    if (!streq0(got, want)) fail_msg("%s: '%s', not '%s'", text, got ?: "(none)", want ?: "(none)");
}

static void test_dotenv_parse(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"K=v", "v"},
        {"K = v \n", "v"},
        {"  export K=v", "v"},
        {"export\tK=v", "v"},
        {"K=", ""},
        {"K=\nX=1", ""},
        {"K=v # c", "v"},
        {"K=v#c", "v#c"},
        {"K=#c", ""},
        {"K= # c", ""},
        {"K='a # b' # c", "a # b"},
        {"K=\"a\\nb\\\"\\\\\"", "a\nb\"\\"},
        {"K='a\\n\\'\\\\'", "a\\n'\\"},
        {"K=$HOME/${X}", "$HOME/${X}"},
        {"K=\"$X\"", "$X"},
        {"# K=v", NULL},
        {"K", NULL},
        {"=v\nK=w", "w"},
        {"K=1\nK=2", "2"},
        {"K=v\r\nX=2\r\n", "v"},
        {"\xef\xbb\xbfK=v", "v"},
        {"K='two\nlines'\nX=1", "two\nlines"},
        {"A='open\nK=v", "v"},
        {"K=\"x\" y\n", NULL},
        {"A=\"x\" y\nK=v\n", "v"},
        {"K:v", NULL},
        {"exportK=v", NULL},
        {"K=a b  c ", "a b  c"},
        {"K=a=b", "a=b"},
        {"1K=v\nK=w", "w"},
        {"", NULL},
        {"\n\n\nK=v", "v"},
        {"K=\"tab\\t\\x\"", "tab\t\\x"},
        {"K=\"open", NULL},
        {"K='open\\'", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) assert_dotenv(rows[i].text, "K", rows[i].want);
    _cleanup_(dotenv_done) struct dotenv d = {0};
    assert_int_equal(dotenv_parse(&d, "K=a\0b\nX=1\n", 10), 0);
    assert_null(dotenv_get(&d, "K"));
    assert_string_equal(dotenv_get(&d, "X"), "1");
}

static void test_dotenv_edit(void **state) {
    (void)state;
    static const struct {
        const char *text, *value, *want;
    } rows[] = {
        {"", "v", "K=v\n"},
        {"# c\nA=1\n", "v", "# c\nA=1\nK=v\n"},
        {"A=1", "v", "A=1\nK=v\n"},
        {"A=1\r\n", "v", "A=1\r\nK=v\r\n"},
        {"A=1\n export K = old # why\nB=2\n", "new", "A=1\n export K = new # why\nB=2\n"},
        {"K=1\nK=2\n", "3", "K=1\nK=3\n"},
        {"K=\n", "v", "K=v\n"},
        {"K='a\nb'\nB=1\n", "it's a \\ $x", "K='it\\'s a \\\\ $x'\nB=1\n"},
        {"K=x", "a\nb", "K='a\nb'"},
        {"K=x\n", "", "K=''\n"},
        {"# c\nK=1\nA=1\nK='x\ny'\n# d\n", NULL, "# c\nA=1\n# d\n"},
        {"A=1\n", NULL, "A=1\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *got = NULL;
        assert_int_equal(dotenv_edit(rows[i].text, strlen(rows[i].text), "K", rows[i].value, &got),
                         0);
        assert_string_equal(got, rows[i].want);
    }
    /* The open quote would swallow the new line. */
    _cleanup_free_ char *got = NULL;
    assert_int_equal(dotenv_edit("A='open\n", 8, "K", "#1", &got), -ENOTSUP);
    assert_null(got);
}

/* ---- layers ------------------------------------------------------------------------------------
 */

static void test_layers(void **state) {
    struct place *p = *state;
    const char *toml = "[transport]\nhttp_timeout = 4\nhttp2 = false\nlog_level = \"debug\"\n";
    assert_core(
        with(p, ENV("ABX_HTTP_TIMEOUT=1"), "ABX_HTTP_TIMEOUT=2", "ABX_HTTP_TIMEOUT=3", toml),
        "http_timeout", "1.0");
    /* A blank value is unset and hides nothing. */
    assert_core(
        with(p, ENV("ABX_HTTP_TIMEOUT= "), "ABX_HTTP_TIMEOUT=2", "ABX_HTTP_TIMEOUT=3", toml),
        "http_timeout", "2.0");
    assert_core(with(p, NULL, "ABX_HTTP_TIMEOUT=''", "ABX_HTTP_TIMEOUT=3", toml), "http_timeout",
                "3.0");
    assert_core(with(p, NULL, NULL, NULL, toml), "http_timeout", "4.0");
    assert_core(p->config, "http2", "false");
    assert_core(p->config, "log_level", "\"DEBUG\"");
    assert_core(with(p, NULL, NULL, NULL, NULL), "http_timeout", "30.0");
    assert_core(p->config, "http2", "true");
    assert_core(p->config, "max_connections", "100");
    assert_core(p->config, "default_template", "\"base\"");
    assert_core(p->config, "sandbox_api_key", "unset");
    assert_core(p->config, "sandbox_base_url", "unset");
    assert_core(with(p, ENV("ABX_SANDBOX_API_KEY=k"), NULL, NULL, NULL), "sandbox_api_key",
                "\"k\"");
    /* A secret is never read from config.toml. */
    assert_core(with(p, NULL, NULL, NULL,
                     "[transport]\nsandbox_api_key = \"x\"\n[core]\nsandbox_api_key = \"x\"\n"),
                "sandbox_api_key", "unset");
}

static void test_names(void **state) {
    (void)state;
    const struct core_key *k;
    size_t n = 0;
    for (; (k = core_key_at(n)); n++) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(core_names); i++) found |= streq(core_names[i], k->key);
        if (!found) fail_msg("core_names.def lacks %s", k->key);
    }
    assert_int_equal(n, ARRAY_SIZE(core_names));
}

static void assert_core_error(struct config *c, const char *key, const char *say) {
    _cleanup_value_ abx_value *v = NULL;
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(config_core(c, key, &v, &e), ABX_E_CONFIG);
    assert_null(v);
    if (!strstr(abx_error_message(e), say))
        fail_msg("'%s' does not say '%s'", abx_error_message(e), say);
}

static void test_broken(void **state) {
    struct place *p = *state;
    assert_core_error(with(p, ENV("ABX_HTTP_TIMEOUT=abc"), NULL, NULL, NULL), "http_timeout",
                      "ABX_HTTP_TIMEOUT (environment): 'abc' is not a number.");
    assert_core_error(with(p, NULL, NULL, "ABX_MAX_CONNECTIONS=-1", NULL), "max_connections",
                      "ABX_MAX_CONNECTIONS (~/.abx/.env): '-1' is not zero or more.");
    assert_core_error(with(p, NULL, NULL, NULL, "[transport]\nhttp2 = \"maybe\"\n"), "http2",
                      "transport.http2 (~/.abx/config.toml): 'maybe' is not true or false.");
    assert_core_error(with(p, NULL, NULL, NULL, "[transport]\nmax_connections = true\n"),
                      "max_connections", "'true' is not an integer.");
    assert_core_error(with(p, NULL, NULL, NULL, "[transport]\nlog_level = [1]\n"), "log_level",
                      "the value is not a text.");
    assert_core_error(with(p, ENV("ABX_LOG_LEVEL=loud"), NULL, NULL, NULL), "log_level",
                      "'LOUD' is not one of DEBUG, INFO, WARNING, ERROR, CRITICAL.");
    assert_core_error(with(p, ENV("ABX_SANDBOX_BASE_URL=nowhere"), NULL, NULL, NULL),
                      "sandbox_base_url", "'nowhere' is not a URL.");
    assert_core_error(with(p, ENV("ABX_PROVIDER=\xff"), NULL, NULL, NULL), "provider",
                      "ABX_PROVIDER (environment) is not valid UTF-8.");
    assert_core_error(with(p, NULL, NULL, NULL, "[transport\n"), "http2", "config.toml: ");
    assert_core_error(with(p, NULL, NULL, NULL, "transport = 1\n"), "http2",
                      "[transport] must be a table.");
    assert_core_error(with(p, NULL, NULL, NULL, "[providers]\nx = 1\n"), "http2",
                      "[providers.x] must be a table.");
    assert_core_error(with(p, NULL, NULL, NULL, NULL), "nope",
                      "There is no configuration key 'nope'.");
    /* A directory called .env is a Python environment, not a broken file. */
    unlink(p->dotenv);
    assert_int_equal(mkdir(p->dotenv, 0700), 0);
    config_reload(p->config);
    assert_core(p->config, "http2", "true");
    rmdir(p->dotenv);
}

static void test_no_files(void **state) {
    struct place *p = *state;
    with(p, NULL, "ABX_PROVIDER=one", "ABX_PROVIDER=two", "[core]\nprovider = \"three\"\n");
    p->config = config_free(p->config);
    assert_int_equal(config_new(&p->config, NULL, NULL, true, ENV("X=1"), NULL), 0);
    assert_core(p->config, "provider", "\"alicloud-express\"");
    _cleanup_free_ char *file = NULL;
    assert_int_equal(config_set(p->config, "http2", NULL, "true", &file, NULL), ABX_E_CONFIG);
}

/* ---- which provider
 * ------------------------------------------------------------------------------- */

static void test_select(void **state) {
    struct place *p = *state;
    with(p, ENV("ABX_PROVIDER=from-env"), NULL, NULL, NULL);
    static const struct {
        const char *explicit_, *ref, *provider, *sandbox;
        int code;
    } rows[] = {
        {NULL, NULL, "from-env", NULL, 0},
        {"mine", NULL, "mine", NULL, 0},
        {" ", NULL, "from-env", NULL, 0},
        {NULL, "my-cloud:sbx:1", "my-cloud", "sbx:1", 0},
        {"my-cloud", "my-cloud:s", "my-cloud", "s", 0},
        {"mine", "sbx-1", "mine", "sbx-1", 0},
        {NULL, "sbx-1", "from-env", "sbx-1", 0},
        {NULL, "A:b", "from-env", "A:b", 0},
        {"mine", "my-cloud:s", NULL, NULL, ABX_E_MISMATCH},
        {NULL, ":s", NULL, NULL, ABX_E_CONFIG},
        {NULL, "my-cloud:", NULL, NULL, ABX_E_CONFIG},
        {NULL, "", NULL, NULL, ABX_E_CONFIG},
        {NULL, "core:s", NULL, NULL, ABX_E_CONFIG},
        {"../x", NULL, NULL, NULL, ABX_E_PROVIDER_NOT_FOUND},
        {NULL, "alicloud-express:s", "alicloud-express", "s", 0},
        {"core", NULL, NULL, NULL, ABX_E_PROVIDER_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *provider = NULL, *sandbox = NULL;
        int r = config_select(p->config, rows[i].explicit_, rows[i].ref, &provider, &sandbox, NULL);
        if (r != rows[i].code || !streq0(provider, rows[i].provider) ||
            !streq0(sandbox, rows[i].sandbox))
            fail_msg("row %zu: %d %s %s", i, r, provider, sandbox);
    }
    _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;
    assert_int_equal(config_select(with(p, NULL, NULL, NULL, "[core]\nprovider = \"in-toml\"\n"),
                                   NULL, NULL, &a, NULL, NULL),
                     0);
    assert_string_equal(a, "in-toml");
    assert_int_equal(config_select(with(p, NULL, "ABX_PROVIDER=in-env", NULL,
                                        "[core]\nprovider = \"in-toml\"\n"),
                                   NULL, NULL, &b, NULL, NULL),
                     0);
    assert_string_equal(b, "in-env");
    assert_int_equal(config_select(with(p, NULL, NULL, NULL, NULL), NULL, NULL, &c, NULL, NULL), 0);
    assert_string_equal(c, BUILTIN_PROVIDER);
}

/* ---- what a provider is given
 * ------------------------------------------------------------------------ */

static const char plugin[] =
    "manifest_version = 1\nprovider = {id = \"my-cloud\", version = \"1\"}\nruntime = {kind = \"exec\", command = [\"p\"]}\n"
    "features = {supported = []}\ncore = {inherit = [\"sandbox_api_key\", \"sandbox_base_url\"]}\n"
    "[config.fields.token]\nsecret = true\ncredential = true\nenv = [\"MYCLOUD_TOKEN\"]\n"
    "[config.fields.timeout]\ntype = \"int\"\ndefault = 5\n[config.fields.debug]\ntype = \"bool\"\n"
    "[config.fields.mode]\ntype = \"enum\"\nchoices = [\"fast\", \"slow\"]\n[config.fields.zones]\ntype = \"csv\"\n"
    "[config.fields.rate]\ntype = \"float\"\n";

static struct manifest *manifest_with(const char *more) {
    _cleanup_free_ char *text = str_printf("%s%s", plugin, more);
    _cleanup_error_ abx_error *e = NULL;
    struct manifest *m = NULL;
    if (manifest_parse(&m, text, strlen(text), true, &e) < 0) fail_msg("%s", abx_error_message(e));
    return m;
}

/* The settings as JSON, secrets and all; options as JSON or NULL. */
static char *given(struct config *c, const struct manifest *m, const char *options,
                   char *const *consented) {
    _cleanup_value_ abx_value *o = NULL, *v = NULL;
    _cleanup_(secrets_done) struct secrets secrets = {0};
    _cleanup_error_ abx_error *e = NULL;
    if (options) assert_int_equal(abx_value_parse(&o, options, strlen(options), NULL), 0);
    if (config_provider(c, m, o, NULL, consented, &secrets, &v, &e) < 0)
        fail_msg("%s", abx_error_message(e));
    return abx_value_print(v, ABX_PRINT_SECRETS, NULL);
}

static void test_provider(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    char *const none[] = {NULL};
    with(
        p, ENV("ABX_MY_CLOUD_TOKEN=t0p-secret", "ABX_MY_CLOUD_RATE=1"),
        "ABX_MY_CLOUD_DEBUG=yes\nMYCLOUD_TOKEN=other", "ABX_HTTP_TIMEOUT=7",
        "[providers.my-cloud]\ntoken = \"never\"\ntimeout = 9\nmode = \"slow\"\nzones = 5\nunrelated = [1]\n");
    _cleanup_free_ char *got = given(p->config, m, NULL, NULL);
    assert_string_equal(
        got,
        "{\"config\":{\"token\":\"t0p-secret\",\"timeout\":9,\"debug\":true,\"mode\":\"slow\",\"zones\":\"5\",\"rate\":1.0},"
        "\"core\":{\"http_timeout\":7.0}}");
    _cleanup_free_ char *typed =
        given(p->config, m,
              "{\"timeout\":\"12\",\"debug\":false,\"rate\":2,\"mode\":null,\"zones\":\"\"}", none);
    assert_string_equal(
        typed,
        "{\"config\":{\"token\":\"t0p-secret\",\"timeout\":12,\"debug\":false,\"mode\":\"slow\",\"zones\":\"5\",\"rate\":2.0},"
        "\"core\":{\"http_timeout\":7.0}}");
    /* Defaults are delivered, the rest is absent; a token is not read from config.toml. */
    with(p, NULL, NULL, NULL, "[providers.my-cloud]\ntoken = \"never\"\n");
    _cleanup_free_ char *bare = given(p->config, m, NULL, NULL);
    assert_string_equal(bare, "{\"config\":{\"timeout\":5},\"core\":{\"http_timeout\":30.0}}");
    /* The layer comes first, the name second. */
    with(p, ENV("MYCLOUD_TOKEN=vendor"), "ABX_MY_CLOUD_TOKEN=own", NULL, NULL);
    _cleanup_free_ char *layered = given(p->config, m, NULL, NULL);
    assert_non_null(strstr(layered, "\"vendor\""));
}

static void test_secrets(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    char *const agreed[] = {(char *)"sandbox_api_key", NULL};
    _cleanup_(secrets_done) struct secrets secrets = {0};
    _cleanup_value_ abx_value *v = NULL;
    with(p, ENV("ABX_MY_CLOUD_TOKEN=t0p-secret", "ABX_SANDBOX_API_KEY=generic-key"), NULL, NULL,
         NULL);
    assert_int_equal(config_provider(p->config, m, NULL, NULL, agreed, &secrets, &v, NULL), 0);
    _cleanup_free_ char *text = abx_value_print(v, 0, NULL);
    assert_null(strstr(text, "t0p-secret"));
    assert_null(strstr(text, "generic-key"));
    _cleanup_free_ char *redacted = secrets_redact_str(&secrets, "a t0p-secret and a generic-key");
    assert_string_equal(redacted, "a *** and a ***");
}

/* What the caller says comes first, and goes where what is configured would go. */
static void test_said(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with(""), *builtin = NULL;
    char *const agreed[] = {(char *)"sandbox_api_key", NULL};
    _cleanup_(secrets_done) struct secrets secrets = {0};
    _cleanup_value_ abx_value *core = NULL, *odd = NULL, *v = NULL, *w = NULL, *none = NULL;
    _cleanup_error_ abx_error *e = NULL;
    const char *text = "{\"sandbox_api_key\":\"said-key\",\"sandbox_base_url\":\"https://said\",\"region\":\"r1\"}";
    with(p, ENV("ABX_SANDBOX_API_KEY=generic-key", "ABX_MY_CLOUD_SANDBOX_API_KEY=own-key"), NULL, NULL, NULL);
    assert_int_equal(abx_value_parse(&core, text, strlen(text), NULL), 0);
    assert_int_equal(config_provider(p->config, m, NULL, core, agreed, &secrets, &v, NULL), 0);
    assert_string_equal(abx_value_get_string(abx_value_get(v, "core"), "sandbox_api_key"), "said-key");
    assert_null(abx_value_get(abx_value_get(v, "core"), "sandbox_base_url")); /* not agreed to */
    assert_null(abx_value_get(abx_value_get(v, "config"), "region"));
    _cleanup_free_ char *redacted = secrets_redact_str(&secrets, "a said-key");
    assert_string_equal(redacted, "a ***");
    assert_int_equal(config_provider(p->config, m, NULL, core, NULL, NULL, &w, NULL), 0);
    assert_null(abx_value_get(abx_value_get(w, "core"), "sandbox_api_key"));
    assert_int_equal(abx_value_parse(&odd, "{\"openai_api_key\":\"x\"}", 22, NULL), 0);
    assert_int_equal(config_provider(p->config, m, NULL, odd, agreed, NULL, &none, &e), ABX_E_CONFIG);
    assert_int_equal(manifest_builtin(&builtin, NULL), 0);
    _cleanup_value_ abx_value *b = NULL;
    assert_int_equal(config_provider(p->config, builtin, NULL, core, builtin->inherit, NULL, &b, NULL), 0);
    assert_string_equal(abx_value_get_string(abx_value_get(b, "config"), "region"), "r1");
    assert_string_equal(abx_value_get_string(abx_value_get(b, "core"), "sandbox_base_url"), "https://said");
}

static void test_inherit(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    char *const agreed[] = {(char *)"sandbox_api_key", (char *)"sandbox_domain", NULL};
    const char *toml =
        "[transport]\nsandbox_base_url = \"https://a.b\"\nsandbox_domain = \"d.e\"\n";
    /* Both asked for and agreed to: the domain was not asked for, the address not agreed to. */
    with(p, ENV("ABX_SANDBOX_API_KEY=k1"), NULL, NULL, toml);
    _cleanup_free_ char *got = given(p->config, m, NULL, agreed);
    assert_string_equal(
        got,
        "{\"config\":{\"timeout\":5},\"core\":{\"sandbox_api_key\":\"k1\",\"http_timeout\":30.0}}");
    _cleanup_free_ char *none = given(p->config, m, NULL, NULL);
    assert_null(strstr(none, "k1"));
    with(p, ENV("ABX_SANDBOX_API_KEY=k1", "ABX_MY_CLOUD_SANDBOX_API_KEY=k2"), NULL, NULL, NULL);
    _cleanup_free_ char *own = given(p->config, m, NULL, agreed);
    assert_non_null(strstr(own, "\"sandbox_api_key\":\"k2\""));
    _cleanup_free_ char *option = given(p->config, m, "{\"sandbox_api_key\":\"k3\"}", agreed);
    assert_non_null(strstr(option, "\"sandbox_api_key\":\"k3\""));
}

static void assert_refused(struct config *c, const struct manifest *m, const char *options,
                           int code, const char *say, const char *hint) {
    _cleanup_value_ abx_value *o = NULL, *v = NULL;
    _cleanup_error_ abx_error *e = NULL;
    if (options) assert_int_equal(abx_value_parse(&o, options, strlen(options), NULL), 0);
    assert_int_equal(config_provider(c, m, o, NULL, NULL, NULL, &v, &e), code);
    assert_null(v);
    assert_string_equal(abx_error_message(e), say);
    assert_string_equal(abx_error_provider(e), m->id);
    if (hint && !strstr(abx_error_hint(e), hint))
        fail_msg("'%s' does not say '%s'", abx_error_hint(e), hint);
}

static void test_refused(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    struct config *c = with(p, NULL, NULL, NULL, NULL);
    assert_refused(c, m, "{\"tokn\":\"x\"}", ABX_E_CONFIG,
                   "Unknown option(s) for provider 'my-cloud': tokn.", "Did you mean 'token'?");
    assert_refused(c, m, "{\"sandbox_api_key\":\"x\"}", ABX_E_CONFIG,
                   "Unknown option(s) for provider 'my-cloud': sandbox_api_key.", NULL);
    assert_refused(c, m, "[1]", ABX_E_CONFIG, "provider_options must be an object.", NULL);
    assert_refused(c, m, "{\"timeout\":\"abc\"}", ABX_E_CONFIG,
                   "my-cloud.timeout (argument): 'abc' is not an integer.", NULL);
    assert_refused(c, m, "{\"timeout\":1.5}", ABX_E_CONFIG,
                   "my-cloud.timeout (argument): '1.5' is not an integer.", NULL);
    assert_refused(c, m, "{\"mode\":\"best\"}", ABX_E_CONFIG,
                   "my-cloud.mode (argument): 'best' is not one of fast, slow.", NULL);
    assert_refused(c, m, "{\"token\":{\"a\":1}}", ABX_E_CONFIG,
                   "my-cloud.token (argument): the value is not a text.", NULL);
    assert_refused(with(p, ENV("ABX_MY_CLOUD_TIMEOUT=abc"), NULL, NULL, NULL), m, NULL,
                   ABX_E_CONFIG, "ABX_MY_CLOUD_TIMEOUT (environment): 'abc' is not an integer.",
                   NULL);
    assert_refused(with(p, NULL, NULL, NULL, "[providers.my-cloud]\ntimeout = \"abc\"\n"), m, NULL,
                   ABX_E_CONFIG,
                   "providers.my-cloud.timeout (~/.abx/config.toml): 'abc' is not an integer.",
                   NULL);
    _cleanup_manifest_ struct manifest *pin =
        manifest_with("[config.fields.pin]\ntype = \"int\"\nsecret = true\n");
    assert_refused(with(p, ENV("ABX_MY_CLOUD_PIN=hush"), NULL, NULL, NULL), pin, NULL, ABX_E_CONFIG,
                   "ABX_MY_CLOUD_PIN (environment): the value is not an integer.", NULL);
}

static void test_required(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *login = manifest_with(
        "[config.fields.key]\nrequired = true\ncredential = true\nenv = [\"VENDOR_KEY\"]\n");
    _cleanup_manifest_ struct manifest *plain =
        manifest_with("[config.fields.key]\nrequired = true\ncredential = true\n"
                      "[config.fields.place]\nrequired = true\n");
    _cleanup_manifest_ struct manifest *any = manifest_with(
        "[config.fields.key]\n[auth]\nany_of = [[\"token\", \"key\"], [\"sandbox_api_key\"]]\n");
    struct config *c = with(p, NULL, NULL, NULL, NULL);
    assert_refused(c, login, NULL, ABX_E_CREDENTIALS,
                   "Provider 'my-cloud' needs 'key': set ABX_MY_CLOUD_KEY or VENDOR_KEY.",
                   "abx config set my-cloud.key");
    /* What is not set at all comes before what is missing to log in. */
    assert_refused(c, plain, NULL, ABX_E_CONFIG,
                   "Provider 'my-cloud' needs 'place': set ABX_MY_CLOUD_PLACE.", NULL);
    assert_refused(c, plain, "{\"place\":\"x\"}", ABX_E_CREDENTIALS,
                   "Provider 'my-cloud' needs 'key': set ABX_MY_CLOUD_KEY.", NULL);
    assert_refused(
        c, any, "{\"token\":\"t\"}", ABX_E_CREDENTIALS,
        "Provider 'my-cloud' has no complete credentials: set ABX_MY_CLOUD_TOKEN and ABX_MY_CLOUD_KEY, or "
        "ABX_MY_CLOUD_SANDBOX_API_KEY.",
        NULL);
    char *const agreed[] = {(char *)"sandbox_api_key", NULL};
    _cleanup_free_ char *both = given(c, any, "{\"token\":\"t\",\"key\":\"k\"}", NULL);
    _cleanup_free_ char *generic =
        given(with(p, ENV("ABX_SANDBOX_API_KEY=k"), NULL, NULL, NULL), any, NULL, agreed);
    assert_non_null(both);
    assert_non_null(generic);
}

static void test_builtin(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_builtin(&m, NULL), 0);
    static const struct {
        const char *env, *toml, *want;
    } rows[] = {
        {"X=1", NULL,
         "{\"config\":{\"region\":\"cn-hangzhou\"},\"core\":{\"sandbox_base_url\":\"https://api.cn-hangzhou.e2b.fc.aliyuncs.com\","
         "\"sandbox_domain\":\"cn-hangzhou.e2b.fc.aliyuncs.com\",\"http_timeout\":30.0}}"},
        {"ALIBABA_CLOUD_REGION_ID=cn-x", NULL,
         "{\"config\":{\"region\":\"cn-x\"},\"core\":{\"sandbox_base_url\":\"https://api.cn-x.e2b.fc.aliyuncs.com\","
         "\"sandbox_domain\":\"cn-x.e2b.fc.aliyuncs.com\",\"http_timeout\":30.0}}"},
        {"X=1", "[transport]\nregion = \"cn-y\"\nsandbox_domain = \"d.e\"\n",
         "{\"config\":{\"region\":\"cn-y\"},\"core\":{\"sandbox_base_url\":\"https://api.cn-y.e2b.fc.aliyuncs.com\","
         "\"sandbox_domain\":\"d.e\",\"http_timeout\":30.0}}"},
        {"ABX_SANDBOX_BASE_URL=https://a.b", "[transport]\nregion = \"cn-y\"\n",
         "{\"config\":{\"region\":\"cn-y\"},\"core\":{\"sandbox_base_url\":\"https://a.b\","
         "\"sandbox_domain\":\"cn-hangzhou.e2b.fc.aliyuncs.com\",\"http_timeout\":30.0}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *got =
            given(with(p, ENV(rows[i].env), NULL, NULL, rows[i].toml), m, NULL, m->inherit);
        assert_string_equal(got, rows[i].want);
    }
}

/* ---- config explain
 * ------------------------------------------------------------------------------------ */

static void assert_row(struct config *c, const struct manifest *m, const char *key,
                       const char *want) {
    _cleanup_value_ abx_value *rows = NULL;
    assert_int_equal(config_explain(c, m, &rows, NULL), 0);
    for (size_t i = 0; i < abx_value_size(rows); i++) {
        const abx_value *row = abx_value_at(rows, i);
        if (!streq(abx_value_get_string(row, "key"), key)) continue;
        _cleanup_free_ char *text = abx_value_print(row, ABX_PRINT_SECRETS, NULL);
        assert_string_equal(text, want);
        return;
    }
    fail_msg("no row %s", key);
}

static void test_explain(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    with(p,
         ENV("ABX_HTTP_TIMEOUT=abc", "ABX_MY_CLOUD_TOKEN=short",
             "ABX_SANDBOX_API_KEY=a-long-key-1234"),
         NULL, "ABX_HTTP2=off", "[transport]\nhttp2 = true\n");
    assert_row(
        p->config, NULL, "http2",
        "{\"key\":\"http2\",\"value\":false,\"source\":\"~/.abx/.env\",\"secret\":false,\"env\":\"ABX_HTTP2\",\"layers\":["
        "{\"source\":\"~/.abx/.env\",\"name\":\"ABX_HTTP2\",\"value\":\"off\"},"
        "{\"source\":\"~/.abx/config.toml\",\"name\":\"transport.http2\",\"value\":true},"
        "{\"source\":\"default\",\"name\":\"http2\",\"value\":true}]}");
    assert_row(
        p->config, NULL, "sandbox_api_key",
        "{\"key\":\"sandbox_api_key\",\"value\":\"****1234\",\"source\":\"environment\",\"secret\":true,\"env\":\"ABX_SANDBOX_API_KEY\","
        "\"layers\":[{\"source\":\"environment\",\"name\":\"ABX_SANDBOX_API_KEY\",\"value\":\"****1234\"}]}");
    assert_row(
        p->config, m, "my-cloud.token",
        "{\"key\":\"my-cloud.token\",\"value\":\"****\",\"source\":\"environment\",\"secret\":true,\"env\":\"ABX_MY_CLOUD_TOKEN\","
        "\"layers\":[{\"source\":\"environment\",\"name\":\"ABX_MY_CLOUD_TOKEN\",\"value\":\"****\"}]}");
    assert_row(
        p->config, m, "my-cloud.mode",
        "{\"key\":\"my-cloud.mode\",\"value\":null,\"source\":\"unset\",\"secret\":false,\"env\":\"ABX_MY_CLOUD_MODE\",\"layers\":[]}");
    assert_row(
        p->config, m, "http_timeout",
        "{\"key\":\"http_timeout\",\"value\":\"abc\",\"source\":\"environment\",\"secret\":false,\"env\":\"ABX_HTTP_TIMEOUT\",\"layers\":["
        "{\"source\":\"environment\",\"name\":\"ABX_HTTP_TIMEOUT\",\"value\":\"abc\"},"
        "{\"source\":\"default\",\"name\":\"http_timeout\",\"value\":30.0}],"
        "\"error\":\"ABX_HTTP_TIMEOUT (environment): 'abc' is not a number.\"}");
}

static void test_explain_builtin(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = NULL;
    assert_int_equal(manifest_builtin(&m, NULL), 0);
    with(p, ENV("ALIBABA_CLOUD_REGION_ID=cn-x"), NULL, NULL, NULL);
    assert_row(p->config, m, "sandbox_domain",
               "{\"key\":\"sandbox_domain\",\"value\":\"cn-x.e2b.fc.aliyuncs.com\",\"source\":\"default\","
               "\"secret\":false,\"env\":\"ABX_SANDBOX_DOMAIN\",\"layers\":[{\"source\":\"default\","
               "\"name\":\"sandbox_domain\",\"value\":\"cn-x.e2b.fc.aliyuncs.com\"}]}");
}

/* ---- config set, purge
 * ------------------------------------------------------------------------------------ */

static void set(struct place *p, const char *key, const struct manifest *m, const char *value,
                const char *file) {
    _cleanup_free_ char *where = NULL;
    _cleanup_error_ abx_error *e = NULL;
    struct stat st;
    if (config_set(p->config, key, m, value, &where, &e) < 0)
        fail_msg("%s: %s", key, abx_error_message(e));
    assert_true(str_ends(where, file));
    if (stat(where, &st) == 0) assert_int_equal(st.st_mode & 0777, 0600);
}

static void assert_home(struct place *p, const char *name, const char *want) {
    _cleanup_free_ char *text = read_home(p, name);
    if (!streq0(text, want)) fail_msg("%s is '%s', not '%s'", name, text, want);
}

static void test_set(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    with(p, NULL, NULL, "# mine\nA=1\n", "# mine\n[core]\nprovider = \"old\" # why\n");
    set(p, "provider", NULL, "my-cloud", "/config.toml");
    assert_home(p, "config.toml", "# mine\n[core]\nprovider = \"my-cloud\" # why\n");
    assert_core(p->config, "provider", "\"my-cloud\"");
    set(p, "transport.max_connections", NULL, "7", "/config.toml");
    set(p, "http2", NULL, "no", "/config.toml");
    set(p, "my-cloud.zones", m, "a, \"b\"", "/config.toml");
    assert_home(
        p, "config.toml",
        "# mine\n[core]\nprovider = \"my-cloud\" # why\n\n[transport]\nmax_connections = 7\nhttp2 = false\n\n"
        "[providers.my-cloud]\nzones = \"a, \\\"b\\\"\"\n");
    set(p, "my-cloud.token", m, "s3 cret", "/.env");
    set(p, "sandbox_api_key", NULL, "key", "/.env");
    set(p, "my-cloud.sandbox_api_key", m, "own", "/.env");
    assert_home(
        p, ".env",
        "# mine\nA=1\nABX_MY_CLOUD_TOKEN='s3 cret'\nABX_SANDBOX_API_KEY=key\nABX_MY_CLOUD_SANDBOX_API_KEY=own\n");
    set(p, "sandbox_api_key", NULL, NULL, "/.env");
    set(p, "my-cloud.zones", m, NULL, "/config.toml");
    set(p, "core.provider", NULL, NULL, "/config.toml");
    set(p, "core.provider", NULL, NULL, "/config.toml");
    assert_core(p->config, "provider", "\"alicloud-express\"");
    assert_home(p, ".env",
                "# mine\nA=1\nABX_MY_CLOUD_TOKEN='s3 cret'\nABX_MY_CLOUD_SANDBOX_API_KEY=own\n");
}

static void test_set_new(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *builtin = NULL;
    assert_int_equal(manifest_builtin(&builtin, NULL), 0);
    with(p, NULL, NULL, NULL, NULL);
    assert_int_equal(rmdir(p->home), 0);
    set(p, "http_timeout", NULL, "2.5", "/config.toml");
    assert_home(p, "config.toml", "[transport]\nhttp_timeout = 2.5\n");
    set(p, "alicloud-express.access_key_id", builtin, "id1", "/.env");
    set(p, "alicloud-express.region", builtin, "cn-z", "/config.toml");
    assert_home(p, ".env", "ABX_ALICLOUD_EXPRESS_ACCESS_KEY_ID=id1\n");
    assert_home(p, "config.toml", "[transport]\nhttp_timeout = 2.5\nregion = \"cn-z\"\n");
    /* Through a link: the link stays. */
    _cleanup_free_ char *link = path_join(p->home, "config.toml"),
                        *real = path_join(p->dir, "real.toml");
    struct stat st;
    assert_int_equal(rename(link, real), 0);
    assert_int_equal(symlink(real, link), 0);
    set(p, "http_timeout", NULL, "3", "/real.toml");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void test_set_refused(void **state) {
    struct place *p = *state;
    _cleanup_manifest_ struct manifest *m = manifest_with("");
    static const struct {
        const char *key, *value, *say;
        bool field;
    } rows[] = {
        {"http_timout", "1", "There is no configuration key 'http_timout'.", false},
        {"core.http_timeout", "1", "There is no configuration key 'core.http_timeout'.", false},
        {"transport.sandbox_api_key", "1",
         "There is no configuration key 'transport.sandbox_api_key'.", false},
        {"http_timeout", "soon", "http_timeout (argument): 'soon' is not a number.", false},
        {"provider", "../x",
         "provider (argument): '../x' is no provider: provider id must be 2-40 chars of lowercase letters, digits and "
         "single hyphens, starting with a letter.",
         false},
        {"my-cloud.tokn", "x", "There is no configuration key 'my-cloud.tokn'.", true},
        {"my-cloud.sandbox_domain", "x", "There is no configuration key 'my-cloud.sandbox_domain'.",
         true},
        {"my-cloud.mode", "best", "my-cloud.mode (argument): 'best' is not one of fast, slow.",
         true},
    };
    with(p, NULL, NULL, NULL, "[transport]\nx = 1\n");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_free_ char *file = NULL;
        _cleanup_error_ abx_error *e = NULL;
        assert_int_equal(
            config_set(p->config, rows[i].key, rows[i].field ? m : NULL, rows[i].value, &file, &e),
            ABX_E_CONFIG);
        assert_string_equal(abx_error_message(e), rows[i].say);
        assert_null(file);
    }
    assert_home(p, "config.toml", "[transport]\nx = 1\n");
    _cleanup_free_ char *file = NULL;
    with(p, NULL, NULL, NULL, "[broken\n");
    assert_int_equal(config_set(p->config, "http2", NULL, "true", &file, NULL), ABX_E_CONFIG);
    assert_home(p, "config.toml", "[broken\n");
}

static void test_purge(void **state) {
    struct place *p = *state;
    with(p, NULL, "ABX_MY_TOKEN=stays",
         "# a\nABX_MY_TOKEN=x\nABX_MY_CLOUD_TOKEN=y\nB=1 # b\nexport ABX_MY_URL='z'\nABX_MYX_T=1\n",
         "# a\n[providers.my]\nurl = \"x\"\n\n[providers.my-cloud]\nurl = \"y\"\n");
    assert_int_equal(config_purge_provider(p->config, "my", NULL), 0);
    assert_home(p, ".env", "# a\nABX_MY_CLOUD_TOKEN=y\nB=1 # b\nABX_MYX_T=1\n");
    _cleanup_free_ char *toml = read_home(p, "config.toml");
    assert_null(strstr(toml, "[providers.my]"));
    assert_non_null(strstr(toml, "[providers.my-cloud]\nurl = \"y\"\n"));
    _cleanup_free_ char *local = NULL;
    assert_int_equal(fs_read(p->dotenv, 1000, &local, NULL), 0);
    assert_string_equal(local, "ABX_MY_TOKEN=stays");
    /* The generic keys are not those of a provider called like them. */
    with(p, NULL, NULL, "ABX_SANDBOX_API_KEY=k\nABX_SANDBOX_X=1\n", NULL);
    assert_int_equal(config_purge_provider(p->config, "sandbox", NULL), 0);
    assert_home(p, ".env", "ABX_SANDBOX_API_KEY=k\n");
    /* An installed provider counts, too; and the secrets go even when config.toml is broken. */
    _cleanup_free_ char *other = path_join(p->home, "providers/my-box");
    assert_int_equal(fs_mkdir_p(other, 0700), 0);
    with(p, NULL, NULL, "ABX_MY_BOX_T=1\nABX_MY_T=2\n", "[broken\n");
    _cleanup_error_ abx_error *e = NULL;
    assert_int_equal(config_purge_provider(p->config, "my", &e), ABX_E_CONFIG);
    assert_non_null(e);
    assert_home(p, ".env", "ABX_MY_BOX_T=1\n");
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dotenv_parse),
        cmocka_unit_test(test_dotenv_edit),
        cmocka_unit_test(test_names),
        IN_PLACE(test_layers),
        IN_PLACE(test_broken),
        IN_PLACE(test_no_files),
        IN_PLACE(test_select),
        IN_PLACE(test_provider),
        IN_PLACE(test_secrets),
        IN_PLACE(test_inherit), IN_PLACE(test_said),
        IN_PLACE(test_refused),
        IN_PLACE(test_required),
        IN_PLACE(test_builtin),
        IN_PLACE(test_explain),
        IN_PLACE(test_set),
        IN_PLACE(test_set_new),
        IN_PLACE(test_set_refused),
        IN_PLACE(test_purge),     IN_PLACE(test_explain_builtin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
