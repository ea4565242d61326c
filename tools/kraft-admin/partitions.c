// SPDX-License-Identifier: Apache-2.0
// kraft-admin topics elect and trim, log-dirs: what is done with single partitions and replicas.
#include "core/protocol/gen/delete_records_request.h"
#include "core/protocol/gen/delete_records_response.h"
#include "core/protocol/gen/describe_log_dirs_request.h"
#include "core/protocol/gen/describe_log_dirs_response.h"
#include "core/protocol/gen/elect_leaders_request.h"
#include "core/protocol/gen/elect_leaders_response.h"
#include "tools/kraft-admin/topics.h"

#define ELECT_PREFERRED 0
#define ELECT_UNCLEAN 1

static int read_partition(struct admin *a, int32_t *out)
{
    int64_t partition;
    if (!args_number(&a->args, "partition", 0, INT32_MAX, -1, &partition))
        return admin_usage(a, "%s", a->args.error);
    *out = (int32_t)partition;
    return ADMIN_OK;
}

// ---- elect

static int print_elections(struct admin *a, const struct kp_elect_leaders_response *r)
{
    int status = ADMIN_OK, elected = 0;
    json_t *rows = json_array();
    for (int32_t t = 0; t < r->replica_election_results_count; t++) {
        const struct kp_elect_leaders_response_replica_election_result *topic =
            &r->replica_election_results[t];
        for (int32_t i = 0; i < topic->partition_result_count; i++) {
            const struct kp_elect_leaders_response_partition_result *p = &topic->partition_result[i];
            if (p->error_code == KE_ELECTION_NOT_NEEDED)
                continue;
            const char *name =
                arena_printf(&a->arena, SLICE_FMT "-%d", SLICE_ARG(topic->topic), p->partition_id);
            if (p->error_code) {
                status = admin_refusal(a, slice_str(name), p->error_code, p->error_message);
                continue;
            }
            elected++;
            json_array_append_new(rows, json_pack("{s:o, s:i}", "topic", admin_text(topic->topic),
                                                  "partition", p->partition_id));
            if (!a->json)
                printf("%s has a new leader\n", name);
        }
    }
    if (a->json)
        (void)admin_print_json(rows);
    else
        json_decref(rows);
    if (!a->json && elected == 0 && status == ADMIN_OK)
        printf("all are led as they should be\n");
    return status;
}

static int topics_elect(struct admin *a)
{
    struct kp_elect_leaders_request q;
    struct kp_elect_leaders_response r;
    struct kp_elect_leaders_request_topic_partitions topic;
    struct kp_metadata_response m;
    const char *name = args_value(&a->args, "topic");
    int32_t only = -1;
    int status = read_partition(a, &only);
    if (status)
        return status;
    kp_elect_leaders_request_init(&q);
    q.election_type = args_flag(&a->args, "unclean") ? ELECT_UNCLEAN : ELECT_PREFERRED;
    q.topic_partitions_count = -1; // all
    if (!name && (only >= 0 || q.election_type == ELECT_UNCLEAN))
        return admin_usage(a, "--topic is needed");
    if (name) {
        if ((status = admin_metadata(a, name, &m)))
            return status;
        kp_elect_leaders_request_topic_partitions_init(&topic);
        topic.topic = slice_str(name);
        topic.partitions =
            arena_alloc(&a->arena, sizeof(int32_t) * ((size_t)m.topics[0].partitions_count + 1));
        for (int32_t i = 0; i < m.topics[0].partitions_count; i++)
            if (only < 0 || m.topics[0].partitions[i].partition_index == only)
                topic.partitions[topic.partitions_count++] = m.topics[0].partitions[i].partition_index;
        if (topic.partitions_count == 0)
            return admin_refused(a, "%s has no partition %d", name, only);
        q.topic_partitions = &topic;
        q.topic_partitions_count = 1;
    }
    q.timeout_ms = a->client->opts.timeout_ms;
    int rc = admin_call(a, KP_API_ELECT_LEADERS, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.error_code)
        return admin_refusal(a, SLICE_LIT("election"), r.error_code, SLICE_NULL);
    return print_elections(a, &r);
}

// ---- trim

static int topics_trim(struct admin *a)
{
    struct kp_delete_records_request q;
    struct kp_delete_records_response r;
    struct kp_delete_records_request_delete_records_topic topic;
    struct kp_delete_records_request_delete_records_partition row;
    struct kp_metadata_response m;
    const char *name = admin_need(a, "topic");
    int64_t before = -1;
    int32_t partition = -1, leader = -1;
    if (!name || !admin_need(a, "partition") || !admin_need(a, "before"))
        return ADMIN_USAGE;
    int status = read_partition(a, &partition);
    if (status)
        return status;
    if (!args_number(&a->args, "before", -1, INT64_MAX, -1, &before))
        return admin_usage(a, "%s", a->args.error);
    if ((status = admin_metadata(a, name, &m)))
        return status;
    for (int32_t i = 0; i < m.topics[0].partitions_count; i++)
        if (m.topics[0].partitions[i].partition_index == partition)
            leader = m.topics[0].partitions[i].leader_id;
    if (leader < 0)
        return admin_refused(a, "%s has no partition %d, or it has no leader", name, partition);
    kp_delete_records_request_init(&q);
    kp_delete_records_request_delete_records_topic_init(&topic);
    kp_delete_records_request_delete_records_partition_init(&row);
    row.partition_index = partition;
    row.offset = before;
    topic.name = slice_str(name);
    topic.partitions = &row;
    topic.partitions_count = 1;
    q.topics = &topic;
    q.topics_count = 1;
    q.timeout_ms = a->client->opts.timeout_ms;
    int rc = admin_call_node(a, leader, KP_API_DELETE_RECORDS, -1, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    if (r.topics_count != 1 || r.topics[0].partitions_count != 1)
        return admin_refused(a, "the server does not tell what became of it");
    const struct kp_delete_records_response_delete_records_partition_result *p = &r.topics[0].partitions[0];
    if (p->error_code)
        return admin_refusal(a, topic.name, p->error_code, SLICE_NULL);
    if (a->json)
        return admin_print_json(json_pack("{s:s, s:i, s:I}", "topic", name, "partition", partition,
                                          "start_offset", (json_int_t)p->low_watermark));
    printf("%s-%d starts at offset %lld now\n", name, partition, (long long)p->low_watermark);
    return ADMIN_OK;
}

// ---- log-dirs

static void add_dir(const struct kp_describe_log_dirs_response_describe_log_dirs_result *d, node_id broker,
                    struct table *t, json_t *rows)
{
    int64_t bytes = 0;
    int replicas = 0;
    for (int32_t i = 0; i < d->topics_count; i++)
        for (int32_t k = 0; k < d->topics[i].partitions_count; k++, replicas++)
            bytes += d->topics[i].partitions[k].partition_size;
    json_array_append_new(rows,
                          json_pack("{s:i, s:o, s:s, s:i, s:I, s:I, s:I}", "broker", broker, "directory",
                                    admin_text(d->log_dir), "state",
                                    d->error_code ? kafka_error_name(d->error_code) : "online", "replicas",
                                    replicas, "bytes", (json_int_t)bytes, "total_bytes",
                                    (json_int_t)d->total_bytes, "usable_bytes", (json_int_t)d->usable_bytes));
    table_add(t, "%d", broker);
    table_add(t, SLICE_FMT, SLICE_ARG(d->log_dir));
    table_add(t, "%s",
              d->error_code    ? kafka_error_name(d->error_code)
              : d->is_cordoned ? "cordoned"
                               : "online");
    table_add(t, "%d", replicas);
    table_add(t, "%.1f", (double)bytes / 1e6);
    table_add(t, "%.1f", (double)d->usable_bytes / 1e6);
}

static int log_dirs(struct admin *a)
{
    struct kp_describe_log_dirs_request q;
    struct table t;
    int64_t only = -1;
    int status = ADMIN_OK, rc;
    if (!args_number(&a->args, "broker", 0, INT32_MAX, -1, &only))
        return admin_usage(a, "%s", a->args.error);
    kp_describe_log_dirs_request_init(&q);
    q.topics_count = -1; // all
    if ((rc = kclient_refresh(a->client, &a->err)))
        return admin_failed(a, rc);
    json_t *rows = json_array();
    table_init(&t, "BROKER|DIRECTORY|STATE|REPLICAS|USED MB|FREE MB");
    for (size_t i = 0; i < a->client->brokers_count; i++) {
        struct kp_describe_log_dirs_response r;
        node_id broker = a->client->brokers[i].id;
        if (only >= 0 && broker != only)
            continue;
        if ((rc = admin_call_node(a, broker, KP_API_DESCRIBE_LOG_DIRS, -1, &q, &r))) {
            status = admin_failed(a, rc);
            continue;
        }
        for (int32_t k = 0; k < r.results_count; k++)
            add_dir(&r.results[k], broker, &t, rows);
    }
    if (a->json) {
        (void)admin_print_json(rows);
    } else {
        table_print(&t, stdout);
        json_decref(rows);
    }
    table_fini(&t);
    return status;
}

static const char *const elect_options[] = {"topic=", "partition=", "unclean", NULL};
static const char *const trim_options[] = {"topic=", "partition=", "before=", NULL};
static const char *const log_dirs_options[] = {"broker=", NULL};

const struct admin_verb partitions_verbs[] = {
    {"topics elect", elect_options, "give partitions back to their preferred leader",
     "  --topic NAME     (all topics)\n"
     "  --partition N    (all partitions of the topic)\n"
     "  --unclean        any replica may lead where none in sync is left: acknowledged records may be lost\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics elect --topic orders\n",
     topics_elect},
    {"topics trim", trim_options, "delete the oldest records of a partition",
     "  --topic NAME\n"
     "  --partition N\n"
     "  --before OFFSET    first offset to keep; -1: keep nothing\n"
     "\n"
     "Example:\n"
     "  kraft-admin topics trim --topic orders --partition 0 --before 120000\n",
     topics_trim},
    {"log-dirs", log_dirs_options, "show the log directories of the brokers",
     "  --broker ID    (all brokers)\n"
     "\n"
     "Example:\n"
     "  kraft-admin log-dirs\n",
     log_dirs},
    {NULL, NULL, NULL, NULL, NULL},
};
