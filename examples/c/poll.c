/* poll PROVIDER COMMAND [ARG...]: the client as a guest in somebody else's loop.
 *
 * The loop is the program's own poll(2) over two descriptors: stdin, where an empty line or "stop"
 * stops the command, and abx_fd(), which stands for everything the library waits for. Each step
 * starts the next one from a notify callback; nothing here blocks but poll(). */
#include <abx/abx.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct app {
    abx_client *client;
    abx_sandbox *sandbox;
    abx_op *op; /* the step in progress: create, exec, kill */
    const char *const *argv;
    int status;
    bool running; /* the step is the command */
    bool over;
};

/* error is borrowed. */
static void complain(struct app *app, const abx_error *error) {
    fprintf(stderr, "[%s] %s\n", abx_error_id(error), abx_error_message(error));
    if (app->status == 0) app->status = abx_error_exit_status(error);
}

static void release(struct app *app, abx_error *error) {
    if (error) complain(app, error);
    abx_error_unref(error);
    app->over = true;
}

static void step(struct app *app, abx_op *next, abx_notify_fn notify) {
    abx_op_unref(app->op);
    app->op = next;
    abx_op_set_notify(next, notify, app, NULL);
}

static void on_killed(abx_op *op, void *user) {
    struct app *app = user;
    if (abx_op_poll(op) == ABX_OP_RUNNING) return;
    if (abx_op_error(op)) complain(app, abx_op_error(op));
    app->over = true;
}

static void start_kill(struct app *app) {
    abx_error *e = NULL;
    abx_op *op = NULL;
    if (abx_sandbox_kill_start(&op, app->sandbox, &e) < 0) return release(app, e);
    step(app, op, on_killed);
}

/* A notification says "look": there may be many events, or none and an end. */
static void on_output(abx_op *op, void *user) {
    struct app *app = user;
    abx_event event = {.size = sizeof event};
    int more;
    while ((more = abx_op_next(op, &event)) > 0) {
        if (event.type == ABX_EVENT_STDOUT) fwrite(event.bytes.data, 1, event.bytes.len, stdout);
        if (event.type == ABX_EVENT_STDERR) fwrite(event.bytes.data, 1, event.bytes.len, stderr);
        if (event.type == ABX_EVENT_EXIT) app->status = event.exit_code;
    }
    fflush(stdout);
    if (more == 0) return;
    app->running = false;
    if (abx_op_error(op)) complain(app, abx_op_error(op));
    start_kill(app);
}

static void on_created(abx_op *op, void *user) {
    struct app *app = user;
    abx_exec_opts o = ABX_EXEC_OPTS_INIT;
    abx_error *e = NULL;
    abx_op *next = NULL;
    if (abx_op_poll(op) == ABX_OP_RUNNING) return;
    app->sandbox = abx_op_take_sandbox(op);
    if (!app->sandbox) return release(app, abx_error_ref(abx_op_error(op)));
    o.argv = app->argv;
    if (abx_exec_stream_start(&next, app->sandbox, &o, &e) == 0) {
        app->running = true;
        return step(app, next, on_output);
    }
    complain(app, e);
    abx_error_unref(e);
    start_kill(app);
}

/* Something of the program's own. Only the command is stopped: a create that is cancelled could leave
 * a sandbox behind. Returns false at the end of the input. */
static bool read_stdin(struct app *app) {
    char line[256];
    ssize_t n = read(STDIN_FILENO, line, sizeof line);
    if (n > 0 && app->running && (line[0] == '\n' || !strncmp(line, "stop", 4))) abx_op_cancel(app->op);
    return n > 0;
}

int main(int argc, char **argv) {
    struct app app = {0};
    abx_provider_opts p = ABX_PROVIDER_OPTS_INIT;
    abx_error *e = NULL;
    abx_op *op = NULL;
    bool input = true;
    if (argc < 3) {
        fprintf(stderr, "usage: %s PROVIDER COMMAND [ARG...]\n", argv[0]);
        return 2;
    }
    p.provider = argv[1];
    app.argv = (const char *const *)argv + 2;
    if (abx_client_new(&app.client, NULL, &e) < 0 || abx_sandbox_create_start(&op, app.client, &p, NULL, &e) < 0)
        release(&app, e);
    else
        step(&app, op, on_created);

    while (!app.over) {
        struct pollfd fds[] = {{.fd = abx_fd(app.client), .events = POLLIN}, {.fd = input ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(fds, 2, abx_timeout_ms(app.client)) < 0 && errno != EINTR) break;
        if (fds[1].revents) input = read_stdin(&app);
        /* I/O first, callbacks after it: no callback runs in the middle of a read. */
        if (abx_pump(app.client, 0) < 0) break;
        while (!app.over && abx_dispatch(app.client) > 0) continue;
    }
    abx_op_unref(app.op);
    abx_sandbox_unref(app.sandbox);
    if (app.client) abx_client_close(app.client, 2000);
    abx_client_unref(app.client);
    return app.status;
}
