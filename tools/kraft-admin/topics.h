// SPDX-License-Identifier: Apache-2.0
// Parts of kraft-admin topics that have files of their own, and what other verbs use of them.
#ifndef KRAFT_TOOLS_ADMIN_TOPICS_H
#define KRAFT_TOOLS_ADMIN_TOPICS_H

#include "tools/kraft-admin/admin.h"

int topics_describe(struct admin *a);
int topics_offsets(struct admin *a);

#define OFFSET_EARLIEST (-2) // timestamps of ListOffsets that mean a place
#define OFFSET_LATEST (-1)

struct partition_offset {
    int32_t partition; // index
    int32_t leader;    // broker that was asked; -1: none
    int16_t error;     // KE_NONE, or why there is no offset
    int64_t offset;    // the offset
};
// Asks the leaders for the offset at `timestamp` of every partition of the topic. `out` is in the arena, in
// the order of the topic's partitions. ADMIN_OK or an exit code.
int offsets_of(struct admin *a, const struct kp_metadata_response_metadata_response_topic *topic,
               int64_t timestamp, bool read_committed, struct partition_offset **out);

#endif
