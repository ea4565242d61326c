// SPDX-License-Identifier: Apache-2.0
// What clients of one listener may see of brokers and topics: shared by Metadata, DescribeCluster, Produce
// and Fetch.
#ifndef KRAFT_SERVER_CLUSTER_VIEW_H
#define KRAFT_SERVER_CLUSTER_VIEW_H

#include "core/metadata/image.h"
#include "core/protocol/gen/errors.h"
#include "core/server/request.h"

#define CLUSTER_VIEW_NO_OPERATIONS INT32_MIN // authorized operations were not asked for

// The broker's endpoint of this listener name, or NULL (then the broker is not shown there).
const struct image_endpoint *cluster_view_endpoint(const struct image_broker *b, struct slice listener);
// Alive, for clients: registered, unfenced, with an endpoint of this listener.
bool cluster_view_alive(const struct image *image, broker_id id, struct slice listener);
bool cluster_view_internal(
    struct slice topic); // __consumer_offsets, __transaction_state, __share_group_state
// Kafka's rule for a topic name: 1-249 characters of [a-zA-Z0-9._-], not "." or "..".
bool cluster_view_valid_name(struct slice topic);

// Error and shown leader of a partition, as Metadata tells it: LEADER_NOT_AVAILABLE without a live leader,
// LISTENER_NOT_FOUND where the leader lacks the listener (from `listener_error` on).
int16_t cluster_view_partition(const struct image *image, const struct image_partition *p,
                               struct slice listener, bool listener_error, broker_id *leader);
// Replicas that are not alive or whose directory is offline. In the arena.
int32_t *cluster_view_offline(struct request *rq, const struct image *image, const struct image_partition *p,
                              int32_t *count);
int32_t *cluster_view_ids(struct request *rq, const broker_id *ids, int32_t count); // a copy for an answer
// ACL operations bits that everybody has while there is no authorizer.
int32_t cluster_view_topic_operations(void);
int32_t cluster_view_cluster_operations(void);
// Controller to show: any live broker where the controllers are not reachable by clients (as Kafka does in
// KRaft).
broker_id cluster_view_controller(struct request *rq, const struct image *image);

#endif
