/* Classifies a source, applies the rules on transports and credentials, and resolves shorthands. */
#include "store/source.h"

#include <abx/value.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/tree.h"

#define URL_MAX 4096
#define REF_MAX 1024
#define HINT_TRANSPORT "Use https:// or ssh:// (or --allow-insecure-transport for testing)."

void source_done(struct source *s) {
    free(s->path);
    free(s->url);
    free(s->ref);
    free(s->subdir);
    *s = (struct source){0};
}

static int insecure(const char *text, abx_error **reterr) {
    return err_set(reterr, ABX_E_TRUST, HINT_TRANSPORT, "Insecure provider source '%s'.", text);
}

static int credentials(abx_error **reterr) {
    return err_set(reterr, ABX_E_TRUST,
                   "Use an SSH agent or a git credential helper (clone it yourself and install the directory).",
                   "Insecure provider source: credentials in URLs are not accepted.");
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.'; }

/* user@host:path, as ssh takes it. */
static bool is_scp(const char *s) {
    const char *at = strchr(s, '@');
    if (!at || at == s || *s == '-' || at[1] == '-') return false;
    for (const char *p = s; p < at; p++)
        if (!is_word(*p)) return false;
    const char *colon = strchr(at, ':');
    if (!colon || colon == at + 1 || !colon[1]) return false;
    for (const char *p = at + 1; p < colon; p++)
        if (!is_word(*p)) return false;
    return true;
}

bool source_is_ssh(const char *url) { return !strncasecmp(url, "ssh://", 6) || !strstr(url, "://"); }

static bool scheme_is(const char *url, size_t n, const char *scheme) {
    return strlen(scheme) == n && !strncasecmp(url, scheme, n);
}

/* The transport rule of store.md, also for a URL that a receipt names. */
static int check_url(const char *url, bool allow_insecure, abx_error **reterr) {
    if (strlen(url) > URL_MAX || !utf8_valid(url, strlen(url)))
        return err_set(reterr, ABX_E_INSTALL, NULL, "The source URL is too long or not valid UTF-8.");
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\')
            return err_set(reterr, ABX_E_INSTALL, NULL, "The source URL holds white space or control characters.");
    const char *sep = strstr(url, "://");
    if (!sep) return is_scp(url) ? 0 : insecure(url, reterr);
    const char *host = sep + 3;
    size_t n = (size_t)(sep - url), end = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', end);
    bool ssh = scheme_is(url, n, "ssh");
    /* A user name is how ssh works; anywhere else, and with a password, it is a credential. */
    if (at && (!ssh || memchr(host, ':', (size_t)(at - host)))) return credentials(reterr);
    const char *name = at ? at + 1 : host;
    if (*host == '-' || *name == '-') return insecure(url, reterr);
    if (scheme_is(url, n, "https") || ssh) return 0;
    if (allow_insecure && (scheme_is(url, n, "http") || scheme_is(url, n, "git") || scheme_is(url, n, "file")))
        return 0;
    return insecure(url, reterr);
}

static bool is_hex(const char *s, size_t n) {
    if (strlen(s) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)s[i])) return false;
    return true;
}

/* What git accepts as a ref, and nothing that it would read as an option or a refspec. */
static int set_ref(struct source *s, const char *ref, abx_error **reterr) {
    if (!ref) ref = "HEAD";
    size_t n = strlen(ref);
    bool ok = n > 0 && n <= REF_MAX && utf8_valid(ref, n) && !strchr("-+/@", *ref) && !strstr(ref, "..") &&
              !strstr(ref, "@{") && !strstr(ref, "//") && ref[n - 1] != '/' && ref[n - 1] != '.' &&
              !strpbrk(ref, "~^:?*[\\ ");
    for (size_t i = 0; i < n && ok; i++) ok = (unsigned char)ref[i] >= 0x20 && ref[i] != 0x7f;
    if (!ok) {
        _cleanup_free_ char *shown = tree_show_path(ref, n);
        return err_set(reterr, ABX_E_INSTALL, "Pass a branch, a tag or a full commit id.", "Unsafe --ref '%s'.",
                       shown ? shown : "");
    }
    s->ref = strdup(ref);
    if (!s->ref) return err_nomem(reterr);
    s->ref_is_commit = is_hex(ref, 40) || is_hex(ref, 64);
    for (char *p = s->ref; s->ref_is_commit && *p; p++) *p = (char)tolower((unsigned char)*p);
    return 0;
}

static int set_subdir(struct source *s, const char *subdir, abx_error **reterr) {
    const char *given = subdir ? subdir : "";
    _cleanup_free_ char *copy = strdup(given);
    if (!copy) return err_nomem(reterr);
    size_t n = strlen(copy);
    if (n > 1 && copy[n - 1] == '/') copy[--n] = '\0';
    if (n && !tree_path_valid(copy, n)) {
        _cleanup_free_ char *shown = tree_show_path(given, strlen(given));
        return err_set(reterr, ABX_E_INSTALL, NULL, "Unsafe --subdir '%s'.", shown ? shown : "");
    }
    s->subdir = TAKE_PTR(copy);
    return 0;
}

static int conflict(const char *what, const char *a, const char *b, abx_error **reterr) {
    return err_set(reterr, ABX_E_INSTALL, "Name it once.", "The source says %s '%s' and --%s says '%s'.", what, a, what, b);
}

static bool same_ref(const char *a, const char *b) {
    return streq(a, b) || (is_hex(a, 40) && !strcasecmp(a, b)) || (is_hex(a, 64) && !strcasecmp(a, b));
}

/* owner/repo[//subdir][@ref]: 1 when it was that. */
static int parse_shorthand(struct source *s, const char *text, const abx_install_opts *o, abx_error **reterr) {
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || !isalnum((unsigned char)*text)) return 0;
    for (const char *p = text; p < slash; p++)
        if (!is_word(*p)) return 0;
    const char *repo = slash + 1;
    size_t n = 0;
    while (is_word(repo[n])) n++;
    if (n == 0 || *repo == '.') return 0;
    const char *rest = repo + n, *at = NULL;
    if (*rest && !str_starts(rest, "//") && *rest != '@') return 0;
    if (n > 4 && !memcmp(repo + n - 4, ".git", 4)) n -= 4;
    /* A directory may hold an "@", a ref hardly does: the last one counts. */
    at = strrchr(rest, '@');
    _cleanup_free_ char *sub = NULL, *url = NULL;
    if (str_starts(rest, "//")) {
        sub = strndup(rest + 2, at ? (size_t)(at - rest - 2) : strlen(rest + 2));
        if (!sub) return err_nomem(reterr);
    } else if (at && at != rest) {
        return 0;
    }
    url = str_printf("https://github.com/%.*s/%.*s.git", (int)(slash - text), text, (int)n, repo);
    if (!url) return err_nomem(reterr);
    const char *ref = at ? at + 1 : NULL;
    if (sub && *sub && o->subdir) {
        struct source a = {0}, b = {0};
        int r = set_subdir(&a, sub, reterr);
        if (r == 0) r = set_subdir(&b, o->subdir, reterr);
        bool same = r == 0 && streq(a.subdir, b.subdir);
        source_done(&a);
        source_done(&b);
        if (r < 0) return r;
        if (!same) return conflict("subdir", sub, o->subdir, reterr);
    }
    if (ref && o->ref && !same_ref(ref, o->ref)) return conflict("ref", ref, o->ref, reterr);
    int r = set_subdir(s, sub && *sub ? sub : o->subdir, reterr);
    if (r == 0) r = set_ref(s, ref ? ref : o->ref, reterr);
    if (r < 0) return r;
    s->git = true;
    s->url = TAKE_PTR(url);
    return 1;
}

static int parse_dir(struct source *s, const char *text, const abx_install_opts *o, abx_error **reterr) {
    if (o->ref)
        return err_set(reterr, ABX_E_INSTALL, "Install from a git URL, or leave --ref out.",
                       "--ref needs a git source; '%s' is a local directory.", text);
    int r = set_subdir(s, o->subdir, reterr);
    if (r < 0) return r;
    _cleanup_free_ char *joined = *s->subdir ? path_join(text, s->subdir) : strdup(text);
    if (!joined) return err_nomem(reterr);
    s->path = realpath(joined, NULL);
    if (!s->path) return err_errno(reterr, ABX_E_INSTALL, -errno, "Cannot fetch provider source: cannot open '%s'", joined);
    if (!fs_is_dir(s->path))
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: '%s' is not a directory.", joined);
    if (!utf8_valid(s->path, strlen(s->path)))
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: the path is not valid UTF-8.");
    return 0;
}

static int parse_git(struct source *s, const char *url, const abx_install_opts *o, abx_error **reterr) {
    int r = check_url(url, o->allow_insecure_transport, reterr);
    if (r == 0) r = set_subdir(s, o->subdir, reterr);
    if (r == 0) r = set_ref(s, o->ref, reterr);
    if (r < 0) return r;
    s->git = true;
    s->url = strdup(url);
    return s->url ? 0 : err_nomem(reterr);
}

int source_parse(struct source *ret, const abx_install_opts *o, abx_error **reterr) {
    _cleanup_source_ struct source s = {0};
    const char *text = o->source ? o->source : "";
    if (!*text) return err_set(reterr, ABX_E_INSTALL, NULL, "The provider source is empty.");
    int r;
    if (fs_is_dir(text)) {
        r = parse_dir(&s, text, o, reterr);
    } else if (o->link) {
        r = err_set(reterr, ABX_E_INSTALL, NULL, "--link needs a local directory.");
    } else {
        const char *url = str_starts(text, "git+") ? text + 4 : text;
        if (strstr(url, "://") || strstr(url, "::") || is_scp(url)) {
            r = parse_git(&s, url, o, reterr);
        } else {
            r = fs_exists(text) ? 0 : parse_shorthand(&s, url, o, reterr);
            if (r == 0) {
                _cleanup_free_ char *shown = tree_show_path(text, strlen(text));
                r = err_set(reterr, ABX_E_INSTALL,
                            "Pass a local directory, owner/repo//subdir[@ref], or an https://, ssh:// or "
                            "git@host:path URL.",
                            "Cannot fetch provider source: '%s' is not a directory or a git URL.",
                            shown ? shown : "");
            }
        }
    }
    if (r < 0) return r;
    *ret = s;
    s = (struct source){0};
    return 0;
}

int source_from_receipt(struct source *ret, const abx_value *source, const char *ref, bool allow_insecure, abx_error **reterr) {
    _cleanup_source_ struct source s = {.git = true};
    const char *url = abx_value_get_string(source, "url");
    if (!url) return err_set(reterr, ABX_E_INSTALL, NULL, "The receipt names no git source.");
    int r = check_url(url, allow_insecure, reterr);
    if (r == 0) r = set_subdir(&s, abx_value_get_string(source, "subdir"), reterr);
    if (r == 0) r = set_ref(&s, ref ? ref : abx_value_get_string(source, "ref"), reterr);
    if (r < 0) return r;
    s.url = strdup(url);
    if (!s.url) return err_nomem(reterr);
    *ret = s;
    s = (struct source){0};
    return 0;
}

abx_value *source_to_value(const struct source *s, bool link, const char *commit) {
    _cleanup_value_ abx_value *v = abx_value_new_object();
    int r = abx_value_set_string(v, "type", s->git ? "git" : link ? "link" : "local");
    if (!s->git) {
        r |= abx_value_set_string(v, "path", s->path);
    } else {
        r |= abx_value_set_string(v, "url", s->url);
        r |= abx_value_set_string(v, "ref", s->ref);
        r |= abx_value_set_string(v, "commit", commit);
        r |= abx_value_set_string(v, "subdir", s->subdir);
    }
    return r ? NULL : TAKE_PTR(v);
}
