// SPDX-License-Identifier: Apache-2.0
// The four codecs of record batches, as streams: unpacking in bounded memory, packing at a level.
//
// What is on the wire: gzip members (RFC 1952), snappy in Java's block framing ("xerial") or one raw snappy
// block as other clients send it, one LZ4 frame, zstd frames. Readers accept every legal form (LZ4 blocks
// linked or independent, any block size, with or without content size and checksums; zstd without content
// size; several gzip members or zstd frames in a row); writers write what Java clients write.
#ifndef KRAFT_RECORD_CODEC_H
#define KRAFT_RECORD_CODEC_H

#include "core/base/err.h"
#include "core/base/slice.h"

enum codec {
    CODEC_NONE = 0,
    CODEC_GZIP = 1,
    CODEC_SNAPPY = 2,
    CODEC_LZ4 = 3,
    CODEC_ZSTD = 4,
    CODEC_COUNT = 5, // first number that is no codec
};

// Levels: what "default" means, and the range that configs accept.
#define CODEC_LEVEL_DEFAULT INT32_MIN // the codec's own default
#define CODEC_GZIP_LEVEL_MIN 1
#define CODEC_GZIP_LEVEL_MAX 9
#define CODEC_LZ4_LEVEL_MIN 1
#define CODEC_LZ4_LEVEL_MAX 17
#define CODEC_ZSTD_LEVEL_MIN (-131072)
#define CODEC_ZSTD_LEVEL_MAX 22

// "none", "gzip", "snappy", "lz4", "zstd"; "unknown" for others.
const char *codec_name(enum codec c);
// Also takes "uncompressed" for none. False where the name is no codec.
bool codec_from_name(struct slice name, enum codec *out);

// Keeps the state of readers and writers between uses, so that a hot path allocates nothing in steady state.
// Belongs to one thread at a time. State that has grown large is not kept.
struct codec_cache;
struct codec_cache *codec_cache_create(void);
void codec_cache_destroy(struct codec_cache *cache); // NULL allowed; every reader and writer must be closed

// ---- unpacking

struct codec_reader;
// Starts on `packed`, which stays in memory until close. Never fails for CODEC_NONE..CODEC_ZSTD; others give
// NULL. `cache` may be NULL.
struct codec_reader *codec_reader_open(enum codec c, struct slice packed, struct codec_cache *cache);
// Gives up to `cap` unpacked bytes; *got = 0 only at the end of the stream. ERR_CORRUPT for damage and for a
// stream that is cut off. Memory is bounded by the codec's window whatever the stream says.
int codec_reader_read(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got);
void codec_reader_close(struct codec_reader *r); // NULL allowed

// ---- packing

// Where a writer puts its bytes. A non-zero answer ends the writing and is passed on.
struct codec_sink {
    int (*write)(struct codec_sink *s, const uint8_t *data, size_t len);
};
struct codec_writer;
struct codec_writer *codec_writer_open(enum codec c, int level, struct codec_sink *sink,
                                       struct codec_cache *cache);
int codec_writer_write(struct codec_writer *w, const void *data, size_t len); // 0 or the sink's error
int codec_writer_finish(struct codec_writer *w); // writes the end; then only close
void codec_writer_close(struct codec_writer *w); // NULL allowed; without finish the output is cut off

#endif
