// SPDX-License-Identifier: Apache-2.0
// The metadata log on a node without the controller role: fetched, kept on disk in Kafka's layout, replayed,
// handed on.
//
// Happy path: at the start the newest snapshot and the log behind it are replayed from disk; then the active
// controller is asked, with a long poll, for committed batches from the log end on; each is checked,
// appended, replayed, and the new image is handed on. Failures:
//  - the controller's log begins after our end: its newest snapshot is fetched in pieces into a file,
//  checked, loaded as a
//    whole image, and the log begins anew behind it;
//  - a batch that is damaged or does not go on where we are: thrown away, fetched again;
//  - a record that does not replay: logged and counted, the rest goes on (a broker must not die of one bad
//  record);
//  - the controller says that our end was never committed: the node stops, since we hold only what was
//  committed;
//  - the disk fails: the node stops (the metadata directory is what it cannot do without).
// Belongs to the broker loop.
#ifndef KRAFT_SERVER_METADATA_FOLLOWER_H
#define KRAFT_SERVER_METADATA_FOLLOWER_H

#include "core/base/node.h"
#include "core/base/uuid.h"

struct controller_channel;
struct image;
struct log_dir;
struct log_sink;
struct metadata_follower;
struct vfs;

struct metadata_follower_opts {
    struct node *node;                  // the world
    struct node_loop *loop;             // broker loop
    struct log_sink *log;               // may be NULL
    struct vfs *fs;                     // disk
    struct log_dir *dir;                // log directory that the log is in; outlives this
    struct controller_channel *channel; // a line of its own
    node_id id;                         // node.id
    struct uuid directory_id;           // of `dir`
    const char *cluster_id;             // text form; outlives this
    uint32_t segment_bytes;             // metadata.log.segment.bytes
    uint32_t snapshot_bytes;            // metadata.log.max.record.bytes.between.snapshots
    struct node_pool *pool;             // writes snapshots
    bool existing;                      // the directory has such a log (or snapshot)
    bool clean;                         // it was stopped cleanly
    // A newer image; takes its own reference. `offset` = of the last record in it.
    void (*on_image)(void *data, struct image *image, log_offset offset);
    void *data; // first argument
};

// Replays what is on disk and begins to fetch; blocks on the disk. Errors: ERR_CORRUPT, ERR_IO.
int metadata_follower_start(const struct metadata_follower_opts *opts, struct metadata_follower **out,
                            struct errmsg *msg);
// Stops fetching (its channel must be open still), closes the log. Blocks on the disk. Frees.
int metadata_follower_stop(struct metadata_follower *mf, struct errmsg *msg);

#endif
