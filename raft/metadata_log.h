// SPDX-License-Identifier: Apache-2.0
// The metadata log on disk and what the controller loop knows of it: segments in Kafka's layout, counted by
// Raft index.
//
// The loop decides everything (positions, rolls, cuts) at once in memory and queues operations; the log
// thread (a pool of one) executes them in order, as a group with one sync. A failed write stops the node; a
// full disk leaves the group waiting.
//
// Files of a segment: `%020d.log` (batches), `%020d.raftindex` (sidecar, see metadata_log_disk.c), and at
// roll and close `%020d.index` and `%020d.timeindex` for stock readers. Beside them `raft-mark`
// (storage/mark.h).
#ifndef KRAFT_RAFT_METADATA_LOG_H
#define KRAFT_RAFT_METADATA_LOG_H

#include <raft.h>
#include <stdatomic.h>
#include "core/base/list.h"
#include "core/base/logline.h"
#include "core/base/node.h"
#include "raft/entry_batch.h"
#include "storage/mark.h"
#include "storage/vfs.h"

#define MLOG_PATH_BYTES 1024

struct mlog_point {
    uint32_t offset; // relative to the segment's base
    uint32_t pos;    // start of a batch
};
struct mlog_segment {
    unsigned refs;             // the log and the operations that name it; loop only
    log_offset base;           // offset of its first batch
    raft_index first_index;    // Raft index of its first batch
    struct vfs_file *file;     // set by the log thread at creation; read by the loop for synced bytes only
    uint64_t size;             // bytes as the loop has planned them
    uint64_t reserved;         // log thread: space asked for up to here
    struct mlog_point *points; // sparse index
    uint32_t points_count, points_cap;
    uint64_t next_point;   // a batch at or past this position gets a point
    time_ms max_timestamp; // largest of its batches; -1 none
};
// An entry that libraft still holds.
struct mlog_entry {
    log_offset offset;            // base offset of its batch
    uint64_t pos;                 // in the segment's file
    struct mlog_segment *segment; // where
    uint8_t *own;                 // the batch of a control entry made here (mem_alloc), else NULL
    struct voter_set *voters;     // of a change or a batch with new endpoints, else NULL
    uint32_t bytes;               // of the batch
    uint32_t offsets;             // offsets it takes
    leader_epoch epoch;           // term
    enum raft_entry_type type;    // kind
};
struct mlog_epoch {
    leader_epoch epoch; // term
    log_offset start;   // first offset of it in the log
};
// What lies before the first entry: index, epoch and end offset of the snapshot that the log goes on from.
struct mlog_base {
    raft_index index;   // 0: nothing
    leader_epoch epoch; // term of that index
    log_offset offset;  // offset after it
};

enum mlog_op_kind { MLOG_WRITE, MLOG_CREATE, MLOG_CUT, MLOG_RESET, MLOG_ROLL, MLOG_DROP, MLOG_CLOSE };
typedef void (*mlog_done)(void *data);
struct mlog_op {
    struct list_node link;        // in a queue
    enum mlog_op_kind kind;       // what to do
    struct mlog_segment *segment; // on which; one reference
    uint64_t pos;                 // write: where; cut: new size; roll, close: final size
    struct slice bytes;           // write: the batch, owned by libraft (or by the entry) until done
    log_offset end;               // log end after it
    raft_index end_index;         // index of the last entry after it
    uint32_t generation; // cuts and resets so far: an older operation says nothing about what is synced
    struct mlog_segment **dropped; // segments whose files go; one reference each
    uint32_t dropped_count;        // of them
    uint8_t *index;                // roll, close: bytes of .index (mem_alloc)
    uint32_t index_bytes;          // of them
    time_ms max_timestamp;         // roll, close: for .timeindex
    mlog_done done;                // on the loop, in order of queueing; NULL: none
    void *data;                    // its argument
};

struct mlog_opts {
    struct node *node;      // for node_stop
    struct node_loop *loop; // controller loop
    struct node_pool *pool; // of one thread
    struct vfs *fs;         // disk
    const char *dir;        // directory; copied
    uint32_t segment_bytes; // roll before an append that would pass this
    struct log_sink *log;   // may be NULL
};
struct mlog {
    struct mlog_opts opts;          // with `dir` copied
    struct mlog_segment **segments; // in order; the last one is appended to
    uint32_t segments_count, segments_cap;
    struct mlog_entry *entries; // ring-free array: entries[head .. head + count)
    size_t head, count, cap;
    struct mlog_base base;     // what lies before the first entry of the table
    struct mlog_epoch *epochs; // of the log on disk, ascending
    uint32_t epochs_count, epochs_cap;
    log_offset end;                 // offset after the last entry
    uint32_t generation;            // cuts and resets so far
    raft_index synced_index;        // everything up to here is on disk
    log_offset synced_end;          // the same as an offset
    struct list queue;              // mlog_op not yet given to the log thread
    struct list flight;             // mlog_op it works on
    struct node_job job;            // of the flight
    struct node_timer retry;        // after ERR_NOSPACE
    bool busy;                      // a job is out or a retry is waiting
    bool held;                      // mlog_hold: collect, do not start
    int job_err;                    // 0 or ERR_NOSPACE
    struct mark mark;               // log thread (and the loop before the first and after the last job)
    mono_us mark_synced_at;         // log thread
    bool cannot_reserve;            // log thread: the file system has no reservation
    _Atomic uint64_t waiting_space; // 1 while a group waits for space
};

// Reads the directory. `base`: the newest snapshot. A log that ends before it, or disagrees with it, is
// emptied and begins at it. `each` gets every entry after `base`, in order (its voters may be taken with
// voter_set_ref). Blocks. ERR_CORRUPT names file and position.
typedef int (*mlog_each)(void *data, raft_index index, const struct entry_batch *e);
int mlog_open(const struct mlog_opts *opts, const struct mlog_base *base, mlog_each each, void *data,
              struct mlog **out, struct errmsg *msg);
void mlog_close(struct mlog *m, mlog_done done,
                void *data);    // queues what is left, indexes, mark; `done` after
void mlog_free(struct mlog *m); // after the close, or of a failed node

static inline raft_index mlog_first_index(const struct mlog *m)
{
    return m->base.index + 1;
} // first of the table
static inline raft_index mlog_last_index(const struct mlog *m)
{
    return m->base.index + m->count;
}
struct mlog_entry *mlog_entry_at(const struct mlog *m, raft_index index); // NULL: not in the table
leader_epoch mlog_last_epoch(const struct mlog *m);
leader_epoch mlog_epoch_of_index(const struct mlog *m, raft_index index); // -1: not known
log_offset mlog_end_of_index(const struct mlog *m, raft_index index); // offset after that entry; -1 not known
log_offset mlog_start(const struct mlog *m);                          // first offset on disk

// Adds an entry at the end. `e->base` and `e->epoch` must fit. `own` (mem_alloc) is taken. `bytes` stay until
// `done` of the group. Start the group with mlog_append_done.
void mlog_append(struct mlog *m, const struct entry_batch *e, uint8_t *own);
void mlog_append_done(struct mlog *m, mlog_done done,
                      void *data);              // `done` once all appended so far is synced
void mlog_cut(struct mlog *m, raft_index from); // nothing if past the end; memory at once, file in order
void mlog_reset(struct mlog *m, const struct mlog_base *base, mlog_done done, void *data);
void mlog_trim(struct mlog *m,
               raft_index upto); // forgets the table's entries below and at `upto`; the disk keeps them
void mlog_roll(struct mlog *m,
               uint64_t above_bytes); // next append begins a segment if the active one is larger
uint32_t mlog_prune(struct mlog *m, log_offset below, uint64_t keep_bytes,
                    time_ms older_than);   // whole segments; answers how many
void mlog_hold(struct mlog *m, bool held); // between begin and end of an event: collects one group

// Appends file ranges of whole batches from the one that holds `from`, all below `limit`, about `bytes_max`
// but at least one batch. ERR_RANGE, ERR_IO.
int mlog_read(struct mlog *m, log_offset from, log_offset limit, uint32_t bytes_max, struct rope *out);

// ---- shared between metadata_log*.c
// ----------------------------------------------------------------------------
void mlog__path(const struct mlog *m, log_offset base, const char *suffix, char out[MLOG_PATH_BYTES]);
struct mlog_segment *mlog__segment_new(log_offset base, raft_index first_index);
void mlog__segment_unref(struct mlog_segment *s);
void mlog__segments_add(struct mlog *m, struct mlog_segment *s);
void mlog__segment_note(struct mlog_segment *s, uint64_t pos,
                        const struct entry_batch *e); // sparse index, max timestamp
void mlog__entries_push(struct mlog *m, const struct mlog_entry *e);
void mlog__epochs_note(struct mlog *m, leader_epoch epoch, log_offset start);
void mlog__epochs_cut(struct mlog *m, log_offset end);
int mlog__create_files(struct mlog *m, struct mlog_segment *s, struct errmsg *msg);
int mlog__read_sidecar(struct mlog *m, log_offset base, raft_index *first_index);
int mlog__remove_files(struct mlog *m, log_offset base, struct errmsg *msg);
void mlog__start(struct mlog *m); // gives the queue to the log thread if that is idle
int mlog__read_file(struct mlog *m, const char *path, uint8_t *buf, size_t size, size_t *got);
void mlog__finished(struct mlog *m); // the flight is done: callbacks
int mlog__write_file(struct mlog *m, const char *path, const void *data, size_t size, struct errmsg *msg);

#endif
