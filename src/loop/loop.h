/* The loop: epoll, one timerfd and one eventfd behind a single descriptor that nests
 * in any other loop. One thread, loop_wakeup() and finished work excepted. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

/* A watched descriptor, embedded in its owner. Callbacks may remove any watch, their own included. */
struct watch {
    void (*fn)(struct watch *w, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR */
    int fd;
    uint32_t events;
    bool active;
    struct loop *loop;
};
struct timer {
    void (*fn)(struct timer *t);
    int64_t at_ms; /* monotonic */
    int heap_index; /* -1: not armed */
    struct loop *loop;
};
/* Runs once at the next pump, before waiting; may be cancelled by deferred_cancel(). */
struct deferred {
    void (*fn)(struct deferred *d);
    struct deferred *next, *prev;
    struct loop *loop;
};

int loop_new(struct loop **ret);
void loop_free(struct loop *l); /* watches, timers and deferred must be gone; waits for running work */
int loop_fd(struct loop *l);
/* Handles what is ready; waits at most timeout_ms when nothing is. 0 or -errno; EINTR is 0. */
int loop_pump(struct loop *l, int timeout_ms);
int loop_timeout_ms(struct loop *l);
void loop_wakeup(struct loop *l); /* any thread, signal-safe */

int watch_add(struct loop *l, struct watch *w, int fd, uint32_t events, void (*fn)(struct watch *, uint32_t));
int watch_set(struct watch *w, uint32_t events); /* 0 events: stays registered, sleeps */
void watch_remove(struct watch *w);              /* inactive is fine; does not close fd */

void timer_init(struct timer *t, void (*fn)(struct timer *));
int timer_start(struct loop *l, struct timer *t, int64_t delay_ms); /* re-arms */
void timer_stop(struct timer *t);

void deferred_init(struct deferred *d, void (*fn)(struct deferred *));
void deferred_start(struct loop *l, struct deferred *d); /* twice is once */
void deferred_cancel(struct deferred *d);

/* Blocking work on a thread of its own, all signals blocked: run there, then done here. */
struct work {
    void (*run)(struct work *w);
    void (*done)(struct work *w);
    struct loop *loop;
    struct work *next;
};
int work_start(struct loop *l, struct work *w);
void loop_wait_work(struct loop *l); /* until nothing runs any more; done() of all */

#endif
