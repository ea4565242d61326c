// SPDX-License-Identifier: Apache-2.0
// Own place in the quorum: UpdateRaftVoter after a move, AddRaftVoter to join.
#include "core/server/controller_membership.h"

#include "core/base/logline.h"
#include "core/base/mem.h"
#include "core/protocol/gen/add_raft_voter_request.h"
#include "core/protocol/gen/add_raft_voter_response.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/update_raft_voter_request.h"
#include "core/protocol/gen/update_raft_voter_response.h"
#include "core/server/controller_channel.h"
#include "raft/quorum.h"

#define LOOK_MS 1000            // between looks at the configuration
#define UPDATE_TIMEOUT_MS 10000 // longest wait for an answer
#define JOIN_TIMEOUT_MS 120000  // the same; a new voter has to catch up first
#define KRAFT_VERSION_MAX 1     // supported kraft.version: 0 to this

struct controller_membership {
    struct controller_membership_opts opts; // as given
    struct quorum_description *seen;        // scratch: the configuration
    struct channel_request request;         // the one request
    bool in_flight;                         // it is under way
    struct node_timer timer;                // next look
};

#define FROM(ptr, field)                                                                                     \
    ((struct controller_membership *)(void *)((char *)(ptr)-offsetof(struct controller_membership, field)))

// ---- UpdateRaftVoter
// -------------------------------------------------------------------------------------------
static int encode_update(struct channel_request *r, int16_t version, struct rope *out)
{
    struct controller_membership *m = FROM(r, request);
    struct kp_update_raft_voter_request q;
    struct kp_update_raft_voter_request_listener l;
    kp_update_raft_voter_request_init(&q);
    kp_update_raft_voter_request_listener_init(&l);
    q.cluster_id = slice_str(m->opts.cluster_id);
    q.current_leader_epoch = m->seen->term;
    q.voter_id = m->opts.id;
    q.voter_directory_id = m->opts.directory_id;
    q.listeners = &l;
    q.listeners_count = 1;
    l.name = m->opts.endpoint->name;
    l.host = m->opts.endpoint->host;
    l.port = m->opts.endpoint->port;
    q.kraft_version_feature.max_supported_version = KRAFT_VERSION_MAX;
    return kp_update_raft_voter_request_encode(&q, out, version);
}

static enum channel_verdict outcome(struct controller_membership *m, int err, int16_t error, const char *what)
{
    if (err == 0 && error == KE_NOT_CONTROLLER)
        return CHANNEL_ELSEWHERE;
    m->in_flight = false;
    if (err == ERR_CANCELED)
        return CHANNEL_DONE;
    if (err == 0 && error == KE_NONE)
        log_info(m->opts.log, "membership", what, "controller=%d", m->opts.id);
    else
        log_warn(m->opts.log, "membership", "a change of the quorum was refused, trying again",
                 "controller=%d change=\"%s\" error=%s", m->opts.id, what,
                 err ? err_text(err) : kafka_error_name(error));
    return CHANNEL_DONE;
}

static enum channel_verdict update_answer(struct channel_request *r, int err, int16_t version,
                                          struct slice body)
{
    struct kp_update_raft_voter_response a;
    struct kp_reader reader;
    struct arena arena;
    arena_init(&arena);
    kp_update_raft_voter_response_init(&a);
    kp_reader_init(&reader, body, &arena, NULL);
    if (err == 0 && kp_update_raft_voter_response_decode(&a, &reader, version) != 0)
        a.error_code = KE_UNKNOWN_SERVER_ERROR;
    arena_fini(&arena);
    return outcome(FROM(r, request), err, a.error_code, "the quorum knows the new endpoint");
}

// ---- AddRaftVoter
// ----------------------------------------------------------------------------------------------
static int encode_join(struct channel_request *r, int16_t version, struct rope *out)
{
    struct controller_membership *m = FROM(r, request);
    struct kp_add_raft_voter_request q;
    struct kp_add_raft_voter_request_listener l;
    kp_add_raft_voter_request_init(&q);
    kp_add_raft_voter_request_listener_init(&l);
    q.cluster_id = slice_str(m->opts.cluster_id);
    q.timeout_ms = JOIN_TIMEOUT_MS;
    q.voter_id = m->opts.id;
    q.voter_directory_id = m->opts.directory_id;
    q.listeners = &l;
    q.listeners_count = 1;
    l.name = m->opts.endpoint->name;
    l.host = m->opts.endpoint->host;
    l.port = m->opts.endpoint->port;
    return kp_add_raft_voter_request_encode(&q, out, version);
}

static enum channel_verdict join_answer(struct channel_request *r, int err, int16_t version,
                                        struct slice body)
{
    struct kp_add_raft_voter_response a;
    struct kp_reader reader;
    struct arena arena;
    arena_init(&arena);
    kp_add_raft_voter_response_init(&a);
    kp_reader_init(&reader, body, &arena, NULL);
    if (err == 0 && kp_add_raft_voter_response_decode(&a, &reader, version) != 0)
        a.error_code = KE_UNKNOWN_SERVER_ERROR;
    arena_fini(&arena);
    return outcome(FROM(r, request), err, a.error_code, "this controller is a voter now");
}

// ---- looking
// ---------------------------------------------------------------------------------------------------
static void send(struct controller_membership *m, bool join)
{
    memset(&m->request, 0, sizeof m->request);
    m->request.api = join ? KP_API_ADD_RAFT_VOTER : KP_API_UPDATE_RAFT_VOTER;
    m->request.version_max = join ? 1 : 0;
    m->request.timeout_ms = join ? JOIN_TIMEOUT_MS : UPDATE_TIMEOUT_MS;
    m->request.encode = join ? encode_join : encode_update;
    m->request.answer = join ? join_answer : update_answer;
    m->in_flight = true;
    controller_channel_send(m->opts.channel, &m->request);
}

static const struct quorum_member *own(const struct controller_membership *m)
{
    for (uint32_t i = 0; i < m->seen->members_count; i++) {
        const struct quorum_voter *v = &m->seen->members[i].voter;
        if (v->id == m->opts.id && uuid_equal(v->directory_id, m->opts.directory_id))
            return &m->seen->members[i];
    }
    return NULL;
}

static void look(struct node_timer *t)
{
    struct controller_membership *m = FROM(t, timer);
    node_timer_start(m->opts.loop, &m->timer, LOOK_MS);
    if (m->in_flight)
        return;
    quorum_describe(m->opts.quorum, m->seen);
    if (m->seen->kraft_version == 0)
        return;
    const struct quorum_member *self = own(m);
    const struct quorum_endpoint *e =
        self && self->voter.endpoints_count > 0 ? &self->voter.endpoints[0] : NULL;
    bool moved =
        self && self->is_voter && m->seen->leader >= 0 &&
        (!e || e->port != m->opts.endpoint->port || !slice_equal_str(m->opts.endpoint->host, e->host));
    if (moved)
        send(m, false);
    else if (!self && m->opts.auto_join)
        send(m, true);
}

struct controller_membership *controller_membership_create(const struct controller_membership_opts *opts)
{
    struct controller_membership *m = mem_zalloc(sizeof *m);
    m->opts = *opts;
    m->seen = mem_zalloc(sizeof *m->seen);
    m->timer.fire = look;
    node_timer_start(opts->loop, &m->timer, LOOK_MS);
    return m;
}

void controller_membership_free(struct controller_membership *m)
{
    if (m->in_flight)
        controller_channel_cancel(m->opts.channel, &m->request);
    node_timer_stop(m->opts.loop, &m->timer);
    mem_free(m->seen);
    mem_free(m);
}
