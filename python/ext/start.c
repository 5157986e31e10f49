/* The client's calls that lead to a sandbox, and the choice of a provider they share. */
#include <string.h>

#include "client.h"

/* provider, provider_options and what the caller said of the generic keys. */
struct choice {
    abx_provider_opts opts;
    abx_value *options, *core;
};

static void choice_done(struct choice *c) {
    abx_value_unref(c->options);
    abx_value_unref(c->core);
}

static int choice_init(struct choice *c, PyObject *provider, PyObject *options, PyObject *core) {
    *c = (struct choice){.opts = ABX_PROVIDER_OPTS_INIT};
    if (py_args_text_opt(provider, "provider", &c->opts.provider) < 0) return -1;
    if (py_value_object(options, "options", false, &c->options) < 0) return -1;
    if (py_value_object(core, "core", true, &c->core) < 0) return -1;
    c->opts.options = c->options;
    c->opts.core = c->core;
    return 0;
}

/* ---- create -------------------------------------------------------------------------------- */

static int whole(const abx_value *v, const char *key, int64_t max, int64_t *ret) {
    int64_t n = abx_value_int(v, -1);
    if (abx_value_is(v, ABX_TYPE_NULL) || !v) return 0;
    if (n >= 0 && n <= max && !abx_value_is(v, ABX_TYPE_STRING)) {
        *ret = n;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s must be a whole number that is not negative", key);
    return -1;
}

static int text(const abx_value *v, const char *key, const char **ret) {
    if (!v || abx_value_is(v, ABX_TYPE_NULL)) return 0;
    *ret = abx_value_string(v);
    if (*ret && strlen(*ret) == abx_value_bytes(v).len) return 0;
    PyErr_Format(PyExc_TypeError, "%s must be str without NUL", key);
    return -1;
}

static int container(const abx_value *v, const char *key, abx_type type, const abx_value **ret) {
    if (!v || abx_value_is(v, ABX_TYPE_NULL)) return 0;
    *ret = v;
    if (abx_value_is(v, type)) return 0;
    PyErr_Format(PyExc_TypeError, "%s must be a %s", key, type == ABX_TYPE_ARRAY ? "list" : "mapping");
    return -1;
}

/* params borrows into v. */
static int create_opts(const abx_value *v, abx_sandbox_create_opts *o) {
    int64_t cpu = 0, memory = 0, disk = 0;
    for (size_t i = 0; i < abx_value_size(v); i++) {
        const char *key = abx_value_key_at(v, i);
        const abx_value *m = abx_value_at(v, i);
        int r = 0;
        if (strcmp(key, "template") == 0) r = text(m, key, &o->template_);
        else if (strcmp(key, "timeout") == 0) r = whole(m, key, INT64_MAX, &o->timeout_s);
        else if (strcmp(key, "secure") == 0) o->secure = abx_value_is(m, ABX_TYPE_BOOL) ? (abx_value_bool(m) ? 1 : -1) : 0;
        else if (strcmp(key, "metadata") == 0) r = container(m, key, ABX_TYPE_OBJECT, &o->metadata);
        else if (strcmp(key, "envs") == 0) r = container(m, key, ABX_TYPE_OBJECT, &o->envs);
        else if (strcmp(key, "cpu") == 0) r = whole(m, key, INT_MAX, &cpu);
        else if (strcmp(key, "memory") == 0) r = whole(m, key, INT_MAX, &memory);
        else if (strcmp(key, "disk") == 0) r = whole(m, key, INT_MAX, &disk);
        else if (strcmp(key, "gpu") == 0) r = text(m, key, &o->gpu);
        else if (strcmp(key, "volume_mounts") == 0) r = container(m, key, ABX_TYPE_ARRAY, &o->volume_mounts);
        else if (strcmp(key, "vpc") == 0) r = container(m, key, ABX_TYPE_OBJECT, &o->vpc);
        else if (strcmp(key, "request_timeout") == 0) o->request_timeout_s = abx_value_double(m, 0);
        else {
            PyErr_Format(PyExc_TypeError, "there is no parameter '%s'", key);
            r = -1;
        }
        if (r < 0) return r;
    }
    o->cpu = (int)cpu;
    o->memory_mb = (int)memory;
    o->disk_mb = (int)disk;
    return 0;
}

PyObject *py_client_create(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "provider", "options", "core", "params", NULL};
    struct py_client *c = (struct py_client *)o;
    abx_sandbox_create_opts create = ABX_SANDBOX_CREATE_OPTS_INIT;
    abx_value *params = NULL;
    struct choice choice;
    abx_op *op = NULL;
    abx_error *e = NULL;
    PyObject *a[5], *made = NULL;
    if (py_args_bind("create", names, 5, args, nargs, kwnames, a) < 0) return NULL;
    if (choice_init(&choice, a[1], a[2], a[3]) == 0 && py_value_object(a[4], "params", false, &params) == 0 &&
        create_opts(params, &create) == 0 && py_client_enter(c, false) == 0) {
        int r = abx_sandbox_create_start(&op, c->client, &choice.opts, &create, &e);
        made = py_op_started(c, r, op, e, a[0], OP_SANDBOX);
        py_client_leave(c);
    }
    choice_done(&choice);
    abx_value_unref(params);
    return made;
}

/* ---- the others ------------------------------------------------------------------------------ */

PyObject *py_client_connect(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "ref", "provider", "options", "core", NULL};
    struct py_client *c = (struct py_client *)o;
    struct choice choice;
    const char *ref;
    abx_op *op = NULL;
    abx_error *e = NULL;
    PyObject *a[5], *made = NULL;
    if (py_args_bind("connect", names, 2, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "ref", &ref) < 0) return NULL;
    if (choice_init(&choice, a[2], a[3], a[4]) == 0 && py_client_enter(c, false) == 0) {
        int r = abx_sandbox_connect_start(&op, c->client, ref, &choice.opts, &e);
        made = py_op_started(c, r, op, e, a[0], OP_SANDBOX);
        py_client_leave(c);
    }
    choice_done(&choice);
    return made;
}

PyObject *py_client_attach(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"ref", "provider", "options", "core", NULL};
    struct py_client *c = (struct py_client *)o;
    struct choice choice;
    const char *ref;
    abx_sandbox *sb = NULL;
    abx_error *e = NULL;
    PyObject *a[4], *made = NULL;
    if (py_args_bind("attach", names, 1, args, nargs, kwnames, a) < 0 || py_args_text(a[0], "ref", &ref) < 0) return NULL;
    if (choice_init(&choice, a[1], a[2], a[3]) == 0 && py_client_enter(c, false) == 0) {
        int r = abx_sandbox_attach(&sb, c->client, ref, &choice.opts, &e);
        made = r < 0 ? py_error_raise(e, r) : py_sandbox_new(c, sb);
        py_client_leave(c);
    }
    choice_done(&choice);
    return made;
}

PyObject *py_client_list(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "provider", "options", "core", "status", "limit", NULL};
    struct py_client *c = (struct py_client *)o;
    struct choice choice;
    const char *status;
    long long limit = 0;
    abx_op *op = NULL;
    abx_error *e = NULL;
    PyObject *a[6], *made = NULL;
    if (py_args_bind("list", names, 1, args, nargs, kwnames, a) < 0 || py_args_text_opt(a[4], "status", &status) < 0) return NULL;
    if (a[5] && py_args_int(a[5], "limit", LLONG_MIN, LLONG_MAX, &limit) < 0) return NULL;
    if (choice_init(&choice, a[1], a[2], a[3]) == 0 && py_client_enter(c, false) == 0) {
        int r = abx_sandbox_list_start(&op, c->client, &choice.opts, status, limit, &e);
        made = py_op_started(c, r, op, e, a[0], OP_RECORDS);
        py_client_leave(c);
    }
    choice_done(&choice);
    return made;
}

PyObject *py_client_doctor(PyObject *o, FAST_ARGS) {
    static const char *const names[] = {"future", "provider", "options", "handshake", NULL};
    struct py_client *c = (struct py_client *)o;
    struct choice choice;
    int handshake = 1;
    abx_op *op = NULL;
    abx_error *e = NULL;
    PyObject *a[4], *made = NULL;
    if (py_args_bind("doctor", names, 1, args, nargs, kwnames, a) < 0 || (a[3] && py_args_bool(a[3], &handshake) < 0)) return NULL;
    if (choice_init(&choice, a[1], a[2], NULL) == 0 && py_client_enter(c, false) == 0) {
        int r = abx_provider_doctor_start(&op, c->client, &choice.opts, !handshake, &e);
        made = py_op_started(c, r, op, e, a[0], OP_VALUE);
        py_client_leave(c);
    }
    choice_done(&choice);
    return made;
}
