/* Commands in a sandbox, and what is sent to their processes. */
#include <stdlib.h>

#include "sandbox.h"

#define FEW_ARGUMENTS 16

struct command {
    abx_exec_opts opts;
    const char *few[FEW_ARGUMENTS + 1], **argv;
    PyObject *tuple;
    abx_value *env;
};

static void command_done(struct command *c) {
    if (c->argv != c->few) free(c->argv);
    abx_value_unref(c->env);
    Py_XDECREF(c->tuple);
}

/* args: argv, env, cwd, user, timeout. */
static int command_init(struct command *c, PyObject **a) {
    long long timeout;
    *c = (struct command){.opts = ABX_EXEC_OPTS_INIT, .argv = c->few};
    if (PyUnicode_Check(a[0]) || PyBytes_Check(a[0])) {
        PyErr_SetString(PyExc_TypeError, "argv must be a sequence of str, not a text");
        return -1;
    }
    c->tuple = PyTuple_Check(a[0]) ? Py_NewRef(a[0]) : PySequence_Tuple(a[0]);
    if (!c->tuple) return -1;
    Py_ssize_t n = PyTuple_Size(c->tuple);
    if (n > FEW_ARGUMENTS && !(c->argv = malloc(((size_t)n + 1) * sizeof *c->argv))) {
        c->argv = c->few;
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (py_args_text(PyTuple_GetItem(c->tuple, i), "an item of argv", &c->argv[i]) < 0) return -1;
    c->argv[n] = NULL;
    if (py_value_object(a[1], "env", true, &c->env) < 0 || py_args_text_opt(a[2], "cwd", &c->opts.cwd) < 0 ||
        py_args_text_opt(a[3], "user", &c->opts.user) < 0 || py_args_int(a[4], "timeout", LLONG_MIN, LLONG_MAX, &timeout) < 0)
        return -1;
    c->opts.argv = c->argv;
    c->opts.env = c->env;
    c->opts.timeout_s = timeout;
    return 0;
}

PyObject *py_sb_exec_run(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "argv", "env", "cwd", "user", "timeout", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    struct command command;
    PyObject *a[6], *made = NULL;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("exec_run", names, 6, args, nargs, kwnames, a) < 0) return NULL;
    if (command_init(&command, a + 1) == 0 && enter(self) == 0) {
        int r = abx_exec_run_start(&op, self->sandbox, &command.opts, &e);
        made = started(self, r, op, e, a[0], OP_RUN);
    }
    command_done(&command);
    return made;
}

PyObject *py_sb_exec_stream(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"argv", "env", "cwd", "user", "timeout", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    struct command command;
    PyObject *a[5], *made = NULL;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("exec_stream", names, 5, args, nargs, kwnames, a) < 0) return NULL;
    if (command_init(&command, a) == 0 && enter(self) == 0) {
        int r = abx_exec_stream_start(&op, self->sandbox, &command.opts, &e);
        made = started(self, r, op, e, NULL, OP_VALUE);
    }
    command_done(&command);
    return made;
}

PyObject *py_sb_process_signal(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "pid", "signal", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[3];
    const char *pid;
    long long signo;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("process_signal", names, 3, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "pid", &pid) < 0) return NULL;
    if (py_args_int(a[2], "signal", 0, INT_MAX, &signo) < 0 || enter(self) < 0) return NULL;
    int r = abx_process_signal_start(&op, self->sandbox, pid, (int)signo, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}

PyObject *py_sb_process_stdin(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "pid", "data", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[3];
    const char *pid;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("process_stdin", names, 3, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "pid", &pid) < 0) return NULL;
    if (!PyBytes_Check(a[2])) {
        PyErr_Format(PyExc_TypeError, "data must be bytes, not %R", (PyObject *)Py_TYPE(a[2]));
        return NULL;
    }
    if (enter(self) < 0) return NULL;
    abx_bytes data = {(const uint8_t *)PyBytes_AsString(a[2]), (size_t)PyBytes_Size(a[2])};
    int r = abx_process_stdin_start(&op, self->sandbox, pid, data, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}
