/* Full Unicode case folding by a table of ranges; no locale is asked. */
#include "store/casefold.h"

#include <stdint.h>

#include "base/utf8.h"
#include "store/casefold.def"

struct fold_range {
    uint32_t first, last;
    int32_t step, distance;
};
struct fold_multi {
    uint32_t cp;
    const char *text;
};

#define RANGE_ROW(a, b, s, d) {a, b, s, d},
#define MULTI_ROW(cp, text) {cp, text},
static const struct fold_range ranges[] = {FOLD_RANGES(RANGE_ROW)};
static const struct fold_multi multis[] = {FOLD_MULTI(MULTI_ROW)};

static const char *find_multi(uint32_t cp) {
    size_t lo = 0, hi = ARRAY_SIZE(multis);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (multis[mid].cp == cp) return multis[mid].text;
        if (multis[mid].cp < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static uint32_t fold_single(uint32_t cp) {
    size_t lo = 0, hi = ARRAY_SIZE(ranges);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct fold_range *r = &ranges[mid];
        if (cp > r->last)
            lo = mid + 1;
        else if (cp < r->first)
            hi = mid;
        else
            return (cp - r->first) % (uint32_t)r->step ? cp : (uint32_t)((int64_t)cp + r->distance);
    }
    return cp;
}

int casefold(struct buf *out, const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x80) {
            buf_char(out, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c));
            i++;
            continue;
        }
        uint32_t cp;
        size_t len = utf8_decode(s + i, n - i, &cp);
        if (!len) return -EINVAL;
        const char *multi = find_multi(cp);
        if (multi) {
            buf_str(out, multi);
        } else {
            char text[4];
            buf_append(out, text, utf8_encode(fold_single(cp), text));
        }
        i += len;
    }
    return out->err;
}
