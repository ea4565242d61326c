// SPDX-License-Identifier: Apache-2.0
// The limits of the raft room, each with its reason.
#ifndef KRAFT_RAFT_LIMITS_H
#define KRAFT_RAFT_LIMITS_H

#include "raft/quorum.h"

#define RAFT_APPEND_BYTES_MAX                                                                                \
    (1024 * 1024) // entries of one AppendEntries message: a heartbeat waits for at most this
#define RAFT_APPEND_ENTRIES_MAX 4096 // entries of one message; more than the library ever sends at once
#define RAFT_INFLIGHT_ENTRIES 1024   // entries sent to a peer without an answer
#define RAFT_PEER_QUEUE_BYTES_MAX                                                                            \
    (16u << 20) // bytes queued to one peer; what comes on top is dropped (the library repeats)
#define RAFT_DIAL_TIMEOUT_MS 2000    // resolve and connect
#define RAFT_HELLO_TIMEOUT_MS 5000   // a connection that has not shaken hands by then is closed
#define RAFT_SNAPSHOT_RETRY_MS 30000 // pause after a snapshot that could not be written
#define RAFT_DIAL_RETRY_MS_MIN 20    // pause before the second dial
#define RAFT_DIAL_RETRY_MS_MAX 1000  // pauses double up to here
#define RAFT_DIAL_REFUSED_MS 15000 // pause after a refused hand-shake: somebody has to change a setting first
#define RAFT_HELLO_BYTES_MAX 2048  // longest hand-shake frame
#define RAFT_WHY_BYTES_MAX 512     // longest reason in a refusal
#define RAFT_SNAPSHOT_CHUNK_BYTES_MAX (1u << 20) // largest chunk of a snapshot that is served at once
#define RAFT_SNAPSHOT_CHUNK_BYTES_MIN 4096       // smallest chunk that is worth a round trip
#define RAFT_CATCH_UP_ROUND_MS (10u * 60 * 1000) // a new voter may need this long for one snapshot
#define RAFT_TRAILING_BYTES (2u << 20) // entries before a snapshot kept in memory for peers that lag a little
#define RAFT_TRAILING_ENTRIES_MAX 4096 // the same, in entries
#define RAFT_GROUP_PIECES_MAX 512      // pieces of one write of the log thread
#define RAFT_RESERVE_STEP_BYTES (4u << 20) // space reserved ahead of the log end
#define RAFT_INDEX_INTERVAL_BYTES                                                                            \
    4096 // one sparse index entry per this many bytes, as Kafka's index.interval.bytes
#define RAFT_ROLL_AT_SNAPSHOT_BYTES                                                                          \
    (1u << 20) // an active segment above this is rolled when a snapshot was made, so that it can be pruned
#define RAFT_TAKE_OVER_RETRY_MS 5              // pause between attempts to stand at once
#define RAFT_TAKE_OVER_RANK_MS 50              // head start of each rank before the next one
#define RAFT_TAKE_OVER_TRIES 20                // attempts before the election timeout is left to do it
#define RAFT_MARK_SYNC_MS 1000                 // the mark is synced this often
#define RAFT_SNAPSHOT_BATCH_BYTES (512u << 10) // a batch of a checkpoint is ended past this

_Static_assert(RAFT_APPEND_BYTES_MAX + QUORUM_BATCH_BYTES_MAX <
                   QUORUM_FRAME_BYTES_MAX + RAFT_APPEND_BYTES_MAX,
               "the largest batch fits into a frame");

#endif
