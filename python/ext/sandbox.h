/* What the methods of a sandbox share, and those in files of their own. */
#ifndef EXT_SANDBOX_H
#define EXT_SANDBOX_H

#include "ext.h"

static inline int enter(struct py_sandbox *self) { return py_client_enter(self->client, false); }

/* The end of every method that starts an op: the client is left. */
static inline PyObject *started(struct py_sandbox *self, int r, abx_op *op, abx_error *e, PyObject *future, enum op_kind kind) {
    PyObject *made = py_op_started(self->client, r, op, e, future, kind);
    py_client_leave(self->client);
    return made;
}

/* sandbox_exec.c */
PyObject *py_sb_exec_run(PyObject *o, FAST_ARGS);
PyObject *py_sb_exec_stream(PyObject *o, FAST_ARGS);
PyObject *py_sb_process_signal(PyObject *o, FAST_ARGS);
PyObject *py_sb_process_stdin(PyObject *o, FAST_ARGS);

/* sandbox_files.c */
PyObject *py_sb_files_write(PyObject *o, FAST_ARGS);
PyObject *py_sb_files_move(PyObject *o, FAST_ARGS);

#endif
