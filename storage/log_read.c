// SPDX-License-Identifier: Apache-2.0
// Finding the file range that answers a fetch.
//
// Start: a remembered position, else the index and the headers behind its entry. End: the end of the segment,
// the position of the bound (found the same way) or the last batch end within max_bytes. No batch is ever cut
// in two.
#include "core/base/assert.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/log_impl.h"

// Position of the first batch of segment i that holds or follows `offset`; the segment's size if there is
// none.
static int position_of(struct partition_log *log, unsigned i, struct vfs_file *file, log_offset offset,
                       bool nowait, uint64_t *pos, struct errmsg *msg)
{
    struct segment *s = log->loaded->segments[i];
    if (offset <= s->base) {
        *pos = 0;
        return 0;
    }
    if (plog__hint_find(log, offset, s->base, pos))
        return 0;
    if (i + 1 == log->loaded->count && offset >= plog__load(&log->end)) {
        *pos = s->size;
        return 0;
    }
    int rc = plog__index(log, i, false, msg);
    log_offset base;
    if (rc == 0)
        rc = segment_find(s, file, offset, nowait, pos, &base);
    if (rc == ERR_CORRUPT)
        rc = err_set(msg, ERR_CORRUPT, "%s-%d: segment %lld cannot be read at byte %llu", log->topic,
                     (int)log->partition, (long long)s->base, (unsigned long long)*pos);
    else if (rc && rc != ERR_BUSY)
        rc = err_set(msg, rc, "%s-%d: cannot read segment %lld: %s", log->topic, (int)log->partition,
                     (long long)s->base, err_text(rc));
    return rc;
}

// The last batch end at or before `limit`, not beyond `end`; *next the offset after it (-1: not known).
// Begins at the last index entry before the limit.
static int last_end(struct partition_log *log, unsigned i, struct vfs_file *file, uint64_t from,
                    uint64_t limit, uint64_t end, const struct plog_read_args *args, uint64_t *out,
                    log_offset *next, struct errmsg *msg)
{
    struct segment *s = log->loaded->segments[i];
    int rc = plog__index(log, i, false, msg);
    if (rc)
        return rc;
    uint64_t at = sparse_index_before(s->index, limit);
    struct batch_scan scan;
    uint8_t buf[BATCH_SCAN_BYTES];
    batch_scan_init(&scan, file, at > from ? at : from, end, buf, sizeof(buf));
    scan.nowait = args->nowait;
    const uint8_t *b;
    size_t size;
    *next = -1;
    while ((rc = batch_scan_header(&scan, &b, &size)) == 0) {
        bool first = scan.pos == from;
        if (scan.pos + size > limit && !(first && args->min_one)) {
            *next = batch_base_offset(b); // not in it: the one to go on with
            break;
        }
        *next = batch_next_offset(b);
        batch_scan_skip(&scan, size);
        if (scan.pos >= limit)
            break;
    }
    *out = scan.pos;
    batch_scan_fini(&scan);
    if (rc == ERR_NOTFOUND)
        rc = 0;
    if (rc && rc != ERR_BUSY)
        rc = err_set(msg, rc == ERR_AGAIN ? ERR_CORRUPT : rc, "%s-%d: segment %lld has no batch at byte %llu",
                     log->topic, (int)log->partition, (long long)s->base, (unsigned long long)*out);
    return rc;
}

// The offset index of a closed segment is neither in memory nor in the page cache: *out becomes its file.
static bool index_is_cold(struct partition_log *log, const struct segment *s, struct plog_range *out)
{
    if (s->offsets_loaded)
        return false;
    struct vfs *fs = log_dir_fs(log->dir);
    char dir[LAYOUT_PATH_BYTES], path[LAYOUT_PATH_BYTES];
    uint64_t size = 0;
    plog__dir(log, dir);
    if (!layout_path(path, dir, s->base, LAYOUT_INDEX, LAYOUT_PLAIN) ||
        fs->ops->open(fs, path, VFS_READ, &out->file, NULL))
        return false; // then it is made anew
    if (fs->ops->size(out->file, &size) || size == 0 || fs->ops->cached(out->file, 0, size)) {
        plog_range_release(out);
        return false;
    }
    out->pos = 0;
    out->len = (size_t)size;
    return true;
}

static int try_segment(struct partition_log *log, unsigned i, const struct plog_read_args *args,
                       struct plog_range *out, struct errmsg *msg)
{
    struct log_loaded *l = log->loaded;
    struct segment *s = l->segments[i];
    struct vfs_file *file;
    if (args->nowait && index_is_cold(log, s, out))
        return ERR_AGAIN;
    int rc = plog__open(log, s, &file, msg);
    if (rc)
        return rc;
    log_offset seg_end = plog__segment_end(log, i);
    uint64_t pos = 0, end = s->size;
    rc = position_of(log, i, file, args->offset, args->nowait, &pos, msg);
    out->next_offset = seg_end;
    if (rc == 0 && args->bound < seg_end) {
        rc = position_of(log, i, file, args->bound, args->nowait, &end, msg);
        out->next_offset = args->bound;
    }
    if (rc == 0 && end > pos && end - pos > args->max_bytes) {
        uint64_t last = pos;
        log_offset next = -1;
        rc = last_end(log, i, file, pos, pos + args->max_bytes, end, args, &last, &next, msg);
        end = last;
        out->next_offset = next;
    }
    out->pos = pos;
    out->segment = s->base;
    out->len = end > pos ? (size_t)(end - pos) : 0;
    out->file = file;
    if (rc == ERR_BUSY) { // what was looked at: bring in from here what a fetch would need
        out->len = s->size - pos < args->max_bytes + BATCH_SCAN_BYTES ? (size_t)(s->size - pos)
                                                                      : args->max_bytes + BATCH_SCAN_BYTES;
        return ERR_AGAIN;
    }
    if (rc == 0 && args->nowait && out->len && !file->fs->ops->cached(file, out->pos, out->len))
        return ERR_AGAIN;
    if (rc || out->len == 0)
        plog_range_release(out);
    else if (out->next_offset > args->offset)
        plog__hint(log, out->next_offset, s->base, end);
    return rc;
}

// An index has no checksum: one that leads to no batch is made anew, once.
static int read_segment(struct partition_log *log, unsigned i, const struct plog_read_args *args,
                        struct plog_range *out, struct errmsg *msg)
{
    int rc = try_segment(log, i, args, out, msg);
    if (rc != ERR_CORRUPT || i + 1 == log->loaded->count)
        return rc;
    struct segment *s = log->loaded->segments[i];
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    plog__hints_clear(log);
    rc = segment_rebuild_index(s, &at, log->config->index_interval_bytes, msg);
    if (rc)
        return rc;
    if (segment_write_indexes(s, &at, NULL) == 0) // where it cannot be written, memory does
        log->loaded->names_unsynced++;
    return try_segment(log, i, args, out, msg);
}

int plog_read(struct partition_log *log, const struct plog_read_args *args, struct plog_range *out,
              struct errmsg *msg)
{
    *out = (struct plog_range){.file = NULL, .next_offset = args->offset, .segment = -1};
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    log_offset start = plog__load(&log->start), end = plog__load(&log->end);
    if (args->offset < start || args->offset > end)
        return err_set(msg, ERR_RANGE, "offset %lld is not in [%lld, %lld] of %s-%d", (long long)args->offset,
                       (long long)start, (long long)end, log->topic, (int)log->partition);
    if (args->offset >= args->bound || l->count == 0)
        return 0;
    for (unsigned i = plog__segment_index(log, args->offset); i < l->count; i++) {
        if (l->segments[i]->base >= args->bound)
            break;
        rc = read_segment(log, i, args, out, msg);
        if (rc || out->len) // else nothing at or after the offset in this segment: the next one
            return rc;
        if (args->max_bytes == 0 || (!args->min_one && out->pos < l->segments[i]->size))
            break; // there is a batch, but it does not fit
    }
    out->next_offset = args->offset;
    return 0;
}

int plog_locate(struct partition_log *log, log_offset offset, log_offset *segment, uint64_t *pos,
                struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    struct log_loaded *l = log->loaded;
    *segment = plog__load(&log->end);
    *pos = 0;
    if (l->count == 0)
        return 0;
    unsigned i = plog__segment_index(log, offset);
    struct vfs_file *file;
    rc = plog__open(log, l->segments[i], &file, msg);
    if (rc)
        return rc;
    rc = position_of(log, i, file, offset, false, pos, msg);
    vfs_file_unref(file);
    *segment = l->segments[i]->base;
    return rc;
}

uint64_t plog_size_from(struct partition_log *log, log_offset offset)
{
    struct errmsg msg;
    log_offset segment;
    uint64_t pos, sum = 0;
    if (plog_locate(log, offset, &segment, &pos, &msg))
        return 0;
    for (unsigned i = 0; i < log->loaded->count; i++) {
        const struct segment *s = log->loaded->segments[i];
        if (s->base >= segment)
            sum += s->base == segment ? s->size - pos : s->size;
    }
    return sum;
}

// ---- ranges -----------------------------------------------------------------------------------------------
void plog_range_release(struct plog_range *r)
{
    if (r->file)
        vfs_file_unref(r->file);
    r->file = NULL;
}

bool plog_range_cached(const struct plog_range *r)
{
    return !r->file || r->file->fs->ops->cached(r->file, r->pos, r->len);
}

int plog_range_readahead(const struct plog_range *r)
{
    return r->file ? r->file->fs->ops->readahead(r->file, r->pos, r->len) : 0;
}

int plog_range_copy(const struct plog_range *r, void *buf)
{
    size_t got = 0;
    int rc = r->file ? r->file->fs->ops->pread(r->file, buf, r->len, r->pos, &got) : 0;
    return rc == 0 && r->file && got < r->len ? ERR_IO : rc;
}
