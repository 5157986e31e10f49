/* The client: its life, its loop, and the configuration it takes a snapshot of. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/limits.h"
#include "proc/proc.h"

extern char **environ;

struct loop *client_loop(abx_client *c) { return c->host.loop; }
struct json_parser *client_parser(abx_client *c) { return c->parser; }
const struct logger *client_log(abx_client *c) { return &c->log; }
struct json_bytes client_bytes(abx_client *c) { return c->bytes; }
const char *const *client_environ(abx_client *c) { return (const char *const *)c->environ_; }

const char *client_supervisor(abx_client *c, abx_error **reterr) {
    if (!c->supervisor) proc_find_supervisor(&c->supervisor, reterr);
    return c->supervisor;
}

static void host_hold(struct op_host *h) { abx_client_ref((abx_client *)h); }
static void client_free(abx_client *c);
static void host_release(struct op_host *h) {
    abx_client *c = (abx_client *)h;
    if (--c->refs == 0) client_free(c);
}

/* ---- life ------------------------------------------------------------------- */

static void client_free(abx_client *c) {
    if (c->host.loop) loop_wait_work(c->host.loop); /* a check of files may still hold its session */
    while (c->host.loop && c->sessions) { /* only sessions kept by their own start-up are left */
        abx_error *e = NULL;
        err_set(&e, -ECANCELED, "", "The client was closed.");
        struct session *s = session_ref(c->sessions);
        session_kill(s, e);
        session_unref(s);
    }
    session_bury_all(&c->host);
    struct registered *reg;
    while ((reg = c->registered)) {
        c->registered = reg->next;
        if (reg->free_user) reg->free_user(reg->user);
        manifest_unref(reg->manifest);
        free(reg);
    }
    config_free(c->config);
    json_parser_free(c->parser);
    loop_free(c->host.loop);
    strv_free(c->environ_);
    free(c->home);
    free(c->dotenv);
    free(c->host_name);
    free(c->supervisor);
    free(c);
}

int abx_client_new(abx_client **ret, const abx_client_opts *opts, abx_error **reterr) {
    abx_client_opts known = ABX_CLIENT_OPTS_INIT, *o = &known;
    if (opts && opts->size >= offsetof(abx_client_opts, bytes_new)) memcpy(o, opts, MIN_OF(opts->size, sizeof known));
    if (opts && opts->size < offsetof(abx_client_opts, bytes_new)) return err_set(reterr, ABX_E_CONFIG, NULL, "abx_client_opts.size is not set.");
    abx_client *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(reterr);
    c->refs = 1;
    c->host.ready_tail = &c->host.ready;
    c->host.hold = host_hold;
    c->host.release = host_release;
    c->no_config = o->no_config;
    c->log = (struct logger){o->log, o->log_user, o->log_level};
    if (o->bytes_free) c->bytes = (struct json_bytes){.make = o->bytes_new, .release = o->bytes_free};
    c->environ_ = strv_copy(o->environ_ ?: (const char *const *)environ);
    c->host_name = strdup(o->host_name ?: "libabx");
    c->dotenv = !o->dotenv ? strdup("./.env") : *o->dotenv ? strdup(o->dotenv) : NULL;
    c->parser = json_parser_new(LIMIT_LINE + 1);
    int r = c->environ_ && c->host_name && c->parser ? loop_new(&c->host.loop) : -ENOMEM;
    if (r == 0 && o->home) {
        c->home = strdup(o->home);
        if (!c->home) r = -ENOMEM;
    } else if (r == 0) {
        c->home_error = env_abx_home(client_environ(c), &c->home);
    }
    if (r < 0) {
        client_free(c);
        return err_errno(reterr, r, r, "a client");
    }
    *ret = c;
    return 0;
}

abx_client *abx_client_ref(abx_client *c) {
    c->refs++;
    return c;
}

/* Only ops that nobody holds keep the client: nobody is left to pump for them. */
static bool abandoned(const abx_client *c) {
    unsigned n = 0;
    for (const abx_op *op = c->host.all; op; op = op->all_next) n += op->refs == 0;
    return n > 0 && n == c->refs;
}

abx_client *abx_client_unref(abx_client *c) {
    if (!c) return NULL;
    if (--c->refs == 0)
        client_free(c);
    else if (c->host.loop && abandoned(c))
        abx_client_close(c, 0);
    return NULL;
}

int abx_client_close(abx_client *c, int grace_ms) {
    int killed = 0;
    int64_t end = time_mono_ms() + (grace_ms < 0 ? SHUTDOWN_REPLY_MS + SHUTDOWN_EOF_MS + SHUTDOWN_TERM_MS + 1000 : grace_ms);
    abx_client_ref(c);
    while (c->host.all) { /* cancelling may free the op, never another */
        abx_op *op = abx_op_ref(c->host.all);
        bool told = op->cancelled;
        abx_op_cancel(op);
        /* One that runs on although it was told to stop is a last kill of a process: it may have
         * the grace time. Work on a thread ends soon. */
        int64_t left = MIN_OF(end - time_mono_ms(), (int64_t)SHUTDOWN_REPLY_MS);
        if (told && abx_op_wait(op, left > 0 ? (int)left : 0) == 0) op->class_->cancel(op);
        abx_op_wait(op, -1);
        abx_op_unref(op);
    }
    /* All plugins are asked at once; each has the whole grace time. */
    abx_op **ops = NULL;
    size_t n = 0, count = 0;
    for (struct session *s = c->sessions; s; s = s->next) count++;
    if (count) ops = calloc(count, sizeof *ops);
    for (struct session *s = c->sessions; ops && s && n < count; s = s->next)
        if (session_close_start(&ops[n], s) == 0) n++;
    for (size_t i = 0; i < n; i++) {
        int64_t left = end - time_mono_ms();
        if (abx_op_wait(ops[i], left > 0 ? (int)left : 0) != 1 || abx_value_bool(abx_op_value(ops[i]))) killed++;
    }
    for (int64_t left; c->host.dying && (left = end - time_mono_ms()) > 0;) op_pump(&c->host, (int)left);
    for (struct session *s = c->host.dying; s; s = s->next) killed += s->instance != NULL;
    for (struct session *s = c->sessions, *next; s; s = next) {
        next = s->next;
        abx_error *e = NULL;
        err_set(&e, -ECANCELED, "", "The client was closed.");
        session_kill(s, e);
    }
    for (size_t i = 0; i < n; i++) abx_op_unref(ops[i]);
    free(ops);
    session_bury_all(&c->host);
    abx_client_unref(c);
    return killed;
}

/* ---- loop ------------------------------------------------------------------- */

int abx_fd(abx_client *c) { return loop_fd(c->host.loop); }
int abx_timeout_ms(abx_client *c) { return c->host.ready ? 0 : loop_timeout_ms(c->host.loop); }
int abx_pump(abx_client *c, int timeout_ms) { return op_pump(&c->host, c->host.ready ? 0 : timeout_ms); }
int abx_dispatch(abx_client *c) { return op_dispatch(&c->host); }
void abx_wakeup(abx_client *c) { loop_wakeup(c->host.loop); }

/* ---- configuration ------------------------------------------------------------ */

static int need_home(abx_client *c, int code, abx_error **reterr) {
    if (c->home) return 0;
    if (c->home_error == -EINVAL) {
        const char *own = env_get(client_environ(c), "ABX_HOME");
        const char *name = own && *own ? "ABX_HOME" : "HOME";
        return err_set(reterr, ABX_E_CONFIG, "Set it to a path that begins with '/'.", "%s is not an absolute path: '%s'.", name,
                       env_get(client_environ(c), name));
    }
    return err_set(reterr, code, "Set HOME, or ABX_HOME to a directory of your own.",
                   "There is no home directory to keep ~/.abx in: %s.", strerror(-c->home_error));
}

int client_config(abx_client *c, struct config **ret, abx_error **reterr) {
    if (!c->config) {
        int r = c->no_config ? 0 : need_home(c, ABX_E_CONFIG, reterr);
        if (r == 0) r = config_new(&c->config, c->home, c->dotenv, c->no_config, client_environ(c), reterr);
        if (r < 0) return r;
    }
    *ret = c->config;
    return 0;
}

int client_store(abx_client *c, struct store *ret, abx_error **reterr) {
    int r = need_home(c, ABX_E_INSTALL, reterr);
    if (r < 0) return r;
    *ret = (struct store){.home = c->home, .environ_ = client_environ(c), .host_name = c->host_name, .log = &c->log};
    /* What a dead command left half-done is undone or finished first, by reading commands too. */
    _cleanup_free_ char *note = NULL;
    r = store_recover(ret, &note, reterr);
    if (note) log_line(&c->log, ABX_LOG_WARN, "store", "%s", note);
    return r;
}
