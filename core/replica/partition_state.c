// SPDX-License-Identifier: Apache-2.0
// Roles, ISR and high watermark of one partition replica, as a pure state machine.
#include "core/replica/partition_state.h"

#include "core/base/assert.h"
#include "core/base/mem.h"

#define HIGH_WATERMARK_LAG_MS                                                                                \
    30000 // caught up this recently keeps a replica that is not yet in the ISR in the high watermark

static bool contains(const broker_id *ids, int32_t count, broker_id id)
{
    for (int32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static void replace_ids(broker_id **to, int32_t *to_count, const broker_id *from, int32_t count)
{
    if (*to_count != count || *to == NULL) {
        *to = count > 0 ? mem_realloc(*to, (size_t)count * sizeof **to) : (mem_free(*to), NULL);
        *to_count = count;
    }
    for (int32_t i = 0; i < count; i++) {
        (*to)[i] = from[i];
    }
}

static struct replica_progress *find_other(const struct partition_state *s, broker_id id)
{
    for (int32_t i = 0; i < s->others_count; i++) {
        if (s->others[i].id == id) {
            return &s->others[i];
        }
    }
    return NULL;
}

void partition_state_init(struct partition_state *s, broker_id self, log_offset log_start, log_offset log_end,
                          log_offset high_watermark)
{
    MUST(log_start >= 0 && log_start <= log_end);
    *s = (struct partition_state){.role = REPLICA_NONE,
                                  .self = self,
                                  .leader = -1,
                                  .epoch = -1,
                                  .partition_epoch = -1,
                                  .min_isr = 1,
                                  .epoch_start = -1,
                                  .log_start = log_start,
                                  .log_end = log_end};
    s->high_watermark = high_watermark < log_start ? log_start
                        : high_watermark > log_end ? log_end
                                                   : high_watermark;
}

void partition_state_fini(struct partition_state *s)
{
    mem_free(s->replicas);
    mem_free(s->isr);
    mem_free(s->pending_isr);
    mem_free(s->others);
    *s = (struct partition_state){0};
}

bool partition_state_in_isr(const struct partition_state *s, broker_id id)
{
    return contains(s->isr, s->isr_count, id);
}

bool partition_state_in_maximal_isr(const struct partition_state *s, broker_id id)
{
    // While shrinking the committed ISR is the larger one, while expanding the proposed one.
    return partition_state_in_isr(s, id) || (s->isr_change == ISR_EXPANDING && s->pending_member == id);
}

int32_t partition_state_min_isr(const struct partition_state *s)
{
    return s->min_isr < s->replicas_count ? s->min_isr : s->replicas_count;
}

// KIP-966: nothing becomes visible while the ISR is below its minimum. Replicas that keep up count although
// they are not in the ISR yet, so that joining it is not a race against a moving mark.
static bool advance_high_watermark(struct partition_state *s, time_ms now)
{
    if (s->role != REPLICA_LEADER || partition_state_under_min_isr(s)) {
        return false;
    }
    log_offset mark = s->log_end;
    for (int32_t i = 0; i < s->others_count; i++) {
        const struct replica_progress *o = &s->others[i];
        bool keeps_up = o->eligible && o->caught_up_ms > 0 &&
                        now - o->caught_up_ms <= HIGH_WATERMARK_LAG_MS && o->epoch == o->registered_epoch;
        if ((keeps_up || partition_state_in_maximal_isr(s, o->id)) && o->log_end < mark) {
            mark = o->log_end;
        }
    }
    if (mark <= s->high_watermark) {
        return false;
    }
    s->high_watermark = mark;
    return true;
}

void partition_state_drop_proposal(struct partition_state *s)
{
    s->isr_change = ISR_SETTLED;
    s->pending_member = -1;
    mem_free(s->pending_isr);
    s->pending_isr = NULL;
    s->pending_isr_count = 0;
}

// Keeps what is known of replicas that stay; within an epoch their progress stays true.
static void rebuild_others(struct partition_state *s, bool new_epoch)
{
    struct replica_progress *old = s->others;
    int32_t old_count = s->others_count;
    int32_t count = 0;
    for (int32_t i = 0; i < s->replicas_count; i++) {
        count += s->replicas[i] != s->self;
    }
    struct replica_progress *fresh = count > 0 ? mem_calloc((size_t)count, sizeof *fresh) : NULL;
    int32_t at = 0;
    for (int32_t i = 0; i < s->replicas_count; i++) {
        if (s->replicas[i] == s->self) {
            continue;
        }
        struct replica_progress *o = &fresh[at++];
        *o = (struct replica_progress){.id = s->replicas[i],
                                       .epoch = -1,
                                       .registered_epoch = -1,
                                       .log_end = -1,
                                       .log_start = -1,
                                       .leader_end_at_fetch = -1};
        for (int32_t k = 0; k < old_count; k++) {
            if (old[k].id != o->id) {
                continue;
            }
            if (new_epoch) {
                o->eligible = old[k].eligible;
                o->registered_epoch = old[k].registered_epoch;
            } else {
                *o = old[k];
            }
        }
    }
    mem_free(old);
    s->others = fresh;
    s->others_count = count;
}

// Members of the ISR get the lag time anew from here, as they were in sync under the leader before.
static void start_lag_clocks(struct partition_state *s, time_ms now)
{
    for (int32_t i = 0; i < s->others_count; i++) {
        if (partition_state_in_isr(s, s->others[i].id)) {
            s->others[i].caught_up_ms = now;
        }
    }
}

enum partition_change partition_state_apply(struct partition_state *s, const struct partition_assignment *a,
                                            time_ms now)
{
    MUST(a->replicas_count >= 0 && a->isr_count >= 0);
    if (a->epoch < s->epoch || a->partition_epoch <= s->partition_epoch) {
        return PARTITION_CHANGE_NONE;
    }
    bool new_epoch = a->epoch > s->epoch || s->role == REPLICA_NONE;
    bool lead = a->leader == s->self;
    replace_ids(&s->replicas, &s->replicas_count, a->replicas, a->replicas_count);
    replace_ids(&s->isr, &s->isr_count, a->isr, a->isr_count);
    partition_state_drop_proposal(s);
    s->leader = a->leader;
    s->epoch = a->epoch;
    s->partition_epoch = a->partition_epoch;
    s->recovering = a->recovering;
    if (!new_epoch) {
        if (s->role == REPLICA_LEADER) {
            rebuild_others(s, false);
            (void)advance_high_watermark(s, now);
        }
        return PARTITION_CHANGE_ISR;
    }
    if (!lead) {
        s->role = REPLICA_FOLLOWER;
        s->epoch_start = -1;
        mem_free(s->others);
        s->others = NULL;
        s->others_count = 0;
        return PARTITION_CHANGE_FOLLOWER;
    }
    s->role = REPLICA_LEADER;
    s->epoch_start = s->log_end;
    rebuild_others(s, true);
    start_lag_clocks(s, now);
    (void)advance_high_watermark(s, now);
    return PARTITION_CHANGE_LEADER;
}

void partition_state_set_broker(struct partition_state *s, broker_id id, bool eligible,
                                broker_epoch registered_epoch)
{
    struct replica_progress *o = find_other(s, id);
    if (o != NULL) {
        o->eligible = eligible;
        o->registered_epoch = registered_epoch;
    }
}

bool partition_state_appended(struct partition_state *s, log_offset log_end, time_ms now)
{
    MUST(log_end >= s->log_end);
    s->log_end = log_end;
    return advance_high_watermark(s, now);
}

bool partition_state_set_min_isr(struct partition_state *s, int32_t min_isr, time_ms now)
{
    s->min_isr = min_isr;
    return advance_high_watermark(s, now);
}

bool partition_state_fetched(struct partition_state *s, broker_id id, broker_epoch epoch, log_offset offset,
                             log_offset follower_log_start, time_ms now)
{
    struct replica_progress *o = find_other(s, id);
    if (s->role != REPLICA_LEADER || o == NULL || offset > s->log_end || (epoch >= 0 && epoch < o->epoch)) {
        return false;
    }
    // Caught up is judged by what was there at the fetch before: a follower that keeps pace under load stays.
    if (offset >= s->log_end) {
        o->caught_up_ms = now;
    } else if (o->last_fetch_ms > 0 && offset >= o->leader_end_at_fetch && o->leader_end_at_fetch >= 0) {
        o->caught_up_ms = o->caught_up_ms > o->last_fetch_ms ? o->caught_up_ms : o->last_fetch_ms;
    }
    o->epoch = epoch;
    o->log_end = offset;
    o->log_start = follower_log_start;
    o->leader_end_at_fetch = s->log_end;
    o->last_fetch_ms = now;
    return advance_high_watermark(s, now);
}

bool partition_state_learned(struct partition_state *s, log_offset log_end, log_offset high_watermark)
{
    MUST(log_end >= s->log_end);
    s->log_end = log_end;
    log_offset mark = high_watermark < log_end ? high_watermark : log_end;
    if (mark <= s->high_watermark) {
        return false;
    }
    s->high_watermark = mark;
    return true;
}

void partition_state_truncated(struct partition_state *s, log_offset log_end)
{
    s->log_end = log_end;
    if (s->log_start > log_end) {
        s->log_start = log_end;
    }
    if (s->high_watermark > log_end) {
        s->high_watermark = log_end;
    }
}

bool partition_state_log_start(struct partition_state *s, log_offset log_start)
{
    if (log_start <= s->log_start) {
        return false;
    }
    s->log_start = log_start;
    if (s->log_end < log_start) {
        s->log_end = log_start;
    }
    if (s->high_watermark >= log_start) {
        return false;
    }
    s->high_watermark = log_start;
    return true;
}

bool partition_state_may_expand(const struct partition_state *s, broker_id id)
{
    const struct replica_progress *o = find_other(s, id);
    return s->role == REPLICA_LEADER && o != NULL && s->isr_change == ISR_SETTLED && !s->recovering &&
           !partition_state_in_isr(s, id) && o->eligible &&
           (o->epoch == -1 || o->epoch == o->registered_epoch) && o->log_end >= s->high_watermark &&
           o->log_end >= s->epoch_start;
}

int32_t partition_state_shrunk_isr(const struct partition_state *s, time_ms now, int64_t lag_ms,
                                   broker_id *out)
{
    int32_t left = 0;
    for (int32_t i = 0; i < s->isr_count; i++) {
        const struct replica_progress *o = find_other(s, s->isr[i]);
        bool lags = o != NULL && o->log_end != s->log_end && now - o->caught_up_ms > lag_ms;
        if (!lags || s->isr_change != ISR_SETTLED || s->role != REPLICA_LEADER) {
            out[left++] = s->isr[i];
        }
    }
    return left;
}

void partition_state_propose_expand(struct partition_state *s, broker_id id)
{
    MUST(s->isr_change == ISR_SETTLED);
    s->isr_change = ISR_EXPANDING;
    s->pending_member = id;
}

void partition_state_propose_shrink(struct partition_state *s, const broker_id *isr, int32_t isr_count)
{
    MUST(s->isr_change == ISR_SETTLED);
    s->isr_change = ISR_SHRINKING;
    replace_ids(&s->pending_isr, &s->pending_isr_count, isr, isr_count);
}

log_offset partition_state_low_watermark(const struct partition_state *s)
{
    log_offset low = s->log_start;
    for (int32_t i = 0; i < s->others_count; i++) {
        if (s->others[i].eligible && s->others[i].log_start < low) {
            low = s->others[i].log_start;
        }
    }
    return low;
}
