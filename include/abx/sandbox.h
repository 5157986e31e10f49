/* abx/sandbox.h: sandboxes, their life and any method of the protocol.
 *
 * Each *_start returns at once: 0 and *ret, or a code for what is wrong with the
 * arguments or the configuration. What happens later is the op's. */
#ifndef ABX_SANDBOX_H
#define ABX_SANDBOX_H

#include <abx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which provider, and with which settings. All-zero: what the configuration says. */
typedef struct abx_provider_opts {
    size_t size;
    const char *provider;     /* NULL: prefix of a reference, environment, files, built-in */
    const abx_value *options; /* object: provider_options; undeclared keys are E8002      */
    /* Object of strings: generic keys said by the caller, before any layer of the configuration:
     * sandbox_api_key, sandbox_base_url, sandbox_domain, region, access_key_id, access_key_secret.
     * A plugin gets one only if it inherits it and that was agreed to. Since 0.2; NULL: none. */
    const abx_value *core;
} abx_provider_opts;
#define ABX_PROVIDER_OPTS_INIT { sizeof(abx_provider_opts), NULL, NULL, NULL }

typedef struct abx_sandbox_create_opts {
    size_t size;
    const char *template_;       /* NULL: default_template of the configuration          */
    int64_t timeout_s;           /* life of the sandbox, seconds; 0: 300                  */
    int secure;                  /* -1 no, 0 not said, 1 yes                              */
    const abx_value *metadata;   /* object of strings                                     */
    const abx_value *envs;       /* object of strings                                     */
    int cpu, memory_mb, disk_mb; /* 0: not said                                           */
    const char *gpu;
    const abx_value *volume_mounts; /* array; needs storage.mount                         */
    const abx_value *vpc;           /* object; needs network.vpc                          */
    double request_timeout_s;       /* 0: not said                                        */
} abx_sandbox_create_opts;
#define ABX_SANDBOX_CREATE_OPTS_INIT { sizeof(abx_sandbox_create_opts), NULL, 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, 0 }

ABX_API ABX_MUST_CHECK int abx_sandbox_create_start(abx_op **ret, abx_client *c, const abx_provider_opts *p,
                                                    const abx_sandbox_create_opts *o, abx_error **reterr);
/* ref: "ID:sandbox" or a bare sandbox id of the chosen provider. */
ABX_API ABX_MUST_CHECK int abx_sandbox_connect_start(abx_op **ret, abx_client *c, const char *ref,
                                                     const abx_provider_opts *p, abx_error **reterr);
/* A handle without asking the provider whether the sandbox exists; no I/O. */
ABX_API ABX_MUST_CHECK int abx_sandbox_attach(abx_sandbox **ret, abx_client *c, const char *ref,
                                              const abx_provider_opts *p, abx_error **reterr);
/* Value: {"sandboxes": [record …]}; every page up to limit (0: all). status NULL: any. */
ABX_API ABX_MUST_CHECK int abx_sandbox_list_start(abx_op **ret, abx_client *c, const abx_provider_opts *p,
                                                  const char *status, int64_t limit, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_sandbox_info_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_sandbox_kill_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr); /* idempotent */
ABX_API ABX_MUST_CHECK int abx_sandbox_set_timeout_start(abx_op **ret, abx_sandbox *sb, int64_t seconds, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_sandbox_pause_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_sandbox_resume_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr);

ABX_API const char *abx_sandbox_id(abx_sandbox *sb);
ABX_API const char *abx_sandbox_provider(abx_sandbox *sb);
ABX_API const char *abx_sandbox_ref_string(abx_sandbox *sb);        /* "my-cloud:sbx-1"           */
ABX_API const abx_value *abx_sandbox_record(abx_sandbox *sb);       /* as last heard; NULL before  */
/* 1 when the manifest declares it and, after the handshake, the plugin implements it. */
ABX_API int abx_sandbox_has_feature(abx_sandbox *sb, const char *feature);
ABX_API abx_sandbox *abx_sandbox_ref(abx_sandbox *sb);
ABX_API abx_sandbox *abx_sandbox_unref(abx_sandbox *sb);            /* never kills the sandbox itself */
/* Gives up what the handle holds of its provider: later calls on it are E8000. The op is done when
 * the provider's process has ended, if this was its last user, else at once. Value: true when the
 * process had to be killed. Cancelling the op does not keep the process. */
ABX_API ABX_MUST_CHECK int abx_sandbox_close_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr);

/* Any method of the table that has a feature, for bindings and for methods newer than
 * this header. sandbox_id is added. The gate, the error map and retries apply. */
ABX_API ABX_MUST_CHECK int abx_call_start(abx_op **ret, abx_sandbox *sb, const char *method, const abx_value *params,
                                          abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
