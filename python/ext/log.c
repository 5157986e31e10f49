/* Lines of the log on their way to Python. They come from workers, too: they wait in a queue until
 * the thread of the client holds the interpreter's lock, so no worker ever waits for it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define LINES_MAX 4096

struct line {
    struct line *next;
    int level;
    size_t text; /* where in data the line begins, behind the component */
    char data[];
};

struct log_queue {
    pthread_mutex_t mutex;
    struct line *first, **tail;
    unsigned count, lost;
    PyObject *fn;
};

struct log_queue *py_log_new(PyObject *fn) {
    struct log_queue *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    pthread_mutex_init(&q->mutex, NULL);
    q->tail = &q->first;
    q->fn = Py_NewRef(fn);
    return q;
}

void py_log_free(struct log_queue *q) {
    if (!q) return;
    while (q->first) {
        struct line *line = q->first;
        q->first = line->next;
        free(line);
    }
    pthread_mutex_destroy(&q->mutex);
    free(q);
}

void py_log_clear(struct log_queue *q) {
    if (q) Py_CLEAR(q->fn);
}

int py_log_traverse(struct log_queue *q, visitproc visit, void *arg) {
    if (q) Py_VISIT(q->fn);
    return 0;
}

void py_log_put(void *user, abx_log_level level, const char *component, const char *text) {
    struct log_queue *q = user;
    size_t c = strlen(component) + 1, n = strlen(text) + 1;
    struct line *line = malloc(sizeof *line + c + n);
    if (line) {
        *line = (struct line){.level = level, .text = c};
        memcpy(line->data, component, c);
        memcpy(line->data + c, text, n);
    }
    pthread_mutex_lock(&q->mutex);
    if (line && q->count < LINES_MAX) {
        *q->tail = line;
        q->tail = &line->next;
        __atomic_store_n(&q->count, q->count + 1, __ATOMIC_RELAXED);
        line = NULL;
    } else {
        q->lost++;
    }
    pthread_mutex_unlock(&q->mutex);
    free(line);
}

bool py_log_waits(struct log_queue *q) { return q && __atomic_load_n(&q->count, __ATOMIC_RELAXED) > 0; }

static void tell(struct log_queue *q, struct py_client *c, int level, const char *component, const char *text) {
    PyObject *fn = Py_XNewRef(q->fn);
    if (!fn) return;
    PyObject *part = PyUnicode_DecodeUTF8(component, (Py_ssize_t)strlen(component), "replace");
    PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *r = part && line ? PyObject_CallFunction(fn, "iOO", level, part, line) : NULL;
    if (!r) py_client_report(c, fn);
    Py_XDECREF(r);
    Py_XDECREF(part);
    Py_XDECREF(line);
    Py_DECREF(fn);
}

void py_log_flush(struct log_queue *q, struct py_client *c) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    pthread_mutex_lock(&q->mutex);
    struct line *line = q->first;
    unsigned lost = q->lost;
    q->first = NULL;
    q->tail = &q->first;
    __atomic_store_n(&q->count, 0, __ATOMIC_RELAXED);
    q->lost = 0;
    pthread_mutex_unlock(&q->mutex);
    while (line) {
        struct line *next = line->next;
        tell(q, c, line->level, line->data, line->data + line->text);
        free(line);
        line = next;
    }
    char text[64];
    snprintf(text, sizeof text, "%u lines of the log were lost", lost);
    if (lost) tell(q, c, ABX_LOG_WARN, "log", text);
    PyErr_Restore(type, value, trace);
}
