/* Files of a sandbox: what is written is used as it lies. */
#include "sandbox.h"

PyObject *py_sb_files_write(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "path", "data", "mode", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[4], *made = NULL;
    const char *path;
    long long mode = -1;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("files_write", names, 3, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "path", &path) < 0) return NULL;
    if (a[3] && py_args_int(a[3], "mode", -1, 07777, &mode) < 0) return NULL;
    if (!PyBytes_Check(a[2]) && !PyUnicode_Check(a[2])) {
        PyErr_Format(PyExc_TypeError, "data must be bytes or str, not %R", (PyObject *)Py_TYPE(a[2]));
        return NULL;
    }
    abx_value *v = py_value_borrow(a[2]);
    if (v && enter(self) == 0) {
        int r = abx_files_write_value_start(&op, self->sandbox, path, v, (int)mode, &e);
        made = started(self, r, op, e, a[0], OP_VALUE);
    }
    abx_value_unref(v);
    return made;
}

PyObject *py_sb_files_move(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "source", "destination", "overwrite", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[4];
    const char *source, *destination;
    int overwrite;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("files_move", names, 3, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "source", &source) < 0) return NULL;
    if (py_args_text(a[2], "destination", &destination) < 0 || py_args_bool(a[3], &overwrite) < 0 || enter(self) < 0) return NULL;
    int r = abx_files_move_start(&op, self->sandbox, source, destination, overwrite, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}
