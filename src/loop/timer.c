/* Timers: a binary heap, and one timerfd that is set only when it would fire too late.
 *
 * Nearly every timer is a deadline that is stopped long before it is due. Leaving the timerfd
 * alone then costs one needless wake-up later instead of a system call each time. */
#include "loop/internal.h"

#include <sys/timerfd.h>
#include <time.h>

static void place(struct loop *l, int i, struct timer *t) {
    l->heap[i] = t;
    t->heap_index = i;
}

static void sift_up(struct loop *l, int i) {
    struct timer *t = l->heap[i];
    while (i > 0 && l->heap[(i - 1) / 2]->at_ms > t->at_ms) {
        place(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(l, i, t);
}

static void sift_down(struct loop *l, int i) {
    struct timer *t = l->heap[i];
    for (int c; (c = 2 * i + 1) < l->heap_len; i = c) {
        if (c + 1 < l->heap_len && l->heap[c + 1]->at_ms < l->heap[c]->at_ms) c++;
        if (l->heap[c]->at_ms >= t->at_ms) break;
        place(l, i, l->heap[c]);
    }
    place(l, i, t);
}

static int arm(struct loop *l) {
    if (l->heap_len == 0 || l->heap[0]->at_ms >= l->armed_ms) return 0;
    int64_t at = l->heap[0]->at_ms;
    struct itimerspec its = {.it_value = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000}};
    if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) < 0) return -errno;
    l->armed_ms = at;
    return 0;
}

void timer_init(struct timer *t, void (*fn)(struct timer *)) {
    *t = (struct timer){.fn = fn, .heap_index = -1};
}

void timer_stop(struct timer *t) {
    struct loop *l = t->loop;
    if (!l || t->heap_index < 0) return;
    int i = t->heap_index;
    struct timer *last = l->heap[--l->heap_len];
    if (last != t) {
        place(l, i, last);
        sift_down(l, i);
        sift_up(l, last->heap_index);
    }
    t->heap_index = -1;
    t->loop = NULL;
}

/* The start of the next millisecond counts, so that a timer never fires early. */
int timer_start(struct loop *l, struct timer *t, int64_t delay_ms) {
    timer_stop(t);
    if (l->heap_len == l->heap_cap) {
        int cap = l->heap_cap ? 2 * l->heap_cap : 16;
        struct timer **heap = realloc(l->heap, (size_t)cap * sizeof *heap);
        if (!heap) return -ENOMEM;
        l->heap = heap;
        l->heap_cap = cap;
    }
    int64_t now = loop_now_ms();
    t->at_ms = delay_ms > 0 ? (delay_ms < NEVER / 2 - now ? now + 1 + delay_ms : NEVER / 2) : now;
    /* Not again in the round that runs now, or a timer of zero would keep the pump. */
    if (t->at_ms <= l->round_ms) t->at_ms = l->round_ms + 1;
    t->loop = l;
    place(l, l->heap_len, t);
    sift_up(l, l->heap_len++);
    int r = arm(l);
    if (r < 0) timer_stop(t);
    return r;
}

void timer_fired(struct loop *l) { l->armed_ms = NEVER; }

int timer_run_due(struct loop *l) {
    int n = 0;
    if (l->heap_len > 0) {
        int64_t outer = l->round_ms, now = loop_now_ms();
        l->round_ms = now;
        while (l->heap_len > 0 && l->heap[0]->at_ms <= now) {
            struct timer *t = l->heap[0];
            timer_stop(t);
            t->fn(t);
            n++;
        }
        l->round_ms = outer;
    }
    arm(l);
    return n;
}
