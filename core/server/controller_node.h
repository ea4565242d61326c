// SPDX-License-Identifier: Apache-2.0
// The controller half of a node: the quorum, the active controller's queue, and what observers of the log
// see.
//
// Happy path of an operation: a handler submits it; at the end of the turn the queue is worked off in order,
// each operation decided against the latest image (uncommitted changes included), its records replayed on it
// and added to the batch; the batch is proposed; when it is committed every operation that was decided on it
// is answered. Failures:
//  - not active: the operation is failed with NOT_CONTROLLER at once; while the barrier or the first records
//  of a new
//    term are under way it waits;
//  - leadership lost: the uncommitted image is dropped and everything pending is failed with NOT_CONTROLLER;
//  - the quorum is busy: the operation stays queued and is decided anew after the next commit;
//  - no disk space: failed with KAFKA_STORAGE_ERROR.
// An operation without records waits for the commit of the image that it was decided on. Everything on the
// controller loop.
#ifndef KRAFT_SERVER_CONTROLLER_NODE_H
#define KRAFT_SERVER_CONTROLLER_NODE_H

#include "core/base/list.h"
#include "core/base/logline.h"
#include "core/controller/controller.h"
#include "core/protocol/gen/errors.h"
#include "core/security/authorize.h"
#include "core/server/request.h"
#include "raft/quorum.h"

struct controller_op;
struct server_config;

// What an operation is; constant. One per API (in the API's file) and per internal job.
struct controller_op_type {
    const char *name; // for log lines
    enum acl_operation
        cluster_operation; // asked of the cluster before it is queued; 0: it asks by itself, for each item
    // Decides: fills op->out and adds records. May be called again when the batch could not be proposed.
    void (*decide)(struct controller_op *op, struct controller *c, struct record_list *records);
    void (*fail)(struct controller_op *op,
                 enum kafka_error error);    // nothing was done: fills op->out with the error
    void (*reply)(struct controller_op *op); // answers with op->out; the operation is gone afterwards
};

struct controller_op {
    struct list_node link;                 // queue, batch or nothing
    const struct controller_op_type *type; // what it is
    struct controller_node *node;          // whose
    struct request *rq;                    // request; NULL for an internal one
    struct arena *arena;                   // memory of in, out and records: the request's or its own
    const void *in;                        // decoded request
    void *out;                             // response to be filled
    bool committed;                        // set before `reply`: it was carried out (not failed)
};

// One who fetches the metadata log without a vote (DescribeQuorum).
struct controller_observer {
    node_id id;                // replica id of its Fetch
    struct uuid directory_id;  // its metadata directory; zero when it does not say
    log_offset log_end_offset; // its fetch offset
    time_ms last_fetch_ms;     // wall clock of its last fetch
    time_ms last_caught_up_ms; // wall clock when it last had everything
};
#define CONTROLLER_OBSERVERS_MAX 256 // remembered ones; the longest silent one makes room

struct controller_node_opts {
    struct node *node;                        // the world
    struct node_loop *loop;                   // controller loop
    struct log_sink *log;                     // may be NULL
    const struct quorum_opts *quorum;         // all but the hooks, which are set here
    const struct controller_opts *controller; // outlives the node
    const struct server_config *config;       // of this node; outlives it
    uint32_t idle_noop_ms;                    // metadata.max.idle.interval.ms; 0 = none
    uint32_t balance_interval_ms; // leader.imbalance.check.interval.seconds; 0 = no automatic balance
    uint32_t unclean_interval_ms; // how often leaderless partitions are looked at for unclean election
    // A newer committed image. On the controller loop; takes its own reference. May be NULL.
    void (*on_image)(void *data, struct image *image);
    // Another leader is known (never -1). On the controller loop; may be NULL.
    void (*on_leader)(void *data, node_id leader);
    // quorum_shutdown is done.
    void (*stopped)(void *data);
    void *data;
};

struct controller_node;
// Reads the directory and starts the quorum; blocks. On the controller loop. Errors: those of quorum_create.
int controller_node_create(const struct controller_node_opts *opts, struct controller_node **out,
                           struct errmsg *msg);
void controller_node_shutdown(struct controller_node *cn); // `stopped` comes when done
void controller_node_destroy(
    struct controller_node *cn); // on the loop, in `stopped` or later: gives everything back but itself
void controller_node_free(struct controller_node *cn); // after the loop has ended

// Queues an operation that lives in rq->arena and is answered by type->reply. Handlers use
// controller_node_handle.
void controller_node_submit(struct controller_node *cn, struct controller_op *op);
// Makes the operation of a request whose body is decoded; `out_size` bytes are reserved for the response.
void controller_node_handle(struct request *rq, const struct controller_op_type *type, const void *in,
                            size_t out_size);

// Fills a decider's context on the committed image, for what does not go through the queue.
void controller_node_context(struct controller_node *cn, struct arena *arena, struct controller *out);
struct quorum *controller_node_quorum(struct controller_node *cn);
struct image *
controller_node_image(struct controller_node *cn); // newest committed image; borrowed for this turn
const struct controller_opts *controller_node_opts_of(struct controller_node *cn);
const struct server_config *controller_node_config(struct controller_node *cn);
struct node_loop *controller_node_loop(struct controller_node *cn);
bool controller_node_is_serving(
    const struct controller_node *cn); // active, and the first records of its term are committed
// A valid heartbeat came over this request's connection: when the connection closes and the broker's listener
// refuses a dial, it is fenced.
void controller_node_watch_broker(struct controller_node *cn, struct request *rq, broker_id id,
                                  broker_epoch epoch);

// ---- observers of the log -------------------------------------------------------------------------------
void controller_node_observe(struct controller_node *cn, node_id id, struct uuid directory_id,
                             log_offset log_end_offset);
const struct controller_observer *controller_node_observers(const struct controller_node *cn,
                                                            unsigned *count);
// A fetch that waits for the high watermark to pass `offset`.
struct controller_waiter {
    struct list_node link;
    struct node_timer timer;
    struct controller_node *node;
    void (*wake)(
        struct controller_waiter *w); // once, in a later turn: the high watermark moved or the time is over
};
void controller_node_wait(struct controller_node *cn, struct controller_waiter *w, uint32_t wait_ms);

#endif
