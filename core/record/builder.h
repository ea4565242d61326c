// SPDX-License-Identifier: Apache-2.0
// Builds record batches: for metadata batches, control records, snapshots, programs and tests.
#ifndef KRAFT_RECORD_BUILDER_H
#define KRAFT_RECORD_BUILDER_H

#include "core/base/err.h"
#include "core/base/rope.h"
#include "core/base/slice.h"
#include "core/record/batch.h"

// What the header of a batch will say.
struct builder_options {
    log_offset base_offset;   // 0 for produce
    leader_epoch epoch;       // partition leader epoch; -1 where the broker stamps it
    enum codec codec;         // how to pack the records
    int level;                // CODEC_LEVEL_DEFAULT
    bool append_time;         // LogAppendTime: all records have `append_timestamp`
    time_ms append_timestamp; // used with append_time
    bool transactional;       // sets the bit
    bool control;             // sets the bit
    int64_t producer_id;      // -1 none
    int16_t producer_epoch;   // -1 none
    int32_t base_sequence;    // -1 none
};
#define BUILDER_OPTIONS_DEFAULT                                                                              \
    ((struct builder_options){.epoch = -1,                                                                   \
                              .level = CODEC_LEVEL_DEFAULT,                                                  \
                              .producer_id = -1,                                                             \
                              .producer_epoch = -1,                                                          \
                              .base_sequence = -1})

// One batch being built. Bytes grow by doubling; reset keeps the memory.
struct builder {
    struct builder_options opts;   // as given
    uint8_t *data;                 // header room, then records uncompressed; owned
    size_t len, cap;               // bytes used, room
    int32_t count;                 // records
    int32_t last_delta;            // offset delta of the last record; -1 none
    time_ms base_timestamp;        // of the first record; -1 none
    time_ms max_timestamp;         // -1 none
    uint8_t *packed;               // the batch once packed; owned; NULL before
    size_t packed_len, packed_cap; // bytes used there, room
};

void builder_init(struct builder *b, const struct builder_options *opts);
void builder_reset(struct builder *b, const struct builder_options *opts); // starts anew; keeps memory
void builder_fini(struct builder *b);

// Adds a record at the next offset. All is copied. `headers` may be NULL with a count of 0.
void builder_append(struct builder *b, time_ms timestamp, struct slice key, struct slice value,
                    const struct record_header *headers, int32_t headers_count);
// The same at an offset delta of the caller's choice, above the last one (batches with gaps, as compaction
// leaves them).
void builder_append_at(struct builder *b, int32_t offset_delta, time_ms timestamp, struct slice key,
                       struct slice value, const struct record_header *headers, int32_t headers_count);
// Bytes that the batch takes so far, uncompressed, header included.
static inline size_t builder_size(const struct builder *b)
{
    return b->len;
}
// Upper bound of what one more record adds.
size_t builder_record_bound(struct slice key, struct slice value, const struct record_header *headers,
                            int32_t headers_count);

// Ends the batch: packs, fills the header, seals. *out is borrowed until the next call on `b`. ERR_TOO_LARGE
// past 2 GiB. After it only reset or fini.
int builder_finish(struct builder *b, struct slice *out, struct errmsg *msg);
// Ends the batch into a chunk of its own, one reference, *size bytes.
struct chunk *builder_finish_chunk(struct builder *b, size_t *size);

// ---- control records

// Type of a control record: second int16 of its key (the first is the key's version, 0).
enum control_type {
    CONTROL_ABORT = 0,
    CONTROL_COMMIT = 1,
    CONTROL_LEADER_CHANGE = 2,
    CONTROL_SNAPSHOT_HEADER = 3,
    CONTROL_SNAPSHOT_FOOTER = 4,
    CONTROL_KRAFT_VERSION = 5,
    CONTROL_KRAFT_VOTERS = 6,
    CONTROL_TYPE_COUNT = 7, // first number that is no type
    CONTROL_UNKNOWN = -1,
};
// Type by a control record's key; CONTROL_UNKNOWN for what is not known (such records are skipped).
enum control_type control_type_of(struct slice key);
// The key of a type (4 bytes, constant).
struct slice control_key(enum control_type type);

// Adds a control record: key of the type, `value` is the encoded message (version int16 first). The batch
// must have `control` set.
void builder_append_control(struct builder *b, time_ms timestamp, enum control_type type, struct slice value);

// A whole transaction marker batch (KIP-98): one record, one offset. Options: base_offset, epoch,
// producer_id, producer_epoch are used; the rest is set. `b` is reset first.
int builder_marker(struct builder *b, const struct builder_options *opts, bool commit,
                   int32_t coordinator_epoch, time_ms timestamp, struct slice *out);

#endif
