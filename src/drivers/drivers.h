/* The kinds of provider, one const driver each, and what drivers need of their client. */
#ifndef DRIVERS_DRIVERS_H
#define DRIVERS_DRIVERS_H

#include <abx/sys/provider.h>

#include "base/secret.h"
#include "base/util.h"
#include "json/json.h"
#include "loop/loop.h"

extern const abx_driver driver_exec;

/* By the manifest's runtime.kind; NULL when there is none. */
const abx_driver *driver_for_kind(const char *kind);
/* Whether a driver has an optional slot: one built against an older, smaller struct ends before the later ones. */
#define driver_has(d, slot) ((d)->size >= offsetof(abx_driver, slot) + sizeof((d)->slot) && (d)->slot)

/* Supplied by the client (src/api/client.c). */
struct loop *client_loop(abx_client *c);
struct json_parser *client_parser(abx_client *c);
const struct logger *client_log(abx_client *c);
struct json_bytes client_bytes(abx_client *c); /* where contents of files go; without a key */
const char *const *client_environ(abx_client *c);
const char *client_supervisor(abx_client *c, abx_error **reterr); /* borrowed; NULL and an error */

/* Every string of a value that is marked secret. */
int secrets_add_value(struct secrets *s, const abx_value *v);
/* The member of result that is base64 text for this method, or NULL (methods.def). */
const char *driver_bytes_member(const char *method);

#endif
