/* An Op, as the files that make and that read it share it. */
#ifndef EXT_OP_H
#define EXT_OP_H

#include "ext.h"

/* The start of a character whose end has not come yet. */
struct tail {
    unsigned char bytes[4];
    unsigned n;
};

/* What the core knows of an Op: the object may go while another thread is inside the client, and
 * its handle is given up later. */
struct op_link {
    struct py_op *self; /* NULL: gone */
    abx_op *op;
};

struct py_op {
    PyObject_HEAD
    struct py_client *client;
    struct op_link *link;
    abx_op *op; /* the link's */
    enum op_kind kind;
    PyObject *future; /* completed with the result, once */
    PyObject *waiter; /* completed with None, once       */
    PyObject *result; /* what can be taken from the op once only */
    struct tail tails[2];
};

/* event.c: the method take() */
PyObject *py_op_take(PyObject *o, FAST_ARGS);

#endif
