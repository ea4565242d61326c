// SPDX-License-Identifier: Apache-2.0
// What passes over a quorum connection: hand-shake, Raft messages, chunks of snapshots. Encoding and strict
// decoding.
//
// Every frame (int32 length, then bytes) begins with one byte, its kind. Integers are big-endian. The dialler
// sends HELLO; the other side answers WELCOME or REFUSED; only then do other kinds pass, both ways.
//
//   HELLO, WELCOME     u16 protocol, text16 cluster id, i32 node id, 16 directory id, u64 Raft id, u64 Raft
//   id expected at the other end
//                      (0 = any), u8 flags (1 dynamic quorum, 2 disk was replaced)
//   REFUSED            u8 reason (enum refuse_reason), text16 words
//   APPEND             u64 term, u64 prev index, u64 prev term, u64 leader commit, u32 entries, then the
//   batches APPEND_RESULT      u8 version, u64 term, u64 rejected, u64 last index, u16 features, u16 capacity
//   VOTE               u8 version, u64 term, u64 candidate, u64 last index, u64 last term, u8 flags (1
//   disrupt, 2 pre-vote) VOTE_RESULT        u8 version, u64 term, u8 flags (1 granted, 2 pre-vote), u16
//   features, u16 capacity INSTALL            u64 term, u64 last index, u64 last term, u64 configuration
//   index, manifest, configuration (voter_set_encode) TIMEOUT_NOW        u64 term, u64 last index, u64 last
//   term SNAPSHOT_READ      i64 end offset, i32 epoch, u64 position, u32 most bytes SNAPSHOT_DATA      i64
//   end offset, i32 epoch, u64 position, u64 size of the file (0: it is not here), then the bytes
#ifndef KRAFT_RAFT_MESSAGE_H
#define KRAFT_RAFT_MESSAGE_H

#include <raft.h>
#include "core/base/rope.h"
#include "raft/voter_set.h"

#define WIRE_PROTOCOL 1
#define WIRE_CLUSTER_BYTES 64 // longest cluster id, with its NUL

enum wire_kind {
    WIRE_HELLO = 1,
    WIRE_WELCOME,
    WIRE_REFUSED,
    WIRE_APPEND,
    WIRE_APPEND_RESULT,
    WIRE_VOTE,
    WIRE_VOTE_RESULT,
    WIRE_INSTALL,
    WIRE_TIMEOUT_NOW,
    WIRE_SNAPSHOT_READ,
    WIRE_SNAPSHOT_DATA,
};
enum refuse_reason {
    REFUSE_PROTOCOL = 1, // another version of this hand-shake
    REFUSE_CLUSTER,      // another cluster id
    REFUSE_IDENTITY,     // not whom the dialler expected, or our own id
    REFUSE_KIND,         // static and dynamic quorum
    REFUSE_DIRECTORY,    // another directory id is on record for that node id
};

struct wire_hello {
    uint16_t protocol;                   // WIRE_PROTOCOL
    char cluster_id[WIRE_CLUSTER_BYTES]; // text
    node_id node;                        // sender
    struct uuid directory;               // its directory id
    raft_id id;                          // its Raft id
    raft_id expected;                    // whom it means to talk to; 0 any
    bool dynamic;                        // kind of quorum
    bool replaced;                       // its disk was replaced on purpose
};
struct wire_refused {
    uint8_t reason;  // enum refuse_reason
    char words[512]; // for people
};
// A snapshot as messages name it; also what libraft keeps as the snapshot's data.
struct manifest {
    log_offset end_offset; // of the file's name
    leader_epoch epoch;    // of the file's name
    uint64_t size;         // bytes of the file
};
struct wire_append {
    raft_term term, prev_term;            // as in raft_append_entries
    raft_index prev_index, leader_commit; // "
    uint32_t count;                       // batches
    struct slice batches;                 // their bytes, in place
};
struct wire_install {
    raft_term term, last_term;         // as in raft_install_snapshot
    raft_index last_index, conf_index; // "
    struct manifest manifest;          // the file
    struct voter_set *voters;          // configuration; one reference
};
struct wire_snapshot_read {
    struct manifest file; // `size` unused
    uint64_t pos;         // first byte
    uint32_t bytes_max;   // most bytes
};
struct wire_snapshot_data {
    struct manifest file; // size 0: not here
    uint64_t pos;         // first byte
    struct slice bytes;   // in place
};

#define MANIFEST_BYTES 20
void manifest_encode(const struct manifest *m, uint8_t out[MANIFEST_BYTES]);
bool manifest_decode(struct slice bytes, struct manifest *out); // exactly MANIFEST_BYTES

// Each appends a whole frame, length included, to `out`.
void wire_put_hello(struct rope *out, enum wire_kind kind, const struct wire_hello *h);
void wire_put_refused(struct rope *out, enum refuse_reason reason, const char *words);
void wire_put_append(struct rope *out, const struct wire_append *a,
                     const struct slice *batches); // a->count of them, copied
void wire_put_install(struct rope *out, const struct wire_install *i);
void wire_put_snapshot_read(struct rope *out, const struct wire_snapshot_read *r);
// Header of the frame only: `bytes` more must follow.
void wire_put_snapshot_data(struct rope *out, const struct manifest *file, uint64_t pos, size_t bytes);
void wire_put_small(struct rope *out,
                    const struct raft_message *m); // APPEND_RESULT, VOTE, VOTE_RESULT, TIMEOUT_NOW

// Each reads what follows the kind byte; false: malformed or outside the bounds that the library survives.
bool wire_get_hello(struct slice body, struct wire_hello *out);
bool wire_get_refused(struct slice body, struct wire_refused *out);
bool wire_get_append(struct slice body, struct wire_append *out);
bool wire_get_install(struct slice body, struct wire_install *out);
bool wire_get_snapshot_read(struct slice body, struct wire_snapshot_read *out);
bool wire_get_snapshot_data(struct slice body, struct wire_snapshot_data *out);
bool wire_get_small(enum wire_kind kind, struct slice body,
                    struct raft_message *out); // fills type and the union only

#endif
