// SPDX-License-Identifier: Apache-2.0
// What recovery cuts off is kept in a file beside the log, and what of it is still whole is counted.
#ifndef KRAFT_STORAGE_LOG_SALVAGE_H
#define KRAFT_STORAGE_LOG_SALVAGE_H

#include "core/base/err.h"
#include "core/base/types.h"
#include "storage/segment.h"

struct log_dir;

struct salvage_args {
    const struct segment_place *at; // the partition's directory
    struct log_dir *dir;            // whose reserve file may be given up
    log_offset base;                // segment
    uint64_t pos;                   // first bad byte
    uint64_t size;                  // bytes of the file
    log_offset next;                // offset after the last good batch
};
struct salvage {
    uint32_t batches; // whole batches with a good checksum in what was cut off
    char name[128];   // file that keeps it; "" where it was nothing but zeros
};

// Copies bytes [pos, size) of the segment to NEXT.cutoff, then cuts the file there. Nothing is cut before the
// copy is on disk.
int log_salvage_tail(const struct salvage_args *args, struct salvage *out, struct errmsg *msg);
// Renames a whole segment to BASE.log.cutoff and removes its indexes.
int log_salvage_segment(const struct salvage_args *args, struct salvage *out, struct errmsg *msg);

#endif
