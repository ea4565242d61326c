// SPDX-License-Identifier: Apache-2.0
// A read of a partition for a consumer or a follower: epoch checks, divergence, bounds, the range of bytes.
#include "core/base/mem.h"
#include "core/server/error_map.h"
#include "core/server/partition.h"
#include "core/server/partition_wake.h"

static void refuse(struct partition_read *out, int16_t error)
{
    out->error = error;
    out->high_watermark = out->last_stable = -1;
    out->log_start = -1;
}

bool partition_end_of_epoch_locked(struct partition *p, leader_epoch epoch, leader_epoch *found,
                                   log_offset *end)
{
    if (epoch < 0 || epoch > plog_last_epoch(p->log)) {
        return false;
    }
    if (plog_end_of_epoch(p->log, epoch, found, end)) {
        return true;
    }
    // Older than anything here: it ended where the first known epoch began.
    *found = epoch;
    *end = plog_start_after_epoch(p->log, epoch);
    return *end >= 0;
}

// KIP-595: the asker's last epoch ends earlier here than where it stands. True: told so (or refused).
static bool diverges(struct partition *p, const struct partition_read_args *args, struct partition_read *out)
{
    if (args->last_epoch < 0) {
        return false;
    }
    leader_epoch found = -1;
    log_offset end = -1;
    if (!partition_end_of_epoch_locked(p, args->last_epoch, &found, &end)) {
        refuse(out, KE_OFFSET_OUT_OF_RANGE);
        return true;
    }
    if (found < args->last_epoch || end < args->offset) {
        out->diverging_epoch = found;
        out->diverging_end = end;
        return true;
    }
    return false;
}

static void read_bytes(struct partition *p, const struct partition_read_args *args,
                       struct partition_read *out)
{
    struct plog_read_args r = {.offset = args->offset,
                               .bound = out->bound,
                               .max_bytes = args->max_bytes,
                               .min_one = args->min_one,
                               .nowait = !args->wait};
    if (args->max_bytes == 0 && !args->min_one) {
        return;
    }
    int err = plog_read(p->log, &r, &out->range, NULL);
    if (err == ERR_AGAIN) {
        out->cold = true;
    } else if (err != 0) {
        refuse(out, (int16_t)error_map(err));
    } else if (args->committed && out->range.len > 0) {
        err = plog_aborted_in(p->log, args->offset, out->range.next_offset, &out->aborted,
                              &out->aborted_count, NULL);
        if (err != 0) {
            plog_range_release(&out->range);
            out->range = (struct plog_range){0};
            refuse(out, (int16_t)error_map(err));
        }
    }
}

void partition_read(struct partition *p, const struct partition_read_args *args, time_ms now,
                    struct partition_read *out, struct wake_list *wl)
{
    *out = (struct partition_read){
        .high_watermark = -1, .last_stable = -1, .log_start = -1, .diverging_epoch = -1, .diverging_end = -1};
    mutex_lock(&p->lock);
    bool follower = args->replica >= 0;
    out->leader = p->state.leader;
    out->epoch = p->state.epoch;
    int16_t error = partition_check_locked(p, args->current_epoch, follower || !args->any_replica);
    if (error == KE_NONE && follower) {
        bool known = false;
        for (int32_t i = 0; i < p->state.replicas_count; i++) {
            known |= p->state.replicas[i] == args->replica;
        }
        known &= args->replica != p->state.self;
        // One that knows our epoch is ahead of us in metadata: it shall ask again.
        error = known                      ? KE_NONE
                : args->current_epoch >= 0 ? KE_UNKNOWN_LEADER_EPOCH
                                           : KE_NOT_LEADER_OR_FOLLOWER;
    }
    if (error == KE_NONE && !plog_is_loaded(p->log) && plog_end_offset(p->log) > 0) {
        error = (int16_t)error_map(plog_load(p->log, NULL));
    }
    if (error != KE_NONE) {
        refuse(out, error);
        mutex_unlock(&p->lock);
        return;
    }
    out->high_watermark = p->state.high_watermark;
    out->last_stable = plog_last_stable(p->log, p->state.high_watermark);
    out->log_start = p->state.log_start;
    out->bound = follower ? p->state.log_end : args->committed ? out->last_stable : out->high_watermark;
    // An offset below the start wins over divergence.
    if (args->offset < p->state.log_start || args->offset > p->state.log_end) {
        refuse(out, KE_OFFSET_OUT_OF_RANGE);
    } else if (!diverges(p, args, out)) {
        if (follower && partition_state_fetched(&p->state, args->replica, args->replica_epoch, args->offset,
                                                args->replica_log_start, now)) {
            partition_high_watermark_moved_locked(p, 0, wl);
            out->high_watermark = p->state.high_watermark;
        }
        if (args->offset < out->bound) {
            read_bytes(p, args, out);
        }
    }
    mutex_unlock(&p->lock);
}
