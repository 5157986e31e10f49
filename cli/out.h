/* What the command prints: results on standard output with every write checked, the rest on
 * standard error. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include "cmd.h"

#include "base/buf.h"

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_RED, OUT_GREEN, OUT_YELLOW, OUT_DIM };

/* when: "auto", "always", "never" or NULL. */
void out_init(const char *when, bool json);

/* ---- standard output: kept in a buffer, written when large and at the end ---- */
void out_str(const char *s);
void out_printf(const char *fmt, ...) _printf_(1, 2);
/* Foreign text: control characters, ANSI and bidi marks are taken out. NULL: nothing. */
void out_foreign(const char *s);
/* Foreign text and spaces up to width columns, and one space. */
void out_column(const char *s, size_t width);
void out_styled(enum out_style style, const char *s);
/* Bytes as they are, at once. 0, or -errno (also of an earlier write): nobody reads any more. */
int out_bytes(abx_bytes b);
int out_flush(void);
/* A value as the reference prints it, with a newline. */
void out_json(const abx_value *v);
/* Writes what is left. The exit status: status, or that of a lost output. */
int out_finish(int status);

/* ---- standard error ---- */
bool out_err_is_terminal(void);
void out_note(const char *fmt, ...) _printf_(1, 2); /* one line */
int out_err_bytes(abx_bytes b);
/* The escape sequence that begins a style on standard error, or "" without colour; OUT_PLAIN ends. */
const char *out_err_style(enum out_style style);
/* Prints the error as errors.md says; its exit status. */
int out_error(const abx_error *e);

/* ---- tables: cells row by row, columns as wide as their widest cell ---- */
struct out_table {
    size_t columns;
    char **cells;
};
/* Foreign text; NULL is "". */
void out_cell(struct out_table *t, const char *text);
/* The first row is a heading. Prints and empties. */
void out_table(struct out_table *t);

#endif
