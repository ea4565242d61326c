// SPDX-License-Identifier: Apache-2.0
// CreatePartitions: more partitions for a topic, on the brokers that its striping has come to.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"

typedef struct kp_create_partitions_request_create_partitions_topic asked_topic;

// Replicas of each partition: as the first one has, what a running reassignment adds not counted.
static int32_t factor_of(const struct image_topic *t)
{
    const struct image_partition *p = NULL;
    for (partition_id i = 0; i < topic_partition_count(t) && !p; i++)
        p = topic_partition(t, i);
    return p ? p->replicas_count - p->adding_count : 1;
}

static struct refusal manual_placement(struct controller *c, const asked_topic *in, int32_t more,
                                       int32_t factor, struct placement *out)
{
    if (in->assignments_count != more)
        return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                  "%d partition(s) are to be added, the assignment lists %d.", more,
                                  in->assignments_count);
    for (int32_t i = 0; i < more; i++) {
        struct refusal no = controller__check_assignment(c, in->assignments[i].broker_ids,
                                                         in->assignments[i].broker_ids_count, factor);
        if (no.code != KE_NONE)
            return no;
    }
    out->brokers = arena_alloc(c->arena, (size_t)more * (size_t)factor * sizeof *out->brokers);
    out->count = more;
    out->factor = factor;
    for (int32_t i = 0; i < more; i++)
        memcpy(out->brokers + (size_t)i * (size_t)factor, in->assignments[i].broker_ids,
               (size_t)factor * sizeof *out->brokers);
    return NO_REFUSAL;
}

static struct refusal add_partitions(struct controller *c, const asked_topic *in, struct record_list *records)
{
    const struct image_topic *t = image_topic_named(c->image, in->name);
    if (!t)
        return controller__refuse(c, KE_UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic.");
    int32_t now = topic_partition_count(t);
    if (in->count == now)
        return controller__refuse(c, KE_INVALID_PARTITIONS, "The topic already has %d partition(s).", now);
    if (in->count < now)
        return controller__refuse(c, KE_INVALID_PARTITIONS,
                                  "The topic has %d partition(s); partitions cannot be taken away.", now);
    int32_t more = in->count - now, factor = factor_of(t);
    if (more > CONTROLLER_RECORDS_MAX || records->count + (uint32_t)more > CONTROLLER_RECORDS_MAX)
        return controller__refuse(c, KE_POLICY_VIOLATION,
                                  "One request can add at most %d partitions: split it.",
                                  CONTROLLER_RECORDS_MAX);
    struct placement placed;
    struct refusal no = in->assignments_count >= 0 ? manual_placement(c, in, more, factor, &placed)
                                                   : controller__place(c, t, more, factor, &placed);
    uint32_t before = records->count;
    for (int32_t i = 0; no.code == KE_NONE && i < more; i++)
        if (!controller__add_partition(c, records, topic_id(t), now + i,
                                       placed.brokers + (size_t)i * (size_t)factor, factor))
            no = controller__refuse(
                c, KE_INVALID_REPLICA_ASSIGNMENT,
                "All replicas of partition %d are on brokers that are fenced or stopping.", now + i);
    if (no.code != KE_NONE)
        record_list_cut(records, before);
    return no;
}

void controller_create_partitions(struct controller *c, const struct kp_create_partitions_request *in,
                                  struct kp_create_partitions_response *out, struct record_list *records)
{
    kp_create_partitions_response_init(out);
    int32_t count = in->topics_count > 0 ? in->topics_count : 0;
    out->results = arena_alloc(c->arena, (size_t)count * sizeof *out->results + 1);
    struct hmap names, twice;
    hmap_init(&names, HMAP_SLICE);
    hmap_init(&twice, HMAP_SLICE);
    for (int32_t i = 0; i < count; i++)
        if (controller__seen(&names, in->topics[i].name))
            (void)controller__seen(&twice, in->topics[i].name);
    hmap_clear(&names);
    for (int32_t i = 0; i < count; i++) {
        if (controller__seen(&names, in->topics[i].name))
            continue; // answered once
        struct kp_create_partitions_response_create_partitions_topic_result *result =
            &out->results[out->results_count++];
        kp_create_partitions_response_create_partitions_topic_result_init(result);
        result->name = in->topics[i].name;
        struct refusal no;
        if (hmap_get(&twice, in->topics[i].name))
            no = controller__refuse(c, KE_INVALID_REQUEST, "The topic is named twice in this request.");
        else
            no = add_partitions(c, &in->topics[i], records);
        result->error_code = (int16_t)no.code;
        result->error_message = no.text;
    }
    hmap_fini(&names);
    hmap_fini(&twice);
    if (in->validate_only)
        record_list_cut(records, 0);
}
