/* Sandboxes: handles, their life, and any method of the protocol on one of them. */
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "api/record.h"
#include "base/limits.h"
#include "base/utf8.h"

/* ---- handles ------------------------------------------------------------------ */

const char *abx_sandbox_id(abx_sandbox *sb) { return sb->id; }
const char *abx_sandbox_provider(abx_sandbox *sb) { return sb->provider; }
const char *abx_sandbox_ref_string(abx_sandbox *sb) { return sb->ref; }
const abx_value *abx_sandbox_record(abx_sandbox *sb) { return sb->record; }
int abx_sandbox_has_feature(abx_sandbox *sb, const char *feature) { return sb->session && session_has_feature(sb->session, feature); }

abx_sandbox *abx_sandbox_ref(abx_sandbox *sb) {
    sb->refs++;
    return sb;
}

abx_sandbox *abx_sandbox_unref(abx_sandbox *sb) {
    if (!sb || --sb->refs > 0) return NULL;
    session_unref(sb->session);
    abx_value_unref(sb->record);
    free(sb->id);
    free(sb->provider);
    free(sb->ref);
    abx_client *c = sb->client;
    free(sb);
    abx_client_unref(c);
    return NULL;
}

/* session is borrowed. */
static int sandbox_new(abx_sandbox **ret, abx_client *c, struct session *s, const char *id, const abx_value *record) {
    abx_sandbox *sb = calloc(1, sizeof *sb);
    if (!sb) return -ENOMEM;
    sb->refs = 1;
    sb->client = abx_client_ref(c);
    sb->session = session_ref(s);
    sb->id = strdup(id);
    sb->provider = strdup(s->manifest->id);
    sb->ref = str_printf("%s:%s", s->manifest->id, id);
    sb->record = record ? abx_value_ref(record) : NULL;
    if (!sb->id || !sb->provider || !sb->ref) {
        abx_sandbox_unref(sb);
        return -ENOMEM;
    }
    *ret = sb;
    return 0;
}

int abx_sandbox_attach(abx_sandbox **ret, abx_client *c, const char *ref, const abx_provider_opts *p, abx_error **reterr) {
    struct session *s = NULL;
    _cleanup_free_ char *id = NULL;
    if (!utf8_valid(ref, strlen(ref))) return err_set(reterr, ABX_E_CONFIG, NULL, "The reference of the sandbox is not UTF-8.");
    int r = client_session(c, p, ref, &s, &id, reterr);
    if (r < 0) return r;
    r = !id || !*id ? err_set(reterr, ABX_E_CONFIG, "Pass ID:SANDBOX or the id of a sandbox.", "'%s' names no sandbox.", ref)
                    : sandbox_new(ret, c, s, id, NULL);
    session_unref(s);
    return r == -ENOMEM ? err_nomem(reterr) : r;
}

/* ---- create and connect ---------------------------------------------------------- */

struct arrival {
    abx_client *client;
    struct session *session;
};

static void arrival_free(void *user) {
    struct arrival *a = user;
    session_unref(a->session);
    abx_client_unref(a->client);
    free(a);
}

static int arrival_finish(void *user, abx_op *op, const abx_value *value, abx_error **reterr) {
    struct arrival *a = user;
    int r = sandbox_new(&op->sandbox, a->client, a->session, abx_value_get_string(value, "sandbox_id"), value);
    return r < 0 ? err_nomem(reterr) : 0;
}

static int arrive(abx_op **ret, abx_client *c, struct session *s, const char *method, const abx_value *params, abx_error **reterr) {
    struct arrival *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(reterr);
    a->client = abx_client_ref(c);
    a->session = session_ref(s);
    struct call_opts o = {.shape = shape_record, .finish = arrival_finish, .user = a, .free_user = arrival_free};
    return call_start(ret, s, method, params, &o, reterr);
}

/* provider_options as the plugin's create may use them: no secret leaves initialize. */
static abx_value *public_options(const struct manifest *m, const abx_value *options) {
    abx_value *v = NULL;
    for (size_t i = 0; i < abx_value_size(options); i++) {
        const struct manifest_field *f = manifest_field(m, abx_value_key_at(options, i));
        if (!f || f->secret) continue;
        if (!v && !(v = abx_value_new_object())) return NULL;
        abx_value_set(v, f->key, abx_value_ref(abx_value_at(options, i)));
    }
    return v;
}

static int text_object(abx_value *params, const char *key, const abx_value *v, abx_error **reterr) {
    for (size_t i = 0; i < abx_value_size(v); i++)
        if (!abx_value_string(abx_value_at(v, i)))
            return err_set(reterr, ABX_E_CONFIG, NULL, "%s.%s is not a string.", key, abx_value_key_at(v, i));
    abx_value *copy = v ? abx_value_ref(v) : abx_value_new_object();
    return abx_value_set(params, key, copy) < 0 ? err_nomem(reterr) : 0;
}

static int create_params(abx_client *c, struct session *s, const abx_provider_opts *p, const abx_sandbox_create_opts *o,
                         abx_value **ret, abx_error **reterr) {
    _cleanup_value_ abx_value *v = abx_value_new_object(), *template_ = NULL;
    struct config *config;
    int r = client_config(c, &config, reterr);
    if (r == 0 && !o->template_) r = config_core(config, "default_template", &template_, reterr);
    if (r == 0 && o->timeout_s < 0) r = err_set(reterr, ABX_E_CONFIG, NULL, "The timeout of a sandbox can't be negative.");
    if (r == 0) r = abx_value_set_string(v, "template", o->template_ ?: abx_value_string(template_) ?: "base");
    if (r == 0) r = abx_value_set_int(v, "timeout", o->timeout_s ?: 300);
    if (r == 0) r = text_object(v, "metadata", o->metadata, reterr);
    if (r == 0) r = text_object(v, "envs", o->envs, reterr);
    if (r == 0 && o->cpu) r = abx_value_set_int(v, "cpu", o->cpu);
    if (r == 0 && o->memory_mb) r = abx_value_set_int(v, "memory", o->memory_mb);
    if (r == 0 && o->disk_mb) r = abx_value_set_int(v, "disk", o->disk_mb);
    if (r == 0 && o->gpu) r = abx_value_set_string(v, "gpu", o->gpu);
    if (r == 0 && o->request_timeout_s > 0) r = abx_value_set(v, "request_timeout", abx_value_new_double(o->request_timeout_s));
    if (r == 0 && o->secure) r = abx_value_set_bool(v, "secure", o->secure > 0);
    if (r == 0 && o->volume_mounts) r = gate_check(s, "storage.mount", "sandbox.create", reterr);
    if (r == 0 && o->volume_mounts) r = abx_value_set(v, "volume_mounts", abx_value_ref(o->volume_mounts));
    if (r == 0 && o->vpc) r = gate_check(s, "network.vpc", "sandbox.create", reterr);
    if (r == 0 && o->vpc) r = abx_value_set(v, "vpc", abx_value_ref(o->vpc));
    if (r == 0) {
        abx_value *options = public_options(s->manifest, p ? p->options : NULL);
        if (options) r = abx_value_set(v, "options", options);
    }
    if (r == -EINVAL) return err_set(reterr, ABX_E_CONFIG, NULL, "An option of the sandbox is not UTF-8.");
    if (r < 0) return r == -ENOMEM ? err_nomem(reterr) : r;
    *ret = TAKE_PTR(v);
    return 0;
}

int abx_sandbox_create_start(abx_op **ret, abx_client *c, const abx_provider_opts *p, const abx_sandbox_create_opts *o,
                             abx_error **reterr) {
    static const abx_sandbox_create_opts none = ABX_SANDBOX_CREATE_OPTS_INIT;
    struct session *s = NULL;
    _cleanup_value_ abx_value *params = NULL;
    int r = client_session(c, p, NULL, &s, NULL, reterr);
    if (r == 0) r = create_params(c, s, p, o ?: &none, &params, reterr);
    if (r == 0) r = arrive(ret, c, s, "sandbox.create", params, reterr);
    session_unref(s);
    return r;
}

int abx_sandbox_connect_start(abx_op **ret, abx_client *c, const char *ref, const abx_provider_opts *p, abx_error **reterr) {
    abx_sandbox *sb = NULL;
    int r = abx_sandbox_attach(&sb, c, ref, p, reterr);
    if (r < 0) return r;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    r = abx_value_set_string(params, "sandbox_id", sb->id) < 0 ? err_nomem(reterr)
                                                               : arrive(ret, c, sb->session, "sandbox.connect", params, reterr);
    abx_sandbox_unref(sb);
    return r;
}

/* ---- list ------------------------------------------------------------------------- */

struct listing {
    abx_value *all;
    char *status;
    int64_t limit;
};

static void listing_free(void *user) {
    struct listing *l = user;
    abx_value_unref(l->all);
    free(l->status);
    free(l);
}

static abx_value *list_params(const struct listing *l, const char *cursor) {
    abx_value *v = abx_value_new_object();
    int64_t left = l->limit ? l->limit - (int64_t)abx_value_size(l->all) : 100;
    abx_value_set_int(v, "limit", MIN_OF(left, (int64_t)100));
    if (l->status) abx_value_set_string(v, "status", l->status);
    if (cursor) abx_value_set_string(v, "cursor", cursor);
    return v;
}

/* One page: its records join the others; the last one makes the result. */
static int shape_page(void *user, abx_value **value, abx_value **again, abx_error **reterr) {
    struct listing *l = user;
    const abx_value *page = abx_value_get(*value, "sandboxes");
    if (!abx_value_is(page, ABX_TYPE_ARRAY))
        return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered sandbox.list without an array 'sandboxes'.");
    for (size_t i = 0; i < abx_value_size(page); i++) {
        abx_value *record = NULL;
        if (l->limit && (int64_t)abx_value_size(l->all) >= l->limit) break;
        int r = record_check(abx_value_at(page, i), &record, reterr);
        if (r < 0) return r;
        if (abx_value_append(l->all, record) < 0) return err_nomem(reterr);
        if (abx_value_size(l->all) > LIMIT_SANDBOXES)
            return err_set(reterr, ABX_E_PROTOCOL, NULL, "answered sandbox.list with more than %d sandboxes.", LIMIT_SANDBOXES);
    }
    const char *next = abx_value_get_string(*value, "next");
    bool full = l->limit && (int64_t)abx_value_size(l->all) >= l->limit;
    /* An empty page with a cursor would go round for ever. */
    if (next && *next && !full && abx_value_size(page) > 0) {
        *again = list_params(l, next);
        return *again ? 0 : err_nomem(reterr);
    }
    abx_value *out = abx_value_new_object();
    if (abx_value_set(out, "sandboxes", TAKE_PTR(l->all)) < 0) {
        abx_value_unref(out);
        return err_nomem(reterr);
    }
    abx_value_unref(*value);
    *value = out;
    return 0;
}

int abx_sandbox_list_start(abx_op **ret, abx_client *c, const abx_provider_opts *p, const char *status, int64_t limit,
                           abx_error **reterr) {
    struct session *s = NULL;
    if (limit < 0) return err_set(reterr, ABX_E_CONFIG, NULL, "The limit of a list can't be negative.");
    int r = client_session(c, p, NULL, &s, NULL, reterr);
    if (r < 0) return r;
    struct listing *l = calloc(1, sizeof *l);
    _cleanup_value_ abx_value *params = NULL;
    if (l) {
        l->all = abx_value_new_array();
        l->status = status ? strdup(status) : NULL;
        l->limit = limit;
        params = list_params(l, NULL);
    }
    struct call_opts o = {.shape = shape_page, .user = l, .free_user = listing_free};
    r = l && params ? call_start(ret, s, "sandbox.list", params, &o, reterr) : err_nomem(reterr);
    session_unref(s);
    return r;
}

/* ---- calls on one sandbox ------------------------------------------------------------ */

static int is_closed(const abx_sandbox *sb, abx_error **reterr) {
    return sb->session ? 0 : err_set(reterr, ABX_E_PROVIDER, "Connect to the sandbox again.", "The handle of sandbox '%s' is closed.", sb->ref);
}

int sandbox_call(abx_op **ret, abx_sandbox *sb, const char *method, abx_value *params, const struct call_opts *o, abx_error **reterr) {
    _cleanup_value_ abx_value *v = params;
    int r = is_closed(sb, reterr);
    if (r < 0) {
        if (o && o->free_user) o->free_user(o->user);
        return r;
    }
    if (v && !abx_value_get(v, "sandbox_id") && abx_value_set_string(v, "sandbox_id", sb->id) < 0) {
        if (o && o->free_user) o->free_user(o->user);
        return err_nomem(reterr);
    }
    if (!v) {
        if (o && o->free_user) o->free_user(o->user);
        return err_nomem(reterr);
    }
    return call_start(ret, sb->session, method, v, o, reterr);
}

int abx_sandbox_info_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    struct call_opts o = {.shape = shape_record};
    return sandbox_call(ret, sb, "sandbox.get", abx_value_new_object(), &o, reterr);
}

int abx_sandbox_kill_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    return sandbox_call(ret, sb, "sandbox.kill", abx_value_new_object(), NULL, reterr);
}

int abx_sandbox_set_timeout_start(abx_op **ret, abx_sandbox *sb, int64_t seconds, abx_error **reterr) {
    if (seconds < 0) return err_set(reterr, ABX_E_CONFIG, NULL, "The timeout of a sandbox can't be negative.");
    abx_value *params = abx_value_new_object();
    abx_value_set_int(params, "timeout", seconds);
    return sandbox_call(ret, sb, "sandbox.set_timeout", params, NULL, reterr);
}

int abx_sandbox_pause_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    return sandbox_call(ret, sb, "sandbox.pause", abx_value_new_object(), NULL, reterr);
}

int abx_sandbox_resume_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    return sandbox_call(ret, sb, "sandbox.resume", abx_value_new_object(), NULL, reterr);
}

int abx_call_start(abx_op **ret, abx_sandbox *sb, const char *method, const abx_value *params, abx_error **reterr) {
    const struct method *m = method_find(method);
    int r = is_closed(sb, reterr);
    if (r < 0) return r;
    struct call_opts o = {.shape = m && (m->traits & RECORD) ? shape_record : NULL};
    if ((m && (m->traits & GLOBAL)) || abx_value_get(params, "sandbox_id"))
        return call_start(ret, sb->session, method, params, &o, reterr);
    abx_value *copy = abx_value_new_object();
    for (size_t i = 0; i < abx_value_size(params); i++)
        abx_value_set(copy, abx_value_key_at(params, i), abx_value_ref(abx_value_at(params, i)));
    return sandbox_call(ret, sb, method, copy, &o, reterr);
}

int abx_sandbox_close_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr) {
    int r = is_closed(sb, reterr);
    if (r == 0 && session_release_start(ret, sb->session) < 0) r = err_nomem(reterr);
    if (r == 0) sb->session = NULL;
    return r;
}
