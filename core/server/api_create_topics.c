// SPDX-License-Identifier: Apache-2.0
// CreateTopics (19): new topics, with placement and configs checked by the active controller.
#include "core/server/controller_api.h"

#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    struct kp_create_topics_response *out = op->out;
    kp_create_topics_response_init(out);
    controller_create_topics(c, op->in, true, out, records);
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

CONTROLLER_API(create_topics)

const struct request_api api_create_topics = {.key = KP_API_CREATE_TOPICS,
                                              .version_min = 2,
                                              .version_max = 7,
                                              .advertised_min = 2,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
