/* The queue between the core's log and the callback in Python. */
#ifndef EXT_LOG_H
#define EXT_LOG_H

#include "ext.h"

struct log_queue *py_log_new(PyObject *fn);
void py_log_free(struct log_queue *q);
void py_log_clear(struct log_queue *q);
int py_log_traverse(struct log_queue *q, visitproc visit, void *arg);
/* An abx_log_fn; from any thread, without the interpreter's lock. */
void py_log_put(void *user, abx_log_level level, const char *component, const char *text);
bool py_log_waits(struct log_queue *q);
/* Tells what waits; an exception that is set stays set. */
void py_log_flush(struct log_queue *q, struct py_client *c);

#endif
