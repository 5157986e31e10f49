/* agent_sandbox._abx: the C core in Python. */
#include "ext.h"

struct ext ext;

void py_free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc fn = (freefunc)PyType_GetSlot(type, Py_tp_free);
    fn(self);
    Py_DECREF((PyObject *)type);
}

static int add_type(PyObject *module, PyTypeObject **type, PyType_Spec *spec, const char *name) {
    if (!*type) *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type ? PyModule_AddObjectRef(module, name, (PyObject *)*type) : -1;
}

/* Consumes object. */
static int add(PyObject *module, const char *name, PyObject *object) {
    int r = object ? PyModule_AddObjectRef(module, name, object) : -1;
    Py_XDECREF(object);
    return r;
}

static PyObject *features(void) {
    PyObject *list = PyList_New(0);
    const char *f;
    for (size_t i = 0; list && (f = abx_feature_at(i)); i++) {
        PyObject *s = PyUnicode_FromString(f);
        if (!s || PyList_Append(list, s) < 0) Py_CLEAR(list);
        Py_XDECREF(s);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *errors(void) {
    PyObject *list = PyList_New(0);
    const abx_error_row *row;
    for (size_t i = 0; list && (row = abx_error_row_at(i)); i++) {
        PyObject *t = Py_BuildValue("(isssss)", row->number, row->name, row->python_class, row->python_parent, row->text, row->hint);
        if (!t || PyList_Append(list, t) < 0) Py_CLEAR(list);
        Py_XDECREF(t);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static int intern(PyObject **ret, const char *s) {
    if (!*ret) *ret = PyUnicode_InternFromString(s);
    return *ret ? 0 : -1;
}

static int module_exec(PyObject *m) {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "agent_sandbox._abx works in the main interpreter only, not in a sub-interpreter");
        return -1;
    }
    if (intern(&ext.s_done, "done") < 0 || intern(&ext.s_set_result, "set_result") < 0 || intern(&ext.s_set_exception, "set_exception") < 0)
        return -1;
    if (add_type(m, &ext.client_type, &py_client_spec, "Client") < 0 || add_type(m, &ext.op_type, &py_op_spec, "Op") < 0 ||
        add_type(m, &ext.sandbox_type, &py_sandbox_spec, "Sandbox") < 0 || add_type(m, &ext.plan_type, &py_plan_spec, "Plan") < 0 ||
        add_type(m, &ext.call_type, &py_call_spec, "Call") < 0)
        return -1;
    if (PyModule_AddStringConstant(m, "VERSION", abx_version_string()) < 0 || add(m, "FEATURES", features()) < 0 ||
        add(m, "ERRORS", errors()) < 0)
        return -1;
    static const struct { const char *name; int value; } kinds[] = {
        {"STARTED", ABX_EVENT_STARTED}, {"STDOUT", ABX_EVENT_STDOUT}, {"STDERR", ABX_EVENT_STDERR}, {"PTY", ABX_EVENT_PTY},
        {"FS", ABX_EVENT_FS}, {"PROGRESS", ABX_EVENT_PROGRESS}, {"EXIT", ABX_EVENT_EXIT}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyModule_AddIntConstant(m, kinds[i].name, kinds[i].value) < 0) return -1;
    return PyModule_AddFunctions(m, py_store_methods);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "agent_sandbox._abx",
    .m_doc = PyDoc_STR("The C core as Python sees it: thin, one class for each handle of libabx."),
    .m_size = 0,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__abx(void);
PyMODINIT_FUNC PyInit__abx(void) { return PyModuleDef_Init(&definition); }
