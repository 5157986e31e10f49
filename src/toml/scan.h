/* A walk over the statements of a TOML text: where things are, not what they mean.
 *
 * The walk trusts a text that toml_parse() accepted; on any other it finds nonsense, but
 * stays within the text. */
#ifndef TOML_SCAN_H
#define TOML_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toml_text {
    const char *s;
    size_t n;
};

enum toml_kind { TOML_HEADER, TOML_ARRAY_HEADER, TOML_KEY };

struct toml_stmt {
    enum toml_kind kind;
    char **keys;              /* the path as written, decoded */
    size_t line, start;       /* where its line and its first key or bracket begin */
    size_t value, value_end;  /* of a key */
    size_t end;               /* behind the line's comment and newline */
};

/* What would overflow toml++: a reason and where it is, or NULL. */
const char *toml_guard(struct toml_text t, size_t *ret_at);
size_t toml_skip_blank(struct toml_text t, size_t i); /* spaces and tabs */
size_t toml_skip_value(struct toml_text t, size_t i);
/* Reads a dotted key at *i. 0, -ENOMEM, -EBADMSG. */
int toml_read_keys(struct toml_text t, size_t *i, char ***ret);
/* The statement at or behind *at; 1, 0 at the end, or negative. Releases what ret held. */
int toml_next(struct toml_text t, size_t *at, struct toml_stmt *ret);
void toml_stmt_done(struct toml_stmt *s);

#ifdef __cplusplus
}
#endif
#endif
