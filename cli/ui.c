/* Waiting for ops: signals, progress, and what every verb does around a call. */
#include "ui.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/utf8.h"
#include "base/util.h"
#include "out.h"

/* How long plugins get to end when the command does; its own shutdown ladder is longer. */
#define CLOSE_GRACE_MS 3000
/* timeout(1) signals its child and then the group of both: that is one wish, not "twice kills". */
#define SIGNAL_ECHO_MS 100

static struct {
    abx_client *volatile client;
    volatile sig_atomic_t signal;
    volatile int64_t signal_ms; /* read by the handler only */
    bool forget;
    atomic_bool progress; /* workers report too */
} ui;

/* ---- signals ----------------------------------------------------------------------- */

static void on_signal(int signo) {
    int saved = errno;
    int64_t now = time_mono_ms();
    if (!ui.signal) {
        ui.signal_ms = now;
    } else if (now - ui.signal_ms >= SIGNAL_ECHO_MS) {
        signal(signo, SIG_DFL);
        raise(signo);
    }
    ui.signal = signo;
    if (ui.client) abx_wakeup(ui.client);
    errno = saved;
}

void ui_init(void) {
    static const int asked[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal}, old;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
        /* nohup and background jobs of a shell have them ignored. */
        if (sigaction(asked[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(asked[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int ui_signal(void) { return ui.signal; }
void ui_signal_forget(void) { ui.forget = true; }

bool ui_can_ask(const struct cli *cli) { return !cli->no_input && isatty(STDIN_FILENO) && isatty(STDERR_FILENO); }

/* ---- the client ---------------------------------------------------------------------- */

/* Called from workers too: out_note() writes each line at once. What goes on (INFO) is progress. */
static void on_log(void *user, abx_log_level level, const char *component, const char *line) {
    const struct cli *cli = user;
    if (level == ABX_LOG_INFO && !cli->verbose) {
        ui_progress(cli, line);
        return;
    }
    _cleanup_free_ char *clean = utf8_sanitize_str(line);
    if (level <= ABX_LOG_WARN)
        out_note("%s%s:%s %s", out_err_style(OUT_YELLOW), level == ABX_LOG_ERROR ? "error" : "warning", out_err_style(OUT_PLAIN),
                 clean ?: "");
    else
        out_note("%s%s: %s%s", out_err_style(OUT_DIM), component, clean ?: "", out_err_style(OUT_PLAIN));
}

int ui_client_new(struct cli *cli, abx_error **reterr) {
    abx_client_opts o = ABX_CLIENT_OPTS_INIT;
    o.host_name = "abx";
    o.log = on_log;
    o.log_user = cli;
    o.log_level = cli->verbose ? ABX_LOG_TRACE : cli->quiet ? ABX_LOG_ERROR : ABX_LOG_INFO;
    int r = abx_client_new(&cli->client, &o, reterr);
    ui.client = cli->client;
    return r;
}

void ui_client_close(struct cli *cli) {
    if (!cli->client) return;
    abx_client_close(cli->client, CLOSE_GRACE_MS);
    ui.client = NULL;
    cli->client = abx_client_unref(cli->client);
}

abx_provider_opts ui_provider(const struct cli *cli) {
    return (abx_provider_opts){sizeof(abx_provider_opts), cli->provider, cli->options};
}

/* ---- calls ------------------------------------------------------------------------------ */

void ui_call_done(struct ui_call *c) {
    abx_op_unref(c->op);
    abx_plan_unref(c->plan);
    abx_sandbox_unref(c->sb);
    abx_value_unref(c->value);
    abx_error_unref(c->error);
}

int ui_open(struct cli *cli, struct ui_call *c, const char *ref) {
    abx_provider_opts p = ui_provider(cli);
    return abx_sandbox_attach(&c->sb, cli->client, ref, &p, &c->error);
}

/* One turn of the loop: waits for the plugin, or for fd (when >= 0) to be readable; 1 when it is. */
static int wait_turn(struct cli *cli, int fd) {
    struct pollfd p[] = {{.fd = abx_fd(cli->client), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int r = poll(p, fd >= 0 ? 2 : 1, abx_timeout_ms(cli->client));
    if (r < 0 && errno != EINTR) return -errno;
    bool readable = r > 0 && p[1].revents;
    r = abx_pump(cli->client, 0);
    while (r >= 0 && abx_dispatch(cli->client) > 0)
        ;
    return r < 0 && r != -EINTR ? r : readable;
}

/* The op's events to their reader; once that refuses one, the rest only has to be taken away. */
static void drain(const struct cli *cli, abx_op *op, const struct ui_watch *w, bool *stop) {
    abx_event e;
    while (abx_op_next(op, &e) == 1) {
        if (*stop) continue;
        if (e.type == ABX_EVENT_PROGRESS)
            ui_progress(cli, abx_value_get_string(e.value, "message"));
        else if (w && w->event)
            *stop = w->event(w->user, &e) < 0;
    }
}

/* Until the op has ended; negative only when waiting itself failed. */
static int run_loop(struct cli *cli, struct ui_call *c, const struct ui_watch *w) {
    bool stop = false, readable = false;
    while (abx_op_poll(c->op) == ABX_OP_RUNNING) {
        int fd = -1;
        if (!stop && w && w->turn) stop = w->turn(w->user, readable, &fd) < 0;
        if (stop || (ui.signal && !ui.forget)) abx_op_cancel(c->op);
        if (abx_op_poll(c->op) == ABX_OP_RUNNING) {
            int r = wait_turn(cli, fd);
            if (r < 0) return err_errno(&c->error, r, r, "Waiting for the provider");
            readable = r;
        }
        drain(cli, c->op, w, &stop);
    }
    drain(cli, c->op, w, &stop);
    return 0;
}

int ui_run_watch(struct cli *cli, struct ui_call *c, int r, const struct ui_watch *w) {
    if (r >= 0) r = run_loop(cli, c, w);
    ui_progress(cli, NULL);
    if (r >= 0 && abx_op_poll(c->op) == ABX_OP_DONE) {
        abx_value_unref(c->value);
        c->value = abx_value_ref(abx_op_value(c->op));
        c->plan = c->plan ?: abx_op_take_plan(c->op);
        c->sb = c->sb ?: abx_op_take_sandbox(c->op);
    } else if (r >= 0) {
        r = err_pass(&c->error, abx_error_ref(abx_op_error(c->op)));
    }
    c->op = abx_op_unref(c->op);
    /* What took part may have failed although the op itself was faster. */
    return r < 0 ? r : abx_error_code(c->error);
}

int ui_run(struct cli *cli, struct ui_call *c, int r) { return ui_run_watch(cli, c, r, NULL); }

int ui_fail(const struct cli *cli, const abx_error *e) {
    if (abx_error_code(e) == -ECANCELED && ui.signal) {
        if (!cli->quiet) out_note("Interrupted.");
        return 128 + ui.signal;
    }
    /* Cancelled because the reader of our output left: out_finish() knows. */
    if (abx_error_code(e) == -ECANCELED && out_flush() < 0) return 1;
    return out_error(e);
}

/* ---- showing ------------------------------------------------------------------------------ */

void ui_progress(const struct cli *cli, const char *text) {
    if (!text && !ui.progress) return;
    if (cli->quiet || cli->json || cli->verbose || !out_err_is_terminal()) return;
    _cleanup_free_ char *clean = text ? utf8_sanitize_str(text) : NULL;
    /* Without line wrap a long text is cut by the terminal instead of leaving lines behind. */
    _cleanup_free_ char *line = str_printf("\r\033[K%s%s%s", clean ? "\033[?7l" : "", clean ?: "", clean ? "\033[?7h" : "");
    if (line) out_err_bytes((abx_bytes){(const uint8_t *)line, strlen(line)});
    ui.progress = text != NULL;
}

void ui_report(const struct cli *cli, const char *ref, const char *key, abx_value *value, const char *fmt, ...) {
    _cleanup_value_ abx_value *v = NULL;
    if (cli->json) {
        v = abx_value_new_object();
        abx_value_set_string(v, "ref", ref);
        abx_value_set(v, key, value);
        out_json(v);
        return;
    }
    abx_value_unref(value);
    if (cli->quiet) return;
    va_list ap;
    va_start(ap, fmt);
    _cleanup_buf_ struct buf b = BUF_INIT(0);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    out_foreign(buf_cstr(&b));
    out_str("\n");
}

abx_value *ui_record(const char *ref, const char *provider, const abx_value *record) {
    abx_value *v = abx_value_new_object();
    abx_value_set_string(v, "ref", ref);
    abx_value_set_string(v, "provider", provider);
    for (size_t i = 0; i < abx_value_size(record); i++)
        abx_value_set(v, abx_value_key_at(record, i), abx_value_ref(abx_value_at(record, i)));
    return v;
}

char *ui_text(const abx_value *v) {
    const char *s = abx_value_is_secret(v) ? NULL : abx_value_string(v);
    if (abx_value_type(v) == ABX_TYPE_NULL) s = "";
    return s ? strdup(s) : abx_value_print(v, ABX_PRINT_SPACED, NULL);
}

void ui_print_members(const abx_value *v) {
    size_t width = 0;
    for (size_t i = 0; i < abx_value_size(v); i++) width = MAX_OF(width, strlen(abx_value_key_at(v, i)) + 1);
    for (size_t i = 0; i < abx_value_size(v); i++) {
        _cleanup_free_ char *text = ui_text(abx_value_at(v, i)), *label = str_printf("%s:", abx_value_key_at(v, i));
        out_column(label, width);
        out_foreign(text);
        out_str("\n");
    }
}
