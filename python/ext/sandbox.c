/* A handle of one sandbox: its properties and its calls. */
#include "sandbox.h"

PyObject *py_sandbox_new(struct py_client *c, abx_sandbox *sandbox) {
    struct py_sandbox *self = (struct py_sandbox *)NEW_OBJECT(ext.sandbox_type);
    if (!self) {
        abx_sandbox_unref(sandbox);
        return NULL;
    }
    self->client = (struct py_client *)Py_NewRef((PyObject *)c);
    self->sandbox = sandbox;
    return (PyObject *)self;
}

/* ---- calls without, and with one argument --------------------------------------------------- */

typedef int plain_fn(abx_op **ret, abx_sandbox *sb, abx_error **reterr);
typedef int text_fn(abx_op **ret, abx_sandbox *sb, const char *text, abx_error **reterr);

static PyObject *plain(PyObject *o, const char *name, plain_fn *fn, FAST_ARGS) {
    static const char *const names[] = {"future", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[1];
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind(name, names, 1, args, nargs, kwnames, a) < 0 || enter(self) < 0) return NULL;
    int r = fn(&op, self->sandbox, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}

static PyObject *with_text(PyObject *o, const char *name, const char *what, text_fn *fn, enum op_kind kind, FAST_ARGS) {
    const char *const names[] = {"future", what, NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[2];
    const char *s;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind(name, names, 2, args, nargs, kwnames, a) < 0 || py_args_text(a[1], what, &s) < 0 || enter(self) < 0) return NULL;
    int r = fn(&op, self->sandbox, s, &e);
    return started(self, r, op, e, a[0], kind);
}

#define PLAIN(name, fn)                                                                            \
    static PyObject *sb_##name(PyObject *o, FAST_ARGS) { return plain(o, #name, fn, args, nargs, kwnames); }
#define WITH_TEXT(name, what, fn, kind)                                                            \
    static PyObject *sb_##name(PyObject *o, FAST_ARGS) { return with_text(o, #name, what, fn, kind, args, nargs, kwnames); }

PLAIN(info, abx_sandbox_info_start)
PLAIN(kill, abx_sandbox_kill_start)
PLAIN(pause, abx_sandbox_pause_start)
PLAIN(resume, abx_sandbox_resume_start)
PLAIN(close, abx_sandbox_close_start)
PLAIN(process_list, abx_process_list_start)
WITH_TEXT(process_kill, "pid", abx_process_kill_start, OP_VALUE)
WITH_TEXT(process_stdin_end, "pid", abx_process_stdin_end_start, OP_VALUE)
WITH_TEXT(files_read, "path", abx_files_read_start, OP_READ)
WITH_TEXT(files_list, "path", abx_files_list_start, OP_ENTRIES)
WITH_TEXT(files_stat, "path", abx_files_stat_start, OP_VALUE)
WITH_TEXT(files_mkdir, "path", abx_files_mkdir_start, OP_VALUE)
WITH_TEXT(files_remove, "path", abx_files_remove_start, OP_VALUE)

/* ---- the rest ----------------------------------------------------------------------------------------- */

static PyObject *sb_set_timeout(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "seconds", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[2];
    long long seconds;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("set_timeout", names, 2, args, nargs, kwnames, a) < 0) return NULL;
    if (py_args_int(a[1], "seconds", LLONG_MIN, LLONG_MAX, &seconds) < 0 || enter(self) < 0) return NULL;
    int r = abx_sandbox_set_timeout_start(&op, self->sandbox, seconds, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}

static PyObject *sb_ports_url(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "port", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[2];
    long long port;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("ports_url", names, 2, args, nargs, kwnames, a) < 0) return NULL;
    if (py_args_int(a[1], "port", INT_MIN, INT_MAX, &port) < 0 || enter(self) < 0) return NULL;
    int r = abx_ports_url_start(&op, self->sandbox, (int)port, &e);
    return started(self, r, op, e, a[0], OP_VALUE);
}

static PyObject *sb_call(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "method", "params", NULL};
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject *a[3], *made = NULL;
    const char *method;
    abx_value *params;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("call", names, 2, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "method", &method) < 0) return NULL;
    if (py_value_object(a[2], "params", false, &params) < 0) return NULL;
    if (enter(self) == 0) {
        int r = abx_call_start(&op, self->sandbox, method, params, &e);
        made = started(self, r, op, e, a[0], OP_VALUE);
    }
    abx_value_unref(params);
    return made;
}

static PyObject *sb_has_feature(PyObject *o, PyObject *feature) {
    struct py_sandbox *self = (struct py_sandbox *)o;
    const char *s;
    if (py_args_text(feature, "feature", &s) < 0 || enter(self) < 0) return NULL;
    int has = abx_sandbox_has_feature(self->sandbox, s);
    py_client_leave(self->client);
    return PyBool_FromLong(has);
}

/* ---- the object ------------------------------------------------------------------------------------------ */

static PyObject *sb_id(PyObject *o, void *unused) {
    (void)unused;
    return PyUnicode_FromString(abx_sandbox_id(((struct py_sandbox *)o)->sandbox));
}

static PyObject *sb_provider(PyObject *o, void *unused) {
    (void)unused;
    return PyUnicode_FromString(abx_sandbox_provider(((struct py_sandbox *)o)->sandbox));
}

static PyObject *sb_ref(PyObject *o, void *unused) {
    (void)unused;
    return PyUnicode_FromString(abx_sandbox_ref_string(((struct py_sandbox *)o)->sandbox));
}

static PyObject *sb_record(PyObject *o, void *unused) {
    struct py_sandbox *self = (struct py_sandbox *)o;
    (void)unused;
    if (py_client_enter(self->client, true) < 0) return NULL;
    PyObject *made = py_value_to_py(abx_sandbox_record(self->sandbox));
    py_client_leave(self->client);
    return made;
}

static int sb_traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(o));
    Py_VISIT((PyObject *)((struct py_sandbox *)o)->client);
    return 0;
}

static void sb_dealloc(PyObject *o) {
    struct py_sandbox *self = (struct py_sandbox *)o;
    PyObject_GC_UnTrack(o);
    if (self->sandbox) py_client_give_up(self->client, LATER_SANDBOX, self->sandbox);
    Py_XDECREF((PyObject *)self->client);
    py_free_object(o);
}

static PyMethodDef methods[] = {
    FAST("call", sb_call, "Any method of the protocol that has a feature."),
    {"has_feature", sb_has_feature, METH_O, PyDoc_STR("Whether the provider has this feature.")},
    FAST("info", sb_info, "Result: the record."),
    FAST("kill", sb_kill, "Ends the sandbox."),
    FAST("set_timeout", sb_set_timeout, "Seconds the sandbox has from now."),
    FAST("pause", sb_pause, "Pauses the sandbox."),
    FAST("resume", sb_resume, "Resumes the sandbox."),
    FAST("exec_run", py_sb_exec_run, "Result: (stdout, stderr, exit_code)."),
    FAST("exec_stream", py_sb_exec_stream, "A command whose events are taken from the Op."),
    FAST("process_list", sb_process_list, "Result: {processes}."),
    FAST("process_kill", sb_process_kill, "Kills a process."),
    FAST("process_signal", py_sb_process_signal, "Sends a signal to a process."),
    FAST("process_stdin", py_sb_process_stdin, "Writes to a process."),
    FAST("process_stdin_end", sb_process_stdin_end, "No more input for a process."),
    FAST("files_read", sb_files_read, "Result: bytes."),
    FAST("files_write", py_sb_files_write, "Writes a file."),
    FAST("files_list", sb_files_list, "Result: the entries of a directory."),
    FAST("files_stat", sb_files_stat, "Result: one entry."),
    FAST("files_mkdir", sb_files_mkdir, "Makes a directory."),
    FAST("files_remove", sb_files_remove, "Removes a file or directory."),
    FAST("files_move", py_sb_files_move, "Moves a file or directory."),
    FAST("ports_url", sb_ports_url, "Result: {url, headers}."),
    FAST("close", sb_close, "Gives the handle up."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"id", sb_id, NULL, PyDoc_STR("The provider's id of the sandbox."), NULL},
    {"provider", sb_provider, NULL, PyDoc_STR("The id of the provider."), NULL},
    {"ref", sb_ref, NULL, PyDoc_STR("ID:SANDBOX."), NULL},
    {"record", sb_record, NULL, PyDoc_STR("As last heard, or None."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A handle of one sandbox.")},
    {Py_tp_dealloc, sb_dealloc},
    {Py_tp_traverse, sb_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec py_sandbox_spec = {"agent_sandbox._abx.Sandbox", sizeof(struct py_sandbox), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
