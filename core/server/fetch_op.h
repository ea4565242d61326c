// SPDX-License-Identifier: Apache-2.0
// One fetch at work: reads its partitions, waits for more, answers; shared by the files of Fetch only.
#ifndef KRAFT_SERVER_FETCH_OP_H
#define KRAFT_SERVER_FETCH_OP_H

#include "core/protocol/gen/fetch_request.h"
#include "core/server/fetch_session.h"
#include "core/server/partition.h"
#include "core/server/request.h"
#include "core/server/waiter.h"

// A partition of this fetch.
struct fetch_slot {
    struct fetch_item *item;      // what is asked
    struct partition *partition;  // one reference; NULL where this broker has none
    int16_t missing_error;        // error where there is none
    broker_id hint_leader;        // leader by the image where there is none here
    leader_epoch hint_epoch;      // its epoch
    bool tried;                   // `read` is filled
    struct partition_read read;   // outcome of the last try
    struct partition_watch watch; // while parked
};

enum fetch_state {
    FETCH_TRYING,  // on the loop, now
    FETCH_PARKED,  // watches its partitions, timer runs
    FETCH_READING, // a job brings cold bytes into memory
    FETCH_ENDED    // answered or gone; waits for a push or the job that is still under way
};

struct fetch_op {
    struct request *rq;            // the request
    struct broker *broker;         // whose
    struct kp_fetch_request *in;   // as asked; in the arena
    struct fetch_session *session; // in use by us
    bool incremental;              // tell only what changed
    bool committed;                // isolation read_committed
    bool any_replica;              // a consumer that may read from followers (version 11 on)
    broker_id replica;             // follower that asks; -1 a consumer
    broker_epoch replica_epoch;    // its epoch
    int64_t max_bytes;             // for the whole answer
    enum fetch_state state;        // see above
    mono_us deadline;              // when it answers with what is there
    struct fetch_slot *slots;      // in the session's order
    int32_t slots_count;           // number of them
    atomic_llong missing;          // bytes that are still waited for
    struct waiter waiter;          // woken by the partitions
    struct node_timer timer;       // the deadline
    struct node_job job;           // reads ahead
    int encode_error;              // of fetch_reply
    bool waited;                   // cold bytes were read once: do not ask again whether they are there
};

// fetch_reply.c: writes the answer (op->encode_error tells how that went); the caller ends the request.
void fetch_reply(struct fetch_op *op);

#endif
