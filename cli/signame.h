/* Signals by name or number. */
#ifndef CLI_SIGNAME_H
#define CLI_SIGNAME_H

/* "TERM", "SIGTERM" or "15"; 0 when it is none. */
int signame_parse(const char *text);

#endif
