// SPDX-License-Identifier: Apache-2.0
// The log thread's side of the metadata log: executes queued operations in order, one sync a group, and keeps
// the mark.
//
// Sidecar `%020d.raftindex`, 32 bytes, written and synced before the segment's first batch:
//   0  8  magic "KRAFTRX1"
//   8  8  base offset of the segment, big-endian
//  16  8  Raft index of its first batch, big-endian
//  24  4  zero
//  28  4  CRC-32C of bytes 0..27, big-endian
// A crash may leave it torn or missing: it is then counted anew from the snapshot's header.
//
// The mark on disk is never above the log: before a cut or a reset the lowered mark is written and synced.
#include "raft/metadata_log.h"

#include <stdio.h>
#include "core/base/mem.h"
#include "core/record/crc32c.h"
#include "raft/limits.h"

#define SIDECAR_BYTES 32

int mlog__write_file(struct mlog *m, const char *path, const void *data, size_t size, struct errmsg *msg)
{
    struct vfs_file *f;
    struct vfs *fs = m->opts.fs;
    int err = fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &f, msg);
    if (err)
        return err;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    err = size ? fs->ops->pwritev(f, &iov, 1, 0) : 0;
    if (!err)
        err = fs->ops->sync(f);
    vfs_file_unref(f);
    return err ? err_set(msg, err, "%s: %s", path, err_text(err)) : 0;
}

int mlog__read_file(struct mlog *m, const char *path, uint8_t *buf, size_t size, size_t *got)
{
    struct vfs_file *f;
    struct vfs *fs = m->opts.fs;
    int err = fs->ops->open(fs, path, VFS_READ, &f, NULL);
    if (err)
        return err;
    err = fs->ops->pread(f, buf, size, 0, got);
    vfs_file_unref(f);
    return err;
}

int mlog__create_files(struct mlog *m, struct mlog_segment *s, struct errmsg *msg)
{
    char path[MLOG_PATH_BYTES];
    uint8_t side[SIDECAR_BYTES] = {0};
    struct vfs *fs = m->opts.fs;
    memcpy(side, "KRAFTRX1", 8);
    bytes_store_be64(side + 8, (uint64_t)s->base);
    bytes_store_be64(side + 16, s->first_index);
    bytes_store_be32(side + 28, crc32c(side, 28));
    mlog__path(m, s->base, ".raftindex", path);
    int err = mlog__write_file(m, path, side, sizeof side, msg);
    if (err)
        return err;
    if (!s->file) {
        mlog__path(m, s->base, ".log", path);
        err = fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &s->file, msg);
        if (err)
            return err;
    }
    err = fs->ops->sync_dir(fs, m->opts.dir);
    return err ? err_set(msg, err, "%s: %s", m->opts.dir, err_text(err)) : 0;
}

int mlog__read_sidecar(struct mlog *m, log_offset base, raft_index *first_index)
{
    char path[MLOG_PATH_BYTES];
    uint8_t side[SIDECAR_BYTES];
    size_t got = 0;
    mlog__path(m, base, ".raftindex", path);
    int err = mlog__read_file(m, path, side, sizeof side, &got);
    if (err)
        return err;
    if (got != sizeof side || memcmp(side, "KRAFTRX1", 8) != 0 ||
        bytes_load_be32(side + 28) != crc32c(side, 28) || bytes_load_be64(side + 8) != (uint64_t)base)
        return ERR_CORRUPT;
    *first_index = bytes_load_be64(side + 16);
    return *first_index ? 0 : ERR_CORRUPT;
}

int mlog__remove_files(struct mlog *m, log_offset base, struct errmsg *msg)
{
    static const char *const suffixes[] = {".log", ".raftindex", ".index", ".timeindex"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[MLOG_PATH_BYTES];
        mlog__path(m, base, suffixes[i], path);
        int err = m->opts.fs->ops->unlink(m->opts.fs, path);
        if (err && err != ERR_NOTFOUND)
            return err_set(msg, err, "%s: %s", path, err_text(err));
    }
    return 0;
}

// ---- operations
// ------------------------------------------------------------------------------------------------
static int sync_file(struct mlog *m, struct mlog_segment *s, struct errmsg *msg)
{
    int err = s->file->fs->ops->sync(s->file);
    return err ? err_set(msg, err, "segment %lld: sync: %s", (long long)s->base, err_text(err)) : 0;
}

// Space for [pos, pos + len): the file system's promise, so that a later write cannot find the disk full.
static int reserve(struct mlog *m, struct mlog_segment *s, uint64_t pos, uint64_t len)
{
    if (m->cannot_reserve || pos + len <= s->reserved)
        return 0;
    const struct vfs_ops *ops = s->file->fs->ops;
    uint64_t want = len > RAFT_RESERVE_STEP_BYTES ? len : RAFT_RESERVE_STEP_BYTES;
    int err = ops->allocate(s->file, pos, want);
    if (err == ERR_NOSPACE) {
        want = len;
        err = ops->allocate(s->file, pos, want);
    }
    if (err == ERR_UNSUPPORTED) {
        m->cannot_reserve = true;
        return 0;
    }
    if (!err)
        s->reserved = pos + want;
    return err;
}

// One pwritev for a run of writes to adjacent places. Leaves *at at the last operation of the run.
static int do_writes(struct mlog *m, struct list_node **at, struct list *ops, struct errmsg *msg)
{
    struct iovec iov[RAFT_GROUP_PIECES_MAX];
    struct mlog_op *first = LIST_ENTRY(*at, struct mlog_op, link);
    uint64_t end = first->pos;
    int n = 0;
    struct list_node *it = *at;
    for (; it != &ops->head && n < RAFT_GROUP_PIECES_MAX; it = it->next) {
        struct mlog_op *op = LIST_ENTRY(it, struct mlog_op, link);
        if (op->kind != MLOG_WRITE || op->segment != first->segment || op->pos != end)
            break;
        iov[n++] = (struct iovec){(void *)(uintptr_t)op->bytes.data, op->bytes.len};
        end += op->bytes.len;
        *at = it;
    }
    struct mlog_segment *s = first->segment;
    int err = reserve(m, s, first->pos, end - first->pos);
    if (!err)
        err = s->file->fs->ops->pwritev(s->file, iov, n, first->pos);
    return err ? err_set(msg, err, "segment %lld at position %llu: %s", (long long)s->base,
                         (unsigned long long)first->pos, err_text(err))
               : 0;
}

static int lower_mark(struct mlog *m, log_offset end, struct errmsg *msg)
{
    if (m->mark.end <= end)
        return 0;
    int err = mark_write(&m->mark, end, msg);
    return err ? err : mark_sync(&m->mark, msg);
}

static int remove_dropped(struct mlog *m, struct mlog_op *op, bool newest_first, struct errmsg *msg)
{
    for (uint32_t i = 0; i < op->dropped_count; i++) {
        uint32_t k = newest_first ? op->dropped_count - 1 - i : i;
        int err = mlog__remove_files(m, op->dropped[k]->base, msg);
        if (err)
            return err;
    }
    int err = op->dropped_count ? m->opts.fs->ops->sync_dir(m->opts.fs, m->opts.dir) : 0;
    return err ? err_set(msg, err, "%s: %s", m->opts.dir, err_text(err)) : 0;
}

static int do_cut(struct mlog *m, struct mlog_op *op, struct errmsg *msg)
{
    int err = lower_mark(m, op->end, msg);
    if (!err)
        err = remove_dropped(m, op, true, msg);
    if (err)
        return err;
    err = op->segment->file->fs->ops->truncate(op->segment->file, op->pos);
    if (err)
        return err_set(msg, err, "segment %lld: truncate: %s", (long long)op->segment->base, err_text(err));
    op->segment->reserved = 0;
    return sync_file(m, op->segment, msg);
}

static int do_reset(struct mlog *m, struct mlog_op *op, struct errmsg *msg)
{
    int err = lower_mark(m, 0, msg);
    if (!err)
        err = remove_dropped(m, op, true, msg);
    if (!err)
        err = mlog__create_files(m, op->segment, msg);
    return err;
}

// The files that stock readers look for beside a closed segment. They carry no promise: not synced.
static int write_indexes(struct mlog *m, struct mlog_op *op, struct errmsg *msg)
{
    char path[MLOG_PATH_BYTES];
    uint8_t time_entry[12];
    (void)op->segment->file->fs->ops->truncate(op->segment->file,
                                               op->pos); // gives back what was reserved past the end
    op->segment->reserved = 0;
    mlog__path(m, op->segment->base, ".index", path);
    int err = mlog__write_file(m, path, op->index, op->index_bytes, msg);
    if (err)
        return err;
    bytes_store_be64(time_entry, (uint64_t)op->max_timestamp);
    bytes_store_be32(time_entry + 8,
                     (uint32_t)(op->end > op->segment->base ? op->end - 1 - op->segment->base : 0));
    mlog__path(m, op->segment->base, ".timeindex", path);
    return mlog__write_file(m, path, time_entry, op->max_timestamp >= 0 ? sizeof time_entry : 0, msg);
}

static int do_one(struct mlog *m, struct mlog_op *op, struct errmsg *msg)
{
    switch (op->kind) {
    case MLOG_CREATE:
        return mlog__create_files(m, op->segment, msg);
    case MLOG_CUT:
        return do_cut(m, op, msg);
    case MLOG_RESET:
        return do_reset(m, op, msg);
    case MLOG_ROLL:
        (void)write_indexes(m, op, msg);
        return 0;
    case MLOG_DROP:
        return remove_dropped(m, op, false, msg);
    case MLOG_CLOSE:
        if (op->segment && op->segment->file)
            (void)write_indexes(m, op, msg);
        return 0;
    case MLOG_WRITE:
        break;
    }
    UNREACHABLE("writes are done in runs");
}

static int do_group(struct mlog *m, struct errmsg *msg)
{
    struct mlog_segment *dirty = NULL;
    const struct mlog_op *last = NULL;
    int err = 0;
    for (struct list_node *it = m->flight.head.next; !err && it != &m->flight.head; it = it->next) {
        struct mlog_op *op = LIST_ENTRY(it, struct mlog_op, link);
        if (dirty && op->segment != dirty) {
            err = sync_file(m, dirty, msg);
            dirty = NULL;
        }
        if (err)
            break;
        if (op->kind == MLOG_WRITE) {
            err = do_writes(m, &it, &m->flight, msg);
            dirty = op->segment;
        } else {
            err = do_one(m, op, msg);
        }
        last = LIST_ENTRY(it, struct mlog_op, link);
    }
    if (!err && dirty)
        err = sync_file(m, dirty, msg);
    if (!err && last && last->end != m->mark.end)
        err = mark_write(&m->mark, last->end, msg);
    mono_us now = node_clock(m->opts.node);
    bool closing = last && last->kind == MLOG_CLOSE;
    if (!err && (closing || now - m->mark_synced_at >= RAFT_MARK_SYNC_MS * 1000ull)) {
        err = mark_sync(&m->mark, msg);
        m->mark_synced_at = now;
    }
    return err;
}

static void group_work(struct node_job *j)
{
    struct mlog *m = LIST_ENTRY(j, struct mlog, job);
    struct errmsg msg = {{0}};
    m->job_err = do_group(m, &msg);
    if (m->job_err && m->job_err != ERR_NOSPACE)
        node_stop(m->opts.node,
                  "metadata log %s: %s. Nothing more is answered from memory that the disk does not hold; "
                  "repair the disk and "
                  "start again",
                  m->opts.dir, msg.text);
}

static void group_done(struct node_job *j)
{
    struct mlog *m = LIST_ENTRY(j, struct mlog, job);
    if (m->job_err == ERR_NOSPACE) { // all of it is done again: every operation may be repeated
        atomic_store(&m->waiting_space, 1);
        log_warn(m->opts.log, "raft", "no space for the metadata log: waiting", "dir=%s", m->opts.dir);
        node_timer_start(m->opts.loop, &m->retry, 500);
        return;
    }
    atomic_store(&m->waiting_space, 0);
    bool closed = LIST_ENTRY(list_last(&m->flight), struct mlog_op, link)->kind == MLOG_CLOSE;
    m->busy = closed; // after the close nothing is started any more
    bool held = m->held;
    m->held = true; // what the callbacks append goes as one group
    mlog__finished(m);
    if (closed)
        return; // the log may be gone
    m->held = held;
    mlog__start(m);
}

static void retry_fire(struct node_timer *t)
{
    struct mlog *m = LIST_ENTRY(t, struct mlog, retry);
    node_pool_run(m->opts.pool, &m->job);
}

void mlog__start(struct mlog *m)
{
    if (m->busy || m->held || list_is_empty(&m->queue))
        return;
    m->busy = true;
    list_splice_tail(&m->flight, &m->queue);
    m->job = (struct node_job){.work = group_work, .done = group_done, .loop = m->opts.loop};
    m->retry.fire = retry_fire;
    node_pool_run(m->opts.pool, &m->job);
}
