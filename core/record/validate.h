// SPDX-License-Identifier: Apache-2.0
// Checks a produced batch and makes it ready to append, as Apache Kafka's LogValidator does.
//
// The common case is walked in place: header, CRC, every record's lengths and timestamp, while the bytes are
// in cache; a compressed batch is unpacked through a small window and thrown away. Nothing is allocated then.
// Only where the topic wants another codec, or where a compressed batch has gaps in its offsets, is a new
// batch made.
//
// What is left to the caller: base offset and leader epoch (stamped at the append), the producer's sequence,
// permissions.
#ifndef KRAFT_RECORD_VALIDATE_H
#define KRAFT_RECORD_VALIDATE_H

#include "core/base/err.h"
#include "core/base/rope.h"
#include "core/record/batch.h"

// Outcome, with the protocol error it stands for. The server's error map translates it.
enum validate_verdict {
    VALIDATE_OK = 0,
    VALIDATE_CORRUPT,           // CORRUPT_MESSAGE (2): CRC, length
    VALIDATE_TOO_LARGE,         // MESSAGE_TOO_LARGE (10)
    VALIDATE_BAD_TIMESTAMP,     // INVALID_TIMESTAMP (32); see `errors`
    VALIDATE_UNSUPPORTED_CODEC, // UNSUPPORTED_COMPRESSION_TYPE (76)
    VALIDATE_BAD_RECORD,        // INVALID_RECORD (87); see `errors` where a single record is to blame
};

enum timestamp_type {
    TIMESTAMP_CREATE = 0, // message.timestamp.type=CreateTime
    TIMESTAMP_APPEND = 1, // LogAppendTime
};

// What the topic asks of a batch.
struct validate_rules {
    bool producer_codec;           // compression.type=producer: keep whatever came
    enum codec codec;              // else: recompress to this
    int level;                     // compression level for `codec`; CODEC_LEVEL_DEFAULT
    enum timestamp_type timestamp; // message.timestamp.type
    time_ms before_ms_max;         // message.timestamp.before.max.ms
    time_ms after_ms_max;          // message.timestamp.after.max.ms
    bool compacted;                // cleanup.policy has compact: null keys are refused
    uint32_t batch_bytes_max;      // max.message.bytes
    uint64_t
        unpacked_bytes_max; // most bytes to unpack from one batch; 0 = validate_unpacked_max(batch_bytes_max)
    bool zstd_allowed;      // Produce v7 and later
    time_ms now;            // wall clock
};

// Most bytes that a batch may unpack to where nothing else is said: 128 times the batch limit, at least 128
// MiB.
uint64_t validate_unpacked_max(uint32_t batch_bytes_max);

enum validate_reason {
    VALIDATE_REASON_NULL_KEY,    // compacted topic, record without a key
    VALIDATE_REASON_TIMESTAMP,   // outside of now - before .. now + after
    VALIDATE_REASON_APPEND_TIME, // the client set the type to LogAppendTime
};
// A record to blame (BatchIndexAndErrorMessage of the Produce response).
struct validate_record_error {
    int32_t index;               // of the record in the batch
    enum validate_reason reason; // why
    time_ms timestamp;           // the record's, for VALIDATE_REASON_TIMESTAMP
};
#define VALIDATE_RECORD_ERRORS_MAX 64 // reported for one batch; more are counted only

struct validate_result {
    enum validate_verdict verdict; // see above
    struct errmsg msg;             // why; empty with VALIDATE_OK
    int32_t count;                 // records
    time_ms max_timestamp;         // largest timestamp (the append time with LogAppendTime); -1 none
    int32_t max_timestamp_delta;   // offset delta of the first record that has it
    struct chunk
        *rewritten;       // a new batch of `size` bytes at rewritten->data; NULL: the one that was passed in
    size_t size;          // bytes of the batch to append
    int32_t errors_count; // records to blame, in all
    struct validate_record_error errors[VALIDATE_RECORD_ERRORS_MAX]; // the first of them
};

// Checks `len` bytes at `data`, the records of one partition of a Produce request: exactly one batch. With
// VALIDATE_OK the batch at `out->rewritten->data`, or at `data` where that is NULL, is ready to append but
// for base offset and leader epoch; it may have been changed in place (max timestamp, timestamp type, CRC).
// The caller then owns `rewritten` (chunk_unref). `cache` may be NULL. Any thread; pure.
void validate_produce(uint8_t *data, size_t len, const struct validate_rules *rules,
                      struct codec_cache *cache, struct validate_result *out);

// Message for one record error, as Apache Kafka words it.
void validate_error_text(const struct validate_record_error *e, const struct validate_rules *rules, char *buf,
                         size_t size);

#endif
