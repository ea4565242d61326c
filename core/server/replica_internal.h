// SPDX-License-Identifier: Apache-2.0
// The replica manager's own struct, shared by its files only.
#ifndef KRAFT_SERVER_REPLICA_INTERNAL_H
#define KRAFT_SERVER_REPLICA_INTERNAL_H

#include "core/base/hmap.h"
#include "core/base/node.h"
#include "core/server/broker.h"
#include "core/server/partition_wake.h"
#include "core/server/replica_manager.h"

// The partitions of one topic that this broker has.
struct topic_replicas {
    struct uuid id;           // topic id
    struct partition **slots; // by partition index; NULL: no replica here
    int32_t slots_count;      // room of `slots`
    int32_t used;             // slots that are not NULL
};

// A log that was on disk at the start and no image has claimed yet.
struct stored_log {
    char *name;                // "TOPIC-N"; the key
    struct partition_log *log; // opened and recovered
    unsigned dir;              // directory it is in
};

// A directory of log.dirs.
struct replica_dir {
    struct log_dir *dir;   // NULL: could not be opened
    struct uuid id;        // directory.id
    atomic_int partitions; // logs in it: new ones go where there are fewest
};

struct upkeep_job {
    struct node_job job;                     // on a pool
    struct replica_manager *m;               // whose
    struct node_timer timer;                 // starts it again
    uint64_t every_ms;                       // pause between two runs
    struct node_pool *pool;                  // where
    void (*work)(struct replica_manager *m); // what; on the pool
    bool (*due)(struct replica_manager *m);  // is there anything to do? NULL: always. On the loop
    bool running;                            // on the pool now
};
enum upkeep {
    UPKEEP_HIGH_WATERMARKS, // replication-offset-checkpoint
    UPKEEP_CHECKPOINTS,     // recovery points and log starts
    UPKEEP_RETENTION,       // retention, rolling, producer expiry
    UPKEEP_FLUSH,           // flush.ms
    UPKEEP_REMOVAL,         // files of deleted segments and partitions
    UPKEEP_COUNT
};

// Something that was taken out of a log and is removed from the disk once its delay is over.
struct doomed {
    struct doomed *next;      // list
    mono_us due;              // when
    struct plog_doomed files; // segments; count 0: a partition's directory instead
    struct log_dir *dir;      // directory whose *-delete directories are to go; NULL for segments
};

struct replica_manager {
    struct broker *broker;                  // whose
    struct file_cache *files;               // descriptors of all logs
    struct replica_dir *dirs;               // as in settings.log_dirs
    unsigned dirs_count;                    // number of them
    struct mutex lock;                      // guards `topics` and `doomed`
    struct hmap topics;                     // topic id -> topic_replicas
    struct hmap stored;                     // name -> stored_log; used by the applying thread only
    bool seen_image;                        // the first image was applied
    struct doomed *doomed;                  // to be removed later
    bool stopping;                          // no more upkeep
    struct upkeep_job upkeep[UPKEEP_COUNT]; // timers
    atomic_bool timed_flush;                // some topic has flush.ms: look every second
    unsigned flush_looks;                   // times that the flush upkeep ran
    struct mutex flush_lock;                // guards the two below
    struct list flush_wanted;               // partitions (one reference each) that wait for a flush
    bool flush_running;                     // the job is under way
    struct node_job flush_job;              // on the short pool
};

// replica_flush.c
void replica_flush_work(struct node_job *j);
int16_t replica_flush_partition(struct partition *p, struct wake_list *wl); // one partition, the three steps
// replica_upkeep.c
void replica_doom_segments(struct replica_manager *m, struct plog_doomed *files);
void replica_doom_directory(struct replica_manager *m, struct log_dir *dir, int64_t delay_ms);
// replica_open.c
int replica_dirs_open(struct replica_manager *m, struct errmsg *msg);
// replica_apply.c
void replica_retire_strays(struct replica_manager *m);

#endif
