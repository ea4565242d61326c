// SPDX-License-Identifier: Apache-2.0
// Snapshot files of the metadata log: an image as record batches between a header and a footer (KIP-630).
//
// `%020d-%010d.checkpoint` = end offset and epoch of the last record. Written to `.checkpoint.part`, synced,
// renamed, directory synced. Tagged field 10000 of the SNAPSHOT_HEADER record is ours:
//   u64 Raft index, u64 Raft term, u64 index of the configuration, u8 1 = dynamic quorum, then the
//   configuration (voter_set_encode)
#ifndef KRAFT_RAFT_CHECKPOINT_H
#define KRAFT_RAFT_CHECKPOINT_H

#include "raft/voter_set.h"
#include "storage/vfs.h"

struct image;

struct checkpoint_info {
    log_offset end_offset;    // offset after the last record in it
    leader_epoch epoch;       // of that record
    raft_index index;         // Raft index of the last entry in it; bootstrap: 2
    raft_term term;           // of that entry; bootstrap: 1
    raft_index conf_index;    // index of the configuration entry in force; bootstrap: 2
    bool dynamic;             // kraft.version 1
    time_ms timestamp;        // wall clock of the last record, for the header
    struct voter_set *voters; // configuration; NULL: none (a node that is to be added later). One reference
    uint64_t size;            // bytes of the file (reading)
};

#define CHECKPOINT_NAME_BYTES 64
void checkpoint_name(log_offset end_offset, leader_epoch epoch, const char *suffix,
                     char out[CHECKPOINT_NAME_BYTES]);
bool checkpoint_parse_name(const char *name, log_offset *end_offset,
                           leader_epoch *epoch); // exactly `.checkpoint`

// Writes one. Records are those of `image` (may be NULL) and then `values`. Any thread; blocks. Errors of the
// vfs; nothing is left behind then.
int checkpoint_write(struct vfs *fs, const char *dir, const struct checkpoint_info *info,
                     const struct image *image, const struct slice *values, uint32_t values_count,
                     struct errmsg *msg);

// Reads and checks the whole file at `path`: CRCs, header first, footer last. `each` (may be NULL) gets every
// metadata record's value. Any thread; blocks. ERR_CORRUPT, ERR_NOTFOUND, ERR_IO, or the answer of `each`. On
// 0 the caller owns out->voters.
typedef int (*checkpoint_each)(void *data, struct slice value, struct errmsg *msg);
int checkpoint_read(struct vfs *fs, const char *path, struct checkpoint_info *out, checkpoint_each each,
                    void *data, struct errmsg *msg);
// The same into an image that ends at info->end_offset - 1. The bootstrap checkpoint (end offset 0) gives the
// empty image.
int checkpoint_read_image(struct vfs *fs, const char *path, struct checkpoint_info *out, struct image **image,
                          struct errmsg *msg);

#endif
