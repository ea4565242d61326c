// SPDX-License-Identifier: Apache-2.0
// The loop's side of the metadata log: the entry table, segments and epochs in memory, and the queue of
// operations.
#include "raft/metadata_log.h"

#include <stdio.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "raft/limits.h"

// ---- small parts
// -----------------------------------------------------------------------------------------------
void mlog__path(const struct mlog *m, log_offset base, const char *suffix, char out[MLOG_PATH_BYTES])
{
    (void)snprintf(out, MLOG_PATH_BYTES, "%s/%020lld%s", m->opts.dir, (long long)base, suffix);
}

struct mlog_segment *mlog__segment_new(log_offset base, raft_index first_index)
{
    struct mlog_segment *s = mem_zalloc(sizeof *s);
    s->refs = 1;
    s->base = base;
    s->first_index = first_index;
    s->max_timestamp = -1;
    return s;
}

static struct mlog_segment *segment_ref(struct mlog_segment *s)
{
    s->refs++;
    return s;
}

void mlog__segment_unref(struct mlog_segment *s)
{
    if (!s || --s->refs > 0)
        return;
    if (s->file)
        vfs_file_unref(s->file);
    mem_free(s->points);
    mem_free(s);
}

void mlog__segments_add(struct mlog *m, struct mlog_segment *s)
{
    if (m->segments_count == m->segments_cap) {
        m->segments_cap = m->segments_cap ? m->segments_cap * 2 : 8;
        m->segments = mem_realloc(m->segments, m->segments_cap * sizeof(struct mlog_segment *));
    }
    m->segments[m->segments_count++] = s;
}

static struct mlog_segment *active(const struct mlog *m)
{
    return m->segments_count ? m->segments[m->segments_count - 1] : NULL;
}

static void add_point(struct mlog_segment *s, uint32_t offset, uint32_t pos)
{
    if (s->points_count == s->points_cap) {
        s->points_cap = s->points_cap ? s->points_cap * 2 : 16;
        s->points = mem_realloc(s->points, s->points_cap * sizeof *s->points);
    }
    s->points[s->points_count++] = (struct mlog_point){offset, pos};
}

void mlog__segment_note(struct mlog_segment *s, uint64_t pos, const struct entry_batch *e)
{
    time_ms t = batch_max_timestamp(e->bytes.data);
    if (t > s->max_timestamp)
        s->max_timestamp = t;
    if (pos >= s->next_point && pos > 0 && pos <= UINT32_MAX) {
        add_point(s, (uint32_t)(e->base - s->base), (uint32_t)pos);
        s->next_point = pos + RAFT_INDEX_INTERVAL_BYTES;
    } else if (pos == 0) {
        s->next_point = RAFT_INDEX_INTERVAL_BYTES;
    }
}

void mlog__entries_push(struct mlog *m, const struct mlog_entry *e)
{
    if (m->head + m->count == m->cap) {
        if (m->head > m->count) {
            memmove(m->entries, m->entries + m->head, m->count * sizeof *m->entries);
        } else {
            size_t cap = m->cap ? m->cap * 2 : 64;
            struct mlog_entry *grown = mem_alloc(cap * sizeof *grown);
            if (m->count)
                memcpy(grown, m->entries + m->head, m->count * sizeof *grown);
            mem_free(m->entries);
            m->entries = grown;
            m->cap = cap;
        }
        m->head = 0;
    }
    m->entries[m->head + m->count++] = *e;
}

static void entry_fini(struct mlog_entry *e)
{
    mem_free(e->own);
    voter_set_unref(e->voters);
    mlog__segment_unref(e->segment);
}

void mlog__epochs_note(struct mlog *m, leader_epoch epoch, log_offset start)
{
    if (m->epochs_count && m->epochs[m->epochs_count - 1].epoch >= epoch)
        return;
    if (m->epochs_count == m->epochs_cap) {
        m->epochs_cap = m->epochs_cap ? m->epochs_cap * 2 : 16;
        m->epochs = mem_realloc(m->epochs, m->epochs_cap * sizeof *m->epochs);
    }
    m->epochs[m->epochs_count++] = (struct mlog_epoch){epoch, start};
}

void mlog__epochs_cut(struct mlog *m, log_offset end)
{
    while (m->epochs_count && m->epochs[m->epochs_count - 1].start >= end)
        m->epochs_count--;
}

struct mlog_entry *mlog_entry_at(const struct mlog *m, raft_index index)
{
    if (index <= m->base.index || index > mlog_last_index(m))
        return NULL;
    return &m->entries[m->head + (size_t)(index - m->base.index - 1)];
}

leader_epoch mlog_last_epoch(const struct mlog *m)
{
    return m->count ? m->entries[m->head + m->count - 1].epoch : m->base.epoch;
}

leader_epoch mlog_epoch_of_index(const struct mlog *m, raft_index index)
{
    const struct mlog_entry *e = mlog_entry_at(m, index);
    if (e)
        return e->epoch;
    return index == m->base.index && index > 0 ? m->base.epoch : -1;
}

log_offset mlog_end_of_index(const struct mlog *m, raft_index index)
{
    const struct mlog_entry *e = mlog_entry_at(m, index);
    if (e)
        return e->offset + e->offsets;
    return index == m->base.index ? m->base.offset : -1;
}

log_offset mlog_start(const struct mlog *m)
{
    return m->segments_count ? m->segments[0]->base : m->end;
}

// ---- operations
// ------------------------------------------------------------------------------------------------
static struct mlog_op *queue_op(struct mlog *m, enum mlog_op_kind kind, struct mlog_segment *segment)
{
    struct mlog_op *op = mem_zalloc(sizeof *op);
    op->kind = kind;
    op->segment = segment ? segment_ref(segment) : NULL;
    op->end = m->end;
    op->end_index = mlog_last_index(m);
    op->generation = m->generation;
    list_add_tail(&m->queue, &op->link);
    return op;
}

static void op_free(struct mlog_op *op)
{
    mlog__segment_unref(op->segment);
    for (uint32_t i = 0; i < op->dropped_count; i++)
        mlog__segment_unref(op->dropped[i]);
    mem_free(op->dropped);
    mem_free(op->index);
    mem_free(op);
}

// Prepares what the roll of a segment writes: the sparse index as Kafka has it.
static void fill_index(struct mlog_op *op)
{
    struct mlog_segment *s = op->segment;
    op->pos = s->size;
    op->max_timestamp = s->max_timestamp;
    op->index_bytes = s->points_count * 8;
    op->index = mem_alloc(op->index_bytes + 1u);
    for (uint32_t i = 0; i < s->points_count; i++) {
        bytes_store_be32(op->index + i * 8, s->points[i].offset);
        bytes_store_be32(op->index + i * 8 + 4, s->points[i].pos);
    }
}

static void begin_segment(struct mlog *m)
{
    struct mlog_segment *old = active(m);
    if (old)
        fill_index(queue_op(m, MLOG_ROLL, old));
    struct mlog_segment *s = mlog__segment_new(m->end, mlog_last_index(m) + 1);
    mlog__segments_add(m, s);
    queue_op(m, MLOG_CREATE, s);
}

void mlog_append(struct mlog *m, const struct entry_batch *e, uint8_t *own)
{
    MUST(e->base == m->end);
    MUST(e->epoch >= mlog_last_epoch(m));
    struct mlog_segment *s = active(m);
    if (!s || (s->size > 0 && s->size + e->bytes.len > m->opts.segment_bytes) ||
        e->base - s->base > INT32_MAX - 10000)
        begin_segment(m);
    s = active(m);
    struct mlog_entry entry = {.offset = e->base,
                               .pos = s->size,
                               .segment = segment_ref(s),
                               .own = own,
                               .voters = e->voters ? voter_set_ref(e->voters) : NULL,
                               .bytes = (uint32_t)e->bytes.len,
                               .offsets = e->offsets,
                               .epoch = e->epoch,
                               .type = e->type};
    mlog__segment_note(s, s->size, e);
    mlog__epochs_note(m, e->epoch, e->base);
    mlog__entries_push(m, &entry);
    m->end = e->base + e->offsets;
    struct mlog_op *op = queue_op(m, MLOG_WRITE, s);
    op->pos = s->size;
    op->bytes = e->bytes;
    if (own) // the entry may be cut before the thread comes to it: the operation keeps bytes of its own
        op->index = mem_dup(own, e->bytes.len), op->bytes.data = op->index;
    s->size += e->bytes.len;
}

void mlog_append_done(struct mlog *m, mlog_done done, void *data)
{
    MUST(!list_is_empty(&m->queue));
    struct mlog_op *op = LIST_ENTRY(list_last(&m->queue), struct mlog_op, link);
    MUST(op->kind == MLOG_WRITE && !op->done);
    op->done = done;
    op->data = data;
    mlog__start(m);
}

static void drop_segments_from(struct mlog *m, uint32_t first, struct mlog_op *op)
{
    uint32_t n = m->segments_count - first;
    if (n == 0)
        return;
    op->dropped = mem_alloc(n * sizeof(struct mlog_segment *));
    op->dropped_count = n;
    memcpy(op->dropped, m->segments + first, n * sizeof(struct mlog_segment *)); // the log's references move
    m->segments_count = first;
}

void mlog_cut(struct mlog *m, raft_index from)
{
    if (from > mlog_last_index(m))
        return;
    MUST(from > m->base.index);
    const struct mlog_entry *e = mlog_entry_at(m, from);
    log_offset end = e->offset;
    uint64_t pos = e->pos;
    struct mlog_segment *s = segment_ref(e->segment);
    while (mlog_last_index(m) >= from)
        entry_fini(&m->entries[m->head + --m->count]);
    mlog__epochs_cut(m, end);
    m->end = end;
    m->generation++;
    if (m->synced_end > end) {
        m->synced_end = end;
        m->synced_index = from - 1;
    }
    while (s->points_count && s->points[s->points_count - 1].pos >= pos)
        s->points_count--;
    s->next_point = s->points_count ? s->points[s->points_count - 1].pos + RAFT_INDEX_INTERVAL_BYTES : 0;
    s->size = pos;
    struct mlog_op *op = queue_op(m, MLOG_CUT, s);
    op->pos = pos;
    uint32_t keep = 0;
    while (keep < m->segments_count && m->segments[keep] != s)
        keep++;
    MUST(keep < m->segments_count);
    drop_segments_from(m, keep + 1, op);
    mlog__segment_unref(s);
    mlog__start(m);
}

void mlog_reset(struct mlog *m, const struct mlog_base *base, mlog_done done, void *data)
{
    while (m->count)
        entry_fini(&m->entries[m->head + --m->count]);
    m->head = 0;
    m->epochs_count = 0;
    m->generation++;
    m->base = *base;
    m->end = base->offset;
    m->synced_end = 0;
    m->synced_index = 0;
    struct mlog_segment *s = mlog__segment_new(base->offset, base->index + 1);
    struct mlog_op *op = queue_op(m, MLOG_RESET, s);
    drop_segments_from(m, 0, op);
    mlog__segments_add(m, s);
    op->done = done;
    op->data = data;
    mlog__start(m);
}

void mlog_trim(struct mlog *m, raft_index upto)
{
    while (m->count && m->base.index < upto) {
        struct mlog_entry *e = &m->entries[m->head];
        m->base = (struct mlog_base){m->base.index + 1, e->epoch, e->offset + e->offsets};
        entry_fini(e);
        m->head++;
        m->count--;
    }
}

void mlog_roll(struct mlog *m, uint64_t above_bytes)
{
    struct mlog_segment *s = active(m);
    if (!s || s->size <= above_bytes)
        return;
    begin_segment(m);
    mlog__start(m);
}

uint32_t mlog_prune(struct mlog *m, log_offset below, uint64_t keep_bytes, time_ms older_than)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->segments_count; i++)
        total += m->segments[i]->size;
    uint32_t n = 0;
    while (n + 1 < m->segments_count && m->segments[n + 1]->base <= below &&
           (total > keep_bytes || m->segments[n]->max_timestamp < older_than)) {
        total -= m->segments[n]->size;
        n++;
    }
    if (n == 0)
        return 0;
    struct mlog_op *op = queue_op(m, MLOG_DROP, NULL);
    op->dropped = mem_alloc(n * sizeof(struct mlog_segment *));
    op->dropped_count = n;
    memcpy(op->dropped, m->segments, n * sizeof(struct mlog_segment *));
    memmove(m->segments, m->segments + n, (m->segments_count - n) * sizeof(struct mlog_segment *));
    m->segments_count -= n;
    log_offset start = mlog_start(m);
    uint32_t k =
        0; // epochs that end at or before the new start go; the one that reaches over it begins there
    while (k + 1 < m->epochs_count && m->epochs[k + 1].start <= start)
        k++;
    memmove(m->epochs, m->epochs + k, (m->epochs_count - k) * sizeof *m->epochs);
    m->epochs_count -= k;
    if (m->epochs_count && m->epochs[0].start < start)
        m->epochs[0].start = start;
    mlog__start(m);
    return n;
}

void mlog_hold(struct mlog *m, bool held)
{
    m->held = held;
    if (!held)
        mlog__start(m);
}

void mlog_close(struct mlog *m, mlog_done done, void *data)
{
    struct mlog_segment *s = active(m);
    struct mlog_op *op = queue_op(m, MLOG_CLOSE, s);
    if (s)
        fill_index(op);
    op->done = done;
    op->data = data;
    m->held = false;
    mlog__start(m);
}

static void free_ops(struct list *l)
{
    for (struct list_node *n; (n = list_pop(l)) != NULL;)
        op_free(LIST_ENTRY(n, struct mlog_op, link));
}

void mlog_free(struct mlog *m)
{
    if (!m)
        return;
    node_timer_stop(m->opts.loop, &m->retry);
    free_ops(&m->queue);
    free_ops(&m->flight);
    while (m->count)
        entry_fini(&m->entries[m->head + --m->count]);
    for (uint32_t i = 0; i < m->segments_count; i++)
        mlog__segment_unref(m->segments[i]);
    if (m->mark.file)
        mark_close(&m->mark);
    mem_free(m->segments);
    mem_free(m->entries);
    mem_free(m->epochs);
    mem_free((void *)m->opts.dir);
    mem_free(m);
}

// ---- completion
// ------------------------------------------------------------------------------------------------ The group
// is on disk (or is waiting for space). Callbacks come in the order of queueing, whatever was cut meanwhile.
void mlog__finished(struct mlog *m)
{
    struct list done;
    list_init(&done);
    list_splice_tail(&done, &m->flight);
    for (struct list_node *n = done.head.next; n != &done.head; n = n->next) {
        const struct mlog_op *op = LIST_ENTRY(n, struct mlog_op, link);
        if (op->generation == m->generation) { // what was cut since is not counted
            m->synced_end = op->end;
            m->synced_index = op->end_index;
        }
    }
    for (struct list_node *n; (n = list_pop(&done)) != NULL;) {
        struct mlog_op *op = LIST_ENTRY(n, struct mlog_op, link);
        mlog_done cb = op->done;
        void *data = op->data;
        op_free(op);
        if (cb)
            cb(data);
    }
}

// ---- reading
// ---------------------------------------------------------------------------------------------------
static struct mlog_segment *segment_of(const struct mlog *m, log_offset offset)
{
    uint32_t i = m->segments_count;
    while (i > 0 && m->segments[i - 1]->base > offset)
        i--;
    return i ? m->segments[i - 1] : NULL;
}

// First entry of the table that ends after `offset`; NULL: the table begins later.
static const struct mlog_entry *entry_holding(const struct mlog *m, log_offset offset)
{
    if (!m->count || offset < m->entries[m->head].offset)
        return NULL;
    size_t lo = 0, hi = m->count;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (m->entries[m->head + mid].offset <= offset)
            lo = mid;
        else
            hi = mid;
    }
    return &m->entries[m->head + lo];
}

struct walk {
    uint64_t pos;    // start of the current batch
    uint64_t bytes;  // of it
    log_offset next; // offset after it
};

static int read_header(struct mlog_segment *s, struct walk *w)
{
    uint8_t header[BATCH_HEADER_BYTES];
    size_t got = 0;
    int err = s->file->fs->ops->pread(s->file, header, sizeof header, w->pos, &got);
    if (err)
        return err;
    if (got < sizeof header || batch_length(header) < BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES)
        return ERR_IO;
    w->bytes = batch_size(header);
    w->next = batch_next_offset(header);
    return 0;
}

// Start of the batch that holds `offset`.
static int locate(const struct mlog *m, struct mlog_segment *s, log_offset offset, struct walk *w)
{
    const struct mlog_entry *e = entry_holding(m, offset);
    if (e) {
        *w = (struct walk){e->pos, e->bytes, e->offset + e->offsets};
        return 0;
    }
    w->pos = 0;
    for (uint32_t i = s->points_count; i > 0; i--) {
        if (s->base + s->points[i - 1].offset <= offset) {
            w->pos = s->points[i - 1].pos;
            break;
        }
    }
    int err = read_header(s, w);
    while (!err && w->next <= offset) {
        w->pos += w->bytes;
        err = read_header(s, w);
    }
    return err;
}

// End of the range: whole batches below `limit`, about `bytes_max` from `from`.
static int range_end(const struct mlog *m, struct mlog_segment *s, struct walk *w, log_offset limit,
                     uint64_t stop)
{
    for (;;) {
        uint64_t at = w->pos + w->bytes;
        if (w->next >= limit || at >= s->size || at >= stop)
            return 0;
        struct walk n = {.pos = at};
        const struct mlog_entry *e = entry_holding(m, w->next);
        int err = 0;
        if (e)
            n = (struct walk){e->pos, e->bytes, e->offset + e->offsets};
        else
            err = read_header(s, &n);
        if (err)
            return err;
        if (n.next > limit || n.pos + n.bytes > stop)
            return 0;
        *w = n;
    }
}

int mlog_read(struct mlog *m, log_offset from, log_offset limit, uint32_t bytes_max, struct rope *out)
{
    if (from < mlog_start(m) || from > limit)
        return ERR_RANGE;
    if (from == limit)
        return 0;
    struct mlog_segment *s = segment_of(m, from);
    if (!s || !s->file)
        return ERR_IO;
    struct walk w;
    int err = locate(m, s, from, &w);
    if (err)
        return err;
    uint64_t start = w.pos;
    err = range_end(m, s, &w, limit, start + bytes_max);
    if (err)
        return err;
    rope_add_file(out, &s->file->rope, start, (size_t)(w.pos + w.bytes - start));
    return 0;
}
