/* Sandboxes that come when nobody waits for them any more are killed: they would run on, and cost. */
#include "base/err.h"
#include "provider/call.h"

void call_kill_created(struct abx_call *c, const abx_value *value) {
    const char *id = abx_value_get_string(value, "sandbox_id");
    abx_op *op = NULL;
    if (!c->method || !(c->method->traits & CREATES) || !id || !*id) return;
    _cleanup_value_ abx_value *params = abx_value_new_object();
    if (abx_value_set_string(params, "sandbox_id", id) < 0) return;
    if (call_start(&op, c->session, "sandbox.kill", params, NULL, NULL) < 0) return;
    op->cancelled = true; /* runs on without a holder */
    abx_op_unref(op);
}

static int created(void *user, abx_op *op, const abx_value *value, abx_error **reterr) {
    (void)user, (void)reterr;
    call_kill_created(op->priv, value);
    return 0;
}

bool call_outlive(struct abx_call *c) {
    struct session *s = c->session;
    abx_op *op = NULL;
    if (c->late || c->state != CALL_SENT || !c->method || !(c->method->traits & CREATES)) return false;
    if (op_new(&op, s->host, &call_class, c) < 0) return false;
    c->late = true;
    c->op->priv = NULL;
    c->op = op;
    if (c->o.free_user) c->o.free_user(c->o.user);
    c->o = (struct call_opts){.finish = created};
    call_arm(c, s->manifest->call_timeout_ms);
    op->cancelled = true;
    abx_op_unref(op);
    if (s->instance && driver_has(s->driver, abandon)) s->driver->abandon(s->instance, c); /* may end it */
    return true;
}
