/* One call in flight: its object, and the completion of the caller's future. */
#include <stdlib.h>

#include "op.h"

/* ---- results ------------------------------------------------------------------------- */

static PyObject *run_result(const abx_value *v) {
    PyObject *out = py_value_to_py(abx_value_get(v, "stdout")), *err = out ? py_value_to_py(abx_value_get(v, "stderr")) : NULL;
    PyObject *code = err ? py_value_to_py(abx_value_get(v, "exit_code")) : NULL;
    PyObject *tuple = code ? PyTuple_Pack(3, out, err, code) : NULL;
    Py_XDECREF(out);
    Py_XDECREF(err);
    Py_XDECREF(code);
    return tuple;
}

static PyObject *update_result(struct py_op *self) {
    abx_plan *plan = abx_op_take_plan(self->op);
    PyObject *report = py_value_to_py(abx_op_value(self->op));
    PyObject *p = plan ? py_plan_new(self->client, plan) : Py_NewRef(Py_None);
    PyObject *tuple = report && p ? PyTuple_Pack(2, report, p) : NULL;
    Py_XDECREF(report);
    Py_XDECREF(p);
    return tuple;
}

static PyObject *taken_result(struct py_op *self) {
    if (self->kind == OP_UPDATE) return update_result(self);
    if (self->kind == OP_PLAN) {
        abx_plan *plan = abx_op_take_plan(self->op);
        if (plan) return py_plan_new(self->client, plan);
    } else {
        abx_sandbox *sandbox = abx_op_take_sandbox(self->op);
        if (sandbox) return py_sandbox_new(self->client, sandbox);
    }
    PyErr_SetString(PyExc_RuntimeError, "the result was lost");
    return NULL;
}

/* A new reference to the result of an op that went well. */
static PyObject *result_of(struct py_op *self) {
    const abx_value *v = abx_op_value(self->op);
    switch (self->kind) {
    case OP_RUN: return run_result(v);
    case OP_READ: return py_value_to_py(abx_value_get(v, "content"));
    case OP_ENTRIES: return py_value_to_py(abx_value_get(v, "entries"));
    case OP_RECORDS: return py_value_to_py(abx_value_get(v, "sandboxes"));
    case OP_SANDBOX:
    case OP_PLAN:
    case OP_UPDATE:
        if (!self->result) self->result = taken_result(self);
        return Py_XNewRef(self->result);
    default: return py_value_to_py(v);
    }
}

/* ---- completion ------------------------------------------------------------------------ */

/* future.name(value), unless it is done. Consumes value; NULL stands for the exception that is set. */
static void complete(struct py_client *c, PyObject *future, PyObject *name, PyObject *value) {
    if (!value) {
        value = py_error_take();
        name = ext.s_set_exception;
    }
    PyObject *done = value ? PyObject_CallMethodObjArgs(future, ext.s_done, NULL) : NULL;
    int is = done ? PyObject_IsTrue(done) : -1;
    Py_XDECREF(done);
    PyObject *r = is == 0 ? PyObject_CallMethodObjArgs(future, name, value, NULL) : NULL;
    if (is < 0 || (is == 0 && !r)) py_client_report(c, future);
    Py_XDECREF(r);
    Py_XDECREF(value);
}

static void complete_waiter(struct py_op *self) {
    PyObject *waiter = self->waiter;
    if (!waiter) return;
    self->waiter = NULL;
    complete(self->client, waiter, ext.s_set_result, Py_NewRef(Py_None));
    Py_DECREF(waiter);
}

static void complete_future(struct py_op *self) {
    PyObject *future = self->future;
    abx_op_state state = abx_op_poll(self->op);
    if (!future || state == ABX_OP_RUNNING) return;
    self->future = NULL;
    if (state == ABX_OP_DONE)
        complete(self->client, future, ext.s_set_result, result_of(self));
    else
        complete(self->client, future, ext.s_set_exception, py_error_object(abx_op_error(self->op), -1));
    Py_DECREF(future);
}

static void on_notify(abx_op *op, void *user) {
    struct py_op *self = ((struct op_link *)user)->self;
    (void)op;
    if (!self) return;
    Py_INCREF((PyObject *)self); /* a callback may drop the last reference */
    complete_waiter(self);
    complete_future(self);
    Py_DECREF((PyObject *)self);
}

void py_op_link_drop(struct op_link *link) {
    abx_op_set_notify(link->op, NULL, NULL, NULL);
    abx_op_unref(link->op);
    free(link);
}

PyObject *py_op_started(struct py_client *c, int r, abx_op *op, abx_error *e, PyObject *future, enum op_kind kind) {
    if (r < 0) return py_error_raise(e, r);
    struct op_link *link = malloc(sizeof *link);
    struct py_op *self = link ? (struct py_op *)NEW_OBJECT(ext.op_type) : (struct py_op *)PyErr_NoMemory();
    if (!self) {
        free(link);
        abx_op_unref(op);
        return NULL;
    }
    *link = (struct op_link){self, op};
    self->link = link;
    self->client = (struct py_client *)Py_NewRef((PyObject *)c);
    self->op = op;
    self->kind = kind;
    if (future && future != Py_None) self->future = Py_NewRef(future);
    abx_op_set_notify(op, on_notify, link, NULL);
    return (PyObject *)self;
}

/* ---- the object ---------------------------------------------------------------------------- */

static PyObject *op_notify(PyObject *o, PyObject *waiter) {
    struct py_op *self = (struct py_op *)o;
    if (py_client_enter(self->client, true) < 0) return NULL;
    PyObject *old = self->waiter;
    self->waiter = Py_NewRef(waiter);
    Py_XDECREF(old);
    if (abx_op_poll(self->op) != ABX_OP_RUNNING)
        complete_waiter(self);
    else /* for events that wait already: the next turn tells */
        abx_op_set_notify(self->op, on_notify, self->link, NULL);
    py_client_leave(self->client);
    Py_RETURN_NONE;
}

static PyObject *op_cancel(PyObject *o, PyObject *unused) {
    struct py_op *self = (struct py_op *)o;
    (void)unused;
    if (py_client_same_process(self->client) < 0) return NULL;
    if (!py_client_free_to_use(self->client)) {
        py_client_later(self->client, LATER_CANCEL, Py_NewRef(o));
        Py_RETURN_NONE;
    }
    if (py_client_enter(self->client, true) < 0) return NULL;
    py_op_cancel_now(o);
    py_client_leave(self->client);
    Py_RETURN_NONE;
}

void py_op_cancel_now(PyObject *o) { abx_op_cancel(((struct py_op *)o)->op); }

static PyObject *op_result(PyObject *o, PyObject *unused) {
    struct py_op *self = (struct py_op *)o;
    PyObject *r = NULL;
    (void)unused;
    if (py_client_enter(self->client, true) < 0) return NULL;
    abx_op_state state = abx_op_poll(self->op);
    if (state == ABX_OP_RUNNING)
        PyErr_SetString(PyExc_RuntimeError, "the op has not ended yet");
    else if (state == ABX_OP_DONE)
        r = result_of(self);
    else
        py_error_raise(abx_error_ref(abx_op_error(self->op)), -1);
    py_client_leave(self->client);
    return r;
}

static PyObject *op_done(PyObject *o, void *unused) {
    struct py_op *self = (struct py_op *)o;
    (void)unused;
    if (py_client_same_process(self->client) < 0) return NULL;
    return PyBool_FromLong(abx_op_poll(self->op) != ABX_OP_RUNNING);
}

static int op_traverse(PyObject *o, visitproc visit, void *arg) {
    struct py_op *self = (struct py_op *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT((PyObject *)self->client);
    Py_VISIT(self->future);
    Py_VISIT(self->waiter);
    Py_VISIT(self->result);
    return 0;
}

/* The client stays: the handle needs it until the end. Its own clear breaks the cycles. */
static int op_clear(PyObject *o) {
    struct py_op *self = (struct py_op *)o;
    Py_CLEAR(self->future);
    Py_CLEAR(self->waiter);
    Py_CLEAR(self->result);
    return 0;
}

static void op_dealloc(PyObject *o) {
    struct py_op *self = (struct py_op *)o;
    PyObject_GC_UnTrack(o);
    op_clear(o);
    if (self->link) {
        self->link->self = NULL;
        py_client_give_up(self->client, LATER_OP, self->link);
    }
    Py_XDECREF((PyObject *)self->client);
    py_free_object(o);
}

static PyMethodDef methods[] = {
    {"cancel", op_cancel, METH_NOARGS, PyDoc_STR("Asks for an end.")},
    FAST("take", py_op_take, "Up to `limit` events; None when there will be none any more."),
    {"notify", op_notify, METH_O, PyDoc_STR("Completes waiter with None once: at events or the end.")},
    {"result", op_result, METH_NOARGS, PyDoc_STR("The value, or raises what it failed with.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"done", op_done, NULL, PyDoc_STR("True once it ended, well or not."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One call in flight.")},
    {Py_tp_dealloc, op_dealloc},
    {Py_tp_traverse, op_traverse},
    {Py_tp_clear, op_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec py_op_spec = {"agent_sandbox._abx.Op", sizeof(struct py_op), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
