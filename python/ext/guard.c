/* Who may use a client now, what waits until it may be used, and what callbacks raise. */
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "log.h"

int py_client_same_process(const struct py_client *c) {
    if (c->pid == getpid()) return 0;
    PyErr_SetString(PyExc_RuntimeError, "this client was made in another process: create a new one after fork");
    return -1;
}

bool py_client_free_to_use(const struct py_client *c) { return !c->busy || c->owner == PyThread_get_thread_ident(); }

void py_client_grab(struct py_client *c) {
    c->owner = PyThread_get_thread_ident();
    c->busy++;
}

int py_client_enter(struct py_client *c, bool closed_too) {
    if (py_client_same_process(c) < 0) return -1;
    if (c->closed && !closed_too) {
        PyErr_SetString(PyExc_RuntimeError, "the client is closed");
        return -1;
    }
    if (!py_client_free_to_use(c)) {
        PyErr_SetString(PyExc_RuntimeError, "the client is in use in another thread");
        return -1;
    }
    py_client_grab(c);
    return 0;
}

static void drop(int what, void *handle) {
    switch (what) {
    case LATER_OP: py_op_link_drop(handle); break;
    case LATER_SANDBOX: abx_sandbox_unref(handle); break;
    case LATER_PLAN: abx_plan_unref(handle); break;
    case LATER_CALL: py_call_drop(handle); break;
    case LATER_CANCEL:
        py_op_cancel_now(handle);
        Py_DECREF((PyObject *)handle);
        break;
    }
}

void py_client_do_later(struct py_client *c) {
    struct later *l;
    while ((l = c->later)) {
        c->later = l->next;
        drop(l->what, l->handle);
        free(l);
    }
}

void py_client_leave(struct py_client *c) {
    if (c->busy == 1 && c->later) py_client_do_later(c);
    c->busy--;
    if (c->busy == 0 && py_log_waits(c->log)) py_log_flush(c->log, c);
}

void py_client_later(struct py_client *c, int what, void *handle) {
    struct later *l = malloc(sizeof *l);
    if (!l) return; /* lost, which is better than used by two threads */
    *l = (struct later){NULL, what, handle};
    struct later **at = &c->later;
    while (*at) at = &(*at)->next;
    *at = l;
    abx_wakeup(c->client);
}

void py_client_give_up(struct py_client *c, int what, void *handle) {
    PyObject *type, *value, *trace;
    if (!handle || c->pid != getpid()) return; /* the parent's: not ours to end */
    if (!py_client_free_to_use(c)) return py_client_later(c, what, handle);
    PyErr_Fetch(&type, &value, &trace);
    py_client_grab(c);
    drop(what, handle);
    py_client_leave(c);
    PyErr_Restore(type, value, trace);
}

void py_client_report(struct py_client *c, PyObject *whose) {
    bool stop = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit);
    if (stop && c && c->interruptible && !c->stop_type)
        PyErr_Fetch(&c->stop_type, &c->stop_value, &c->stop_trace);
    else
        PyErr_WriteUnraisable(whose);
}
