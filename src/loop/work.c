/* Blocking work: a thread for each job, its end reported through the loop.
 *
 * Threads are joined, not detached: after loop_free() nothing of the loop is in use. */
#include "loop/internal.h"

#include <signal.h>

struct job {
    struct work *work;
    struct loop *loop;
    pthread_t thread;
    bool joined;
    struct job *next, *next_finished;
};

static void *job_main(void *arg) {
    struct job *j = arg;
    struct loop *l = j->loop;
    j->work->run(j->work);
    pthread_mutex_lock(&l->lock);
    *l->finished_tail = j;
    l->finished_tail = &j->next_finished;
    pthread_mutex_unlock(&l->lock);
    loop_wakeup(l);
    return NULL;
}

int work_start(struct loop *l, struct work *w) {
    struct job *j = calloc(1, sizeof *j);
    if (!j) return -ENOMEM;
    *j = (struct job){.work = w, .loop = l, .next = l->jobs};
    w->loop = l;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = -pthread_create(&j->thread, NULL, job_main, j);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r < 0)
        free(j);
    else
        l->jobs = j;
    return r;
}

static void join(struct loop *l, struct job *j) {
    struct job **p = &l->jobs;
    while (*p != j) p = &(*p)->next;
    *p = j->next;
    if (!j->joined) pthread_join(j->thread, NULL);
    free(j);
}

static struct job *take_finished(struct loop *l) {
    pthread_mutex_lock(&l->lock);
    struct job *j = l->finished;
    if (j && !(l->finished = j->next_finished)) l->finished_tail = &l->finished;
    pthread_mutex_unlock(&l->lock);
    return j;
}

void work_finish(struct loop *l) {
    for (struct job *j; l->jobs && (j = take_finished(l));) {
        struct work *w = j->work;
        join(l, j);
        w->done(w);
    }
}

void loop_wait_work(struct loop *l) {
    while (l->jobs) {
        /* Joined here, so that it is among the finished. */
        pthread_join(l->jobs->thread, NULL);
        l->jobs->joined = true;
        work_finish(l);
    }
}

/* Waits for running jobs; their done() is not called, since its owner is gone. */
void work_join_all(struct loop *l) {
    while (l->jobs) join(l, l->jobs);
}
