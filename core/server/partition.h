// SPDX-License-Identifier: Apache-2.0
// A replica of a partition on this broker: state, log and who waits for it, under one mutex.
//
// A monitor: every function takes the lock itself, for a short critical section, and never calls back under
// it. Those whose name ends in _locked are called with the lock held. Any thread. Lock order: partition's
// io_lock, replica manager, partition, log directory.
//
// An append is one critical section: leader and epoch, duplicates, offsets, write, log end, high watermark.
// Offsets are given out only together with the write, so two loops can never leave a hole.
#ifndef KRAFT_SERVER_PARTITION_H
#define KRAFT_SERVER_PARTITION_H

#include "core/base/list.h"
#include "core/base/mutex.h"
#include "core/base/uuid.h"
#include "core/protocol/gen/errors.h"
#include "core/replica/partition_state.h"
#include "core/server/topic_rules.h"
#include "core/server/waiter.h"
#include "storage/log.h"

struct replica_manager;

struct partition {
    uint32_t magic;       // PARTITION_MAGIC
    atomic_uint refs;     // owners: the manager's table and those who use it now
    struct mutex io_lock; // held by pool threads over a flush and by whoever takes the log away; before
                          // `lock`, one at a time
    struct mutex lock;    // guards all that follows but what never changes
    struct replica_manager *manager; // whose; constant
    struct uuid topic_id;            // constant
    partition_id index;              // constant
    bool deleted;                    // no longer ours: every call answers UNKNOWN_TOPIC_OR_PARTITION
    struct partition_log
        *log; // NULL when deleted, or when its directory is offline since before it was opened
    struct topic_rules *rules;    // one reference
    struct partition_state state; // role, ISR, offsets
    struct list watches;          // partition_watch: parked fetches
    struct list acks;             // partition_ack: appends that wait for the high watermark, by offset
    struct list flushes;          // partition_ack: appends that wait for the disk, by offset
    struct list_node flush_link;  // in the flusher's list of partitions
};
#define PARTITION_MAGIC 0x50415254u

struct partition *partition_ref(struct partition *p);
void partition_unref(struct partition *p); // NULL allowed

// ---- append ---------------------------------------------------------------------------------------------

// One validated batch on its way into the log, and what became of it.
struct append_entry {
    struct append_entry *next; // next of the same partition, in order of arrival
    uint8_t *batch;            // bytes: stamped in place
    size_t size;               // of the batch
    struct chunk *rewritten;   // owner of `batch` where it was recompressed; or NULL
    int16_t acks;              // -1: the ISR must be large enough
    bool duplicate;            // out: was stored already
    bool flush_due;            // out: acknowledge after the flush only
    bool acked;                // out: the high watermark is above it and the ISR is large enough
    int16_t error;             // out: enum kafka_error
    log_offset base_offset;    // out: offset of the first record; -1 on error
    log_offset last_offset;    // out: offset of the last record
    log_offset log_start;      // out: log start offset; -1 on error
    broker_id leader;          // out: leader that we know of, on error
    leader_epoch epoch;        // out: its epoch
};
// Appends a run of batches with one write. All fields `out` are set. Wakes what waits for the partition by
// `wl`. Answers why a write failed (ERR_NOSPACE, ERR_OFFLINE ...), for the log; 0 also where batches were
// refused.
int partition_append(struct partition *p, struct append_entry *first, time_ms now, struct wake_list *wl);

// An append that waits, for the high watermark (acks=all) or for the disk.
struct partition_ack {
    struct list_node link;       // in the partition's list; unlinked when it is done
    struct waiter *waiter;       // woken when it is done
    struct partition *partition; // whose; one reference of the owner
    log_offset last_offset;      // wait until the high watermark, or the flushed offset, is above it
    leader_epoch epoch;          // epoch that it was appended in; a newer one ends the wait
    int16_t error;               // enum kafka_error once done
};
// Waits for the high watermark. False: it is there already, ack->error is set
// (NOT_ENOUGH_REPLICAS_AFTER_APPEND if the ISR shrank).
bool partition_await_ack(struct partition *p, struct partition_ack *ack);
// Waits for the disk; the manager's flusher is told. False: it is there already.
bool partition_await_flush(struct partition *p, struct partition_ack *ack);
void partition_forget_ack(struct partition *p,
                          struct partition_ack *ack); // takes it out again, if it is still in
// The flusher: everything below `flushed` is on disk, or `error`.
void partition_flush_done(struct partition *p, log_offset flushed, int16_t error, struct wake_list *wl);

// ---- fetch ----------------------------------------------------------------------------------------------

// A parked fetch waits for this partition.
struct partition_watch {
    struct list_node link;       // in the partition's list
    struct waiter *waiter;       // the fetch
    struct partition *partition; // whose; one reference of the owner
    atomic_llong *missing;       // bytes that the fetch still waits for; shared by its watches
    log_offset seen;             // bound at the time it was read
    leader_epoch epoch;          // epoch at that time
    bool follower;               // waits for the log end, not for the high watermark
};
struct partition_read_args {
    log_offset offset;            // fetch offset
    leader_epoch current_epoch;   // the asker's idea of the leader epoch; -1 no check
    leader_epoch last_epoch;      // epoch of its last record; -1 no check
    size_t max_bytes;             // most bytes
    bool min_one;                 // a first batch above it is given whole
    bool committed;               // isolation read_committed
    bool any_replica;             // a follower may answer too (KIP-392)
    bool wait;                    // may wait for the disk: instead of answering `cold`
    broker_id replica;            // asking follower; -1 a consumer
    broker_epoch replica_epoch;   // its broker epoch; -1 unknown
    log_offset replica_log_start; // its log start
};
struct partition_read {
    int16_t error;                // enum kafka_error
    bool cold;                    // bytes of `range` are not in memory: read ahead and ask again
    log_offset high_watermark;    // -1 on error
    log_offset last_stable;       // -1 on error
    log_offset log_start;         // -1 on error
    log_offset bound;             // where the reader's view ends
    leader_epoch epoch;           // our leader epoch
    broker_id leader;             // leader that we know of
    leader_epoch diverging_epoch; // -1 none
    log_offset diverging_end;     // end offset of that epoch
    struct plog_range range;      // bytes; release it. len 0: nothing
    struct plog_aborted *aborted; // mem_alloc, NULL none
    unsigned aborted_count;       // number of them
};
void partition_read(struct partition *p, const struct partition_read_args *args, time_ms now,
                    struct partition_read *out, struct wake_list *wl);
// Watches unless something happened since the read (then false: read again).
bool partition_watch_add(struct partition *p, struct partition_watch *w);
void partition_watch_remove(struct partition *p, struct partition_watch *w);

// ---- offsets
// ------------------------------------------------------------------------------------------------- Leader
// and epoch check of A2. KE_NONE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
// UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
int16_t partition_check_locked(const struct partition *p, leader_epoch current_epoch, bool leader_only);
// End offset of the largest epoch at or below `epoch` (KIP-101). False: undefined (the epoch is above all we
// know, or none is known).
bool partition_end_of_epoch_locked(struct partition *p, leader_epoch epoch, leader_epoch *found,
                                   log_offset *end);
// DeleteRecords: moves the log start to `offset` (-1: high watermark). *target: where to; *low: smallest log
// start of the live replicas.
int16_t partition_delete_records(struct partition *p, log_offset offset, log_offset *target, log_offset *low,
                                 struct wake_list *wl);
// A metadata change: leader, ISR. Wakes what waited under the old epoch.
enum partition_change partition_apply(struct partition *p, const struct partition_assignment *a, time_ms now,
                                      struct wake_list *wl);
void partition_set_rules(struct partition *p, struct topic_rules *rules, time_ms now,
                         struct wake_list *wl); // takes a reference
// Wakes everybody with an error: deleted, or the directory went offline.
void partition_end_waits_locked(struct partition *p, int16_t error, struct wake_list *wl);

#endif
