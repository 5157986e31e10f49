/* Sandboxes come, are found, and go. */
#include "contract/test.h"

/* More pages than this for a few sandboxes: the cursor goes round. */
#define PAGES_MOST 10000

/* ---- create ---------------------------------------------------------------------------- */

static void create_returns_a_running_sandbox(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    if (!sb) return;
    if (!*abx_sandbox_id(sb)) test_fail(t, "sandbox.create: expected a sandbox_id, came \"\"");
    check_text(t, "status after sandbox.create", abx_value_get(abx_sandbox_record(sb), "status"), "running");
}

static void create_gives_distinct_ids(struct test *t) {
    abx_sandbox *a = test_sandbox(t), *b = test_sandbox(t);
    if (!a || !b || !streq(abx_sandbox_id(a), abx_sandbox_id(b))) return;
    _cleanup_free_ char *id = show_bytes(bytes_of(abx_sandbox_id(a)));
    test_fail(t, "sandbox.create: expected two ids, came %s twice", id);
}

/* ---- finding --------------------------------------------------------------------------- */

static int start_connect(struct test *t, struct ui_call *c, const char *ref) {
    return abx_sandbox_connect_start(&c->op, t->cli->client, ref, t->provider, &c->error);
}

static void connect_finds_the_sandbox(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_done(t, &c, start_connect(t, &c, abx_sandbox_ref_string(sb)), "sandbox.connect")) return;
    check_text(t, "sandbox_id after sandbox.connect", abx_value_get(c.value, "sandbox_id"), abx_sandbox_id(sb));
}

static void get_tells_about_the_sandbox(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_done(t, &c, abx_sandbox_info_start(&c.op, sb, &c.error), "sandbox.get")) return;
    check_text(t, "sandbox_id of sandbox.get", abx_value_get(c.value, "sandbox_id"), abx_sandbox_id(sb));
}

/* How often the list of running sandboxes has the id. */
static int listed(struct test *t, const char *id) {
    _cleanup_call_ struct ui_call c = {0};
    int n = 0;
    int r = abx_sandbox_list_start(&c.op, t->cli->client, t->provider, "running", 0, &c.error);
    if (!test_done(t, &c, r, "sandbox.list")) return 0;
    const abx_value *list = abx_value_get(c.value, "sandboxes");
    for (size_t i = 0; i < abx_value_size(list); i++) {
        const abx_value *record = abx_value_at(list, i);
        /* Of a plugin that heeds no status the record's own word counts. */
        n += streq0(abx_value_get_string(record, "sandbox_id"), id) && streq0(abx_value_get_string(record, "status"), "running");
    }
    return n;
}

static void list_contains_the_sandbox(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    if (sb) check_int(t, "times sandbox.list has the sandbox", listed(t, abx_sandbox_id(sb)), 1);
}

static void list_forgets_the_killed(struct test *t) {
    abx_sandbox *sb = test_sandbox(t);
    if (sb && test_kill(t, sb))
        check_int(t, "times sandbox.list has the killed sandbox as running", listed(t, abx_sandbox_id(sb)), 0);
}

/* ---- pages ----------------------------------------------------------------------------- */

/* One page from cursor (NULL: the first); *ret_next is the next cursor, or NULL. A backend without pages may
 * answer with all there is. */
static abx_value *list_page(struct test *t, int limit, const char *cursor, char **ret_next) {
    _cleanup_call_ struct ui_call c = {0};
    _cleanup_value_ abx_value *params = abx_value_new_object();
    abx_value_set_int(params, "limit", limit);
    if (cursor) abx_value_set_string(params, "cursor", cursor);
    if (!test_done(t, &c, abx_call_start(&c.op, t->anchor, "sandbox.list", params, &c.error), "sandbox.list")) return NULL;
    const abx_value *page = abx_value_get(c.value, "sandboxes");
    const char *next = abx_value_get_string(c.value, "next");
    *ret_next = next && *next ? strdup(next) : NULL;
    return abx_value_ref(page);
}

/* Strikes the ids of a page off the list; how many are left. */
static size_t strike(const abx_value *page, const char **ids, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; ids[i] && k < abx_value_size(page); k++)
            if (streq0(abx_value_get_string(abx_value_at(page, k), "sandbox_id"), ids[i])) ids[i] = NULL;
        left += ids[i] != NULL;
    }
    return left;
}

static void walk_pages(struct test *t, int limit, const char **ids, size_t n) {
    _cleanup_free_ char *cursor = NULL;
    for (int pages = 1; test_ok(t); pages++) {
        char *next = NULL;
        _cleanup_value_ abx_value *page = list_page(t, limit, cursor, &next);
        size_t left = strike(page, ids, n);
        bool same = next && cursor && streq(next, cursor);
        free(cursor);
        cursor = next;
        if (left == 0) return;
        if (same || pages == PAGES_MOST)
            test_fail(t, "sandbox.list with limit %d: expected another cursor for each page, came the same again", limit);
        else if (!next)
            test_fail(t, "sandbox.list with limit %d: expected %zu sandboxes over all pages, came %zu by page %d, the last",
                      limit, n, n - left, pages);
    }
}

static void list_pages_to_the_end(struct test *t) {
    abx_sandbox *boxes[] = {test_sandbox(t), test_sandbox(t), test_sandbox(t)};
    for (int limit = 1; limit <= 2 && test_ok(t); limit++) {
        const char *ids[ARRAY_SIZE(boxes)];
        for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) ids[i] = abx_sandbox_id(boxes[i]);
        walk_pages(t, limit, ids, ARRAY_SIZE(ids));
    }
}

/* ---- unknown ids ------------------------------------------------------------------------ */

static void unknown_sandbox_is_e2009(struct test *t) {
    _cleanup_call_ struct ui_call connect = {0}, get = {0};
    test_refused(t, &connect, start_connect(t, &connect, abx_sandbox_ref_string(t->anchor)), "sandbox.connect of an unknown id",
                 ABX_E_SANDBOX_NOT_FOUND, 0);
    if (test_ok(t))
        test_refused(t, &get, abx_sandbox_info_start(&get.op, t->anchor, &get.error), "sandbox.get of an unknown id",
                     ABX_E_SANDBOX_NOT_FOUND, 0);
}

/* That unknown ids are E2009 is a point of its own: here an odd one must be as unknown as a plain one. */
static void odd_ids_are_e2009(struct test *t) {
    static const char *const odd[] = {"..",  "../..", "../../etc/passwd", "a/b",    "/",     "a b",
                                      " a ", "沙盒",  "песочница",        "%2e%2e", "a\\b", "*"};
    _cleanup_call_ struct ui_call plain = {0};
    int expected = test_end(t, &plain, abx_sandbox_info_start(&plain.op, t->anchor, &plain.error), "sandbox.get");
    for (size_t i = 0; i < ARRAY_SIZE(odd) && test_ok(t); i++) {
        _cleanup_call_ struct ui_call c = {0};
        if (!(c.sb = test_attach(t, odd[i]))) return;
        _cleanup_free_ char *id = show_bytes(bytes_of(odd[i])), *what = str_printf("sandbox.get of the id %s", id);
        int r = test_end(t, &c, abx_sandbox_info_start(&c.op, c.sb, &c.error), what ?: "sandbox.get");
        if (r != ABX_E_SANDBOX_NOT_FOUND && r != expected) test_unexpected(t, &c, what ?: "sandbox.get", "E2009");
    }
}

/* ---- kill --------------------------------------------------------------------------------- */

static void kill_is_idempotent(struct test *t) {
    _cleanup_call_ struct ui_call again = {0}, unknown = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_kill(t, sb)) return;
    if (test_done(t, &again, abx_sandbox_kill_start(&again.op, sb, &again.error), "sandbox.kill for the second time"))
        test_done(t, &unknown, abx_sandbox_kill_start(&unknown.op, t->anchor, &unknown.error), "sandbox.kill of an unknown id");
}

static void killed_sandbox_is_gone(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (!sb || !test_kill(t, sb)) return;
    int r = test_end(t, &c, abx_sandbox_info_start(&c.op, sb, &c.error), "sandbox.get after sandbox.kill");
    const char *status = abx_value_get_string(c.value, "status");
    if (r == ABX_E_SANDBOX_NOT_FOUND || streq0(status, "stopped") || streq0(status, "stopping")) return;
    test_unexpected(t, &c, "sandbox.get after sandbox.kill", "E2009 or the status stopped");
}

/* ---- timeout, pause ------------------------------------------------------------------------- */

static void set_timeout(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (sb) test_done(t, &c, abx_sandbox_set_timeout_start(&c.op, sb, 600, &c.error), "sandbox.set_timeout");
}

static void set_timeout_of_unknown_is_e2009(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    test_refused(t, &c, abx_sandbox_set_timeout_start(&c.op, t->anchor, 600, &c.error), "sandbox.set_timeout of an unknown id",
                 ABX_E_SANDBOX_NOT_FOUND, 0);
}

static void pause_resume(struct test *t) {
    _cleanup_call_ struct ui_call pause = {0}, resume = {0};
    abx_sandbox *sb = test_sandbox(t);
    if (sb && test_done(t, &pause, abx_sandbox_pause_start(&pause.op, sb, &pause.error), "sandbox.pause"))
        test_done(t, &resume, abx_sandbox_resume_start(&resume.op, sb, &resume.error), "sandbox.resume");
}

static void pause_of_unknown_is_e2009(struct test *t) {
    _cleanup_call_ struct ui_call c = {0};
    test_refused(t, &c, abx_sandbox_pause_start(&c.op, t->anchor, &c.error), "sandbox.pause of an unknown id",
                 ABX_E_SANDBOX_NOT_FOUND, 0);
}

const struct test_row test_lifecycle_cases[] = {
    TEST_ROW(create_returns_a_running_sandbox),
    TEST_ROW(create_gives_distinct_ids),
    TEST_ROW(connect_finds_the_sandbox),
    TEST_ROW(get_tells_about_the_sandbox),
    TEST_ROW(list_contains_the_sandbox),
    TEST_ROW(list_pages_to_the_end),
    TEST_ROW(list_forgets_the_killed),
    TEST_ROW(unknown_sandbox_is_e2009),
    TEST_ROW(odd_ids_are_e2009),
    TEST_ROW(kill_is_idempotent),
    TEST_ROW(killed_sandbox_is_gone),
    TEST_ROW(set_timeout),
    TEST_ROW(set_timeout_of_unknown_is_e2009),
    TEST_ROW(pause_resume),
    TEST_ROW(pause_of_unknown_is_e2009),
    {0},
};
