/* abx/error.h: the one list of errors, and the object that carries one.
 *
 * A function that can fail returns 0 or more on success and a negative number
 * on failure: -1..-999 is -errno (out of memory, descriptor trouble),
 * everything below is an abx_code. The object says the same with the facts; it
 * is set only on failure and must be released with abx_error_unref(). */
#ifndef ABX_ERROR_H
#define ABX_ERROR_H

#include <abx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(number, constant, Python class, Python parent, text, what to do).
 * The number is the reference's: E8004 is ABX_E_FEATURE is -8004. The exit
 * status of the command follows from the number, see abx_error_exit_status(). */
#define ABX_ERROR_MAP(X)                                                                           \
    X(9999, GENERIC, "SandboxError", "Exception", "sandbox error", "")                             \
    X(1000, AUTHENTICATION, "AuthenticationError", "SandboxError", "authentication error", "")     \
    X(1001, API_KEY, "InvalidAPIKeyError", "AuthenticationError", "the API key is not valid",      \
      "Check your ABX_SANDBOX_API_KEY environment variable or pass sandbox_api_key.")              \
    X(1002, TOKEN_EXPIRED, "TokenExpiredError", "AuthenticationError", "the token expired", "")    \
    X(1003, CREDENTIALS, "InvalidCredentialsError", "AuthenticationError",                         \
      "credentials are missing or not valid", "")                                                  \
    X(1004, TOKEN_EXCHANGE, "TokenExchangeError", "AuthenticationError",                           \
      "the token could not be exchanged", "")                                                      \
    X(2000, CREATE, "SandboxCreationError", "SandboxError", "the sandbox was not created", "")     \
    X(2001, TEMPLATE_NOT_FOUND, "TemplateNotFoundError", "SandboxCreationError",                   \
      "template not found", "")                                                                    \
    X(2002, QUOTA, "QuotaExceededError", "SandboxCreationError", "quota exceeded",                 \
      "Destroy idle sandboxes or request a quota increase.")                                       \
    X(2003, REGION, "RegionUnavailableError", "SandboxCreationError", "region unavailable", "")    \
    X(2004, TEMPLATE_PARSE, "TemplateParseError", "SandboxCreationError",                          \
      "the template is not valid", "")                                                             \
    X(2009, SANDBOX_NOT_FOUND, "SandboxNotFoundError", "SandboxError", "sandbox not found",        \
      "Run 'abx list' to see the running sandboxes; a killed or expired sandbox cannot be "        \
      "reconnected.")                                                                              \
    X(3000, EXECUTION, "ExecutionError", "SandboxError", "execution error", "")                    \
    X(3001, COMMAND_TIMEOUT, "CommandTimeoutError", "ExecutionError", "the command timed out", "") \
    X(3002, PROCESS, "ProcessError", "ExecutionError", "process error", "")                        \
    X(3003, CODE_EXECUTION, "CodeExecutionError", "ExecutionError", "the code failed", "")         \
    X(3004, CAPABILITY, "CapabilityNotSupportedError", "ExecutionError", "not supported", "")      \
    X(3005, COMMAND_NOT_FOUND, "CommandNotFoundError", "ExecutionError", "command not found", "")  \
    X(3006, ENVD_RPC, "EnvdRpcError", "ExecutionError", "envd error", "")                          \
    X(4000, FILE, "FileOperationError", "SandboxError", "file operation error", "")                \
    X(4001, FILE_NOT_FOUND, "FileNotFoundError_", "FileOperationError", "file not found", "")      \
    X(4002, PERMISSION, "PermissionDeniedError", "FileOperationError", "permission denied", "")    \
    X(4003, FILE_SIZE, "FileSizeLimitError", "FileOperationError", "the file is too large", "")    \
    X(5000, NETWORK, "NetworkError", "SandboxError", "network error", "")                          \
    X(5001, CONNECTION, "ConnectionError_", "NetworkError", "the connection failed", "")           \
    X(6000, SESSION, "SessionError", "SandboxError", "session error", "")                          \
    X(6001, SESSION_NOT_FOUND, "SessionNotFoundError", "SessionError", "session not found", "")    \
    X(6002, SESSION_EXISTS, "SessionAlreadyExistsError", "SessionError", "session exists", "")     \
    X(8000, PROVIDER, "ProviderError", "SandboxError", "provider error", "")                       \
    X(8001, PROVIDER_NOT_FOUND, "ProviderNotFoundError", "ProviderError",                          \
      "the provider is not installed",                                                             \
      "Run 'abx provider list'; install with 'abx provider install <path-or-git-url>'.")           \
    X(8002, CONFIG, "ProviderConfigError", "ProviderError", "the configuration is not valid", "")  \
    X(8003, CONFLICT, "ProviderConflictError", "ProviderError", "the id is taken", "")             \
    X(8004, FEATURE, "ProviderFeatureNotSupportedError", "ProviderError",                          \
      "the provider does not support this", "")                                                    \
    X(8005, RESOURCE_NOT_FOUND, "ProviderResourceNotFoundError", "ProviderError",                  \
      "resource not found", "")                                                                    \
    X(8010, INSTALL, "ProviderInstallError", "ProviderError", "the install failed", "")            \
    X(8011, INTEGRITY, "ProviderIntegrityError", "ProviderError",                                  \
      "the installed files changed", "")                                                           \
    X(8012, TRUST, "ProviderTrustError", "ProviderError", "the source is not trusted", "")         \
    X(8013, VERSION, "ProviderVersionError", "ProviderError",                                      \
      "the versions do not fit together", "")                                                      \
    X(8014, MANIFEST, "ProviderManifestError", "ProviderError", "the manifest is not valid", "")   \
    X(8020, PROTOCOL, "ProviderProtocolError", "ProviderError",                                    \
      "the plugin broke the protocol", "")                                                         \
    X(8021, PLUGIN_PROCESS, "ProviderProcessError", "ProviderError",                               \
      "the plugin process failed", "")                                                             \
    X(8022, TIMEOUT, "ProviderTimeoutError", "ProviderError",                                      \
      "the provider did not answer in time", "")                                                   \
    X(8030, MISMATCH, "ProviderMismatchError", "ProviderError",                                    \
      "the reference belongs to another provider", "")

typedef enum abx_code {
    ABX_OK = 0,
#define ABX_ERROR_ROW(num, name, py, parent, text, hint) ABX_E_##name = -(num),
    ABX_ERROR_MAP(ABX_ERROR_ROW)
#undef ABX_ERROR_ROW
    ABX_E_FORCE_INT32 = INT32_MIN
} abx_code;

ABX_API int abx_error_code(const abx_error *e);            /* abx_code or -errno; 0 for NULL   */
ABX_API const char *abx_error_id(const abx_error *e);      /* "E8004"; "E0000" when no row fits */
ABX_API const char *abx_error_message(const abx_error *e); /* one line, redacted               */
ABX_API const char *abx_error_hint(const abx_error *e);    /* what to do, "" when nothing      */
ABX_API const char *abx_error_provider(const abx_error *e); /* id, or NULL                     */
ABX_API const char *abx_error_method(const abx_error *e);   /* "exec.run", or NULL             */
ABX_API int abx_error_retryable(const abx_error *e);
ABX_API const abx_value *abx_error_data(const abx_error *e); /* the plugin's error.data, or NULL */
ABX_API const abx_error *abx_error_cause(const abx_error *e);
/* Exit status the command uses for this error (errors.md): 1, 2, 3, 4, 5 or 6. */
ABX_API int abx_error_exit_status(const abx_error *e);
/* {"code","message","suggestion","docs_url"}, as --json prints it; NULL when out of memory. */
ABX_API abx_value *abx_error_to_value(const abx_error *e);
ABX_API abx_error *abx_error_ref(abx_error *e);
ABX_API abx_error *abx_error_unref(abx_error *e); /* always NULL */

/* One row of the list by position; NULL past the end. For bindings and docs. */
typedef struct abx_error_row {
    int number;
    const char *name, *python_class, *python_parent, *text, *hint;
} abx_error_row;
ABX_API const abx_error_row *abx_error_row_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
