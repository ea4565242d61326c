// SPDX-License-Identifier: Apache-2.0
// One segment of a log: its file, what is known of it, and its indexes when they are in memory.
//
// The active segment's index is always in memory and its files are written at roll and close; a closed
// segment's is read when it is looked up. Under the log's lock.
#ifndef KRAFT_STORAGE_SEGMENT_H
#define KRAFT_STORAGE_SEGMENT_H

#include "core/base/err.h"
#include "core/base/types.h"
#include "storage/file_cache.h"
#include "storage/layout.h"
#include "storage/sparse_index.h"
#include "storage/vfs.h"

#define SEGMENT_TIME_UNKNOWN (-2) // not read from the disk yet

struct segment {
    log_offset base;         // first offset that it may hold
    uint64_t size;           // bytes of the .log that count
    uint64_t synced;         // of them on disk
    time_ms created;         // wall clock when it was begun (modification time of the file after a restart)
    time_ms first_timestamp; // largest timestamp of its first batch; SEGMENT_TIME_UNKNOWN
    time_ms max_timestamp;   // closed segment: largest timestamp, -1 none, SEGMENT_TIME_UNKNOWN
    struct file_slot file;   // of the .log
    struct sparse_index *index; // in memory, or NULL
    bool offsets_loaded;        // `index` has the offset index
    bool times_loaded;          // `index` has the time index
    bool cut_unsynced;          // was cut since the last sync
    bool index_unsynced;        // index files were written and not synced
    bool has_aborted;           // there is a .txnindex
};

// Where a segment lives: enough to open its files.
struct segment_place {
    struct vfs *fs;
    struct file_cache *files;
    const char *dir; // partition directory
};

struct segment *segment_new(log_offset base);
void segment_free(struct segment *s, struct file_cache *files); // closes its file
struct sparse_index *segment_index_make(struct segment *s);     // an empty one in memory, marked as loaded
void segment_index_drop(struct segment *s);                     // frees the memory

// The .log, counted.
int segment_open(struct segment *s, const struct segment_place *at, int flags, struct vfs_file **out,
                 struct errmsg *msg);
// Reads index files of a closed segment. ERR_NOTFOUND, ERR_CORRUPT: must be rebuilt.
int segment_load_offsets(struct segment *s, const struct segment_place *at, struct errmsg *msg);
int segment_load_times(struct segment *s, const struct segment_place *at, struct errmsg *msg);
// Writes both index files from memory (not synced).
int segment_write_indexes(struct segment *s, const struct segment_place *at, struct errmsg *msg);
// Reads the batches of the file and makes the index anew (not written). `interval`: index.interval.bytes.
int segment_rebuild_index(struct segment *s, const struct segment_place *at, int64_t interval,
                          struct errmsg *msg);
// Walks from the last offset entry to the end: sets bytes_since, max_timestamp and gives the next offset
// (base if empty). ERR_CORRUPT where the tail is not whole batches.
int segment_scan_tail(struct segment *s, const struct segment_place *at, log_offset *next,
                      struct errmsg *msg);
// First batch at or after the index entry whose last offset is >= offset: its position, and its base offset.
// At the end of the segment: position = size, *batch_base = -1. nowait: ERR_BUSY with *pos, *len the bytes to
// bring in.
int segment_find(struct segment *s, struct vfs_file *file, log_offset offset, bool nowait, uint64_t *pos,
                 log_offset *batch_base);
int segment_remove_files(log_offset base, const struct segment_place *at, enum layout_state state,
                         bool snapshot);

#endif
