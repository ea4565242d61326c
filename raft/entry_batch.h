// SPDX-License-Identifier: Apache-2.0
// One Raft entry is one record batch: what a batch means to libraft, and the batches of the entries that
// libraft makes itself.
//
//   first record                                   entry
//   LEADER_CHANGE control record                   RAFT_BARRIER (the first of a term)
//   NoOpRecord as the only record                  RAFT_BARRIER (a later one)
//   KRAFT_VOTERS with the configuration tag        RAFT_CHANGE
//   anything else                                  RAFT_COMMAND
//
// libraft is given the bytes that it knows itself (8 zero bytes, or its encoded configuration) in front of
// the batch of a barrier or a change, and the batch alone for a command.
#ifndef KRAFT_RAFT_ENTRY_BATCH_H
#define KRAFT_RAFT_ENTRY_BATCH_H

#include <raft.h>
#include "core/base/err.h"
#include "core/record/builder.h"
#include "raft/voter_set.h"

struct entry_batch {
    struct slice bytes;        // the batch
    enum raft_entry_type type; // what it is to libraft
    leader_epoch epoch;        // its term
    log_offset base;           // base offset
    uint32_t offsets;          // offsets it takes (one a record)
    bool carries_voters;       // RAFT_COMMAND with a KRAFT_VOTERS record of changed endpoints
    struct voter_set *voters;  // RAFT_CHANGE, or carries_voters: the set in it, one reference; else NULL
};

// Checks one whole batch that a peer or the disk gave: size, magic, CRC, dense offsets, a type that may stand
// in the log. `bytes` may go on behind it. ERR_AGAIN: cut short; ERR_CORRUPT; ERR_MALFORMED (a batch that is
// no entry). On 0 the caller owns out->voters.
int entry_batch_parse(struct slice bytes, struct entry_batch *out, struct errmsg *msg);

// Number of bytes that libraft needs in front of the batch: 0 for a command, 8 for a barrier, the encoded
// configuration for a change.
size_t entry_prefix_bytes(const struct entry_batch *e);
void entry_prefix_write(const struct entry_batch *e, uint8_t *out); // writes just those
// Length of libraft's own encoding of a configuration at `data`; 0: not one (bounds). Never reads past `len`.
size_t entry_configuration_bytes(const uint8_t *data, size_t len);

// What the batches of own control entries say.
struct entry_origin {
    log_offset base;                // log end
    leader_epoch epoch;             // term
    time_ms now;                    // timestamp of the records
    node_id leader;                 // this node
    const struct voter_set *voters; // configuration in force (change: the new one)
    bool first_of_term;             // barrier: LEADER_CHANGE, else NoOpRecord
    bool first_of_log; // barrier of a dynamic quorum at offset 0: KRAFT_VERSION and KRAFT_VOTERS go with it
};
// The batch by mem_alloc, *size bytes.
uint8_t *entry_make_barrier(const struct entry_origin *o, size_t *size);
uint8_t *entry_make_change(const struct entry_origin *o, size_t *size);
// A KRAFT_VOTERS batch with new endpoints, no configuration entry (RAFT_COMMAND). By raft_malloc.
uint8_t *entry_make_endpoints(const struct entry_origin *o, size_t *size);
// A batch of metadata records, each a framed value. By raft_malloc. *size 0: over the limit.
uint8_t *entry_make_command(const struct slice *values, uint32_t count, log_offset base, leader_epoch epoch,
                            time_ms now, size_t *size);

// Control record values, also for checkpoints.
void entry_kraft_version_value(int16_t level, struct strbuf *out);

#endif
