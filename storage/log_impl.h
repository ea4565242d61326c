// SPDX-License-Identifier: Apache-2.0
// Inside of a partition log: the structs that the log_*.c files share, and their shared operations.
#ifndef KRAFT_STORAGE_LOG_IMPL_H
#define KRAFT_STORAGE_LOG_IMPL_H

#include <stdatomic.h>
#include "core/base/list.h"
#include "storage/epoch_cache.h"
#include "storage/log.h"
#include "storage/log_dir.h"
#include "storage/segment.h"
#include "storage/txn_index.h"

#define PARTITION_LOG_MAGIC 0x9a7101f6u
#define LOG_HINTS 8           // remembered batch starts: the tail's writers and a few sequential readers
#define LOG_CLOSED_INDEXES 4u // indexes of closed segments kept in memory per log
#define LOG_IOV_STACK 64      // pieces of one write without memory of its own

// A batch starts at `pos` of the segment `base`, and it is the first one that holds or follows `offset`.
struct log_hint {
    log_offset offset; // -1: unused
    log_offset base;
    uint64_t pos;
};

// What a log has in memory once it is in use.
struct log_loaded {
    struct segment **segments; // by base offset; the last one is active; may be none before the first append
    unsigned count, cap;       // used, room
    struct epoch_cache epochs; // leader epochs
    struct producer_states *producers; // NULL while no producer id was seen
    struct txn_index aborted;          // aborted transactions of the active segment
    log_offset *snapshots;             // offsets of the .snapshot files, rising
    unsigned snapshots_count, snapshots_cap;
    log_offset *stale; // snapshots that may be of truncated batches: removed before the recovery point moves
    unsigned stale_count;             // of them
    log_offset producers_saved;       // offset of the newest snapshot; -1 none
    struct log_hint hints[LOG_HINTS]; // ring
    unsigned hint_next;               // next to replace
    struct iovec *iov;                // for long runs; NULL before the first
    unsigned iov_cap;                 // room
    time_ms unflushed_since;          // wall clock of the oldest append that was not flushed; -1 none
    uint64_t generation;              // raised by each truncation
    uint32_t epochs_unsynced;         // times that the epoch file was written since it was last synced
    uint32_t names_unsynced;          // files made, renamed or removed since the last directory sync
};

struct partition_log {
    uint32_t magic;
    partition_id partition;
    char *topic;                      // mem_alloc
    struct uuid topic_id;             // zero while not known
    struct log_dir *dir;              // where
    struct log_config *config;        // counted
    _Atomic int64_t start;            // log start offset
    _Atomic int64_t end;              // log end offset
    _Atomic int64_t recovery;         // recovery point
    _Atomic int64_t watermark;        // high watermark, for the checkpoint
    _Atomic int64_t first_base;       // base offset of the first segment; -1 not known
    _Atomic int64_t recovery_on_disk; // recovery point that the checkpoint file has
    int64_t recovery_pending;         // the one being written to it (checkpoint writer only)
    uint64_t size;                    // bytes of all segments
    struct log_loaded *loaded;        // NULL while idle
    struct list_node link;            // in the directory's list
    leader_epoch last_epoch;          // while not loaded: of the manifest
    _Atomic bool on_disk;             // the partition's directory exists
    bool no_producers;                // metadata log: no producer ids
    bool changed;                     // differs from what the manifest or the last close said
    bool metadata_written;            // partition.metadata is there
};

// ---- shared -----------------------------------------------------------------------------------------------
static inline log_offset plog__load(const _Atomic int64_t *a)
{
    return atomic_load_explicit(a, memory_order_acquire);
}
static inline void plog__store(_Atomic int64_t *a, log_offset v)
{
    atomic_store_explicit(a, v, memory_order_release);
}

void plog__dir(const struct partition_log *log,
               char buf[LAYOUT_PATH_BYTES]); // path of the partition's directory
// `dir` is filled in and the place points to it.
void plog__place(const struct partition_log *log, char dir[LAYOUT_PATH_BYTES], struct segment_place *at);
// The .log of a segment, counted; its path is made only where it must be opened.
int plog__open(struct partition_log *log, struct segment *s, struct vfs_file **out, struct errmsg *msg);
int plog__need(struct partition_log *log, struct errmsg *msg); // loaded and online, or why not
int plog__need_online(struct partition_log *log, struct errmsg *msg);
// A call that writes has failed: ERR_NOSPACE is noted as a full disk, all else takes the directory offline.
// Returns `rc`, with message.
int plog__failed(struct partition_log *log, int rc, struct errmsg *msg, const char *what);
static inline struct segment *plog__active(const struct partition_log *log)
{
    struct log_loaded *l = log->loaded;
    return l && l->count ? l->segments[l->count - 1] : NULL;
}
unsigned plog__segment_index(const struct partition_log *log,
                             log_offset offset); // of the last one with base <= offset; 0 if none
void plog__segment_add(struct partition_log *log, struct segment *s); // at the end
void plog__note_first(struct partition_log *log);                     // the first segment is another one
log_offset plog__segment_end(const struct partition_log *log,
                             unsigned i);                           // base of the next one, or the log end
struct producer_states *plog__producers(struct partition_log *log); // makes them at first use

// Offset index (and with `times` the time index) of a segment in memory; rebuilt where the files are missing
// or wrong.
int plog__index(struct partition_log *log, unsigned i, bool times, struct errmsg *msg);
time_ms plog__segment_time(struct partition_log *log, unsigned i); // largest timestamp; -1 none

void plog__hint(struct partition_log *log, log_offset offset, log_offset base, uint64_t pos);
bool plog__hint_find(const struct partition_log *log, log_offset offset, log_offset base, uint64_t *pos);
void plog__hints_clear(struct partition_log *log);

int plog__create_dir(struct partition_log *log, struct errmsg *msg);
int plog__new_segment(struct partition_log *log, log_offset base, time_ms now, struct segment **out,
                      struct errmsg *msg);
// State that follows from a batch, for append (`whole`), replay and recovery.
void plog__note_epoch(struct partition_log *log, const uint8_t *batch);
void plog__note_producer(struct partition_log *log, const uint8_t *batch, size_t size,
                         struct txn_index *aborted);
bool plog__marker(const uint8_t *batch, size_t size, bool *commit, int32_t *coordinator_epoch);

// ---- producer snapshots (log_producers.c) -----------------------------------------------------------------
int plog__snapshot_take(struct partition_log *log,
                        struct errmsg *msg); // at the log end, if there is none yet
void plog__snapshots_distrust_above(struct partition_log *log,
                                    log_offset offset); // forgets them; the files go with the next flush
void plog__snapshots_drop_stale(struct partition_log *log);
void plog__snapshots_remove_above(struct partition_log *log, log_offset offset); // those beyond
void plog__snapshot_remove(struct partition_log *log, log_offset offset);
void plog__snapshots_note(struct partition_log *log, log_offset offset);
// State as of `upto`: newest good snapshot at or below `base`, then the batches from there on. Snapshots that
// cannot be read are removed.
int plog__producers_rebuild(struct partition_log *log, log_offset base, log_offset upto, struct errmsg *msg);

// ---- recovery (log_recover.c) -----------------------------------------------------------------------------
int plog__recover(struct partition_log *log, log_offset intact_below, struct plog_recovery *report,
                  struct errmsg *msg);
int plog__load_files(struct partition_log *log, bool clean, log_offset intact_below,
                     struct plog_recovery *report, struct errmsg *msg);

// ---- truncation -------------------------------------------------------------------------------------------
int plog__write_epochs(struct partition_log *log, bool durable, struct errmsg *msg); // if dirty
int plog__write_aborted(struct partition_log *log, struct errmsg *msg); // of the active segment, if dirty
void plog__unload(struct partition_log *log);                           // gives the loaded part's memory back

#include "storage/log_dir_impl.h"

#endif
