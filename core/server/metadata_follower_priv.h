// SPDX-License-Identifier: Apache-2.0
// The metadata follower's state; private to metadata_follower*.c.
#ifndef KRAFT_SERVER_METADATA_FOLLOWER_PRIV_H
#define KRAFT_SERVER_METADATA_FOLLOWER_PRIV_H

#include "core/base/logline.h"
#include "core/base/path.h"
#include "core/server/controller_channel.h"
#include "core/server/metadata_follower.h"
#include "storage/log.h"
#include "storage/log_dir.h"
#include "storage/vfs.h"

// A snapshot that is being fetched into a `.part` file.
struct follower_snapshot {
    bool active;           // a fetch of it is under way
    log_offset end_offset; // its id
    leader_epoch epoch;    // its id
    uint64_t position;     // bytes that we have
    struct vfs_file *file; // where they are
    char *part, *path;     // names before and after
};

struct metadata_follower {
    struct metadata_follower_opts opts; // as given
    struct partition_log *plog;         // __cluster_metadata-0
    char *path;                         // its directory
    struct image *image;                // of all that is in it
    struct channel_request request;     // the one request
    bool in_flight;                     // it is with the channel
    bool stopping;                      // no more
    struct node_timer timer;            // next fetch after one that gave nothing
    struct follower_snapshot snapshot;  // fetched
    uint64_t bytes_since_snapshot;      // appended since the last snapshot of our own
    bool writing;                       // a snapshot of our own is being written
    uint64_t apply_errors;              // records that did not replay (Kafka's metadata-apply-error-count)
};

void metadata_follower__replay(struct metadata_follower *mf, struct slice bytes);
void metadata_follower__publish(struct metadata_follower *mf);
void metadata_follower__fetch(struct metadata_follower *mf); // unless one is under way
log_offset metadata_follower__end(const struct metadata_follower *mf);
// Loads the newest snapshot in the directory; none is no error.
int metadata_follower__load_snapshot(struct metadata_follower *mf, struct errmsg *msg);
void metadata_follower__fetch_snapshot(struct metadata_follower *mf, log_offset end_offset,
                                       leader_epoch epoch);
void metadata_follower__drop_fetched(struct metadata_follower *mf);   // gives a half-fetched one up
void metadata_follower__maybe_snapshot(struct metadata_follower *mf); // writes one when enough was appended

#endif
