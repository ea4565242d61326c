// SPDX-License-Identifier: Apache-2.0
// Names of topics: what is allowed, what collides, which are the cluster's own.
#ifndef KRAFT_METADATA_TOPIC_NAME_H
#define KRAFT_METADATA_TOPIC_NAME_H

#include "core/base/arena.h"
#include "core/base/slice.h"

#define TOPIC_NAME_BYTES_MAX 249 // so that "name-partition" with a suffix fits a file name
#define TOPIC_CLUSTER_METADATA "__cluster_metadata"
#define TOPIC_CONSUMER_OFFSETS "__consumer_offsets"
#define TOPIC_TRANSACTION_STATE "__transaction_state"
#define TOPIC_SHARE_GROUP_STATE "__share_group_state"

// NULL: allowed. Else what is wrong with it, as the end of a sentence.
const char *topic_name_check(struct slice name);
// Whether the topic is one of the servers' own (Metadata's IsInternal).
bool topic_name_is_internal(struct slice name);
// The name with '.' as '_': topics whose shapes are equal collide.
struct slice topic_name_shape(struct slice name, struct arena *arena);

#endif
