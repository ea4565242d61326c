// SPDX-License-Identifier: Apache-2.0
// Files and look-ups of one segment.
#include "storage/segment.h"
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/small_file.h"

struct segment *segment_new(log_offset base)
{
    struct segment *s = mem_zalloc(sizeof(*s));
    s->base = base;
    s->first_timestamp = s->max_timestamp = SEGMENT_TIME_UNKNOWN;
    return s;
}

void segment_free(struct segment *s, struct file_cache *files)
{
    file_cache_close(files, &s->file);
    segment_index_drop(s);
    mem_free(s);
}

struct sparse_index *segment_index_make(struct segment *s)
{
    if (!s->index) {
        s->index = mem_alloc(sizeof(*s->index));
        sparse_index_init(s->index);
    } else {
        sparse_index_clear(s->index);
    }
    s->offsets_loaded = s->times_loaded = true;
    return s->index;
}

void segment_index_drop(struct segment *s)
{
    if (s->index) {
        sparse_index_fini(s->index);
        mem_free(s->index);
    }
    s->index = NULL;
    s->offsets_loaded = s->times_loaded = false;
}

int segment_open(struct segment *s, const struct segment_place *at, int flags, struct vfs_file **out,
                 struct errmsg *msg)
{
    *out = file_cache_peek(at->files, &s->file);
    if (*out)
        return 0;
    char path[LAYOUT_PATH_BYTES];
    if (!layout_path(path, at->dir, s->base, LAYOUT_LOG, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", at->dir);
    return file_cache_get(at->files, &s->file, at->fs, path, VFS_WRITE | flags, out, msg);
}

// ---- index files ------------------------------------------------------------------------------------------
static int load_file(struct segment *s, const struct segment_place *at, enum layout_kind kind, char **data,
                     size_t *len, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_path(path, at->dir, s->base, kind, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", at->dir);
    if (!s->index) {
        s->index = mem_alloc(sizeof(*s->index));
        sparse_index_init(s->index);
    }
    return small_file_read(at->fs, path, data, len, msg);
}

int segment_load_offsets(struct segment *s, const struct segment_place *at, struct errmsg *msg)
{
    if (s->offsets_loaded)
        return 0;
    char *data;
    size_t len;
    int rc = load_file(s, at, LAYOUT_INDEX, &data, &len, msg);
    if (rc)
        return rc;
    rc = sparse_index_decode_offsets(s->index, slice_of(data, len), s->size ? s->size : 1, msg);
    mem_free(data);
    if (rc == 0)
        s->offsets_loaded = true;
    return rc;
}

int segment_load_times(struct segment *s, const struct segment_place *at, struct errmsg *msg)
{
    if (s->times_loaded)
        return 0;
    char *data;
    size_t len;
    int rc = load_file(s, at, LAYOUT_TIMEINDEX, &data, &len, msg);
    if (rc)
        return rc;
    rc = sparse_index_decode_times(s->index, slice_of(data, len), msg);
    mem_free(data);
    if (rc == 0)
        s->times_loaded = true;
    return rc;
}

static int write_file(const struct segment_place *at, log_offset base, enum layout_kind kind,
                      const uint8_t *data, size_t len, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_path(path, at->dir, base, kind, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", at->dir);
    struct vfs_file *f;
    int rc = at->fs->ops->open(at->fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &f, msg);
    if (rc)
        return rc;
    struct iovec iov = {(void *)(uintptr_t)data, len};
    if (len)
        rc = at->fs->ops->pwritev(f, &iov, 1, 0);
    vfs_file_unref(f);
    return rc ? err_set(msg, rc, "cannot write %s: %s", path, err_text(rc)) : 0;
}

int segment_write_indexes(struct segment *s, const struct segment_place *at, struct errmsg *msg)
{
    MUST(s->index && s->offsets_loaded && s->times_loaded);
    uint8_t *data;
    size_t len;
    s->index_unsynced = true;
    sparse_index_encode_offsets(s->index, &data, &len);
    int rc = write_file(at, s->base, LAYOUT_INDEX, data, len, msg);
    mem_free(data);
    if (rc)
        return rc;
    sparse_index_encode_times(s->index, &data, &len);
    rc = write_file(at, s->base, LAYOUT_TIMEINDEX, data, len, msg);
    mem_free(data);
    return rc;
}

int segment_rebuild_index(struct segment *s, const struct segment_place *at, int64_t interval,
                          struct errmsg *msg)
{
    struct vfs_file *file;
    int rc = segment_open(s, at, 0, &file, msg);
    if (rc)
        return rc;
    struct sparse_index *ix = segment_index_make(s);
    struct batch_scan scan;
    batch_scan_init(&scan, file, 0, s->size, NULL, BATCH_SCAN_LONG_BYTES);
    const uint8_t *b;
    size_t size;
    while ((rc = batch_scan_header(&scan, &b, &size)) == 0) {
        sparse_index_note(ix, s->base, interval, scan.pos, size, batch_last_offset(b),
                          batch_max_timestamp(b));
        batch_scan_skip(&scan, size);
    }
    if (rc != ERR_NOTFOUND)
        rc = err_set(msg, rc == ERR_AGAIN ? ERR_CORRUPT : rc, "%s/%020lld.log: no batch at byte %llu",
                     at->dir, (long long)s->base, (unsigned long long)scan.pos);
    else
        rc = 0;
    batch_scan_fini(&scan);
    vfs_file_unref(file);
    sparse_index_close(ix, s->base);
    return rc;
}

int segment_scan_tail(struct segment *s, const struct segment_place *at, log_offset *next, struct errmsg *msg)
{
    struct sparse_index *ix = s->index;
    MUST(ix && s->offsets_loaded && s->times_loaded);
    *next = s->base;
    ix->bytes_since = 0;
    ix->max_timestamp = ix->max_timestamp_offset = -1;
    if (ix->times_count) {
        ix->max_timestamp = ix->times[ix->times_count - 1].timestamp;
        ix->max_timestamp_offset = s->base + ix->times[ix->times_count - 1].offset;
    }
    if (s->size == 0)
        return 0;
    struct vfs_file *file;
    int rc = segment_open(s, at, 0, &file, msg);
    if (rc)
        return rc;
    uint64_t from = ix->offsets_count ? ix->offsets[ix->offsets_count - 1].pos : 0;
    struct batch_scan scan;
    uint8_t buf[BATCH_SCAN_BYTES];
    batch_scan_init(&scan, file, from, s->size, buf, sizeof(buf));
    const uint8_t *b;
    size_t size;
    while ((rc = batch_scan_header(&scan, &b, &size)) == 0) {
        if (scan.pos == 0)
            s->first_timestamp = batch_max_timestamp(b);
        if (batch_max_timestamp(b) > ix->max_timestamp) {
            ix->max_timestamp = batch_max_timestamp(b);
            ix->max_timestamp_offset = batch_last_offset(b);
        }
        ix->bytes_since += (int64_t)size;
        *next = batch_next_offset(b);
        batch_scan_skip(&scan, size);
    }
    if (rc == ERR_NOTFOUND)
        rc = 0;
    else
        rc = err_set(msg, rc == ERR_AGAIN ? ERR_CORRUPT : rc, "%s/%020lld.log: no whole batch at byte %llu",
                     at->dir, (long long)s->base, (unsigned long long)scan.pos);
    batch_scan_fini(&scan);
    vfs_file_unref(file);
    return rc;
}

// ---- look-up ----------------------------------------------------------------------------------------------
int segment_find(struct segment *s, struct vfs_file *file, log_offset offset, bool nowait, uint64_t *pos,
                 log_offset *batch_base)
{
    MUST(s->index && s->offsets_loaded);
    uint32_t rel =
        offset <= s->base ? 0 : (uint32_t)(offset - s->base > INT32_MAX ? INT32_MAX : offset - s->base);
    struct batch_scan scan;
    uint8_t buf[BATCH_SCAN_BYTES];
    batch_scan_init(&scan, file, sparse_index_position(s->index, rel), s->size, buf, sizeof(buf));
    scan.nowait = nowait;
    const uint8_t *b;
    size_t size;
    int rc;
    *batch_base = -1;
    while ((rc = batch_scan_header(&scan, &b, &size)) == 0) {
        if (batch_last_offset(b) >= offset) {
            *batch_base = batch_base_offset(b);
            break;
        }
        batch_scan_skip(&scan, size);
    }
    *pos = scan.pos;
    batch_scan_fini(&scan);
    if (rc == ERR_NOTFOUND)
        rc = 0;
    return rc == ERR_AGAIN ? ERR_CORRUPT : rc;
}

int segment_remove_files(log_offset base, const struct segment_place *at, enum layout_state state,
                         bool snapshot)
{
    int first = 0;
    for (int k = 0; k < LAYOUT_KINDS; k++) {
        char path[LAYOUT_PATH_BYTES];
        if ((k == LAYOUT_SNAPSHOT && !snapshot) ||
            !layout_path(path, at->dir, base, (enum layout_kind)k, state))
            continue;
        int rc = at->fs->ops->unlink(at->fs, path);
        if (rc && rc != ERR_NOTFOUND && first == 0)
            first = rc;
    }
    return first;
}
