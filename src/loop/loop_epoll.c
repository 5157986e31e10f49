/* The loop on epoll: watches, the deferred queue and the pump. */
#include "loop/internal.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

int64_t loop_now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The timer and the event descriptor are edge-triggered: a new expiry or write is reported once
 * and needs no read to go away. */
static int add_own(struct loop *l, int fd, void *mark) {
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = mark};
    return fd < 0 || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int loop_new(struct loop **ret) {
    struct loop *l = calloc(1, sizeof *l);
    if (!l) return -ENOMEM;
    l->queue.next = l->queue.prev = &l->queue;
    l->armed_ms = NEVER;
    l->finished_tail = &l->finished;
    pthread_mutex_init(&l->lock, NULL);
    l->timer_fd = l->event_fd = -1;
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int r = l->epoll_fd < 0 ? -errno : 0;
    if (r == 0) {
        l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        r = add_own(l, l->timer_fd, &l->timer_fd);
    }
    if (r == 0) {
        l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = add_own(l, l->event_fd, &l->event_fd);
    }
    if (r < 0) {
        loop_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

void loop_free(struct loop *l) {
    if (!l) return;
    work_join_all(l);
    safe_close(l->event_fd);
    safe_close(l->timer_fd);
    safe_close(l->epoll_fd);
    pthread_mutex_destroy(&l->lock);
    free(l->heap);
    free(l);
}

int loop_fd(struct loop *l) { return l->epoll_fd; }

void loop_wakeup(struct loop *l) {
    if (atomic_exchange(&l->poked, true)) return;
    int saved = errno;
    ssize_t n = write(l->event_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)n; /* a full counter is readable all the same */
    errno = saved;
}

int loop_timeout_ms(struct loop *l) {
    if (l->queue.next != &l->queue) return 0;
    if (l->heap_len == 0) return -1;
    int64_t left = l->heap[0]->at_ms - loop_now_ms();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

int watch_add(struct loop *l, struct watch *w, int fd, uint32_t events, void (*fn)(struct watch *, uint32_t)) {
    if (w->active) return -EEXIST;
    struct epoll_event ev = {.events = events, .data.ptr = w};
    if (events && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) return -errno;
    *w = (struct watch){.fn = fn, .fd = fd, .events = events, .active = true, .loop = l};
    return 0;
}

/* Without events the descriptor leaves the epoll set, for epoll reports a hang-up regardless of
 * the mask and a paused watch would spin. */
int watch_set(struct watch *w, uint32_t events) {
    if (!w->active) return -EINVAL;
    if (w->events == events) return 0;
    int op = !events ? EPOLL_CTL_DEL : !w->events ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    struct epoll_event ev = {.events = events, .data.ptr = w};
    if (epoll_ctl(w->loop->epoll_fd, op, w->fd, &ev) < 0) return -errno;
    w->events = events;
    return 0;
}

void watch_remove(struct watch *w) {
    if (!w->active) return;
    if (w->events) {
        int saved = errno;
        epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
        errno = saved;
    }
    for (struct batch *b = w->loop->batch; b; b = b->outer)
        for (int i = b->next; i < b->n; i++)
            if (b->ev[i].data.ptr == w) b->ev[i].data.ptr = NULL;
    w->active = false;
    w->events = 0;
}

static void ring_append(struct deferred *head, struct deferred *d) {
    d->prev = head->prev;
    d->next = head;
    head->prev->next = d;
    head->prev = d;
}

static void ring_remove(struct deferred *d) {
    if (!d->next) return;
    d->prev->next = d->next;
    d->next->prev = d->prev;
    d->next = d->prev = NULL;
}

void deferred_init(struct deferred *d, void (*fn)(struct deferred *)) { *d = (struct deferred){.fn = fn}; }

void deferred_start(struct loop *l, struct deferred *d) {
    if (d->next) return;
    d->loop = l;
    ring_append(&l->queue, d);
    if (l->depth == 0) loop_wakeup(l); /* a foreign loop watches only the descriptor */
}

void deferred_cancel(struct deferred *d) { ring_remove(d); }

/* Runs what was queued before this call. The mark at the end of the queue is taken out by a
 * nested pump that gets past it, which tells the outer one that nothing is left to do. */
static bool run_deferred(struct loop *l) {
    if (l->queue.next == &l->queue) return false;
    struct deferred mark = {0};
    ring_append(&l->queue, &mark);
    while (mark.next) {
        struct deferred *d = l->queue.next;
        ring_remove(d);
        if (d->fn) d->fn(d);
    }
    return true;
}

static void dispatch(struct loop *l, struct batch *b) {
    while (b->next < b->n) {
        struct epoll_event *ev = &b->ev[b->next++];
        struct watch *w = ev->data.ptr;
        if (!w) continue;
        if (ev->data.ptr == &l->timer_fd) {
            timer_fired(l);
        } else if (ev->data.ptr == &l->event_fd) {
            /* First the flag, then the look: what is finished later pokes again. */
            atomic_store(&l->poked, false);
            work_finish(l);
        } else {
            /* The mask may have changed since the kernel reported. */
            uint32_t got = ev->events & (w->events ? w->events | EPOLLHUP | EPOLLERR : 0);
            if (got) w->fn(w, got);
        }
    }
}

int loop_pump(struct loop *l, int timeout_ms) {
    struct batch b;
    l->depth++;
    if (run_deferred(l) || l->queue.next != &l->queue) timeout_ms = 0;
    b.next = 0;
    b.n = epoll_wait(l->epoll_fd, b.ev, BATCH_MAX, timeout_ms);
    int r = b.n >= 0 || errno == EINTR ? 0 : -errno;
    if (b.n > 0) {
        b.outer = l->batch;
        l->batch = &b;
        dispatch(l, &b);
        l->batch = b.outer;
    }
    timer_run_due(l);
    if (--l->depth == 0 && l->queue.next != &l->queue) loop_wakeup(l);
    return r;
}
