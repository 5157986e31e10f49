/* The client: its loop, its life and its end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "log.h"

/* ---- the loop ---------------------------------------------------------------------------------- */

/* Runs until nothing is ready, or for so many rounds: others wait, too. */
#define ROUNDS_MAX 64

static int dispatch(struct py_client *c) {
    int n = 0, k = 1;
    for (int round = 0; k > 0 && round < ROUNDS_MAX; round++) {
        if (c->later) py_client_do_later(c);
        k = abx_dispatch(c->client);
        n += k;
    }
    return n;
}

static PyObject *turn(struct py_client *c, int timeout_ms, bool release) {
    if (py_client_enter(c, false) < 0) return NULL;
    if (c->pumping) {
        PyErr_SetString(PyExc_RuntimeError, "the client's loop is running already");
        py_client_leave(c);
        return NULL;
    }
    bool outer = c->interruptible;
    int r, n = 0;
    c->pumping = c->interruptible = true;
    if (release) {
        Py_BEGIN_ALLOW_THREADS
        r = abx_pump(c->client, timeout_ms);
        Py_END_ALLOW_THREADS
    } else {
        r = abx_pump(c->client, timeout_ms);
    }
    c->pumping = false;
    bool signalled = release && PyErr_CheckSignals() < 0;
    if (!signalled && r >= 0) n = dispatch(c);
    c->interruptible = outer;
    py_client_leave(c);
    if (signalled) return NULL;
    if (c->stop_type && !outer) {
        PyErr_Restore(c->stop_type, c->stop_value, c->stop_trace);
        c->stop_type = c->stop_value = c->stop_trace = NULL;
        return NULL;
    }
    return r < 0 ? py_error_raise(NULL, r) : PyLong_FromLong(n);
}

static PyObject *client_run(PyObject *o, PyObject *unused) {
    (void)unused;
    return turn((struct py_client *)o, 0, false);
}

static PyObject *client_wait(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"timeout_ms", NULL};
    PyObject *a[1];
    long long ms = -1;
    if (py_args_bind("wait", names, 0, args, nargs, kwnames, a) < 0) return NULL;
    if (a[0] && py_args_int(a[0], "timeout_ms", -1, INT_MAX, &ms) < 0) return NULL;
    return turn((struct py_client *)o, (int)ms, true);
}

static PyObject *client_wakeup(PyObject *o, PyObject *unused) {
    struct py_client *c = (struct py_client *)o;
    (void)unused;
    if (py_client_same_process(c) < 0) return NULL;
    abx_wakeup(c->client);
    Py_RETURN_NONE;
}

static PyObject *client_fileno(PyObject *o, PyObject *unused) {
    struct py_client *c = (struct py_client *)o;
    (void)unused;
    if (py_client_enter(c, false) < 0) return NULL;
    int fd = abx_fd(c->client);
    py_client_leave(c);
    return PyLong_FromLong(fd);
}

static PyObject *client_close(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"grace_ms", NULL};
    struct py_client *c = (struct py_client *)o;
    PyObject *a[1];
    long long ms = -1;
    int killed;
    if (py_args_bind("close", names, 0, args, nargs, kwnames, a) < 0) return NULL;
    if (a[0] && py_args_int(a[0], "grace_ms", -1, INT_MAX, &ms) < 0) return NULL;
    if (py_client_enter(c, true) < 0) return NULL;
    if (c->closed || c->pumping) {
        py_client_leave(c);
        if (c->closed) return PyLong_FromLong(0);
        PyErr_SetString(PyExc_RuntimeError, "the client cannot be closed by a callback of its loop");
        return NULL;
    }
    c->closed = c->pumping = true;
    Py_BEGIN_ALLOW_THREADS
    killed = abx_client_close(c->client, (int)ms);
    Py_END_ALLOW_THREADS
    c->pumping = false;
    dispatch(c); /* what was cancelled is told */
    py_client_leave(c);
    return PyLong_FromLong(killed);
}

/* ---- the object ------------------------------------------------------------------------------------ */

/* "NAME=VALUE" for each item of a mapping; the texts live in *ret_list. */
static int environ_list(PyObject *environ_, PyObject **ret_list, const char ***ret) {
    *ret_list = NULL;
    *ret = NULL;
    if (!environ_ || environ_ == Py_None) return 0;
    PyObject *items = PyMapping_Items(environ_), *list = items ? PyList_New(0) : NULL;
    Py_ssize_t n = list ? PyList_Size(items) : 0;
    const char **env = list ? calloc((size_t)n + 1, sizeof *env) : NULL;
    if (list && !env) PyErr_NoMemory();
    for (Py_ssize_t i = 0; env && i < n; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        bool texts = PyTuple_Check(pair) && PyTuple_Size(pair) == 2 && PyUnicode_Check(PyTuple_GetItem(pair, 0)) &&
                     PyUnicode_Check(PyTuple_GetItem(pair, 1));
        PyObject *text = NULL, *bytes = NULL;
        if (!texts) PyErr_SetString(PyExc_TypeError, "environ must map str to str");
        else text = PyUnicode_FromFormat("%U=%U", PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
        int r = text && py_args_system(text, "environ", &bytes, &env[i]) == 0 ? PyList_Append(list, bytes) : -1;
        Py_XDECREF(text);
        Py_XDECREF(bytes);
        if (r == 0) continue;
        free(env);
        env = NULL;
    }
    Py_XDECREF(items);
    if (!env) {
        Py_XDECREF(list);
        return -1;
    }
    *ret_list = list;
    *ret = env;
    return 0;
}

static PyObject *client_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
    static char *names[] = {"home", "environ", "dotenv", "no_config", "host_name", "log", "log_level", NULL};
    PyObject *home = NULL, *environ_ = NULL, *dotenv = NULL, *log = NULL, *home_b = NULL, *dotenv_b = NULL, *env_list = NULL;
    abx_client_opts opts = ABX_CLIENT_OPTS_INIT;
    const char **env = NULL;
    int level = ABX_LOG_WARN;
    opts.bytes_new = py_bytes_new;
    opts.bytes_free = py_bytes_free;
    abx_error *e = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$OOOpzOi:Client", names, &home, &environ_, &dotenv, &opts.no_config,
                                     &opts.host_name, &log, &level))
        return NULL;
    struct py_client *c = (struct py_client *)NEW_OBJECT(type);
    int r = c ? 0 : -1;
    if (r == 0) r = py_args_system(home, "home", &home_b, &opts.home);
    if (r == 0) r = py_args_system(dotenv, "dotenv", &dotenv_b, &opts.dotenv);
    if (r == 0) r = environ_list(environ_, &env_list, &env);
    if (r == 0 && log && log != Py_None) {
        c->log = py_log_new(log);
        if (!c->log) r = (PyErr_NoMemory(), -1);
        opts.log = py_log_put;
        opts.log_user = c->log;
        opts.log_level = (abx_log_level)level;
    }
    if (r == 0) {
        c->pid = getpid();
        opts.environ_ = env;
        r = abx_client_new(&c->client, &opts, &e);
        if (r < 0) py_error_raise(e, r);
    }
    free(env);
    Py_XDECREF(env_list);
    Py_XDECREF(home_b);
    Py_XDECREF(dotenv_b);
    if (r < 0) Py_CLEAR(c);
    return (PyObject *)c;
}

static int client_traverse(PyObject *o, visitproc visit, void *arg) {
    struct py_client *c = (struct py_client *)o;
    Py_VISIT(Py_TYPE(o));
    int r = py_log_traverse(c->log, visit, arg);
    return r ? r : py_provider_traverse(c, visit, arg);
}

static int client_clear(PyObject *o) {
    struct py_client *c = (struct py_client *)o;
    py_log_clear(c->log);
    py_provider_forget(c);
    return 0;
}

static void client_dealloc(PyObject *o) {
    struct py_client *c = (struct py_client *)o;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject_GC_UnTrack(o);
    if (c->client && c->pid == getpid()) {
        py_client_grab(c);
        if (c->later) py_client_do_later(c);
        if (py_log_waits(c->log)) py_log_flush(c->log, NULL);
        client_clear(o);
        abx_client_unref(c->client);
        py_log_free(c->log);
    } else { /* in a child made by fork: what the core keeps is left alone */
        client_clear(o);
    }
    Py_XDECREF(c->stop_type);
    Py_XDECREF(c->stop_value);
    Py_XDECREF(c->stop_trace);
    py_free_object(o);
    PyErr_Restore(type, value, trace);
}

static PyMethodDef methods[] = {
    {"fileno", client_fileno, METH_NOARGS, PyDoc_STR("Readable when run() has something to do.")},
    {"run", client_run, METH_NOARGS, PyDoc_STR("Does what can be done without waiting; how many callbacks ran.")},
    FAST("wait", client_wait, "The same after waiting, without the interpreter's lock."),
    {"wakeup", client_wakeup, METH_NOARGS, PyDoc_STR("Ends a wait() in another thread.")},
    FAST("close", client_close, "Ends every plugin in order; how many had to be killed."),
    FAST("create", py_client_create, "Result: Sandbox."),
    FAST("connect", py_client_connect, "Result: Sandbox."),
    FAST("attach", py_client_attach, "A handle without asking the provider."),
    FAST("list", py_client_list, "Result: a list of records."),
    {"provider_list", py_client_provider_list, METH_NOARGS, PyDoc_STR("A row for each provider.")},
    {"provider_info", py_client_provider_info, METH_O, PyDoc_STR("Everything about one provider.")},
    {"provider_default", py_client_provider_default, METH_NOARGS, PyDoc_STR("The id in force.")},
    {"provider_set_default", py_client_provider_set_default, METH_O, PyDoc_STR("Writes the default provider.")},
    FAST("doctor", py_client_doctor, "Result: {id, ok, checks}."),
    {"install_plan", (PyCFunction)(void (*)(void))py_client_install_plan, METH_VARARGS | METH_KEYWORDS, PyDoc_STR("Result: Plan.")},
    {"update_plan", (PyCFunction)(void (*)(void))py_client_update_plan, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Result: (report, Plan or None).")},
    FAST("uninstall", py_client_uninstall, "{id, removed, purged, default_reset}."),
    FAST("config_explain", py_client_config_explain, "Every key with its layers."),
    FAST("config_get", py_client_config_get, "One key with its layers."),
    FAST("config_set", py_client_config_set, "Writes a key; the file it went to."),
    FAST("add_provider", py_client_add_provider, "Registers an in-process provider."),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Configuration snapshot, registry of providers and loop.")},
    {Py_tp_new, client_new},
    {Py_tp_dealloc, client_dealloc},
    {Py_tp_traverse, client_traverse},
    {Py_tp_clear, client_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec py_client_spec = {"agent_sandbox._abx.Client", sizeof(struct py_client), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
