// SPDX-License-Identifier: Apache-2.0
// Cutting a log's end, emptying it, and moving its start.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/log_impl.h"

// Takes the last segment out and unlinks its files.
static int drop_last(struct partition_log *log, const struct segment_place *at, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    struct segment *s = l->segments[l->count - 1];
    log_offset base = s->base;
    l->count--;
    log->size -= s->size;
    segment_free(s, at->files);
    l->names_unsynced++;
    int rc = segment_remove_files(base, at, LAYOUT_PLAIN, false);
    return rc ? err_set(msg, rc, "cannot remove segment %lld of %s: %s", (long long)base, at->dir,
                        err_text(rc))
              : 0;
}

// Transactions of the active segment: in memory while it is active, so read when an older one becomes it.
static int load_aborted(struct partition_log *log, struct segment *s, const struct segment_place *at,
                        struct errmsg *msg);

// Makes the last segment's index ready to be appended to.
static int make_active(struct partition_log *log, const struct segment_place *at, bool was_closed,
                       struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    int rc = plog__index(log, l->count - 1, true, msg);
    if (rc == 0 && was_closed) {
        txn_index_fini(&l->aborted);
        rc = load_aborted(log, plog__active(log), at, msg);
    }
    return rc;
}

// Is anything of the producers' state at or above `offset`?
static bool producers_reach(struct partition_log *log, log_offset offset)
{
    struct producer_states *p = log->loaded->producers;
    unsigned count = p ? producer_states_count(p) : 0;
    for (unsigned i = 0; i < count; i++) {
        const struct producer_entry *e = producer_states_at(p, i);
        bool has_batch = e->batches_count > 0;
        if (!has_batch || e->coordinator_epoch >= 0 || e->batches[e->batches_count - 1].last_offset >= offset)
            return true; // markers leave no offset behind: to be safe, read again
    }
    return false;
}

static int cut_active(struct partition_log *log, const struct segment_place *at, log_offset offset,
                      log_offset *end, struct errmsg *msg)
{
    struct segment *s = plog__active(log);
    struct vfs_file *file;
    int rc = segment_open(s, at, 0, &file, msg);
    if (rc)
        return rc;
    uint64_t pos;
    log_offset batch_base;
    rc = segment_find(s, file, offset, false, &pos, &batch_base);
    if (rc == 0 && batch_base >= 0 && batch_base < plog__load(&log->start)) {
        vfs_file_unref(file);
        return ERR_RANGE; // nothing from the log start on would be left
    }
    if (rc == 0 && pos < s->size) {
        rc = at->fs->ops->truncate(file, pos);
        if (rc == 0) {
            log->size -= s->size - pos;
            s->size = pos;
            s->synced = s->synced < pos ? s->synced : pos;
            s->cut_unsynced = true;
        }
    }
    vfs_file_unref(file);
    if (rc)
        return err_set(msg, rc, "cannot cut %s/%020lld.log at offset %lld: %s", at->dir, (long long)s->base,
                       (long long)offset, err_text(rc));
    *end = batch_base >= 0 && batch_base < offset ? batch_base : offset; // a batch is cut off whole
    sparse_index_truncate(s->index, *end <= s->base ? 0 : (uint32_t)(*end - s->base));
    while (s->index->offsets_count && s->index->offsets[s->index->offsets_count - 1].pos >= s->size)
        s->index->offsets_count--;
    log_offset next;
    return segment_scan_tail(s, at, &next, msg);
}

static int load_aborted(struct partition_log *log, struct segment *s, const struct segment_place *at,
                        struct errmsg *msg)
{
    if (!s->has_aborted)
        return 0;
    return txn_index_load(&log->loaded->aborted, at->fs, at->dir, s->base, msg);
}

static int truncate_to(struct partition_log *log, log_offset offset, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    bool closed = false;
    l->generation++;
    plog__hints_clear(log);
    int rc = 0;
    while (rc == 0 && l->count > 1 && l->segments[l->count - 1]->base > offset) {
        rc = drop_last(log, &at, msg);
        closed = true;
    }
    if (rc == 0 && closed) { // removed names must not come back after a crash behind what is written next
        rc = at.fs->ops->sync_dir(at.fs, dir);
        if (rc)
            rc = err_set(msg, rc, "cannot sync the directory %s: %s", dir, err_text(rc));
    }
    if (rc == 0)
        rc = make_active(log, &at, closed, msg);
    log_offset end = offset;
    if (rc == 0)
        rc = cut_active(log, &at, offset, &end, msg);
    if (rc)
        return rc;
    bool producers = producers_reach(log, end);
    plog__store(&log->end, end);
    if (plog__load(&log->recovery) > end)
        plog__store(&log->recovery, end);
    if (plog__load(&log->watermark) > end)
        plog__store(&log->watermark, end);
    epoch_cache_truncate_end(&l->epochs, end);
    txn_index_truncate(&l->aborted, end);
    plog__snapshots_remove_above(log, end);
    return producers ? plog__producers_rebuild(log, end, end, msg) : 0;
}

int plog_truncate_to(struct partition_log *log, log_offset offset, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc || offset >= plog__load(&log->end))
        return rc;
    log->changed = true;
    log_dir__touch(log->dir, false);
    struct log_loaded *l = log->loaded;
    log_offset start = plog__load(&log->start);
    if (l->count == 0 || offset <= start)
        return plog_truncate_fully(log, offset, msg);
    rc = truncate_to(log, offset, msg);
    if (rc == ERR_RANGE)
        return plog_truncate_fully(log, start, msg);
    if (rc == ERR_NOSPACE)
        rc = ERR_IO; // half done, it cannot go on from here
    return rc ? plog__failed(log, rc, msg, "cannot truncate") : 0;
}

int plog_truncate_fully(struct partition_log *log, log_offset offset, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    l->generation++;
    plog__hints_clear(log);
    bool had = l->count > 0;
    time_ms created = had ? plog__active(log)->created : 0;
    while (rc == 0 && l->count > 0) // newest first: what a crash leaves is a beginning of the old log
        rc = drop_last(log, &at, msg);
    plog__snapshots_drop_stale(log);
    while (l->snapshots_count)
        plog__snapshot_remove(log, l->snapshots[l->snapshots_count - 1]);
    if (rc == 0 && had) {
        rc = at.fs->ops->sync_dir(at.fs, dir);
        if (rc)
            rc = err_set(msg, rc, "cannot sync the directory %s: %s", dir, err_text(rc));
    }
    if (rc == ERR_NOSPACE)
        rc = ERR_IO; // half done, it cannot go on from here
    if (rc)
        return plog__failed(log, rc, msg, "cannot empty the log");
    epoch_cache_clear(&l->epochs);
    txn_index_fini(&l->aborted);
    if (l->producers)
        producer_states_clear(l->producers);
    plog__store(&log->start, offset);
    plog__store(&log->end, offset);
    plog__store(&log->recovery, offset);
    plog__store(&log->watermark, offset);
    l->unflushed_since = -1;
    log->changed = true;
    log_dir__touch(log->dir, false);
    if (!log->on_disk)
        return 0;
    struct segment *s;
    rc = plog__new_segment(log, offset, created, &s, msg);
    if (rc == 0) {
        plog__segment_add(log, s);
        rc = at.fs->ops->sync_dir(at.fs, dir); // its name is all that tells where the log goes on
        if (rc)
            (void)err_set(msg, rc, "cannot sync the directory %s: %s", dir, err_text(rc));
    }
    return rc ? plog__failed(log, rc, msg, "cannot begin the log anew") : 0;
}

int plog_advance_start(struct partition_log *log, log_offset offset, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc || offset <= plog__load(&log->start))
        return rc;
    if (offset > plog__load(&log->end))
        return err_set(msg, ERR_RANGE, "offset %lld is above the end %lld of %s-%d", (long long)offset,
                       (long long)plog__load(&log->end), log->topic, (int)log->partition);
    plog__store(&log->start, offset);
    epoch_cache_truncate_start(&log->loaded->epochs, offset);
    log->changed = true;
    log_dir__touch(log->dir, false);
    return 0;
}
