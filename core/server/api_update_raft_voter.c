// SPDX-License-Identifier: Apache-2.0
// UpdateRaftVoter (82): a voter tells where it listens now and which kraft.version it supports (KIP-853).
#include "core/server/controller_api.h"
#include "core/server/quorum_change.h"

#include "core/protocol/gen/update_raft_voter_request.h"
#include "core/protocol/gen/update_raft_voter_response.h"

static void answer(struct request *rq, enum kafka_error error)
{
    struct quorum *q = controller_node_quorum(rq->listener->controller_node);
    struct quorum_endpoint *e = arena_zalloc(&rq->arena, sizeof *e);
    struct kp_update_raft_voter_response out;
    kp_update_raft_voter_response_init(&out);
    out.error_code = (int16_t)error;
    out.current_leader.leader_id = quorum_leader(q);
    out.current_leader.leader_epoch = quorum_term(q);
    if (quorum_leader(q) >= 0 && quorum_endpoint_of(q, quorum_leader(q), e)) {
        out.current_leader.host = slice_str(e->host);
        out.current_leader.port = e->port;
    }
    REQUEST_REPLY(rq, update_raft_voter_response, &out);
}

static void change_done(void *data, int err, const char *why)
{
    answer(data, quorum_change_error(err, CHANGE_UPDATE));
}

static void handle_on_controller(struct request *rq)
{
    struct kp_update_raft_voter_request *in = REQUEST_DECODE(rq, update_raft_voter_request);
    if (!in)
        return;
    struct controller_node *cn = rq->listener->controller_node;
    struct slice cluster = controller_node_opts_of(cn)->cluster_id;
    struct quorum_voter voter = {.id = in->voter_id,
                                 .directory_id = in->voter_directory_id,
                                 .kraft_version_min = in->kraft_version_feature.min_supported_version,
                                 .kraft_version_max = in->kraft_version_feature.max_supported_version};
    if (!authorize(rq->ctx, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer(rq, KE_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    if (!slice_is_null(in->cluster_id) && !slice_equal(in->cluster_id, cluster)) {
        answer(rq, KE_INCONSISTENT_CLUSTER_ID);
        return;
    }
    if (!controller_node_is_serving(cn)) {
        answer(rq, KE_NOT_CONTROLLER);
        return;
    }
    for (int32_t i = 0; i < in->listeners_count; i++)
        (void)quorum_change_add_endpoint(&voter, in->listeners[i].name, in->listeners[i].host,
                                         in->listeners[i].port);
    if (voter.endpoints_count == 0) {
        answer(rq, KE_INVALID_REQUEST);
        return;
    }
    quorum_update_voter(controller_node_quorum(cn), &voter, change_done, rq);
}

const struct request_api api_update_raft_voter = {.key = KP_API_UPDATE_RAFT_VOTER,
                                                  .version_min = 0,
                                                  .version_max = 0,
                                                  .advertised_min = 0,
                                                  .flags = REQUEST_CLUSTER_ACTION,
                                                  .on_controller = handle_on_controller};
