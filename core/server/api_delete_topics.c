// SPDX-License-Identifier: Apache-2.0
// DeleteTopics (20): removes topics by name or id; brokers delete the files later.
#include "core/server/controller_api.h"

#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"

static void add_failed(struct kp_delete_topics_response *out, struct slice name, struct uuid id,
                       enum kafka_error error)
{
    struct kp_delete_topics_response_deletable_topic_result *t = &out->responses[out->responses_count++];
    kp_delete_topics_response_deletable_topic_result_init(t);
    t->name = name;
    t->topic_id = id;
    t->error_code = (int16_t)error;
}

// Delete on the topic. One that is named by id and may not even be described is not told apart from one that
// is not there.
static enum kafka_error judge(struct controller_op *op, const struct image *image, struct slice name,
                              struct uuid id)
{
    const struct image_topic *t = slice_is_null(name) ? image_topic(image, id) : NULL;
    struct slice known = t ? topic_name(t) : name;
    if (slice_is_null(known)) // unknown id: the decider says so
        return KE_NONE;
    if (t && !authorize(op->rq->ctx, ACL_DESCRIBE, ACL_TOPIC, known))
        return KE_UNKNOWN_TOPIC_ID;
    return authorize(op->rq->ctx, ACL_DELETE, ACL_TOPIC, known) ? KE_NONE : KE_TOPIC_AUTHORIZATION_FAILED;
}

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct kp_delete_topics_request *in = op->in;
    struct kp_delete_topics_response *out = op->out;
    struct kp_delete_topics_response refused = {.responses_count = 0};
    struct kp_delete_topics_request *asked = arena_dup(op->arena, in, sizeof *in);
    size_t count = (size_t)in->topics_count + (size_t)in->topic_names_count;
    refused.responses = arena_alloc(op->arena, (count + 1) * sizeof *refused.responses);
    asked->topics = arena_alloc(op->arena, ((size_t)in->topics_count + 1) * sizeof *asked->topics);
    asked->topic_names =
        arena_alloc(op->arena, ((size_t)in->topic_names_count + 1) * sizeof *asked->topic_names);
    asked->topics_count = asked->topic_names_count = 0;
    for (int32_t i = 0; i < in->topic_names_count; i++) {
        enum kafka_error error = judge(op, c->image, in->topic_names[i], UUID_ZERO);
        if (error == KE_NONE)
            asked->topic_names[asked->topic_names_count++] = in->topic_names[i];
        else
            add_failed(&refused, in->topic_names[i], UUID_ZERO, error);
    }
    for (int32_t i = 0; i < in->topics_count; i++) {
        enum kafka_error error = judge(op, c->image, in->topics[i].name, in->topics[i].topic_id);
        if (error == KE_NONE)
            asked->topics[asked->topics_count++] = in->topics[i];
        else
            add_failed(&refused, in->topics[i].name, in->topics[i].topic_id, error);
    }
    kp_delete_topics_response_init(out);
    controller_delete_topics(c, asked, op->rq->version, out, records);
    if (refused.responses_count == 0)
        return;
    size_t room = (size_t)out->responses_count + (size_t)refused.responses_count;
    struct kp_delete_topics_response_deletable_topic_result *all = arena_alloc(op->arena, room * sizeof *all);
    if (out->responses_count > 0)
        memcpy(all, out->responses, (size_t)out->responses_count * sizeof *all);
    memcpy(all + out->responses_count, refused.responses, (size_t)refused.responses_count * sizeof *all);
    out->responses = all;
    out->responses_count = (int32_t)room;
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

CONTROLLER_API(delete_topics, 0)

const struct request_api api_delete_topics = {.key = KP_API_DELETE_TOPICS,
                                              .version_min = 1,
                                              .version_max = 6,
                                              .advertised_min = 1,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
