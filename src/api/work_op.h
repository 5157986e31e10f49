/* An op whose work blocks on a thread of its own: fetching, copying, deleting. */
#ifndef API_WORK_OP_H
#define API_WORK_OP_H

#include "api/api.h"

struct work_op;

struct work_class {
    /* On the thread. Whatever it needs is in user. */
    int (*run)(void *user, struct store_cancel *cancel, store_progress_fn progress, void *progress_user, abx_error **reterr);
    /* Back in the client's thread, after a run that went well: gives the op its value. When it
     * returns 1 the op goes on: it was handed to another stage that ends it. */
    int (*done)(void *user, abx_op *op, abx_error **reterr);
    void (*free)(void *user);
    /* In the client's thread, when the op is told to stop while no stage is on a thread; may be NULL. */
    void (*cancel)(void *user);
};

/* user is freed in any case. */
int work_op_start(abx_op **ret, abx_client *c, const struct work_class *cls, void *user, abx_error **reterr);
/* One more stage on a thread for an op that is still running; cls->done as above. */
int work_op_again(abx_op *op, const struct work_class *cls);

#endif
