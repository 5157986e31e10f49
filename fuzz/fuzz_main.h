/* With -DSTANDALONE a fuzz target is a program that runs the files it is given once. */
#ifndef FUZZ_MAIN_H
#define FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#ifdef STANDALONE
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) return 1;
        size_t n = 0, cap = 1 << 16;
        uint8_t *data = malloc(cap);
        for (size_t got; data && (got = fread(data + n, 1, cap - n, f)) > 0;) {
            n += got;
            uint8_t *more = n < cap ? data : realloc(data, cap *= 2);
            if (!more) free(data);
            data = more;
        }
        fclose(f);
        if (!data) return 1;
        LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    return 0;
}
#endif
#endif
