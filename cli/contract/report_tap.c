/* TAP version 14: a line a case as it ends, what went wrong as YAML. */
#include "contract/report.h"

/* A "#" would begin a directive. */
static void write_plain(struct buf *out, const char *s) {
    for (; *s; s++) {
        if (*s == '#' || *s == '\\') buf_char(out, '\\');
        buf_char(out, *s == '\n' ? ' ' : *s);
    }
}

/* JSON's strings are YAML's quoted ones. */
static void write_yaml(struct buf *out, const char *key, const char *text) {
    _cleanup_value_ abx_value *v = abx_value_new_string(text);
    _cleanup_free_ char *quoted = v ? abx_value_print(v, ABX_PRINT_COMPACT, NULL) : NULL;
    buf_printf(out, "  %s: %s\n", key, quoted ?: "\"\"");
}

static void write_head(struct buf *out, const struct contract_run *run) {
    buf_printf(out, "TAP version 14\n1..%zu\n", run->planned);
}

void report_tap(struct buf *out, const struct contract_run *run) {
    const struct contract_result *r = &run->results[run->count - 1];
    if (run->count == 1) write_head(out, run);
    buf_printf(out, "%sok %zu - %s", r->outcome == CONTRACT_FAILED ? "not " : "", run->count, r->which->name);
    if (r->outcome == CONTRACT_SKIPPED) {
        buf_str(out, " # SKIP ");
        write_plain(out, r->detail);
    }
    buf_char(out, '\n');
    if (r->outcome != CONTRACT_FAILED) return;
    buf_str(out, "  ---\n");
    write_yaml(out, "message", r->detail);
    buf_str(out, "  severity: fail\n");
    write_yaml(out, "about", r->which->about);
    buf_printf(out, "  duration_ms: %.0f\n  ...\n", r->seconds * 1000);
}

void report_tap_end(struct buf *out, const struct contract_run *run) {
    if (run->count == 0) write_head(out, run);
    if (run->count < run->planned)
        buf_printf(out, "Bail out! %s\n", run->signal ? "Interrupted" : "Stopped at the first failure");
}
