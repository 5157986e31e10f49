/* abx/ports.h: how to reach a port of a sandbox from outside. */
#ifndef ABX_PORTS_H
#define ABX_PORTS_H

#include <abx/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value: {"url", "headers"}. */
ABX_API ABX_MUST_CHECK int abx_ports_url_start(abx_op **ret, abx_sandbox *sb, int port, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
