/* Looking commands up in the table. */
#include "cmd.h"

#include "base/buf.h"

const struct abx_cmd *cmd_find(const char *name) {
    bool sandbox = str_starts(name, "sandbox ");
    if (sandbox) name += strlen("sandbox ");
    for (size_t i = 0; cmd_table[i]; i++)
        if (streq(cmd_table[i]->name, name) && (!sandbox || (cmd_table[i]->flags & CMD_SANDBOX))) return cmd_table[i];
    return NULL;
}

/* The word of a command after group, when it belongs there: length and start. */
static const char *word_after(const struct abx_cmd *cmd, const char *group, size_t *ret_len) {
    const char *word = cmd->name;
    size_t n = strlen(group);
    if (streq(group, "sandbox")) {
        if (!(cmd->flags & CMD_SANDBOX)) return NULL;
    } else if (n) {
        if (strncmp(word, group, n) != 0 || word[n] != ' ') return NULL;
        word += n + 1;
    }
    *ret_len = strcspn(word, " ");
    return word;
}

bool cmd_is_group(const char *name) {
    size_t n;
    for (size_t i = 0; *name && cmd_table[i]; i++)
        if (word_after(cmd_table[i], name, &n)) return true;
    return false;
}

char **cmd_words(const char *group) {
    char **words = NULL;
    for (size_t i = 0; cmd_table[i]; i++) {
        size_t n;
        const char *start = cmd_table[i]->flags & CMD_HIDDEN ? NULL : word_after(cmd_table[i], group, &n);
        char *word = start ? strndup(start, n) : NULL;
        if (start && word && strv_contains(words, word)) {
            free(word);
        } else if (start && strv_take(&words, word) < 0) {
            return strv_free(words);
        }
    }
    if (!*group && strv_append(&words, "sandbox") < 0) return strv_free(words);
    return words;
}

int cmd_unknown(const char *group, const char *word, abx_error **reterr) {
    _cleanup_strv_ char **words = cmd_words(group);
    const char *near = str_nearest(word, (const char *const *)words);
    const char *space = *group ? " " : "";
    _cleanup_free_ char *hint = near ? str_printf("Did you mean 'abx %s%s%s'?", group, space, near)
                                     : str_printf("Run 'abx %s%s--help' to see the commands.", group, space);
    return err_set(reterr, ABX_E_CONFIG, hint, "Unknown command 'abx %s%s%s'.", group, space, word);
}

char *cmd_usage_line(const struct abx_cmd *cmd) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    const char *dashes = cmd->flags & CMD_COMMAND ? strstr(cmd->usage, "-- ") : NULL;
    buf_printf(&b, "abx %s ", cmd->name);
    /* The options stand before what follows "--". */
    if (dashes)
        buf_printf(&b, "%.*s[options] %s", (int)(dashes - cmd->usage), cmd->usage, dashes);
    else
        buf_printf(&b, "%s%s[options]", cmd->usage, *cmd->usage ? " " : "");
    return buf_take(&b);
}
