// SPDX-License-Identifier: Apache-2.0
// What the files of the partition monitor share: making one, and waking who waits; the lock is held.
#ifndef KRAFT_SERVER_PARTITION_WAKE_H
#define KRAFT_SERVER_PARTITION_WAKE_H

#include "core/server/partition.h"

// One reference, the caller's. Takes over `log` (may be NULL); takes a reference of `rules`.
struct partition *partition_new(struct replica_manager *m, struct uuid topic_id, partition_id index,
                                broker_id self, struct partition_log *log, struct topic_rules *rules);
// `bytes` more can be seen; `all`: whatever they wait for.
void partition_wake_watches_locked(struct partition *p, size_t bytes, bool all, struct wake_list *wl);
void partition_wake_acks_locked(struct partition *p, struct wake_list *wl);
// Tells log, appends and fetches of the new high watermark; bytes 0: unknown how many became visible.
void partition_high_watermark_moved_locked(struct partition *p, size_t bytes, struct wake_list *wl);

#endif
