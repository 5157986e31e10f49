/* The consent screen. Everything a plugin says passes utf8_sanitize() before it is shown, so that
 * no text of a manifest can move the cursor or hide a line. */
#include "consent.h"

#include <errno.h>
#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "out.h"
#include "ui.h"

abx_consent consent_known(const struct cli *cli) {
    if (opt_flag(cli, "yes")) return ABX_CONSENT_YES_FLAG;
    return ui_can_ask(cli) ? ABX_CONSENT_PERSON : ABX_CONSENT_NONE;
}

char *consent_read_line(void) {
    _cleanup_buf_ struct buf b = BUF_INIT(64 * 1024);
    char ch;
    ssize_t n;
    while ((n = read(STDIN_FILENO, &ch, 1)) != 0) {
        if (n < 0 && errno == EINTR && !ui_signal()) continue;
        if (n < 0) return NULL;
        if (ch == '\n') return buf_take(&b);
        buf_char(&b, ch);
    }
    return b.len ? buf_take(&b) : NULL;
}

/* ---- parts of the screen ---------------------------------------------------------------- */

/* A word of a command line, quoted when a space in it could be taken for the next word. */
static void add_word(struct buf *b, const char *word) {
    bool plain = *word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:@%,") == strlen(word);
    if (!plain) buf_char(b, '\'');
    utf8_sanitize(b, word, strlen(word), false);
    if (!plain) buf_char(b, '\'');
}

/* A list on one line; an item that is an object is shown by its key, secret ones marked. */
static char *join(const abx_value *list, const char *separator, bool words) {
    struct buf b = BUF_INIT(0);
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const abx_value *item = abx_value_at(list, i);
        const char *text = abx_value_string(item) ?: abx_value_get_string(item, "key") ?: abx_value_get_string(item, "name") ?: "?";
        if (i) buf_str(&b, separator);
        if (words)
            add_word(&b, text);
        else
            utf8_sanitize(&b, text, strlen(text), false);
        if (abx_value_bool(abx_value_get(item, "secret"))) buf_str(&b, " (secret)");
    }
    char *text = buf_take(&b);
    buf_done(&b);
    return text;
}

static void line(struct buf *b, const char *label, const char *text) {
    buf_printf(b, "  %s%-13s%s ", out_err_style(OUT_DIM), label, out_err_style(OUT_PLAIN));
    utf8_sanitize(b, text ?: "", strlen(text ?: ""), false);
    buf_char(b, '\n');
}

static void line_list(struct buf *b, const char *label, const abx_value *list, const char *none) {
    _cleanup_free_ char *text = join(list, ", ", false);
    if (abx_value_size(list) || none) line(b, label, abx_value_size(list) ? text : none);
}

static void source(struct buf *b, const abx_value *v) {
    static const char *const parts[][2] = {{"path", "Directory"}, {"url", "Repository"}, {"ref", "Ref"},
                                           {"commit", "Commit"},  {"subdir", "Subdirectory"}};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *text = abx_value_get_string(v, parts[i][0]);
        if (text && *text) line(b, parts[i][1], text);
    }
}

static const char *trust_text(const char *trust) {
    if (streq0(trust, "unpinned")) return "unpinned: the source can move after this review";
    if (streq0(trust, "link")) return "link: the directory is used as it is, changes to it are not checked";
    return trust;
}

static void security(struct buf *b, const abx_value *v) {
    line_list(b, "Network", abx_value_get(v, "network"), "none");
    line_list(b, "Files", abx_value_get(v, "filesystem"), "none");
    line_list(b, "Environment", abx_value_get(v, "env_passthrough"), "none");
    line(b, "Processes", abx_value_bool(abx_value_get(v, "spawns_processes")) ? "starts others" : "starts none");
}

/* What the last consent said about each thing that is different now. */
static void changes(struct buf *b, const abx_value *consent, const abx_value *previous) {
    const abx_value *list = abx_value_get(consent, "changes");
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const char *key = abx_value_string(abx_value_at(list, i)) ?: "";
        _cleanup_free_ char *was = abx_value_print(abx_value_get(previous, key), ABX_PRINT_SPACED, NULL);
        _cleanup_free_ char *now = abx_value_print(abx_value_get(consent, key), ABX_PRINT_SPACED, NULL);
        _cleanup_free_ char *text = str_printf("%s: %s -> %s", key, was ?: "?", now ?: "?");
        buf_str(b, out_err_style(OUT_YELLOW));
        line(b, "Changed", previous ? text : key);
        buf_str(b, out_err_style(OUT_PLAIN));
    }
}

/* What an install over an installed id takes the place of. */
static void replaced(struct buf *b, const abx_value *previous) {
    const abx_value *from = abx_value_get(previous, "source");
    const char *where = abx_value_get_string(from, "path") ?: abx_value_get_string(from, "url");
    const char *commit = abx_value_get_string(from, "commit");
    if (!where) return;
    _cleanup_free_ char *text = str_printf("%s from %s%s%s (%s)", abx_value_get_string(previous, "version") ?: "?", where,
                                           commit ? " at " : "", commit ?: "", abx_value_get_string(previous, "trust") ?: "?");
    line(b, "Replaces", text);
}

static void screen(struct buf *b, abx_plan *plan, const char *verb) {
    const abx_value *v = abx_plan_consent(plan);
    const char *id = abx_value_get_string(v, "id") ?: "", *name = abx_value_get_string(v, "name") ?: "";
    const char *name_zh = abx_value_get_string(v, "name_zh") ?: "";
    _cleanup_free_ char *features = abx_features_line(abx_value_get(v, "features"));
    _cleanup_free_ char *runtime = join(abx_value_get(v, "runtime"), " ", true);
    _cleanup_free_ char *names = str_printf("%s%s%s", name, *name_zh ? " / " : "", name_zh);
    _cleanup_free_ char *title = str_printf("%s provider %s %s", verb, id, abx_value_get_string(v, "version") ?: "");
    buf_str(b, out_err_style(OUT_BOLD));
    utf8_sanitize(b, title ?: "", strlen(title ?: ""), false);
    buf_printf(b, "%s\n\n", out_err_style(OUT_PLAIN));
    line(b, "Name", names);
    source(b, abx_value_get(v, "source"));
    const char *digest = abx_value_get_string(v, "tree_sha256") ?: "";
    line(b, "Tree digest", *digest ? digest : "none");
    line(b, "Trust", trust_text(abx_value_get_string(v, "trust")));
    line(b, "Runs", runtime);
    line(b, "Features", features);
    line_list(b, "Commands", abx_value_get(v, "commands"), NULL);
    security(b, abx_value_get(v, "security"));
    line_list(b, "Settings", abx_value_get(v, "fields"), "none");
    line_list(b, "Shared keys", abx_value_get(v, "inherit"), "none");
    replaced(b, abx_plan_previous(plan));
    changes(b, v, abx_plan_previous(plan));
    buf_str(b, "\nThe plugin will run with your rights. What it declares about network, files and\n"
               "processes is shown for your review; it is not enforced.\n\n");
}

static void show(const struct cli *cli, abx_plan *plan, const char *verb, bool person) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    if (person && !cli->json) {
        screen(&b, plan, verb);
    } else {
        _cleanup_free_ char *text = abx_value_print(abx_plan_consent(plan), ABX_PRINT_PRETTY, NULL);
        buf_printf(&b, "%s\n", text ?: "");
    }
    out_err_bytes((abx_bytes){(const uint8_t *)b.data, b.len});
}

abx_consent consent_ask(const struct cli *cli, abx_plan *plan, const char *verb) {
    abx_consent known = consent_known(cli);
    if (known == ABX_CONSENT_YES_FLAG) return known;
    if (!abx_plan_needs_consent(plan)) return ABX_CONSENT_NONE;
    bool person = known == ABX_CONSENT_PERSON;
    show(cli, plan, verb, person);
    if (!person) return ABX_CONSENT_NONE;
    _cleanup_free_ char *prompt = str_printf("%s? [y/N] ", verb);
    if (!prompt || out_err_bytes((abx_bytes){(const uint8_t *)prompt, strlen(prompt)}) < 0) return ABX_CONSENT_NONE;
    _cleanup_free_ char *answer = consent_read_line();
    if (!answer) out_note("%s", "");
    bool yes = answer && (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0);
    return yes ? ABX_CONSENT_PERSON : ABX_CONSENT_NONE;
}
