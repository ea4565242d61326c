// SPDX-License-Identifier: Apache-2.0
// kraft-admin topics describe.
#include <stdlib.h>

#include "tools/kraft-admin/configs.h"
#include "tools/kraft-admin/topics.h"

typedef struct kp_metadata_response_metadata_response_topic topic_metadata;
typedef struct kp_metadata_response_metadata_response_partition partition_metadata;

static bool is_unhealthy(const partition_metadata *p)
{
    return p->leader_id < 0 || p->isr_nodes_count < p->replica_nodes_count || p->offline_replicas_count > 0;
}

static int by_index(const void *a, const void *b)
{
    const partition_metadata *x = a, *y = b;
    return (x->partition_index > y->partition_index) - (x->partition_index < y->partition_index);
}

static json_t *partition_json(const partition_metadata *p)
{
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "partition", p->partition_index, "leader",
                     p->leader_id, "leader_epoch", p->leader_epoch, "replicas",
                     admin_numbers_json(p->replica_nodes, p->replica_nodes_count), "isr",
                     admin_numbers_json(p->isr_nodes, p->isr_nodes_count), "offline",
                     admin_numbers_json(p->offline_replicas, p->offline_replicas_count));
}

static void print_partitions(struct admin *a, const topic_metadata *topic, bool unhealthy_only)
{
    struct table t;
    table_init(&t, "  PARTITION|LEADER|EPOCH|REPLICAS|IN SYNC|STATE");
    for (int32_t i = 0; i < topic->partitions_count; i++) {
        const partition_metadata *p = &topic->partitions[i];
        if (unhealthy_only && !is_unhealthy(p))
            continue;
        table_add(&t, "  %d", p->partition_index);
        if (p->leader_id < 0)
            table_add(&t, "none");
        else
            table_add(&t, "%d", p->leader_id);
        table_add(&t, "%d", p->leader_epoch);
        table_add(&t, "%s", admin_numbers(a, p->replica_nodes, p->replica_nodes_count));
        table_add(&t, "%s", admin_numbers(a, p->isr_nodes, p->isr_nodes_count));
        table_add(&t, "%s",
                  p->leader_id < 0                              ? "no leader"
                  : p->isr_nodes_count < p->replica_nodes_count ? "under-replicated"
                                                                : "ok");
    }
    table_print(&t, stdout);
    table_fini(&t);
}

static int describe_one(struct admin *a, const topic_metadata *topic, bool unhealthy_only, json_t *out)
{
    char id[UUID_TEXT_BYTES];
    bool shown = !unhealthy_only;
    json_t *partitions = json_array(), *configs = json_object();
    qsort(topic->partitions, (size_t)topic->partitions_count, sizeof(*topic->partitions), by_index);
    for (int32_t i = 0; i < topic->partitions_count; i++)
        if (!unhealthy_only || is_unhealthy(&topic->partitions[i])) {
            json_array_append_new(partitions, partition_json(&topic->partitions[i]));
            shown = true;
        }
    int status = shown ? configs_of_topic(a, topic->name, configs) : ADMIN_OK;
    uuid_format(topic->topic_id, id);
    if (shown && !a->json) {
        printf("topic " SLICE_FMT "  id %s  partitions %d%s\n", SLICE_ARG(topic->name), id,
               topic->partitions_count, topic->is_internal ? "  internal" : "");
        const char *key;
        json_t *value;
        json_object_foreach(configs, key, value)
            printf("  %s=%s\n", key, json_is_string(value) ? json_string_value(value) : "");
        print_partitions(a, topic, unhealthy_only);
    }
    if (shown)
        json_array_append_new(out, json_pack("{s:o, s:s, s:b, s:O, s:O}", "topic", admin_text(topic->name),
                                             "topic_id", id, "internal", topic->is_internal, "configs",
                                             configs, "partitions", partitions));
    json_decref(partitions);
    json_decref(configs);
    return status;
}

int topics_describe(struct admin *a)
{
    struct kp_metadata_response m;
    const char *name = args_value(&a->args, "topic");
    bool unhealthy_only = args_flag(&a->args, "unhealthy");
    int status = admin_metadata(a, name, &m);
    if (status)
        return status;
    json_t *out = json_array();
    for (int32_t i = 0; i < m.topics_count && status == ADMIN_OK; i++)
        status = describe_one(a, &m.topics[i], unhealthy_only, out);
    if (a->json)
        (void)admin_print_json(out);
    else
        json_decref(out);
    return status;
}
