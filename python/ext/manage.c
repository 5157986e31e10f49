/* The client's calls that end at once: the registry, the configuration, providers from code. */
#include <stdlib.h>

#include "client.h"

/* The end of such a call: the value, released, or the error. */
static PyObject *answer(struct py_client *c, int r, abx_value *v, abx_error *e) {
    PyObject *made = r < 0 ? py_error_raise(e, r) : py_value_to_py(v);
    abx_value_unref(v);
    py_client_leave(c);
    return made;
}

static PyObject *answer_text(struct py_client *c, int r, char *s, abx_error *e) {
    PyObject *made = r < 0 ? py_error_raise(e, r) : PyUnicode_FromString(s ? s : "");
    free(s);
    py_client_leave(c);
    return made;
}

PyObject *py_client_provider_list(PyObject *o, PyObject *unused) {
    struct py_client *c = (struct py_client *)o;
    abx_value *v = NULL;
    abx_error *e = NULL;
    (void)unused;
    if (py_client_enter(c, false) < 0) return NULL;
    int r = abx_provider_list(c->client, &v, &e);
    return answer(c, r, v, e);
}

PyObject *py_client_provider_info(PyObject *o, PyObject *id) {
    struct py_client *c = (struct py_client *)o;
    abx_value *v = NULL;
    abx_error *e = NULL;
    const char *s;
    if (py_args_text(id, "id", &s) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_provider_info(c->client, s, &v, &e);
    return answer(c, r, v, e);
}

PyObject *py_client_provider_default(PyObject *o, PyObject *unused) {
    struct py_client *c = (struct py_client *)o;
    char *s = NULL;
    abx_error *e = NULL;
    (void)unused;
    if (py_client_enter(c, false) < 0) return NULL;
    int r = abx_provider_default(c->client, &s, &e);
    return answer_text(c, r, s, e);
}

PyObject *py_client_provider_set_default(PyObject *o, PyObject *id) {
    struct py_client *c = (struct py_client *)o;
    abx_error *e = NULL;
    const char *s;
    if (py_args_text(id, "id", &s) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_provider_set_default(c->client, s, &e);
    return answer(c, r, NULL, e);
}

PyObject *py_client_uninstall(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"id", "purge", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[2];
    const char *id;
    int purge;
    abx_value *v = NULL;
    abx_error *e = NULL;
    if (py_args_bind("uninstall", names, 1, args, nargs, kwnames, a) < 0 || py_args_text(a[0], "id", &id) < 0) return NULL;
    if (py_args_bool(a[1], &purge) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_uninstall(c->client, id, purge, &v, &e);
    return answer(c, r, v, e);
}

PyObject *py_client_config_explain(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"provider", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[1];
    const char *provider;
    abx_value *v = NULL;
    abx_error *e = NULL;
    if (py_args_bind("config_explain", names, 0, args, nargs, kwnames, a) < 0) return NULL;
    if (py_args_text_opt(a[0], "provider", &provider) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_config_explain(c->client, provider, &v, &e);
    return answer(c, r, v, e);
}

PyObject *py_client_config_get(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"key", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[1];
    const char *key;
    abx_value *v = NULL;
    abx_error *e = NULL;
    if (py_args_bind("config_get", names, 1, args, nargs, kwnames, a) < 0) return NULL;
    if (py_args_text(a[0], "key", &key) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_config_get(c->client, key, &v, &e);
    return answer(c, r, v, e);
}

PyObject *py_client_config_set(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"key", "value", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[2];
    const char *key, *value;
    char *file = NULL;
    abx_error *e = NULL;
    if (py_args_bind("config_set", names, 1, args, nargs, kwnames, a) < 0 || py_args_text(a[0], "key", &key) < 0) return NULL;
    if (py_args_text_opt(a[1], "value", &value) < 0 || py_client_enter(c, false) < 0) return NULL;
    int r = abx_config_set(c->client, key, value, &file, &e);
    return answer_text(c, r, file, e);
}

PyObject *py_client_add_provider(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"manifest", "handler", "close", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[3];
    if (py_args_bind("add_provider", names, 2, args, nargs, kwnames, a) < 0) return NULL;
    if (!PyCallable_Check(a[1]) || (a[2] && a[2] != Py_None && !PyCallable_Check(a[2]))) {
        PyErr_SetString(PyExc_TypeError, "handler and close must be callable");
        return NULL;
    }
    if (py_client_enter(c, false) < 0) return NULL;
    PyObject *r = py_provider_add(c, a[0], a[1], a[2] == Py_None ? NULL : a[2]);
    py_client_leave(c);
    return r;
}
