/* What the files of this room share: the client and how a provider is found. */
#ifndef API_API_H
#define API_API_H

#include <abx/abx.h>
#include <abx/sys/provider.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "drivers/drivers.h"
#include "provider/call.h"
#include "store/store.h"

/* A provider registered from code. */
struct registered {
    struct registered *next;
    const abx_driver *driver;
    struct manifest *manifest;
    void *user;
    void (*free_user)(void *);
};

struct abx_client {
    struct op_host host; /* first: an op knows its client by it */
    unsigned refs;
    char *home, *dotenv, *host_name;
    int home_error;      /* -errno when there is no home; told when it is needed */
    bool no_config;
    char **environ_;
    struct logger log;
    struct json_parser *parser;
    struct json_bytes bytes; /* the caller's memory for contents of files */
    char *supervisor;
    struct config *config;
    struct session *sessions;
    struct registered *registered;
};

struct abx_sandbox {
    unsigned refs;
    abx_client *client;
    struct session *session; /* NULL: closed */
    char *id, *provider, *ref;
    abx_value *record;
    abx_value *options; /* provider_options as given, without secrets; or NULL */
};

int client_config(abx_client *c, struct config **ret, abx_error **reterr);
int client_store(abx_client *c, struct store *ret, abx_error **reterr);
struct registered *client_registered(abx_client *c, const char *id);
/* The session for a choice of provider, shared when the configuration is the same. ref and
 * ret_sandbox may be NULL. */
int client_session(abx_client *c, const abx_provider_opts *p, const char *ref, struct session **ret, char **ret_sandbox,
                   abx_error **reterr);
/* The session of one installed provider whatever the store's lock says; for doctor and the check
 * after an install. */
int client_session_for(abx_client *c, const char *id, const abx_value *options, struct session **ret, abx_error **reterr);

/* E8000: nothing in this version can start a provider of that kind. */
int client_no_driver(const struct manifest *m, abx_error **reterr);

/* A sandbox op: params get sandbox_id; params is consumed, also on failure. */
int sandbox_call(abx_op **ret, abx_sandbox *sb, const char *method, abx_value *params, const struct call_opts *o, abx_error **reterr);
int shape_record(void *user, abx_value **value, abx_value **again, abx_error **reterr);

#endif
