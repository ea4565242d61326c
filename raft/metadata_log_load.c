// SPDX-License-Identifier: Apache-2.0
// Reads the metadata log at start: every batch is checked, a torn tail is cut and kept aside, damage below
// the mark is refused.
//
//   1. segments in order of base offset; the first one's Raft index from its sidecar (or counted back from
//   the snapshot)
//   2. batch by batch: size, CRC, dense offsets, epochs that never fall
//   3. a bad batch below the mark, or a log that ends before it: ERR_CORRUPT, nothing is changed
//      a bad batch at or past the mark: the rest is copied to `*.torn`, cut off, and reported
//   4. a log that ends before the snapshot or disagrees with it is emptied and begins at the snapshot's end
#include "raft/metadata_log.h"

#include <stdio.h>
#include <stdlib.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "raft/limits.h"

#define WINDOW_BYTES (QUORUM_BATCH_BYTES_MAX + (1u << 20)) // holds the largest batch
#define REJOIN                                                                                               \
    "This controller must not start with less than it acknowledged. Restore the file, or remove this "       \
    "voter, format a fresh directory and add it again"

struct scan {
    struct mlog *m;
    struct mlog_base base; // snapshot
    mlog_each each;        // gets entries after the snapshot
    void *data;            // its argument
    log_offset *bases;     // segments found, ascending
    uint32_t count, cap;   // of them
    log_offset next;       // expected base offset; -1 before the first batch
    raft_index index;      // index of the last entry read
    leader_epoch epoch;    // epoch of it
    bool at_base;          // the log meets the snapshot's end
    bool disagrees;        // ... with another epoch or index
    log_offset mark;       // synced up to here
    bool stopped;          // a torn batch was cut; later segments go
};

static int compare_offset(const void *a, const void *b)
{
    log_offset x = *(const log_offset *)a, y = *(const log_offset *)b;
    return (x > y) - (x < y);
}

static int found_file(void *data, const char *name, bool is_dir)
{
    struct scan *s = data;
    char *end;
    if (is_dir || strlen(name) != 24 || strcmp(name + 20, ".log") != 0)
        return 0;
    long long base = strtoll(name, &end, 10);
    if (end != name + 20 || base < 0)
        return 0;
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->bases = mem_realloc(s->bases, s->cap * sizeof *s->bases);
    }
    s->bases[s->count++] = base;
    return 0;
}

// Batches below the snapshot's end, by their headers alone: gives the first segment's index when its sidecar
// is gone.
static int count_to_base(struct scan *s, raft_index *first_index)
{
    struct vfs *fs = s->m->opts.fs;
    raft_index n = 0;
    log_offset next = s->bases[0];
    for (uint32_t i = 0; i < s->count && next < s->base.offset; i++) {
        char path[MLOG_PATH_BYTES];
        struct vfs_file *f;
        uint64_t pos = 0;
        mlog__path(s->m, s->bases[i], ".log", path);
        if (fs->ops->open(fs, path, VFS_READ, &f, NULL) != 0)
            return ERR_IO;
        while (next < s->base.offset) {
            uint8_t header[BATCH_HEADER_BYTES];
            size_t got = 0;
            if (fs->ops->pread(f, header, sizeof header, pos, &got) != 0 || got < sizeof header ||
                batch_base_offset(header) != next ||
                batch_length(header) < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES)
                break;
            pos += batch_size(header);
            next = batch_next_offset(header);
            n++;
        }
        vfs_file_unref(f);
    }
    if (next != s->base.offset || n > s->base.index)
        return ERR_NOTFOUND;
    *first_index = s->base.index + 1 - n;
    return 0;
}

static int take_entry(struct scan *s, struct mlog_segment *seg, uint64_t pos, const struct entry_batch *e)
{
    struct mlog *m = s->m;
    s->index++;
    s->epoch = e->epoch;
    s->next = e->base + e->offsets;
    mlog__segment_note(seg, pos, e);
    mlog__epochs_note(m, e->epoch, e->base);
    seg->size = pos + e->bytes.len;
    m->end = s->next;
    if (s->next == s->base.offset) {
        s->at_base = true;
        s->disagrees = s->index != s->base.index || e->epoch != s->base.epoch;
    }
    if (e->base < s->base.offset || s->disagrees)
        return 0;
    seg->refs++;
    struct mlog_entry entry = {.offset = e->base,
                               .pos = pos,
                               .segment = seg,
                               .voters = e->voters ? voter_set_ref(e->voters) : NULL,
                               .bytes = (uint32_t)e->bytes.len,
                               .offsets = e->offsets,
                               .epoch = e->epoch,
                               .type = e->type};
    mlog__entries_push(m, &entry);
    return s->each(s->data, s->index, e);
}

// Copies what is cut off, so that nothing is thrown away unseen.
static int cut_torn(struct scan *s, struct mlog_segment *seg, uint64_t pos, const char *why,
                    struct errmsg *msg)
{
    struct mlog *m = s->m;
    char path[MLOG_PATH_BYTES];
    char suffix[64];
    uint64_t size = 0;
    const struct vfs_ops *ops = m->opts.fs->ops;
    int err = ops->size(seg->file, &size);
    if (err)
        return err_set(msg, err, "segment %lld: %s", (long long)seg->base, err_text(err));
    if (size > pos) {
        uint64_t n = size - pos < WINDOW_BYTES ? size - pos : WINDOW_BYTES;
        uint8_t *rest = mem_alloc((size_t)n);
        size_t got = 0;
        (void)snprintf(suffix, sizeof suffix, ".log.at-%llu.torn", (unsigned long long)pos);
        mlog__path(m, seg->base, suffix, path);
        err = ops->pread(seg->file, rest, (size_t)n, pos, &got);
        if (!err)
            err = mlog__write_file(m, path, rest, got, msg);
        mem_free(rest);
        if (err)
            return err_set(msg, err, "%s: %s", path, err_text(err));
        log_warn(m->opts.log, "raft", "torn write at the end of the metadata log cut off",
                 "segment=%lld position=%llu bytes=%llu kept=%s why=%s", (long long)seg->base,
                 (unsigned long long)pos, (unsigned long long)(size - pos), path, why);
        err = ops->truncate(seg->file, pos);
        if (!err)
            err = ops->sync(seg->file);
    }
    s->stopped = true;
    return err ? err_set(msg, err, "segment %lld: %s", (long long)seg->base, err_text(err)) : 0;
}

static int bad_batch(struct scan *s, struct mlog_segment *seg, uint64_t pos, const char *why,
                     struct errmsg *msg)
{
    char path[MLOG_PATH_BYTES];
    mlog__path(s->m, seg->base, ".log", path);
    if (s->next < s->mark)
        return err_set(msg, ERR_CORRUPT,
                       "%s is damaged at position %llu (offset %lld, synced up to %lld): %s. " REJOIN, path,
                       (unsigned long long)pos, (long long)s->next, (long long)s->mark, why);
    return cut_torn(s, seg, pos, why, msg);
}

// NULL: it follows what was read so far.
static const char *unfit(const struct scan *s, const struct entry_batch *e)
{
    if (e->base != s->next)
        return "the base offset does not follow";
    if (e->epoch < s->epoch)
        return "the leader epoch falls";
    return NULL;
}

static int scan_segment(struct scan *s, struct mlog_segment *seg, uint8_t *window, struct errmsg *msg)
{
    uint64_t pos = 0;
    size_t have = 0, at = 0;
    bool end = false;
    for (;;) {
        if (!end && have - at < BATCH_HEADER_BYTES) {
            memmove(window, window + at, have - at);
            have -= at;
            at = 0;
        }
        size_t got = 0;
        if (!end && have < WINDOW_BYTES && at == 0) {
            int err =
                seg->file->fs->ops->pread(seg->file, window + have, WINDOW_BYTES - have, pos + have, &got);
            if (err)
                return err_set(msg, err, "segment %lld: %s", (long long)seg->base, err_text(err));
            end = have + got < WINDOW_BYTES;
            have += got;
        }
        if (at == have)
            return 0;
        struct entry_batch e;
        struct errmsg why = {{0}};
        int err = entry_batch_parse(slice_of(window + at, have - at), &e, &why);
        if (err == ERR_AGAIN && !end) { // cut by the window's edge, not by the file's
            memmove(window, window + at, have - at);
            have -= at;
            at = 0;
            continue;
        }
        const char *reason = err ? (why.text[0] ? why.text : "it is cut short") : unfit(s, &e);
        if (reason) {
            voter_set_unref(err ? NULL : e.voters);
            return bad_batch(s, seg, pos, reason, msg);
        }
        err = take_entry(s, seg, pos, &e);
        voter_set_unref(e.voters);
        if (err)
            return err;
        pos += e.bytes.len;
        at += e.bytes.len;
    }
}

static int open_segment(struct scan *s, uint32_t i, struct mlog_segment **out, struct errmsg *msg)
{
    struct mlog *m = s->m;
    char path[MLOG_PATH_BYTES];
    raft_index first = s->index + 1;
    int side = mlog__read_sidecar(m, s->bases[i], &first);
    if (i == 0 && side != 0 && count_to_base(s, &first) != 0) {
        if (s->bases[0] < s->mark)
            return err_set(
                msg, ERR_CORRUPT,
                "the sidecar of the first segment in %s is missing and no snapshot meets the log. " REJOIN,
                m->opts.dir);
        first = s->base.index + 1;
    }
    if (i > 0 && first != s->index + 1)
        first = s->index + 1;
    if (i == 0)
        s->index = first - 1;
    struct mlog_segment *seg = mlog__segment_new(s->bases[i], first);
    mlog__path(m, seg->base, ".log", path);
    int err = m->opts.fs->ops->open(m->opts.fs, path, VFS_WRITE, &seg->file, msg);
    if (err) {
        mlog__segment_unref(seg);
        return err;
    }
    if (side != 0) // written anew while it can still be counted
        err = mlog__create_files(m, seg, msg);
    *out = seg;
    mlog__segments_add(m, seg);
    return err;
}

static int scan_all(struct scan *s, struct errmsg *msg)
{
    uint8_t *window = mem_alloc(WINDOW_BYTES);
    int err = 0;
    for (uint32_t i = 0; !err && i < s->count; i++) {
        struct mlog_segment *seg = NULL;
        bool follows = i == 0 || s->bases[i] == s->next;
        if (s->stopped || !follows) {
            if (s->next < s->mark && !s->stopped) {
                err = err_set(msg, ERR_CORRUPT,
                              "%s: the segment at offset %lld is missing (synced up to %lld). " REJOIN,
                              s->m->opts.dir, (long long)s->next, (long long)s->mark);
                break;
            }
            s->stopped = true; // what lies behind a torn place was never acknowledged
            log_warn(s->m->opts.log, "raft", "segment behind a torn place removed", "base=%lld",
                     (long long)s->bases[i]);
            err = mlog__remove_files(s->m, s->bases[i], msg);
            continue;
        }
        s->next = s->bases[i];
        s->m->end = s->next;
        err = open_segment(s, i, &seg, msg);
        if (!err && s->next == s->base.offset && i == 0 && seg->first_index == s->base.index + 1)
            s->at_base = true;
        if (!err)
            err = scan_segment(s, seg, window, msg);
    }
    mem_free(window);
    return err;
}

// The log cannot be used with this snapshot: begin anew at its end.
static int empty_log(struct scan *s, struct errmsg *msg)
{
    struct mlog *m = s->m;
    int err = 0;
    if (m->mark.end > 0) {
        err = mark_write(&m->mark, 0, msg);
        if (!err)
            err = mark_sync(&m->mark, msg);
    }
    while (m->count) {
        struct mlog_entry *e = &m->entries[m->head + --m->count];
        voter_set_unref(e->voters);
        mlog__segment_unref(e->segment);
    }
    while (!err && m->segments_count) {
        struct mlog_segment *seg = m->segments[--m->segments_count];
        err = mlog__remove_files(m, seg->base, msg);
        mlog__segment_unref(seg);
    }
    m->epochs_count = 0;
    m->end = s->base.offset;
    if (!err)
        err = m->opts.fs->ops->sync_dir(m->opts.fs, m->opts.dir);
    return err;
}

static int judge(struct scan *s, struct errmsg *msg)
{
    struct mlog *m = s->m;
    if (s->count == 0) {
        m->end = s->base.offset;
        if (s->mark > s->base.offset)
            return err_set(msg, ERR_CORRUPT,
                           "%s: no segment is there, but the log was synced up to offset %lld. " REJOIN,
                           m->opts.dir, (long long)s->mark);
        return 0;
    }
    if (s->bases[0] > s->base.offset)
        return err_set(msg, ERR_CORRUPT,
                       "%s: the log begins at offset %lld and no snapshot reaches it (the newest good one "
                       "ends at %lld). " REJOIN,
                       m->opts.dir, (long long)s->bases[0], (long long)s->base.offset);
    if (m->end < s->mark && s->base.offset < s->mark)
        return err_set(msg, ERR_CORRUPT,
                       "%s: the log ends at offset %lld, but was synced up to %lld. " REJOIN, m->opts.dir,
                       (long long)m->end, (long long)s->mark);
    if (s->at_base && !s->disagrees)
        return 0;
    log_info(m->opts.log, "raft", "metadata log begins anew at the snapshot",
             "log_end=%lld snapshot_end=%lld", (long long)m->end, (long long)s->base.offset);
    return empty_log(s, msg);
}

int mlog_open(const struct mlog_opts *opts, const struct mlog_base *base, mlog_each each, void *data,
              struct mlog **out, struct errmsg *msg)
{
    struct mlog *m = mem_zalloc(sizeof *m);
    char path[MLOG_PATH_BYTES];
    bool found = false;
    m->opts = *opts;
    m->opts.dir = mem_strdup(opts->dir);
    m->base = *base;
    list_init(&m->queue);
    list_init(&m->flight);
    struct scan s = {.m = m, .base = *base, .each = each, .data = data, .next = -1, .epoch = -1};
    (void)snprintf(path, sizeof path, "%s/raft-mark", opts->dir);
    int err = mark_open(&m->mark, opts->fs, path, &found, msg);
    if (!err) {
        s.mark = m->mark.end;
        err = opts->fs->ops->list(opts->fs, opts->dir, found_file, &s);
    }
    if (!err) {
        if (s.count)
            qsort(s.bases, s.count, sizeof *s.bases, compare_offset);
        err = scan_all(&s, msg);
    }
    if (!err)
        err = judge(&s, msg);
    mem_free(s.bases);
    if (err) {
        mlog_free(m);
        return err;
    }
    for (uint32_t i = 0; !err && i < m->segments_count;
         i++) // what a killed process left may be in the page cache only
        err = opts->fs->ops->sync(m->segments[i]->file);
    if (!err)
        err = opts->fs->ops->sync_dir(opts->fs, opts->dir);
    m->synced_end = m->end;
    m->synced_index = mlog_last_index(m);
    if (!err && m->mark.end != m->end)
        err = mark_write(&m->mark, m->end, msg);
    if (err) {
        mlog_free(m);
        return err_set(msg, err, "%s: %s", opts->dir, err_text(err));
    }
    *out = m;
    return 0;
}
