/* Fetches a commit with the git program, in an environment built from nothing. */
#include "store/git.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/git_run.h"

/* What may come back as one commit id or one line. */
#define SMALL_OUTPUT 4096
#define FETCHED "refs/abx/fetched"

/* Passed on when the host has them: how to reach the network, and whom to believe there. */
static const char *const passed[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy",
                                     "ALL_PROXY",  "no_proxy",    "NO_PROXY",   "SSL_CERT_FILE", "SSL_CERT_DIR"};

struct git *git_free(struct git *g) {
    if (!g) return NULL;
    free(g->program);
    free(g->repo);
    free(g->home);
    free(g->url);
    free(g->ref);
    free(g->subdir);
    strv_free(g->env);
    buf_done(&g->stderr_tail);
    free(g);
    return NULL;
}

/* git of the PATH given to us; relative and empty parts are not searched. */
static int find_program(struct git *g, const char *path, abx_error **reterr) {
    int r = fs_find_program("git", path, &g->program);
    if (r == -ENOMEM) return err_nomem(reterr);
    if (r == 0) return 0;
    return err_set(reterr, ABX_E_INSTALL, "Install git or install the plugin from a local directory.",
                   "Cannot fetch provider source: git is not installed.");
}

static int add_env(struct git *g, const char *name, const char *value) {
    char *text = str_printf("%s=%s", name, value);
    return text ? strv_take(&g->env, text) : -ENOMEM;
}

/* The other end of file:// is a git of this machine that inherits our environment: there is no line
 * to save bytes on, so it need not look for differences or compress. Elsewhere git gets no file. */
static const char local_config[] = "[pack]\n\twindow = 0\n\tcompression = 0\n[uploadpack]\n\tallowFilter = true\n";

static int build_env(struct git *g, const struct store *s, const char *path, const char *config, bool allow_insecure) {
    bool ssh = source_is_ssh(g->url);
    const char *home = ssh ? env_get(s->environ_, "HOME") : NULL;
    int r = add_env(g, "PATH", path);
    r |= add_env(g, "HOME", home ? home : g->home);
    r |= add_env(g, "LC_ALL", "C");
    r |= add_env(g, "GIT_TERMINAL_PROMPT", "0");
    r |= add_env(g, "GIT_CONFIG_NOSYSTEM", "1");
    r |= add_env(g, "GIT_CONFIG_GLOBAL", config ? config : "/dev/null");
    r |= add_env(g, "GIT_NO_LAZY_FETCH", "1");
    r |= add_env(g, "GIT_ALLOW_PROTOCOL", allow_insecure ? "https:ssh:http:git:file" : "https:ssh");
    for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
        const char *value = env_get(s->environ_, passed[i]);
        if (value) r |= add_env(g, passed[i], value);
    }
    if (ssh) {
        const char *agent = env_get(s->environ_, "SSH_AUTH_SOCK");
        if (agent) r |= add_env(g, "SSH_AUTH_SOCK", agent);
        r |= add_env(g, "GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        r |= add_env(g, "GIT_SSH_VARIANT", "ssh");
    }
    return r ? -ENOMEM : 0;
}

static int write_text(const char *dir, const char *name, const char *text) {
    _cleanup_free_ char *path = path_join(dir, name);
    if (!path) return -ENOMEM;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -errno;
    size_t n = strlen(text);
    ssize_t k = write(fd, text, n);
    return k < 0 ? -errno : (size_t)k == n ? 0 : -ENOSPC;
}

/* Without the promise that a filtered fetch leaves in it, git never goes for a missing blob again. */
static int write_config(struct git *g) {
    return write_text(g->repo, "config",
                      g->sha256 ? "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
                                  "[extensions]\n\tobjectformat = sha256\n"
                                : "[core]\n\trepositoryformatversion = 0\n\tbare = true\n");
}

/* A bare repository is three names; git itself is not asked, which templates could answer. */
static int make_repo(struct git *g, abx_error **reterr) {
    int r = fs_remove_tree(g->repo);
    static const char *const dirs[] = {"", "objects", "refs"};
    for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++) {
        _cleanup_free_ char *path = path_join(g->repo, dirs[i]);
        if (!path) return err_nomem(reterr);
        r = fs_mkdir_p(path, 0700);
    }
    if (r >= 0) r = write_text(g->repo, "HEAD", "ref: refs/heads/none\n");
    if (r >= 0) r = write_config(g);
    return r < 0 ? err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the staging folder") : 0;
}

int git_new(struct git **ret, const struct store *s, const char *stage, const struct source *source, bool allow_insecure,
            struct store_cancel *cancel, store_progress_fn progress, void *user, abx_error **reterr) {
    _cleanup_git_ struct git *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(reterr);
    g->cancel = cancel;
    g->progress = progress;
    g->user = user;
    g->supervisor = s->supervisor;
    g->deadline_ms = time_mono_ms() + GIT_TIMEOUT_MS;
    g->stderr_tail = BUF_INIT(0);
    g->repo = path_join(stage, "git");
    g->home = path_join(stage, "git-home");
    g->url = strdup(source->url);
    g->ref = strdup(source->ref);
    g->subdir = strdup(source->subdir);
    if (!g->repo || !g->home || !g->url || !g->ref || !g->subdir) return err_nomem(reterr);
    g->ref_is_commit = source->ref_is_commit;
    g->sha256 = g->ref_is_commit && strlen(g->ref) == 64;
    const char *path = env_get(s->environ_, "PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    int r = find_program(g, path, reterr);
    if (r < 0) return r;
    _cleanup_free_ char *config = NULL;
    if (!strncasecmp(g->url, "file:", 5) && !(config = path_join(stage, "git-config"))) return err_nomem(reterr);
    if (build_env(g, s, path, config, allow_insecure) < 0) return err_nomem(reterr);
    r = fs_mkdir_p(g->home, 0700);
    if (r == 0 && config) r = write_text(stage, "git-config", local_config);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the staging folder");
    r = make_repo(g, reterr);
    if (r < 0) return r;
    *ret = TAKE_PTR(g);
    return 0;
}

static int try_fetch(struct git *g, bool shallow, int *ret_status, abx_error **reterr) {
    _cleanup_free_ char *spec = str_printf("+%s:" FETCHED, g->ref);
    if (!spec) return err_nomem(reterr);
    const char *argv[16];
    size_t n = 0;
    argv[n++] = "fetch";
    argv[n++] = g->progress ? "--progress" : "--quiet";
    if (shallow) argv[n++] = "--depth=1";
    argv[n++] = "--no-tags";
    argv[n++] = "--no-recurse-submodules";
    argv[n++] = "--no-write-fetch-head";
    argv[n++] = "--filter=blob:limit=10m";
    argv[n++] = "--";
    argv[n++] = g->url;
    argv[n++] = spec;
    argv[n] = NULL;
    return git_run(g, argv, -1, NULL, NULL, ret_status, reterr);
}

static bool stderr_says(struct git *g, const char *what) {
    const char *text = buf_cstr(&g->stderr_tail);
    return text && strcasestr(text, what);
}

/* The path of a URL, which is where people write what only the shorthand knows: //DIR and @REF. */
static const char *find_suffix(const char *url) {
    const char *scheme = strstr(url, "://"), *path = scheme ? strchr(scheme + 3, '/') : strchr(url, ':');
    const char *last = path ? strrchr(path, '/') : NULL;
    if (path && strstr(path + 1, "//"))
        return "In a URL, '//' does not separate a directory: pass it with --subdir, and a branch, tag or commit with --ref.";
    if (path && strchr(last ? last : path, '@')) return "In a URL, '@' does not separate a ref: pass it with --ref.";
    return NULL;
}

/* What people mistype most, in words that say what to do; the rest as git says it. */
static int fetch_failed(struct git *g, int status, abx_error **reterr) {
    size_t n = strlen(g->ref);
    if (stderr_says(g, "couldn't find remote ref") && streq(g->ref, "HEAD"))
        return err_set(reterr, ABX_E_INSTALL, "Commit the plugin there, or name a branch with --ref.",
                       "Cannot fetch provider source: the repository has no commit yet.");
    if (stderr_says(g, "couldn't find remote ref"))
        return err_set(reterr, ABX_E_INSTALL,
                       n >= 4 && strspn(g->ref, "0123456789abcdefABCDEF") == n
                           ? "Pass a branch or a tag, or all 40 digits of a commit: a short id is not accepted."
                           : "Pass a branch or a tag that is there, or all 40 digits of a commit.",
                       "Cannot fetch provider source: there is no branch or tag '%s'.", g->ref);
    if (g->ref_is_commit && stderr_says(g, "not our ref"))
        return err_set(reterr, ABX_E_INSTALL, "Pass a commit that was pushed and that a branch or a tag leads to.",
                       "Cannot fetch provider source: the repository has no commit %s.", g->ref);
    int r = git_failed(g, status, reterr);
    const char *hint = reterr && *reterr ? find_suffix(g->url) : NULL;
    if (hint) err_set_hint(*reterr, hint);
    return r;
}

static int fetch(struct git *g, abx_error **reterr) {
    int status;
    int r = try_fetch(g, true, &status, reterr);
    if (r < 0 || status == 0) return r;
    if (!g->sha256 && stderr_says(g, "server sha256")) {
        g->sha256 = true;
        r = make_repo(g, reterr);
        if (r == 0) r = try_fetch(g, true, &status, reterr);
        if (r < 0 || status == 0) return r;
    }
    /* Some servers know no shallow fetch; a ref that is not there is not there without it either. */
    if (!stderr_says(g, "couldn't find remote ref")) {
        r = make_repo(g, reterr);
        if (r == 0) r = try_fetch(g, false, &status, reterr);
        if (r < 0 || status == 0) return r;
    }
    return fetch_failed(g, status, reterr);
}

static int take_small(void *user, const char *data, size_t n) {
    struct buf *b = user;
    return buf_append(b, data, n);
}

int git_fetch(struct git *g, char ret_commit[GIT_OID_MAX], abx_error **reterr) {
    if (g->progress) {
        _cleanup_free_ char *text = str_printf("Fetching %s", g->url);
        if (text) g->progress(g->user, text);
    }
    int r = fetch(g, reterr);
    if (r < 0) return r;
    r = write_config(g);
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot write the staging folder");
    _cleanup_buf_ struct buf out = BUF_INIT(SMALL_OUTPUT);
    const char *argv[] = {"rev-parse", "--verify", "--end-of-options", FETCHED "^{commit}", NULL};
    int status;
    r = git_run(g, argv, -1, take_small, &out, &status, reterr);
    if (r < 0) return r;
    if (status) return git_failed(g, status, reterr);
    while (out.len && out.data[out.len - 1] == '\n') out.len--;
    const char *text = buf_cstr(&out);
    size_t want = g->sha256 ? 64 : 40;
    if (!text || strlen(text) != want || strspn(text, "0123456789abcdef") != want)
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: git named no commit.");
    if (g->ref_is_commit && !streq(text, g->ref))
        return err_set(reterr, ABX_E_INSTALL, "Pass the id of the commit itself.",
                       "Cannot fetch provider source: asked for commit %s, got %s.", g->ref, text);
    memcpy(ret_commit, text, want + 1);
    return 0;
}
