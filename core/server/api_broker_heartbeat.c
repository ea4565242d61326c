// SPDX-License-Identifier: Apache-2.0
// BrokerHeartbeat (63): keeps a broker's session alive, unfences it, lets it stop.
#include "core/server/controller_api.h"

#include "core/protocol/gen/broker_heartbeat_request.h"
#include "core/protocol/gen/broker_heartbeat_response.h"

CONTROLLER_API_DECIDE(broker_heartbeat, controller_broker_heartbeat)
CONTROLLER_API_FAIL(broker_heartbeat)

// The connection that heartbeats come over is watched: its end may be the broker's.
static void reply(struct controller_op *op)
{
    const struct kp_broker_heartbeat_request *in = op->in;
    const struct kp_broker_heartbeat_response *out = op->out;
    if (op->committed && out->error_code == KE_NONE && op->rq->conn)
        controller_node_watch_broker(op->node, op->rq, in->broker_id, in->broker_epoch);
    REQUEST_REPLY(op->rq, broker_heartbeat_response, out);
}

static const struct controller_op_type op_type = {"broker_heartbeat", ACL_CLUSTER_ACTION, decide, fail,
                                                  reply};

static void handle_on_controller(struct request *rq)
{
    struct kp_broker_heartbeat_request *in = REQUEST_DECODE(rq, broker_heartbeat_request);
    if (in)
        controller_node_handle(rq, &op_type, in, sizeof(struct kp_broker_heartbeat_response));
}

const struct request_api api_broker_heartbeat = {.key = KP_API_BROKER_HEARTBEAT,
                                                 .version_min = 0,
                                                 .version_max = 2,
                                                 .advertised_min = 0,
                                                 .flags = REQUEST_CLUSTER_ACTION,
                                                 .on_controller = handle_on_controller};
