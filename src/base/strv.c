/* NULL-ended lists of owned strings. */
#include "base/str.h"

char **strv_free(char **v) {
    if (v)
        for (char **p = v; *p; p++)
            free(*p);
    free(v);
    return NULL;
}

size_t strv_len(char *const *v) {
    size_t n = 0;
    while (v && v[n])
        n++;
    return n;
}

int strv_append(char ***v, const char *s) { return strv_take(v, strdup(s)); }

int strv_take(char ***v, char *s) {
    _cleanup_free_ char *own = s;
    if (!own) return -ENOMEM;
    size_t n = strv_len(*v);
    char **grown = realloc(*v, (n + 2) * sizeof(*grown));
    if (!grown) return -ENOMEM;
    grown[n] = TAKE_PTR(own);
    grown[n + 1] = NULL;
    *v = grown;
    return 0;
}

bool strv_contains(char *const *v, const char *s) {
    for (; v && *v; v++)
        if (streq(*v, s)) return true;
    return false;
}

char **strv_copy(const char *const *v) {
    size_t n = 0;
    while (v && v[n])
        n++;
    _cleanup_strv_ char **copy = calloc(n + 1, sizeof(*copy));
    if (!copy) return NULL;
    for (size_t i = 0; i < n; i++)
        if (!(copy[i] = strdup(v[i]))) return NULL;
    return TAKE_PTR(copy);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(char **v) {
    size_t n = strv_len(v);
    if (n > 1) qsort(v, n, sizeof(*v), compare);
}
