// SPDX-License-Identifier: Apache-2.0
// kraft-admin quorum: the controllers' log, who votes in it, adding and removing voters.
#include "core/protocol/gen/add_raft_voter_request.h"
#include "core/protocol/gen/add_raft_voter_response.h"
#include "core/protocol/gen/describe_quorum_request.h"
#include "core/protocol/gen/describe_quorum_response.h"
#include "core/protocol/gen/remove_raft_voter_request.h"
#include "core/protocol/gen/remove_raft_voter_response.h"
#include "tools/kraft-admin/admin.h"

typedef struct kp_describe_quorum_response_replica_state replica_state;
typedef struct kp_describe_quorum_response_partition_data quorum_state;

static int ask(struct admin *a, struct kp_describe_quorum_response *r, const quorum_state **state)
{
    struct kp_describe_quorum_request q;
    struct kp_describe_quorum_request_topic_data topic;
    struct kp_describe_quorum_request_partition_data partition;
    kp_describe_quorum_request_init(&q);
    kp_describe_quorum_request_topic_data_init(&topic);
    kp_describe_quorum_request_partition_data_init(&partition);
    topic.topic_name = SLICE_LIT("__cluster_metadata");
    topic.partitions = &partition;
    topic.partitions_count = 1;
    q.topics = &topic;
    q.topics_count = 1;
    int rc = admin_call(a, KP_API_DESCRIBE_QUORUM, &q, r);
    if (rc)
        return admin_failed(a, rc);
    if (r->error_code)
        return admin_refusal(a, topic.topic_name, r->error_code, r->error_message);
    if (r->topics_count != 1 || r->topics[0].partitions_count != 1)
        return admin_refused(a, "the server does not tell about the quorum");
    *state = &r->topics[0].partitions[0];
    if ((*state)->error_code)
        return admin_refusal(a, topic.topic_name, (*state)->error_code, (*state)->error_message);
    return ADMIN_OK;
}

static const struct kp_describe_quorum_response_node *node_of(const struct kp_describe_quorum_response *r,
                                                              int32_t id)
{
    for (int32_t i = 0; i < r->nodes_count; i++)
        if (r->nodes[i].node_id == id)
            return &r->nodes[i];
    return NULL;
}

static void add_replica(struct admin *a, const struct kp_describe_quorum_response *r, const quorum_state *s,
                        const replica_state *replica, const char *role, struct table *t, json_t *rows)
{
    char directory[UUID_TEXT_BYTES];
    const struct kp_describe_quorum_response_node *node = node_of(r, replica->replica_id);
    int64_t end = replica->log_end_offset, leader_end = -1;
    for (int32_t i = 0; i < s->current_voters_count; i++)
        if (s->current_voters[i].replica_id == s->leader_id)
            leader_end = s->current_voters[i].log_end_offset;
    json_int_t lag = end >= 0 && leader_end >= 0 ? (json_int_t)(leader_end - end) : -1;
    if (replica->replica_id == s->leader_id)
        role = "leader";
    uuid_format(replica->replica_directory_id, directory);
    json_array_append_new(
        rows, json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:I}", "node", replica->replica_id, "role", role,
                        "directory_id", directory, "log_end_offset", (json_int_t)end, "lag", lag,
                        "last_fetch_timestamp", (json_int_t)replica->last_fetch_timestamp,
                        "last_caught_up_timestamp", (json_int_t)replica->last_caught_up_timestamp));
    table_add(t, "%d", replica->replica_id);
    table_add(t, "%s", role);
    table_add(t, "%lld", (long long)end);
    if (lag < 0)
        table_add(t, "-");
    else
        table_add(t, "%lld", (long long)lag);
    table_add(t, "%s", uuid_is_zero(replica->replica_directory_id) ? "-" : directory);
    if (node && node->listeners_count > 0)
        table_add(t, SLICE_FMT "://" SLICE_FMT ":%u", SLICE_ARG(node->listeners[0].name),
                  SLICE_ARG(node->listeners[0].host), node->listeners[0].port);
    else
        table_add(t, "-");
}

static int quorum_describe(struct admin *a)
{
    struct kp_describe_quorum_response r;
    const quorum_state *s;
    struct table t;
    int status = ask(a, &r, &s);
    if (status)
        return status;
    json_t *rows = json_array();
    table_init(&t, "NODE|ROLE|LOG END|LAG|DIRECTORY|ADDRESS");
    for (int32_t i = 0; i < s->current_voters_count; i++)
        add_replica(a, &r, s, &s->current_voters[i], "voter", &t, rows);
    for (int32_t i = 0; i < s->observers_count; i++)
        add_replica(a, &r, s, &s->observers[i], "observer", &t, rows);
    if (a->json) {
        (void)admin_print_json(json_pack("{s:i, s:i, s:I, s:O}", "leader", s->leader_id, "epoch",
                                         s->leader_epoch, "high_watermark", (json_int_t)s->high_watermark,
                                         "replicas", rows));
    } else {
        printf("leader %d  epoch %d  high watermark %lld\n", s->leader_id, s->leader_epoch,
               (long long)s->high_watermark);
        table_print(&t, stdout);
    }
    json_decref(rows);
    table_fini(&t);
    return ADMIN_OK;
}

// Directory id of a node: from --directory-id, else what the quorum tells of it. False: an error was printed.
static bool directory_of(struct admin *a, int32_t id, bool voter, struct uuid *out)
{
    struct kp_describe_quorum_response r;
    const quorum_state *s;
    const char *text = args_value(&a->args, "directory-id");
    if (text) {
        bool good = uuid_parse(slice_str(text), out);
        if (!good)
            (void)admin_usage(a, "--directory-id is 22 characters, as kraft-format prints it");
        return good;
    }
    if (ask(a, &r, &s))
        return false;
    int32_t count = voter ? s->current_voters_count : s->observers_count;
    const replica_state *rows = voter ? s->current_voters : s->observers;
    for (int32_t i = 0; i < count; i++)
        if (rows[i].replica_id == id) {
            *out = rows[i].replica_directory_id;
            return true;
        }
    (void)admin_refused(
        a,
        voter ? "node %d is no voter; kraft-admin quorum describe shows who is"
              : "the quorum does not know node %d yet: give --directory-id ID, which kraft-format info "
                "--config FILE prints on that node",
        id);
    return false;
}

// "NAME=HOST:PORT" or "NAME://HOST:PORT".
static bool parse_listener(struct admin *a, const char *text, struct kp_add_raft_voter_request_listener *out)
{
    const char *mark = strstr(text, "://");
    const char *address = mark ? mark + 3 : strchr(text, '=') ? strchr(text, '=') + 1 : NULL;
    char *host = arena_alloc(&a->arena, KCLIENT_HOST_BYTES);
    if (!address || !kclient_parse_address(address, strlen(address), host, &out->port))
        return false;
    out->name = slice_of(text, mark ? (size_t)(mark - text) : (size_t)(address - 1 - text));
    out->host = slice_str(host);
    return true;
}

static int quorum_add(struct admin *a)
{
    struct kp_add_raft_voter_request q;
    struct kp_add_raft_voter_response r;
    struct kp_add_raft_voter_request_listener listeners[ARGS_OPTIONS_MAX];
    int64_t id;
    int next = 0;
    if (!admin_need(a, "node"))
        return ADMIN_USAGE;
    if (!args_number(&a->args, "node", 0, INT32_MAX, -1, &id))
        return admin_usage(a, "%s", a->args.error);
    kp_add_raft_voter_request_init(&q);
    q.cluster_id = SLICE_NULL;
    q.voter_id = (int32_t)id;
    q.timeout_ms = a->client->opts.timeout_ms;
    q.listeners = listeners;
    for (const char *text; (text = args_each(&a->args, "listener", &next));) {
        kp_add_raft_voter_request_listener_init(&listeners[q.listeners_count]);
        if (!parse_listener(a, text, &listeners[q.listeners_count++]))
            return admin_usage(a, "--listener is NAME://HOST:PORT");
    }
    if (q.listeners_count == 0)
        return admin_usage(
            a, "--listener NAME://HOST:PORT is needed: where the other controllers reach the new one");
    if (!directory_of(a, q.voter_id, false, &q.voter_directory_id))
        return ADMIN_REFUSED;
    int rc = admin_call(a, KP_API_ADD_RAFT_VOTER, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, slice_str(args_value(&a->args, "node")), r.error_code, r.error_message);
    if (a->json)
        return admin_print_json(json_pack("{s:i}", "node", q.voter_id));
    printf("node %d is a voter now\n", q.voter_id);
    return ADMIN_OK;
}

static int quorum_remove(struct admin *a)
{
    struct kp_remove_raft_voter_request q;
    struct kp_remove_raft_voter_response r;
    int64_t id;
    if (!admin_need(a, "node"))
        return ADMIN_USAGE;
    if (!args_number(&a->args, "node", 0, INT32_MAX, -1, &id))
        return admin_usage(a, "%s", a->args.error);
    kp_remove_raft_voter_request_init(&q);
    q.cluster_id = SLICE_NULL;
    q.voter_id = (int32_t)id;
    if (!directory_of(a, q.voter_id, true, &q.voter_directory_id))
        return ADMIN_REFUSED;
    int rc = admin_call(a, KP_API_REMOVE_RAFT_VOTER, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, slice_str(args_value(&a->args, "node")), r.error_code, r.error_message);
    if (a->json)
        return admin_print_json(json_pack("{s:i}", "node", q.voter_id));
    printf("node %d is no longer a voter\n", q.voter_id);
    return ADMIN_OK;
}

static const char *const describe_options[] = {NULL};
static const char *const add_options[] = {"node=", "directory-id=", "listener=", NULL};
static const char *const remove_options[] = {"node=", "directory-id=", NULL};

const struct admin_verb quorum_verbs[] = {
    {"quorum describe", describe_options, "show the controllers' log and who votes",
     "Example:\n"
     "  kraft-admin quorum describe --bootstrap-server localhost:9092\n",
     quorum_describe},
    {"quorum add", add_options, "make a running controller a voter",
     "  --node ID                    its node.id\n"
     "  --listener NAME://HOST:PORT  where the other controllers reach it; may be given again\n"
     "  --directory-id ID            of its metadata directory (what the quorum knows of it)\n"
     "\n"
     "Example:\n"
     "  kraft-admin quorum add --node 4 --listener CONTROLLER://host4:9093\n",
     quorum_add},
    {"quorum remove", remove_options, "take a controller's vote away",
     "  --node ID            its node.id\n"
     "  --directory-id ID    of its metadata directory (what the quorum knows of it)\n"
     "\n"
     "Example:\n"
     "  kraft-admin quorum remove --node 2\n",
     quorum_remove},
    {NULL, NULL, NULL, NULL, NULL},
};
