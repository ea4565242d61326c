// SPDX-License-Identifier: Apache-2.0
// Standing for election at once when the leader's process is gone, instead of waiting for the election
// timeout.
//
// The leader's connection broke and the dial that followed was refused: nobody listens there any more. Then
// the library is given a TIMEOUT_NOW message as if from that leader, which skips the pre-vote. Ranks among
// the living wait 50 ms each; it is tried each 5 ms while the log is still being stored. Only the time of an
// election changes, never its outcome.
#include "raft/quorum_impl.h"

static bool still_wanted(struct quorum *q)
{
    raft_id leader = 0;
    const char *address;
    raft_leader(&q->raft, &leader, &address);
    return !q->closing && q->raft.state == RAFT_FOLLOWER && q->raft.current_term == q->takeover_term &&
           leader == q->takeover_leader;
}

static void take_over_fire(struct node_timer *t)
{
    struct quorum *q = LIST_ENTRY(t, struct quorum, takeover_timer);
    const struct peer *p = transport_peer(q, q->takeover_leader);
    if (!still_wanted(q) || (p && transport_connected(p)))
        return;
    struct raft_message m = {.type = RAFT_TIMEOUT_NOW};
    m.timeout_now.term = q->raft.current_term;
    m.timeout_now.last_log_index = raft_last_index(&q->raft);
    m.timeout_now.last_log_term = (raft_term)mlog_epoch_of_index(q->log_store, m.timeout_now.last_log_index);
    quorum__deliver(q, &m, q->takeover_leader);
    if (still_wanted(q) && ++q->takeover_tries < RAFT_TAKE_OVER_TRIES)
        node_timer_start(q->opts.loop, &q->takeover_timer, RAFT_TAKE_OVER_RETRY_MS);
}

// Members with a lower id that are connected stand before us.
static uint64_t own_delay_ms(struct quorum *q, raft_id leader)
{
    uint64_t rank = 0;
    const struct voter_set *set = quorum__voters(q);
    for (uint32_t i = 0; set && i < set->count; i++) {
        const struct quorum_server *s = &set->servers[i];
        const struct peer *p = transport_peer(q, s->id);
        if (s->role == RAFT_VOTER && s->id != leader && s->id < q->self && p && transport_connected(p))
            rank++;
    }
    return rank * RAFT_TAKE_OVER_RANK_MS;
}

void quorum__leader_process_gone(struct quorum *q, raft_id gone)
{
    raft_id leader = 0;
    const char *address;
    raft_leader(&q->raft, &leader, &address);
    if (leader != gone || q->raft.state != RAFT_FOLLOWER || q->closing)
        return;
    log_info(q->log, "raft", "the leader's process is gone", "leader=%016llx term=%llu", leader,
             q->raft.current_term);
    q->takeover_term = q->raft.current_term;
    q->takeover_leader = leader;
    q->takeover_tries = 0;
    q->takeover_timer.fire = take_over_fire;
    node_timer_start(q->opts.loop, &q->takeover_timer, own_delay_ms(q, leader));
}

void quorum__take_over_stop(struct quorum *q)
{
    node_timer_stop(q->opts.loop, &q->takeover_timer);
}
