// SPDX-License-Identifier: Apache-2.0
// FetchSnapshot (59): pieces of a snapshot of the metadata log (KIP-630).
#include "core/server/controller_node.h"

#include "core/protocol/gen/fetch_snapshot_request.h"
#include "core/protocol/gen/fetch_snapshot_response.h"

#define SNAPSHOT_BYTES_MAX (1024 * 1024) // most bytes of one answer

typedef struct kp_fetch_snapshot_request_partition_snapshot asked_partition;
typedef struct kp_fetch_snapshot_response_partition_snapshot answered_partition;

static void answer_top(struct request *rq, enum kafka_error error)
{
    struct kp_fetch_snapshot_response out;
    kp_fetch_snapshot_response_init(&out);
    out.error_code = (int16_t)error;
    REQUEST_REPLY(rq, fetch_snapshot_response, &out);
}

static enum kafka_error read_piece(struct quorum *q, const asked_partition *in, int32_t bytes_max,
                                   answered_partition *p, struct rope *bytes)
{
    struct quorum_snapshot_id id = {in->snapshot_id.end_offset, in->snapshot_id.epoch};
    uint64_t size = 0;
    if (in->partition != 0)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (in->current_leader_epoch > quorum_term(q))
        return KE_UNKNOWN_LEADER_EPOCH;
    if (in->position < 0)
        return KE_POSITION_OUT_OF_RANGE;
    uint32_t max =
        bytes_max <= 0 || bytes_max > SNAPSHOT_BYTES_MAX ? SNAPSHOT_BYTES_MAX : (uint32_t)bytes_max;
    int err = quorum_read_snapshot(q, &id, (uint64_t)in->position, max, bytes, &size);
    if (err != 0)
        return err == ERR_NOTFOUND ? KE_SNAPSHOT_NOT_FOUND
               : err == ERR_RANGE  ? KE_POSITION_OUT_OF_RANGE
                                   : KE_KAFKA_STORAGE_ERROR;
    p->size = (int64_t)size;
    p->position = in->position;
    return KE_NONE;
}

static void handle_on_controller(struct request *rq)
{
    struct kp_fetch_snapshot_request *in = REQUEST_DECODE(rq, fetch_snapshot_request);
    if (!in)
        return;
    struct controller_node *cn = rq->listener->controller_node;
    struct quorum *q = controller_node_quorum(cn);
    if (!authorize(rq->ctx, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer_top(rq, KE_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    if (!slice_is_null(in->cluster_id) &&
        !slice_equal(in->cluster_id, controller_node_opts_of(cn)->cluster_id)) {
        answer_top(rq, KE_INCONSISTENT_CLUSTER_ID);
        return;
    }
    if (in->topics_count != 1 || in->topics[0].partitions_count != 1 ||
        !slice_equal_str(in->topics[0].name, "__cluster_metadata")) {
        answer_top(rq, KE_UNKNOWN_TOPIC_OR_PARTITION);
        return;
    }
    const asked_partition *asked = &in->topics[0].partitions[0];
    struct kp_fetch_snapshot_response out;
    struct kp_fetch_snapshot_response_topic_snapshot topic;
    answered_partition p;
    kp_fetch_snapshot_response_init(&out);
    kp_fetch_snapshot_response_topic_snapshot_init(&topic);
    kp_fetch_snapshot_response_partition_snapshot_init(&p);
    out.topics = &topic;
    out.topics_count = 1;
    topic.name = in->topics[0].name;
    topic.partitions = &p;
    topic.partitions_count = 1;
    struct rope bytes;
    rope_init(&bytes);
    p.index = asked->partition;
    p.snapshot_id.end_offset = asked->snapshot_id.end_offset;
    p.snapshot_id.epoch = asked->snapshot_id.epoch;
    p.error_code = (int16_t)read_piece(q, asked, in->max_bytes, &p, &bytes);
    p.unaligned_records.bytes = SLICE_LIT("");
    if (p.error_code == KE_NONE && bytes.len > 0)
        p.unaligned_records.rope = &bytes;
    p.current_leader.leader_id = quorum_leader(q);
    p.current_leader.leader_epoch = quorum_term(q);
    REQUEST_REPLY(rq, fetch_snapshot_response, &out);
    rope_clear(&bytes);
}

const struct request_api api_fetch_snapshot = {.key = KP_API_FETCH_SNAPSHOT,
                                               .version_min = 0,
                                               .version_max = 1,
                                               .advertised_min = 0,
                                               .on_controller = handle_on_controller};
