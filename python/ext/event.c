/* The events of a stream as tuples; text is decoded as it comes. */
#include <string.h>

#include "op.h"

/* A tuple of three; consumes data and extra. */
static PyObject *event(int kind, PyObject *data, PyObject *extra) {
    PyObject *k = data && extra ? PyLong_FromLong(kind) : NULL;
    PyObject *tuple = k ? PyTuple_Pack(3, k, data, extra) : NULL;
    Py_XDECREF(k);
    Py_XDECREF(data);
    Py_XDECREF(extra);
    return tuple;
}

/* Text of what came, with what was kept before; *ret_n: how many bytes of it were used up. Broken
 * sequences turn into U+FFFD, and then *ret_raw is the bytes. */
static PyObject *decode(const char *s, Py_ssize_t n, bool final, Py_ssize_t *ret_n, PyObject **ret_raw) {
    *ret_raw = Py_None;
    Py_ssize_t used = n;
    PyObject *text = PyUnicode_DecodeUTF8Stateful(s, n, "strict", final ? NULL : &used);
    if (text) {
        Py_INCREF(*ret_raw);
    } else {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return NULL;
        PyErr_Clear();
        text = PyUnicode_DecodeUTF8Stateful(s, n, "replace", final ? NULL : &used);
        if (text && !(*ret_raw = PyBytes_FromStringAndSize(s, used))) Py_CLEAR(text);
    }
    *ret_n = used;
    return text;
}

/* Appends the text of a chunk to list; final: nothing more comes, what is kept is broken. */
static int text_event(PyObject *list, int kind, struct tail *tail, abx_bytes chunk, bool final) {
    char few[256], *joined = NULL;
    const char *s = (const char *)chunk.data;
    size_t n = chunk.len;
    if (tail->n) {
        n += tail->n;
        joined = n <= sizeof few ? few : PyMem_Malloc(n);
        if (!joined) return PyErr_NoMemory(), -1;
        memcpy(joined, tail->bytes, tail->n);
        if (chunk.len) memcpy(joined + tail->n, chunk.data, chunk.len);
        s = joined;
    }
    Py_ssize_t used = 0;
    PyObject *raw = NULL, *text = n ? decode(s, (Py_ssize_t)n, final, &used, &raw) : NULL;
    int r = n && !text ? -1 : 0;
    if (text) {
        tail->n = (unsigned)(n - (size_t)used);
        if (tail->n > sizeof tail->bytes) tail->n = 0; /* not to be: a character has four bytes at most */
        memcpy(tail->bytes, s + used, tail->n);
    }
    if (joined != few) PyMem_Free(joined);
    if (text && used == 0) {
        Py_DECREF(text);
        Py_DECREF(raw);
    } else if (text) {
        PyObject *e = event(kind, text, raw);
        r = e ? PyList_Append(list, e) : -1;
        Py_XDECREF(e);
    }
    return r;
}

static int flush_tails(struct py_op *self, PyObject *list) {
    for (int i = 0; i < 2; i++)
        if (self->tails[i].n && text_event(list, ABX_EVENT_STDOUT + i, &self->tails[i], (abx_bytes){NULL, 0}, true) < 0) return -1;
    return 0;
}

static const abx_value *started_id(const abx_value *v) {
    const abx_value *process = abx_value_get(v, "process_id");
    return process ? process : abx_value_get(v, "watch_id");
}

static int append_event(struct py_op *self, PyObject *list, const abx_event *e) {
    PyObject *made = NULL;
    switch (e->type) {
    case ABX_EVENT_STDOUT:
    case ABX_EVENT_STDERR: return text_event(list, e->type, &self->tails[e->type - ABX_EVENT_STDOUT], e->bytes, false);
    case ABX_EVENT_STARTED:
        made = event(e->type, py_value_to_py(started_id(e->value)), Py_NewRef(Py_None));
        break;
    case ABX_EVENT_PTY:
        made = event(e->type, PyBytes_FromStringAndSize((const char *)e->bytes.data, (Py_ssize_t)e->bytes.len), Py_NewRef(Py_None));
        break;
    case ABX_EVENT_EXIT:
        if (flush_tails(self, list) < 0) return -1;
        made = event(e->type, PyLong_FromLong(e->exit_code), py_value_to_py(e->value));
        break;
    default: made = event(e->type, py_value_to_py(e->value), Py_NewRef(Py_None)); break;
    }
    int r = made ? PyList_Append(list, made) : -1;
    Py_XDECREF(made);
    return r;
}

PyObject *py_op_take(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"limit", NULL};
    struct py_op *self = (struct py_op *)o;
    PyObject *a[1];
    long long limit = 256;
    if (py_args_bind("take", names, 0, args, nargs, kwnames, a) < 0) return NULL;
    if (a[0] && py_args_int(a[0], "limit", 1, PY_SSIZE_T_MAX, &limit) < 0) return NULL;
    if (py_client_enter(self->client, true) < 0) return NULL;
    PyObject *list = PyList_New(0);
    int r = 0;
    while (list && PyList_Size(list) < limit) {
        abx_event e = {.size = sizeof e};
        r = abx_op_next(self->op, &e);
        if (r <= 0) break;
        if (append_event(self, list, &e) < 0) Py_CLEAR(list);
    }
    if (list && r < 0 && flush_tails(self, list) < 0) Py_CLEAR(list);
    py_client_leave(self->client);
    if (!list || r >= 0 || PyList_Size(list) > 0) return list;
    Py_DECREF(list);
    Py_RETURN_NONE;
}
