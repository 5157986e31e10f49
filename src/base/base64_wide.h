/* Base64 32 digits at a time, where the processor can; private to the room. */
#ifndef BASE_BASE64_WIDE_H
#define BASE_BASE64_WIDE_H

#include <stddef.h>

/* Both do what they can from the front and say how many input bytes that was: 0 on other processors.
 * Decoding stops before the first block with something that is no digit, padding included. */
size_t base64_encode_wide(char *out, const unsigned char *in, size_t n);
size_t base64_decode_wide(unsigned char *out, const char *in, size_t n);

#endif
