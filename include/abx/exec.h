/* abx/exec.h: commands and processes in a sandbox. */
#ifndef ABX_EXEC_H
#define ABX_EXEC_H

#include <abx/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abx_exec_opts {
    size_t size;
    const char *const *argv; /* command and arguments, NULL-ended; at least one        */
    const abx_value *env;    /* object of strings                                      */
    const char *cwd;         /* NULL: the provider's                                   */
    const char *user;        /* NULL: the provider's                                   */
    int64_t timeout_s;       /* of the command; 0: 60 for run, none for a stream       */
} abx_exec_opts;
#define ABX_EXEC_OPTS_INIT { sizeof(abx_exec_opts), NULL, NULL, NULL, NULL, 0 }

/* exec.run. Value: {"stdout", "stderr", "exit_code"}. */
ABX_API ABX_MUST_CHECK int abx_exec_run_start(abx_op **ret, abx_sandbox *sb, const abx_exec_opts *o, abx_error **reterr);
/* exec.start. Events: STARTED, STDOUT and STDERR as they come, one EXIT; then the op is
 * done with {"exit_code"}. Cancel kills the process where the provider can. */
ABX_API ABX_MUST_CHECK int abx_exec_stream_start(abx_op **ret, abx_sandbox *sb, const abx_exec_opts *o, abx_error **reterr);

ABX_API ABX_MUST_CHECK int abx_process_list_start(abx_op **ret, abx_sandbox *sb, abx_error **reterr);
/* pid: a number or an opaque id as text; what looks like a number is sent as one. */
ABX_API ABX_MUST_CHECK int abx_process_kill_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_process_signal_start(abx_op **ret, abx_sandbox *sb, const char *pid, int signo, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_process_stdin_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_bytes data, abx_error **reterr);
/* No more input: process.stdin with no data and "eof": true, an extension that older plugins ignore. */
ABX_API ABX_MUST_CHECK int abx_process_stdin_end_start(abx_op **ret, abx_sandbox *sb, const char *pid, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
