// SPDX-License-Identifier: Apache-2.0
// The counted configuration value of logs.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/log.h"

void log_config_defaults(struct log_config *c)
{
    c->segment_bytes = (int64_t)1 << 30;
    c->segment_ms = (int64_t)7 * 24 * 3600 * 1000;
    c->segment_jitter_ms = 0;
    c->index_bytes_max = 10 << 20;
    c->index_interval_bytes = 4096;
    c->retention_bytes = -1;
    c->retention_ms = (int64_t)7 * 24 * 3600 * 1000;
    c->flush_messages = INT64_MAX;
    c->flush_ms = INT64_MAX;
    c->file_delete_delay_ms = 60000;
    c->producer_expiration_ms = 86400000;
    c->preallocate = false;
    c->cleanup_delete = true;
    c->cleanup_compact = false;
}

struct log_config *log_config_new(const struct log_config *from)
{
    struct log_config *c = mem_alloc(sizeof(*c));
    memcpy(c, from, sizeof(*c));
    atomic_init(&c->refs, 1);
    return c;
}

struct log_config *log_config_ref(struct log_config *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void log_config_unref(struct log_config *c)
{
    if (!c)
        return;
    unsigned before = atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel);
    MUST(before > 0);
    if (before == 1)
        mem_free(c);
}
