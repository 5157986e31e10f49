/* Helpers for the package's own tools, over the rooms themselves: digests, TOML, manifests, receipts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"

#include "base/err.h"
#include "base/str.h"
#include "base/util.h"
#include "provider/manifest.h"
#include "store/receipt.h"
#include "store/store.h"
#include "toml/toml.h"

extern char **environ;

static PyObject *features_line(PyObject *module, PyObject *features) {
    (void)module;
    PyObject *list = PyUnicode_Check(features) ? NULL : PySequence_List(features);
    if (!list) return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "features must be a sequence of str"), NULL);
    abx_value *v = py_value_from_py(list);
    Py_DECREF(list);
    if (!v) return NULL;
    char *s = abx_features_line(v);
    abx_value_unref(v);
    PyObject *made = s ? PyUnicode_FromString(s) : PyErr_NoMemory();
    free(s);
    return made;
}

static PyObject *digest(PyObject *module, PyObject *path) {
    PyObject *bytes;
    const char *dir;
    char hex[65];
    abx_error *e = NULL;
    int r;
    (void)module;
    if (path == Py_None || py_args_system(path, "path", &bytes, &dir) < 0)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "path must be str"), NULL);
    Py_BEGIN_ALLOW_THREADS
    r = tree_digest_dir(dir, hex, &e);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    return r < 0 ? py_error_raise(e, r) : PyUnicode_FromString(hex);
}

static PyObject *parse_toml(PyObject *module, PyObject *data) {
    (void)module;
    if (!PyBytes_Check(data)) {
        PyErr_Format(PyExc_TypeError, "data must be bytes, not %R", (PyObject *)Py_TYPE(data));
        return NULL;
    }
    abx_value *v = NULL;
    abx_error *e = NULL;
    char *reason = NULL;
    struct toml_pos pos = {0};
    int r = toml_parse(PyBytes_AsString(data), (size_t)PyBytes_Size(data), &v, &reason, &pos);
    if (r < 0 && r != -ENOMEM)
        r = err_set(&e, ABX_E_MANIFEST, NULL, "Not valid TOML: %s (at line %u, column %u).", reason ? reason : "unknown", pos.line, pos.column);
    free(reason);
    if (r < 0) return py_error_raise(e, r);
    PyObject *made = py_value_to_py(v);
    abx_value_unref(v);
    return made;
}

/* ---- manifests ------------------------------------------------------------------------------------- */

static abx_value *strings(char *const *list) {
    abx_value *a = abx_value_new_array();
    for (size_t i = 0; list && list[i]; i++) abx_value_append_string(a, list[i]);
    return a;
}

static abx_value *field(const struct manifest_field *f) {
    static const char *const types[] = {"str", "int", "float", "bool", "enum", "path", "url", "csv"};
    abx_value *v = abx_value_new_object();
    abx_value_set_string(v, "key", f->key);
    abx_value_set_string(v, "type", types[f->type]);
    abx_value_set_bool(v, "required", f->required);
    abx_value_set_bool(v, "secret", f->secret);
    abx_value_set_bool(v, "credential", f->credential);
    abx_value_set(v, "default", f->default_ ? abx_value_ref(f->default_) : abx_value_new_null());
    abx_value_set(v, "env", strings(f->env));
    abx_value_set(v, "choices", strings(f->choices));
    abx_value_set_string(v, "description", f->description ? f->description : "");
    abx_value_set_string(v, "description_zh", f->description_zh ? f->description_zh : "");
    return v;
}

static abx_value *describe(const struct manifest *m) {
    abx_value *v = abx_value_new_object(), *security = abx_value_new_object(), *fields = abx_value_new_array();
    const struct { const char *key, *text; } texts[] = {
        {"id", m->id}, {"name", m->name}, {"name_zh", m->name_zh}, {"version", m->version}, {"description", m->description},
        {"license", m->license}, {"homepage", m->homepage}, {"kind", m->kind}, {"protocol", m->protocol}};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) abx_value_set_string(v, texts[i].key, texts[i].text ? texts[i].text : "");
    abx_value_set(v, "command", strings(m->command));
    abx_value_set_int(v, "startup_timeout_ms", m->startup_timeout_ms);
    abx_value_set_int(v, "call_timeout_ms", m->call_timeout_ms);
    abx_value_set(v, "platforms", strings(m->platforms));
    abx_value_set(v, "features", strings(m->features));
    abx_value_set_bool(v, "has_contract", m->has_contract);
    abx_value_set(v, "operations_cli", strings(m->operations_cli));
    abx_value_set(v, "operations_python", strings(m->operations_python));
    abx_value_set(v, "workflow_inputs", strings(m->workflow_inputs));
    abx_value_set(v, "startup_modes", strings(m->startup_modes));
    abx_value_set(security, "network", strings(m->network));
    abx_value_set(security, "filesystem", strings(m->filesystem));
    abx_value_set(security, "env_passthrough", strings(m->env_passthrough));
    abx_value_set_bool(security, "spawns_processes", m->spawns_processes);
    abx_value_set(v, "security", security);
    abx_value_set(v, "inherit", strings(m->inherit));
    abx_value_set(v, "auth_any_of", m->auth_any_of ? abx_value_ref(m->auth_any_of) : abx_value_new_array());
    for (size_t i = 0; i < m->field_count; i++) abx_value_append(fields, field(&m->fields[i]));
    abx_value_set(v, "config_fields", fields);
    abx_value_set(v, "endpoint", m->endpoint ? abx_value_ref(m->endpoint) : abx_value_new_null());
    abx_value_set(v, "requires", m->requires ? abx_value_ref(m->requires) : abx_value_new_object());
    abx_value_set(v, "commands", m->commands ? abx_value_ref(m->commands) : abx_value_new_array());
    abx_value_set(v, "unknown_keys", strings(m->unknown_keys));
    abx_value_set(v, "consented", manifest_consented(m));
    abx_value_set_string(v, "sha256", m->sha256);
    return v;
}

static PyObject *manifest_describe(PyObject *module, PyObject *path) {
    PyObject *bytes;
    const char *dir;
    struct manifest *m = NULL;
    abx_error *e = NULL;
    (void)module;
    if (path == Py_None || py_args_system(path, "path", &bytes, &dir) < 0)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "path must be str"), NULL);
    int r = manifest_load(&m, dir, false, &e);
    Py_DECREF(bytes);
    if (r < 0) return py_error_raise(e, r);
    abx_value *v = describe(m);
    manifest_unref(m);
    PyObject *made = v ? py_value_to_py(v) : PyErr_NoMemory();
    abx_value_unref(v);
    return made;
}

/* ---- what is installed --------------------------------------------------------------------------------- */

struct place {
    PyObject *bytes;
    char *home;
    const char *id;
};

static void place_done(struct place *p) {
    Py_XDECREF(p->bytes);
    free(p->home);
}

static int place_init(struct place *p, const char *function, FAST_ARGS) {
    static const char *const names[] = {"home", "id", NULL};
    PyObject *a[2];
    const char *home;
    char scratch[128];
    *p = (struct place){NULL};
    if (py_args_bind(function, names, 2, args, nargs, kwnames, a) < 0 || py_args_text(a[1], "id", &p->id) < 0) return -1;
    if (py_args_system(a[0], "home", &p->bytes, &home) < 0) return -1;
    int r = home ? ((p->home = strdup(home)) ? 0 : -ENOMEM) : env_abx_home((const char *const *)environ, &p->home);
    abx_error *e = NULL;
    if (r < 0) r = err_errno(&e, ABX_E_CONFIG, r, "There is no home directory to keep ~/.abx in");
    if (r == 0 && provider_id_problem(p->id, scratch))
        r = err_set(&e, ABX_E_PROVIDER_NOT_FOUND, NULL, "Provider '%s' is not installed.", p->id);
    if (r < 0) py_error_raise(e, r);
    return r;
}

static PyObject *read_receipt(PyObject *module, FAST_ARGS) {
    struct place p;
    PyObject *made = NULL;
    abx_value *v = NULL;
    abx_error *e = NULL;
    (void)module;
    if (place_init(&p, "read_receipt", args, nargs, kwnames) == 0) {
        char *dir = str_printf("%s/providers/%s", p.home, p.id);
        int r = dir ? receipt_read(&v, dir, p.id, &e) : -ENOMEM;
        free(dir);
        if (r == -ENOENT && !e)
            made = Py_NewRef(Py_None);
        else
            made = r < 0 ? py_error_raise(e, r) : py_value_to_py(v);
        abx_value_unref(v);
    }
    place_done(&p);
    return made;
}

static PyObject *verify_integrity(PyObject *module, FAST_ARGS) {
    struct place p;
    PyObject *made = NULL;
    abx_error *e = NULL;
    (void)module;
    if (place_init(&p, "verify_integrity", args, nargs, kwnames) == 0) {
        struct logger silent = {0};
        struct store s = {.home = p.home, .environ_ = (const char *const *)environ, .host_name = "agent_sandbox", .log = &silent};
        struct installed installed = {0};
        int r;
        Py_BEGIN_ALLOW_THREADS
        r = store_load(&s, p.id, &installed, &e);
        if (r == 0 && installed.error) r = err_pass(&e, abx_error_ref(installed.error));
        if (r == 0) r = store_verify(&s, &installed, &e);
        installed_done(&installed);
        Py_END_ALLOW_THREADS
        made = r < 0 ? py_error_raise(e, r) : Py_NewRef(Py_None);
    }
    place_done(&p);
    return made;
}

PyMethodDef py_store_methods[] = {
    {"features_line", features_line, METH_O, PyDoc_STR("The one-line form of features.")},
    {"digest_dir", digest, METH_O, PyDoc_STR("The tree digest of a directory, 64 hex digits.")},
    {"parse_toml", parse_toml, METH_O, PyDoc_STR("E8014 with the position when it is not TOML.")},
    {"manifest_describe", manifest_describe, METH_O, PyDoc_STR("The manifest of a plugin directory, read and checked.")},
    FAST("read_receipt", read_receipt, "The install receipt of a provider, or None."),
    FAST("verify_integrity", verify_integrity, "E8011 when the installed files are not those of the receipt."),
    {NULL, NULL, 0, NULL},
};
