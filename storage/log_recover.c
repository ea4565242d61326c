// SPDX-License-Identifier: Apache-2.0
// Bringing a log into memory from its directory, and putting it in order after a stop that was not clean.
//
// After a clean stop only the tail behind the last index entry is read. Otherwise every segment from the one
// that holds the recovery point on is read batch by batch: checksum, rising offsets, leader epochs that never
// fall. At the first bad batch the log ends. What follows it is copied to OFFSET.cutoff (later segments are
// renamed to BASE.log.cutoff), counted and reported, and never comes back into the log. Indexes, the
// transaction index, leader epochs and producer state are made from what was read.
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/log_files.h"
#include "storage/log_impl.h"
#include "storage/log_salvage.h"
#include "storage/small_file.h"

// ---- reading a segment ------------------------------------------------------------------------------------
struct recovery {
    struct partition_log *log;
    struct plog_recovery *report;
    struct segment_place at;
    unsigned first;           // first segment that is read
    log_offset next;          // offset after the last good batch
    leader_epoch epoch;       // of it
    struct txn_index aborted; // of the segment being read
    bool bad;                 // the segment ends in something that is no batch
    bool torn;                // namely: less bytes than a batch
    uint64_t end;             // good bytes of the segment
};

static bool batch_is_good(const struct recovery *r, const struct segment *s, uint64_t pos, const uint8_t *b)
{
    return batch_base_offset(b) >= r->next && batch_base_offset(b) >= s->base &&
           batch_last_offset(b) - s->base <= INT32_MAX && pos <= INT32_MAX &&
           batch_leader_epoch(b) >= r->epoch && batch_check_crc(b, NULL) == 0;
}

static int read_segment(struct recovery *r, struct segment *s, struct vfs_file *file, uint64_t size,
                        struct errmsg *msg)
{
    struct sparse_index *ix = segment_index_make(s);
    struct batch_scan scan;
    batch_scan_init(&scan, file, 0, size, NULL, BATCH_SCAN_LONG_BYTES);
    const uint8_t *b;
    size_t len;
    int rc;
    while ((rc = batch_scan_whole(&scan, &b, &len)) == 0) {
        if (!batch_is_good(r, s, scan.pos, b)) {
            rc = ERR_CORRUPT;
            break;
        }
        if (scan.pos == 0)
            s->first_timestamp = batch_max_timestamp(b);
        sparse_index_note(ix, s->base, r->log->config->index_interval_bytes, scan.pos, len,
                          batch_last_offset(b), batch_max_timestamp(b));
        plog__note_epoch(r->log, b);
        plog__note_producer(r->log, b, len, &r->aborted);
        r->next = batch_next_offset(b);
        r->epoch = batch_leader_epoch(b);
        batch_scan_skip(&scan, len);
    }
    r->end = scan.pos;
    r->bad = rc == ERR_AGAIN || rc == ERR_CORRUPT;
    r->torn = rc == ERR_AGAIN;
    batch_scan_fini(&scan);
    if (rc == ERR_NOTFOUND || r->bad)
        return 0;
    return err_set(msg, rc, "cannot read %s/%020lld.log: %s", r->at.dir, (long long)s->base, err_text(rc));
}

// ---- side files of a closed segment -----------------------------------------------------------------------
static bool same_indexes(struct segment *s, const struct segment_place *at)
{
    struct segment on_disk = {.base = s->base, .size = s->size};
    bool same = segment_load_offsets(&on_disk, at, NULL) == 0 &&
                segment_load_times(&on_disk, at, NULL) == 0 &&
                on_disk.index->offsets_count == s->index->offsets_count &&
                on_disk.index->times_count == s->index->times_count;
    for (unsigned i = 0; same && i < s->index->offsets_count; i++)
        same = on_disk.index->offsets[i].offset == s->index->offsets[i].offset &&
               on_disk.index->offsets[i].pos == s->index->offsets[i].pos;
    for (unsigned i = 0; same && i < s->index->times_count; i++)
        same = on_disk.index->times[i].offset == s->index->times[i].offset &&
               on_disk.index->times[i].timestamp == s->index->times[i].timestamp;
    segment_index_drop(&on_disk);
    return same;
}

static int write_aborted(struct partition_log *log, const struct segment_place *at, log_offset base,
                         const struct txn_index *t, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_path(path, at->dir, base, LAYOUT_TXNINDEX, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", at->dir);
    log->loaded->names_unsynced++;
    if (t->count == 0)
        return small_file_remove(at->fs, path, msg);
    uint8_t *data;
    size_t len;
    txn_index_encode(t, &data, &len);
    int rc = small_file_replace(at->fs, path, slice_of(data, len), false, msg);
    mem_free(data);
    return rc;
}

int plog__write_aborted(struct partition_log *log, struct errmsg *msg)
{
    struct segment *s = plog__active(log);
    struct log_loaded *l = log->loaded;
    if (!s || !l->aborted.dirty)
        return 0;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    int rc = write_aborted(log, &at, s->base, &l->aborted, msg);
    if (rc == 0) {
        l->aborted.dirty = false;
        s->has_aborted = l->aborted.count > 0;
        s->index_unsynced = true;
    }
    return rc;
}

static int finish_closed(struct recovery *r, struct segment *s, struct errmsg *msg)
{
    sparse_index_close(s->index, s->base);
    s->max_timestamp = s->index->max_timestamp;
    s->index_unsynced = true; // what is right in memory need not be on the disk
    int rc = 0;
    if (!same_indexes(s, &r->at)) {
        r->report->indexes_rebuilt++;
        r->log->loaded->names_unsynced++;
        rc = segment_write_indexes(s, &r->at, msg);
    }
    if (rc == 0 && (r->aborted.count || s->has_aborted)) {
        rc = write_aborted(r->log, &r->at, s->base, &r->aborted, msg);
        s->has_aborted = r->aborted.count > 0;
        s->index_unsynced = true;
    }
    segment_index_drop(s);
    txn_index_fini(&r->aborted);
    return rc;
}

// ---- the cut ----------------------------------------------------------------------------------------------
// Later segments cannot follow a log that ends in segment `at`: they are set aside whole.
static int drop_after(struct recovery *r, unsigned at, struct errmsg *msg)
{
    struct log_loaded *l = r->log->loaded;
    l->names_unsynced++;
    while (l->count > at + 1) {
        struct segment *later = l->segments[l->count - 1];
        struct salvage_args args = {
            .at = &r->at, .dir = r->log->dir, .base = later->base, .size = later->size, .next = r->next};
        struct salvage kept;
        file_cache_close(r->at.files, &later->file);
        int rc = log_salvage_segment(&args, &kept, msg);
        if (rc)
            return rc;
        if (!r->report->cut || !r->report->kept_as[0])
            (void)snprintf(r->report->kept_as, sizeof(r->report->kept_as), "%s", kept.name);
        if (!r->report->cut) {
            r->report->cut_segment = later->base;
            r->report->cut_pos = 0;
        }
        r->report->cut = true;
        r->report->segments_dropped++;
        r->report->cut_bytes += later->size;
        r->report->batches_after += kept.batches;
        segment_free(later, r->at.files);
        l->count--;
    }
    return 0;
}

static int cut(struct recovery *r, unsigned at, struct errmsg *msg)
{
    struct log_loaded *l = r->log->loaded;
    struct segment *s = l->segments[at];
    struct salvage_args args = {
        .at = &r->at, .dir = r->log->dir, .base = s->base, .pos = r->end, .size = s->size, .next = r->next};
    struct salvage kept;
    int rc = log_salvage_tail(&args, &kept, msg);
    if (rc)
        return rc;
    r->report->cut = true;
    r->report->unreadable = !r->torn;
    r->report->cut_segment = s->base;
    r->report->cut_pos = r->end;
    r->report->cut_bytes = s->size - r->end;
    r->report->batches_after = kept.batches;
    (void)snprintf(r->report->kept_as, sizeof(r->report->kept_as), "%s", kept.name);
    s->size = r->end;
    return drop_after(r, at, msg);
}
// A segment that was finished as a closed one is the last one after all.
static int reopen_closed(struct recovery *r, unsigned i, struct errmsg *msg)
{
    struct log_loaded *l = r->log->loaded;
    struct segment *s = l->segments[i];
    log_offset next;
    int rc = plog__index(r->log, i, true, msg);
    if (rc == 0)
        rc = segment_scan_tail(s, &r->at, &next, msg);
    if (rc == 0 && s->has_aborted)
        rc = txn_index_load(&l->aborted, r->at.fs, r->at.dir, s->base, msg);
    return rc;
}

static int recover_segment(struct recovery *r, unsigned i, log_offset intact_below, struct errmsg *msg)
{
    struct log_loaded *l = r->log->loaded;
    struct segment *s = l->segments[i];
    struct vfs_file *file;
    int rc = segment_open(s, &r->at, 0, &file, msg);
    if (rc)
        return rc;
    s->synced = 0;
    bool gap = i > r->first && s->base > r->next &&
               !r->log->config->cleanup_compact; // compaction leaves gaps, nothing else does
    bool apart = i > 0 && (s->base < r->next ||
                           gap); // begins inside the one before, or batches between the two are lost
    if (!apart) {
        r->next = r->next > s->base ? r->next : s->base;
        rc = read_segment(r, s, file, s->size, msg);
    } else {
        r->end = 0;
        r->bad = true;
    }
    vfs_file_unref(file);
    if (rc == 0 && r->bad && r->next < intact_below)
        return err_set(msg, ERR_CORRUPT,
                       "%s/%020lld.log is damaged at byte %llu (offset %lld), below offset %lld which was on "
                       "disk: the disk has lost or "
                       "changed data that this node has promised to keep",
                       r->at.dir, (long long)s->base, (unsigned long long)r->end, (long long)r->next,
                       (long long)intact_below);
    if (rc == 0 && apart) { // the one before is the last that counts: make it the active one
        rc = drop_after(r, i - 1, msg);
        return rc ? rc : reopen_closed(r, i - 1, msg);
    }
    if (rc == 0 && r->bad)
        rc = cut(r, i, msg);
    if (rc)
        return rc;
    if (i + 1 < l->count)
        return finish_closed(r, s, msg);
    l->aborted = r->aborted; // the active segment's stays in memory
    l->aborted.dirty = l->aborted.count > 0 || s->has_aborted;
    r->aborted = (struct txn_index){NULL, 0, 0, false};
    return 0;
}

int plog__recover(struct partition_log *log, log_offset intact_below, struct plog_recovery *report,
                  struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES];
    struct recovery r = {.log = log, .report = report, .epoch = -1};
    plog__place(log, dir, &r.at);
    report->scanned = true;
    // A recovery point that is a segment's base says nothing of the side files of the one before: they are
    // written at the roll.
    log_offset point = plog__load(&log->recovery);
    r.first = plog__segment_index(log, point > 0 ? point - 1 : 0);
    if (l->count)
        r.next = l->segments[r.first]->base;
    if (r.next < plog__load(&log->recovery)) {
        plog__store(&log->recovery,
                    r.next); // what is read may not be synced, whatever an old checkpoint says
        log_dir__touch(log->dir, false);
    }
    plog__snapshots_distrust_above(log, r.next); // they may be of batches that a truncation removed
    int rc = plog__producers_rebuild(log, r.next, r.next, msg);
    for (unsigned i = r.first; i < l->count && rc == 0; i++)
        rc = recover_segment(&r, i, intact_below, msg);
    txn_index_fini(&r.aborted);
    if (rc)
        return rc;
    if (l->count)
        plog__active(log)->cut_unsynced = true; // a cut before this start need not be on the disk
    plog__store(&log->end, l->count ? r.next : plog__load(&log->start));
    if (plog__load(&log->end) < intact_below)
        return err_set(msg, ERR_CORRUPT,
                       "%s ends at offset %lld, but offset %lld was on disk: the disk has lost data", dir,
                       (long long)plog__load(&log->end), (long long)intact_below);
    return 0;
}

// ---- loading ----------------------------------------------------------------------------------------------
static int add_segments(struct partition_log *log, const struct log_files *files, bool clean,
                        struct plog_recovery *report, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    log->size = 0;
    for (unsigned i = 0; i < files->sets_count; i++) {
        const struct log_file_set *set = &files->sets[i];
        struct vfs_stat st;
        if (!layout_path(path, dir, set->base, LAYOUT_LOG, LAYOUT_PLAIN))
            return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
        int rc = at.fs->ops->stat(at.fs, path, &st);
        if (rc)
            return err_set(msg, rc, "cannot stat %s: %s", path, err_text(rc));
        struct segment *s = segment_new(set->base);
        s->size = s->synced = st.size;
        s->created = st.mtime;
        s->has_aborted = set->has[LAYOUT_TXNINDEX];
        log->size += st.size;
        plog__segment_add(log, s);
        bool last = i + 1 == files->sets_count;
        if (!clean && !last && (!set->has[LAYOUT_INDEX] || !set->has[LAYOUT_TIMEINDEX]))
            report->indexes_rebuilt++; // and made at the look-up, or by the scan
    }
    for (unsigned i = 0; i < files->snapshots_count; i++)
        plog__snapshots_note(log, files->snapshots[i]);
    return 0;
}

// After a clean stop: the active segment's index from its files, the log end from its tail.
static int load_tail(struct partition_log *log, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    struct segment *s = plog__active(log);
    if (!s) {
        plog__store(&log->end, plog__load(&log->start));
        return 0;
    }
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    log_offset next;
    int rc = plog__index(log, l->count - 1, true, msg);
    if (rc == 0)
        rc = segment_scan_tail(s, &at, &next, msg);
    if (rc)
        return rc;
    plog__store(&log->end, next);
    if (s->has_aborted)
        rc = txn_index_load(&l->aborted, at.fs, dir, s->base, msg);
    return rc ? rc : plog__producers_rebuild(log, next, next, msg);
}

// Epochs from the batches' headers below `upto`: the file is missing, cannot be read, or knows only later
// ones.
static int rebuild_epochs(struct partition_log *log, log_offset upto, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    for (unsigned i = 0; i < l->count && l->segments[i]->base < upto; i++) {
        struct vfs_file *file;
        int rc = segment_open(l->segments[i], &at, 0, &file, msg);
        if (rc)
            return rc;
        struct batch_scan scan;
        batch_scan_init(&scan, file, 0, l->segments[i]->size, NULL, BATCH_SCAN_LONG_BYTES);
        const uint8_t *b;
        size_t len;
        while ((rc = batch_scan_header(&scan, &b, &len)) == 0 && batch_base_offset(b) < upto) {
            plog__note_epoch(log, b);
            batch_scan_skip(&scan, len);
        }
        batch_scan_fini(&scan);
        vfs_file_unref(file);
        if (rc == ERR_IO)
            return err_set(msg, rc, "cannot read %s: %s", dir, err_text(rc));
    }
    return 0;
}

static int load_epochs(struct partition_log *log, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    if (!layout_join(path, dir, EPOCH_CACHE_NAME))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    char *text;
    size_t len;
    struct errmsg why;
    int rc = small_file_read(log_dir_fs(log->dir), path, &text, &len, &why);
    if (rc == 0) {
        rc = epoch_cache_parse(&log->loaded->epochs, slice_of(text, len), &why);
        mem_free(text);
    }
    if (rc == ERR_NOTFOUND || rc == ERR_CORRUPT)
        return rebuild_epochs(log, INT64_MAX, msg);
    return rc ? err_set(msg, rc, "%s", why.text) : 0;
}

int plog__write_epochs(struct partition_log *log, bool durable, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    if (!l->epochs.dirty || !log->on_disk)
        return 0;
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    if (!layout_join(path, dir, EPOCH_CACHE_NAME))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    struct strbuf text;
    epoch_cache_format(&l->epochs, &text);
    int rc = small_file_replace(log_dir_fs(log->dir), path, strbuf_slice(&text), durable, msg);
    strbuf_fini(&text);
    if (rc == 0) {
        l->epochs.dirty = false;
        l->names_unsynced += !durable;
        l->epochs_unsynced += !durable;
    }
    return rc;
}

// Snapshots of producer state are kept where a segment begins, and the newest one; others are strays.
static void drop_stray_snapshots(struct partition_log *log)
{
    struct log_loaded *l = log->loaded;
    for (unsigned i = l->snapshots_count; i > 0; i--) {
        log_offset at = l->snapshots[i - 1];
        const struct segment *s = l->count ? l->segments[plog__segment_index(log, at)] : NULL;
        if (i < l->snapshots_count && (!s || s->base != at))
            plog__snapshot_remove(log, at);
    }
}

int plog__load_files(struct partition_log *log, bool clean, log_offset intact_below,
                     struct plog_recovery *report, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    struct log_files files;
    int rc = log_files_list(log_dir_fs(log->dir), dir, &files, msg);
    if (rc)
        return rc;
    log->loaded->epochs_unsynced += !clean;
    log->loaded->names_unsynced += files.changed || !clean; // names that are there need not be on the disk
    rc = add_segments(log, &files, clean, report, msg);
    log_files_fini(&files);
    struct log_loaded *l = log->loaded;
    if (rc == 0 && l->count && l->segments[0]->base > plog__load(&log->start))
        plog__store(&log->start, l->segments[0]->base);
    if (rc == 0)
        rc = load_epochs(log, msg);
    if (rc)
        return rc;
    if (clean) {
        struct errmsg why;
        rc = load_tail(log, &why);
        if (rc == ERR_CORRUPT || rc == ERR_NOTFOUND) { // was changed while nobody ran: as after a crash
            txn_index_fini(&l->aborted);
            rc = plog__recover(log, intact_below, report, msg);
        } else if (rc) {
            rc = err_set(msg, rc, "%s", why.text);
        }
    } else {
        rc = plog__recover(log, intact_below, report, msg);
    }
    if (rc)
        return rc;
    log->size = 0;
    for (unsigned i = 0; i < l->count; i++)
        log->size += l->segments[i]->size;
    log_offset end = plog__load(&log->end), start = plog__load(&log->start);
    if (end < start) // nothing of what may be read is left
        return plog_truncate_fully(log, start, msg);
    if (plog__load(&log->recovery) > end || l->count == 0)
        plog__store(&log->recovery, end);
    if (l->count == 0)
        plog__snapshots_drop_stale(log);
    // The epoch file follows the log start at once, its checkpoint does not: after a crash the start may be
    // an earlier one.
    if (end > start && (l->epochs.count == 0 || l->epochs.list[0].start > start))
        rc = rebuild_epochs(log, l->epochs.count ? l->epochs.list[0].start : end, msg);
    if (rc)
        return rc;
    epoch_cache_truncate_end(&l->epochs, end);
    epoch_cache_truncate_start(&l->epochs, start);
    plog__snapshots_remove_above(log, end);
    drop_stray_snapshots(log);
    if (!clean)
        log->changed = true;
    if (plog__load(&log->recovery) < end)
        l->unflushed_since = 0; // since before this start: due as soon as flush.ms is looked at
    return 0;
}
