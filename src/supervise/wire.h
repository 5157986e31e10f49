/* What library and supervisor say to each other: by argv, and by one stream socket.
 *
 *     abx-supervise PARENT-PID PROGRAM ARGV0 [ARG...]
 *
 * The environment is the plugin's, 0, 1 and 2 are its descriptors, 3 is the socket. */
#ifndef SUPERVISE_WIRE_H
#define SUPERVISE_WIRE_H

#include <stdint.h>

#define WIRE_CONTROL_FD 3

/* Library to supervisor, one byte each. End of file means WIRE_KILL. */
#define WIRE_TERM 'T' /* SIGTERM to the plugin's process group */
#define WIRE_KILL 'K' /* SIGKILL to every descendant           */

/* Supervisor to library. The last three are final; one of them comes once. */
enum {
    WIRE_STARTED = 1, /* pid                    */
    WIRE_NOEXEC,      /* errno of execve()      */
    WIRE_EXITED,      /* exit code              */
    WIRE_SIGNALED,    /* signal that ended it   */
    WIRE_NOSUPERVISOR /* sent by the library's own child: errno of what came before */
};
struct wire_msg {
    uint8_t type, zero[3];
    int32_t value;
};
_Static_assert(sizeof(struct wire_msg) == 8, "wire_msg is 8 bytes");

#endif
