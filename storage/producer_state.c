// SPDX-License-Identifier: Apache-2.0
// Sequences, epochs and open transactions of a partition's producers.
#include "storage/producer_state.h"
#include "core/base/assert.h"
#include "core/base/hmap.h"
#include "core/base/mem.h"

struct producer_slot {
    struct producer_entry e; // first: the public part
    unsigned index;          // in `list`
};

// A transaction that was decided by a marker which may not have reached the high watermark yet.
struct decided_txn {
    log_offset first; // first offset of the transaction
    log_offset last;  // of the marker
};

struct producer_states {
    struct hmap by_id;           // producer id -> struct producer_slot
    struct producer_slot **list; // the same in an array; order changes when one is removed
    unsigned count, cap;         // used, room
    unsigned open;               // entries with an open transaction
    struct decided_txn *decided; // in order of their markers
    unsigned decided_count, decided_cap;
    log_offset end; // everything below is in the state
};

struct producer_states *producer_states_new(void)
{
    struct producer_states *p = mem_zalloc(sizeof(*p));
    hmap_init(&p->by_id, HMAP_U64);
    return p;
}

void producer_states_clear(struct producer_states *p)
{
    for (unsigned i = 0; i < p->count; i++)
        mem_free(p->list[i]);
    hmap_fini(&p->by_id);
    hmap_init(&p->by_id, HMAP_U64);
    p->count = p->open = p->decided_count = 0;
    p->end = 0;
}

void producer_states_free(struct producer_states *p)
{
    if (!p)
        return;
    producer_states_clear(p);
    hmap_fini(&p->by_id);
    mem_free(p->list);
    mem_free(p->decided);
    mem_free(p);
}

// ---- entries ----------------------------------------------------------------------------------------------
const struct producer_entry *producer_states_find(const struct producer_states *p, int64_t producer_id)
{
    struct producer_slot *s = hmap_get_u64(&p->by_id, (uint64_t)producer_id);
    return s ? &s->e : NULL;
}

static struct producer_entry *obtain(struct producer_states *p, int64_t producer_id, int16_t epoch)
{
    struct producer_slot *s = hmap_get_u64(&p->by_id, (uint64_t)producer_id);
    if (s)
        return &s->e;
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 4;
        p->list = mem_realloc(p->list, p->cap * sizeof(*p->list));
    }
    s = mem_zalloc(sizeof(*s));
    s->index = p->count;
    s->e.producer_id = producer_id;
    s->e.producer_epoch = epoch;
    s->e.coordinator_epoch = -1;
    s->e.txn_first_offset = -1;
    s->e.last_timestamp = -1;
    p->list[p->count++] = s;
    (void)hmap_put_u64(&p->by_id, (uint64_t)producer_id, s);
    return &s->e;
}

static void forget(struct producer_states *p, struct producer_slot *s)
{
    struct producer_slot *last = p->list[--p->count];
    p->list[s->index] = last;
    last->index = s->index;
    if (s->e.txn_first_offset >= 0)
        p->open--;
    (void)hmap_remove_u64(&p->by_id, (uint64_t)s->e.producer_id);
    mem_free(s);
}

unsigned producer_states_count(const struct producer_states *p)
{
    return p->count;
}

const struct producer_entry *producer_states_at(const struct producer_states *p, unsigned i)
{
    MUST(i < p->count);
    return &p->list[i]->e;
}

unsigned producer_states_expire(struct producer_states *p, time_ms now, int64_t expiration_ms)
{
    unsigned gone = 0;
    for (unsigned i = 0; i < p->count;) {
        const struct producer_entry *e = &p->list[i]->e;
        if (e->txn_first_offset < 0 && now - e->last_timestamp >= expiration_ms) {
            forget(p, p->list[i]);
            gone++;
        } else {
            i++;
        }
    }
    return gone;
}

log_offset producer_states_end(const struct producer_states *p)
{
    return p->end;
}
void producer_states_set_end(struct producer_states *p, log_offset end)
{
    p->end = end;
}

// ---- sequences --------------------------------------------------------------------------------------------
// First
// sequence of a remembered batch: sequences wrap from INT32_MAX to 0.
static int32_t first_sequence(const struct producer_batch_meta *m)
{
    int64_t first = (int64_t)m->last_sequence - m->offset_delta;
    return (int32_t)(first < 0 ? first + INT32_MAX + 1 : first);
}

static const struct producer_batch_meta *find_duplicate(const struct producer_entry *e,
                                                        const struct producer_batch *b)
{
    if (e->producer_epoch != b->producer_epoch)
        return NULL;
    for (int i = 0; i < e->batches_count; i++) {
        const struct producer_batch_meta *m = &e->batches[i];
        if (m->last_sequence == b->last_sequence && first_sequence(m) == b->base_sequence)
            return m;
    }
    return NULL;
}

static bool follows(int32_t last, int32_t next)
{
    return (int64_t)last + 1 == next || (last == INT32_MAX && next == 0);
}

enum producer_verdict producer_states_check(const struct producer_states *p, const struct producer_batch *b,
                                            struct producer_duplicate *dup)
{
    if (b->producer_id < 0)
        return PRODUCER_OK;
    const struct producer_entry *e = producer_states_find(p, b->producer_id);
    if (!e)
        return PRODUCER_OK; // not known (any more): any sequence is a beginning
    if (b->control)
        return b->producer_epoch < e->producer_epoch ? PRODUCER_FENCED : PRODUCER_OK;
    const struct producer_batch_meta *m = find_duplicate(e, b);
    if (m) {
        *dup = (struct producer_duplicate){m->last_offset - m->offset_delta, m->last_offset, m->timestamp};
        return PRODUCER_DUPLICATE;
    }
    if (b->producer_epoch < e->producer_epoch)
        return PRODUCER_FENCED;
    if (b->producer_epoch != e->producer_epoch)
        return b->base_sequence == 0 ? PRODUCER_OK : PRODUCER_OUT_OF_ORDER;
    int32_t last = e->batches_count ? e->batches[e->batches_count - 1].last_sequence : -1;
    return follows(last, b->base_sequence) ? PRODUCER_OK : PRODUCER_OUT_OF_ORDER;
}

static void set_epoch(struct producer_entry *e, int16_t epoch)
{
    if (e->producer_epoch != epoch) {
        e->producer_epoch = epoch;
        e->batches_count = 0;
    }
}

void producer_states_append(struct producer_states *p, const struct producer_batch *b)
{
    if (b->producer_id < 0)
        return;
    struct producer_entry *e = obtain(p, b->producer_id, b->producer_epoch);
    set_epoch(e, b->producer_epoch);
    if (e->batches_count == PRODUCER_BATCHES) {
        memmove(e->batches, e->batches + 1, (PRODUCER_BATCHES - 1) * sizeof(e->batches[0]));
        e->batches_count--;
    }
    e->batches[e->batches_count++] = (struct producer_batch_meta){
        .last_sequence = b->last_sequence,
        .offset_delta = (int32_t)(b->last_offset - b->base_offset),
        .last_offset = b->last_offset,
        .timestamp = b->max_timestamp,
    };
    e->last_timestamp = b->max_timestamp;
    if (b->transactional && e->txn_first_offset < 0) {
        e->txn_first_offset = b->base_offset;
        p->open++;
    }
}

void producer_states_restore(struct producer_states *p, int64_t producer_id, int16_t epoch,
                             const struct producer_batch_meta *last, int32_t coordinator_epoch,
                             log_offset txn_first_offset)
{
    struct producer_entry *e = obtain(p, producer_id, epoch);
    if (last->last_offset >= 0) {
        e->batches[0] = *last;
        e->batches_count = 1;
    }
    e->last_timestamp = last->timestamp;
    e->coordinator_epoch = coordinator_epoch;
    if (txn_first_offset >= 0) {
        e->txn_first_offset = txn_first_offset;
        p->open++;
    }
}

// ---- transactions -----------------------------------------------------------------------------------------
bool producer_states_marker(struct producer_states *p, const struct producer_batch *b, bool commit,
                            int32_t coordinator_epoch, log_offset *txn_first)
{
    *txn_first = -1;
    if (b->producer_id < 0)
        return false;
    struct producer_entry *e = obtain(p, b->producer_id, b->producer_epoch);
    set_epoch(e, b->producer_epoch);
    e->coordinator_epoch = coordinator_epoch;
    e->last_timestamp = b->max_timestamp;
    if (e->txn_first_offset < 0)
        return false;
    *txn_first = e->txn_first_offset;
    e->txn_first_offset = -1;
    p->open--;
    if (p->decided_count == p->decided_cap) {
        p->decided_cap = p->decided_cap ? p->decided_cap * 2 : 4;
        p->decided = mem_realloc(p->decided, p->decided_cap * sizeof(*p->decided));
    }
    p->decided[p->decided_count++] = (struct decided_txn){*txn_first, b->last_offset};
    return true;
}

static log_offset first_open_but(const struct producer_states *p, int64_t except)
{
    log_offset first = -1;
    if (p->open == 0)
        return -1;
    for (unsigned i = 0; i < p->count; i++) {
        const struct producer_entry *e = &p->list[i]->e;
        if (e->txn_first_offset >= 0 && e->producer_id != except &&
            (first < 0 || e->txn_first_offset < first))
            first = e->txn_first_offset;
    }
    return first;
}

log_offset producer_states_first_open(const struct producer_states *p)
{
    return first_open_but(p, -1);
}

log_offset producer_states_stable_after(const struct producer_states *p, int64_t producer_id,
                                        log_offset marker)
{
    log_offset first = first_open_but(p, producer_id);
    return first >= 0 ? first : marker + 1;
}

log_offset producer_states_first_unstable(struct producer_states *p, log_offset high_watermark)
{
    unsigned kept = 0;
    log_offset first = producer_states_first_open(p);
    for (unsigned i = 0; i < p->decided_count; i++) {
        if (p->decided[i].last < high_watermark)
            continue; // its marker is below: stable for good
        p->decided[kept++] = p->decided[i];
        if (first < 0 || p->decided[i].first < first)
            first = p->decided[i].first;
    }
    p->decided_count = kept;
    return first;
}
