// SPDX-License-Identifier: Apache-2.0
// The records section of a batch as a run of bytes that is looked at in order: in place, or unpacked through
// a window. For core/record only.
#ifndef KRAFT_RECORD_SOURCE_H
#define KRAFT_RECORD_SOURCE_H

#include "core/record/batch.h"
#include "core/record/codec_internal.h"

#define RECORD_HEAD_BYTES_MAX                                                                                \
    26 // length, attributes, timestamp delta, offset delta, key length at their longest
#define RECORD_BODY_BYTES_MIN 6 // attributes, four numbers and a header count, one byte each
#define RECORD_BYTES_MIN 7      // and its length: no batch of n bytes holds more than n / 7 records

// Opens the records of a batch that batch_parse accepted. ERR_UNSUPPORTED: unknown codec.
int source_open(struct source *s, const uint8_t *batch, struct codec_cache *cache, uint64_t unpacked_max);
void source_close(struct source *s);

// Tries to have `want` bytes at hand (window_bytes at most, unless `grow`); fewer only at the end of the
// stream. ERR_CORRUPT, ERR_TOO_LARGE past the limit.
int source_fill(struct source *s, size_t want, bool grow);
static inline size_t source_have(const struct source *s)
{
    return (size_t)(s->end - s->p);
}
static inline int source_need(struct source *s, size_t want)
{
    return source_have(s) >= want || !s->reader ? 0 : source_fill(s, want, false);
}
// Steps over `len` bytes. ERR_CORRUPT where there are not so many.
int source_skip(struct source *s, uint64_t len);
// 0 when nothing is left, ERR_CORRUPT when there is.
int source_expect_end(struct source *s);

// What stands in front of a record's key.
struct record_head {
    int32_t body;            // bytes after the length field
    int64_t timestamp_delta; // from the base timestamp
    int32_t offset_delta;    // from the base offset
    int32_t key_bytes;       // -1 null
    uint8_t length_bytes;    // of the length field
    uint8_t attributes_at;   // where the attributes stand, from the record's first byte
    uint8_t offset_at;       // where the offset delta starts
    uint8_t offset_end;      // and ends
    uint8_t bytes;           // all of these, up to the key
};
// Reads the head of the record at [p, end). ERR_CORRUPT where it is cut off or cannot be.
int record_head_parse(const uint8_t *p, const uint8_t *end, struct record_head *out);
// Checks what follows the head of a record whose body ends exactly at `end`; `key` is its first byte after
// the head. Answers the parts by *value, *headers (their bytes) and *headers_count; each may be NULL.
int record_tail_check(const uint8_t *key, const uint8_t *end, int32_t key_bytes, struct slice *value,
                      struct slice *headers, int32_t *headers_count);

#endif
