// SPDX-License-Identifier: Apache-2.0
// The record batch v2 as bytes: header fields in place, batches in a buffer, records in a batch.
//
// Layout (big-endian; class DefaultRecordBatch of Apache Kafka):
//
//   offset size field
//        0    8 base offset            stamped by the leader; outside the CRC
//        8    4 length                 bytes after this field
//       12    4 partition leader epoch stamped by the leader; outside the CRC
//       16    1 magic                  2
//       17    4 CRC-32C                of byte 21 to the end
//       21    2 attributes             enum batch_attribute
//       23    4 last offset delta
//       27    8 base timestamp         or the delete horizon, with BATCH_DELETE_HORIZON
//       35    8 max timestamp
//       43    8 producer id            -1 none
//       51    2 producer epoch
//       53    4 base sequence
//       57    4 records count
//       61    . records                with a codec: one compressed stream of them all
//
// A record: length varint (bytes after it), attributes int8, timestamp delta varlong, offset delta varint,
// key length varint (-1 null), key, value length varint (-1 null), value, header count varint, then each
// header: key length varint, key, value length varint (-1 null), value.
#ifndef KRAFT_RECORD_BATCH_H
#define KRAFT_RECORD_BATCH_H

#include "core/base/err.h"
#include "core/base/slice.h"
#include "core/base/types.h"
#include "core/record/codec.h"
#include "core/base/bytes.h"

#define BATCH_MAGIC 2           // the only one that 4.x reads
#define BATCH_OVERHEAD_BYTES 12 // base offset and length: what must be read to know the size
#define BATCH_CRC_START 21      // first byte under the CRC
#define BATCH_HEADER_BYTES 61   // bytes before the records
#define BATCH_BYTES_MAX (INT32_MAX - BATCH_OVERHEAD_BYTES)

enum batch_attribute {
    BATCH_CODEC_MASK = 0x07,     // enum codec
    BATCH_APPEND_TIME = 0x08,    // LogAppendTime: every record has the max timestamp
    BATCH_TRANSACTIONAL = 0x10,  // part of a transaction
    BATCH_CONTROL = 0x20,        // holds control records
    BATCH_DELETE_HORIZON = 0x40, // the base timestamp is the time from which tombstones may go
};

// ---- header fields

// `b` is the first byte of a batch that batch_parse accepted (or of at least BATCH_HEADER_BYTES bytes).
static inline log_offset batch_base_offset(const uint8_t *b)
{
    return (int64_t)bytes_load_be64(b);
}
static inline int32_t batch_length(const uint8_t *b)
{
    return (int32_t)bytes_load_be32(b + 8);
}
static inline leader_epoch batch_leader_epoch(const uint8_t *b)
{
    return (int32_t)bytes_load_be32(b + 12);
}
static inline int8_t batch_magic(const uint8_t *b)
{
    return (int8_t)b[16];
}
static inline uint32_t batch_crc(const uint8_t *b)
{
    return bytes_load_be32(b + 17);
}
static inline int16_t batch_attributes(const uint8_t *b)
{
    return (int16_t)bytes_load_be16(b + 21);
}
static inline int32_t batch_last_offset_delta(const uint8_t *b)
{
    return (int32_t)bytes_load_be32(b + 23);
}
static inline time_ms batch_base_timestamp(const uint8_t *b)
{
    return (int64_t)bytes_load_be64(b + 27);
}
static inline time_ms batch_max_timestamp(const uint8_t *b)
{
    return (int64_t)bytes_load_be64(b + 35);
}
static inline int64_t batch_producer_id(const uint8_t *b)
{
    return (int64_t)bytes_load_be64(b + 43);
}
static inline int16_t batch_producer_epoch(const uint8_t *b)
{
    return (int16_t)bytes_load_be16(b + 51);
}
static inline int32_t batch_base_sequence(const uint8_t *b)
{
    return (int32_t)bytes_load_be32(b + 53);
}
static inline int32_t batch_count(const uint8_t *b)
{
    return (int32_t)bytes_load_be32(b + 57);
}

static inline size_t batch_size(const uint8_t *b)
{
    return (size_t)batch_length(b) + BATCH_OVERHEAD_BYTES;
} // whole batch
static inline log_offset batch_last_offset(const uint8_t *b)
{
    return batch_base_offset(b) + batch_last_offset_delta(b);
}
static inline log_offset batch_next_offset(const uint8_t *b)
{
    return batch_last_offset(b) + 1;
}
static inline enum codec batch_codec(const uint8_t *b)
{
    return (enum codec)(batch_attributes(b) & BATCH_CODEC_MASK);
}
static inline bool batch_is_append_time(const uint8_t *b)
{
    return (batch_attributes(b) & BATCH_APPEND_TIME) != 0;
}
static inline bool batch_is_transactional(const uint8_t *b)
{
    return (batch_attributes(b) & BATCH_TRANSACTIONAL) != 0;
}
static inline bool batch_is_control(const uint8_t *b)
{
    return (batch_attributes(b) & BATCH_CONTROL) != 0;
}
static inline bool batch_has_delete_horizon(const uint8_t *b)
{
    return (batch_attributes(b) & BATCH_DELETE_HORIZON) != 0;
}
static inline bool batch_has_producer(const uint8_t *b)
{
    return batch_producer_id(b) > -1;
}
// Sequence of the last record: wraps from INT32_MAX to 0; -1 without a base sequence.
static inline int32_t batch_last_sequence(const uint8_t *b)
{
    int32_t base = batch_base_sequence(b);
    return base < 0 ? base : (int32_t)(((int64_t)base + batch_last_offset_delta(b)) & INT32_MAX);
}

// These two are outside the CRC: a leader stamps them in place.
static inline void batch_set_base_offset(uint8_t *b, log_offset v)
{
    bytes_store_be64(b, (uint64_t)v);
}
static inline void batch_set_leader_epoch(uint8_t *b, leader_epoch v)
{
    bytes_store_be32(b + 12, (uint32_t)v);
}
static inline void batch_set_length(uint8_t *b, int32_t v)
{
    bytes_store_be32(b + 8, (uint32_t)v);
}
static inline void batch_set_magic(uint8_t *b, int8_t v)
{
    b[16] = (uint8_t)v;
}
static inline void batch_set_crc(uint8_t *b, uint32_t v)
{
    bytes_store_be32(b + 17, v);
}
// The rest is under the CRC: call batch_seal afterwards.
static inline void batch_set_attributes(uint8_t *b, int16_t v)
{
    bytes_store_be16(b + 21, (uint16_t)v);
}
static inline void batch_set_last_offset_delta(uint8_t *b, int32_t v)
{
    bytes_store_be32(b + 23, (uint32_t)v);
}
static inline void batch_set_base_timestamp(uint8_t *b, time_ms v)
{
    bytes_store_be64(b + 27, (uint64_t)v);
}
static inline void batch_set_max_timestamp(uint8_t *b, time_ms v)
{
    bytes_store_be64(b + 35, (uint64_t)v);
}
static inline void batch_set_producer_id(uint8_t *b, int64_t v)
{
    bytes_store_be64(b + 43, (uint64_t)v);
}
static inline void batch_set_producer_epoch(uint8_t *b, int16_t v)
{
    bytes_store_be16(b + 51, (uint16_t)v);
}
static inline void batch_set_base_sequence(uint8_t *b, int32_t v)
{
    bytes_store_be32(b + 53, (uint32_t)v);
}
static inline void batch_set_count(uint8_t *b, int32_t v)
{
    bytes_store_be32(b + 57, (uint32_t)v);
}

// ---- whole batches

// Looks at the first bytes of `bytes` and gives the size of the batch that starts there, header included.
// 0: a whole batch of *size bytes lies in `bytes`; its header may be read with the functions above.
// ERR_AGAIN: more bytes are needed; *size is what the batch will take, or 0 where its length is not there
// yet. ERR_CORRUPT: the length cannot be (*size is 0), or the last offset delta or the count is below zero.
// ERR_UNSUPPORTED: another magic; *size is given.
// Does not look at the CRC or at the records. `msg` may be NULL.
int batch_parse(struct slice bytes, size_t *size, struct errmsg *msg);

// Computes the CRC of a batch that batch_parse accepted and compares. 0 or ERR_CORRUPT.
int batch_check_crc(const uint8_t *b, struct errmsg *msg);

// Computes the CRC and stores it: the last step after a change of fields under it.
void batch_seal(uint8_t *b);

// Walks consecutive batches. `rest` starts as the buffer and ends as what is left: empty, a partial batch
// (fetch replies end in one) or damage.
//   for (struct batch_iter it = batch_iter_of(bytes); batch_iter_next(&it);) use(it.batch, it.size);
//   it.err: 0 or ERR_AGAIN (partial tail) at an orderly end; ERR_CORRUPT, ERR_UNSUPPORTED for damage.
struct batch_iter {
    struct slice rest;    // bytes after the current batch
    const uint8_t *batch; // current batch
    size_t size;          // bytes of it
    int err;              // why the walk ended
};
static inline struct batch_iter batch_iter_of(struct slice bytes)
{
    return (struct batch_iter){.rest = bytes};
}
bool batch_iter_next(struct batch_iter *it);

// Checks what a leader or another trusted writer sent (replica fetch, metadata log): structure and CRC of
// each batch in `bytes`, offsets that rise from `expected_base` on. 0, ERR_CORRUPT or ERR_UNSUPPORTED; *whole
// = bytes of the leading batches that are good, in each case (a partial tail is no error).
int batch_check_run(struct slice bytes, log_offset expected_base, size_t *whole, struct errmsg *msg);

// ---- records

// One record, borrowed from the batch (or from the iterator's window until its next step).
struct record {
    int8_t attributes;     // unused by the format, 0
    time_ms timestamp;     // absolute; the batch's max timestamp with LogAppendTime
    log_offset offset;     // absolute
    int32_t offset_delta;  // from the base offset
    int32_t sequence;      // -1 without a producer
    struct slice key;      // may be null
    struct slice value;    // may be null
    int32_t headers_count; // headers that follow
    struct slice headers;  // their bytes, already checked; walk them with record_header_next
    size_t size;           // bytes of the whole record, its length field included
};

struct record_header {
    struct slice key;   // UTF-8, never null
    struct slice value; // may be null
};

// Takes the next header off `*headers` (a copy of record.headers). False at the end.
bool record_header_next(struct slice *headers, struct record_header *out);

// Limits of what an iterator may unpack, so that a small batch that unpacks to gigabytes is stopped.
struct record_limits {
    uint64_t unpacked_bytes_max; // of all records of a batch; 0 = RECORD_UNPACKED_BYTES_MAX
    uint32_t record_bytes_max;   // of one record (it is held in memory whole); 0 = RECORD_BYTES_MAX
};
#define RECORD_UNPACKED_BYTES_MAX ((uint64_t)1 << 30)
#define RECORD_BYTES_MAX (256U << 20)

// The records section of a batch, looked at in order; internal to core/record.
struct source {
    const uint8_t *p, *end;      // bytes at hand
    struct codec_reader *reader; // NULL: all there is, is at hand
    struct codec_cache *cache;   // lender of window and reader; may be NULL
    uint8_t *window;             // where unpacked bytes lie; NULL without a reader
    size_t window_bytes;         // room there
    bool window_lent;            // the window is the cache's size and goes back to it
    uint64_t unpacked_left;      // bytes that may still be unpacked
    bool ended;                  // the reader has no more
};

// Iterates the records of one batch: in place for an uncompressed one, through a window that grows to the
// largest record for a compressed one. The batch stays in memory and unchanged until record_iter_fini.
//   struct record_iter it;
//   record_iter_init(&it, batch, NULL, NULL);
//   while ((err = record_iter_next(&it, &r, msg)) == 0) ...
//   record_iter_fini(&it);               // err is ERR_NOTFOUND after the last record
struct record_iter {
    const uint8_t *batch;      // the batch
    int32_t left;              // records not yet given
    uint32_t record_bytes_max; // largest record to hold
    int err;                   // sticky
    struct source source;      // the bytes of the records
};
// `cache` (may be NULL) lends codec state, so that a hot caller allocates nothing; `limits` may be NULL.
void record_iter_init(struct record_iter *it, const uint8_t *batch, struct codec_cache *cache,
                      const struct record_limits *limits);
// 0 and a record; ERR_NOTFOUND after the last; ERR_CORRUPT for damage (truncated, lengths that do not fit,
// bytes left over); ERR_TOO_LARGE where a limit was passed; ERR_UNSUPPORTED for an unknown codec.
int record_iter_next(struct record_iter *it, struct record *out, struct errmsg *msg);
void record_iter_fini(struct record_iter *it);

#endif
