/* .env files: KEY=VALUE lines with comments, export and quotes. Nothing is expanded. */
#ifndef CONFIG_DOTENV_H
#define CONFIG_DOTENV_H

#include <stddef.h>

struct dotenv_entry {
    char *key, *value;
    size_t line, line_end;      /* the whole of its lines, newline included */
    size_t value_at, value_end; /* as written, with quotes                  */
};

struct dotenv {
    struct dotenv_entry *entries;
    size_t count;
};

/* Lines that are no assignment are left alone, as other tools do. 0 or -ENOMEM. */
int dotenv_parse(struct dotenv *ret, const char *text, size_t n);
void dotenv_done(struct dotenv *d);
/* The last one wins; NULL when there is none. */
const char *dotenv_get(const struct dotenv *d, const char *key);
/* A new text with key set to value (the last line of that key changes, else one is added), or with
 * all its lines removed when value is NULL; everything else stays. -ENOTSUP when the text can't be
 * changed like that. free() it. */
int dotenv_edit(const char *text, size_t n, const char *key, const char *value, char **ret);

#endif
