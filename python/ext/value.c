/* Values both ways. Depth is bounded by the core on the way out and here on the way in. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "ext.h"

/* Less than the core's own bound, so that a value that passes here also fits into a request. */
#define DEPTH_MAX 100

/* ---- bytes: one object on both sides -------------------------------------------------- */

/* A value may go inside of abx_pump(), where the lock is not held. */
void py_bytes_free(void *data, void *owner) {
    (void)data;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(lock);
}

void *py_bytes_new(size_t n, void **ret_owner) {
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (!bytes) PyErr_Clear();
    PyGILState_Release(lock);
    *ret_owner = bytes;
    return bytes ? PyBytes_AsString(bytes) : NULL;
}

abx_value *py_value_borrow(PyObject *o) {
    Py_ssize_t n;
    const char *s = PyBytes_Check(o) ? PyBytes_AsString(o) : PyUnicode_AsUTF8AndSize(o, &n);
    if (!s) return NULL;
    if (PyBytes_Check(o)) n = PyBytes_Size(o);
    abx_value *v = abx_value_new_bytes_take((void *)(uintptr_t)s, (size_t)n, py_bytes_free, Py_NewRef(o));
    if (!v) PyErr_NoMemory();
    return v;
}

static PyObject *bytes_to_py(const abx_value *v) {
    PyObject *owner = abx_value_owner(v, py_bytes_free);
    if (owner && PyBytes_Check(owner)) return Py_NewRef(owner);
    abx_bytes b = abx_value_bytes(v);
    return PyBytes_FromStringAndSize((const char *)b.data, (Py_ssize_t)b.len);
}

/* ---- to Python --------------------------------------------------------------------- */

static PyObject *list_to_py(const abx_value *v) {
    size_t n = abx_value_size(v);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = py_value_to_py(abx_value_at(v, i));
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *dict_to_py(const abx_value *v) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0, n = abx_value_size(v); dict && i < n; i++) {
        PyObject *item = py_value_to_py(abx_value_at(v, i));
        if (!item || PyDict_SetItemString(dict, abx_value_key_at(v, i), item) < 0) Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return dict;
}

PyObject *py_value_to_py(const abx_value *v) {
    abx_bytes b;
    switch (abx_value_type(v)) {
    case ABX_TYPE_BOOL: return PyBool_FromLong(abx_value_bool(v));
    case ABX_TYPE_INT: return PyLong_FromLongLong(abx_value_int(v, 0));
    case ABX_TYPE_UINT: return PyLong_FromUnsignedLongLong(abx_value_uint(v, 0));
    case ABX_TYPE_DOUBLE: return PyFloat_FromDouble(abx_value_double(v, 0));
    case ABX_TYPE_STRING:
        b = abx_value_bytes(v);
        return PyUnicode_DecodeUTF8((const char *)b.data, (Py_ssize_t)b.len, "replace");
    case ABX_TYPE_BYTES: return bytes_to_py(v);
    case ABX_TYPE_ARRAY: return list_to_py(v);
    case ABX_TYPE_OBJECT: return dict_to_py(v);
    default: Py_RETURN_NONE;
    }
}

/* ---- from Python -------------------------------------------------------------------- */

static abx_value *convert(PyObject *o, int depth);

static abx_value *checked(abx_value *v) {
    if (!v) PyErr_NoMemory();
    return v;
}

static abx_value *int_from_py(PyObject *o) {
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return i == -1 && PyErr_Occurred() ? NULL : checked(abx_value_new_int(i));
    unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (overflow > 0 && !(u == (unsigned long long)-1 && PyErr_Occurred())) return checked(abx_value_new_uint(u));
    PyErr_SetString(PyExc_ValueError, "an integer does not fit into 64 bits");
    return NULL;
}

static int put(int r) {
    if (r == -E2BIG) PyErr_SetString(PyExc_ValueError, "a value nests too deeply");
    else if (r < 0 && r != -ENOMEM) PyErr_SetString(PyExc_ValueError, "a value cannot be sent");
    else if (r < 0) PyErr_NoMemory();
    return r < 0 ? -1 : 0;
}

/* A list or tuple. Nothing of it runs Python code, but for the size that is asked for anew. */
static abx_value *array_from_py(PyObject *o, int depth) {
    bool list = PyList_Check(o);
    abx_value *array = checked(abx_value_new_array());
    for (Py_ssize_t i = 0; array && i < (list ? PyList_Size(o) : PyTuple_Size(o)); i++) {
        PyObject *item = list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
        abx_value *v = item ? convert(item, depth + 1) : NULL;
        if (!v || put(abx_value_append(array, v)) < 0) return abx_value_unref(array);
    }
    return array;
}

static int member(abx_value *object, PyObject *key, PyObject *item, int depth) {
    const char *name;
    if (!PyUnicode_Check(key)) {
        PyErr_Format(PyExc_TypeError, "a key must be str, not %R", (PyObject *)Py_TYPE(key));
        return -1;
    }
    if (py_args_text(key, "a key", &name) < 0) return -1;
    if (abx_value_get(object, name)) {
        PyErr_Format(PyExc_ValueError, "the key %R is there twice", key);
        return -1;
    }
    abx_value *v = convert(item, depth + 1);
    return v ? put(abx_value_set(object, name, v)) : -1;
}

static abx_value *object_from_py(PyObject *o, int depth) {
    PyObject *key, *item, *items = NULL;
    Py_ssize_t at = 0;
    abx_value *object = checked(abx_value_new_object());
    if (!object) return NULL;
    if (PyDict_Check(o)) {
        while (PyDict_Next(o, &at, &key, &item))
            if (member(object, key, item, depth) < 0) return abx_value_unref(object);
        return object;
    }
    items = PyMapping_Items(o);
    for (at = 0; items && at < PyList_Size(items); at++) {
        PyObject *pair = PyList_GetItem(items, at);
        if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2 &&
            member(object, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1), depth) == 0)
            continue;
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the items of a mapping must be pairs");
        Py_CLEAR(items);
    }
    if (!items) return abx_value_unref(object);
    Py_DECREF(items);
    return object;
}

static abx_value *string_from_py(PyObject *o) {
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(o, &n);
    return s ? checked(abx_value_new_string_n(s, (size_t)n)) : NULL;
}

static abx_value *double_from_py(PyObject *o) {
    double d = PyFloat_AsDouble(o);
    if (d == -1 && PyErr_Occurred()) return NULL;
    if (isfinite(d)) return checked(abx_value_new_double(d));
    PyErr_SetString(PyExc_ValueError, "a number is not finite");
    return NULL;
}

static abx_value *convert(PyObject *o, int depth) {
    if (depth > DEPTH_MAX) {
        PyErr_SetString(PyExc_ValueError, "a value nests too deeply");
        return NULL;
    }
    if (o == Py_None) return checked(abx_value_new_null());
    if (PyUnicode_Check(o)) return string_from_py(o);
    if (PyBool_Check(o)) return checked(abx_value_new_bool(o == Py_True));
    if (PyLong_Check(o)) return int_from_py(o);
    if (PyFloat_Check(o)) return double_from_py(o);
    if (PyBytes_Check(o)) return py_value_borrow(o);
    if (PyList_Check(o) || PyTuple_Check(o)) return array_from_py(o, depth);
    if (PyDict_Check(o) || (PyMapping_Check(o) && PyObject_HasAttrString(o, "items"))) return object_from_py(o, depth);
    PyErr_Format(PyExc_TypeError, "%R cannot be sent: not None, bool, int, float, str, bytes, list or dict", (PyObject *)Py_TYPE(o));
    return NULL;
}

abx_value *py_value_from_py(PyObject *o) { return convert(o, 0); }

int py_value_object(PyObject *o, const char *what, bool strings, abx_value **ret) {
    *ret = NULL;
    if (!o || o == Py_None) return 0;
    abx_value *v = convert(o, 0);
    if (!v) return -1;
    if (!abx_value_is(v, ABX_TYPE_OBJECT)) {
        PyErr_Format(PyExc_TypeError, "%s must be a mapping, not %R", what, (PyObject *)Py_TYPE(o));
        abx_value_unref(v);
        return -1;
    }
    for (size_t i = 0; strings && i < abx_value_size(v); i++) {
        if (abx_value_is(abx_value_at(v, i), ABX_TYPE_STRING)) continue;
        PyErr_Format(PyExc_TypeError, "%s['%s'] must be str", what, abx_value_key_at(v, i));
        abx_value_unref(v);
        return -1;
    }
    *ret = v;
    return 0;
}
