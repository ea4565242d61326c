// SPDX-License-Identifier: Apache-2.0
// AlterConfigs (33): replaces the whole configuration of resources (old verb).
#include "core/server/controller_api.h"

#include "core/protocol/gen/alter_configs_request.h"
#include "core/protocol/gen/alter_configs_response.h"

CONTROLLER_API_DECIDE(alter_configs, controller_alter_configs)

// Every resource of the request gets the error.
static void fail(struct controller_op *op, enum kafka_error error)
{
    const struct kp_alter_configs_request *in = op->in;
    struct kp_alter_configs_response *out = op->out;
    kp_alter_configs_response_init(out);
    out->responses = arena_alloc(op->arena, (size_t)(in->resources_count > 0 ? in->resources_count : 1) *
                                                sizeof *out->responses);
    for (int32_t i = 0; i < in->resources_count; i++) {
        struct kp_alter_configs_response_alter_configs_resource_response *t =
            &out->responses[out->responses_count++];
        kp_alter_configs_response_alter_configs_resource_response_init(t);
        t->resource_type = in->resources[i].resource_type;
        t->resource_name = in->resources[i].resource_name;
        t->error_code = (int16_t)error;
    }
}

CONTROLLER_API(alter_configs)

const struct request_api api_alter_configs = {.key = KP_API_ALTER_CONFIGS,
                                              .version_min = 0,
                                              .version_max = 2,
                                              .advertised_min = 0,
                                              .on_broker = forward_handler,
                                              .on_controller = handle_on_controller};
