// SPDX-License-Identifier: Apache-2.0
// What the codec files share: the cache of readers and writers, and the framing constants. For core/record
// only.
#ifndef KRAFT_RECORD_CODEC_INTERNAL_H
#define KRAFT_RECORD_CODEC_INTERNAL_H

#include "core/record/codec.h"

#define CODEC_WINDOW_BYTES (64U << 10)      // unpacked bytes that a walk holds at a time
#define CODEC_KEPT_BYTES_MAX (4U << 20)     // state above this is freed at close, not kept for reuse
#define SNAPPY_BLOCK_BYTES (32U << 10)      // what a writer puts in a block, as Java does
#define SNAPPY_BLOCK_BYTES_MAX (128U << 20) // largest unpacked block that a reader takes: it is held whole
#define SNAPPY_RATIO_MAX 22                 // a snappy element of 3 bytes gives 64 at most
#define XERIAL_HEADER_BYTES 16              // magic of 8, version, oldest compatible version

struct codec_cache {
    struct codec_reader *readers[CODEC_COUNT]; // one idle reader a codec, or NULL
    struct codec_writer *writers[CODEC_COUNT]; // one idle writer a codec, or NULL
    uint8_t *window;                           // CODEC_WINDOW_BYTES, lent to one walk at a time; or NULL
};

extern const uint8_t codec__xerial_magic[8];

void codec__reader_free(struct codec_reader *r); // NULL allowed
void codec__writer_free(struct codec_writer *w); // NULL allowed

// Lends the window (CODEC_WINDOW_BYTES); `cache` may be NULL.
uint8_t *codec__window_take(struct codec_cache *cache);
void codec__window_give(struct codec_cache *cache, uint8_t *window);

// Memory for zlib, by our allocator.
void *codec__zalloc(void *opaque, unsigned items, unsigned size);
void codec__zfree(void *opaque, void *ptr);

#endif
