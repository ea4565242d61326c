// SPDX-License-Identifier: Apache-2.0
// What changed from one image to another: drives replicas, coordinators, configs and metrics.
//
// Costs what changed, since parts that two images share are skipped unseen. The images may be any two (a
// snapshot may lie between them). All lists are in the arena; what they point to lives as long as the two
// images.
#ifndef KRAFT_METADATA_DELTA_H
#define KRAFT_METADATA_DELTA_H

#include "core/base/arena.h"
#include "core/metadata/image.h"

struct delta_broker {
    broker_id id;                      // which
    const struct image_broker *before; // NULL: newly registered
    const struct image_broker *after;  // NULL: unregistered
};
struct delta_controller {
    node_id id;                            // which
    const struct image_controller *before; // NULL: newly registered
    const struct image_controller *after;  // NULL: unregistered
};
struct delta_topic {
    const struct image_topic
        *before; // NULL: created. A topic made again under its old name is another topic (id)
    const struct image_topic *after; // NULL: deleted
};
struct delta_partition {
    const struct image_topic *topic;      // topic in the newer image; in the older one where it was deleted
    partition_id index;                   // which partition
    const struct image_partition *before; // NULL: new
    const struct image_partition *after;  // NULL: gone with its topic
};
struct delta_config {
    int8_t type;                       // enum config_resource_type
    struct slice name;                 // resource
    const struct image_config *before; // NULL: nothing was set
    const struct image_config *after;  // NULL: nothing is set any more
};

struct image_delta {
    const struct image *from, *to;        // borrowed
    struct delta_broker *brokers;         // changed, added and removed, by id
    struct delta_controller *controllers; // "
    struct delta_topic *topics;           // created and deleted only; deleted ones first
    struct delta_partition *partitions; // of created, deleted and changed topics; those of deleted ones first
    struct delta_config *configs;       // changed resources, the lost configs of deleted topics included
    int64_t brokers_count, controllers_count, topics_count, partitions_count, configs_count;
    bool features_changed;     // a finalized level
    bool producer_ids_changed; // the next producer id
    bool acls_changed;         // any ACL
    bool scram_changed;        // any credential
    bool quotas_changed;       // any quota
    bool tokens_changed;       // any delegation token
};
// Never fails. `arena` is the caller's and must outlive the delta.
void image_diff(const struct image *from, const struct image *to, struct arena *arena,
                struct image_delta *out);

// What a partition's change means to one broker.
enum delta_role {
    DELTA_ROLE_NONE,     // is not and was not a replica
    DELTA_ROLE_LEADER,   // leads in the newer image
    DELTA_ROLE_FOLLOWER, // is a replica that does not lead (a partition without a leader included)
    DELTA_ROLE_REMOVED   // was a replica and is none any more, or the topic is gone: delete it
};
enum delta_role delta_partition_role(const struct delta_partition *p, broker_id broker);
// True where the leader epoch rose or the partition is new: leader or follower must begin anew. False: only
// the ISR, the replicas or the directories changed.
bool delta_partition_new_epoch(const struct delta_partition *p);

#endif
