// SPDX-License-Identifier: Apache-2.0
// AssignReplicasToDirs: a broker tells in which of its directories a replica lies.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/assign_replicas_to_dirs_request.h"
#include "core/protocol/gen/assign_replicas_to_dirs_response.h"

static enum kafka_error assign(struct controller *c, const struct image_broker *b, struct uuid dir,
                               const struct image_topic *t, partition_id index, struct record_list *records)
{
    if (!t)
        return KE_UNKNOWN_TOPIC_ID;
    const struct image_partition *p = topic_partition(t, index);
    if (!p)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (!partition_has_replica(p, b->id))
        return KE_NOT_LEADER_OR_FOLLOWER;
    if (records->count >= CONTROLLER_RECORDS_MAX)
        return KE_REQUEST_TIMED_OUT; // the broker asks again
    struct partition_change change;
    partition_change__init(&change, c, t, index, p);
    partition_change__set_directory(&change, b->id, dir);
    if (!image_broker_dir_online(b, dir))
        partition_change__remove_from_isr(&change, b->id); // the directory is not usable: lead elsewhere
    (void)partition_change__finish(&change, records);
    return KE_NONE;
}

void controller_assign_replicas_to_dirs(struct controller *c,
                                        const struct kp_assign_replicas_to_dirs_request *in,
                                        struct kp_assign_replicas_to_dirs_response *out,
                                        struct record_list *records)
{
    kp_assign_replicas_to_dirs_response_init(out);
    enum kafka_error err = controller__check_epoch(c, in->broker_id, in->broker_epoch);
    if (controller__mv(c)->level < METADATA_VERSION_DIRECTORIES)
        err = KE_UNSUPPORTED_VERSION;
    out->error_code = (int16_t)err;
    if (err != KE_NONE)
        return;
    struct stage stage;
    controller__stage_begin(c, &stage, records);
    const struct image_broker *b = image_broker(c->image, in->broker_id);
    int32_t dirs = in->directories_count > 0 ? in->directories_count : 0;
    out->directories = arena_zalloc(c->arena, (size_t)dirs * sizeof *out->directories + 1);
    out->directories_count = dirs;
    for (int32_t d = 0; d < dirs; d++) {
        // A partition may be named under one directory and again under the next: each sees the one before.
        if (d > 0)
            controller__staged(c, &stage, records);
        int32_t topics = in->directories[d].topics_count > 0 ? in->directories[d].topics_count : 0;
        out->directories[d].id = in->directories[d].id;
        out->directories[d].topics =
            arena_zalloc(c->arena, (size_t)topics * sizeof *out->directories[d].topics + 1);
        out->directories[d].topics_count = topics;
        for (int32_t i = 0; i < topics; i++) {
            const struct kp_assign_replicas_to_dirs_request_topic_data *asked = &in->directories[d].topics[i];
            struct kp_assign_replicas_to_dirs_response_topic_data *topic = &out->directories[d].topics[i];
            const struct image_topic *t = image_topic(c->image, asked->topic_id);
            int32_t count = asked->partitions_count > 0 ? asked->partitions_count : 0;
            topic->topic_id = asked->topic_id;
            topic->partitions = arena_zalloc(c->arena, (size_t)count * sizeof *topic->partitions + 1);
            topic->partitions_count = count;
            for (int32_t k = 0; k < count; k++) {
                partition_id index = asked->partitions[k].partition_index;
                topic->partitions[k].partition_index = index;
                topic->partitions[k].error_code =
                    (int16_t)assign(c, b, in->directories[d].id, t, index, records);
            }
        }
    }
    controller__stage_end(c, &stage);
}
