/* UTF-8: check, cut, sanitise, measure. */
#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const void *s, size_t n, uint32_t *ret) {
    const unsigned char *p = s;
    if (n == 0) return 0;
    if (p[0] < 0x80) {
        *ret = p[0];
        return 1;
    }
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    size_t len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n < len) return 0;
    uint32_t cp = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        cp = cp << 6 | (p[i] & 0x3f);
    }
    if (len == 3 && (cp < 0x800 || (cp >= 0xd800 && cp <= 0xdfff))) return 0;
    if (len == 4 && (cp < 0x10000 || cp > 0x10ffff)) return 0;
    *ret = cp;
    return len;
}

bool utf8_valid(const void *s, size_t n) {
    const unsigned char *p = s, *end = p + n;
    while (p < end) {
        uint64_t word;
        if (end - p >= 8) {
            memcpy(&word, p, 8);
            if (!(word & 0x8080808080808080u)) {
                p += 8;
                continue;
            }
        }
        uint32_t cp;
        size_t len = utf8_decode(p, (size_t)(end - p), &cp);
        if (len == 0) return false;
        p += len;
    }
    return true;
}

size_t utf8_encode(uint32_t cp, char out[4]) {
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) cp = 0xfffd;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00u >> len & 0xff) | cp);
    return len;
}

size_t utf8_incomplete_tail(const void *s, size_t n) {
    const unsigned char *p = s;
    for (size_t have = 1; have <= 3 && have <= n; have++) {
        unsigned char lead = p[n - have];
        if ((lead & 0xc0) == 0x80) continue;
        if (lead < 0xc2 || lead > 0xf4) return 0;
        size_t need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if (have >= need) return 0;
        /* Completed by the lowest and the highest bytes: when neither is valid, none is. */
        unsigned char low[4] = {0, 0x80, 0x80, 0x80}, high[4] = {0, 0xbf, 0xbf, 0xbf};
        memcpy(low, p + n - have, have);
        memcpy(high, p + n - have, have);
        uint32_t cp;
        return utf8_decode(low, need, &cp) || utf8_decode(high, need, &cp) ? have : 0;
    }
    return 0;
}

/* Characters that show nothing, or that change how others show. */
static bool hidden(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0xad || cp == 0x61c || cp == 0x180e ||
           (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb) ||
           (cp >= 0xe0000 && cp <= 0xe007f);
}

typedef const unsigned char *bytes;

/* Past the bytes from..to. */
static bytes skip_class(bytes p, bytes end, unsigned from, unsigned to) {
    while (p < end && *p >= from && *p <= to)
        p++;
    return p;
}

/* Past the parameters and the final byte of a CSI; a byte that fits nowhere ends it unread. */
static bytes skip_csi(bytes p, bytes end) {
    p = skip_class(p, end, 0x30, 0x3f);
    p = skip_class(p, end, 0x20, 0x2f);
    return p < end && *p >= 0x40 && *p <= 0x7e ? p + 1 : p;
}

/* Past an OSC, DCS, SOS, PM or APC string and its end. One never ended goes up to the end of
 * its line, so that it cannot hide what comes after. */
static bytes skip_string(bytes p, bytes end) {
    for (; p < end; p++) {
        if (*p == '\n') return p;
        if (*p == 0x07 || *p == 0x18 || *p == 0x1a) return p + 1;
        if (*p == 0x1b) return p + 1 < end && p[1] == '\\' ? p + 2 : p;
        if (*p == 0xc2 && p + 1 < end && p[1] == 0x9c) return p + 2;
    }
    return p;
}

/* Past an escape sequence whose introducer (ESC, or a C1 control) ends at p. */
static bytes skip_sequence(uint32_t intro, bytes p, bytes end) {
    if (intro == 0x1b) {
        if (p == end) return p;
        if (*p >= 0x40 && *p <= 0x5f) {
            intro = *p++ + 0x40u;
        } else {
            p = skip_class(p, end, 0x20, 0x2f);
            return p < end && *p >= 0x30 && *p <= 0x7e ? p + 1 : p;
        }
    }
    if (intro == 0x9b) return skip_csi(p, end);
    bool string = intro == 0x90 || intro == 0x98 || (intro >= 0x9d && intro <= 0x9f);
    return string ? skip_string(p, end) : p;
}

int utf8_sanitize(struct buf *out, const void *s, size_t n, bool keep_newlines) {
    const unsigned char *p = s, *end = p + n;
    while (p < end && !out->err) {
        const unsigned char *run = p;
        p = skip_class(p, end, 0x20, 0x7e);
        if (p > run) buf_append(out, run, (size_t)(p - run));
        if (p == end) break;

        uint32_t cp;
        size_t len = utf8_decode(p, (size_t)(end - p), &cp);
        if (len == 0) {
            buf_str(out, "\xef\xbf\xbd");
            p++;
        } else if (cp == '\n' || cp == '\t') {
            buf_char(out, cp == '\n' && keep_newlines ? '\n' : ' ');
            p++;
        } else if (cp == 0x1b || (cp >= 0x80 && cp <= 0x9f)) {
            p = skip_sequence(cp, p + len, end);
        } else {
            if (!hidden(cp)) buf_append(out, p, len);
            p += len;
        }
    }
    return out->err;
}

char *utf8_sanitize_str(const char *s) {
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    utf8_sanitize(&b, s, strlen(s), false);
    return buf_take(&b);
}

struct range {
    uint32_t from, to;
};

/* Blocks of combining marks and of characters that show nothing; by block, not by character:
 * enough for columns that line up. */
static const struct range narrow[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x05bf, 0x05bf}, {0x05c1, 0x05c2},
    {0x05c4, 0x05c5}, {0x05c7, 0x05c7}, {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0670, 0x0670},
    {0x06d6, 0x06dc}, {0x06df, 0x06e4}, {0x06e7, 0x06e8}, {0x06ea, 0x06ed}, {0x0711, 0x0711},
    {0x0730, 0x074a}, {0x07a6, 0x07b0}, {0x07eb, 0x07f3}, {0x0816, 0x0819}, {0x081b, 0x0823},
    {0x0825, 0x0827}, {0x0829, 0x082d}, {0x0859, 0x085b}, {0x08d3, 0x08e1}, {0x08e3, 0x0902},
    {0x093a, 0x093a}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0951, 0x0957},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x0eb1, 0x0eb1}, {0x0eb4, 0x0ebc},
    {0x0ec8, 0x0ecd}, {0x1160, 0x11ff}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20f0}, {0x302a, 0x302d}, {0x3099, 0x309a},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff},
};

/* East Asian wide and full-width forms, and emoji. */
static const struct range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0},
    {0x23f3, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f},
    {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5},
    {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5},
    {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728},
    {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
    {0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55},
    {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf},
    {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca},
    {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
    {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e},
    {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4},
    {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
    {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

static bool within(uint32_t cp, const struct range *list, size_t n) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (cp > list[mid].to)
            low = mid + 1;
        else if (cp < list[mid].from)
            high = mid;
        else
            return true;
    }
    return false;
}

size_t utf8_width(const char *s) {
    size_t n = strlen(s), columns = 0;
    while (n) {
        uint32_t cp;
        size_t len = utf8_decode(s, n, &cp);
        if (len == 0) {
            len = 1;
            columns++; /* shown as U+FFFD */
        } else if (cp < 0x300) {
            columns += !hidden(cp);
        } else if (!within(cp, narrow, ARRAY_SIZE(narrow))) {
            columns += within(cp, wide, ARRAY_SIZE(wide)) ? 2 : 1;
        }
        s += len;
        n -= len;
    }
    return columns;
}
