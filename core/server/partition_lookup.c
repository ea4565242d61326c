// SPDX-License-Identifier: Apache-2.0
// From a topic name in a request to this broker's partition.
#include "core/server/partition_lookup.h"

#include "core/metadata/image.h"
#include "core/server/broker.h"
#include "core/server/replica_manager.h"

struct partition *partition_lookup(struct request *rq, struct slice topic, partition_id index,
                                   enum acl_operation operation, int16_t *error)
{
    if (!authorize(rq->ctx, operation, ACL_TOPIC, topic)) {
        *error = KE_TOPIC_AUTHORIZATION_FAILED; // whether it exists or not
        return NULL;
    }
    const struct image_topic *t = image_topic_named(request_image(rq), topic);
    *error = KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (t == NULL || index < 0 || topic_partition(t, index) == NULL) {
        return NULL;
    }
    struct uuid id = topic_id(t);
    struct partition *p = replica_manager_find(request_broker(rq)->replicas, &id, index);
    *error = p != NULL ? KE_NONE : KE_NOT_LEADER_OR_FOLLOWER;
    return p;
}
