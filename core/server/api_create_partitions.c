// SPDX-License-Identifier: Apache-2.0
// CreatePartitions (37): more partitions for topics.
#include "core/server/controller_api.h"

#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"

CONTROLLER_API_DECIDE(create_partitions, controller_create_partitions)

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

CONTROLLER_API(create_partitions)

const struct request_api api_create_partitions = {.key = KP_API_CREATE_PARTITIONS,
                                                  .version_min = 0,
                                                  .version_max = 3,
                                                  .advertised_min = 0,
                                                  .on_broker = forward_handler,
                                                  .on_controller = handle_on_controller};
