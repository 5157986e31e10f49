/* The loop: watches, timers, deferred calls, work and nesting in a foreign loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop.h"

#define PATIENCE_MS 10000

static int setup(void **state) { return loop_new((struct loop **)state); }
static int teardown(void **state) {
    loop_free(*state);
    return 0;
}

static int readable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms);
}

/* ---- watches ------------------------------------------------------------------- */

struct pipe_watch {
    struct watch w;
    int peer, calls;
    uint32_t last;
    struct pipe_watch *victims;
    int n_victims;
};

static void on_event(struct watch *w, uint32_t events) {
    struct pipe_watch *p = (struct pipe_watch *)w;
    p->calls++;
    p->last = events;
}

static void on_event_remove_all(struct watch *w, uint32_t events) {
    struct pipe_watch *p = (struct pipe_watch *)w;
    on_event(w, events);
    for (int i = 0; i < p->n_victims; i++) watch_remove(&p->victims[i].w);
}

static void pipe_open(struct loop *l, struct pipe_watch *p, uint32_t events, void (*fn)(struct watch *, uint32_t)) {
    int fd[2];
    assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    memset(p, 0, sizeof *p);
    p->peer = fd[1];
    assert_int_equal(watch_add(l, &p->w, fd[0], events, fn), 0);
}

static void pipe_close(struct pipe_watch *p) {
    watch_remove(&p->w);
    close(p->w.fd);
    if (p->peer >= 0) close(p->peer);
}

static void feed(struct pipe_watch *p) { assert_int_equal(write(p->peer, "x", 1), 1); }

static void test_watch(void **state) {
    struct loop *l = *state;
    struct pipe_watch p;
    pipe_open(l, &p, EPOLLIN, on_event);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(p.calls, 0);
    assert_int_equal(readable(loop_fd(l), 0), 0);
    feed(&p);
    assert_int_equal(readable(loop_fd(l), PATIENCE_MS), 1);
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(p.calls, 1);
    assert_int_equal(p.last, EPOLLIN);
    assert_int_equal(watch_add(l, &p.w, p.w.fd, EPOLLIN, on_event), -EEXIST);
    watch_remove(&p.w);
    watch_remove(&p.w);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(p.calls, 1);
    assert_int_equal(watch_set(&p.w, EPOLLIN), -EINVAL);
    pipe_close(&p);
}

static void test_watch_bad_fd(void **state) {
    struct watch w = {0};
    assert_int_equal(watch_add(*state, &w, -1, EPOLLIN, on_event), -EBADF);
    assert_false(w.active);
    watch_remove(&w);
}

/* A hang-up is reported whatever the mask: a sleeping watch must not see or cause it. */
static void test_watch_sleeps_through_hangup(void **state) {
    struct loop *l = *state;
    struct pipe_watch p;
    pipe_open(l, &p, EPOLLIN, on_event);
    feed(&p);
    assert_int_equal(watch_set(&p.w, 0), 0);
    close(p.peer);
    p.peer = -1;
    assert_int_equal(readable(loop_fd(l), 0), 0);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(p.calls, 0);
    assert_int_equal(watch_set(&p.w, EPOLLIN), 0);
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(p.calls, 1);
    assert_true(p.last & EPOLLIN);
    assert_true(p.last & EPOLLHUP);
    pipe_close(&p);
}

static void test_watch_born_asleep(void **state) {
    struct loop *l = *state;
    struct pipe_watch p;
    pipe_open(l, &p, 0, on_event);
    feed(&p);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(p.calls, 0);
    assert_int_equal(watch_set(&p.w, EPOLLIN), 0);
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(p.calls, 1);
    pipe_close(&p);
}

/* Whichever of the batch comes first removes all: none of the others may be called. */
static void test_watch_removed_in_batch(void **state) {
    struct loop *l = *state;
    struct pipe_watch p[8];
    for (int i = 0; i < 8; i++) {
        pipe_open(l, &p[i], EPOLLIN, on_event_remove_all);
        p[i].victims = p;
        p[i].n_victims = 8;
        feed(&p[i]);
    }
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    int calls = 0;
    for (int i = 0; i < 8; i++) calls += p[i].calls;
    assert_int_equal(calls, 1);
    for (int i = 0; i < 8; i++) pipe_close(&p[i]);
}

static struct loop *nested_loop;
static void on_event_pump(struct watch *w, uint32_t events) {
    struct pipe_watch *p = (struct pipe_watch *)w;
    on_event(w, events);
    char c;
    assert_int_equal(read(w->fd, &c, 1), 1);
    if (p->n_victims-- > 0) loop_pump(nested_loop, 0);
}

static void on_event_read_remove(struct watch *w, uint32_t events) {
    struct pipe_watch *p = (struct pipe_watch *)w;
    on_event(w, events);
    for (int i = 0; i < p->n_victims; i++) watch_remove(&p->victims[i].w);
}

/* A pump inside a callback removes a watch that the outer pump still has in its batch. */
static void test_watch_removed_by_nested_pump(void **state) {
    struct loop *l = nested_loop = *state;
    struct pipe_watch first, second, third;
    pipe_open(l, &first, EPOLLIN, on_event_pump);
    first.n_victims = 1;
    feed(&first);
    pipe_open(l, &second, EPOLLIN, on_event_read_remove);
    feed(&second);
    pipe_open(l, &third, EPOLLIN, on_event);
    feed(&third);
    struct pipe_watch *others = &third;
    second.victims = others;
    second.n_victims = 1;
    watch_set(&second.w, 0);
    watch_set(&third.w, 0);
    watch_set(&second.w, EPOLLIN);
    watch_set(&third.w, EPOLLIN);
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(third.calls, 0);
    assert_int_equal(first.calls, 1);
    pipe_close(&first);
    pipe_close(&second);
    pipe_close(&third);
}

/* ---- timers -------------------------------------------------------------------- */

struct my_timer {
    struct timer t;
    int calls, order;
    struct my_timer *stops;
    int again;
};
static int order;

static void on_timer(struct timer *t) {
    struct my_timer *m = (struct my_timer *)t;
    m->calls++;
    m->order = ++order;
    if (m->stops) timer_stop(&m->stops->t);
    if (m->again-- > 0) timer_start(nested_loop, t, 0);
}

static void test_timer_order(void **state) {
    struct loop *l = *state;
    struct my_timer t[64] = {0};
    order = 0;
    for (int i = 0; i < 64; i++) {
        timer_init(&t[i].t, on_timer);
        assert_int_equal(timer_start(l, &t[i].t, 1000 + (i * 37) % 64), 0);
    }
    /* Every third is stopped, every fourth moved: the heap has holes in its middle. */
    for (int i = 0; i < 64; i += 3) timer_stop(&t[i].t);
    for (int i = 0; i < 64; i += 4) assert_int_equal(timer_start(l, &t[i].t, 2 + (i * 11) % 16), 0);
    for (int i = 1; i < 64; i++)
        if (i % 4 && i % 3) assert_int_equal(timer_start(l, &t[i].t, 1 + (i * 37) % 32), 0);
    for (;;) {
        int left = loop_timeout_ms(l);
        if (left < 0) break;
        assert_in_range(left, 0, 40);
        assert_int_equal(loop_pump(l, -1), 0);
    }
    for (int i = 0; i < 64; i++) assert_int_equal(t[i].calls, i % 4 == 0 || i % 3 ? 1 : 0);
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 64; k++)
            if (t[i].calls && t[k].calls && t[i].t.at_ms < t[k].t.at_ms) assert_true(t[i].order < t[k].order);
}

static void test_timer_readable_outside(void **state) {
    struct loop *l = *state;
    struct my_timer t = {0};
    timer_init(&t.t, on_timer);
    assert_int_equal(loop_timeout_ms(l), -1);
    assert_int_equal(timer_start(l, &t.t, 60000), 0);
    assert_in_range(loop_timeout_ms(l), 59000, 60001);
    assert_int_equal(timer_start(l, &t.t, 5), 0);
    assert_int_equal(readable(loop_fd(l), PATIENCE_MS), 1);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(t.calls, 1);
    assert_int_equal(readable(loop_fd(l), 0), 0);
    timer_stop(&t.t);
}

/* A stopped timer leaves the timerfd set; the later one must come all the same. */
static void test_timer_after_stale(void **state) {
    struct loop *l = *state;
    struct my_timer stale = {0}, later = {0};
    timer_init(&stale.t, on_timer);
    timer_init(&later.t, on_timer);
    timer_start(l, &stale.t, 3);
    timer_start(l, &later.t, 30);
    timer_stop(&stale.t);
    for (int i = 0; i < 10 && !later.calls; i++) {
        assert_int_equal(readable(loop_fd(l), PATIENCE_MS), 1);
        assert_int_equal(loop_pump(l, 0), 0);
    }
    assert_int_equal(later.calls, 1);
    assert_int_equal(stale.calls, 0);
}

static void test_timer_callbacks(void **state) {
    struct loop *l = nested_loop = *state;
    struct my_timer a = {0}, b = {0};
    timer_init(&a.t, on_timer);
    timer_init(&b.t, on_timer);
    timer_stop(&a.t);
    a.stops = &b;
    a.again = 3;
    timer_start(l, &a.t, 0);
    timer_start(l, &b.t, 0);
    assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(a.calls, 1); /* not again in the same pump */
    while (a.calls < 4) assert_int_equal(loop_pump(l, PATIENCE_MS), 0);
    assert_int_equal(loop_timeout_ms(l), -1);
    assert_int_equal(b.calls, 0);
}

static void test_timer_huge(void **state) {
    struct my_timer t = {0};
    timer_init(&t.t, on_timer);
    assert_int_equal(timer_start(*state, &t.t, INT64_MAX), 0);
    assert_int_equal(loop_timeout_ms(*state), INT32_MAX);
    assert_int_equal(loop_pump(*state, 0), 0);
    assert_int_equal(t.calls, 0);
    timer_stop(&t.t);
}

/* ---- deferred ------------------------------------------------------------------- */

struct my_deferred {
    struct deferred d;
    int calls;
    bool again, pump;
    struct my_deferred *cancels;
};

static void on_deferred(struct deferred *d) {
    struct my_deferred *m = (struct my_deferred *)d;
    m->calls++;
    if (m->again) deferred_start(nested_loop, d);
    if (m->cancels) deferred_cancel(&m->cancels->d);
    if (m->pump) loop_pump(nested_loop, 0);
}

static void test_deferred(void **state) {
    struct loop *l = nested_loop = *state;
    struct my_deferred a = {.again = true}, b = {0}, c = {0};
    deferred_init(&a.d, on_deferred);
    deferred_init(&b.d, on_deferred);
    deferred_init(&c.d, on_deferred);
    deferred_start(l, &a.d);
    deferred_start(l, &a.d);
    deferred_start(l, &b.d);
    deferred_start(l, &c.d);
    a.cancels = &c;
    assert_int_equal(loop_timeout_ms(l), 0);
    assert_int_equal(readable(loop_fd(l), 0), 1);
    assert_int_equal(loop_pump(l, -1), 0); /* must not wait */
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 1);
    assert_int_equal(c.calls, 0);
    /* a has queued itself again, inside the pump: seen from outside as well. */
    assert_int_equal(readable(loop_fd(l), 0), 1);
    a.again = false;
    assert_int_equal(loop_pump(l, -1), 0);
    assert_int_equal(a.calls, 2);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(readable(loop_fd(l), 0), 0);
    deferred_cancel(&a.d);
}

static void test_deferred_nested(void **state) {
    struct loop *l = nested_loop = *state;
    struct my_deferred a = {.pump = true}, b = {0};
    deferred_init(&a.d, on_deferred);
    deferred_init(&b.d, on_deferred);
    deferred_start(l, &a.d);
    deferred_start(l, &b.d);
    assert_int_equal(loop_pump(l, 0), 0);
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 1);
    assert_int_equal(loop_timeout_ms(l), -1);
}

/* ---- threads -------------------------------------------------------------------- */

static void *wake(void *l) {
    loop_wakeup(l);
    return NULL;
}

static void test_wakeup(void **state) {
    struct loop *l = *state;
    pthread_t th;
    assert_int_equal(pthread_create(&th, NULL, wake, l), 0);
    assert_int_equal(loop_pump(l, -1), 0);
    pthread_join(th, NULL);
    loop_pump(l, 0);
    loop_wakeup(l);
    loop_wakeup(l);
    assert_int_equal(readable(loop_fd(l), 0), 1);
    assert_int_equal(loop_pump(l, -1), 0);
    assert_int_equal(readable(loop_fd(l), 0), 0);
    loop_wakeup(l);
    assert_int_equal(readable(loop_fd(l), 0), 1);
    assert_int_equal(loop_pump(l, -1), 0);
}

static void on_signal(int s) { (void)s; }

static void test_interrupted(void **state) {
    struct sigaction sa = {.sa_handler = on_signal}, old;
    sigset_t one, mask;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigaction(SIGUSR1, &sa, &old);
    struct pipe_watch p;
    pipe_open(*state, &p, EPOLLIN, on_event);
    /* Pending and blocked; a timer of the process would do, but this one is certain. */
    timer_t id;
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &id), 0);
    struct itimerspec its = {.it_value.tv_nsec = 5000000, .it_interval.tv_nsec = 5000000};
    assert_int_equal(timer_settime(id, 0, &its, NULL), 0);
    assert_int_equal(loop_pump(*state, PATIENCE_MS), 0);
    timer_delete(id);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGUSR1));
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(p.calls, 0);
    pipe_close(&p);
}

struct my_work {
    struct work w;
    int gate; /* read end: run() waits for its end of file */
    pthread_t ran_on;
    bool all_blocked;
    int runs, dones;
};

static void work_run(struct work *w) {
    struct my_work *m = (struct my_work *)w;
    char c;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    m->all_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR2) && sigismember(&mask, SIGCHLD);
    m->ran_on = pthread_self();
    if (m->gate >= 0 && read(m->gate, &c, 1) < 0) return;
    m->runs++;
}
static void work_done(struct work *w) { ((struct my_work *)w)->dones++; }

static void test_work(void **state) {
    struct loop *l = *state;
    int gate[2];
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    struct my_work w[4] = {0};
    for (int i = 0; i < 4; i++) {
        w[i].w = (struct work){.run = work_run, .done = work_done};
        w[i].gate = i == 0 ? gate[0] : -1;
        assert_int_equal(work_start(l, &w[i].w), 0);
    }
    while (w[1].dones + w[2].dones + w[3].dones < 3) assert_int_equal(loop_pump(l, -1), 0);
    assert_int_equal(w[0].dones, 0);
    close(gate[1]);
    assert_int_equal(readable(loop_fd(l), PATIENCE_MS), 1);
    while (!w[0].dones) assert_int_equal(loop_pump(l, -1), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w[i].runs, 1);
        assert_int_equal(w[i].dones, 1);
        assert_true(w[i].all_blocked);
        assert_false(pthread_equal(w[i].ran_on, pthread_self()));
    }
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
    close(gate[0]);
}

static void test_free_waits_for_work(void **state) {
    (void)state;
    struct loop *l = NULL;
    assert_int_equal(loop_new(&l), 0);
    struct my_work w = {.w = {.run = work_run, .done = work_done}, .gate = -1};
    assert_int_equal(work_start(l, &w.w), 0);
    loop_free(l);
    assert_int_equal(w.runs, 1);
    loop_free(NULL);
}

static void work_done_again(struct work *w) {
    struct my_work *m = (struct my_work *)w;
    if (++m->dones == 1) assert_int_equal(work_start(w->loop, w), 0);
}

/* Work that done() starts is waited for as well. */
static void test_wait_work(void **state) {
    struct loop *l = *state;
    struct my_work w[3] = {0};
    loop_wait_work(l);
    for (int i = 0; i < 3; i++) {
        w[i].w = (struct work){.run = work_run, .done = i == 1 ? work_done_again : work_done};
        w[i].gate = -1;
        assert_int_equal(work_start(l, &w[i].w), 0);
    }
    loop_wait_work(l);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w[i].runs, i == 1 ? 2 : 1);
        assert_int_equal(w[i].dones, i == 1 ? 2 : 1);
    }
}

/* ---- cost and leaks -------------------------------------------------------------- */

static int count_fds(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_descriptors(void **state) {
    (void)state;
    int before = count_fds();
    struct loop *l = NULL;
    assert_int_equal(loop_new(&l), 0);
    for (int fd = 0; fd < 256; fd++)
        if (fd >= 3 && fd == loop_fd(l)) assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    loop_free(l);
    assert_int_equal(count_fds(), before);
    /* Without room for its descriptors there is no loop, and nothing is left over. */
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    int next = dup(0);
    close(next);
    for (int room = 0; room < 3; room++) {
        low = (struct rlimit){.rlim_cur = (rlim_t)(next + room), .rlim_max = old.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        l = NULL;
        int r = loop_new(&l);
        setrlimit(RLIMIT_NOFILE, &old);
        assert_int_equal(r, -EMFILE);
        assert_null(l);
    }
    assert_int_equal(count_fds(), before);
}

int main(void) {
    alarm(120);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_bad_fd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sleeps_through_hangup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_born_asleep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_removed_in_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_removed_by_nested_pump, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_readable_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_after_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_callbacks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_huge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deferred, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deferred_nested, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wakeup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wait_work, setup, teardown),
        cmocka_unit_test(test_free_waits_for_work),
        cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
