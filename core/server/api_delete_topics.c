// SPDX-License-Identifier: Apache-2.0
// DeleteTopics (20): removes topics by name or id; brokers delete the files later.
#include "core/server/controller_api.h"

#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"

CONTROLLER_API_DECIDE_VERSION(delete_topics, controller_delete_topics)

static void add_failed(struct kp_delete_topics_response *out, struct slice name, struct uuid id,
                       enum kafka_error error)
{
    struct kp_delete_topics_response_deletable_topic_result *t = &out->responses[out->responses_count++];
    kp_delete_topics_response_deletable_topic_result_init(t);
    t->name = name;
    t->topic_id = id;
    t->error_code = (int16_t)error;
}

// Every topic of the request gets the error.
static void fail(struct controller_op *op, enum kafka_error error)
{
    const struct kp_delete_topics_request *in = op->in;
    struct kp_delete_topics_response *out = op->out;
    kp_delete_topics_response_init(out);
    size_t count = (size_t)in->topics_count + (size_t)in->topic_names_count;
    out->responses = arena_alloc(op->arena, (count + 1) * sizeof *out->responses);
    for (int32_t i = 0; i < in->topic_names_count; i++)
        add_failed(out, in->topic_names[i], UUID_ZERO, error);
    for (int32_t i = 0; i < in->topics_count; i++)
        add_failed(out, in->topics[i].name, in->topics[i].topic_id, error);
}

CONTROLLER_API(delete_topics)

const struct request_api api_delete_topics = {.key = KP_API_DELETE_TOPICS,
                                              .version_min = 1,
                                              .version_max = 6,
                                              .advertised_min = 1,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
