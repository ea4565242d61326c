// SPDX-License-Identifier: Apache-2.0
// Producer state of a log: fed by its batches, saved in .snapshot files, rebuilt from both.
#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/log_impl.h"
#include "storage/small_file.h"

struct producer_states *plog__producers(struct partition_log *log)
{
    struct log_loaded *l = log->loaded;
    if (!l->producers)
        l->producers = producer_states_new();
    return l->producers;
}

struct producer_states *plog_producers(struct partition_log *log)
{
    struct errmsg msg;
    return plog__need(log, &msg) ? NULL : plog__producers(log);
}

enum producer_verdict plog_check_producer(struct partition_log *log, const struct producer_batch *b,
                                          struct producer_duplicate *dup)
{
    struct errmsg msg;
    if (b->producer_id < 0 || plog__need(log, &msg) || !log->loaded->producers)
        return PRODUCER_OK;
    return producer_states_check(log->loaded->producers, b, dup);
}

unsigned plog_expire_producers(struct partition_log *log, time_ms now)
{
    if (!log->loaded || !log->loaded->producers)
        return 0;
    return producer_states_expire(log->loaded->producers, now, log->config->producer_expiration_ms);
}

// ---- from batches -----------------------------------------------------------------------------------------
// A transaction
// marker: the only record of a control batch, key = version, type (0 abort, 1 commit); value = version,
// coordinator epoch. False: another control record, or none that can be read.
bool plog__marker(const uint8_t *batch, size_t size, bool *commit, int32_t *coordinator_epoch)
{
    const uint8_t *p = batch + BATCH_HEADER_BYTES, *end = batch + size;
    int32_t length, offset_delta, key_len, value_len;
    int64_t time_delta;
    size_t n = varint_read(p, (size_t)(end - p), &length);
    if (n == 0 || length < 1 || length > end - p - (ptrdiff_t)n)
        return false;
    p += n + 1; // attributes
    if ((n = varlong_read(p, (size_t)(end - p), &time_delta)) == 0)
        return false;
    p += n;
    if ((n = varint_read(p, (size_t)(end - p), &offset_delta)) == 0)
        return false;
    p += n;
    if ((n = varint_read(p, (size_t)(end - p), &key_len)) == 0 || key_len < 4 ||
        key_len > end - p - (ptrdiff_t)n)
        return false;
    p += n;
    uint16_t type = bytes_load_be16(p + 2);
    p += key_len;
    if (type > 1)
        return false;
    *commit = type == 1;
    *coordinator_epoch = -1;
    if ((n = varint_read(p, (size_t)(end - p), &value_len)) > 0 && value_len >= 6 &&
        value_len <= end - p - (ptrdiff_t)n)
        *coordinator_epoch = (int32_t)bytes_load_be32(p + n + 2);
    return true;
}

void plog__note_producer(struct partition_log *log, const uint8_t *batch, size_t size,
                         struct txn_index *aborted)
{
    if (log->no_producers || !batch_has_producer(batch))
        return;
    struct producer_states *p = plog__producers(log);
    struct producer_batch b = {
        .producer_id = batch_producer_id(batch),
        .producer_epoch = batch_producer_epoch(batch),
        .base_sequence = batch_base_sequence(batch),
        .last_sequence = batch_last_sequence(batch),
        .base_offset = batch_base_offset(batch),
        .last_offset = batch_last_offset(batch),
        .max_timestamp = batch_max_timestamp(batch),
        .transactional = batch_is_transactional(batch),
        .control = batch_is_control(batch),
    };
    if (!b.control) {
        producer_states_append(p, &b);
        return;
    }
    bool commit;
    int32_t coordinator_epoch;
    if (!plog__marker(batch, size, &commit, &coordinator_epoch))
        return;
    log_offset first, stable = producer_states_stable_after(p, b.producer_id, b.last_offset);
    if (producer_states_marker(p, &b, commit, coordinator_epoch, &first) && !commit && aborted)
        txn_index_add(aborted, &(struct txn_index_entry){b.producer_id, first, b.last_offset, stable});
}

// ---- snapshots --------------------------------------------------------------------------------------------
void plog__snapshots_note(struct partition_log *log, log_offset offset)
{
    struct log_loaded *l = log->loaded;
    if (l->snapshots_count && l->snapshots[l->snapshots_count - 1] >= offset)
        return;
    if (l->snapshots_count == l->snapshots_cap) {
        l->snapshots_cap = l->snapshots_cap ? l->snapshots_cap * 2 : 2;
        l->snapshots = mem_realloc(l->snapshots, l->snapshots_cap * sizeof(*l->snapshots));
    }
    l->snapshots[l->snapshots_count++] = offset;
    l->producers_saved = offset;
}

int plog__snapshot_take(struct partition_log *log, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    log_offset end = plog__load(&log->end);
    if (log->no_producers || end == 0 || l->producers_saved == end)
        return 0;
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    if (!layout_path(path, dir, end, LAYOUT_SNAPSHOT, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    uint8_t *bytes;
    size_t len;
    producer_states_encode(plog__producers(log), &bytes, &len);
    plog__snapshots_drop_stale(log);
    int rc = small_file_write(log_dir_fs(log->dir), path, slice_of(bytes, len),
                              msg); // its checksum tells a torn one
    mem_free(bytes);
    if (rc)
        return rc;
    plog__snapshots_note(log, end);
    l->names_unsynced++;
    return 0;
}

void plog__snapshot_remove(struct partition_log *log, log_offset offset)
{
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    for (unsigned i = 0; i < l->snapshots_count; i++) {
        if (l->snapshots[i] != offset)
            continue;
        if (layout_path(path, dir, offset, LAYOUT_SNAPSHOT, LAYOUT_PLAIN))
            (void)log_dir_fs(log->dir)->ops->unlink(log_dir_fs(log->dir),
                                                    path); // a stray one is removed at the next load
        memmove(l->snapshots + i, l->snapshots + i + 1, (l->snapshots_count - i - 1) * sizeof(*l->snapshots));
        l->snapshots_count--;
        l->names_unsynced++;
        break;
    }
    l->producers_saved = l->snapshots_count ? l->snapshots[l->snapshots_count - 1] : -1;
}

void plog__snapshots_remove_above(struct partition_log *log, log_offset offset)
{
    struct log_loaded *l = log->loaded;
    while (l->snapshots_count && l->snapshots[l->snapshots_count - 1] > offset)
        plog__snapshot_remove(log, l->snapshots[l->snapshots_count - 1]);
}

void plog__snapshots_distrust_above(struct partition_log *log, log_offset offset)
{
    struct log_loaded *l = log->loaded;
    unsigned keep = l->snapshots_count;
    while (keep && l->snapshots[keep - 1] > offset)
        keep--;
    unsigned more = l->snapshots_count - keep;
    if (more == 0)
        return;
    l->stale = mem_realloc(l->stale, (l->stale_count + more) * sizeof(*l->stale));
    memcpy(l->stale + l->stale_count, l->snapshots + keep, more * sizeof(*l->stale));
    l->stale_count += more;
    l->snapshots_count = keep;
    l->producers_saved = keep ? l->snapshots[keep - 1] : -1;
}

void plog__snapshots_drop_stale(struct partition_log *log)
{
    struct log_loaded *l = log->loaded;
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    if (l->stale_count == 0)
        return;
    plog__dir(log, dir);
    for (unsigned i = 0; i < l->stale_count; i++)
        if (layout_path(path, dir, l->stale[i], LAYOUT_SNAPSHOT, LAYOUT_PLAIN))
            (void)log_dir_fs(log->dir)->ops->unlink(log_dir_fs(log->dir), path);
    l->names_unsynced++;
    l->stale_count = 0;
    mem_free(l->stale);
    l->stale = NULL;
}

static int read_snapshot(struct partition_log *log, log_offset offset, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    if (!layout_path(path, dir, offset, LAYOUT_SNAPSHOT, LAYOUT_PLAIN))
        return ERR_TOO_LARGE;
    char *data;
    size_t len;
    int rc = small_file_read(log_dir_fs(log->dir), path, &data, &len, msg);
    if (rc)
        return rc;
    rc = producer_states_decode(plog__producers(log), slice_of(data, len), msg);
    mem_free(data);
    return rc;
}

// Feeds the batches of one segment with base offset in [from, upto).
static int replay_segment(struct partition_log *log, unsigned i, log_offset from, log_offset upto,
                          struct errmsg *msg)
{
    struct segment *s = log->loaded->segments[i];
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    struct vfs_file *file;
    int rc = segment_open(s, &at, 0, &file, msg);
    if (rc)
        return rc;
    uint64_t pos = 0;
    log_offset base;
    if (from > s->base && plog__index(log, i, false, msg) == 0)
        (void)segment_find(s, file, from, false, &pos, &base);
    struct batch_scan scan;
    batch_scan_init(&scan, file, pos, s->size, NULL, BATCH_SCAN_LONG_BYTES);
    const uint8_t *b;
    size_t size;
    while ((rc = batch_scan_header(&scan, &b, &size)) == 0 && batch_base_offset(b) < upto) {
        if (batch_is_control(b))
            rc = batch_scan_whole(&scan, &b, &size);
        if (rc)
            break;
        if (batch_base_offset(b) >= from)
            plog__note_producer(log, b, size, NULL);
        batch_scan_skip(&scan, size);
    }
    if (rc == ERR_NOTFOUND)
        rc = 0;
    else if (rc)
        rc = err_set(msg, rc == ERR_AGAIN ? ERR_CORRUPT : rc, "%s/%020lld.log: no whole batch at byte %llu",
                     dir, (long long)s->base, (unsigned long long)scan.pos);
    batch_scan_fini(&scan);
    vfs_file_unref(file);
    return rc;
}

int plog__producers_rebuild(struct partition_log *log, log_offset base, log_offset upto, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    if (log->no_producers)
        return 0;
    if (l->producers)
        producer_states_clear(l->producers);
    log_offset from = l->count ? l->segments[0]->base : plog__load(&log->start); // all that is still there
    for (unsigned i = l->snapshots_count; i > 0; i--) {
        log_offset at = l->snapshots[i - 1];
        if (at > base)
            continue;
        if (at < from) // batches between it and the first segment are gone: what it says may have been
                       // decided there
            break;
        struct errmsg why;
        int rc = read_snapshot(log, at, &why);
        if (rc == 0) {
            from = at > from ? at : from;
            break;
        }
        if (rc != ERR_CORRUPT && rc != ERR_NOTFOUND)
            return err_set(msg, rc, "%s", why.text);
        plog__snapshot_remove(log, at);
    }
    if (from >= upto)
        return 0;
    for (unsigned i = plog__segment_index(log, from); i < l->count && l->segments[i]->base < upto; i++) {
        int rc = replay_segment(log, i, from, upto, msg);
        if (rc)
            return rc;
    }
    return 0;
}
