// SPDX-License-Identifier: Apache-2.0
// Appending whole batches: one write for a run, then the state that follows from it; and rolling to a new
// segment.
//
// Happy path: check the batches' headers, roll if due, one pwritev, note indexes, epochs, producers, log end.
// Failures: a roll that finds no space leaves the old segment active; a write that fails or is short is cut
// back before the return; a run that was split by a roll and fails in its second part is truncated as a
// whole. What cannot be cut back takes the directory offline.
#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/log_impl.h"

// ---- roll -------------------------------------------------------------------------------------------------
// Each
// segment rolls a bit earlier than segment.ms, by an amount that its name and base offset fix.
static int64_t jitter_of(const struct partition_log *log, const struct segment *s)
{
    if (log->config->segment_jitter_ms <= 0)
        return 0;
    uint64_t seed = hash_bytes_seeded(log->topic, strlen(log->topic), (uint64_t)log->partition);
    return (int64_t)(hash_u64(seed ^ (uint64_t)s->base) % (uint64_t)log->config->segment_jitter_ms);
}

// Has the segment's time come, seen from a record of time `timestamp` (or from the clock, where the segment
// has no timestamps)?
static bool is_old(const struct partition_log *log, const struct segment *s, time_ms timestamp, time_ms now)
{
    if (s->size == 0 || log->config->segment_ms == INT64_MAX)
        return false;
    bool timed = s->first_timestamp >= 0;
    int64_t age = timed ? timestamp - s->first_timestamp : now - s->created;
    return age > log->config->segment_ms - jitter_of(log, s);
}

static bool must_roll(const struct partition_log *log, const struct segment *s, const uint8_t *batch,
                      size_t size, time_ms now)
{
    return (s->size > 0 && s->size + size > (uint64_t)log->config->segment_bytes) ||
           is_old(log, s, batch_max_timestamp(batch), now) ||
           sparse_index_full(s->index, log->config->index_bytes_max) || s->size + size > INT32_MAX ||
           batch_last_offset(batch) - s->base > INT32_MAX;
}

// Closes the active segment and begins one at `base`. On an error the old one stays active and nothing has
// changed.
static int roll_at(struct partition_log *log, log_offset base, time_ms now, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    struct segment *old = plog__active(log), *fresh;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    if (base == old->base) // nothing in it: it is what a new one would be
        return 0;
    int rc = 0;
    if (old->cut_unsynced) // what was cut off must not come back in front of the new segment
        rc = plog_flush_all(log, msg);
    // After a truncation the checkpoint may say that all of the old segment is on disk: recovery would not
    // look at it.
    log_offset on_disk = plog__load(&log->recovery_on_disk);
    if (rc == 0 && on_disk >= base && on_disk > plog__load(&log->recovery))
        rc = log_dir_checkpoint(log->dir, msg);
    if (rc)
        return rc;
    rc = plog__new_segment(log, base, now, &fresh, msg);
    if (rc)
        return rc;
    sparse_index_close(old->index, old->base);
    rc = segment_write_indexes(old, &at, msg);
    if (rc == 0)
        rc = plog__write_aborted(log, msg);
    if (rc == 0)
        rc = plog__snapshot_take(log, msg);
    if (rc) {
        segment_free(fresh, at.files);
        (void)segment_remove_files(base, &at, LAYOUT_PLAIN, false);
        return rc;
    }
    old->max_timestamp = old->index->max_timestamp;
    segment_index_drop(old);
    txn_index_fini(&l->aborted);
    plog__segment_add(log, fresh);
    return 0;
}

int plog_roll(struct partition_log *log, time_ms now, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    struct segment *s = rc ? NULL : plog__active(log);
    if (!s || s->size == 0)
        return rc;
    rc = roll_at(log, plog__load(&log->end), now, msg);
    if (rc)
        return plog__failed(log, rc, msg, "cannot roll to a new segment");
    log->changed = true;
    return 0;
}

int plog_roll_if_old(struct partition_log *log, time_ms now, struct errmsg *msg)
{
    const struct segment *s = plog__active(log);
    return s && is_old(log, s, now, now) ? plog_roll(log, now, msg) : 0;
}

// ---- one write --------------------------------------------------------------------------------------------
static struct iovec *obtain_iov(struct log_loaded *l, struct iovec *stack, unsigned count)
{
    if (count <= LOG_IOV_STACK)
        return stack;
    if (count > l->iov_cap) {
        l->iov = mem_realloc(l->iov, count * sizeof(*l->iov));
        l->iov_cap = count;
    }
    return l->iov;
}

// Batches that lie behind each other in memory become one piece.
static int gather(struct iovec *iov, const struct slice *batches, unsigned count)
{
    int n = 0;
    for (unsigned i = 0; i < count; i++) {
        if (n > 0 && (const uint8_t *)iov[n - 1].iov_base + iov[n - 1].iov_len == batches[i].data)
            iov[n - 1].iov_len += batches[i].len;
        else
            iov[n++] = (struct iovec){(void *)(uintptr_t)batches[i].data, batches[i].len};
    }
    return n;
}

static int write_run(struct partition_log *log, struct segment *s, const struct slice *batches,
                     unsigned count, struct errmsg *msg)
{
    struct vfs_file *f;
    int rc = plog__open(log, s, &f, msg);
    if (rc)
        return rc;
    struct iovec stack[LOG_IOV_STACK];
    struct iovec *iov = obtain_iov(log->loaded, stack, count);
    rc = f->fs->ops->pwritev(f, iov, gather(iov, batches, count), s->size);
    if (rc) {
        (void)err_set(msg, rc, "cannot write to segment %lld: %s", (long long)s->base, err_text(rc));
        int cut = f->fs->ops->truncate(f, s->size); // nothing of the run stays
        if (cut)
            rc = err_set(msg, ERR_IO, "cannot cut segment %lld back after a failed write: %s",
                         (long long)s->base, err_text(cut));
    }
    vfs_file_unref(f);
    return rc;
}

// What follows from batches that now stand at `pos` of the active segment.
static void note_run(struct partition_log *log, struct segment *s, const struct slice *batches,
                     unsigned count)
{
    struct log_loaded *l = log->loaded;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *b = batches[i].data;
        size_t size = batches[i].len;
        if (s->size == 0)
            s->first_timestamp = batch_max_timestamp(b);
        sparse_index_note(s->index, s->base, log->config->index_interval_bytes, s->size, size,
                          batch_last_offset(b), batch_max_timestamp(b));
        plog__note_epoch(log, b);
        plog__note_producer(log, b, size, &l->aborted);
        s->size += size;
        log->size += size;
    }
    log_offset next = batch_next_offset(batches[count - 1].data);
    plog__hint(log, next, s->base, s->size);
    plog__store(&log->end, next);
}

// ---- append -----------------------------------------------------------------------------------------------
static int check_run(const struct partition_log *log, const struct slice *batches, unsigned count,
                     struct errmsg *msg)
{
    log_offset next = plog__load(&log->end);
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *b = batches[i].data;
        if (batches[i].len < BATCH_HEADER_BYTES || batch_magic(b) != BATCH_MAGIC || batch_length(b) < 0 ||
            batch_size(b) != batches[i].len || batch_last_offset_delta(b) < 0 || batches[i].len > INT32_MAX)
            return err_set(msg, ERR_MALFORMED, "%s-%d: piece %u is not one whole batch", log->topic,
                           (int)log->partition, i);
        if (batch_base_offset(b) < next)
            return err_set(msg, ERR_RANGE, "%s-%d: batch at offset %lld, but the log ends at %lld",
                           log->topic, (int)log->partition, (long long)batch_base_offset(b), (long long)next);
        next = batch_next_offset(b);
    }
    return 0;
}

// Batches from `from` on that go into the active segment with one write.
static unsigned run_length(const struct partition_log *log, const struct segment *s,
                           const struct slice *batches, unsigned from, unsigned count, time_ms now)
{
    uint64_t size = s->size + batches[from].len;
    unsigned n = 1;
    for (; from + n < count; n++) {
        const uint8_t *b = batches[from + n].data;
        if (size + batches[from + n].len > (uint64_t)log->config->segment_bytes ||
            size + batches[from + n].len > INT32_MAX || batch_last_offset(b) - s->base > INT32_MAX ||
            is_old(log, s, batch_max_timestamp(b), now))
            break;
        size += batches[from + n].len;
    }
    return n;
}

static int append_runs(struct partition_log *log, const struct slice *batches, unsigned count, time_ms now,
                       struct plog_append_result *out, struct errmsg *msg)
{
    for (unsigned at = 0; at < count;) {
        struct segment *s = plog__active(log);
        const uint8_t *first = batches[at].data;
        if (must_roll(log, s, first, batches[at].len, now)) {
            // Segments follow each other without a gap, so that recovery can tell when the end of one was
            // lost.
            log_offset end = plog__load(&log->end);
            int rc = roll_at(log, batch_last_offset(first) - end > INT32_MAX ? batch_base_offset(first) : end,
                             now, msg);
            if (rc)
                return rc;
            out->rolled = s != plog__active(log);
            s = plog__active(log);
        }
        unsigned n = run_length(log, s, batches, at, count, now);
        int rc = write_run(log, s, batches + at, n, msg);
        if (rc)
            return rc;
        note_run(log, s, batches + at, n);
        at += n;
    }
    return 0;
}

bool plog_flush_due(const struct partition_log *log)
{
    return plog__load(&log->end) - plog__load(&log->recovery) >= log->config->flush_messages;
}

int plog_append(struct partition_log *log, const struct slice *batches, unsigned count, int flags,
                time_ms now, struct plog_append_result *out, struct errmsg *msg)
{
    *out = (struct plog_append_result){-1, -1, false, false};
    MUST(count > 0);
    int rc = plog__need(log, msg);
    if (rc == 0)
        rc = check_run(log, batches, count, msg);
    if (rc)
        return rc;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        bytes += batches[i].len;
    if (!(flags & PLOG_NO_PRODUCERS) && !log_dir__has_room(log->dir, bytes))
        return plog__failed(log, ERR_NOSPACE, NULL, "append refused");
    log_offset before = plog__load(&log->end);
    struct log_loaded *l = log->loaded;
    if (flags & PLOG_NO_PRODUCERS)
        log->no_producers = true;
    if (l->count == 0) {
        // The first segment is named by the first offset, which may be above the end (a follower of a trimmed
        // log).
        rc = plog__create_dir(log, msg);
        struct segment *s;
        if (rc == 0)
            rc = plog__new_segment(log, plog__load(&log->end), now, &s, msg);
        if (rc)
            return plog__failed(log, rc, msg, "cannot begin the log");
        plog__segment_add(log, s);
    }
    rc = append_runs(log, batches, count, now, out, msg);
    if (rc) {
        struct errmsg why;
        if (plog__load(&log->end) > before &&
            plog_truncate_to(log, before, &why)) // a part was written before a roll
            rc = err_set(msg, ERR_IO, "%s", why.text);
        return plog__failed(log, rc, msg, "append failed");
    }
    if (log_dir_is_full(log->dir))
        log_dir__note_full(log->dir, false);
    log->changed = true;
    if (l->unflushed_since < 0)
        l->unflushed_since = now;
    out->first_offset = batch_base_offset(batches[0].data);
    out->last_offset = plog__load(&log->end) - 1;
    out->flush_due = plog_flush_due(log);
    return 0;
}

int plog_reserve(struct partition_log *log, uint64_t bytes, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    struct segment *s = rc ? NULL : plog__active(log);
    if (rc)
        return rc;
    if (!s)
        return err_set(msg, ERR_STATE, "%s-%d has no segment yet", log->topic, (int)log->partition);
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    struct vfs_file *f;
    rc = segment_open(s, &at, 0, &f, msg);
    if (rc)
        return rc;
    rc = at.fs->ops->allocate(f, s->size, bytes);
    vfs_file_unref(f);
    return rc ? err_set(msg, rc, "cannot reserve %llu bytes for %s: %s", (unsigned long long)bytes, dir,
                        err_text(rc))
              : 0;
}
