/* Ops over work threads: cancelled through a flag and a descriptor the worker can poll. */
#include "api/work_op.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct work_op {
    struct work work;
    abx_client *client;
    abx_op *op; /* NULL once the op is gone */
    const struct work_class *cls;
    void *user;
    struct store_cancel cancel;
    int result;
    abx_error *error;
    bool busy;
};

static void work_op_free(struct work_op *w) {
    if (w->cls->free) w->cls->free(w->user);
    safe_close(w->cancel.event_fd);
    abx_error_unref(w->error);
    free(w);
}

static void op_cancel(abx_op *op) {
    struct work_op *w = op->priv;
    uint64_t one = 1;
    atomic_store(&w->cancel.stop, true);
    if (w->cancel.event_fd >= 0 && write(w->cancel.event_fd, &one, sizeof one) < 0) return;
    if (!w->busy && w->cls->cancel) w->cls->cancel(w->user);
}

static void op_free(abx_op *op) { work_op_free(op->priv); }

static const struct op_class work_op_class = {op_cancel, NULL, op_free};

/* On the thread: what is being done, for the log; the event queue belongs to the other one. */
static void progress(void *user, const char *what) {
    struct work_op *w = user;
    log_line(&w->client->log, ABX_LOG_INFO, "store", "%s", what);
}

static void run(struct work *work) {
    struct work_op *w = (struct work_op *)((char *)work - offsetof(struct work_op, work));
    w->result = w->cls->run(w->user, &w->cancel, progress, w, &w->error);
}

static void done(struct work *work) {
    struct work_op *w = (struct work_op *)((char *)work - offsetof(struct work_op, work));
    abx_op *op = abx_op_ref(w->op); /* an end may free an op that nobody holds, and w with it */
    w->busy = false;
    /* Not in w->result: the next stage may be writing there already. */
    int r = w->result;
    if (r == 0) r = w->cls->done(w->user, op, &w->error);
    if (r == 0 && op_running(op)) op_finish(op, abx_value_new_object());
    if (r < 0 && op->cancelled)
        op_end_cancelled(op);
    else if (r < 0)
        op_fail(op, TAKE_PTR(w->error));
    /* An order to stop that came while the thread ran is meant for what follows it, too. */
    if (op_running(op) && op->cancelled && !w->busy && w->cls->cancel) w->cls->cancel(w->user);
    abx_op_unref(op);
}

int work_op_again(abx_op *op, const struct work_class *cls) {
    struct work_op *w = op->priv;
    w->cls = cls;
    w->busy = true;
    return work_start(op->host->loop, &w->work);
}

int work_op_start(abx_op **ret, abx_client *c, const struct work_class *cls, void *user, abx_error **reterr) {
    struct work_op *w = calloc(1, sizeof *w);
    if (!w) {
        cls->free(user);
        return err_nomem(reterr);
    }
    w->client = c;
    w->cls = cls;
    w->user = user;
    w->work = (struct work){.run = run, .done = done};
    w->busy = true;
    w->cancel.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    abx_op *op = NULL;
    int r = w->cancel.event_fd < 0 ? -errno : op_new(&op, &c->host, &work_op_class, w);
    if (r < 0) {
        work_op_free(w);
        return err_errno(reterr, ABX_E_PROVIDER, r, "starting the work");
    }
    w->op = op;
    r = work_start(c->host.loop, &w->work);
    if (r < 0) {
        op_end_cancelled(op);
        abx_op_unref(op);
        return err_errno(reterr, ABX_E_PROVIDER, r, "starting a thread");
    }
    *ret = op;
    return 0;
}
