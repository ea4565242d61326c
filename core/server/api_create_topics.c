// SPDX-License-Identifier: Apache-2.0
// CreateTopics (19): new topics, with placement and configs checked by the active controller.
#include "core/server/controller_api.h"

#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"

// Create on the cluster, or on the topic.
static bool may(struct controller_op *op, const struct kp_create_topics_request_creatable_topic *item)
{
    return authorize(op->rq->ctx, ACL_CREATE, ACL_CLUSTER, ACL_CLUSTER_NAME) ||
           authorize(op->rq->ctx, ACL_CREATE, ACL_TOPIC, item->name);
}

static void refuse(struct kp_create_topics_response *out,
                   const struct kp_create_topics_request_creatable_topic *item)
{
    struct kp_create_topics_response_creatable_topic_result *t = &out->topics[out->topics_count++];
    kp_create_topics_response_creatable_topic_result_init(t);
    t->name = item->name;
    t->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
}

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct kp_create_topics_request *in = op->in;
    struct kp_create_topics_response *out = op->out;
    struct kp_create_topics_request *asked = arena_dup(op->arena, in, sizeof *in);
    asked->topics = arena_alloc(op->arena, ((size_t)in->topics_count + 1) * sizeof *in->topics);
    asked->topics_count = 0;
    for (int32_t i = 0; i < in->topics_count; i++)
        if (may(op, &in->topics[i]))
            asked->topics[asked->topics_count++] = in->topics[i];
    kp_create_topics_response_init(out);
    bool describe = true;
    for (int32_t i = 0; i < asked->topics_count; i++)
        describe &= authorize(op->rq->ctx, ACL_DESCRIBE_CONFIGS, ACL_TOPIC, asked->topics[i].name);
    controller_create_topics(c, asked, describe, out, records);
    if (asked->topics_count == in->topics_count)
        return;
    size_t room = (size_t)out->topics_count + (size_t)in->topics_count;
    struct kp_create_topics_response_creatable_topic_result *more =
        arena_alloc(op->arena, room * sizeof *more);
    if (out->topics_count > 0)
        memcpy(more, out->topics, (size_t)out->topics_count * sizeof *more);
    out->topics = more;
    for (int32_t i = 0; i < in->topics_count; i++)
        if (!may(op, &in->topics[i]))
            refuse(out, &in->topics[i]);
}

// Every topic of the request gets the error.
static void fail(struct controller_op *op, enum kafka_error error)
{
    const struct kp_create_topics_request *in = op->in;
    struct kp_create_topics_response *out = op->out;
    kp_create_topics_response_init(out);
    out->topics =
        arena_alloc(op->arena, (size_t)(in->topics_count > 0 ? in->topics_count : 1) * sizeof *out->topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_create_topics_response_creatable_topic_result *t = &out->topics[out->topics_count++];
        kp_create_topics_response_creatable_topic_result_init(t);
        t->name = in->topics[i].name;
        t->error_code = (int16_t)error;
    }
}

CONTROLLER_API(create_topics, 0)

const struct request_api api_create_topics = {.key = KP_API_CREATE_TOPICS,
                                              .version_min = 2,
                                              .version_max = 7,
                                              .advertised_min = 2,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
