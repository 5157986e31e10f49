/* Values made to fit the type of their setting; what can't be is an error, never silently unset. */
#include "config/layers.h"

/* The text of a scalar, as it would stand in a variable; NULL for others, or when out of memory. */
static char *scalar_text(const abx_value *v) {
    const char *s = abx_value_string(v);
    if (s) return strlen(s) == abx_value_bytes(v).len ? strdup(s) : NULL;
    switch (abx_value_type(v)) {
    case ABX_TYPE_BOOL:
    case ABX_TYPE_INT:
    case ABX_TYPE_DOUBLE: return abx_value_print(v, ABX_PRINT_SECRETS, NULL);
    default: return NULL;
    }
}

static void trim(char *s) {
    size_t skip = strspn(s, " \t\r\n"), n = strlen(s + skip);
    while (n && strchr(" \t\r\n", s[skip + n - 1])) n--;
    memmove(s, s + skip, n);
    s[n] = '\0';
}

static int to_bool(const char *s) {
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasecmp(s, words[i]) == 0) return (int)(i % 2);
    return -1;
}

/* scheme://something, no white space. */
static bool is_url(const char *s) {
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (n == 0 || strncmp(s + n, "://", 3) != 0 || !s[n + 3]) return false;
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f) return false;
    return true;
}

static const char *kind_of(enum field_type t) {
    switch (t) {
    case FIELD_INT: return "an integer";
    case FIELD_FLOAT: return "a number";
    case FIELD_BOOL: return "true or false";
    case FIELD_URL: return "a URL";
    default: return "a text";
    }
}

static int refuse(const struct setting *s, const char *text, const char *name, const char *source,
                  const char *wanted, abx_error **reterr) {
    /* A secret is not quoted: it would be in the log of whoever prints the error. */
    if (s->secret || !text)
        return err_set(reterr, ABX_E_CONFIG, NULL, "%s (%s): the value is not %s.", name, source,
                       wanted);
    return err_set(reterr, ABX_E_CONFIG, NULL, "%s (%s): '%s' is not %s.", name, source, text,
                   wanted);
}

static int give(const struct setting *s, abx_value *v, abx_value **ret, abx_error **reterr) {
    if (!v) return err_nomem(reterr);
    if (s->secret) abx_value_mark_secret(v);
    *ret = v;
    return 0;
}

static int refuse_choice(const struct setting *s, const char *text, const char *name,
                         const char *source, abx_error **reterr) {
    _cleanup_free_ char *list = NULL;
    for (size_t i = 0; s->choices[i]; i++) {
        char *longer = list ? str_printf("%s, %s", list, s->choices[i]) : strdup(s->choices[i]);
        free(list);
        if (!(list = longer)) return err_nomem(reterr);
    }
    _cleanup_free_ char *wanted = str_printf("one of %s", list);
    return wanted ? refuse(s, text, name, source, wanted, reterr) : err_nomem(reterr);
}

static int give_text(const struct setting *s, char *text, const char *name, const char *source,
                     abx_value **ret, abx_error **reterr) {
    bool choice = s->choices && s->choices[0];
    if (choice || s->type == FIELD_URL) trim(text);
    for (char *p = text; s->upper && *p; p++)
        if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
    if (choice && !strv_contains(s->choices, text))
        return refuse_choice(s, text, name, source, reterr);
    if (s->type == FIELD_URL && !is_url(text))
        return refuse(s, text, name, source, kind_of(s->type), reterr);
    return give(s, abx_value_new_string(text), ret, reterr);
}

int setting_coerce(const struct setting *s, const abx_value *raw, const char *name,
                   const char *source, abx_value **ret, abx_error **reterr) {
    _cleanup_free_ char *text = scalar_text(raw);
    long long i;
    double d;
    bool number = abx_value_is(raw, ABX_TYPE_STRING) || abx_value_is(raw, ABX_TYPE_INT) ||
                  abx_value_is(raw, ABX_TYPE_DOUBLE);
    if (!text) return refuse(s, NULL, name, source, kind_of(s->type), reterr);
    switch (s->type) {
    case FIELD_INT:
        trim(text);
        if (abx_value_is(raw, ABX_TYPE_DOUBLE)) {
            i = abx_value_int(raw, INT64_MIN);
            number = i != INT64_MIN;
        } else {
            number = number && str_to_i64(text[0] == '+' ? text + 1 : text, &i) == 0;
        }
        if (!number) return refuse(s, text, name, source, kind_of(s->type), reterr);
        if (s->not_negative && i < 0) return refuse(s, text, name, source, "zero or more", reterr);
        return give(s, abx_value_new_int(i), ret, reterr);
    case FIELD_FLOAT:
        trim(text);
        if (!number || str_to_double(text, &d) < 0)
            return refuse(s, text, name, source, kind_of(s->type), reterr);
        if (s->not_negative && d < 0) return refuse(s, text, name, source, "zero or more", reterr);
        return give(s, abx_value_new_double(d), ret, reterr);
    case FIELD_BOOL:
        trim(text);
        if (to_bool(text) < 0) return refuse(s, text, name, source, kind_of(s->type), reterr);
        return give(s, abx_value_new_bool(to_bool(text)), ret, reterr);
    default: return give_text(s, text, name, source, ret, reterr);
    }
}
