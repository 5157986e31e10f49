/* abx/files.h: files in a sandbox. Paths are the sandbox's, not the host's. */
#ifndef ABX_FILES_H
#define ABX_FILES_H

#include <abx/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value: {"content": bytes}; length 0: to the end. */
ABX_API ABX_MUST_CHECK int abx_files_read_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
/* data is copied. A file over the protocol's line limit is E4003 before a byte is sent. */
ABX_API ABX_MUST_CHECK int abx_files_write_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_bytes data, abx_error **reterr);
/* Like it, with a BYTES or STRING value whose storage is used as it is. mode -1: not said. */
ABX_API ABX_MUST_CHECK int abx_files_write_value_start(abx_op **ret, abx_sandbox *sb, const char *path, const abx_value *data,
                                                       int mode, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_files_list_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_files_stat_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_files_mkdir_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_files_remove_start(abx_op **ret, abx_sandbox *sb, const char *path, abx_error **reterr);
ABX_API ABX_MUST_CHECK int abx_files_move_start(abx_op **ret, abx_sandbox *sb, const char *source, const char *destination,
                                                int overwrite, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
