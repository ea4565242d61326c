// SPDX-License-Identifier: Apache-2.0
// AddRaftVoter (80): a controller becomes a voter, once it has caught up (KIP-853).
#include "core/server/controller_api.h"
#include "core/server/quorum_change.h"

#include "core/protocol/gen/add_raft_voter_request.h"
#include "core/protocol/gen/add_raft_voter_response.h"
#include "core/server/controller_node_priv.h"

static void answer(struct request *rq, enum kafka_error error, struct slice why)
{
    struct kp_add_raft_voter_response out;
    kp_add_raft_voter_response_init(&out);
    out.error_code = (int16_t)error;
    out.error_message = error == KE_NONE ? SLICE_NULL : why;
    if (error == KE_NOT_CONTROLLER && rq->embedded_cb)
        controller_envelope_refuse(rq);
    REQUEST_REPLY(rq, add_raft_voter_response, &out);
}

static void change_done(void *data, int err, const char *why)
{
    struct request *rq = data;
    answer(rq, quorum_change_error(err, CHANGE_ADD), slice_str(why));
}

static void handle_on_controller(struct request *rq)
{
    struct kp_add_raft_voter_request *in = REQUEST_DECODE(rq, add_raft_voter_request);
    if (!in)
        return;
    if (!authorize(rq->ctx, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer(rq, KE_CLUSTER_AUTHORIZATION_FAILED,
               slice_str(kafka_error_text(KE_CLUSTER_AUTHORIZATION_FAILED)));
        return;
    }
    struct controller_node *cn = rq->listener->controller_node;
    if (!controller_node_is_serving(cn)) {
        answer(rq, KE_NOT_CONTROLLER, slice_str("this node is not the active controller"));
        return;
    }
    struct controller c;
    controller_node_context(cn, &rq->arena, &c);
    struct kp_add_raft_voter_response out;
    kp_add_raft_voter_response_init(&out);
    if (!controller_check_add_voter(&c, in, &out)) {
        REQUEST_REPLY(rq, add_raft_voter_response, &out);
        return;
    }
    struct quorum_voter voter = {.id = in->voter_id,
                                 .directory_id = in->voter_directory_id,
                                 .kraft_version_min = 0,
                                 .kraft_version_max = 1};
    for (int32_t i = 0; i < in->listeners_count; i++)
        (void)quorum_change_add_endpoint(&voter, in->listeners[i].name, in->listeners[i].host,
                                         in->listeners[i].port);
    if (voter.endpoints_count == 0) {
        answer(rq, KE_INVALID_REQUEST,
               slice_str("the voter needs at least one controller listener with a host name"));
        return;
    }
    quorum_add_voter(controller_node_quorum(cn), &voter, change_done, rq);
}

const struct request_api api_add_raft_voter = {.key = KP_API_ADD_RAFT_VOTER,
                                               .version_min = 0,
                                               .version_max = 1,
                                               .advertised_min = 0,
                                               .on_broker = forward_handler,
                                               .on_controller = handle_on_controller};
