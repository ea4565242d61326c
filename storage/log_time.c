// SPDX-License-Identifier: Apache-2.0
// Offsets by time, exact to the record, also inside compressed batches.
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/log_impl.h"

#define TIME_SCAN_BYTES (64u << 10) // usual reach of a search: an index interval and a batch

// What a batch is asked for.
struct wanted {
    log_offset from;   // records below do not count
    log_offset bound;  // nor those at or above
    time_ms timestamp; // least one
    bool largest;      // the largest instead of the first
};

// Looks at each record of a batch; true when `out` was set (or made better, for the largest).
static int look_inside(const uint8_t *batch, const struct wanted *w, struct plog_timestamp *out, bool *found,
                       struct errmsg *msg)
{
    struct record_iter it;
    struct record r;
    *found = false;
    record_iter_init(&it, batch, NULL, NULL);
    int rc;
    while ((rc = record_iter_next(&it, &r, msg)) == 0) {
        bool better = w->largest ? r.timestamp > out->timestamp : r.timestamp >= w->timestamp;
        if (r.offset < w->from || r.offset >= w->bound || !better)
            continue;
        *out = (struct plog_timestamp){r.offset, r.timestamp, batch_leader_epoch(batch)};
        *found = true;
        if (!w->largest)
            break;
    }
    record_iter_fini(&it);
    return rc == ERR_NOTFOUND ? 0 : rc;
}

// Walks a segment from `pos`; ends at the first hit, or with `largest` at its end.
static int search_segment(struct partition_log *log, unsigned i, uint64_t pos, const struct wanted *w,
                          struct plog_timestamp *out, bool *found, struct errmsg *msg)
{
    struct segment *s = log->loaded->segments[i];
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    struct vfs_file *file;
    int rc = segment_open(s, &at, 0, &file, msg);
    if (rc)
        return rc;
    struct batch_scan scan;
    batch_scan_init(&scan, file, pos, s->size, NULL, TIME_SCAN_BYTES);
    const uint8_t *b;
    size_t size;
    *found = false;
    while (rc == 0 && (rc = batch_scan_header(&scan, &b, &size)) == 0 && batch_base_offset(b) < w->bound) {
        time_ms least = w->largest ? out->timestamp + 1 : w->timestamp;
        if (!batch_is_control(b) && batch_max_timestamp(b) >= least && batch_last_offset(b) >= w->from) {
            bool here;
            rc = batch_scan_whole(&scan, &b, &size);
            if (rc == 0)
                rc = look_inside(b, w, out, &here, msg);
            if (rc == 0 && here)
                *found = true;
            if (rc == 0 && here && !w->largest)
                break;
        }
        batch_scan_skip(&scan, size);
    }
    if (rc == ERR_NOTFOUND)
        rc = 0;
    else if (rc)
        rc =
            err_set(msg, rc == ERR_AGAIN ? ERR_CORRUPT : rc, "%s/%020lld.log cannot be read at byte %llu: %s",
                    dir, (long long)s->base, (unsigned long long)scan.pos, err_text(rc));
    batch_scan_fini(&scan);
    vfs_file_unref(file);
    return rc;
}

int plog_find_timestamp(struct partition_log *log, time_ms timestamp, log_offset bound,
                        struct plog_timestamp *out, struct errmsg *msg)
{
    *out = (struct plog_timestamp){-1, -1, -1};
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    struct wanted w = {
        .from = plog__load(&log->start), .bound = bound, .timestamp = timestamp, .largest = false};
    for (unsigned i = l->count ? plog__segment_index(log, w.from) : 0;
         i < l->count && l->segments[i]->base < bound; i++) {
        rc = plog__index(log, i, true, msg);
        if (rc)
            return rc;
        if (plog__segment_time(log, i) < timestamp)
            continue;
        const struct segment *s = l->segments[i];
        uint32_t rel = sparse_index_time(s->index, timestamp); // all records up to there are older
        if (w.from > s->base && w.from - s->base > rel)
            rel = (uint32_t)(w.from - s->base);
        bool found;
        rc = search_segment(log, i, sparse_index_position(s->index, rel), &w, out, &found, msg);
        if (rc || found)
            return rc;
    }
    return 0;
}

int plog_find_max_timestamp(struct partition_log *log, log_offset bound, struct plog_timestamp *out,
                            struct errmsg *msg)
{
    *out = (struct plog_timestamp){-1, -1, -1};
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    struct wanted w = {.from = plog__load(&log->start), .bound = bound, .largest = true};
    for (unsigned i = l->count ? plog__segment_index(log, w.from) : 0;
         i < l->count && l->segments[i]->base < bound; i++) {
        rc = plog__index(log, i, true, msg);
        if (rc)
            return rc;
        time_ms most = plog__segment_time(log, i);
        if (most <= out->timestamp)
            continue;
        // The batches before the last index entry with a smaller time are all older than the largest; where
        // the bound or the log start lies inside this segment the largest may not count, so read all of it.
        const struct segment *s = l->segments[i];
        bool whole = w.from > s->base || plog__segment_end(log, i) > bound;
        uint32_t rel = whole ? 0 : sparse_index_time(s->index, most);
        bool found;
        rc = search_segment(log, i, sparse_index_position(s->index, rel), &w, out, &found, msg);
        if (rc)
            return rc;
    }
    return 0;
}
