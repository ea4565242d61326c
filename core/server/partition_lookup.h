// SPDX-License-Identifier: Apache-2.0
// From a topic name in a request to this broker's partition, or to the error that tells why there is none.
#ifndef KRAFT_SERVER_PARTITION_LOOKUP_H
#define KRAFT_SERVER_PARTITION_LOOKUP_H

#include "core/security/authorize.h"
#include "core/server/partition.h"
#include "core/server/request.h"

// One reference for the caller, or NULL with *error TOPIC_AUTHORIZATION_FAILED (the principal may not do this
// operation to it), UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER (another broker has it).
struct partition *partition_lookup(struct request *rq, struct slice topic, partition_id index,
                                   enum acl_operation operation, int16_t *error);

#endif
