/* Base64 by tables, and digests by OpenSSL. */
#include "base/codec.h"

#include <endian.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/base64_wide.h"
#include "base/cleanup.h"

/* Two digits for each 12 bits: half the look-ups of one for each six. */
#define PAIRS(a)                                                                                   \
    {a, 'A'}, {a, 'B'}, {a, 'C'}, {a, 'D'}, {a, 'E'}, {a, 'F'}, {a, 'G'}, {a, 'H'}, {a, 'I'},      \
    {a, 'J'}, {a, 'K'}, {a, 'L'}, {a, 'M'}, {a, 'N'}, {a, 'O'}, {a, 'P'}, {a, 'Q'}, {a, 'R'},      \
    {a, 'S'}, {a, 'T'}, {a, 'U'}, {a, 'V'}, {a, 'W'}, {a, 'X'}, {a, 'Y'}, {a, 'Z'}, {a, 'a'},      \
    {a, 'b'}, {a, 'c'}, {a, 'd'}, {a, 'e'}, {a, 'f'}, {a, 'g'}, {a, 'h'}, {a, 'i'}, {a, 'j'},      \
    {a, 'k'}, {a, 'l'}, {a, 'm'}, {a, 'n'}, {a, 'o'}, {a, 'p'}, {a, 'q'}, {a, 'r'}, {a, 's'},      \
    {a, 't'}, {a, 'u'}, {a, 'v'}, {a, 'w'}, {a, 'x'}, {a, 'y'}, {a, 'z'}, {a, '0'}, {a, '1'},      \
    {a, '2'}, {a, '3'}, {a, '4'}, {a, '5'}, {a, '6'}, {a, '7'}, {a, '8'}, {a, '9'}, {a, '+'},      \
    {a, '/'},
static const char pairs[4096][2] = {
    PAIRS('A') PAIRS('B') PAIRS('C') PAIRS('D') PAIRS('E') PAIRS('F') PAIRS('G') PAIRS('H')
    PAIRS('I') PAIRS('J') PAIRS('K') PAIRS('L') PAIRS('M') PAIRS('N') PAIRS('O') PAIRS('P')
    PAIRS('Q') PAIRS('R') PAIRS('S') PAIRS('T') PAIRS('U') PAIRS('V') PAIRS('W') PAIRS('X')
    PAIRS('Y') PAIRS('Z') PAIRS('a') PAIRS('b') PAIRS('c') PAIRS('d') PAIRS('e') PAIRS('f')
    PAIRS('g') PAIRS('h') PAIRS('i') PAIRS('j') PAIRS('k') PAIRS('l') PAIRS('m') PAIRS('n')
    PAIRS('o') PAIRS('p') PAIRS('q') PAIRS('r') PAIRS('s') PAIRS('t') PAIRS('u') PAIRS('v')
    PAIRS('w') PAIRS('x') PAIRS('y') PAIRS('z') PAIRS('0') PAIRS('1') PAIRS('2') PAIRS('3')
    PAIRS('4') PAIRS('5') PAIRS('6') PAIRS('7') PAIRS('8') PAIRS('9') PAIRS('+') PAIRS('/')
};

/* The four digits of a group, already where their bits lie in three bytes, first byte lowest.
 * X marks what is no digit. */
#define X 0x80000000u
#define X16 X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X
#define DIGITS(V)                                                                                  \
    X16, X16, X, X, X, X, X, X, X, X, X, X, X, V(62), X, X, X, V(63),                              \
    V(52), V(53), V(54), V(55), V(56), V(57), V(58), V(59), V(60), V(61), X, X, X, X, X, X,        \
    X, V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7), V(8), V(9), V(10), V(11), V(12), V(13),     \
    V(14), V(15), V(16), V(17), V(18), V(19), V(20), V(21), V(22), V(23), V(24), V(25),            \
    X, X, X, X, X,                                                                                 \
    X, V(26), V(27), V(28), V(29), V(30), V(31), V(32), V(33), V(34), V(35), V(36), V(37), V(38),  \
    V(39), V(40), V(41), V(42), V(43), V(44), V(45), V(46), V(47), V(48), V(49), V(50), V(51),     \
    X, X, X, X, X, X16, X16, X16, X16, X16, X16, X16, X16
#define FIRST(n) (uint32_t)(n) << 2
#define SECOND(n) ((uint32_t)(n) >> 4 | ((uint32_t)(n) & 15) << 12)
#define THIRD(n) ((uint32_t)(n) >> 2 << 8 | ((uint32_t)(n) & 3) << 22)
#define FOURTH(n) (uint32_t)(n) << 16
static const uint32_t digits[4][256] = {
    {DIGITS(FIRST)}, {DIGITS(SECOND)}, {DIGITS(THIRD)}, {DIGITS(FOURTH)}
};

size_t base64_encoded_len(size_t n) { return (n + 2) / 3 * 4; }

void base64_encode(char *out, const void *in, size_t n) {
    const unsigned char *p = in;
    size_t done = base64_encode_wide(out, p, n);
    out += done / 3 * 4;
    p += done;
    n -= done;
    for (; n >= 3; n -= 3, p += 3, out += 4) {
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        memcpy(out, pairs[v >> 12], 2);
        memcpy(out + 2, pairs[v & 4095], 2);
    }
    if (n == 0) return;
    uint32_t v = (uint32_t)p[0] << 16 | (n == 2 ? (uint32_t)p[1] << 8 : 0);
    memcpy(out, pairs[v >> 12], 2);
    out[2] = n == 2 ? pairs[v & 4095][0] : '=';
    out[3] = '=';
}

static uint32_t group(const unsigned char *p) {
    return digits[0][p[0]] | digits[1][p[1]] | digits[2][p[2]] | digits[3][p[3]];
}

long base64_decode(void *out, const char *in, size_t n) {
    const unsigned char *p = (const unsigned char *)in;
    unsigned char *q = out;
    if (n % 4) return -EINVAL;
    if (n == 0) return 0;
    size_t done = base64_decode_wide(q, in, n);
    p += done;
    q += done / 4 * 3;
    n -= done;
    uint32_t bad = 0;
    /* A store of four bytes runs one over, into the place of the next group. */
    for (; n > 4; n -= 4, p += 4, q += 3) {
        uint32_t v = group(p);
        bad |= v;
        v = htole32(v);
        memcpy(q, &v, 4);
    }
    size_t pad = p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;
    const unsigned char last[4] = {p[0], p[1], pad == 2 ? 'A' : p[2], pad ? 'A' : p[3]};
    uint32_t v = group(last);
    bad |= v;
    /* What the padding cuts off must have been zero. */
    if ((bad & X) || (pad && v >> (8 * (3 - pad)))) return -EINVAL;
    for (size_t i = 0; i < 3 - pad; i++)
        *q++ = (unsigned char)(v >> (8 * i));
    return (long)(q - (unsigned char *)out);
}

struct sha256 {
    EVP_MD *md;
    EVP_MD_CTX *ctx;
};

DEFINE_CLEANUP(struct sha256 *, sha256_freep, sha256_free)
DEFINE_CLEANUP(EVP_MD *, md_freep, EVP_MD_free)
DEFINE_CLEANUP(EVP_MD_CTX *, ctx_freep, EVP_MD_CTX_free)

static void hex(char *out, const unsigned char *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        *out++ = "0123456789abcdef"[in[i] >> 4];
        *out++ = "0123456789abcdef"[in[i] & 15];
    }
    *out = '\0';
}

struct sha256 *sha256_new(void) {
    _cleanup_(sha256_freep) struct sha256 *h = calloc(1, sizeof(*h));
    if (!h) return NULL;
    h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    h->ctx = EVP_MD_CTX_new();
    if (!h->md || !h->ctx || EVP_DigestInit_ex(h->ctx, h->md, NULL) != 1) return NULL;
    return TAKE_PTR(h);
}

int sha256_update(struct sha256 *h, const void *data, size_t n) {
    return n == 0 || EVP_DigestUpdate(h->ctx, data, n) == 1 ? 0 : -EIO;
}

int sha256_final_hex(struct sha256 *h, char out[SHA256_HEX]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (EVP_DigestFinal_ex(h->ctx, digest, NULL) != 1) return -EIO;
    if (EVP_DigestInit_ex(h->ctx, h->md, NULL) != 1) return -EIO;
    hex(out, digest, 32);
    return 0;
}

void sha256_free(struct sha256 *h) {
    if (!h) return;
    EVP_MD_CTX_free(h->ctx);
    EVP_MD_free(h->md);
    free(h);
}

int sha256_hex(const void *data, size_t n, char out[SHA256_HEX]) {
    _cleanup_(sha256_freep) struct sha256 *h = sha256_new();
    if (!h) return -ENOMEM;
    int r = sha256_update(h, data, n);
    return r < 0 ? r : sha256_final_hex(h, out);
}

int sha1_hex(const void *data, size_t n, const void *more, size_t more_n, char out[41]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    _cleanup_(md_freep) EVP_MD *md = EVP_MD_fetch(NULL, "SHA1", NULL);
    _cleanup_(ctx_freep) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!md || !ctx) return -ENOMEM;
    if (EVP_DigestInit_ex(ctx, md, NULL) != 1) return -EIO;
    if (n && EVP_DigestUpdate(ctx, data, n) != 1) return -EIO;
    if (more_n && EVP_DigestUpdate(ctx, more, more_n) != 1) return -EIO;
    if (EVP_DigestFinal_ex(ctx, digest, NULL) != 1) return -EIO;
    hex(out, digest, 20);
    return 0;
}
