// SPDX-License-Identifier: Apache-2.0
// OffsetForLeaderEpoch: where an epoch ended; consumers detect truncation by it (KIP-101, KIP-320).
#include "core/protocol/gen/offset_for_leader_epoch_request.h"
#include "core/protocol/gen/offset_for_leader_epoch_response.h"
#include "core/server/api.h"
#include "core/server/partition_lookup.h"

typedef struct kp_offset_for_leader_epoch_response_epoch_end_offset partition_answer;

static void answer(struct request *rq, struct slice topic,
                   const struct kp_offset_for_leader_epoch_request_offset_for_leader_partition *in,
                   bool leader_only, partition_answer *a)
{
    kp_offset_for_leader_epoch_response_epoch_end_offset_init(a);
    a->partition = in->partition;
    struct partition *p = partition_lookup(rq, topic, in->partition, ACL_DESCRIBE, &a->error_code);
    if (p == NULL) {
        return;
    }
    mutex_lock(&p->lock);
    a->error_code = partition_check_locked(p, in->current_leader_epoch, leader_only);
    if (a->error_code == KE_NONE &&
        !partition_end_of_epoch_locked(p, in->leader_epoch, &a->leader_epoch, &a->end_offset)) {
        a->leader_epoch = -1;
        a->end_offset = -1;
    }
    mutex_unlock(&p->lock);
    partition_unref(p);
}

static void handle(struct request *rq)
{
    struct kp_offset_for_leader_epoch_request *in = REQUEST_DECODE(rq, offset_for_leader_epoch_request);
    if (in == NULL) {
        return;
    }
    struct kp_offset_for_leader_epoch_response out;
    kp_offset_for_leader_epoch_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.topics_count = in->topics_count;
    out.topics = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *out.topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_offset_for_leader_epoch_response_offset_for_leader_topic_result *t = &out.topics[i];
        kp_offset_for_leader_epoch_response_offset_for_leader_topic_result_init(t);
        t->topic = in->topics[i].topic;
        t->partitions_count = in->topics[i].partitions_count;
        t->partitions = arena_alloc(&rq->arena, (size_t)t->partitions_count * sizeof *t->partitions);
        for (int32_t k = 0; k < t->partitions_count; k++) {
            answer(rq, t->topic, &in->topics[i].partitions[k], in->replica_id != -2, &t->partitions[k]);
        }
    }
    REQUEST_REPLY(rq, offset_for_leader_epoch_response, &out);
}

const struct request_api api_offset_for_leader_epoch = {
    .key = KP_API_OFFSET_FOR_LEADER_EPOCH,
    .version_min = KP_OFFSET_FOR_LEADER_EPOCH_REQUEST_MIN_VERSION,
    .version_max = KP_OFFSET_FOR_LEADER_EPOCH_REQUEST_MAX_VERSION,
    .advertised_min = KP_OFFSET_FOR_LEADER_EPOCH_REQUEST_MIN_VERSION,
    .on_broker = handle};
