// SPDX-License-Identifier: Apache-2.0
// DescribeQuorum (55): voters and observers of the metadata log, and how far each one is (KIP-595, KIP-836,
// KIP-853).
//
// Only the active controller answers, as in Kafka: others say NOT_LEADER_OR_FOLLOWER with the leader they
// know.
#include "core/server/controller_api.h"

#include "core/protocol/gen/describe_quorum_request.h"
#include "core/protocol/gen/describe_quorum_response.h"
#include "core/server/controller_node_priv.h"

#define METADATA_TOPIC "__cluster_metadata"

typedef struct kp_describe_quorum_response_partition_data partition_data;
typedef struct kp_describe_quorum_response_replica_state replica_state;

static void fill_voters(const struct quorum_description *d, partition_data *p, struct arena *arena)
{
    p->current_voters = arena_alloc(arena, (d->members_count + 1) * sizeof(replica_state));
    for (uint32_t i = 0; i < d->members_count; i++) {
        const struct quorum_member *m = &d->members[i];
        if (!m->is_voter)
            continue;
        replica_state *r = &p->current_voters[p->current_voters_count++];
        kp_describe_quorum_response_replica_state_init(r);
        r->replica_id = m->voter.id;
        r->replica_directory_id = m->voter.directory_id;
        r->log_end_offset = m->log_end_offset;
        r->last_fetch_timestamp = m->last_fetch_ms;
        r->last_caught_up_timestamp = m->last_caught_up_ms;
    }
}

static bool is_voter(const struct quorum_description *d, node_id id)
{
    for (uint32_t i = 0; i < d->members_count; i++)
        if (d->members[i].is_voter && d->members[i].voter.id == id)
            return true;
    return false;
}

// Who fetches without a vote, and who is on the way to becoming a voter.
static void fill_observers(struct controller_node *cn, const struct quorum_description *d, partition_data *p,
                           struct arena *arena, time_ms now)
{
    unsigned count;
    const struct controller_observer *o = controller_node_observers(cn, &count);
    p->observers = arena_alloc(arena, (count + d->members_count + 1) * sizeof(replica_state));
    for (uint32_t i = 0; i < d->members_count; i++) {
        if (d->members[i].is_voter)
            continue;
        replica_state *r = &p->observers[p->observers_count++];
        kp_describe_quorum_response_replica_state_init(r);
        r->replica_id = d->members[i].voter.id;
        r->replica_directory_id = d->members[i].voter.directory_id;
        r->log_end_offset = d->members[i].log_end_offset;
        r->last_fetch_timestamp = d->members[i].last_fetch_ms;
        r->last_caught_up_timestamp = d->members[i].last_caught_up_ms;
    }
    for (unsigned i = 0; i < count; i++) {
        if (now - o[i].last_fetch_ms > CONTROLLER_OBSERVER_FORGET_MS || is_voter(d, o[i].id))
            continue;
        replica_state *r = &p->observers[p->observers_count++];
        kp_describe_quorum_response_replica_state_init(r);
        r->replica_id = o[i].id;
        r->replica_directory_id = o[i].directory_id;
        r->log_end_offset = o[i].log_end_offset;
        r->last_fetch_timestamp = o[i].last_fetch_ms;
        r->last_caught_up_timestamp = o[i].last_caught_up_ms;
    }
}

static void fill_nodes(const struct quorum_description *d, struct kp_describe_quorum_response *out,
                       struct arena *arena)
{
    out->nodes = arena_alloc(arena, (d->members_count + 1) * sizeof *out->nodes);
    for (uint32_t i = 0; i < d->members_count; i++) {
        const struct quorum_voter *v = &d->members[i].voter;
        struct kp_describe_quorum_response_node *n = &out->nodes[out->nodes_count++];
        kp_describe_quorum_response_node_init(n);
        n->node_id = v->id;
        n->listeners = arena_alloc(arena, (v->endpoints_count + 1) * sizeof *n->listeners);
        for (uint32_t e = 0; e < v->endpoints_count; e++) {
            struct kp_describe_quorum_response_listener *l = &n->listeners[n->listeners_count++];
            kp_describe_quorum_response_listener_init(l);
            l->name = arena_dup_slice(arena, slice_str(v->endpoints[e].name));
            l->host = arena_dup_slice(arena, slice_str(v->endpoints[e].host));
            l->port = v->endpoints[e].port;
        }
    }
}

static void handle_on_controller(struct request *rq)
{
    struct kp_describe_quorum_request *in = REQUEST_DECODE(rq, describe_quorum_request);
    if (!in)
        return;
    struct controller_node *cn = rq->listener->controller_node;
    struct kp_describe_quorum_response out;
    kp_describe_quorum_response_init(&out);
    if (!authorize(rq->ctx, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        out.error_code = KE_CLUSTER_AUTHORIZATION_FAILED;
        REQUEST_REPLY(rq, describe_quorum_response, &out);
        return;
    }
    bool asked = in->topics_count == 1 && slice_equal_str(in->topics[0].topic_name, METADATA_TOPIC) &&
                 in->topics[0].partitions_count == 1 && in->topics[0].partitions[0].partition_index == 0;
    bool active = quorum_is_active(controller_node_quorum(cn));
    struct quorum_description *d = arena_alloc(&rq->arena, sizeof *d);
    quorum_describe(controller_node_quorum(cn), d);
    if (!active && rq->embedded_cb)
        controller_envelope_refuse(rq);
    out.topics = arena_alloc(&rq->arena, sizeof *out.topics);
    kp_describe_quorum_response_topic_data_init(out.topics);
    out.topics_count = 1;
    out.topics->topic_name = in->topics_count > 0 ? in->topics[0].topic_name : SLICE_LIT(METADATA_TOPIC);
    partition_data *p = arena_alloc(&rq->arena, sizeof *p);
    kp_describe_quorum_response_partition_data_init(p);
    out.topics->partitions = p;
    out.topics->partitions_count = 1;
    if (!asked) {
        p->partition_index = in->topics_count > 0 && in->topics[0].partitions_count > 0
                                 ? in->topics[0].partitions[0].partition_index
                                 : 0;
        p->error_code = KE_UNKNOWN_TOPIC_OR_PARTITION;
    } else {
        p->error_code = active ? KE_NONE : KE_NOT_LEADER_OR_FOLLOWER;
        p->leader_id = d->leader;
        p->leader_epoch = d->term;
    }
    if (asked && active) {
        p->high_watermark = d->high_watermark;
        fill_voters(d, p, &rq->arena);
        fill_observers(cn, d, p, &rq->arena, node_wall(node_loop_node(rq->loop->loop)));
        fill_nodes(d, &out, &rq->arena);
    }
    REQUEST_REPLY(rq, describe_quorum_response, &out);
}

const struct request_api api_describe_quorum = {.key = KP_API_DESCRIBE_QUORUM,
                                                .version_min = 0,
                                                .version_max = 2,
                                                .advertised_min = 0,
                                                .on_broker = forward_handler,
                                                .on_controller = handle_on_controller};
