// SPDX-License-Identifier: Apache-2.0
// The controller half's state; private to controller_node*.c.
#ifndef KRAFT_SERVER_CONTROLLER_NODE_PRIV_H
#define KRAFT_SERVER_CONTROLLER_NODE_PRIV_H

#include "core/server/controller_node.h"

#define CONTROLLER_BATCH_BYTES (1024 * 1024) // a batch is proposed when it has this much: one Raft message
#define CONTROLLER_OUTSTANDING_BYTES (1024 * 1024) // above this much in flight the queue waits
#define CONTROLLER_TICK_MS 250  // sessions are looked at this often: a fraction of the shortest timeout
#define CONTROLLER_DIAL_MS 1000 // longest dial to a broker that may be gone
#define CONTROLLER_OBSERVER_FORGET_MS                                                                        \
    300000 // an observer that has not fetched for so long is no longer listed

enum controller_state {
    CONTROLLER_FOLLOWING,  // not active: operations are refused
    CONTROLLER_ACTIVATING, // the first records of this term are not committed yet: operations wait
    CONTROLLER_SERVING,    // active
};

// Operations whose records were proposed together, and those that only looked at the image behind them.
struct controller_batch {
    struct list_node link;        // node->batches, in order of proposing
    struct controller_node *node; // whose
    struct image *before;         // image that it was built on
    struct list ops;              // answered when it is committed
    struct arena arena;           // bytes of the values, until they are proposed
    struct slice *values;         // framed records
    uint32_t count, cap;          // records, room
    size_t bytes;                 // about what it takes
    log_offset base_offset;       // of the first record
};

struct controller_node {
    struct controller_node_opts opts;    // as given
    struct quorum *quorum;               // the log and its voters
    int16_t kraft_version;               // of the quorum: 0 static voters, 1 dynamic
    enum controller_state state;         // see above
    struct log_limit refused_limit;      // of the line that tells of refused proposals
    struct image *committed;             // newest committed image; one reference
    struct image *latest;                // with what is in flight; NULL while following
    struct controller_sessions sessions; // heartbeats
    struct list queue;                   // operations to be decided
    struct list batches;                 // in flight
    size_t outstanding_bytes;            // of them
    mono_us last_proposal;               // for the idle no-op
    struct node_hook turn_end;           // works the queue off
    struct node_timer tick;              // sessions
    struct node_timer noop_timer;        // idle no-op
    struct node_timer balance_timer;     // preferred leaders
    struct node_timer unclean_timer;     // unclean elections
    struct list watches;                 // heartbeat connections
    struct list waiters;                 // parked fetches
    log_offset high_watermark;           // as last told to them
    struct controller_observer observers[CONTROLLER_OBSERVERS_MAX]; // who fetches
    unsigned observers_count;                                       // in use
    bool stopping;                                                  // shutdown has begun
};

extern const struct controller_op_type controller_op_balance;
extern const struct controller_op_type controller_op_unclean;
extern const struct controller_op_type controller_op_expire;
extern const struct controller_op_type controller_op_activate;

void controller_node_process(struct controller_node *cn); // works the queue off; at the end of a turn
void controller_node_run(struct controller_node *cn,
                         const struct controller_op_type *type); // queues an internal operation
void controller_node_fence(struct controller_node *cn, broker_id id,
                           broker_epoch epoch); // queues the fencing of a gone broker
void controller_node_fail_list(struct list *ops, enum kafka_error error);
void controller_node_activated(struct controller_node *cn);     // the first records of the term are committed
void controller_node_probe_brokers(struct controller_node *cn); // is anybody gone? on becoming active
void controller_node_drop_watches(struct controller_node *cn);
void controller_envelope_refuse(
    struct request *rq); // api_envelope.c: the embedded request met no active controller

#endif
