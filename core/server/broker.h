// SPDX-License-Identifier: Apache-2.0
// The broker half of a node: what its request handlers reach (loops, image, partitions, settings, and the
// actions of the assembly).
//
// Made by the assembly (server.c), filled before the listeners open. Threads: the fields are constant once
// the listeners are open, except where a comment says otherwise. Images are immutable values; each data loop
// pins one, which changes between turns only.
#ifndef KRAFT_SERVER_BROKER_H
#define KRAFT_SERVER_BROKER_H

#include <stdatomic.h>
#include "core/base/mutex.h"
#include "core/base/node.h"
#include "core/base/types.h"
#include "core/base/uuid.h"
#include "core/server/request.h"

struct image;           // core/metadata/image.h: the cluster image
struct image_delta;     // core/metadata/delta.h: what changed between two images
struct replica_manager; // core/server/replica_manager.h: this broker's partitions
struct fetch_sessions;  // core/server/fetch_session.h: incremental fetch sessions (KIP-227)
struct data_plane;      // core/server/data_plane.h: appends and parked requests of one loop
struct vfs;

// What the handlers need of the node's static configuration, as plain values. Filled by the assembly from
// core/config.
struct broker_settings {
    const struct config_values *config;   // what the operator set; NULL: nothing but defaults
    node_id id;                           // node.id
    unsigned open_files_max;              // descriptors of partitions kept open; 0 = OPEN_FILES_MAX
    const char *cluster_id;               // 22 characters
    const char *rack;                     // broker.rack; NULL none
    const char *const *log_dirs;          // log.dirs, absolute
    const struct uuid *log_dir_ids;       // directory.id of each
    unsigned log_dirs_count;              // number of them
    bool auto_create_topics;              // auto.create.topics.enable
    int32_t num_partitions;               // num.partitions
    int16_t default_replication_factor;   // default.replication.factor
    int32_t fetch_max_bytes;              // fetch.max.bytes
    int32_t fetch_sessions_max;           // max.incremental.fetch.session.cache.slots
    int32_t request_partitions_max;       // max.request.partition.size.limit
    int32_t producer_id_expiration_ms;    // producer.id.expiration.ms
    int32_t replica_lag_time_ms_max;      // replica.lag.time.max.ms
    int64_t log_retention_check_ms;       // log.retention.check.interval.ms
    int64_t high_watermark_checkpoint_ms; // replica.high.watermark.checkpoint.interval.ms
    int64_t recovery_point_checkpoint_ms; // log.flush.offset.checkpoint.interval.ms
    int64_t log_start_checkpoint_ms;      // log.flush.start.offset.checkpoint.interval.ms
    int64_t flush_scheduler_ms;           // log.flush.scheduler.interval.ms; INT64_MAX never
    int64_t file_delete_delay_ms; // log.segment.delete.delay.ms (broker default of file.delete.delay.ms)
    bool unstable_api_versions;   // unstable.api.versions.enable
};

// Actions that the assembly provides. All are asynchronous: `done` is called once, on the loop that asked,
// never inside the call.
struct broker_ops {
    // Asks the active controller to create the topics with broker defaults (auto.create.topics.enable,
    // internal topics included). `names` are copied. done: one enum kafka_error a name. The topics may not
    // yet be in the loop's image.
    void (*auto_create_topics)(struct broker *b, struct request *rq, const struct slice *names,
                               unsigned count,
                               void (*done)(struct request *rq, const int16_t *errors, unsigned count));
    // One producer id of our block (KIP-730). done: error is an enum kafka_error,
    // COORDINATOR_LOAD_IN_PROGRESS while no block is there.
    void (*next_producer_id)(struct broker *b, struct request *rq,
                             void (*done)(struct request *rq, int16_t error, int64_t producer_id));
    // A log directory went offline: tells the controller at the next heartbeat. Any thread.
    void (*log_dir_offline)(struct broker *b, const struct uuid *dir);
    // A partition has a directory that the controller does not know of: AssignReplicasToDirs (KIP-858). Any
    // thread.
    void (*assign_replica_dir)(struct broker *b, const struct uuid *topic_id, partition_id partition,
                               const struct uuid *dir);
    // Controller that we know of, -1 none. Any thread.
    node_id (*controller_id)(struct broker *b);
};

// A data loop of the broker: request machinery plus what the data path keeps for it.
struct broker_loop {
    struct request_loop requests; // connections, pools, replies
    struct broker *broker;        // whose
    unsigned index;               // position in broker->loops
    const struct image
        *image; // image of this turn; one reference. Changes between turns only; never NULL once serving
    struct data_plane *data;       // appends to flush and requests that wait, of this loop
    struct node_task image_task;   // brings a newer image
    atomic_bool image_task_posted; // it is under way
};

struct broker {
    uint32_t magic;                   // BROKER_MAGIC
    struct node *node;                // the world
    struct vfs *vfs;                  // the disk
    struct log_sink *log;             // log lines; may be NULL
    struct broker_settings settings;  // static configuration
    const struct broker_ops *ops;     // actions of the assembly
    void *ops_data;                   // the assembly's own
    struct node_pool *pool_short;     // flush, cold reads
    struct node_pool *pool_long;      // recovery, deletion
    struct broker_loop *loops;        // one per data loop
    unsigned loops_count;             // number of them
    struct replica_manager *replicas; // this broker's partitions
    struct fetch_sessions *sessions;  // incremental fetch sessions
    struct mutex image_lock;          // guards `image`
    const struct image *image;        // newest published image; one reference
    _Atomic broker_epoch epoch;   // of our registration; -1 before. Written by the lifecycle, read anywhere
    struct node_task upkeep_task; // starts and stops upkeep on the first data loop
};
#define BROKER_MAGIC 0x42524f4bu

// Makes loops, replica manager and sessions from node, vfs, settings, ops and pools, which the caller has
// filled in. Opens nothing yet; `loops` are the data loops. Before the listeners open.
int broker_init(struct broker *b, struct node_loop *const *loops, unsigned loops_count, struct errmsg *msg);
// Starts the timers of the partitions' upkeep, and ends them: once the loops run; before node_shutdown. Any
// thread.
void broker_start(struct broker *b);
void broker_stop(struct broker *b);
// After all loops have stopped taking requests: checkpoints, clean-stop marks, closes the logs.
void broker_fini(struct broker *b);

// A newer image: starts, changes and deletes partitions (on the caller's thread and the pools), then lets
// every data loop see it. Called by the metadata follower only, from one thread, in order. `delta` is from
// the image published before. Takes one reference of `image` of its own.
void broker_publish(struct broker *b, const struct image *image, const struct image_delta *delta);

// The newest image with a reference for the caller. Any thread. NULL before the first one.
const struct image *broker_image(struct broker *b);

static inline struct broker *request_broker(const struct request *rq)
{
    return rq->loop->data->broker;
}

#endif
