// SPDX-License-Identifier: Apache-2.0
// What a partition remembers of its idempotent and transactional producers (KIP-98, KIP-360, KIP-890).
//
// Per producer id: epoch, the last five batches, an open transaction. Not thread-safe: lives under the
// partition's mutex.
#ifndef KRAFT_STORAGE_PRODUCER_STATE_H
#define KRAFT_STORAGE_PRODUCER_STATE_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"

#define PRODUCER_BATCHES 5 // batches remembered per producer: the most that a client may have in flight

// The header fields of a batch that matter here.
struct producer_batch {
    int64_t producer_id; // -1: none
    int16_t producer_epoch;
    int32_t base_sequence; // -1 in control batches
    int32_t last_sequence; // base + last offset delta, wrapped at INT32_MAX
    log_offset base_offset;
    log_offset last_offset;
    time_ms max_timestamp;
    bool transactional;
    bool control;
};

enum producer_verdict {
    PRODUCER_OK,           // append it
    PRODUCER_DUPLICATE,    // stored already: answer success with the stored offset
    PRODUCER_OUT_OF_ORDER, // OUT_OF_ORDER_SEQUENCE_NUMBER: a gap, or a retry that is older than what is
                           // remembered
    PRODUCER_FENCED,       // INVALID_PRODUCER_EPOCH: a newer epoch was seen
};
struct producer_duplicate {
    log_offset base_offset; // of the stored batch
    log_offset last_offset; // wait for this one with acks=all
    time_ms timestamp;      // max timestamp of the stored batch
};

struct producer_batch_meta {
    int32_t last_sequence; // -1: none
    int32_t offset_delta;  // last offset - base offset
    log_offset last_offset;
    time_ms timestamp; // max timestamp of the batch
};
struct producer_entry {
    int64_t producer_id;
    int16_t producer_epoch;
    uint8_t batches_count;                                // used entries of `batches`
    int32_t coordinator_epoch;                            // of the last marker; -1 none
    log_offset txn_first_offset;                          // of the open transaction; -1 none
    time_ms last_timestamp;                               // of the last batch or marker: expiry
    struct producer_batch_meta batches[PRODUCER_BATCHES]; // oldest first
};

struct producer_states;
struct producer_states *producer_states_new(void);
void producer_states_free(struct producer_states *p);
void producer_states_clear(struct producer_states *p); // forgets all; map end offset becomes 0

// May a client's batch be appended? `dup` is filled in for PRODUCER_DUPLICATE.
enum producer_verdict producer_states_check(const struct producer_states *p, const struct producer_batch *b,
                                            struct producer_duplicate *dup);
// A data batch was appended or replayed.
void producer_states_append(struct producer_states *p, const struct producer_batch *b);
// A transaction marker was appended or replayed. Returns true, with the transaction's first offset, when one
// was open.
bool producer_states_marker(struct producer_states *p, const struct producer_batch *b, bool commit,
                            int32_t coordinator_epoch, log_offset *txn_first);
// Coordinator epoch of the last marker of a producer (-1 none): a lower one is
// TRANSACTION_COORDINATOR_FENCED.
const struct producer_entry *producer_states_find(const struct producer_states *p,
                                                  int64_t producer_id); // NULL: unknown

unsigned producer_states_count(const struct producer_states *p);
const struct producer_entry *producer_states_at(const struct producer_states *p,
                                                unsigned i); // in no order, i < count
unsigned producer_states_expire(struct producer_states *p, time_ms now,
                                int64_t expiration_ms);          // not while a transaction is open
log_offset producer_states_end(const struct producer_states *p); // everything below is in the state
void producer_states_set_end(struct producer_states *p, log_offset end);
log_offset producer_states_first_open(
    const struct producer_states *p); // smallest first offset of an open transaction; -1 none
// First offset of the oldest transaction that is open, or decided by a marker at or above the high watermark;
// -1 none.
log_offset producer_states_first_unstable(struct producer_states *p, log_offset high_watermark);

// Puts in a producer as a snapshot has it: `last` with last_offset < 0 means no batch of this epoch.
void producer_states_restore(struct producer_states *p, int64_t producer_id, int16_t epoch,
                             const struct producer_batch_meta *last, int32_t coordinator_epoch,
                             log_offset txn_first_offset);
// Last stable offset once the transaction of `producer_id` has ended with a marker at `marker`: the first
// offset of the oldest other open transaction, else the offset after the marker. What the transaction index
// keeps.
log_offset producer_states_stable_after(const struct producer_states *p, int64_t producer_id,
                                        log_offset marker);

// Kafka's .snapshot format (disk_format: version 1, CRC-32C, 46 bytes a producer). `*out` by mem_alloc.
void producer_states_encode(const struct producer_states *p, uint8_t **out, size_t *len);
// Replaces the contents. ERR_CORRUPT: wrong version, length or checksum; contents are then empty.
int producer_states_decode(struct producer_states *p, struct slice bytes, struct errmsg *msg);

#endif
