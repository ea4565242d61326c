// SPDX-License-Identifier: Apache-2.0
// One partition's log in Kafka's on-disk layout: append, read, truncate, retain, flush, recover.
//
// Locking. A log has no lock of its own: the owner (the partition, or the Raft log) holds one mutex around
// every plog_* call on it, except the ones marked "no lock". Calls that wait for the disk's platter or scan
// much are cut in three: `begin` under the lock takes counted handles, `run` without it does the slow part,
// `end` under the lock notes the result. Calls marked "slow" read or write much and belong on a pool thread
// or a thread of the owner's.
//
// Memory. A log that was not used since the start is a struct of a few hundred bytes: no descriptor, no
// directory on disk (until its first append), no index. The first append, read or truncation loads it
// ("loaded").
//
// Errors. ERR_NOSPACE: nothing was changed, the log stays usable for reads and for a later try. Any other
// failed write, sync or rename: the whole log directory goes offline with its reason (log_dir_offline), and
// every later call that writes answers ERR_OFFLINE. ERR_CORRUPT: what the disk holds is no log (file and
// position in the message). ERR_RANGE: offset outside the log.
#ifndef KRAFT_STORAGE_LOG_H
#define KRAFT_STORAGE_LOG_H

#include <stdatomic.h>
#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/base/uuid.h"
#include "storage/producer_state.h"
#include "storage/vfs.h"

struct log_dir;
struct partition_log;

// ---- configuration ----------------------------------------------------------------------------------------
// An immutable,
// counted value: one per topic whose settings differ; shared by its partitions, any thread.
struct log_config {
    atomic_uint refs;               // owners; set by log_config_new
    int64_t segment_bytes;          // segment.bytes
    int64_t segment_ms;             // segment.ms
    int64_t segment_jitter_ms;      // segment.jitter.ms: each segment rolls up to this much earlier
    int64_t index_bytes_max;        // segment.index.bytes: a full offset or time index rolls the segment
    int64_t index_interval_bytes;   // index.interval.bytes
    int64_t retention_bytes;        // retention.bytes; -1 no limit
    int64_t retention_ms;           // retention.ms; -1 no limit
    int64_t flush_messages;         // flush.messages; INT64_MAX never
    int64_t flush_ms;               // flush.ms; INT64_MAX never
    int64_t file_delete_delay_ms;   // file.delete.delay.ms
    int64_t producer_expiration_ms; // producer.id.expiration.ms
    bool preallocate;     // preallocate: reserve segment_bytes at creation (size stays what was written)
    bool cleanup_delete;  // cleanup.policy has "delete"
    bool cleanup_compact; // cleanup.policy has "compact"
};
void log_config_defaults(struct log_config *c);                   // Kafka's defaults; refs untouched
struct log_config *log_config_new(const struct log_config *from); // copy with one reference
struct log_config *log_config_ref(struct log_config *c);
void log_config_unref(struct log_config *c);

// ---- open and close ---------------------------------------------------------------------------------------
// What a recovery
// found and did. `cut_*` describe the last cut; kept beside the log, never thrown away.
struct plog_recovery {
    bool scanned;          // segments were read because there was no clean stop
    bool cut;              // something was cut off
    bool metadata_missing; // no partition.metadata was there (it is written anew, nothing is deleted)
    bool unreadable; // the first bad batch was whole by its header but its checksum or content wrong (else:
                     // torn)
    uint32_t indexes_rebuilt;  // index files that were missing or wrong
    log_offset end_offset;     // log end after recovery
    log_offset cut_segment;    // base offset of the segment file that was cut
    uint64_t cut_pos;          // first byte cut off in it
    uint64_t cut_bytes;        // bytes cut off, later segments included
    uint32_t batches_after;    // whole, valid batches found behind the damage (0 for a torn tail)
    uint32_t segments_dropped; // later segments set aside whole
    char kept_as[128];         // name of the file beside the log that holds what was cut off (first one)
};

struct plog_open_args {
    const char *topic;         // copied
    partition_id partition;    // >= 0
    struct uuid topic_id;      // zero: not known (taken from partition.metadata if that is there)
    struct log_config *config; // a reference is taken
    bool existing;             // there is a directory (log_dir_list told so); false: made at the first append
    bool clean;                // the directory was stopped cleanly: no scan; what log_dir_list's entry says
    log_offset intact_below; // damage below this offset is ERR_CORRUPT and nothing is changed (Raft mark); 0
                             // or -1: none
    struct plog_recovery *report; // filled in; may be NULL
};
// Opens or announces a log in `dir`. With `existing` and not `clean` it recovers now: scans from the recovery
// point batch by batch, rebuilds indexes and producer state, cuts at the first bad batch. Slow then. Errors:
// ERR_INVALID (topic ids differ: the directory is stray), ERR_CORRUPT, ERR_OFFLINE, ERR_IO.
int plog_open(struct log_dir *dir, const struct plog_open_args *args, struct partition_log **out,
              struct errmsg *msg);

// Clean close: writes indexes, producer snapshot and epoch file and gives all back. What was written is made
// durable by log_dir_close, for all logs at once. Slow. On an error the log is gone from memory all the same,
// but the directory must not be marked clean.
int plog_close(struct partition_log *log, struct errmsg *msg);
void plog_drop(
    struct partition_log *log); // gives all memory back without touching the disk (offline directory, tests)

// No flush of the log may be under way. Removes the topic partition: renames its directory to
// TOPIC-N.UUID-delete and frees the log. `uuid_text` is 32 hex digits that the caller drew at random. The
// directory is then removed by log_dir_remove_doomed (after file.delete.delay.ms). Slow.
int plog_delete(struct partition_log *log, const char *uuid_text, struct errmsg *msg);
// The same with the suffix -stray: not in the metadata; kept, never removed by us.
int plog_set_stray(struct partition_log *log, const char *uuid_text, struct errmsg *msg);

int plog_load(struct partition_log *log,
              struct errmsg *msg); // reads segments and producer state now; 0 if loaded already. Slow.
bool plog_is_loaded(const struct partition_log *log);
void plog_set_config(struct partition_log *log, struct log_config *config); // takes a reference
// The topic id becomes known or is confirmed; ERR_INVALID when another one is on disk.
int plog_set_topic_id(struct partition_log *log, struct uuid topic_id, struct errmsg *msg);

// ---- state ------------------------------------------------------------------------------------------------
const char *plog_topic(const struct partition_log *log);
partition_id plog_partition(const struct partition_log *log);
struct uuid plog_topic_id(const struct partition_log *log);
struct log_dir *plog_dir(const struct partition_log *log);
struct log_config *plog_config(const struct partition_log *log); // borrowed
log_offset plog_start_offset(const struct partition_log *log);   // first offset that may be read; no lock
log_offset plog_end_offset(const struct partition_log *log);     // next offset; no lock
log_offset plog_recovery_point(const struct partition_log *log); // everything below is on disk; no lock
uint64_t plog_size(const struct partition_log *log);             // bytes of all segments
uint64_t
plog_size_from(struct partition_log *log,
               log_offset offset); // bytes of the batches at or after it (about), for DescribeLogDirs and lag
time_ms
plog_active_created(const struct partition_log *log);   // when the active segment was begun; -1 not loaded
log_offset plog_active_base(struct partition_log *log); // base offset of the active segment
unsigned plog_segments(struct partition_log *log);

// High watermark as the partition knows it; kept for the checkpoint and the manifest only. No lock.
void plog_set_high_watermark(struct partition_log *log, log_offset hw);
log_offset
plog_high_watermark(const struct partition_log *log); // at open: the checkpointed one, never above the end

// ---- append -----------------------------------------------------------------------------------------------
enum plog_append_flags {
    PLOG_AS_FOLLOWER = 1,  // producer sequences are noted, never refused
    PLOG_NO_PRODUCERS = 2, // metadata log: no producer state
};
struct plog_append_result {
    log_offset first_offset; // base offset of the first batch
    log_offset last_offset;  // last offset of the last batch
    bool rolled;             // a new segment was begun
    bool flush_due;          // flush.messages is reached: flush before answering
};
// Appends whole batches, in order, with one write (a second one only where a roll falls between two of them).
// Each is validated by the caller and stamped with its offsets and leader epoch; base offsets must not be
// below the end offset nor below each other. Producer state, leader epochs, transaction index and sparse
// indexes follow. `bytes` of consecutive batches that are adjacent in memory are written as one piece.
// Nothing is allocated in steady state. `now` = wall clock. Errors: ERR_NOSPACE and ERR_OFFLINE/ERR_IO as
// above (the file is cut back: no part of the run stays); ERR_RANGE (offset below the end); ERR_MALFORMED
// (not whole batches).
int plog_append(struct partition_log *log, const struct slice *batches, unsigned count, int flags,
                time_ms now, struct plog_append_result *out, struct errmsg *msg);

// May this batch be appended by a leader? See producer_state.h. Batches without producer id are always
// PRODUCER_OK.
enum producer_verdict plog_check_producer(struct partition_log *log, const struct producer_batch *b,
                                          struct producer_duplicate *dup);
struct producer_states *
plog_producers(struct partition_log *log); // loaded log; for DescribeProducers and transactions

// A leader begins an epoch at the log end: an entry of leader-epoch-checkpoint (lazily written).
int plog_assign_epoch(struct partition_log *log, leader_epoch epoch, log_offset start, struct errmsg *msg);

// Rolls to a new segment now (segment.ms, snapshots). Nothing if the active one is empty.
int plog_roll(struct partition_log *log, time_ms now, struct errmsg *msg);
// Rolls if the active segment's age says so (for idle partitions; appends check by themselves).
int plog_roll_if_old(struct partition_log *log, time_ms now, struct errmsg *msg);

// ---- read -------------------------------------------------------------------------------------------------
struct plog_read_args {
    log_offset offset; // first wanted
    log_offset bound;  // exclusive: high watermark, last stable offset or end offset
    size_t max_bytes;  // most bytes
    bool min_one;      // a first batch larger than max_bytes is given whole
    bool nowait;       // never wait for the disk: ERR_AGAIN instead
};
struct plog_range {
    struct vfs_file *file;  // counted: give back with plog_range_release; NULL where there is nothing to read
    uint64_t pos;           // first byte; start of the batch that holds or follows `offset`
    size_t len;             // bytes; whole batches only
    log_offset next_offset; // offset to go on from after this range
    log_offset segment;     // base offset of the segment
};
// Finds the batches from `offset` on, within one segment. 0 with file NULL: nothing below `bound` yet.
// ERR_RANGE: offset below the start or above the end offset. ERR_AGAIN (nowait): the bytes out->pos, out->len
// of out->file are not in memory; bring them in without the lock (plog_range_readahead), then ask again.
// Costs an index look-up and at most index.interval.bytes of headers; nothing for a reader that goes on where
// it or the writer stopped.
int plog_read(struct partition_log *log, const struct plog_read_args *args, struct plog_range *out,
              struct errmsg *msg);
void plog_range_release(struct plog_range *r);              // no lock
bool plog_range_cached(const struct plog_range *r);         // in the page cache? no lock
int plog_range_readahead(const struct plog_range *r);       // may block; no lock
int plog_range_copy(const struct plog_range *r, void *buf); // r->len bytes; may block; no lock

// Position of an offset for Kafka's LogOffsetMetadata: segment base and byte position of the batch that holds
// or follows it.
int plog_locate(struct partition_log *log, log_offset offset, log_offset *segment, uint64_t *pos,
                struct errmsg *msg);

// ---- leader epochs ----------------------------------------------------------------------------------------
leader_epoch plog_last_epoch(struct partition_log *log);                  // -1 none
leader_epoch plog_epoch_of(struct partition_log *log, log_offset offset); // epoch of a record; -1 not known
// Largest epoch <= `epoch` and its end offset (start of the next one, or the log end). Returns false (-1, -1)
// if there is none.
bool plog_end_of_epoch(struct partition_log *log, leader_epoch epoch, leader_epoch *found, log_offset *end);
// Start offset of the first epoch above `epoch`; -1 none.
log_offset plog_start_after_epoch(struct partition_log *log, leader_epoch epoch);

// ---- time -------------------------------------------------------------------------------------------------
struct plog_timestamp {
    log_offset offset;  // -1: no such record
    time_ms timestamp;  // of the record; -1 none
    leader_epoch epoch; // of the batch; -1 none
};
// First record at or after log start and below `bound` with timestamp >= `timestamp`, exact inside compressed
// batches. May read and decompress: slow when cold. ERR_CORRUPT, ERR_IO.
int plog_find_timestamp(struct partition_log *log, time_ms timestamp, log_offset bound,
                        struct plog_timestamp *out, struct errmsg *msg);
// The record with the largest timestamp below `bound`, the first of them (ListOffsets -3). Slow when cold.
int plog_find_max_timestamp(struct partition_log *log, log_offset bound, struct plog_timestamp *out,
                            struct errmsg *msg);

// ---- transactions -----------------------------------------------------------------------------------------
log_offset
plog_first_unstable(struct partition_log *log,
                    log_offset high_watermark); // first offset of an open or undecided transaction; -1 none
log_offset plog_last_stable(struct partition_log *log,
                            log_offset high_watermark); // what read_committed may see (exclusive)
struct plog_aborted {
    int64_t producer_id;     // whose
    log_offset first_offset; // of the transaction
};
// Aborted transactions that overlap [from, to), in index order. `*out` by mem_alloc, NULL when none.
int plog_aborted_in(struct partition_log *log, log_offset from, log_offset to, struct plog_aborted **out,
                    unsigned *count, struct errmsg *msg);

// ---- truncation, start offset, retention ------------------------------------------------------------------
// Cuts off everything at and after
// `offset` (nothing happens if that is at or past the end). Indexes, epochs and producer state follow; the
// recovery point is lowered. Slow.
int plog_truncate_to(struct partition_log *log, log_offset offset, struct errmsg *msg);
// Empties the log and lets it begin at `offset`. `start_offset` is the new log start (>= offset is usual: the
// same). Slow.
int plog_truncate_fully(struct partition_log *log, log_offset offset, struct errmsg *msg);
// Log start moves up (DeleteRecords, a follower's leader, a snapshot); never down; ERR_RANGE above the end
// offset. Segments wholly below it go with the next retention step.
int plog_advance_start(struct partition_log *log, log_offset offset, struct errmsg *msg);

// Files that retention took out of the log and renamed to *.deleted; removed by plog_doomed_remove after
// file.delete.delay.ms.
struct plog_doomed {
    struct vfs *fs;    // where
    char *dir_path;    // the partition's directory; mem_alloc
    log_offset *bases; // base offsets of the segments; mem_alloc
    unsigned count;    // how many; 0: nothing to do
    uint64_t bytes;    // what they hold
    int64_t delay_ms;  // file.delete.delay.ms
};
// One step of retention by start offset, time and size: never past `high_watermark`, nor the active segment
// unless it is over time itself (then it is rolled first). Takes segments out of the log at once.
// `out->count` 0: nothing.
int plog_retain(struct partition_log *log, time_ms now, log_offset high_watermark, struct plog_doomed *out,
                struct errmsg *msg);
// Takes out the segments wholly below the log start offset only, whatever the cleanup policy (metadata log
// after a snapshot).
int plog_drop_below_start(struct partition_log *log, struct plog_doomed *out, struct errmsg *msg);
void plog_doomed_remove(struct plog_doomed *d); // unlinks the files and frees the lists; no lock; slow
void plog_doomed_fini(
    struct plog_doomed *d); // frees the lists only (the files are removed at the next start); no lock

// Producers that were silent for producer.id.expiration.ms are forgotten. Returns how many.
unsigned plog_expire_producers(struct partition_log *log, time_ms now);

// ---- flush ------------------------------------------------------------------------------------------------
#define PLOG_FLUSH_FILES 12
struct plog_flush {
    struct partition_log *log;
    log_offset up_to;                         // recovery point after success
    struct vfs_file *files[PLOG_FLUSH_FILES]; // counted handles to sync
    unsigned count;                           // of them
    uint64_t generation;                      // guards against a truncation meanwhile
    uint32_t epochs;                          // epochs_unsynced of the log then
    uint32_t names;                           // names_unsynced of the log then
    char *sync_dir;                           // directory to sync as well; NULL none
    unsigned through;                         // segments that it covers, from the first on
    log_offset active;                        // base of the active segment then
    uint64_t size;                            // bytes of it then
    int result;                               // of `run`
};
// Everything below the end offset of now that is not yet on disk. Returns false where there is nothing to do.
bool plog_flush_begin(struct partition_log *log, struct plog_flush *f);
int plog_flush_run(struct plog_flush *f,
                   struct errmsg *msg);       // fdatasync of each, and the directory; no lock; slow
void plog_flush_synced(struct plog_flush *f); // instead of `run`: the caller did log_dir_sync_all; no lock
int plog_flush_end(struct plog_flush *f,
                   struct errmsg *msg); // notes the result; an error takes the directory offline
int plog_flush_all(struct partition_log *log,
                   struct errmsg *msg); // the three in one, for owners with a thread of their own. Slow.
// Is flush.messages reached by what is not on disk yet? Owner's lock. An answer that names records waits for
// the flush then.
bool plog_flush_due(const struct partition_log *log);
// Is a flush due: flush.ms passed since the oldest unflushed append, flush.messages reached, or a closed
// segment unsynced?
bool plog_flush_wanted(const struct partition_log *log, time_ms now);

// ---- the Raft log -----------------------------------------------------------------------------------------
// Reserves
// `bytes` beyond the end of the active segment without changing its size. ERR_NOSPACE; ERR_UNSUPPORTED where
// the file system cannot.
int plog_reserve(struct partition_log *log, uint64_t bytes, struct errmsg *msg);
// Full path of the partition's directory into a caller's buffer; for files beside the log (sidecars,
// quorum-state). no lock
void plog_path(const struct partition_log *log, char *buf, size_t size);
// Base offsets of the segments, ascending; returns how many there are (fills at most `max`).
unsigned plog_segment_bases(struct partition_log *log, log_offset *bases, unsigned max);
// Creates the partition's directory and first segment now instead of at the first append.
int plog_materialize(struct partition_log *log, time_ms now, struct errmsg *msg);

#endif
