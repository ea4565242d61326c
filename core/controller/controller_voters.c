// SPDX-License-Identifier: Apache-2.0
// AddRaftVoter and RemoveRaftVoter: what can be judged before the quorum is asked.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/add_raft_voter_request.h"
#include "core/protocol/gen/add_raft_voter_response.h"
#include "core/protocol/gen/remove_raft_voter_request.h"
#include "core/protocol/gen/remove_raft_voter_response.h"

static struct refusal check(struct controller *c, struct slice cluster_id, node_id voter,
                            struct uuid directory)
{
    if (!slice_is_null(cluster_id) && !slice_equal(cluster_id, c->opts->cluster_id))
        return controller__refuse(c, KE_INCONSISTENT_CLUSTER_ID,
                                  "The request is for cluster " SLICE_FMT ", this is cluster " SLICE_FMT ".",
                                  SLICE_ARG(cluster_id), SLICE_ARG(c->opts->cluster_id));
    if (c->kraft_version < 1)
        return controller__refuse(
            c, KE_UNSUPPORTED_VERSION,
            "The voters stand in controller.quorum.voters of every node (kraft.version 0) and cannot "
            "be changed at run time.");
    if (voter < 0)
        return controller__refuse(c, KE_INVALID_REQUEST, "%d is not a node id.", voter);
    if (uuid_is_zero(directory))
        return controller__refuse(c, KE_INVALID_REQUEST,
                                  "A voter is named by its node id and the id of its metadata directory.");
    return NO_REFUSAL;
}

bool controller_check_add_voter(struct controller *c, const struct kp_add_raft_voter_request *in,
                                struct kp_add_raft_voter_response *out)
{
    kp_add_raft_voter_response_init(out);
    struct refusal no = check(c, in->cluster_id, in->voter_id, in->voter_directory_id);
    bool listener = c->opts->listener.len == 0 && in->listeners_count > 0;
    for (int32_t i = 0; i < in->listeners_count; i++) {
        listener = listener || slice_equal(in->listeners[i].name, c->opts->listener);
        if (no.code == KE_NONE && (in->listeners[i].port == 0 || in->listeners[i].host.len == 0))
            no = controller__refuse(c, KE_INVALID_REQUEST, "Endpoint '" SLICE_FMT "' has no host or port.",
                                    SLICE_ARG(in->listeners[i].name));
    }
    if (no.code == KE_NONE && !listener)
        no = controller__refuse(c, KE_INVALID_REQUEST,
                                "The voter has no endpoint for the listener '" SLICE_FMT "'.",
                                SLICE_ARG(c->opts->listener));
    out->error_code = (int16_t)no.code;
    out->error_message = no.text;
    return no.code == KE_NONE;
}

bool controller_check_remove_voter(struct controller *c, const struct kp_remove_raft_voter_request *in,
                                   struct kp_remove_raft_voter_response *out)
{
    kp_remove_raft_voter_response_init(out);
    struct refusal no = check(c, in->cluster_id, in->voter_id, in->voter_directory_id);
    out->error_code = (int16_t)no.code;
    out->error_message = no.text;
    return no.code == KE_NONE;
}
