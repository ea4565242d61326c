// SPDX-License-Identifier: Apache-2.0
// CreatePartitions (37): more partitions for topics.
#include "core/server/controller_api.h"

#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"

// Alter on the topic.
static bool may(struct controller_op *op,
                const struct kp_create_partitions_request_create_partitions_topic *item)
{
    return authorize(op->rq->ctx, ACL_ALTER, ACL_TOPIC, item->name);
}

static void refuse(struct kp_create_partitions_response *out,
                   const struct kp_create_partitions_request_create_partitions_topic *item)
{
    struct kp_create_partitions_response_create_partitions_topic_result *t =
        &out->results[out->results_count++];
    kp_create_partitions_response_create_partitions_topic_result_init(t);
    t->name = item->name;
    t->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
}

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct kp_create_partitions_request *in = op->in;
    struct kp_create_partitions_response *out = op->out;
    struct kp_create_partitions_request *asked = arena_dup(op->arena, in, sizeof *in);
    asked->topics = arena_alloc(op->arena, ((size_t)in->topics_count + 1) * sizeof *in->topics);
    asked->topics_count = 0;
    for (int32_t i = 0; i < in->topics_count; i++)
        if (may(op, &in->topics[i]))
            asked->topics[asked->topics_count++] = in->topics[i];
    kp_create_partitions_response_init(out);
    controller_create_partitions(c, asked, out, records);
    if (asked->topics_count == in->topics_count)
        return;
    size_t room = (size_t)out->results_count + (size_t)in->topics_count;
    struct kp_create_partitions_response_create_partitions_topic_result *more =
        arena_alloc(op->arena, room * sizeof *more);
    if (out->results_count > 0)
        memcpy(more, out->results, (size_t)out->results_count * sizeof *more);
    out->results = more;
    for (int32_t i = 0; i < in->topics_count; i++)
        if (!may(op, &in->topics[i]))
            refuse(out, &in->topics[i]);
}

// Every topic of the request gets the error.
static void fail(struct controller_op *op, enum kafka_error error)
{
    const struct kp_create_partitions_request *in = op->in;
    struct kp_create_partitions_response *out = op->out;
    kp_create_partitions_response_init(out);
    out->results =
        arena_alloc(op->arena, (size_t)(in->topics_count > 0 ? in->topics_count : 1) * sizeof *out->results);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_create_partitions_response_create_partitions_topic_result *t =
            &out->results[out->results_count++];
        kp_create_partitions_response_create_partitions_topic_result_init(t);
        t->name = in->topics[i].name;
        t->error_code = (int16_t)error;
    }
}

CONTROLLER_API(create_partitions, 0)

const struct request_api api_create_partitions = {.key = KP_API_CREATE_PARTITIONS,
                                                  .version_min = 0,
                                                  .version_max = 3,
                                                  .advertised_min = 0,
                                                  .on_broker = forward_handler,
                                                  .on_controller = handle_on_controller};
