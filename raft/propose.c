// SPDX-License-Identifier: Apache-2.0
// Proposing batches and barriers, and answering them: by index and term, never by libraft's callbacks.
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "core/protocol/gen/metadata_records.h"
#include "raft/quorum_impl.h"

log_offset quorum_next_offset(const struct quorum *q)
{
    return q->log_store->end;
}

// Own space and that of a majority of voters (rule 22).
static bool space_is_enough(struct quorum *q)
{
    uint64_t reserve_kib = q->opts.reserve_bytes / 1024;
    uint32_t voters = 0, short_of = 0;
    const struct voter_set *set = quorum__voters(q);
    if (q->free_bytes < q->opts.reserve_bytes || atomic_load(&q->log_store->waiting_space))
        return false;
    if (reserve_kib > UINT16_MAX)
        reserve_kib = UINT16_MAX;
    for (uint32_t i = 0; set && i < set->count; i++) {
        if (set->servers[i].role != RAFT_VOTER)
            continue;
        const struct peer *p = transport_peer(q, set->servers[i].id);
        voters++;
        short_of += p && p->answered && p->capacity < reserve_kib;
    }
    return short_of * 2 <= voters - (voters > 0);
}

static int may_propose(struct quorum *q, size_t bytes)
{
    if (!q->active || q->closing || q->raft.state != RAFT_LEADER || raft_transferee(&q->raft) != 0)
        return ERR_NOTLEADER;
    if (q->outstanding > 0 && q->outstanding + bytes > q->opts.outstanding_bytes)
        return ERR_BUSY;
    return space_is_enough(q) ? 0 : ERR_NOSPACE;
}

// The library has it: remember it until its index is applied.
static void remember(struct quorum *q, struct proposal *p, size_t bytes)
{
    p->bytes = bytes;
    q->outstanding += bytes;
    list_add_tail(&q->proposals, &p->link);
}

int quorum__submit_batch(struct quorum *q, uint8_t *batch, size_t size, quorum_propose_cb cb, void *data)
{
    struct proposal *p = mem_zalloc(sizeof *p);
    struct raft_buffer buf = {batch, size};
    p->cb = cb;
    p->data = data;
    p->term = q->raft.current_term;
    p->base = q->log_store->end;
    p->index = mlog_last_index(q->log_store) + 1;
    MUST(batch_base_offset(batch) == p->base && batch_leader_epoch(batch) == (leader_epoch)p->term);
    quorum__enter(q);
    int rv = raft_apply(&q->raft, &p->request.apply, &buf, 1, NULL);
    if (rv == RAFT_NOTLEADER || rv == RAFT_NOSPACE) {
        raft_free(batch);
        mem_free(p);
        quorum__leave(q);
        return rv == RAFT_NOSPACE ? ERR_NOSPACE : ERR_NOTLEADER;
    }
    if (rv)
        node_stop(q->opts.node, "libraft could not append: %s", raft_strerror(rv));
    MUST(p->request.apply.index == p->index);
    remember(q, p, size);
    quorum__leave(q);
    return 0;
}

static bool is_lone_noop(const struct slice *values, uint32_t count)
{
    return count == 1 && values[0].len >= 2 && values[0].data[0] == 1 && values[0].data[1] == METADATA_NO_OP;
}

int quorum_propose(struct quorum *q, const struct slice *values, uint32_t count, quorum_propose_cb cb,
                   void *data)
{
    size_t bytes = 0, size;
    if (count == 0 || is_lone_noop(values, count))
        return ERR_INVALID;
    for (uint32_t i = 0; i < count; i++)
        bytes += values[i].len;
    if (count > QUORUM_BATCH_RECORDS_MAX || bytes > QUORUM_BATCH_BYTES_MAX)
        return ERR_TOO_LARGE;
    int err = may_propose(q, bytes);
    if (err)
        return err;
    uint8_t *batch = entry_make_command(values, count, q->log_store->end, (leader_epoch)q->raft.current_term,
                                        node_wall(q->opts.node), &size);
    if (!batch)
        return ERR_TOO_LARGE;
    return quorum__submit_batch(q, batch, size, cb, data);
}

static void propose_barrier(struct quorum *q)
{
    struct proposal *p = mem_zalloc(sizeof *p);
    p->term = q->raft.current_term;
    p->base = q->log_store->end;
    p->index = mlog_last_index(q->log_store) + 1;
    quorum__enter(q);
    int rv = raft_barrier(&q->raft, &p->request.barrier, NULL);
    if (rv == 0) {
        remember(q, p, 0);
        if (q->barrier_term == p->term && q->barrier_index == 0)
            q->barrier_index = p->index;
    } else if (rv == RAFT_NOTLEADER || rv == RAFT_NOSPACE) {
        mem_free(p); // over already; the next bracket sees it
    } else {
        node_stop(q->opts.node, "libraft could not append a barrier: %s", raft_strerror(rv));
    }
    quorum__leave(q);
}

void quorum__barrier(struct quorum *q)
{
    q->barrier_term = q->raft.current_term;
    q->barrier_index = 0;
    propose_barrier(q);
}

int quorum_propose_noop(struct quorum *q)
{
    int err = may_propose(q, 0);
    if (err || !list_is_empty(&q->proposals))
        return err;
    propose_barrier(q);
    return 0;
}

void quorum__proposals_settle(struct quorum *q)
{
    bool leads = q->raft.state == RAFT_LEADER && !q->stopped;
    for (struct list_node *n; (n = list_first(&q->proposals)) != NULL;) {
        struct proposal *p = LIST_ENTRY(n, struct proposal, link);
        bool lost = !leads || q->raft.current_term != p->term;
        if (!lost && q->raft.last_applied < p->index)
            return;
        p->err = lost ? ERR_CANCELED : 0;
        q->outstanding -= p->bytes;
        list_remove(n);
        list_add_tail(&q->answers, n);
        quorum__publish_soon(q);
    }
}

void quorum_bootstrap_records(const struct quorum *q, const struct slice **values, uint32_t *count)
{
    *values = q->bootstrap;
    *count = q->bootstrap_count;
}
