// SPDX-License-Identifier: Apache-2.0
// kraft-admin topics: list, create, delete, alter.
#include <stdlib.h>

#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"
#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"
#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"
#include "tools/kraft-admin/configs.h"
#include "tools/kraft-admin/topics.h"

#define TOPICS_WAIT_MS 30000 // how long the servers may take until all see the change

// ---- list

static int topics_list(struct admin *a)
{
    struct kp_metadata_response m;
    bool internal = args_flag(&a->args, "internal");
    struct table t;
    json_t *rows = json_array();
    int status = admin_metadata(a, NULL, &m);
    if (status) {
        json_decref(rows);
        return status;
    }
    table_init(&t, "TOPIC|PARTITIONS|REPLICAS|ID");
    for (int32_t i = 0; i < m.topics_count; i++) {
        const struct kp_metadata_response_metadata_response_topic *topic = &m.topics[i];
        char id[UUID_TEXT_BYTES];
        int replicas = topic->partitions_count > 0 ? topic->partitions[0].replica_nodes_count : 0;
        if (topic->is_internal && !internal)
            continue;
        uuid_format(topic->topic_id, id);
        json_array_append_new(rows,
                              json_pack("{s:o, s:s, s:i, s:i, s:b}", "topic", admin_text(topic->name),
                                        "topic_id", id, "partitions", topic->partitions_count,
                                        "replication_factor", replicas, "internal", topic->is_internal));
        table_add(&t, SLICE_FMT, SLICE_ARG(topic->name));
        table_add(&t, "%d", topic->partitions_count);
        table_add(&t, "%d", replicas);
        table_add(&t, "%s", id);
    }
    if (a->json) {
        status = admin_print_json(rows);
    } else {
        table_print(&t, stdout);
        json_decref(rows);
    }
    table_fini(&t);
    return status;
}

// ---- create

// "1:2,2:3": replicas of each partition in turn. False: cannot be read.
static bool parse_assignment(struct admin *a, const char *text,
                             struct kp_create_topics_request_creatable_topic *t)
{
    size_t room = strlen(text) + 1;
    struct kp_create_topics_request_creatable_replica_assignment *partitions =
        arena_zalloc(&a->arena, room * sizeof(*partitions));
    int32_t *ids = arena_zalloc(&a->arena, room * sizeof(*ids));
    int32_t count = 0;
    for (const char *at = text; *at; count++) {
        kp_create_topics_request_creatable_replica_assignment_init(&partitions[count]);
        partitions[count].partition_index = count;
        partitions[count].broker_ids = ids;
        for (;;) {
            char *end;
            long id = strtol(at, &end, 10);
            if (end == at || id < 0 || id > INT32_MAX || (*end && *end != ':' && *end != ','))
                return false;
            *ids++ = (int32_t)id;
            partitions[count].broker_ids_count++;
            at = *end ? end + 1 : end;
            if (*end != ':')
                break;
        }
    }
    t->assignments = partitions;
    t->assignments_count = count;
    return count > 0;
}

static bool parse_topic_configs(struct admin *a, struct kp_create_topics_request_creatable_topic *t)
{
    struct kp_create_topics_request_creatable_topic_config *configs =
        arena_zalloc(&a->arena, ARGS_OPTIONS_MAX * sizeof(*configs));
    int next = 0;
    for (const char *text; (text = args_each(&a->args, "config", &next));) {
        struct kp_create_topics_request_creatable_topic_config *c = &configs[t->configs_count++];
        kp_create_topics_request_creatable_topic_config_init(c);
        const char *equals = strchr(text, '=');
        if (!equals)
            return false;
        c->name = slice_of(text, (size_t)(equals - text));
        c->value = slice_str(equals + 1);
    }
    t->configs = configs;
    return true;
}

static int print_created(struct admin *a, const struct kp_create_topics_response *r, bool dry_run,
                         bool if_not_exists)
{
    int status = ADMIN_OK;
    json_t *rows = json_array();
    for (int32_t i = 0; i < r->topics_count; i++) {
        const struct kp_create_topics_response_creatable_topic_result *t = &r->topics[i];
        char id[UUID_TEXT_BYTES];
        if (t->error_code == KE_TOPIC_ALREADY_EXISTS && if_not_exists)
            continue;
        if (t->error_code) {
            status = admin_refusal(a, t->name, t->error_code, t->error_message);
            continue;
        }
        uuid_format(t->topic_id, id);
        json_array_append_new(rows,
                              json_pack("{s:o, s:s, s:i, s:i, s:b}", "topic", admin_text(t->name), "topic_id",
                                        id, "partitions", t->num_partitions, "replication_factor",
                                        t->replication_factor, "dry_run", dry_run));
        if (!a->json)
            printf("%s topic " SLICE_FMT ": %d partition%s, replication factor %d\n",
                   dry_run ? "would create" : "created", SLICE_ARG(t->name), t->num_partitions,
                   t->num_partitions == 1 ? "" : "s", t->replication_factor);
    }
    if (a->json)
        admin_print_json(rows);
    else
        json_decref(rows);
    return status;
}

static int topics_create(struct admin *a)
{
    struct kp_create_topics_request q;
    struct kp_create_topics_response r;
    struct kp_create_topics_request_creatable_topic t;
    int64_t partitions, replicas;
    const char *name = admin_need(a, "topic"), *assignment = args_value(&a->args, "replica-assignment");
    if (!name)
        return ADMIN_USAGE;
    if (!args_number(&a->args, "partitions", 1, INT32_MAX, -1, &partitions) ||
        !args_number(&a->args, "replication-factor", 1, INT16_MAX, -1, &replicas))
        return admin_usage(a, "%s", a->args.error);
    kp_create_topics_request_init(&q);
    kp_create_topics_request_creatable_topic_init(&t);
    t.name = slice_str(name);
    t.num_partitions = (int32_t)partitions;
    t.replication_factor = (int16_t)replicas;
    if (assignment && (partitions >= 0 || replicas >= 0))
        return admin_usage(a, "--replica-assignment says how many partitions and replicas there are");
    if (assignment && !parse_assignment(a, assignment, &t))
        return admin_usage(a, "--replica-assignment is replicas of each partition, as in 1:2,2:3");
    if (!parse_topic_configs(a, &t))
        return admin_usage(a, "--config is KEY=VALUE");
    q.topics = &t;
    q.topics_count = 1;
    q.timeout_ms = TOPICS_WAIT_MS;
    q.validate_only = args_flag(&a->args, "dry-run");
    int rc = admin_call(a, KP_API_CREATE_TOPICS, &q, &r);
    return rc ? admin_failed(a, rc)
              : print_created(a, &r, q.validate_only, args_flag(&a->args, "if-not-exists"));
}

// ---- delete

static int topics_delete(struct admin *a)
{
    struct kp_delete_topics_request q;
    struct kp_delete_topics_response r;
    struct kp_delete_topics_request_delete_topic_state topics[ARGS_OPTIONS_MAX];
    int next = 0, status = ADMIN_OK;
    kp_delete_topics_request_init(&q);
    for (const char *name; (name = args_each(&a->args, "topic", &next));) {
        kp_delete_topics_request_delete_topic_state_init(&topics[q.topics_count]);
        topics[q.topics_count++].name = slice_str(name);
    }
    if (q.topics_count == 0)
        return admin_usage(a, "--topic is needed");
    q.topics = topics;
    q.topic_names =
        arena_zalloc(&a->arena, (size_t)q.topics_count * sizeof(*q.topic_names)); // servers before v6
    q.topic_names_count = q.topics_count;
    for (int32_t i = 0; i < q.topics_count; i++)
        q.topic_names[i] = topics[i].name;
    q.timeout_ms = TOPICS_WAIT_MS;
    int rc = admin_call(a, KP_API_DELETE_TOPICS, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    json_t *rows = json_array();
    for (int32_t i = 0; i < r.responses_count; i++) {
        const struct kp_delete_topics_response_deletable_topic_result *t = &r.responses[i];
        if (t->error_code == KE_UNKNOWN_TOPIC_OR_PARTITION && args_flag(&a->args, "if-exists"))
            continue;
        if (t->error_code) {
            status = admin_refusal(a, t->name, t->error_code, t->error_message);
            continue;
        }
        json_array_append_new(rows, json_pack("{s:o}", "topic", admin_text(t->name)));
        if (!a->json)
            printf("deleted topic " SLICE_FMT "\n", SLICE_ARG(t->name));
    }
    if (a->json)
        admin_print_json(rows);
    else
        json_decref(rows);
    return status;
}

// ---- alter

static int set_partitions(struct admin *a, const char *name, int32_t count)
{
    struct kp_create_partitions_request q;
    struct kp_create_partitions_response r;
    struct kp_create_partitions_request_create_partitions_topic t;
    kp_create_partitions_request_init(&q);
    kp_create_partitions_request_create_partitions_topic_init(&t);
    t.name = slice_str(name);
    t.count = count;
    t.assignments_count = -1; // the controller places them
    q.topics = &t;
    q.topics_count = 1;
    q.timeout_ms = TOPICS_WAIT_MS;
    q.validate_only = args_flag(&a->args, "dry-run");
    int rc = admin_call(a, KP_API_CREATE_PARTITIONS, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    for (int32_t i = 0; i < r.results_count; i++)
        if (r.results[i].error_code)
            return admin_refusal(a, r.results[i].name, r.results[i].error_code, r.results[i].error_message);
    if (!a->json)
        printf("%s %s: %d partitions\n", q.validate_only ? "would change" : "changed", name, count);
    return ADMIN_OK;
}

static int topics_alter(struct admin *a)
{
    int64_t partitions;
    const char *name = admin_need(a, "topic");
    if (!name)
        return ADMIN_USAGE;
    if (!args_number(&a->args, "partitions", 1, INT32_MAX, 0, &partitions))
        return admin_usage(a, "%s", a->args.error);
    bool configs = args_value(&a->args, "config") || args_value(&a->args, "delete-config");
    if (!partitions && !configs)
        return admin_usage(a, "--partitions, --config or --delete-config is needed");
    int status = partitions ? set_partitions(a, name, (int32_t)partitions) : ADMIN_OK;
    if (status == ADMIN_OK && configs)
        status = configs_change(a, CONFIG_RESOURCE_TOPIC, name, "config", "delete-config");
    if (status == ADMIN_OK && a->json)
        status = admin_print_json(
            json_pack("{s:s, s:b}", "topic", name, "dry_run", args_flag(&a->args, "dry-run")));
    return status;
}

static const char *const list_options[] = {"internal", NULL};
static const char *const create_options[] = {
    "topic=",  "partitions=", "replication-factor=", "replica-assignment=",
    "config=", "dry-run",     "if-not-exists",       NULL};
static const char *const describe_options[] = {"topic=", "unhealthy", NULL};
static const char *const delete_options[] = {"topic=", "if-exists", NULL};
static const char *const alter_options[] = {
    "topic=", "partitions=", "config=", "delete-config=", "dry-run", NULL};
static const char *const offsets_options[] = {"topic=", NULL};

const struct admin_verb topics_verbs[] = {
    {"topics list", list_options, "list the topics",
     "  --internal           also the cluster's own topics\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics list --bootstrap-server localhost:9092\n",
     topics_list},
    {"topics create", create_options, "create a topic",
     "  --topic NAME\n"
     "  --partitions N              (the servers' num.partitions)\n"
     "  --replication-factor N      (the servers' default.replication.factor)\n"
     "  --replica-assignment LIST   brokers of each partition, as in 1:2,2:3, instead of the two above\n"
     "  --config KEY=VALUE          may be given again\n"
     "  --if-not-exists             a topic that exists is no error\n"
     "  --dry-run                   only tell what would happen\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics create --topic orders --partitions 12 --replication-factor 3 --config "
     "min.insync.replicas=2\n",
     topics_create},
    {"topics describe", describe_options, "show partitions, replicas and changed configs",
     "  --topic NAME    (all topics)\n"
     "  --unhealthy     only partitions without a leader or with replicas out of sync\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics describe --topic orders\n",
     topics_describe},
    {"topics delete", delete_options, "delete topics with all their records",
     "  --topic NAME    may be given again\n"
     "  --if-exists     a topic that does not exist is no error\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics delete --topic orders\n",
     topics_delete},
    {"topics alter", alter_options, "add partitions, change configs",
     "  --topic NAME\n"
     "  --partitions N          new number of partitions, above the present one\n"
     "  --config KEY=VALUE      may be given again\n"
     "  --delete-config KEY     back to the default; may be given again\n"
     "  --dry-run               only tell what would happen\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics alter --topic orders --config retention.ms=3600000\n",
     topics_alter},
    {"topics offsets", offsets_options, "show first and end offset of each partition",
     "  --topic NAME\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics offsets --topic orders --output json\n",
     topics_offsets},
    {NULL, NULL, NULL, NULL, NULL},
};
