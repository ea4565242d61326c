// SPDX-License-Identifier: Apache-2.0
// IncrementalAlterConfigs (44): sets, deletes, appends and subtracts single keys (KIP-339).
#include "core/server/controller_api.h"

#include "core/protocol/gen/incremental_alter_configs_request.h"
#include "core/protocol/gen/incremental_alter_configs_response.h"

// AlterConfigs on the topic or group, else on the cluster.
static bool may(struct controller_op *op,
                const struct kp_incremental_alter_configs_request_alter_configs_resource *item)
{
    if (item->resource_type == CONFIG_RESOURCE_TOPIC)
        return authorize(op->rq->ctx, ACL_ALTER_CONFIGS, ACL_TOPIC, item->resource_name);
    if (item->resource_type == CONFIG_RESOURCE_GROUP)
        return authorize(op->rq->ctx, ACL_ALTER_CONFIGS, ACL_GROUP, item->resource_name);
    return authorize(op->rq->ctx, ACL_ALTER_CONFIGS, ACL_CLUSTER, ACL_CLUSTER_NAME);
}

static void refuse(struct kp_incremental_alter_configs_response *out,
                   const struct kp_incremental_alter_configs_request_alter_configs_resource *item)
{
    struct kp_incremental_alter_configs_response_alter_configs_resource_response *t =
        &out->responses[out->responses_count++];
    kp_incremental_alter_configs_response_alter_configs_resource_response_init(t);
    t->resource_type = item->resource_type;
    t->resource_name = item->resource_name;
    t->error_code = item->resource_type == CONFIG_RESOURCE_TOPIC   ? KE_TOPIC_AUTHORIZATION_FAILED
                    : item->resource_type == CONFIG_RESOURCE_GROUP ? KE_GROUP_AUTHORIZATION_FAILED
                                                                   : KE_CLUSTER_AUTHORIZATION_FAILED;
}

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct kp_incremental_alter_configs_request *in = op->in;
    struct kp_incremental_alter_configs_response *out = op->out;
    struct kp_incremental_alter_configs_request *asked = arena_dup(op->arena, in, sizeof *in);
    asked->resources = arena_alloc(op->arena, ((size_t)in->resources_count + 1) * sizeof *in->resources);
    asked->resources_count = 0;
    for (int32_t i = 0; i < in->resources_count; i++)
        if (may(op, &in->resources[i]))
            asked->resources[asked->resources_count++] = in->resources[i];
    kp_incremental_alter_configs_response_init(out);
    controller_incremental_alter_configs(c, asked, out, records);
    if (asked->resources_count == in->resources_count)
        return;
    size_t room = (size_t)out->responses_count + (size_t)in->resources_count;
    struct kp_incremental_alter_configs_response_alter_configs_resource_response *more =
        arena_alloc(op->arena, room * sizeof *more);
    if (out->responses_count > 0)
        memcpy(more, out->responses, (size_t)out->responses_count * sizeof *more);
    out->responses = more;
    for (int32_t i = 0; i < in->resources_count; i++)
        if (!may(op, &in->resources[i]))
            refuse(out, &in->resources[i]);
}

// Every resource of the request gets the error.
static void fail(struct controller_op *op, enum kafka_error error)
{
    const struct kp_incremental_alter_configs_request *in = op->in;
    struct kp_incremental_alter_configs_response *out = op->out;
    kp_incremental_alter_configs_response_init(out);
    out->responses = arena_alloc(op->arena, (size_t)(in->resources_count > 0 ? in->resources_count : 1) *
                                                sizeof *out->responses);
    for (int32_t i = 0; i < in->resources_count; i++) {
        struct kp_incremental_alter_configs_response_alter_configs_resource_response *t =
            &out->responses[out->responses_count++];
        kp_incremental_alter_configs_response_alter_configs_resource_response_init(t);
        t->resource_type = in->resources[i].resource_type;
        t->resource_name = in->resources[i].resource_name;
        t->error_code = (int16_t)error;
    }
}

CONTROLLER_API(incremental_alter_configs, 0)

const struct request_api api_incremental_alter_configs = {.key = KP_API_INCREMENTAL_ALTER_CONFIGS,
                                                          .version_min = 0,
                                                          .version_max = 1,
                                                          .advertised_min = 0,
                                                          .on_broker = forward_handler,
                                                          .on_controller = handle_on_controller};
