// SPDX-License-Identifier: Apache-2.0
// kraft-admin topics offsets, and the offsets that other verbs need.
#include "core/protocol/gen/list_offsets_request.h"
#include "core/protocol/gen/list_offsets_response.h"
#include "tools/kraft-admin/topics.h"

typedef struct kp_metadata_response_metadata_response_topic topic_metadata;

// Asks one leader for its partitions among `rows`.
static int ask_leader(struct admin *a, const topic_metadata *topic, int32_t leader, int64_t timestamp,
                      bool read_committed, struct partition_offset *rows)
{
    struct kp_list_offsets_request q;
    struct kp_list_offsets_response r;
    struct kp_list_offsets_request_list_offsets_topic t;
    struct kp_list_offsets_request_list_offsets_partition *p =
        arena_alloc(&a->arena, (size_t)topic->partitions_count * sizeof(*p));
    kp_list_offsets_request_init(&q);
    kp_list_offsets_request_list_offsets_topic_init(&t);
    q.replica_id = -1; // a client
    q.isolation_level = read_committed ? 1 : 0;
    q.timeout_ms = a->client->opts.timeout_ms;
    t.name = topic->name;
    t.partitions = p;
    for (int32_t i = 0; i < topic->partitions_count; i++)
        if (rows[i].leader == leader) {
            kp_list_offsets_request_list_offsets_partition_init(&p[t.partitions_count]);
            p[t.partitions_count].partition_index = rows[i].partition;
            p[t.partitions_count++].timestamp = timestamp;
        }
    q.topics = &t;
    q.topics_count = 1;
    int rc = admin_call_node(a, leader, KP_API_LIST_OFFSETS, -1, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    for (int32_t i = 0; r.topics_count == 1 && i < r.topics[0].partitions_count; i++)
        for (int32_t k = 0; k < topic->partitions_count; k++)
            if (rows[k].partition == r.topics[0].partitions[i].partition_index) {
                rows[k].error = r.topics[0].partitions[i].error_code;
                rows[k].offset = r.topics[0].partitions[i].offset;
            }
    return ADMIN_OK;
}

int offsets_of(struct admin *a, const topic_metadata *topic, int64_t timestamp, bool read_committed,
               struct partition_offset **out)
{
    struct partition_offset *rows =
        arena_alloc(&a->arena, (size_t)(topic->partitions_count + 1) * sizeof(*rows));
    for (int32_t i = 0; i < topic->partitions_count; i++)
        rows[i] = (struct partition_offset){.partition = topic->partitions[i].partition_index,
                                            .leader = topic->partitions[i].leader_id,
                                            .error = KE_LEADER_NOT_AVAILABLE,
                                            .offset = -1};
    *out = rows;
    for (int32_t i = 0; i < topic->partitions_count; i++) {
        bool asked = rows[i].leader < 0;
        for (int32_t k = 0; k < i; k++)
            asked |= rows[k].leader == rows[i].leader;
        int status = asked ? ADMIN_OK : ask_leader(a, topic, rows[i].leader, timestamp, read_committed, rows);
        if (status)
            return status;
    }
    return ADMIN_OK;
}

int topics_offsets(struct admin *a)
{
    struct kp_metadata_response m;
    struct partition_offset *start, *end;
    struct table t;
    const char *name = admin_need(a, "topic");
    if (!name)
        return ADMIN_USAGE;
    int status = admin_metadata(a, name, &m);
    if (status || (status = offsets_of(a, &m.topics[0], OFFSET_EARLIEST, false, &start)) ||
        (status = offsets_of(a, &m.topics[0], OFFSET_LATEST, false, &end)))
        return status;
    json_t *rows = json_array();
    table_init(&t, "PARTITION|START|END|RECORDS|LEADER");
    for (int32_t i = 0; i < m.topics[0].partitions_count; i++) {
        int error = start[i].error ? start[i].error : end[i].error;
        if (error) {
            status = admin_refused(a, "%s-%d: %s: %s", name, start[i].partition, kafka_error_name(error),
                                   kafka_error_text(error));
            continue;
        }
        json_array_append_new(rows,
                              json_pack("{s:s, s:i, s:I, s:I, s:i}", "topic", name, "partition",
                                        start[i].partition, "start_offset", (json_int_t)start[i].offset,
                                        "end_offset", (json_int_t)end[i].offset, "leader", start[i].leader));
        table_add(&t, "%d", start[i].partition);
        table_add(&t, "%lld", (long long)start[i].offset);
        table_add(&t, "%lld", (long long)end[i].offset);
        table_add(&t, "%lld", (long long)(end[i].offset - start[i].offset));
        table_add(&t, "%d", start[i].leader);
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
