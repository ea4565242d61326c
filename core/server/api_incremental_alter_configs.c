// SPDX-License-Identifier: Apache-2.0
// IncrementalAlterConfigs (44): sets, deletes, appends and subtracts single keys (KIP-339).
#include "core/server/controller_api.h"

#include "core/protocol/gen/incremental_alter_configs_request.h"
#include "core/protocol/gen/incremental_alter_configs_response.h"

CONTROLLER_API_DECIDE(incremental_alter_configs, controller_incremental_alter_configs)

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

CONTROLLER_API(incremental_alter_configs)

const struct request_api api_incremental_alter_configs = {.key = KP_API_INCREMENTAL_ALTER_CONFIGS,
                                                          .version_min = 0,
                                                          .version_max = 1,
                                                          .advertised_min = 0,
                                                          .on_broker = forward_handler,
                                                          .on_controller = handle_on_controller};
