/* Arguments of methods: bound by name, checked, and handed on as C has them. */
#include <string.h>

#include "ext.h"

static int find_name(const char *const *names, PyObject *key) {
    for (int i = 0; names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(key, names[i]) == 0) return i;
    return -1;
}

int py_args_bind(const char *function, const char *const *names, int required, PyObject *const *args, Py_ssize_t nargs,
              PyObject *kwnames, PyObject **out) {
    int count = 0;
    while (names[count]) count++;
    if (nargs > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments (%zd given)", function, count, nargs);
        return -1;
    }
    for (int i = 0; i < count; i++) out[i] = i < nargs ? args[i] : NULL;
    Py_ssize_t nkw = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k);
        int i = find_name(names, key);
        if (i < 0 || out[i]) {
            PyErr_Format(PyExc_TypeError, i < 0 ? "%s() got an unexpected keyword argument %R" : "%s() got %R twice", function, key);
            return -1;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < required; i++) {
        if (out[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", function, names[i]);
        return -1;
    }
    return 0;
}

int py_args_text(PyObject *o, const char *what, const char **ret) {
    Py_ssize_t n;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %R", what, (PyObject *)Py_TYPE(o));
        return -1;
    }
    const char *s = PyUnicode_AsUTF8AndSize(o, &n);
    if (!s) return -1;
    if (strlen(s) != (size_t)n) {
        PyErr_Format(PyExc_ValueError, "%s has a NUL character in it", what);
        return -1;
    }
    *ret = s;
    return 0;
}

int py_args_text_opt(PyObject *o, const char *what, const char **ret) {
    *ret = NULL;
    return !o || o == Py_None ? 0 : py_args_text(o, what, ret);
}

int py_args_int(PyObject *o, const char *what, long long min, long long max, long long *ret) {
    int overflow;
    if (!PyLong_Check(o)) {
        PyErr_Format(PyExc_TypeError, "%s must be int, not %R", what, (PyObject *)Py_TYPE(o));
        return -1;
    }
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (v == -1 && !overflow && PyErr_Occurred()) return -1;
    if (overflow || v < min || v > max) {
        PyErr_Format(PyExc_ValueError, "%s is out of range: %R", what, o);
        return -1;
    }
    *ret = v;
    return 0;
}

int py_args_bool(PyObject *o, int *ret) {
    *ret = o ? PyObject_IsTrue(o) : 0;
    return *ret < 0 ? -1 : 0;
}

int py_args_system(PyObject *o, const char *what, PyObject **ret_bytes, const char **ret) {
    *ret_bytes = NULL;
    *ret = NULL;
    if (!o || o == Py_None) return 0;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %R", what, (PyObject *)Py_TYPE(o));
        return -1;
    }
    PyObject *bytes = PyUnicode_EncodeFSDefault(o);
    if (!bytes) return -1;
    const char *s = PyBytes_AsString(bytes);
    if (strlen(s) != (size_t)PyBytes_Size(bytes)) {
        PyErr_Format(PyExc_ValueError, "%s has a NUL character in it", what);
        Py_DECREF(bytes);
        return -1;
    }
    *ret_bytes = bytes;
    *ret = s;
    return 0;
}
