/* What the files of the extension share: types, names, and who may use a client now.
 *
 * The module lives in one interpreter, so what would be its state is one static struct. */
#ifndef EXT_EXT_H
#define EXT_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <abx/abx.h>
#include <abx/sys/provider.h>
#include <stdbool.h>
#include <sys/types.h>

struct ext {
    PyTypeObject *client_type, *op_type, *sandbox_type, *plan_type, *call_type;
    PyObject *s_done, *s_set_result, *s_set_exception; /* interned names of a Pending's methods */
    PyObject *from_core;                               /* agent_sandbox.models.errors.from_core */
};
extern struct ext ext;

/* Given up or asked for while another thread was inside the client; done when it leaves. */
struct later {
    struct later *next;
    enum { LATER_OP, LATER_SANDBOX, LATER_PLAN, LATER_CANCEL, LATER_CALL } what;
    void *handle; /* of libabx; LATER_OP: an op_link, LATER_CANCEL: a reference of an Op */
};

struct log_queue;
struct provider;

struct py_client {
    PyObject_HEAD
    abx_client *client;
    pid_t pid;
    bool closed;
    bool pumping;        /* inside of abx_pump() or abx_client_close()  */
    unsigned busy;       /* how deep `owner` is in calls of this client */
    unsigned long owner;
    struct later *later;
    struct log_queue *log;
    struct provider *providers;
    bool interruptible;  /* inside of run() or wait(): an interrupt may leave through it */
    PyObject *stop_type, *stop_value, *stop_trace; /* KeyboardInterrupt or SystemExit of a callback */
};

/* client.c and guard.c */
extern PyType_Spec py_client_spec;
/* 0, or -1 with RuntimeError: another process, another thread, or closed (unless that is fine). */
int py_client_enter(struct py_client *c, bool closed_too);
void py_client_leave(struct py_client *c);
/* -1 with RuntimeError in a child made by fork. */
int py_client_same_process(const struct py_client *c);
/* Whether this thread may touch handles of libabx now. */
bool py_client_free_to_use(const struct py_client *c);
/* Leaves something to be done to the thread that is inside. */
void py_client_later(struct py_client *c, int what, void *handle);
/* The end of a handle of libabx: now, later, or in a child made by fork never. */
void py_client_give_up(struct py_client *c, int what, void *handle);
/* An exception of a callback: to sys.unraisablehook, an interrupt out of run() or wait(). c may be NULL. */
void py_client_report(struct py_client *c, PyObject *whose);

/* provider.c */
void py_provider_forget(struct py_client *c);
int py_provider_traverse(struct py_client *c, visitproc visit, void *arg);
PyObject *py_provider_add(struct py_client *c, PyObject *manifest, PyObject *handler, PyObject *close);

/* call.c */
void py_call_drop(abx_call *call); /* nobody is left who could end it */
struct py_call {
    PyObject_HEAD
    struct py_client *client;
    abx_call *call;              /* NULL: ended */
    struct py_call *next, **at;  /* in the instance's list */
    unsigned long session;       /* which instance that is */
    PyObject *on_cancel;
};
extern PyType_Spec py_call_spec;
struct py_call *py_call_new(struct py_client *c, abx_call *call, struct py_call **list);
/* The caller gave up; the call goes on. */
void py_call_tell(struct py_call *self);
/* The core ended it: what it stands for is gone, and its owner is told. */
void py_call_gone(struct py_call *self);
void py_call_fail_exception(struct py_call *self, PyObject *whose);

/* op.c */
enum op_kind { OP_VALUE, OP_RUN, OP_READ, OP_ENTRIES, OP_RECORDS, OP_SANDBOX, OP_PLAN, OP_UPDATE };
extern PyType_Spec py_op_spec;
/* What every start ends with: the Op, or the exception. op and e are consumed. */
PyObject *py_op_started(struct py_client *c, int r, abx_op *op, abx_error *e, PyObject *future, enum op_kind kind);
void py_op_cancel_now(PyObject *op);
struct op_link;
void py_op_link_drop(struct op_link *link);

/* sandbox.c */
struct py_sandbox {
    PyObject_HEAD
    struct py_client *client;
    abx_sandbox *sandbox;
};
extern PyType_Spec py_sandbox_spec;
PyObject *py_sandbox_new(struct py_client *c, abx_sandbox *sandbox); /* consumes sandbox */

/* plan.c */
extern PyType_Spec py_plan_spec;
PyObject *py_plan_new(struct py_client *c, abx_plan *plan); /* consumes plan */

/* error.c */
PyObject *py_error_object(const abx_error *e, int r); /* the exception, or NULL with another one set */
PyObject *py_error_raise(abx_error *e, int r);        /* consumes e; NULL */
/* The exception that is set, taken away, as an object. */
PyObject *py_error_take(void);

/* value.c */
PyObject *py_value_to_py(const abx_value *v);
abx_value *py_value_from_py(PyObject *o);                         /* NULL with the exception */
/* The storage of bytes, or the UTF-8 of str, as it lies; it lives as long as the value does. */
abx_value *py_value_borrow(PyObject *o);
/* For abx_client_opts: contents of files come as bytes objects. */
void *py_bytes_new(size_t n, void **ret_owner);
void py_bytes_free(void *data, void *owner);
/* An object of strings, or of anything; None gives *ret NULL. `what` names it in the error. */
int py_value_object(PyObject *o, const char *what, bool strings, abx_value **ret);

/* args.c */
/* Binds positional and keyword arguments to names (NULL-ended); what was not given is NULL. */
int py_args_bind(const char *function, const char *const *names, int required, PyObject *const *args, Py_ssize_t nargs,
              PyObject *kwnames, PyObject **out);
int py_args_text(PyObject *o, const char *what, const char **ret);     /* str without NUL */
int py_args_text_opt(PyObject *o, const char *what, const char **ret); /* or None, or not given: NULL */
int py_args_int(PyObject *o, const char *what, long long min, long long max, long long *ret);
int py_args_bool(PyObject *o, int *ret); /* not given: 0 */
/* A path or text of the system as bytes; None gives *ret NULL. */
int py_args_system(PyObject *o, const char *what, PyObject **ret_bytes, const char **ret);

/* store.c */
extern PyMethodDef py_store_methods[];

/* Allocates an object of a type of ours, all zero and tracked. */
#define NEW_OBJECT(type) PyType_GenericAlloc((type), 0)
/* The end of every tp_dealloc. */
void py_free_object(PyObject *self);

/* An entry of a method table that takes positional and keyword arguments. */
#define FAST(name, fn, doc) {name, (PyCFunction)(void (*)(void))(fn), METH_FASTCALL | METH_KEYWORDS, PyDoc_STR(doc)}
#define FAST_ARGS PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

#endif
