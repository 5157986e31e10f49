/* Providers written in Python: a driver whose calls go to a handler.
 *
 * The core may be inside of abx_pump() without the interpreter's lock: every entry takes it, and an
 * exception that is set meanwhile stays set. */
#include <stdlib.h>

#include "ext.h"

struct provider {
    struct provider *next;
    struct py_client *client; /* borrowed: it owns the core that owns us */
    PyObject *handler, *close;
    unsigned open; /* instances */
    unsigned long sessions; /* opened so far */
};

/* One provider with one configuration. */
struct instance {
    struct provider *provider;
    struct py_call *calls;
    unsigned long number;
    bool closed;
};

struct entry {
    PyGILState_STATE lock;
    PyObject *type, *value, *trace;
};

static struct entry entry_begin(void) {
    struct entry e = {.lock = PyGILState_Ensure()};
    PyErr_Fetch(&e.type, &e.value, &e.trace);
    return e;
}

static void entry_end(struct entry *e) {
    PyErr_Restore(e->type, e->value, e->trace);
    PyGILState_Release(e->lock);
}

/* ---- the driver --------------------------------------------------------------------------------- */

static int hand_over(struct instance *x, const char *method, const abx_value *params, abx_call *call) {
    PyObject *handler = Py_XNewRef(x->provider->handler);
    if (!handler) return -ECANCELED;
    struct py_call *c = py_call_new(x->provider->client, call, &x->calls);
    if (!c) {
        PyErr_Clear();
        Py_DECREF(handler);
        return -ENOMEM;
    }
    c->session = x->number;
    PyObject *p = py_value_to_py(params);
    PyObject *r = p ? PyObject_CallFunction(handler, "OsO", (PyObject *)c, method, p) : NULL;
    if (!r) py_call_fail_exception(c, handler);
    Py_XDECREF(r);
    Py_XDECREF(p);
    Py_DECREF(handler);
    Py_DECREF((PyObject *)c);
    return 0;
}

static int drv_call(void *instance, const char *method, const abx_value *params, abx_call *call, abx_error **reterr) {
    struct entry e = entry_begin();
    int r = hand_over(instance, method, params, call);
    if (r < 0 && abx_error_new(reterr, ABX_E_PROVIDER, "the provider is gone", NULL) < 0) r = -ENOMEM;
    entry_end(&e);
    return r;
}

static int drv_open(void **ret, abx_client *c, const abx_value *manifest, const abx_value *settings, void *user, abx_call *done,
                    abx_error **reterr) {
    (void)c, (void)manifest;
    struct instance *x = calloc(1, sizeof *x);
    if (!x) return -ENOMEM;
    x->provider = user;
    x->provider->open++;
    x->number = ++x->provider->sessions;
    *ret = x; /* the handler may end the call at once, and then the instance is asked for */
    int r = drv_call(x, "initialize", settings, done, reterr);
    if (r < 0) {
        *ret = NULL;
        x->provider->open--;
        free(x);
    }
    return r;
}

static void tell(abx_call *call, void (*how)(struct py_call *c)) {
    struct py_call *c = abx_call_user(call);
    if (!c) return;
    struct entry e = entry_begin();
    Py_INCREF((PyObject *)c);
    how(c);
    Py_DECREF((PyObject *)c);
    entry_end(&e);
}

static void drv_cancel(void *instance, abx_call *call) { (void)instance, tell(call, py_call_gone); }
static void drv_abandon(void *instance, abx_call *call) { (void)instance, tell(call, py_call_tell); }

/* The last instance of a provider has the provider close. */
static void shut(struct instance *x) {
    if (x->closed) return;
    x->closed = true;
    while (x->calls) {
        struct py_call *c = x->calls;
        Py_INCREF((PyObject *)c);
        py_call_gone(c);
        Py_DECREF((PyObject *)c);
    }
    PyObject *close = --x->provider->open == 0 ? Py_XNewRef(x->provider->close) : NULL;
    if (!close) return;
    PyObject *r = PyObject_CallNoArgs(close);
    if (!r) py_client_report(x->provider->client, close);
    Py_XDECREF(r);
    Py_DECREF(close);
}

static void drv_close(void *instance, abx_call *done) {
    struct entry e = entry_begin();
    shut(instance);
    abx_call_finish(done, NULL);
    entry_end(&e);
}

static void drv_destroy(void *instance) {
    struct entry e = entry_begin();
    shut(instance);
    free(instance);
    entry_end(&e);
}

static int drv_alive(void *instance) { return !((struct instance *)instance)->closed; }

static const abx_driver driver = {
    .size = sizeof driver,
    .kind = "python",
    .open = drv_open,
    .call = drv_call,
    .cancel = drv_cancel,
    .close = drv_close,
    .destroy = drv_destroy,
    .alive = drv_alive,
    .abandon = drv_abandon,
};

/* ---- registration ----------------------------------------------------------------------------------- */

static void provider_free(void *user) {
    struct provider *p = user;
    struct provider **at = &p->client->providers;
    while (*at && *at != p) at = &(*at)->next;
    if (*at) *at = p->next;
    Py_XDECREF(p->handler);
    Py_XDECREF(p->close);
    free(p);
}

PyObject *py_provider_add(struct py_client *c, PyObject *manifest, PyObject *handler, PyObject *close) {
    abx_value *m = NULL;
    abx_error *e = NULL;
    if (py_value_object(manifest, "manifest", false, &m) < 0) return NULL;
    struct provider *p = calloc(1, sizeof *p);
    if (!p || !m) {
        free(p);
        abx_value_unref(m);
        return m ? PyErr_NoMemory() : (PyErr_SetString(PyExc_TypeError, "manifest must be a mapping"), NULL);
    }
    p->client = c;
    p->handler = Py_NewRef(handler);
    p->close = Py_XNewRef(close);
    int r = abx_client_add_provider(c->client, &driver, m, p, provider_free, &e);
    abx_value_unref(m);
    if (r < 0) {
        provider_free(p);
        return py_error_raise(e, r);
    }
    p->next = c->providers;
    c->providers = p;
    Py_RETURN_NONE;
}

int py_provider_traverse(struct py_client *c, visitproc visit, void *arg) {
    for (struct provider *p = c->providers; p; p = p->next) {
        Py_VISIT(p->handler);
        Py_VISIT(p->close);
    }
    return 0;
}

void py_provider_forget(struct py_client *c) {
    for (struct provider *p = c->providers; p; p = p->next) {
        Py_CLEAR(p->handler);
        Py_CLEAR(p->close);
    }
}
