/* Plans: an install or update nobody agreed to yet, and how one is made. */
#include "client.h"

struct py_plan {
    PyObject_HEAD
    struct py_client *client;
    abx_plan *plan;
};

PyObject *py_plan_new(struct py_client *c, abx_plan *plan) {
    struct py_plan *self = (struct py_plan *)NEW_OBJECT(ext.plan_type);
    if (!self) {
        abx_plan_unref(plan);
        return NULL;
    }
    self->client = (struct py_client *)Py_NewRef((PyObject *)c);
    self->plan = plan;
    return (PyObject *)self;
}

/* ---- making one ------------------------------------------------------------------------------ */

PyObject *py_client_install_plan(PyObject *o, PyObject *args, PyObject *kw) {
    static char *names[] = {"future", "source", "ref", "sha256", "subdir", "link", "force", "allow_unpinned",
                            "allow_insecure_transport", "no_verify", "consent", NULL};
    struct py_client *c = (struct py_client *)o;
    abx_install_opts opts = ABX_INSTALL_OPTS_INIT;
    PyObject *future;
    int consent = 0;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "Os|$zzzpppppi:install_plan", names, &future, &opts.source, &opts.ref, &opts.sha256,
                                     &opts.subdir, &opts.link, &opts.force, &opts.allow_unpinned, &opts.allow_insecure_transport,
                                     &opts.no_verify, &consent))
        return NULL;
    opts.consent = (abx_consent)consent;
    if (py_client_enter(c, false) < 0) return NULL;
    int r = abx_install_plan_start(&op, c->client, &opts, &e);
    PyObject *made = py_op_started(c, r, op, e, future, OP_PLAN);
    py_client_leave(c);
    return made;
}

PyObject *py_client_update_plan(PyObject *o, PyObject *args, PyObject *kw) {
    static char *names[] = {"future", "id", "ref", "check", "allow_unpinned", "allow_insecure_transport", "no_verify", "consent", NULL};
    struct py_client *c = (struct py_client *)o;
    abx_update_opts opts = ABX_UPDATE_OPTS_INIT;
    PyObject *future;
    int consent = 0;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "Os|$zppppi:update_plan", names, &future, &opts.id, &opts.ref, &opts.check,
                                     &opts.allow_unpinned, &opts.allow_insecure_transport, &opts.no_verify, &consent))
        return NULL;
    opts.consent = (abx_consent)consent;
    if (py_client_enter(c, false) < 0) return NULL;
    int r = abx_update_plan_start(&op, c->client, &opts, &e);
    PyObject *made = py_op_started(c, r, op, e, future, OP_UPDATE);
    py_client_leave(c);
    return made;
}

/* ---- the object -------------------------------------------------------------------------------- */

static PyObject *get_value(PyObject *o, const abx_value *(*get)(abx_plan *)) {
    struct py_plan *self = (struct py_plan *)o;
    if (py_client_enter(self->client, true) < 0) return NULL;
    PyObject *made = py_value_to_py(get(self->plan));
    py_client_leave(self->client);
    return made;
}

static PyObject *get_flag(PyObject *o, int (*get)(abx_plan *)) {
    struct py_plan *self = (struct py_plan *)o;
    if (py_client_enter(self->client, true) < 0) return NULL;
    PyObject *made = PyBool_FromLong(get(self->plan));
    py_client_leave(self->client);
    return made;
}

static PyObject *plan_consent(PyObject *o, void *unused) { return (void)unused, get_value(o, abx_plan_consent); }
static PyObject *plan_previous(PyObject *o, void *unused) { return (void)unused, get_value(o, abx_plan_previous); }
static PyObject *plan_pinned(PyObject *o, void *unused) { return (void)unused, get_flag(o, abx_plan_pinned); }
static PyObject *plan_needs_consent(PyObject *o, void *unused) { return (void)unused, get_flag(o, abx_plan_needs_consent); }

static PyObject *plan_apply(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "how", NULL};
    struct py_plan *self = (struct py_plan *)o;
    PyObject *a[2];
    long long how;
    abx_op *op = NULL;
    abx_error *e = NULL;
    if (py_args_bind("apply", names, 2, args, nargs, kwnames, a) < 0) return NULL;
    if (py_args_int(a[1], "how", ABX_CONSENT_NONE, ABX_CONSENT_PERSON, &how) < 0 || py_client_enter(self->client, false) < 0) return NULL;
    int r = abx_plan_apply_start(&op, self->plan, (abx_consent)how, &e);
    PyObject *made = py_op_started(self->client, r, op, e, a[0], OP_VALUE);
    py_client_leave(self->client);
    return made;
}

static int plan_traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(o));
    Py_VISIT((PyObject *)((struct py_plan *)o)->client);
    return 0;
}

static void plan_dealloc(PyObject *o) {
    struct py_plan *self = (struct py_plan *)o;
    PyObject_GC_UnTrack(o);
    if (self->plan) py_client_give_up(self->client, LATER_PLAN, self->plan);
    Py_XDECREF((PyObject *)self->client);
    py_free_object(o);
}

static PyMethodDef methods[] = {
    FAST("apply", plan_apply, "Result: the receipt."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"consent", plan_consent, NULL, PyDoc_STR("What a person must see."), NULL},
    {"previous", plan_previous, NULL, PyDoc_STR("What was agreed to before, or None."), NULL},
    {"pinned", plan_pinned, NULL, PyDoc_STR("Whether the source cannot move."), NULL},
    {"needs_consent", plan_needs_consent, NULL, PyDoc_STR("Whether somebody must agree."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("An install or update nobody agreed to yet.")},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_traverse, plan_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec py_plan_spec = {"agent_sandbox._abx.Plan", sizeof(struct py_plan), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
