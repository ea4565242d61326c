// SPDX-License-Identifier: Apache-2.0
// A data loop's part of the data path: appends of a turn, collected per partition and written at its end, and
// who was woken.
//
// Happy path of a turn: Produce requests add their batches with data_plane_append; at the end of the turn (or
// when a request of the same connection must see them) each partition's run becomes one partition_append;
// then the produce operations continue in order of arrival, then those that were woken (parked fetches,
// waiting acks) run. Replies that come of it leave in the same turn. What wakes another loop is pushed to its
// list and that loop is told once.
#ifndef KRAFT_SERVER_DATA_PLANE_H
#define KRAFT_SERVER_DATA_PLANE_H

#include "core/base/logline.h"
#include "core/base/node.h"
#include "core/record/validate.h"
#include "core/server/partition.h"
#include "core/server/waiter.h"

struct broker_loop;
struct append_run;

// An operation whose batches are in the plane: `appended` is called once, after all of them were tried.
struct append_op {
    struct append_op *next; // in order of arrival
    void (*appended)(
        struct append_op *op); // on the loop, at the end of the turn; the entries have their outcome
};

#define RUN_BUCKETS 256 // power of two; runs of a turn are found by partition

struct data_plane {
    struct broker_loop *loop;               // whose
    struct node_hook turn_end;              // flushes
    time_ms wall;                           // wall clock of this turn; 0 not asked yet
    struct append_run *runs;                // partitions with batches in this turn; kept for reuse
    unsigned runs_count, runs_cap;          // used, room
    uint32_t buckets[RUN_BUCKETS];          // first run + 1 of each bucket; 0 none
    struct append_op *ops_first, *ops_last; // operations of this turn
    struct waiter *_Atomic woken;           // stack of woken waiters, pushed by any thread
    struct node_task woken_task;            // tells this loop
    atomic_bool woken_posted;               // it is under way
    struct log_limit full_limit;            // of the line that tells of a full disk
    struct codec_cache *codecs;             // for validation
    struct validate_result validated;       // scratch: large
};

struct data_plane *
data_plane_create(struct broker_loop *loop); // registers the turn-end hook: before request_loop_init
void data_plane_destroy(struct data_plane *d);

// Takes the batch into this turn's run of the partition. The plane takes a reference of the partition for as
// long as it needs it.
void data_plane_append(struct data_plane *d, struct partition *p, struct append_entry *e);
// Lets `op->appended` be called after the flush.
void data_plane_add_op(struct data_plane *d, struct append_op *op);
// Writes all runs now. On the loop.
void data_plane_flush(struct data_plane *d);
time_ms data_plane_wall(struct data_plane *d); // wall clock of this turn

#endif
