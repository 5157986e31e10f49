/* A call that came to an in-process provider; it is ended once, by its owner or by the core. */
#include <errno.h>
#include <string.h>

#include "ext.h"

struct py_call *py_call_new(struct py_client *c, abx_call *call, struct py_call **list) {
    struct py_call *self = (struct py_call *)NEW_OBJECT(ext.call_type);
    if (!self) return NULL;
    self->client = (struct py_client *)Py_NewRef((PyObject *)c);
    self->call = call;
    self->on_cancel = Py_NewRef(Py_None);
    self->at = list;
    self->next = *list;
    if (self->next) self->next->at = &self->next;
    *list = self;
    abx_call_set_user(call, self);
    return self;
}

/* The handle, which is then no longer ours to end; NULL when it was ended. */
static abx_call *detach(struct py_call *self) {
    abx_call *call = self->call;
    if (!call) return NULL;
    self->call = NULL;
    *self->at = self->next;
    if (self->next) self->next->at = self->at;
    self->next = NULL;
    self->at = NULL;
    abx_call_set_user(call, NULL);
    return call;
}

void py_call_tell(struct py_call *self) {
    PyObject *fn = self->on_cancel;
    self->on_cancel = Py_NewRef(Py_None);
    if (fn && fn != Py_None) {
        PyObject *r = PyObject_CallNoArgs(fn);
        if (!r) py_client_report(self->client, fn);
        Py_XDECREF(r);
    }
    Py_XDECREF(fn);
}

void py_call_gone(struct py_call *self) {
    if (detach(self)) py_call_tell(self);
}

static void fail(abx_call *call, int code, const char *message, const char *hint) {
    abx_error *e = NULL;
    if (abx_error_new(&e, code, message, hint) < 0) e = NULL; /* NULL says: out of memory */
    abx_call_fail(call, e);
}

void py_call_drop(abx_call *call) { fail(call, ABX_E_PROVIDER, "the provider dropped the call without an answer", NULL); }

void py_call_fail_exception(struct py_call *self, PyObject *whose) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyUnicode_FromFormat("the provider failed: %S: %S", type, value) : NULL;
    const char *s = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    abx_call *call = detach(self);
    if (call) fail(call, ABX_E_PROVIDER, s ? s : "the provider failed", NULL);
    Py_XDECREF(text);
    PyErr_Restore(type, value, trace);
    py_client_report(self->client, whose);
}

/* ---- methods ---------------------------------------------------------------------------------- */

static int event_of(int kind, PyObject *data, abx_event *e, abx_value **ret_value) {
    Py_ssize_t n = 0;
    long long code;
    *e = (abx_event){.size = sizeof *e, .type = (abx_event_type)kind};
    switch (kind) {
    case ABX_EVENT_STDOUT:
    case ABX_EVENT_STDERR:
    case ABX_EVENT_PTY:
        if (PyBytes_Check(data)) {
            e->bytes = (abx_bytes){(const uint8_t *)PyBytes_AsString(data), (size_t)PyBytes_Size(data)};
            return 0;
        }
        if (!PyUnicode_Check(data)) {
            PyErr_Format(PyExc_TypeError, "output must be bytes, not %R", (PyObject *)Py_TYPE(data));
            return -1;
        }
        e->bytes.data = (const uint8_t *)PyUnicode_AsUTF8AndSize(data, &n);
        e->bytes.len = (size_t)n;
        return e->bytes.data ? 0 : -1;
    case ABX_EVENT_STARTED: {
        PyObject *text = PyObject_Str(data);
        const char *s = NULL;
        int r = text ? py_args_text(text, "the id of the process", &s) : -1;
        if (r == 0 && (!(*ret_value = abx_value_new_object()) || abx_value_set_string(*ret_value, "process_id", s) < 0))
            r = (PyErr_NoMemory(), -1);
        Py_XDECREF(text);
        e->value = *ret_value;
        return r;
    }
    case ABX_EVENT_EXIT:
        if (py_args_int(data, "the exit code", INT_MIN, INT_MAX, &code) < 0) return -1;
        e->exit_code = (int)code;
        return 0;
    case ABX_EVENT_FS:
    case ABX_EVENT_PROGRESS:
        e->value = *ret_value = py_value_from_py(data);
        return e->value ? 0 : -1;
    default: PyErr_SetString(PyExc_ValueError, "there is no such kind of event"); return -1;
    }
}

static PyObject *call_emit(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"kind", "data", NULL};
    struct py_call *self = (struct py_call *)o;
    PyObject *a[2];
    long long kind;
    abx_event e;
    abx_value *value = NULL;
    if (py_args_bind("emit", names, 2, args, nargs, kwnames, a) < 0 || py_args_int(a[0], "kind", 0, INT_MAX, &kind) < 0) return NULL;
    int r = event_of((int)kind, a[1], &e, &value);
    if (r == 0) r = py_client_enter(self->client, true);
    if (r == 0) {
        if (self->call && abx_call_emit(self->call, &e) < 0) r = (PyErr_NoMemory(), -1);
        py_client_leave(self->client);
    }
    abx_value_unref(value);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *call_finish(PyObject *o, PyObject *result) {
    struct py_call *self = (struct py_call *)o;
    abx_value *v = py_value_from_py(result);
    if (!v || py_client_enter(self->client, true) < 0) {
        abx_value_unref(v);
        return NULL;
    }
    abx_call *call = detach(self);
    if (call)
        abx_call_finish(call, v);
    else
        abx_value_unref(v);
    py_client_leave(self->client);
    Py_RETURN_NONE;
}

static PyObject *call_fail(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"code", "message", "hint", NULL};
    struct py_call *self = (struct py_call *)o;
    PyObject *a[3];
    long long code;
    const char *message, *hint;
    if (py_args_bind("fail", names, 2, args, nargs, kwnames, a) < 0 || py_args_int(a[0], "code", -9999, 9999, &code) < 0) return NULL;
    if (py_args_text(a[1], "message", &message) < 0 || py_args_text_opt(a[2], "hint", &hint) < 0) return NULL;
    if (py_client_enter(self->client, true) < 0) return NULL;
    abx_call *call = detach(self);
    if (call) fail(call, code > 0 ? (int)-code : code < 0 ? (int)code : ABX_E_GENERIC, message, hint && *hint ? hint : NULL);
    py_client_leave(self->client);
    Py_RETURN_NONE;
}

static PyObject *call_fail_rpc(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"code", "message", "data", NULL};
    struct py_call *self = (struct py_call *)o;
    PyObject *a[3];
    long long code;
    const char *message;
    abx_value *data;
    if (py_args_bind("fail_rpc", names, 2, args, nargs, kwnames, a) < 0 || py_args_int(a[0], "code", INT_MIN, INT_MAX, &code) < 0) return NULL;
    if (py_args_text(a[1], "message", &message) < 0 || py_value_object(a[2], "data", false, &data) < 0) return NULL;
    int r = py_client_enter(self->client, true);
    if (r == 0) {
        abx_call *call = detach(self);
        if (call) abx_call_fail_rpc(call, (int)code, message, data);
        py_client_leave(self->client);
    }
    abx_value_unref(data);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the object -------------------------------------------------------------------------------- */

static PyObject *get_ended(PyObject *o, void *unused) {
    (void)unused;
    return PyBool_FromLong(!((struct py_call *)o)->call);
}

static PyObject *get_session(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((struct py_call *)o)->session);
}

static PyObject *get_on_cancel(PyObject *o, void *unused) {
    (void)unused;
    return Py_XNewRef(((struct py_call *)o)->on_cancel);
}

static int set_on_cancel(PyObject *o, PyObject *fn, void *unused) {
    struct py_call *self = (struct py_call *)o;
    (void)unused;
    if (fn && fn != Py_None && !PyCallable_Check(fn)) {
        PyErr_SetString(PyExc_TypeError, "on_cancel must be callable or None");
        return -1;
    }
    PyObject *old = self->on_cancel;
    self->on_cancel = Py_NewRef(fn ? fn : Py_None);
    Py_XDECREF(old);
    return 0;
}

static int call_traverse(PyObject *o, visitproc visit, void *arg) {
    struct py_call *self = (struct py_call *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT((PyObject *)self->client);
    Py_VISIT(self->on_cancel);
    return 0;
}

static int call_clear(PyObject *o) {
    Py_CLEAR(((struct py_call *)o)->on_cancel);
    return 0;
}

static void call_dealloc(PyObject *o) {
    struct py_call *self = (struct py_call *)o;
    PyObject_GC_UnTrack(o);
    abx_call *call = self->call ? detach(self) : NULL;
    if (call) py_client_give_up(self->client, LATER_CALL, call);
    call_clear(o);
    Py_XDECREF((PyObject *)self->client);
    py_free_object(o);
}

static PyMethodDef methods[] = {
    FAST("emit", call_emit, "One event of a stream."),
    {"finish", call_finish, METH_O, PyDoc_STR("Ends the call with a result.")},
    FAST("fail", call_fail, "Ends the call with an error of the list."),
    FAST("fail_rpc", call_fail_rpc, "Ends the call as a plugin's error answer does."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"ended", get_ended, NULL, PyDoc_STR("Whether it was ended."), NULL},
    {"session", get_session, NULL, PyDoc_STR("Which opening of the provider it belongs to."), NULL},
    {"on_cancel", get_on_cancel, set_on_cancel, PyDoc_STR("Called when the caller gave up."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A call that came to an in-process provider.")},
    {Py_tp_dealloc, call_dealloc},
    {Py_tp_traverse, call_traverse},
    {Py_tp_clear, call_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec py_call_spec = {"agent_sandbox._abx.Call", sizeof(struct py_call), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
