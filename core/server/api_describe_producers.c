// SPDX-License-Identifier: Apache-2.0
// DescribeProducers: what a partition remembers of its idempotent and transactional producers (KIP-664).
#include "core/protocol/gen/describe_producers_request.h"
#include "core/protocol/gen/describe_producers_response.h"
#include "core/server/api.h"
#include "core/server/error_map.h"
#include "core/server/partition_lookup.h"

typedef struct kp_describe_producers_response_partition_response partition_answer;

static void answer(struct request *rq, struct slice topic, partition_id index, partition_answer *a)
{
    kp_describe_producers_response_partition_response_init(a);
    a->partition_index = index;
    struct partition *p = partition_lookup(rq, topic, index, ACL_READ, &a->error_code);
    if (p == NULL) {
        return;
    }
    mutex_lock(&p->lock);
    a->error_code = partition_check_locked(p, -1, true);
    if (a->error_code == KE_NONE) {
        a->error_code = (int16_t)error_map(plog_load(p->log, NULL));
    }
    if (a->error_code == KE_NONE) {
        struct producer_states *states = plog_producers(p->log);
        unsigned n = producer_states_count(states);
        a->active_producers = arena_alloc(&rq->arena, n * sizeof *a->active_producers);
        for (unsigned i = 0; i < n; i++) {
            const struct producer_entry *e = producer_states_at(states, i);
            struct kp_describe_producers_response_producer_state *to =
                &a->active_producers[a->active_producers_count++];
            kp_describe_producers_response_producer_state_init(to);
            to->producer_id = e->producer_id;
            to->producer_epoch = e->producer_epoch;
            to->last_sequence = e->batches_count > 0 ? e->batches[e->batches_count - 1].last_sequence : -1;
            to->last_timestamp = e->last_timestamp;
            to->coordinator_epoch = e->coordinator_epoch;
            to->current_txn_start_offset = e->txn_first_offset;
        }
    }
    mutex_unlock(&p->lock);
    partition_unref(p);
}

static void handle(struct request *rq)
{
    struct kp_describe_producers_request *in = REQUEST_DECODE(rq, describe_producers_request);
    if (in == NULL) {
        return;
    }
    struct kp_describe_producers_response out;
    kp_describe_producers_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.topics_count = in->topics_count;
    out.topics = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *out.topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_describe_producers_response_topic_response *t = &out.topics[i];
        kp_describe_producers_response_topic_response_init(t);
        t->name = in->topics[i].name;
        t->partitions_count = in->topics[i].partition_indexes_count;
        t->partitions = arena_alloc(&rq->arena, (size_t)t->partitions_count * sizeof *t->partitions);
        for (int32_t k = 0; k < t->partitions_count; k++) {
            answer(rq, t->name, in->topics[i].partition_indexes[k], &t->partitions[k]);
        }
    }
    REQUEST_REPLY(rq, describe_producers_response, &out);
}

const struct request_api api_describe_producers = {.key = KP_API_DESCRIBE_PRODUCERS,
                                                   .version_min = 0,
                                                   .version_max = KP_DESCRIBE_PRODUCERS_REQUEST_MAX_VERSION,
                                                   .on_broker = handle};
