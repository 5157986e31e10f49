/* JUnit's XML, as continuous integration reads it: one document when all is over. */
#include "contract/report.h"

#include "base/utf8.h"
#include "base/util.h"

/* XML 1.0 can't hold most control characters, not even escaped: they are written as \xNN. */
static void write_text(struct buf *out, const char *s) {
    size_t n = strlen(s);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = utf8_decode(s + i, n - i, &cp);
        bool bad = !len || (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0) || cp == 0xfffe || cp == 0xffff;
        if (bad)
            for (size_t k = 0; k < (len ?: 1); k++) buf_printf(out, "\\x%02x", (unsigned char)s[i + k]);
        else if (strchr("&<>\"'\n\t", s[i]))
            buf_printf(out, "&#%d;", s[i]);
        else
            buf_append(out, s + i, len);
        i += len ?: 1;
    }
}

static void write_attribute(struct buf *out, const char *name, const char *value) {
    buf_printf(out, " %s=\"", name);
    write_text(out, value);
    buf_char(out, '"');
}

static void write_counts(struct buf *out, const struct contract_run *run) {
    buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\"", run->count, run->failed,
               run->skipped, run->seconds);
}

static void write_case(struct buf *out, const struct contract_run *run, const struct contract_result *r) {
    _cleanup_free_ char *class_ = str_printf("contract.%s", run->id);
    buf_str(out, "    <testcase");
    write_attribute(out, "classname", class_ ?: "contract");
    write_attribute(out, "name", r->which->name);
    buf_printf(out, " time=\"%.3f\"", r->seconds);
    if (r->outcome == CONTRACT_PASSED) {
        buf_str(out, "/>\n");
        return;
    }
    buf_printf(out, ">\n      <%s", r->outcome == CONTRACT_FAILED ? "failure" : "skipped");
    write_attribute(out, "message", r->detail);
    if (r->outcome == CONTRACT_FAILED) {
        buf_char(out, '>');
        write_text(out, r->which->about);
        buf_str(out, "</failure>\n");
    } else {
        buf_str(out, "/>\n");
    }
    buf_str(out, "    </testcase>\n");
}

void report_junit(struct buf *out, const struct contract_run *run) {
    char now[TIME_RFC3339];
    _cleanup_free_ char *name = str_printf("abx provider test %s", run->id);
    time_rfc3339_now(now);
    buf_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    write_counts(out, run);
    buf_str(out, ">\n  <testsuite");
    write_attribute(out, "name", name ?: "abx provider test");
    write_counts(out, run);
    write_attribute(out, "timestamp", now);
    buf_str(out, ">\n");
    for (size_t i = 0; i < run->count; i++) write_case(out, run, &run->results[i]);
    buf_str(out, "  </testsuite>\n</testsuites>\n");
}
