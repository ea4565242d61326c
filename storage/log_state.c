// SPDX-License-Identifier: Apache-2.0
// What a log knows of itself: offsets, segments, indexes in memory, remembered positions.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/log_impl.h"

// ---- accessors --------------------------------------------------------------------------------------------
const char *plog_topic(const struct partition_log *log)
{
    return log->topic;
}
partition_id plog_partition(const struct partition_log *log)
{
    return log->partition;
}
struct uuid plog_topic_id(const struct partition_log *log)
{
    return log->topic_id;
}
struct log_dir *plog_dir(const struct partition_log *log)
{
    return log->dir;
}
struct log_config *plog_config(const struct partition_log *log)
{
    return log->config;
}
log_offset plog_start_offset(const struct partition_log *log)
{
    return plog__load(&log->start);
}
log_offset plog_end_offset(const struct partition_log *log)
{
    return plog__load(&log->end);
}
log_offset plog_recovery_point(const struct partition_log *log)
{
    return plog__load(&log->recovery);
}
log_offset plog_high_watermark(const struct partition_log *log)
{
    return plog__load(&log->watermark);
}
uint64_t plog_size(const struct partition_log *log)
{
    return log->size;
}

void plog_set_high_watermark(struct partition_log *log, log_offset hw)
{
    if (atomic_exchange_explicit(&log->watermark, hw, memory_order_acq_rel) != hw)
        log_dir__touch(log->dir, true);
}

void plog_set_config(struct partition_log *log, struct log_config *config)
{
    struct log_config *old = log->config;
    log->config = log_config_ref(config);
    log_config_unref(old);
}

time_ms plog_active_created(const struct partition_log *log)
{
    const struct segment *s = plog__active(log);
    return s ? s->created : -1;
}

log_offset plog_active_base(struct partition_log *log)
{
    struct errmsg msg;
    const struct segment *s = plog__need(log, &msg) ? NULL : plog__active(log);
    return s ? s->base : plog__load(&log->end);
}

unsigned plog_segments(struct partition_log *log)
{
    struct errmsg msg;
    return plog__need(log, &msg) ? 0 : log->loaded->count;
}

unsigned plog_segment_bases(struct partition_log *log, log_offset *bases, unsigned max)
{
    unsigned count = plog_segments(log);
    for (unsigned i = 0; i < count && i < max; i++)
        bases[i] = log->loaded->segments[i]->base;
    return count;
}

// ---- segments ---------------------------------------------------------------------------------------------
int plog__open(struct partition_log *log, struct segment *s, struct vfs_file **out, struct errmsg *msg)
{
    *out = file_cache_peek(log_dir__files(log->dir), &s->file);
    if (*out)
        return 0;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    return segment_open(s, &at, 0, out, msg);
}

unsigned plog__segment_index(const struct partition_log *log, log_offset offset)
{
    const struct log_loaded *l = log->loaded;
    unsigned lo = 0, hi = l->count; // first with a base above
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (l->segments[mid]->base <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

void plog__segment_add(struct partition_log *log, struct segment *s)
{
    struct log_loaded *l = log->loaded;
    MUST(l->count == 0 || l->segments[l->count - 1]->base < s->base);
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 1;
        l->segments = mem_realloc(l->segments, l->cap * sizeof(*l->segments));
    }
    l->segments[l->count++] = s;
    plog__note_first(log);
}

void plog__note_first(struct partition_log *log)
{
    const struct log_loaded *l = log->loaded;
    plog__store(&log->first_base, l->count ? l->segments[0]->base : plog__load(&log->end));
}

log_offset plog__segment_end(const struct partition_log *log, unsigned i)
{
    const struct log_loaded *l = log->loaded;
    return i + 1 < l->count ? l->segments[i + 1]->base : plog__load(&log->end);
}

// Keeps only a few indexes of closed segments in memory, the one just used among them.
static void drop_other_indexes(struct partition_log *log, unsigned used)
{
    struct log_loaded *l = log->loaded;
    unsigned have = 0;
    for (unsigned i = 0; i + 1 < l->count; i++)
        have += l->segments[i]->index != NULL;
    for (unsigned i = 0; i + 1 < l->count && have > LOG_CLOSED_INDEXES; i++) {
        if (i == used || !l->segments[i]->index)
            continue;
        segment_index_drop(l->segments[i]);
        have--;
    }
}

// Does the time index of a closed segment know its largest timestamp? A file that lost its last entries looks
// whole, but what follows the last offset entry shows it; it would hide the segment from searches by time.
static bool times_are_complete(struct segment *s, const struct segment_place *at)
{
    log_offset next;
    struct errmsg why;
    if (segment_scan_tail(s, at, &next, &why))
        return true; // damaged records are another matter, told where they are read
    const struct sparse_index *ix = s->index;
    return ix->max_timestamp <= (ix->times_count ? ix->times[ix->times_count - 1].timestamp : -1);
}

int plog__index(struct partition_log *log, unsigned i, bool times, struct errmsg *msg)
{
    struct segment *s = log->loaded->segments[i];
    if (s->offsets_loaded && (!times || s->times_loaded))
        return 0;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    struct errmsg why;
    int rc = segment_load_offsets(s, &at, &why);
    if (rc == 0 && times)
        rc = segment_load_times(s, &at, &why);
    if (rc == 0 && times && i + 1 < log->loaded->count && !times_are_complete(s, &at))
        rc = ERR_CORRUPT;
    if (rc == ERR_NOTFOUND || rc == ERR_CORRUPT) {
        rc = segment_rebuild_index(s, &at, log->config->index_interval_bytes, msg);
        if (rc == 0 && segment_write_indexes(s, &at, &why) == 0) // where it cannot be written, memory does
            log->loaded->names_unsynced++;
    } else if (rc) {
        rc = err_set(msg, rc, "%s", why.text);
    }
    drop_other_indexes(log, i);
    return rc;
}

time_ms plog__segment_time(struct partition_log *log, unsigned i)
{
    struct log_loaded *l = log->loaded;
    struct segment *s = l->segments[i];
    if (i + 1 == l->count)
        return s->index->max_timestamp;
    if (s->max_timestamp == SEGMENT_TIME_UNKNOWN) {
        struct errmsg msg;
        if (plog__index(log, i, true, &msg))
            return -1;
        s->max_timestamp = s->index->times_count ? s->index->times[s->index->times_count - 1].timestamp : -1;
    }
    return s->max_timestamp;
}

// ---- remembered positions ---------------------------------------------------------------------------------
void plog__hint(struct partition_log *log, log_offset offset, log_offset base, uint64_t pos)
{
    struct log_loaded *l = log->loaded;
    for (unsigned i = 0; i < LOG_HINTS; i++)
        if (l->hints[i].offset == offset)
            return;
    l->hints[l->hint_next] = (struct log_hint){offset, base, pos};
    l->hint_next = (l->hint_next + 1) % LOG_HINTS;
}

bool plog__hint_find(const struct partition_log *log, log_offset offset, log_offset base, uint64_t *pos)
{
    const struct log_loaded *l = log->loaded;
    for (unsigned i = 0; i < LOG_HINTS; i++) {
        if (l->hints[i].offset == offset && l->hints[i].base == base) {
            *pos = l->hints[i].pos;
            return true;
        }
    }
    return false;
}

void plog__hints_clear(struct partition_log *log)
{
    for (unsigned i = 0; i < LOG_HINTS; i++)
        log->loaded->hints[i].offset = -1;
}

// ---- leader epochs ----------------------------------------------------------------------------------------
leader_epoch plog_last_epoch(struct partition_log *log)
{
    return log->loaded ? epoch_cache_last(&log->loaded->epochs) : log->last_epoch;
}

leader_epoch plog_epoch_of(struct partition_log *log, log_offset offset)
{
    struct errmsg msg;
    return plog__need(log, &msg) ? -1 : epoch_cache_at(&log->loaded->epochs, offset);
}

bool plog_end_of_epoch(struct partition_log *log, leader_epoch epoch, leader_epoch *found, log_offset *end)
{
    struct errmsg msg;
    *found = -1;
    *end = -1;
    return plog__need(log, &msg) == 0 &&
           epoch_cache_end_of(&log->loaded->epochs, epoch, plog__load(&log->end), found, end);
}

log_offset plog_start_after_epoch(struct partition_log *log, leader_epoch epoch)
{
    struct errmsg msg;
    return plog__need(log, &msg) ? -1 : epoch_cache_start_after(&log->loaded->epochs, epoch);
}

int plog_assign_epoch(struct partition_log *log, leader_epoch epoch, log_offset start, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc == 0 && epoch_cache_assign(&log->loaded->epochs, epoch, start))
        log->changed = true;
    return rc;
}

void plog__note_epoch(struct partition_log *log, const uint8_t *batch)
{
    struct epoch_cache *c = &log->loaded->epochs;
    leader_epoch epoch = batch_leader_epoch(batch);
    if (epoch < 0) // written before leader epochs were
        return;
    if (epoch != epoch_cache_last(c) || batch_base_offset(batch) < c->list[c->count - 1].start)
        (void)epoch_cache_observe(c, epoch, batch_base_offset(batch));
}
