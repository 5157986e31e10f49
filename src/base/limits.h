/* Every limit of the product, with its reason. Nothing else hard-codes one. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* epp.md: a protocol line without its newline, both ways. */
#define LIMIT_LINE (8 * MIB)
/* epp.md: what is kept of a plugin's stderr, and what a suggestion quotes of it. */
#define LIMIT_STDERR_RING (64 * KIB)
#define LIMIT_STDERR_QUOTE 500
/* epp.md: how much of a broken line an error quotes. */
#define LIMIT_LINE_QUOTE 120
/* Deep enough for any record, far below what the parser's stack bears. */
#define LIMIT_JSON_DEPTH 128
/* One read from a plugin: large enough that a 5 MiB answer is not read in crumbs. */
#define LIMIT_READ_CHUNK (256 * KIB)
/* Events an op keeps for its consumer before the stream counts as full. */
#define LIMIT_OP_EVENTS (1 * MIB)
/* Events all ops of one plugin keep together before its pipe is not read. */
#define LIMIT_PROVIDER_EVENTS (4 * MIB)
/* Notifications kept for a process id whose exec.start is not answered yet. */
#define LIMIT_EARLY_EVENTS (1 * MIB)
#define LIMIT_EARLY_STREAMS 64
/* Requests waiting for a plugin that does not read: two of the longest lines. */
#define LIMIT_OUTGOING (2 * LIMIT_LINE + 1 * MIB)
#define LIMIT_PENDING_CALLS 4096
/* Records of one list over all its pages: a plugin could go on for ever. */
#define LIMIT_SANDBOXES 100000

/* manifest.md */
#define LIMIT_MANIFEST (256 * KIB)
#define LIMIT_TIMEOUT_MIN_MS 100
#define LIMIT_TIMEOUT_MAX_MS 3600000
#define DEFAULT_STARTUP_TIMEOUT_MS 10000
#define DEFAULT_CALL_TIMEOUT_MS 60000
/* epp.md: a call that runs a command gets the command's timeout and this. */
#define EXEC_GRACE_MS 5000
/* epp.md: the shutdown ladder. */
#define SHUTDOWN_REPLY_MS 2000
#define SHUTDOWN_EOF_MS 3000
#define SHUTDOWN_TERM_MS 3000
/* How long the supervisor may take to end a whole process tree before it is ended itself. */
#define PROC_FREE_MS 2000
/* epp.md: retries of idempotent methods. */
#define RETRY_TRIES 3
#define RETRY_BASE_MS 200

/* design.md: toml++ overflows its stack on a dotted key of many segments. */
#define LIMIT_TOML_KEY_SEGMENTS 64
/* toml++ recurses on nested arrays and inline tables. */
#define LIMIT_TOML_DEPTH 64
#define LIMIT_CONFIG_FILE (1 * MIB)

/* What `abx exec --json` keeps of each stream before it prints its one document. */
#define LIMIT_CLI_COLLECT (64 * MIB)

/* store.md */
#define LIMIT_TREE_FILES 2000
#define LIMIT_TREE_FILE (10 * MIB)
#define LIMIT_TREE_TOTAL (50 * MIB)
/* Directories have no limit in store.md; ten a file keeps a hostile tree walkable. */
#define LIMIT_TREE_DIRS 20000
#define LIMIT_TREE_DEPTH 64
#define LIMIT_RECEIPT (4 * MIB)
/* How much of a data/ is copied before a new version is tried; a larger one is only moved back. */
#define LIMIT_DATA_COPY (64 * MIB)
#define LIMIT_DATA_ENTRIES 20000
#define GIT_TIMEOUT_MS 120000
#define STORE_LOCK_WAIT_MS 10000

#endif
