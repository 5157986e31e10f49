/* Places in a TOML text, for the files of this room that edit it. The text is valid TOML. */
#ifndef TOML_PLACE_H
#define TOML_PLACE_H

#include <stdint.h>

#include "base/str.h"
#include "toml/scan.h"

struct span {
    size_t start, end;
};

enum how { /* where a key that is not there belongs; the better is the larger */
    HOW_APPEND,  /* a new table at the end of the text */
    HOW_DOTTED,  /* beside dotted keys that make the table */
    HOW_SECTION, /* in the section of the table */
    HOW_INLINE   /* in an inline table */
};

struct place {
    bool found;
    struct span value, cut; /* of what was found, and what goes when it is removed */
    enum how how;
    size_t at;         /* where to insert */
    size_t given;      /* parts of the path the surroundings say already */
    struct span indent;
    bool first;        /* into an empty inline table */
};

static inline void strv_seal(char ***v) {
    *v = strv_free(*v);
}

size_t place_path_len(const char *const *path);
/* How many parts of a and then b, two lists in a row, are the start of path; SIZE_MAX when
 * they are not (then path is neither inside nor the same). */
size_t place_prefix_len(const char *const *path, char *const *a, char *const *b);
/* Whether the first n parts of path are the start of a and then b. */
bool place_is_inside(const char *const *path, size_t n, char *const *a, char *const *b);
/* Looks for path, of which given parts are said already, in the inline table that starts at open. */
int place_find_inline(struct toml_text t, size_t open, const char *const *path, size_t given, struct place *p);
/* The start of the comment lines right above a header, which belong to it. */
size_t place_above_header(struct toml_text t, size_t line, size_t floor);
/* Finds the value of path, or the best place to put it. */
int place_find(struct toml_text t, const char *const *path, struct place *p);

#endif
