/* The tables newer hosts write: which operations and workflows a provider takes part in. */
#include "provider/features.h"
#include "provider/manifest_parts.h"

static int read_operations(const struct manifest *m, const abx_value *table, const char *consumer,
                           char ***ret, abx_error **reterr) {
    int r = read_list(table, "operations", consumer, ret, reterr);
    if (r < 0) return r;
    bool ok = !has_duplicates(*ret);
    for (size_t i = 0; ok && (*ret)[i]; i++) ok = operation_known((*ret)[i]);
    if (!ok)
        return manifest_bad(reterr, "operations.%s contains duplicate or unknown operations",
                            consumer);
    if (streq(consumer, "python") && strv_contains(*ret, "template.prepare"))
        return manifest_bad(reterr, "operations.python template.prepare has no implementation");
    for (size_t i = 0; (*ret)[i]; i++) {
        if (!str_starts((*ret)[i], "code.")) continue;
        if (streq(m->kind, "exec"))
            return manifest_bad(reterr,
                                "exec Python bridge does not implement interpreter operations");
        if (streq(m->kind, "rest"))
            return manifest_bad(reterr,
                                "rest Python bridge has no verified interpreter wire mapping");
    }
    return 0;
}

static int read_values(const abx_value *table, const char *key, const char *const *allowed,
                       char ***ret, abx_error **reterr) {
    int r = read_list(table, "workflow", key, ret, reterr);
    if (r < 0) return r;
    bool ok = !has_duplicates(*ret);
    for (size_t i = 0; ok && (*ret)[i]; i++) ok = strv_contains((char *const *)allowed, (*ret)[i]);
    return ok ? 0 : manifest_bad(reterr, "workflow.%s contains duplicate or unknown values", key);
}

static int read_workflow(struct manifest *m, const abx_value *table, abx_error **reterr) {
    static const char *const inputs[] = {"source", "image", "managed", "service", NULL};
    static const char *const startups[] = {"exec", "entrypoint", "none", NULL};
    static const char *const placeholders[] = {"<region>", "<tag>", NULL};
    _cleanup_strv_ char **found = NULL;
    bool ok = abx_value_get(table, "inputs") && abx_value_get(table, "startups");
    ok = ok && abx_value_size(table) == 2 + (abx_value_get(table, "source_placeholders") != NULL);
    if (!ok)
        return manifest_bad(
            reterr,
            "workflow must declare inputs and startups; only source_placeholders is optional");
    int r = read_values(table, "inputs", inputs, &m->workflow_inputs, reterr);
    if (r == 0) r = read_values(table, "source_placeholders", placeholders, &found, reterr);
    if (r == 0 && found[0] &&
        !(strv_contains(m->operations_cli, "template.prepare") &&
          strv_contains(m->workflow_inputs, "source")))
        r = manifest_bad(
            reterr, "workflow.source_placeholders requires CLI template.prepare and source input");
    return r < 0 ? r : read_values(table, "startups", startups, &m->startup_modes, reterr);
}

int read_contract(struct manifest *m, const abx_value *doc, abx_error **reterr) {
    const abx_value *version = abx_value_get(doc, "operation_contract_version"), *operations,
                    *workflow;
    m->has_contract = version || abx_value_get(doc, "operations") || abx_value_get(doc, "workflow");
    if (m->has_contract && (!abx_value_is(version, ABX_TYPE_INT) || abx_value_int(version, 0) != 1))
        return manifest_bad(reterr, "operation_contract_version must be 1");
    int r = read_table(doc, "operations", "operations", m->has_contract, &operations, reterr);
    if (r == 0 && m->has_contract &&
        !(abx_value_size(operations) == 2 && abx_value_get(operations, "cli") &&
          abx_value_get(operations, "python")))
        r = manifest_bad(reterr, "operations must declare exactly cli and python arrays");
    if (r == 0) r = read_operations(m, operations, "cli", &m->operations_cli, reterr);
    if (r == 0) r = read_operations(m, operations, "python", &m->operations_python, reterr);
    if (r == 0) r = read_table(doc, "workflow", "workflow", m->has_contract, &workflow, reterr);
    if (r < 0) return r;
    if (m->has_contract) return read_workflow(m, workflow, reterr);
    r = read_list(NULL, "workflow", "inputs", &m->workflow_inputs, reterr);
    return r < 0 ? r : read_list(NULL, "workflow", "startups", &m->startup_modes, reterr);
}
