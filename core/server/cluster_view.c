// SPDX-License-Identifier: Apache-2.0
// What clients of one listener may see of brokers and topics.
#include "core/server/cluster_view.h"

#include "core/security/authorize.h"
#include "core/server/broker.h"

int32_t cluster_view_topic_operations(void)
{
    return 1 << ACL_READ | 1 << ACL_WRITE | 1 << ACL_CREATE | 1 << ACL_DELETE | 1 << ACL_ALTER |
           1 << ACL_DESCRIBE | 1 << ACL_DESCRIBE_CONFIGS | 1 << ACL_ALTER_CONFIGS;
}

int32_t cluster_view_cluster_operations(void)
{
    return 1 << ACL_CREATE | 1 << ACL_ALTER | 1 << ACL_DESCRIBE | 1 << ACL_CLUSTER_ACTION |
           1 << ACL_DESCRIBE_CONFIGS | 1 << ACL_ALTER_CONFIGS | 1 << ACL_IDEMPOTENT_WRITE;
}

const struct image_endpoint *cluster_view_endpoint(const struct image_broker *b, struct slice listener)
{
    for (int32_t i = 0; b != NULL && i < b->endpoints_count; i++) {
        if (slice_equal(b->endpoints[i].name, listener)) {
            return &b->endpoints[i];
        }
    }
    return NULL;
}

bool cluster_view_alive(const struct image *image, broker_id id, struct slice listener)
{
    const struct image_broker *b = image_broker(image, id);
    return b != NULL && !b->fenced && cluster_view_endpoint(b, listener) != NULL;
}

bool cluster_view_internal(struct slice topic)
{
    return slice_equal_str(topic, "__consumer_offsets") || slice_equal_str(topic, "__transaction_state") ||
           slice_equal_str(topic, "__share_group_state");
}

bool cluster_view_valid_name(struct slice topic)
{
    if (topic.len == 0 || topic.len > 249 || slice_equal_str(topic, ".") || slice_equal_str(topic, "..")) {
        return false;
    }
    for (size_t i = 0; i < topic.len; i++) {
        uint8_t c = topic.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
              c == '_' || c == '-')) {
            return false;
        }
    }
    return true;
}

int16_t cluster_view_partition(const struct image *image, const struct image_partition *p,
                               struct slice listener, bool listener_error, broker_id *leader)
{
    const struct image_broker *b = p->leader == LEADER_NONE ? NULL : image_broker(image, p->leader);
    *leader = -1;
    if (b == NULL || b->fenced) {
        return KE_LEADER_NOT_AVAILABLE;
    }
    if (cluster_view_endpoint(b, listener) == NULL) {
        return listener_error ? KE_LISTENER_NOT_FOUND : KE_LEADER_NOT_AVAILABLE;
    }
    *leader = p->leader;
    return KE_NONE;
}

int32_t *cluster_view_offline(struct request *rq, const struct image *image, const struct image_partition *p,
                              int32_t *count)
{
    int32_t *out = arena_alloc(&rq->arena, p->replicas_count * sizeof *out);
    *count = 0;
    for (uint16_t i = 0; i < p->replicas_count; i++) {
        const struct image_broker *b = image_broker(image, p->ids[i]);
        if (b == NULL || b->fenced || cluster_view_endpoint(b, rq->ctx->listener_name) == NULL ||
            !image_broker_dir_online(b, partition_directory(p, i))) {
            out[(*count)++] = p->ids[i];
        }
    }
    return out;
}

int32_t *cluster_view_ids(struct request *rq, const broker_id *ids, int32_t count)
{
    return arena_dup(&rq->arena, ids, (size_t)count * sizeof *ids);
}

broker_id cluster_view_controller(struct request *rq, const struct image *image)
{
    broker_id self = rq->listener->node_id;
    if (cluster_view_alive(image, self, rq->ctx->listener_name)) {
        return self;
    }
    for (const struct image_broker *b = image_broker_next(image, NULL); b != NULL;
         b = image_broker_next(image, b)) {
        if (cluster_view_alive(image, b->id, rq->ctx->listener_name)) {
            return b->id;
        }
    }
    return -1;
}
