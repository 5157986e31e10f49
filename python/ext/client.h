/* What the files of the client share. */
#ifndef EXT_CLIENT_H
#define EXT_CLIENT_H

#include "ext.h"

/* guard.c: what enter() does once it is sure, and what others left to be done */
void py_client_grab(struct py_client *c);
void py_client_do_later(struct py_client *c);

/* start.c */
PyObject *py_client_create(PyObject *o, FAST_ARGS);
PyObject *py_client_connect(PyObject *o, FAST_ARGS);
PyObject *py_client_attach(PyObject *o, FAST_ARGS);
PyObject *py_client_list(PyObject *o, FAST_ARGS);
PyObject *py_client_doctor(PyObject *o, FAST_ARGS);

/* manage.c */
PyObject *py_client_provider_list(PyObject *o, PyObject *unused);
PyObject *py_client_provider_info(PyObject *o, PyObject *id);
PyObject *py_client_provider_default(PyObject *o, PyObject *unused);
PyObject *py_client_provider_set_default(PyObject *o, PyObject *id);
PyObject *py_client_uninstall(PyObject *o, FAST_ARGS);
PyObject *py_client_config_explain(PyObject *o, FAST_ARGS);
PyObject *py_client_config_get(PyObject *o, FAST_ARGS);
PyObject *py_client_config_set(PyObject *o, FAST_ARGS);
PyObject *py_client_add_provider(PyObject *o, FAST_ARGS);

/* plan.c */
PyObject *py_client_install_plan(PyObject *o, PyObject *args, PyObject *kw);
PyObject *py_client_update_plan(PyObject *o, PyObject *args, PyObject *kw);

#endif
