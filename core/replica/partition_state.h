// SPDX-License-Identifier: Apache-2.0
// What a replica of a partition knows and decides: role, epochs, ISR, followers' progress, high watermark.
//
// Pure: the owner (the partition's monitor) tells it what happened and when, it answers what follows. Rules:
// KIP-101, 497, 841, 903, 966 and the 4.x high watermark rule.
//
// Invariants: log_start <= high_watermark <= log_end; as leader, the high watermark is at most the log end of
// every member of the maximal ISR when it moves; it never goes back except by truncation; isr and pending_isr
// are subsets of replicas.
#ifndef KRAFT_REPLICA_PARTITION_STATE_H
#define KRAFT_REPLICA_PARTITION_STATE_H

#include "core/base/types.h"
#include "core/base/uuid.h"

#define PARTITION_STATE_REPLICAS_MAX                                                                         \
    1024 // more replicas than brokers anybody runs; bounds what a record can ask for

enum replica_role {
    REPLICA_NONE,     // not told yet
    REPLICA_LEADER,   // takes appends
    REPLICA_FOLLOWER, // copies the leader
};

// What the leader knows of another replica.
struct replica_progress {
    broker_id id;                   // whose
    bool eligible;                  // unfenced and not in controlled shutdown, by the newest image
    broker_epoch epoch;             // broker epoch in its last fetch; -1 unknown
    broker_epoch registered_epoch;  // broker epoch in the newest image; -1 unknown
    log_offset log_end;             // offset of its last fetch; -1 unknown
    log_offset log_start;           // log start in its last fetch; -1 unknown
    log_offset leader_end_at_fetch; // our log end when it last fetched
    time_ms last_fetch_ms;          // when it last fetched; 0 never in this epoch
    time_ms caught_up_ms; // last time it had all that was there at its fetch before; 0 never in this epoch
};

enum isr_change {
    ISR_SETTLED,   // what is committed is what we act on
    ISR_EXPANDING, // an expansion is proposed: act on the larger, proposed one
    ISR_SHRINKING, // a shrink is proposed: act on the larger, committed one
};

struct partition_state {
    enum replica_role role;          // what we are
    broker_id self;                  // our node id
    broker_id leader;                // leader; -1 none
    leader_epoch epoch;              // leader epoch; -1 before the first assignment
    int32_t partition_epoch;         // version of the assignment in metadata; -1 before the first
    bool recovering;                 // elected uncleanly and not yet reported as recovered (KIP-704)
    broker_id *replicas;             // assignment, preferred first
    int32_t replicas_count;          // number of them
    broker_id *isr;                  // committed ISR
    int32_t isr_count;               // number of them
    enum isr_change isr_change;      // whether a proposal is under way
    broker_id pending_member;        // ISR_EXPANDING: who joins
    broker_id *pending_isr;          // ISR_SHRINKING: what would be left; ISR_EXPANDING: NULL
    int32_t pending_isr_count;       // number of them
    struct replica_progress *others; // as leader: the other replicas; NULL where there are none
    int32_t others_count;            // number of them
    int32_t min_isr;                 // min.insync.replicas of the topic
    log_offset epoch_start;          // log end when we became leader of `epoch`; -1 as follower
    log_offset log_start;            // first offset that may be read
    log_offset log_end;              // next offset to be written
    log_offset high_watermark;       // what consumers may see ends here
};

// The assignment as the image has it.
struct partition_assignment {
    broker_id leader;          // -1 none
    leader_epoch epoch;        // leader epoch
    int32_t partition_epoch;   // partition epoch
    bool recovering;           // LeaderRecoveryState is RECOVERING
    const broker_id *replicas; // preferred first
    int32_t replicas_count;    // number of them
    const broker_id *isr;      // committed ISR
    int32_t isr_count;         // number of them
};

enum partition_change {
    PARTITION_CHANGE_NONE,     // older than or equal to what is known
    PARTITION_CHANGE_LEADER,   // leader of a new epoch: write an epoch entry at the log end
    PARTITION_CHANGE_FOLLOWER, // follower (or leaderless) in a new epoch: stop appends, fetch from the leader
    PARTITION_CHANGE_ISR,      // same leader epoch: ISR or replicas changed
};

void partition_state_init(struct partition_state *s, broker_id self, log_offset log_start, log_offset log_end,
                          log_offset high_watermark);
void partition_state_fini(struct partition_state *s);

// A metadata change. Ignored when both epochs are not newer (lower leader epoch, or lower or equal partition
// epoch).
enum partition_change partition_state_apply(struct partition_state *s, const struct partition_assignment *a,
                                            time_ms now);
// What the newest image says of another broker: may it join the ISR, and its epoch.
void partition_state_set_broker(struct partition_state *s, broker_id id, bool eligible,
                                broker_epoch registered_epoch);

// The three below answer whether the high watermark moved.
bool partition_state_appended(struct partition_state *s, log_offset log_end,
                              time_ms now); // we wrote up to log_end
bool partition_state_set_min_isr(struct partition_state *s, int32_t min_isr,
                                 time_ms now); // topic config changed
// A follower fetched at `offset` without divergence: it has all below.
bool partition_state_fetched(struct partition_state *s, broker_id id, broker_epoch epoch, log_offset offset,
                             log_offset follower_log_start, time_ms now);

// As follower: what the leader's answer says. The high watermark is cut to our log end.
bool partition_state_learned(struct partition_state *s, log_offset log_end, log_offset high_watermark);
void partition_state_truncated(struct partition_state *s, log_offset log_end); // the log was cut
// The log start moved (retention, DeleteRecords): pulls the high watermark up where it is below. Whether that
// moved.
bool partition_state_log_start(struct partition_state *s, log_offset log_start);

// May this replica be proposed for the ISR now? (not in it, no proposal under way, eligible, epoch as
// registered, log end at or past both the high watermark and the start of this leader epoch, not recovering)
bool partition_state_may_expand(const struct partition_state *s, broker_id id);
// Writes to `out` (room for isr_count) the ISR without those that have not caught up within lag_ms; answers
// how many are left, isr_count when nobody is to go or a proposal is under way.
int32_t partition_state_shrunk_isr(const struct partition_state *s, time_ms now, int64_t lag_ms,
                                   broker_id *out);
void partition_state_propose_expand(struct partition_state *s, broker_id id);
void partition_state_propose_shrink(struct partition_state *s, const broker_id *isr, int32_t isr_count);
// The proposal failed or its answer was lost for good: back to the committed ISR. A success comes by
// partition_state_apply.
void partition_state_drop_proposal(struct partition_state *s);

bool partition_state_in_isr(const struct partition_state *s, broker_id id);         // committed
bool partition_state_in_maximal_isr(const struct partition_state *s, broker_id id); // committed and proposed
// Members that an acks=all append needs: min(min.insync.replicas, replication factor).
int32_t partition_state_min_isr(const struct partition_state *s);
static inline bool partition_state_under_min_isr(const struct partition_state *s)
{
    return s->isr_count < partition_state_min_isr(s);
}
// Smallest log start of the live replicas: what DeleteRecords waits for.
log_offset partition_state_low_watermark(const struct partition_state *s);

#endif
