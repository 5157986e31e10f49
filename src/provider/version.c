/* PEP 440: versions compared, and the comparators of compat.requires.
 *
 * Numbers stay texts, so that no length of digits overflows. */
#include <errno.h>
#include <strings.h>

#include "base/str.h"
#include "provider/manifest.h"

struct span {
    const char *s;
    size_t n;
};

struct version {
    struct span epoch, release, pre, post, dev, local; /* release and local with their separators */
    char pre_kind;                                     /* 'a', 'b', 'r', or 0 */
    bool has_post, has_dev, has_local;
};

static bool digit(char c) { return c >= '0' && c <= '9'; }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static bool alnum(char c) { return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }
static bool separator(char c) { return c == '-' || c == '_' || c == '.'; }

static struct span digits(const char **s) {
    struct span d = {*s, 0};
    while (digit(**s)) (*s)++;
    d.n = (size_t)(*s - d.s);
    return d;
}

/* One of words (longest first), with a separator before and a number behind, both optional. */
static bool tagged(const char **s, const char *const *words, size_t *ret_word,
                   struct span *ret_number) {
    const char *p = *s;
    if (separator(*p)) p++;
    for (size_t i = 0; words[i]; i++) {
        size_t n = strlen(words[i]);
        if (strncasecmp(p, words[i], n) != 0) continue;
        p += n;
        if (separator(*p)) p++;
        *ret_word = i;
        *ret_number = digits(&p);
        *s = p;
        return true;
    }
    return false;
}

static bool parse_local(const char **s, struct span *ret) {
    const char *p = *s;
    do {
        if (!alnum(*++p)) return false;
        while (alnum(*p)) p++;
    } while (separator(*p));
    *ret = (struct span){*s + 1, (size_t)(p - *s - 1)};
    *s = p;
    return true;
}

/* text is parsed to its end, white space around it aside. */
static int parse(const char *s, size_t len, struct version *v, char buffer[256]) {
    static const char *const pre[] = {"alpha", "a", "beta", "b", "preview", "pre", "rc", "c", NULL};
    static const char *const post[] = {"post", "rev", "r", NULL}, *const dev[] = {"dev", NULL};
    size_t word;
    while (len && strchr(" \t\r\n\f\v", *s)) s++, len--;
    while (len && strchr(" \t\r\n\f\v", s[len - 1])) len--;
    if (len == 0 || len > 255 || memchr(s, '\0', len)) return -EINVAL;
    memcpy(buffer, s, len);
    buffer[len] = '\0';
    *v = (struct version){0};
    s = buffer;
    if (lower(*s) == 'v') s++;
    v->release = digits(&s);
    if (v->release.n == 0) return -EINVAL;
    if (*s == '!') {
        v->epoch = v->release;
        s++;
        v->release = digits(&s);
        if (v->release.n == 0) return -EINVAL;
    }
    while (*s == '.' && digit(s[1])) {
        s++;
        digits(&s);
    }
    v->release.n = (size_t)(s - v->release.s);
    if (tagged(&s, pre, &word, &v->pre)) v->pre_kind = word < 2 ? 'a' : word < 4 ? 'b' : 'r';
    if (*s == '-' && digit(s[1])) {
        s++;
        v->post = digits(&s);
        v->has_post = true;
    } else {
        v->has_post = tagged(&s, post, &word, &v->post);
    }
    v->has_dev = tagged(&s, dev, &word, &v->dev);
    if (*s == '+') {
        if (!parse_local(&s, &v->local)) return -EINVAL;
        v->has_local = true;
    }
    return *s ? -EINVAL : 0;
}

static int sign(int x) { return (x > 0) - (x < 0); }

/* Numbers of any length; an empty one is zero. */
static int compare_numbers(struct span a, struct span b) {
    while (a.n && *a.s == '0') a.s++, a.n--;
    while (b.n && *b.s == '0') b.s++, b.n--;
    if (a.n != b.n) return a.n < b.n ? -1 : 1;
    return a.n ? sign(memcmp(a.s, b.s, a.n)) : 0;
}

/* The next part of a separated text; empty at the end. */
static struct span next_part(struct span *rest) {
    struct span part = {rest->s, 0};
    while (part.n < rest->n && !separator(part.s[part.n])) part.n++;
    size_t used = part.n < rest->n ? part.n + 1 : part.n;
    rest->s += used;
    rest->n -= used;
    return part;
}

/* At most `parts` parts of both, what is missing being zero. */
static int compare_release(struct span a, struct span b, size_t parts) {
    int r = 0;
    for (; r == 0 && parts && (a.n || b.n); parts--)
        r = compare_numbers(next_part(&a), next_part(&b));
    return r;
}

static size_t release_parts(struct span release) {
    size_t n = 0;
    while (release.n) {
        next_part(&release);
        n++;
    }
    return n;
}

static int compare_local(struct span a, struct span b) {
    while (a.n && b.n) {
        struct span x = next_part(&a), y = next_part(&b);
        bool numbers[2] = {true, true};
        for (size_t i = 0; i < x.n; i++) numbers[0] &= digit(x.s[i]);
        for (size_t i = 0; i < y.n; i++) numbers[1] &= digit(y.s[i]);
        int r = numbers[0] - numbers[1];
        if (r == 0 && numbers[0]) r = compare_numbers(x, y);
        if (r == 0 && !numbers[0]) r = sign(strncasecmp(x.s, y.s, MIN_OF(x.n, y.n)));
        if (r == 0 && !numbers[0]) r = sign((x.n > y.n) - (x.n < y.n));
        if (r) return r;
    }
    return (a.n > 0) - (b.n > 0);
}

/* Where the pre-release puts a version among those of its release: 1.0.dev1 before 1.0a1
 * before 1.0. */
static int pre_rank(const struct version *v) {
    if (v->pre_kind) return v->pre_kind;
    return v->has_dev && !v->has_post ? 0 : 'z';
}

static int compare_public(const struct version *a, const struct version *b) {
    int r = compare_numbers(a->epoch, b->epoch);
    if (r == 0) r = compare_release(a->release, b->release, SIZE_MAX);
    if (r == 0) r = sign(pre_rank(a) - pre_rank(b));
    if (r == 0) r = compare_numbers(a->pre, b->pre);
    if (r == 0) r = a->has_post - b->has_post;
    if (r == 0) r = compare_numbers(a->post, b->post);
    if (r == 0) r = b->has_dev - a->has_dev;
    return r ? r : compare_numbers(a->dev, b->dev);
}

static int compare(const struct version *a, const struct version *b) {
    int r = compare_public(a, b);
    if (r == 0) r = a->has_local - b->has_local;
    return r ? r : compare_local(a->local, b->local);
}

int version_compare(const char *a, const char *b, int *ret) {
    char space[2][256];
    struct version x, y;
    if (parse(a, strlen(a), &x, space[0]) < 0 || parse(b, strlen(b), &y, space[1]) < 0)
        return -EINVAL;
    *ret = compare(&x, &y);
    return 0;
}

/* ---- comparators ----------------------------------------------------------------- */

/* Same epoch and the same first parts. */
static bool same_start(const struct version *have, const struct version *want, size_t parts) {
    return compare_numbers(have->epoch, want->epoch) == 0 &&
           compare_release(have->release, want->release, parts) == 0;
}

static bool same_release(const struct version *a, const struct version *b) {
    return same_start(a, b, SIZE_MAX);
}

/* "==" and "!=": a local part counts only when it is asked for, ".*" asks for the first parts. */
static bool equal(const struct version *have, const struct version *want, bool any) {
    if (any) return same_start(have, want, release_parts(want->release));
    return want->has_local ? compare(have, want) == 0 : compare_public(have, want) == 0;
}

/* "<": not a pre-release of the version itself. */
static bool less(const struct version *have, const struct version *want) {
    bool pre = have->pre_kind || have->has_dev, want_pre = want->pre_kind || want->has_dev;
    return compare_public(have, want) < 0 && (want_pre || !pre || !same_release(have, want));
}

/* Whether have is a post-release of want. */
static bool is_post_of(const struct version *have, const struct version *want) {
    return have->has_post && !want->has_post && !want->has_dev && same_release(have, want) &&
           have->pre_kind == want->pre_kind && compare_numbers(have->pre, want->pre) == 0;
}

/* ">": not a post-release and not a local build of the version itself. */
static bool greater(const struct version *have, const struct version *want) {
    return compare_public(have, want) > 0 && !is_post_of(have, want);
}

static int one(const struct version *have, const char *s, size_t n, bool *ret) {
    static const char *const operators[] = {">=", "<=", "==", "!=", "~=", ">", "<"};
    char space[256];
    struct version want;
    size_t op = 0;
    while (op < ARRAY_SIZE(operators) && strncmp(s, operators[op], strlen(operators[op])) != 0)
        op++;
    if (op == ARRAY_SIZE(operators)) return -EINVAL;
    size_t skip = strlen(operators[op]);
    if (skip >= n) return -EINVAL;
    s += skip;
    n -= skip;
    bool any = (op == 2 || op == 3) && n > 2 && s[n - 2] == '.' && s[n - 1] == '*';
    if (any) n -= 2;
    if (parse(s, n, &want, space) < 0) return -EINVAL;
    if (any && (want.pre_kind || want.has_post || want.has_dev || want.has_local)) return -EINVAL;
    if (want.has_local && op != 2 && op != 3) return -EINVAL;
    size_t parts = release_parts(want.release);
    if (op == 4 && parts < 2) return -EINVAL;
    int order = compare_public(have, &want);
    bool results[] = {order >= 0,
                      order <= 0,
                      equal(have, &want, any),
                      !equal(have, &want, any),
                      order >= 0 && same_start(have, &want, parts - 1),
                      greater(have, &want),
                      less(have, &want)};
    *ret = results[op];
    return 0;
}

int version_satisfies(const char *have, const char *spec, bool *ret, char **ret_bad) {
    char space[256];
    struct version v;
    bool all = true;
    const char *bad = NULL;
    size_t bad_n = 0;
    if (parse(have, strlen(have), &v, space) < 0) {
        bad = have;
        bad_n = strlen(have);
    }
    while (*spec && !bad) {
        spec += strspn(spec, " \t");
        size_t n = strcspn(spec, ","), used = n + (spec[n] == ',');
        const char *part = spec;
        while (n && (part[n - 1] == ' ' || part[n - 1] == '\t')) n--;
        spec += used;
        bool fits;
        if (n == 0) continue;
        if (one(&v, part, n, &fits) < 0) {
            bad = part;
            bad_n = n;
        } else {
            all &= fits;
        }
    }
    if (bad) {
        char *copy = ret_bad ? strndup(bad, bad_n) : NULL;
        if (ret_bad && !copy) return -ENOMEM;
        if (ret_bad) *ret_bad = copy;
        return -EINVAL;
    }
    *ret = all;
    return 0;
}
