/* Errors of the core as exceptions; the classes are the package's. */
#include <errno.h>
#include <string.h>

#include "ext.h"

static PyObject *maker(void) {
    if (!ext.from_core) {
        PyObject *module = PyImport_ImportModule("agent_sandbox.models.errors");
        if (!module) return NULL;
        ext.from_core = PyObject_GetAttrString(module, "from_core");
        Py_DECREF(module);
    }
    return ext.from_core;
}

PyObject *py_error_object(const abx_error *e, int r) {
    PyObject *data = abx_error_data(e) ? py_value_to_py(abx_error_data(e)) : Py_NewRef(Py_None);
    PyObject *from_core = data ? maker() : NULL, *exception = NULL;
    int code = e ? abx_error_code(e) : r;
    if (from_core)
        exception = PyObject_CallFunction(from_core, "isszzO", code, e ? abx_error_message(e) : strerror(code > -1000 ? -code : EPROTO),
                                          e ? abx_error_hint(e) : "", e ? abx_error_provider(e) : NULL, e ? abx_error_method(e) : NULL, data);
    Py_XDECREF(data);
    if (exception && !PyExceptionInstance_Check(exception)) {
        Py_CLEAR(exception);
        PyErr_SetString(PyExc_TypeError, "from_core() gave no exception");
    }
    return exception;
}

PyObject *py_error_raise(abx_error *e, int r) {
    PyObject *exception = r == -ENOMEM ? PyErr_NoMemory() : py_error_object(e, r);
    if (exception) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    abx_error_unref(e);
    return NULL;
}

PyObject *py_error_take(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}
