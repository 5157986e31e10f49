/* TOML in (toml++ behind parse.cc) and edited in place (edit.c). */
#ifndef TOML_TOML_H
#define TOML_TOML_H

#include <abx/value.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toml_pos { unsigned line, column; }; /* from 1; 0: not known */

/* Dates and times become strings. 0, -ENOMEM, or -EBADMSG with reason (one line, free()) and
 * place. Refuses what would overflow toml++ (limits.h) before parsing. */
int toml_parse(const char *text, size_t n, abx_value **ret, char **ret_reason, struct toml_pos *ret_pos);

/* Where in the text the value of table.key is: bytes [start, end). -ENOENT. */
int toml_find(const char *text, size_t n, const char *const *path, size_t *ret_start, size_t *ret_end);
/* A new text with table.key set to a TOML value literal, or removed when literal is NULL;
 * comments, order and everything else stay. table may be dotted: path parts, NULL-ended,
 * the last is the key. Re-parsed and compared before it is returned. -EBADMSG: text is no
 * TOML, -EINVAL: literal is no value, -ENOENT: nothing to remove, -ENOTDIR: a part of the
 * path is no table, -ENOTSUP: not possible in place (a whole table is one such). */
int toml_edit(const char *text, size_t n, const char *const *path, const char *literal, char **ret);
/* Removes a whole [table] with its keys and header. */
int toml_remove_table(const char *text, size_t n, const char *const *path, char **ret);
/* "text" as a basic string literal; free(). */
char *toml_quote(const char *text);

#ifdef __cplusplus
}
#endif
#endif
