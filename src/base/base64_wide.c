/* Base64 with AVX2, chosen when the program runs: files of megabytes are read and written through it. */
#include "base/base64_wide.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* 24 bytes a round, from two loads of 16 of which 12 count. */
__attribute__((target("avx2"))) static size_t encode_avx2(char *out, const unsigned char *in, size_t n) {
    const __m256i spread = TWICE(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
    /* What is added to 0…63 to make its digit, by class: a-z, 0-9, +, /, A-Z. */
    const __m256i offset = TWICE('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
                                 '0' - 52, '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0);
    size_t done = 0;
    for (; n - done >= 28; done += 24, out += 32) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(in + done));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + done + 12));
        __m256i v = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread);
        __m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(v, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
        __m256i even = _mm256_mullo_epi16(_mm256_and_si256(v, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
        __m256i six = _mm256_or_si256(odd, even);
        __m256i class_ = _mm256_subs_epu8(six, _mm256_set1_epi8(51));
        __m256i capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), six);
        class_ = _mm256_or_si256(class_, _mm256_and_si256(capital, _mm256_set1_epi8(13)));
        _mm256_storeu_si256((__m256i *)(void *)out, _mm256_add_epi8(_mm256_shuffle_epi8(offset, class_), six));
    }
    return done;
}

/* 32 digits a round. The store is of 32 bytes, 8 more than it makes: the loop ends early enough. */
__attribute__((target("avx2"))) static size_t decode_avx2(unsigned char *out, const char *in, size_t n) {
    /* Bits that must not meet for a digit, by low and by high nibble; and what turns it into its value. */
    const __m256i low_bits = TWICE(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
    const __m256i high_bits = TWICE(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
    const __m256i turn = TWICE(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i pack = TWICE(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i slash = _mm256_set1_epi8(0x2f);
    size_t done = 0;
    for (; n - done >= 48; done += 32, out += 24) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(in + done));
        __m256i high = _mm256_and_si256(_mm256_srli_epi32(v, 4), slash);
        __m256i bad_low = _mm256_shuffle_epi8(low_bits, _mm256_and_si256(v, slash));
        __m256i bad_high = _mm256_shuffle_epi8(high_bits, high);
        if (!_mm256_testz_si256(bad_low, bad_high)) break;
        __m256i by = _mm256_shuffle_epi8(turn, _mm256_add_epi8(_mm256_cmpeq_epi8(v, slash), high));
        v = _mm256_add_epi8(v, by);
        v = _mm256_madd_epi16(_mm256_maddubs_epi16(v, _mm256_set1_epi32(0x01400140)), _mm256_set1_epi32(0x00011000));
        v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, pack), _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
        _mm256_storeu_si256((__m256i *)(void *)out, v);
    }
    return done;
}

size_t base64_encode_wide(char *out, const unsigned char *in, size_t n) {
    return n >= 28 && __builtin_cpu_supports("avx2") ? encode_avx2(out, in, n) : 0;
}

size_t base64_decode_wide(unsigned char *out, const char *in, size_t n) {
    return n >= 48 && __builtin_cpu_supports("avx2") ? decode_avx2(out, in, n) : 0;
}

#else

size_t base64_encode_wide(char *out, const unsigned char *in, size_t n) {
    (void)out, (void)in, (void)n;
    return 0;
}

size_t base64_decode_wide(unsigned char *out, const char *in, size_t n) {
    (void)out, (void)in, (void)n;
    return 0;
}

#endif
