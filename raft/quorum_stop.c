// SPDX-License-Identifier: Apache-2.0
// The orderly end: hand leadership over, let the log and a snapshot finish, close connections and libraft,
// tell the owner.
//
//   shutdown -> transfer (bounded by the election timeout) -> log close queued, links closed -> all idle ->
//   raft_close -> stopped
//
// libraft's buffers are in use while the log thread works: it is closed only after that.
#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "raft/quorum_impl.h"

void quorum__append_done(void *data)
{
    struct pending_append *a = data;
    struct quorum *q = a->q;
    if (q->close_begun)
        return; // stays in the list: called back as canceled at the close
    list_remove(&a->link);
    quorum__enter(q);
    a->cb(a->req, 0);
    quorum__leave(q);
    mem_free(a);
}

static void log_closed(void *data)
{
    struct quorum *q = data;
    q->close_waits--;
    quorum__close_settle(q);
}

static void raft_closed(struct raft *r)
{
    struct quorum *q = LIST_ENTRY(r, struct quorum, raft);
    q->raft_live = false;
    q->stopped = true;
}

static void begin_close(struct quorum *q)
{
    q->close_begun = true;
    q->active = false;
    node_timer_stop(q->opts.loop, &q->stop_timer);
    quorum__take_over_stop(q);
    q->close_waits++;
    mlog_close(q->log_store, log_closed, q);
    transport_close(q);
}

static void finish_close(struct quorum *q)
{
    node_timer_stop(q->opts.loop, &q->tick_timer);
    quorum__fetch_drop(q);
    q->depth = 1;
    raft_close(&q->raft, raft_closed);
    q->depth = 0;
    MUST(q->stopped);
    quorum__proposals_settle(q);
    if (q->change.step != CHANGE_NONE)
        quorum__change_answer(q, ERR_CANCELED, "the controller stops");
    quorum__publish_soon(q);
}

// Called whenever something that the close waits for has ended.
void quorum__close_settle(struct quorum *q)
{
    if (q->stopped || q->depth)
        return;
    if (!q->close_begun) {
        bool waits = q->raft.state == RAFT_LEADER && raft_transferee(&q->raft) != 0 &&
                     node_clock(q->opts.node) < q->stop_by;
        if (!waits)
            begin_close(q);
        return;
    }
    bool snapshot_idle = q->take.image == NULL && q->fetch.state != FETCH_CHECKING;
    if (q->close_waits == 0 && snapshot_idle && transport_idle(q))
        finish_close(q);
}

static void stop_fire(struct node_timer *t)
{
    quorum__close_settle(LIST_ENTRY(t, struct quorum, stop_timer));
}

void quorum_shutdown(struct quorum *q)
{
    if (q->closing)
        return;
    q->stop_by = node_clock(q->opts.node) + q->raft.election_timeout * 1000ull;
    if (q->raft.state == RAFT_LEADER && q->transfer.id == 0)
        (void)quorum_transfer_leadership(q, -1);
    q->closing = true;
    q->stop_timer.fire = stop_fire;
    node_timer_start(q->opts.loop, &q->stop_timer, q->raft.election_timeout + 1);
    quorum__close_settle(q);
}
