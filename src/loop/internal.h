/* What the three files of the loop share. */
#ifndef LOOP_INTERNAL_H
#define LOOP_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "loop/loop.h"

#define BATCH_MAX 32
#define NEVER INT64_MAX

/* Events taken from the kernel and not yet handed out. Pumps nest, hence the chain. */
struct batch {
    struct epoll_event ev[BATCH_MAX];
    int n, next;
    struct batch *outer;
};

struct loop {
    int epoll_fd, timer_fd, event_fd;
    struct batch *batch;
    int depth;              /* pumps on the stack                                        */
    atomic_bool poked;      /* event_fd was written and the pump has not seen it         */
    struct deferred queue;  /* head of a ring                                            */

    struct timer **heap; /* smallest at_ms first */
    int heap_len, heap_cap;
    int64_t armed_ms; /* what timer_fd is set to; never later than heap[0] */
    int64_t round_ms; /* while due timers run: the instant they were due at */

    pthread_mutex_t lock; /* finished */
    struct job *jobs;     /* every job not yet joined; loop thread only */
    struct job *finished, **finished_tail;
};

int64_t loop_now_ms(void);

int timer_run_due(struct loop *l); /* how many ran */
void timer_fired(struct loop *l);  /* timer_fd became readable */

void work_finish(struct loop *l); /* done() of all finished jobs */
void work_join_all(struct loop *l);

#endif
