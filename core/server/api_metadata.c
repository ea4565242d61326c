// SPDX-License-Identifier: Apache-2.0
// Metadata: brokers, topics, leaders; creates missing topics where that is allowed.
//
// Null topics = all, empty = none (version 0: empty = all). A topic that is missing is asked of the
// controller when both the client and the broker allow it; the answer then tells LEADER_NOT_AVAILABLE or what
// the controller said, and the client asks again.
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"
#include "core/protocol/gen/metadata_request.h"
#include "core/protocol/gen/metadata_response.h"

typedef struct kp_metadata_response_metadata_response_topic topic_answer;
typedef struct kp_metadata_response_metadata_response_partition partition_answer;

#define OPERATIONS_FROM 8     // version with authorized operations
#define LISTENER_ERROR_FROM 6 // version that knows LISTENER_NOT_FOUND
#define IDS_FROM 10           // version with topic ids
#define BY_ID_FROM 12         // version that finds topics by id
#define AUTO_CREATE_FROM 4    // version that may forbid creation

struct metadata_op {
    struct kp_metadata_request *in;  // as asked
    struct kp_metadata_response out; // the answer
    struct slice *missing;           // names to create
    int32_t *missing_at;             // their topics in the answer
    unsigned missing_count;          // number of them
};

static void answer_brokers(struct request *rq, struct kp_metadata_response *out, const struct image *image)
{
    out->brokers = arena_alloc(&rq->arena, (size_t)image_broker_count(image) * sizeof *out->brokers);
    for (const struct image_broker *b = image_broker_next(image, NULL); b != NULL;
         b = image_broker_next(image, b)) {
        const struct image_endpoint *e = cluster_view_endpoint(b, rq->ctx->listener_name);
        if (b->fenced || e == NULL) {
            continue;
        }
        struct kp_metadata_response_metadata_response_broker *to = &out->brokers[out->brokers_count++];
        kp_metadata_response_metadata_response_broker_init(to);
        to->node_id = b->id;
        to->host = e->host;
        to->port = e->port;
        to->rack = b->rack;
    }
}

static void answer_partition(struct request *rq, const struct image *image, const struct image_partition *p,
                             partition_id index, partition_answer *to)
{
    kp_metadata_response_metadata_response_partition_init(to);
    to->partition_index = index;
    to->error_code = cluster_view_partition(image, p, rq->ctx->listener_name,
                                            rq->version >= LISTENER_ERROR_FROM, &to->leader_id);
    to->leader_epoch = p->epoch;
    to->replica_nodes = cluster_view_ids(rq, partition_replicas(p), p->replicas_count);
    to->replica_nodes_count = p->replicas_count;
    to->isr_nodes = cluster_view_ids(rq, partition_isr(p), p->isr_count);
    to->isr_nodes_count = p->isr_count;
    to->offline_replicas = cluster_view_offline(rq, image, p, &to->offline_replicas_count);
}

static void answer_topic(struct request *rq, const struct metadata_op *op, const struct image *image,
                         const struct image_topic *t, topic_answer *to)
{
    kp_metadata_response_metadata_response_topic_init(to);
    to->name = topic_name(t);
    to->topic_id = topic_id(t);
    to->is_internal = cluster_view_internal(to->name);
    if (op->in->include_topic_authorized_operations) {
        to->topic_authorized_operations = cluster_view_topic_operations();
    }
    to->partitions_count = topic_partition_count(t);
    to->partitions = arena_alloc(&rq->arena, (size_t)to->partitions_count * sizeof *to->partitions);
    int32_t n = 0;
    for (int32_t i = 0; i < to->partitions_count; i++) {
        const struct image_partition *p = topic_partition(t, i);
        if (p != NULL) {
            answer_partition(rq, image, p, i, &to->partitions[n++]);
        }
    }
    to->partitions_count = n;
}

static void answer_all(struct request *rq, struct metadata_op *op, const struct image *image)
{
    op->out.topics = arena_alloc(&rq->arena, (size_t)image_topic_count(image) * sizeof *op->out.topics);
    for (const struct image_topic *t = image_topic_next(image, NULL); t != NULL;
         t = image_topic_next(image, t)) {
        if (authorize(rq->ctx, ACL_DESCRIBE, ACL_TOPIC, topic_name(t))) {
            answer_topic(rq, op, image, t, &op->out.topics[op->out.topics_count++]);
        }
    }
}

static void answer_named(struct request *rq, struct metadata_op *op, const struct image *image)
{
    const struct kp_metadata_request *in = op->in;
    bool may_create = (rq->version < AUTO_CREATE_FROM || in->allow_auto_topic_creation) &&
                      request_broker(rq)->settings.auto_create_topics && request_broker(rq)->ops != NULL &&
                      request_broker(rq)->ops->auto_create_topics != NULL;
    size_t n = (size_t)in->topics_count;
    op->out.topics = arena_alloc(&rq->arena, n * sizeof *op->out.topics);
    op->missing = arena_alloc(&rq->arena, n * sizeof *op->missing);
    op->missing_at = arena_alloc(&rq->arena, n * sizeof *op->missing_at);
    for (int32_t i = 0; i < in->topics_count; i++) {
        const struct kp_metadata_request_metadata_request_topic *asked = &in->topics[i];
        bool by_id = rq->version >= IDS_FROM && slice_is_null(asked->name);
        const struct image_topic *t =
            by_id ? image_topic(image, asked->topic_id) : image_topic_named(image, asked->name);
        topic_answer *to = &op->out.topics[op->out.topics_count++];
        bool told = (by_id && t == NULL) ||
                    authorize(rq->ctx, ACL_DESCRIBE, ACL_TOPIC, by_id ? topic_name(t) : asked->name);
        if (t != NULL && told) {
            answer_topic(rq, op, image, t, to);
            continue;
        }
        kp_metadata_response_metadata_response_topic_init(to);
        to->name = asked->name;
        to->topic_id = asked->topic_id;
        to->is_internal = !by_id && cluster_view_internal(asked->name);
        if (told && !by_id && in->include_topic_authorized_operations) {
            to->topic_authorized_operations = cluster_view_topic_operations();
        }
        if (!told) {
            to->error_code = by_id ? KE_UNKNOWN_TOPIC_ID : KE_TOPIC_AUTHORIZATION_FAILED;
        } else if (by_id) {
            to->error_code = KE_UNKNOWN_TOPIC_ID;
        } else if (!cluster_view_valid_name(asked->name)) {
            to->error_code = KE_INVALID_TOPIC_EXCEPTION;
        } else {
            to->error_code = KE_UNKNOWN_TOPIC_OR_PARTITION;
            if (may_create && (authorize(rq->ctx, ACL_CREATE, ACL_CLUSTER, ACL_CLUSTER_NAME) ||
                               authorize(rq->ctx, ACL_CREATE, ACL_TOPIC, asked->name))) {
                op->missing[op->missing_count] = asked->name;
                op->missing_at[op->missing_count++] = op->out.topics_count - 1;
            }
        }
    }
}

static void created(struct request *rq, const int16_t *errors, unsigned count)
{
    struct metadata_op *op = rq->state;
    for (unsigned i = 0; i < count && i < op->missing_count; i++) {
        topic_answer *to = &op->out.topics[op->missing_at[i]];
        // Made, or made by somebody else meanwhile: the client asks again for its leader.
        bool there =
            errors[i] == KE_NONE || errors[i] == KE_TOPIC_ALREADY_EXISTS || errors[i] == KE_REQUEST_TIMED_OUT;
        to->error_code =
            there ? (rq->version == 0 ? KE_UNKNOWN_TOPIC_OR_PARTITION : KE_LEADER_NOT_AVAILABLE) : errors[i];
        if (errors[i] == KE_POLICY_VIOLATION || errors[i] == KE_INVALID_REPLICATION_FACTOR ||
            errors[i] == KE_INVALID_PARTITIONS) {
            to->error_code = errors[i];
        }
    }
    REQUEST_REPLY(rq, metadata_response, &op->out);
}

// Versions 10 and 11 have the field of the topic id, but do not look topics up by it.
static bool asks_by_id_too_early(const struct request *rq, const struct kp_metadata_request *in)
{
    for (int32_t i = 0; rq->version >= IDS_FROM && rq->version < BY_ID_FROM && i < in->topics_count; i++) {
        if (slice_is_null(in->topics[i].name) || !uuid_is_zero(in->topics[i].topic_id)) {
            return true;
        }
    }
    return false;
}

static void refuse(struct request *rq, const struct kp_metadata_request *in, int16_t error)
{
    struct kp_metadata_response out;
    kp_metadata_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.topics = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *out.topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        topic_answer *to = &out.topics[out.topics_count++];
        kp_metadata_response_metadata_response_topic_init(to);
        to->error_code = error;
        to->name = in->topics[i].name;
        to->topic_id = in->topics[i].topic_id;
    }
    REQUEST_REPLY(rq, metadata_response, &out);
}

static void handle(struct request *rq)
{
    struct kp_metadata_request *in = REQUEST_DECODE(rq, metadata_request);
    if (in == NULL) {
        return;
    }
    if (asks_by_id_too_early(rq, in)) {
        refuse(rq, in, KE_INVALID_REQUEST);
        return;
    }
    const struct image *image = request_image(rq);
    struct metadata_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->in = in;
    kp_metadata_response_init(&op->out);
    op->out.throttle_time_ms = rq->throttle_ms;
    op->out.cluster_id = slice_str(rq->listener->cluster_id);
    op->out.controller_id = cluster_view_controller(rq, image);
    if (in->include_cluster_authorized_operations) {
        op->out.cluster_authorized_operations = cluster_view_cluster_operations();
    }
    answer_brokers(rq, &op->out, image);
    if (in->topics_count < 0 || (rq->version == 0 && in->topics_count == 0)) {
        answer_all(rq, op, image);
    } else {
        answer_named(rq, op, image);
    }
    if (op->missing_count > 0) {
        rq->state = op;
        struct broker *b = request_broker(rq);
        b->ops->auto_create_topics(b, rq, op->missing, op->missing_count, created);
        return;
    }
    REQUEST_REPLY(rq, metadata_response, &op->out);
}

const struct request_api api_metadata = {.key = KP_API_METADATA,
                                         .version_min = 0,
                                         .version_max = KP_METADATA_REQUEST_MAX_VERSION,
                                         .on_broker = handle};
