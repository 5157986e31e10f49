/* The peer over real pipes: lines, ids, cancellation, a reader that stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "rpc/rpc.h"

struct fixture {
    struct loop *loop;
    struct json_parser *parser;
    struct secrets secrets;
    struct rpc_peer *peer;
    int to_peer, from_peer; /* the plugin's ends */
    int answers, notes, eofs;
    char last[256], broken[256];
    void *last_call;
};

static void on_answer(void *user, void *call, const struct rpc_answer *a) {
    struct fixture *f = user;
    f->answers++;
    f->last_call = call;
    if (a->ok) {
        const char *s = "?";
        size_t n;
        json_string(json_get(a->result, "text"), &s, &n);
        snprintf(f->last, sizeof f->last, "%s", s);
    } else {
        snprintf(f->last, sizeof f->last, "%d %s", a->code, a->message);
    }
}
static void on_note(void *user, const char *method, struct json_ref params) {
    (void)params;
    struct fixture *f = user;
    f->notes++;
    snprintf(f->last, sizeof f->last, "%s", method);
}
static void on_broken(void *user, const char *reason) { snprintf(((struct fixture *)user)->broken, 256, "%s", reason); }
static void on_eof(void *user) { ((struct fixture *)user)->eofs++; }
static const struct rpc_events events = {on_answer, on_note, on_broken, on_eof};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    int in[2], out[2];
    assert_int_equal(loop_new(&f->loop), 0);
    f->parser = json_parser_new(LIMIT_LINE + 1);
    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    f->to_peer = in[1];
    f->from_peer = out[0];
    struct rpc_opts o = {.loop = f->loop, .parser = f->parser, .in_fd = in[0], .out_fd = out[1], .secrets = &f->secrets,
                         .name = "test", .events = &events, .user = f};
    assert_int_equal(rpc_new(&f->peer, &o), 0);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rpc_free(f->peer);
    secrets_done(&f->secrets);
    json_parser_free(f->parser);
    loop_free(f->loop);
    if (f->to_peer >= 0) close(f->to_peer);
    close(f->from_peer);
    free(f);
    return 0;
}

static void say(struct fixture *f, const char *text) {
    size_t n = strlen(text);
    while (n) {
        ssize_t w = write(f->to_peer, text, n);
        if (w < 0) {
            assert_int_equal(errno, EAGAIN);
            loop_pump(f->loop, 0);
            continue;
        }
        text += w;
        n -= (size_t)w;
    }
    loop_pump(f->loop, 0);
}

static size_t heard(struct fixture *f, char *out, size_t max) {
    ssize_t n = read(f->from_peer, out, max - 1);
    if (n < 0) n = 0;
    out[n] = '\0';
    return (size_t)n;
}

static void answers_reach_their_calls(void **state) {
    struct fixture *f = *state;
    uint64_t a, b;
    int call_a, call_b;
    char line[256];
    assert_int_equal(rpc_request(f->peer, "x", NULL, &call_a, &a), 0);
    assert_int_equal(rpc_request(f->peer, "y", NULL, &call_b, &b), 0);
    heard(f, line, sizeof line);
    assert_string_equal(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}}\n"
                              "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"y\",\"params\":{}}\n");
    say(f, "{\"id\":2,\"result\":{\"text\":\"second\"}}\n\n{\"id\":1,\"res");
    assert_ptr_equal(f->last_call, &call_b);
    assert_string_equal(f->last, "second");
    say(f, "ult\":{\"text\":\"first\"}}\r\n");
    assert_ptr_equal(f->last_call, &call_a);
    say(f, "{\"id\":1,\"result\":{}}\n{\"id\":77,\"result\":{}}\n"); /* doubled, invented */
    assert_int_equal(f->answers, 2);
    assert_string_equal(f->broken, "");
}

static void errors_and_notes(void **state) {
    struct fixture *f = *state;
    uint64_t id;
    assert_int_equal(rpc_request(f->peer, "x", NULL, f, &id), 0);
    say(f, "{\"method\":\"log\",\"params\":{}}\n{\"id\":1,\"error\":{\"code\":-32002,\"message\":\"gone\"}}\n");
    assert_int_equal(f->notes, 1);
    assert_string_equal(f->last, "-32002 gone");
}

static void breaks(struct fixture *f, const char *text, const char *reason) {
    say(f, text);
    assert_non_null(strstr(f->broken, reason));
}
static void garbage_breaks(void **state) { breaks(*state, "hello \x1b[31mworld\n", "non-JSON) protocol line"); assert_null(strchr(((struct fixture *)*state)->broken, '\x1b')); }
/* A secret at the cut, and one with an escape in it: no half of either is quoted. */
static void a_quote_has_no_half_of_a_secret(void **state) {
    struct fixture *f = *state;
    char text[200];
    assert_int_equal(secrets_add(&f->secrets, "hunter2-secret", 14), 0);
    snprintf(text, sizeof text, "hunter2-\x1b[1msecret %0*d hunter2-secret tail\n", LIMIT_LINE_QUOTE - 4 - 8, 0);
    breaks(f, text, "(non-JSON) protocol line");
    assert_null(strstr(f->broken, "hunt"));
    assert_non_null(strstr(f->broken, ": *** 000"));
    assert_non_null(strstr(f->broken, "…"));
}
static void array_breaks(void **state) { breaks(*state, "[1]\n", "not a JSON object"); }
static void twin_keys_break(void **state) { breaks(*state, "{\"id\":1,\"id\":2,\"result\":{}}\n", "malformed"); }
static void error_without_id_breaks(void **state) { breaks(*state, "{\"id\":null,\"error\":{\"code\":1,\"message\":\"what\"}}\n", "without a request id: what"); }

static void long_line_breaks(void **state) {
    struct fixture *f = *state;
    char *big = malloc(9 * MIB + 1);
    memset(big, 'x', 9 * MIB);
    big[9 * MIB] = '\0';
    const char *p = big;
    while (*p && !*f->broken) {
        ssize_t w = write(f->to_peer, p, MIN_OF(strlen(p), (size_t)65536));
        if (w > 0) p += w;
        loop_pump(f->loop, 0);
    }
    free(big);
    assert_string_equal(f->broken, "Plugin sent a protocol line larger than 8 MiB");
}

static void a_reader_that_stopped_is_bounded(void **state) {
    struct fixture *f = *state;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    char *big = calloc(1, 4 * MIB);
    abx_value_set(params, "data", abx_value_new_bytes(big, 4 * MIB));
    free(big);
    uint64_t id = 0, first = 0;
    int r = 0, sent = 0;
    while ((r = rpc_request(f->peer, "files.write", params, f, &id)) == 0) {
        if (!first) first = id;
        assert_true(++sent < 10);
    }
    assert_int_equal(r, -ENOBUFS);
    assert_true(rpc_blocked(f->peer));
    /* The last one, of which no byte was sent, is taken back: there is room again. */
    rpc_cancel(f->peer, id, true, false);
    assert_int_equal(rpc_request(f->peer, "small", NULL, f, &id), 0);
}

static void over_the_limit_is_not_sent(void **state) {
    struct fixture *f = *state;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    char *big = calloc(1, 7 * MIB), line[64];
    abx_value_set(params, "data", abx_value_new_bytes(big, 7 * MIB));
    free(big);
    uint64_t id;
    assert_int_equal(rpc_request(f->peer, "files.write", params, f, &id), -EMSGSIZE);
    assert_int_equal(heard(f, line, sizeof line), 0);
}

static void hold_stops_reading(void **state) {
    struct fixture *f = *state;
    rpc_hold(f->peer, true);
    say(f, "{\"method\":\"log\",\"params\":{}}\n");
    assert_int_equal(f->notes, 0);
    rpc_hold(f->peer, false);
    loop_pump(f->loop, 0);
    loop_pump(f->loop, 0);
    assert_int_equal(f->notes, 1);
}

static void cancel_is_told_once_sent(void **state) {
    struct fixture *f = *state;
    uint64_t id;
    char line[512];
    assert_int_equal(rpc_request(f->peer, "x", NULL, f, &id), 0);
    heard(f, line, sizeof line);
    rpc_cancel(f->peer, id, true, false);
    heard(f, line, sizeof line);
    assert_string_equal(line, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":1}}\n");
    say(f, "{\"id\":1,\"result\":{}}\n");
    assert_int_equal(f->answers, 0);
}

static void eof_is_told(void **state) {
    struct fixture *f = *state;
    close(f->to_peer);
    f->to_peer = -1;
    loop_pump(f->loop, 0);
    assert_int_equal(f->eofs, 1);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(answers_reach_their_calls), T(errors_and_notes), T(garbage_breaks), T(a_quote_has_no_half_of_a_secret), T(array_breaks), T(twin_keys_break),
        T(error_without_id_breaks), T(long_line_breaks), T(a_reader_that_stopped_is_bounded), T(over_the_limit_is_not_sent),
        T(hold_stops_reading), T(cancel_is_told_once_sent), T(eof_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
