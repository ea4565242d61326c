// SPDX-License-Identifier: Apache-2.0
// UnregisterController (94): forgets a controller that is no voter any more (KIP-1312).
#include "core/server/controller_api.h"

#include "core/protocol/gen/unregister_controller_request.h"
#include "core/protocol/gen/unregister_controller_response.h"

static bool is_voter(struct controller_op *op, node_id id)
{
    struct quorum_description *d = arena_alloc(op->arena, sizeof *d);
    quorum_describe(controller_node_quorum(op->node), d);
    for (uint32_t i = 0; i < d->members_count; i++)
        if (d->members[i].voter.id == id)
            return true;
    return false;
}

static void decide(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct kp_unregister_controller_request *in = op->in;
    struct kp_unregister_controller_response *out = op->out;
    kp_unregister_controller_response_init(out);
    controller_unregister_controller(c, in, is_voter(op, in->controller_id), out, records);
}

CONTROLLER_API_FAIL(unregister_controller)
CONTROLLER_API(unregister_controller, ACL_ALTER)

const struct request_api api_unregister_controller = {.key = KP_API_UNREGISTER_CONTROLLER,
                                                      .version_min = 0,
                                                      .version_max = 0,
                                                      .advertised_min = 0,
                                                      .on_broker = forward_handler,
                                                      .on_controller = handle_on_controller};
