/* When a failed call is tried again: idempotent, marked retryable, and time is left (epp.md). */
#include "base/err.h"
#include "base/limits.h"
#include "base/util.h"
#include "provider/call.h"

int retry_delay_ms(const struct method *m, int tries, const abx_error *e, int64_t left_ms) {
    if (!m->idempotent || tries >= RETRY_TRIES || !abx_error_retryable(e)) return -1;
    int64_t delay = err_retry_after_ms(e);
    if (delay < 0) {
        uint32_t noise = 0;
        random_bytes(&noise, sizeof noise);
        int64_t base = RETRY_BASE_MS << (tries - 1);
        delay = base / 2 + noise % (uint32_t)base;
    }
    if (left_ms >= 0 && delay >= left_ms) return -1;
    return delay > INT32_MAX ? -1 : (int)delay;
}
