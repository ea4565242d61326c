// SPDX-License-Identifier: Apache-2.0
// The bootstrap checkpoint of a metadata directory: what formatting writes and a first start reads.
//
// `00000000000000000000-0000000000.checkpoint`: SNAPSHOT_HEADER, and in a dynamic quorum KRAFT_VERSION and
// KRAFT_VOTERS, then the initial metadata records, then SNAPSHOT_FOOTER (KIP-630, KIP-853, KIP-1170).
#ifndef KRAFT_RAFT_FORMAT_H
#define KRAFT_RAFT_FORMAT_H

#include "raft/quorum.h"
#include "storage/vfs.h"

struct raft_format {
    bool dynamic; // kraft.version 1
    const struct quorum_voter
        *voters; // dynamic: the initial voters, the same list in the same order on every node; may be NULL
    uint32_t voters_count;      // 0 in a dynamic quorum: this node joins an existing quorum later
    const struct slice *values; // initial metadata records, framed values
    uint32_t values_count;      // records in it
    time_ms now;                // stamped into the batches
};

// Writes the bootstrap checkpoint into `dir` (".../__cluster_metadata-0", created if missing), synced,
// replacing one that is there. Any thread; blocks. Errors: those of the vfs.
int raft_format_write(struct vfs *fs, const char *dir, const struct raft_format *f, struct errmsg *msg);

// True when `dir` holds a bootstrap checkpoint or any metadata log.
bool raft_format_exists(struct vfs *fs, const char *dir);

#endif
