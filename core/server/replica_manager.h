// SPDX-License-Identifier: Apache-2.0
// This broker's partitions: opened, created, changed and deleted as the image says; their upkeep.
//
// Life: replica_manager_open (locks and lists the log directories, opens what they hold, recovers what was
// not stopped cleanly), then replica_manager_apply for each new image, upkeep by timers on the first data
// loop with jobs on the pools, replica_manager_close.
//
// A partition that is on disk but not in the first image is stray: its directory is renamed and kept.
#ifndef KRAFT_SERVER_REPLICA_MANAGER_H
#define KRAFT_SERVER_REPLICA_MANAGER_H

#include "core/base/err.h"
#include "core/base/uuid.h"
#include "core/metadata/delta.h"
#include "core/server/partition.h"
#include "storage/log_dir.h"

struct broker;
struct replica_manager;

// Blocks on the disk. Errors: ERR_LOCKED, ERR_IO, ERR_CORRUPT when no directory could be opened; one that
// fails among several is offline.
int replica_manager_open(struct broker *b, struct replica_manager **out, struct errmsg *msg);
// Starts the timers: once the loops run. On the first data loop.
void replica_manager_start_upkeep(struct replica_manager *m);
// Stops upkeep for good; jobs that run are waited for by node_shutdown. On the first data loop.
void replica_manager_stop_upkeep(struct replica_manager *m);
// Clean stop: closes all logs, writes checkpoints and marks. After the loops and pools have ended.
int replica_manager_close(struct replica_manager *m, broker_epoch epoch, struct errmsg *msg);

// Follows the image. From one thread, in order.
void replica_manager_apply(struct replica_manager *m, const struct image *image,
                           const struct image_delta *delta);

// The partition with a reference for the caller, or NULL where this broker has no replica of it. Any thread.
struct partition *replica_manager_find(struct replica_manager *m, const struct uuid *topic_id,
                                       partition_id index);
// Calls `each` for every partition, with a reference held meanwhile, without locks. Any thread.
void replica_manager_each(struct replica_manager *m, void (*each)(void *data, struct partition *p),
                          void *data);

// A partition has appends that wait for the disk: group commit on the short pool. Any thread.
void replica_manager_want_flush(struct replica_manager *m, struct partition *p);

unsigned replica_manager_dirs(const struct replica_manager *m); // log directories
struct log_dir *replica_manager_dir(const struct replica_manager *m,
                                    unsigned index); // NULL: could not be opened
bool replica_manager_dir_is_online(const struct replica_manager *m, unsigned index);

#endif
