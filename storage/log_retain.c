// SPDX-License-Identifier: Apache-2.0
// Retention: which segments go, how they leave the log, and the removal of their files.
//
// A segment leaves the log at once; its files are renamed to *.deleted, so that readers that hold them go on,
// and unlinked after file.delete.delay.ms. A crash in between leaves *.deleted files, which the next load
// removes.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/log_impl.h"

// How many segments, oldest first, does a rule want to go?
struct retention {
    struct partition_log *log;
    time_ms now;
    log_offset high_watermark;
};

// May segment i go at all: all of it is below the high watermark, and it is not an empty active one.
static bool may_go(const struct retention *r, unsigned i)
{
    const struct log_loaded *l = r->log->loaded;
    if (i + 1 == l->count && l->segments[i]->size == 0)
        return false;
    return plog__segment_end(r->log, i) <= r->high_watermark;
}

static unsigned count_by_start(const struct retention *r)
{
    const struct log_loaded *l = r->log->loaded;
    unsigned n = 0;
    while (n + 1 < l->count && l->segments[n + 1]->base <= plog__load(&r->log->start) && may_go(r, n))
        n++;
    return n;
}

static unsigned count_by_time(const struct retention *r, unsigned n)
{
    const struct log_loaded *l = r->log->loaded;
    int64_t keep = r->log->config->retention_ms;
    if (keep < 0 || !r->log->config->cleanup_delete)
        return n;
    while (n < l->count && may_go(r, n)) {
        time_ms newest = plog__segment_time(r->log, n);
        if (newest < 0)
            newest = l->segments[n]->created; // its records have no timestamps
        if (r->now - newest <= keep)
            break;
        n++;
    }
    return n;
}

static unsigned count_by_size(const struct retention *r, unsigned n)
{
    const struct log_loaded *l = r->log->loaded;
    int64_t keep = r->log->config->retention_bytes;
    if (keep < 0 || !r->log->config->cleanup_delete)
        return n;
    uint64_t size = r->log->size;
    for (unsigned i = 0; i < n; i++)
        size -= l->segments[i]->size;
    while (n + 1 < l->count && may_go(r, n) && size - l->segments[n]->size >= (uint64_t)keep) {
        size -= l->segments[n]->size;
        n++;
    }
    return n;
}

static int rename_files(const struct segment_place *at, log_offset base, struct errmsg *msg)
{
    for (int k = 0; k < LAYOUT_KINDS; k++) {
        char from[LAYOUT_PATH_BYTES], to[LAYOUT_PATH_BYTES];
        if (!layout_path(from, at->dir, base, (enum layout_kind)k, LAYOUT_PLAIN) ||
            !layout_path(to, at->dir, base, (enum layout_kind)k, LAYOUT_DELETE))
            return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", at->dir);
        int rc = at->fs->ops->rename(at->fs, from, to);
        if (rc && rc != ERR_NOTFOUND)
            return err_set(msg, rc, "cannot rename %s: %s", from, err_text(rc));
    }
    return 0;
}

static int take_out(struct partition_log *log, unsigned count, struct plog_doomed *out, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    MUST(count < l->count);
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    log_offset first = l->segments[count]->base;
    if (first > plog__load(&log->start)) {
        plog__store(&log->start, first);
        epoch_cache_truncate_start(&l->epochs, first);
    }
    log->changed = true;
    log_dir__touch(log->dir, false);
    *out = (struct plog_doomed){
        .fs = at.fs, .dir_path = mem_strdup(dir), .delay_ms = log->config->file_delete_delay_ms};
    out->bases = mem_calloc(count, sizeof(*out->bases));
    int rc = 0;
    unsigned done = 0;
    for (; done < count && rc == 0; done++) {
        struct segment *s = l->segments[done];
        rc = rename_files(&at, s->base, msg);
        if (rc)
            break;
        for (unsigned i = 0; i < l->snapshots_count; i++) {
            if (l->snapshots[i] != s->base)
                continue;
            memmove(l->snapshots + i, l->snapshots + i + 1,
                    (l->snapshots_count - i - 1) * sizeof(*l->snapshots));
            l->snapshots_count--;
            break;
        }
        out->bases[out->count++] = s->base;
        out->bytes += s->size;
        log->size -= s->size;
        segment_free(s, at.files);
    }
    memmove(l->segments, l->segments + done, (l->count - done) * sizeof(struct segment *));
    l->count -= done;
    plog__note_first(log);
    l->generation++;
    l->names_unsynced++;
    if (rc) {
        plog_doomed_fini(out);
        return plog__failed(log, rc, msg, "retention failed");
    }
    return 0;
}

int plog_retain(struct partition_log *log, time_ms now, log_offset high_watermark, struct plog_doomed *out,
                struct errmsg *msg)
{
    *out = (struct plog_doomed){.count = 0};
    if (!log->on_disk) // nothing was written yet
        return plog__need_online(log, msg);
    bool idle = !log->loaded;
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct retention r = {.log = log, .now = now, .high_watermark = high_watermark};
    unsigned count = log->loaded->count ? count_by_size(&r, count_by_time(&r, count_by_start(&r))) : 0;
    if (count == 0 && idle) { // it was only looked at
        log->last_epoch = epoch_cache_last(&log->loaded->epochs);
        plog__unload(log);
    }
    if (count == 0)
        return 0;
    if (count == log->loaded->count) { // the active one as well: an empty one takes its place
        rc = plog_roll(log, now, msg);
        if (rc)
            return rc;
    }
    return take_out(log, count, out, msg);
}

int plog_drop_below_start(struct partition_log *log, struct plog_doomed *out, struct errmsg *msg)
{
    *out = (struct plog_doomed){.count = 0};
    int rc = plog__need(log, msg);
    if (rc || log->loaded->count == 0)
        return rc;
    struct retention r = {.log = log, .high_watermark = INT64_MAX};
    unsigned count = count_by_start(&r);
    return count ? take_out(log, count, out, msg) : 0;
}

void plog_doomed_remove(struct plog_doomed *d)
{
    struct segment_place at = {.fs = d->fs, .dir = d->dir_path};
    for (unsigned i = 0; i < d->count; i++) // what cannot be removed now is removed at the next load
        (void)segment_remove_files(d->bases[i], &at, LAYOUT_DELETE, true);
    plog_doomed_fini(d);
}

void plog_doomed_fini(struct plog_doomed *d)
{
    mem_free(d->dir_path);
    mem_free(d->bases);
    *d = (struct plog_doomed){.count = 0};
}
