/* Hex, base64 and SHA-256. */
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include <stddef.h>
#include <stdint.h>

size_t base64_encoded_len(size_t n);
/* Writes base64_encoded_len(n) bytes, no NUL. */
void base64_encode(char *out, const void *in, size_t n);
/* Strict: canonical padding, no white space, no stray bits. out needs n / 4 * 3 bytes and may
 * be the same as in. The length, or -EINVAL. */
long base64_decode(void *out, const char *in, size_t n);

#define SHA256_HEX 65 /* with NUL */
struct sha256;        /* a running digest */
struct sha256 *sha256_new(void); /* NULL when out of memory */
int sha256_update(struct sha256 *h, const void *data, size_t n);
int sha256_final_hex(struct sha256 *h, char out[SHA256_HEX]); /* and resets for reuse */
void sha256_free(struct sha256 *h);
int sha256_hex(const void *data, size_t n, char out[SHA256_HEX]);
int sha1_hex(const void *data, size_t n, const void *more, size_t more_n, char out[41]); /* git object ids */

#endif
