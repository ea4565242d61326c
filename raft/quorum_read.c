// SPDX-License-Identifier: Apache-2.0
// What server code reads of the quorum: state, offsets, epochs, ranges of committed batches.
#include "core/metadata/image.h"
#include "raft/quorum_impl.h"

struct image *quorum_image(struct quorum *q)
{
    return image_ref(q->image);
}

bool quorum_is_active(const struct quorum *q)
{
    return q->active;
}

node_id quorum_leader(const struct quorum *q)
{
    raft_id id = q->seen_leader;
    if (id == 0)
        return -1;
    if (id == q->self)
        return q->opts.id;
    const struct quorum_server *s = voter_set_find(quorum__voters(q), id);
    const struct peer *p = transport_peer((struct quorum *)(uintptr_t)q, id);
    return s ? s->voter.id : p ? p->node_id : -1;
}

leader_epoch quorum_term(const struct quorum *q)
{
    return (leader_epoch)q->seen_term;
}

log_offset quorum_high_watermark(const struct quorum *q)
{
    return q->high_watermark;
}

log_offset quorum_log_start(const struct quorum *q)
{
    return mlog_start(q->log_store);
}

log_offset quorum_log_end(const struct quorum *q)
{
    return q->log_store->end;
}

bool quorum_endpoint_of(const struct quorum *q, node_id id, struct quorum_endpoint *out)
{
    const struct quorum_server *s = voter_set_find_node(quorum__voters(q), id);
    if (!s || s->voter.endpoints_count == 0)
        return false;
    *out = s->voter.endpoints[0];
    return true;
}

int quorum_read(struct quorum *q, log_offset from, uint32_t bytes_max, struct rope *out)
{
    return mlog_read(q->log_store, from, q->high_watermark, bytes_max, out);
}

leader_epoch quorum_epoch_at(const struct quorum *q, log_offset end_offset)
{
    const struct mlog *m = q->log_store;
    if (end_offset > m->end)
        return -1;
    for (uint32_t i = m->epochs_count; i > 0; i--) {
        if (m->epochs[i - 1].start < end_offset)
            return m->epochs[i - 1].epoch;
    }
    for (uint32_t i = 0; i < q->snapshots_count; i++) {
        if (q->snapshots[i].manifest.end_offset == end_offset)
            return q->snapshots[i].manifest.epoch;
    }
    return -1;
}

log_offset quorum_end_offset_of_epoch(const struct quorum *q, leader_epoch epoch, leader_epoch *epoch_out)
{
    const struct mlog *m = q->log_store;
    for (uint32_t i = m->epochs_count; i > 0; i--) {
        if (m->epochs[i - 1].epoch > epoch)
            continue;
        *epoch_out = m->epochs[i - 1].epoch;
        return i == m->epochs_count ? m->end : m->epochs[i].start;
    }
    for (uint32_t i = q->snapshots_count; i > 0; i--) { // the log begins after it
        if (q->snapshots[i - 1].manifest.epoch <= epoch) {
            *epoch_out = q->snapshots[i - 1].manifest.epoch;
            return q->snapshots[i - 1].manifest.end_offset;
        }
    }
    *epoch_out = -1;
    return -1;
}
