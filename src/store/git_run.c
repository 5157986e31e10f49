/* One run of git: its options, its progress, and what it said when it failed. */
#include "store/git_run.h"

#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/subproc.h"

#define PROGRESS_EVERY_MS 250

static int ignore_output(void *user, const char *data, size_t n) {
    (void)user, (void)data, (void)n;
    return 0;
}

/* Progress comes as lines that end in a carriage return; a few a second are enough. */
static void pass_progress(void *user, const char *data, size_t n) {
    struct git *g = user;
    for (size_t i = 0; i < n; i++) {
        if (data[i] != '\r' && data[i] != '\n') {
            if (g->line_len + 1 < sizeof g->line) g->line[g->line_len++] = data[i];
            continue;
        }
        g->line[g->line_len] = '\0';
        int64_t now = time_mono_ms();
        if (g->line_len && now - g->told_ms >= PROGRESS_EVERY_MS) {
            _cleanup_free_ char *clean = utf8_sanitize_str(g->line);
            if (clean) g->progress(g->user, clean);
            g->told_ms = now;
        }
        g->line_len = 0;
    }
}

int git_run(struct git *g, const char *const *argv, int stdin_fd, int (*on_output)(void *user, const char *data, size_t n),
            void *output_user, int *ret_status, abx_error **reterr) {
    _cleanup_free_ char *dir = str_printf("--git-dir=%s", g->repo);
    _cleanup_free_ char *hooks = str_printf("core.hooksPath=%s", g->home);
    if (!dir || !hooks) return err_nomem(reterr);
    const char *full[48] = {"git", "-c", hooks, "-c", "core.fsmonitor=false", "-c", "http.followRedirects=false",
                            "-c", "protocol.ext.allow=never", "-c", "credential.helper=", "-c", "gc.auto=0",
                            "-c", "maintenance.auto=false", "-c", "core.symlinks=false", "--no-replace-objects", dir};
    size_t n = 0;
    while (full[n]) n++;
    for (size_t i = 0; argv[i] && n + 1 < ARRAY_SIZE(full); i++) full[n++] = argv[i];
    struct subproc_spec spec = {.path = g->program,
                                .supervisor = g->supervisor,
                                .argv = (char *const *)full,
                                .env = g->env,
                                .stdin_fd = stdin_fd,
                                .cancel = g->cancel,
                                .deadline_ms = g->deadline_ms,
                                .on_output = on_output ? on_output : ignore_output,
                                .output_user = output_user,
                                .on_stderr = g->progress ? pass_progress : NULL,
                                .stderr_user = g};
    buf_reset(&g->stderr_tail);
    g->line_len = 0;
    int r = subproc_run(&spec, &g->stderr_tail, ret_status);
    if (r == -ECANCELED) return err_set(reterr, -ECANCELED, NULL, "Cancelled.");
    if (r == -ETIMEDOUT)
        return err_set(reterr, ABX_E_INSTALL, NULL,
                       "Cannot fetch provider source: git did not finish within %d seconds.", GIT_TIMEOUT_MS / 1000);
    if (r == -EBADMSG || r == -EMSGSIZE) return r; /* the reader's own error follows */
    if (r < 0) return err_errno(reterr, ABX_E_INSTALL, r, "Cannot fetch provider source: cannot run git");
    if (*ret_status == SUBPROC_STATUS_UNKNOWN) {
        /* The host program collects every child: then only git's words are left. */
        const char *said = buf_cstr(&g->stderr_tail);
        *ret_status = said && strstr(said, "fatal:") ? 1 : 0;
    }
    return 0;
}

/* The last line that starts with prefix (or any), cut out of text. */
static char *last_line(char *text, const char *prefix, char *before) {
    char *found = NULL, *save = NULL;
    for (char *l = strtok_r(text, "\r\n", &save); l; l = strtok_r(NULL, "\r\n", &save)) {
        if (before && l >= before) break;
        if (str_starts(l, prefix) && !str_blank(l)) found = l;
    }
    return found;
}

int git_failed(struct git *g, int status, abx_error **reterr) {
    const char *said = buf_cstr(&g->stderr_tail);
    _cleanup_free_ char *text = strdup(said ? said : "");
    _cleanup_free_ char *again = strdup(said ? said : "");
    if (!text || !again) return err_nomem(reterr);
    /* Of a remote that is a process here both ends are heard, in any order: ours says it was theirs. */
    char *line = last_line(text, strstr(text, "fatal: remote error: ") ? "fatal: remote error: " : "fatal: ", NULL);
    char *why = NULL;
    /* "Could not read from remote repository" alone says nothing; ssh said why on the line before. */
    if (line && strstr(line, "Could not read from remote")) why = last_line(again, "", again + (line - text));
    if (!line) line = last_line(again, "", NULL);
    if (!line)
        return err_set(reterr, ABX_E_INSTALL, NULL, "Cannot fetch provider source: git failed with status %d.", status);
    size_t n = strlen(line);
    while (n && (line[n - 1] == '.' || line[n - 1] == ' ')) n--;
    if (n > LIMIT_STDERR_QUOTE) n = LIMIT_STDERR_QUOTE;
    _cleanup_free_ char *hint = why ? str_printf("The transport said: %.*s.", LIMIT_STDERR_QUOTE, why) : NULL;
    return err_set(reterr, ABX_E_INSTALL, hint, "Cannot fetch provider source: %.*s.", (int)n, line);
}
