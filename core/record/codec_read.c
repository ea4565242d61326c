// SPDX-License-Identifier: Apache-2.0
// Unpacks a compressed stream piece by piece: memory is bounded by the codec's window, whatever the stream
// claims.
#include "core/record/codec_internal.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

struct codec_reader {
    enum codec codec;                       // which of the members below are in use
    struct codec_cache *cache;              // where it goes at close; may be NULL
    struct slice in;                        // the packed bytes
    size_t pos;                             // consumed of `in`
    bool done;                              // the stream has ended
    int err;                                // sticky
    bool live;                              // z holds state of zlib
    z_stream z;                             // gzip
    LZ4F_dctx *lz4;                         // lz4
    ZSTD_DCtx *zstd;                        // zstd
    bool xerial;                            // snappy: Java's framing, else one raw block
    uint8_t *block;                         // snappy: the unpacked block; owned
    size_t block_len, block_pos, block_cap; // snappy: its bytes, those given out, room
};

static void reader_start(struct codec_reader *r)
{
    switch (r->codec) {
    case CODEC_GZIP:
        if (r->live) {
            MUST(inflateReset(&r->z) == Z_OK);
        } else {
            r->z = (z_stream){.zalloc = codec__zalloc, .zfree = codec__zfree};
            MUST(inflateInit2(&r->z, 15 + 16) == Z_OK);
            r->live = true;
        }
        break;
    case CODEC_SNAPPY:
        r->xerial = r->in.len >= XERIAL_HEADER_BYTES &&
                    memcmp(r->in.data, codec__xerial_magic, sizeof codec__xerial_magic) == 0;
        r->pos = r->xerial ? XERIAL_HEADER_BYTES : 0;
        r->block_len = r->block_pos = 0;
        break;
    case CODEC_LZ4:
        if (r->lz4) {
            LZ4F_resetDecompressionContext(r->lz4);
        } else {
            MUST(!LZ4F_isError(LZ4F_createDecompressionContext(&r->lz4, LZ4F_VERSION)));
        }
        break;
    case CODEC_ZSTD:
        if (!r->zstd) {
            r->zstd = ZSTD_createDCtx();
            MUST(r->zstd != NULL);
        }
        (void)ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
        break;
    default:
        break;
    }
}

struct codec_reader *codec_reader_open(enum codec c, struct slice packed, struct codec_cache *cache)
{
    if ((unsigned)c >= CODEC_COUNT) {
        return NULL;
    }
    struct codec_reader *r;
    if (cache && cache->readers[c]) {
        r = cache->readers[c];
        cache->readers[c] = NULL;
    } else {
        r = mem_zalloc(sizeof *r);
        r->codec = c;
    }
    r->cache = cache;
    r->in = packed;
    r->pos = 0;
    r->done = false;
    r->err = 0;
    reader_start(r);
    return r;
}

static int read_gzip(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got)
{
    r->z.next_out = buf;
    r->z.avail_out = (uInt)cap;
    while (r->z.avail_out > 0 && !r->done) {
        r->z.next_in = (Bytef *)(uintptr_t)(r->in.data + r->pos);
        size_t left = r->in.len - r->pos;
        r->z.avail_in = (uInt)(left < UINT32_MAX ? left : UINT32_MAX);
        size_t before = r->z.avail_in, room = r->z.avail_out;
        int rc = inflate(&r->z, Z_NO_FLUSH);
        r->pos += before - r->z.avail_in;
        if (rc == Z_STREAM_END) {
            // Another member may follow; what is no member is ignored, as Java does.
            left = r->in.len - r->pos;
            if (left > 2 && r->in.data[r->pos] == 0x1f && r->in.data[r->pos + 1] == 0x8b) {
                uint8_t *out = r->z.next_out;
                uInt out_left = r->z.avail_out;
                MUST(inflateReset(&r->z) == Z_OK);
                r->z.next_out = out;
                r->z.avail_out = out_left;
            } else {
                r->done = true;
            }
        } else if ((rc != Z_OK && rc != Z_BUF_ERROR) || (before == r->z.avail_in && room == r->z.avail_out)) {
            return ERR_CORRUPT; // damage, or cut off: neither input was taken nor output made
        }
    }
    *got = cap - r->z.avail_out;
    return 0;
}

static int read_lz4(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got)
{
    while (*got < cap && !r->done) {
        size_t out = cap - *got, in = r->in.len - r->pos;
        size_t rc = LZ4F_decompress(r->lz4, buf + *got, &out, r->in.data + r->pos, &in, NULL);
        if (LZ4F_isError(rc)) {
            return ERR_CORRUPT;
        }
        r->pos += in;
        *got += out;
        if (rc == 0) {
            r->done = true; // end mark of the frame
        } else if (in == 0 && out == 0) {
            return ERR_CORRUPT; // cut off
        }
    }
    return 0;
}

static int read_zstd(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got)
{
    ZSTD_outBuffer out = {buf, cap, 0};
    while (out.pos < cap && !r->done) {
        ZSTD_inBuffer in = {r->in.data, r->in.len, r->pos};
        size_t before = out.pos;
        size_t rc = ZSTD_decompressStream(r->zstd, &out, &in);
        if (ZSTD_isError(rc)) {
            return ERR_CORRUPT;
        }
        bool moved = in.pos != r->pos || out.pos != before;
        r->pos = in.pos;
        if (rc == 0 && r->pos == r->in.len) {
            r->done = true; // end of the last frame
        } else if (!moved) {
            return ERR_CORRUPT; // cut off
        }
    }
    *got = out.pos;
    return 0;
}

// Unpacks the next snappy block into r->block.
static int snappy_next_block(struct codec_reader *r)
{
    struct slice packed;
    if (r->xerial) {
        // Streams that were joined repeat the header.
        while (r->in.len - r->pos >= XERIAL_HEADER_BYTES &&
               memcmp(r->in.data + r->pos, codec__xerial_magic, sizeof codec__xerial_magic) == 0) {
            r->pos += XERIAL_HEADER_BYTES;
        }
        size_t left = r->in.len - r->pos;
        if (left == 0) {
            r->done = true;
            return 0;
        }
        if (left < 4) {
            return ERR_CORRUPT;
        }
        uint32_t len = bytes_load_be32(r->in.data + r->pos);
        if (len > left - 4) {
            return ERR_CORRUPT;
        }
        packed = slice_of(r->in.data + r->pos + 4, len);
        r->pos += 4 + len;
    } else {
        if (r->pos == r->in.len) {
            r->done = true;
            return 0;
        }
        packed = slice_of(r->in.data + r->pos, r->in.len - r->pos);
        r->pos = r->in.len;
    }
    size_t len;
    if (snappy_uncompressed_length((const char *)packed.data, packed.len, &len) != SNAPPY_OK) {
        return ERR_CORRUPT;
    }
    if (len > packed.len * SNAPPY_RATIO_MAX) {
        return ERR_CORRUPT; // no stream of this length gives so much: do not reserve memory for it
    }
    if (len > SNAPPY_BLOCK_BYTES_MAX) {
        return ERR_TOO_LARGE;
    }
    if (len > r->block_cap) {
        mem_free(r->block);
        r->block_cap = len > SNAPPY_BLOCK_BYTES ? len : SNAPPY_BLOCK_BYTES;
        r->block = mem_alloc(r->block_cap);
    }
    r->block_pos = 0;
    r->block_len = len;
    if (snappy_uncompress((const char *)packed.data, packed.len, (char *)r->block, &r->block_len) !=
        SNAPPY_OK) {
        r->block_len = 0;
        return ERR_CORRUPT;
    }
    return 0;
}

static int read_snappy(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got)
{
    while (*got < cap && !r->done) {
        if (r->block_pos == r->block_len) {
            int rc = snappy_next_block(r);
            if (rc) {
                return rc;
            }
            continue;
        }
        size_t n = r->block_len - r->block_pos;
        n = n < cap - *got ? n : cap - *got;
        memcpy(buf + *got, r->block + r->block_pos, n);
        r->block_pos += n;
        *got += n;
    }
    return 0;
}

int codec_reader_read(struct codec_reader *r, uint8_t *buf, size_t cap, size_t *got)
{
    *got = 0;
    if (r->err || r->done || cap == 0) {
        return r->err;
    }
    if (cap > (1U << 30)) {
        cap = 1U << 30; // zlib counts in 32 bits
    }
    switch (r->codec) {
    case CODEC_GZIP:
        r->err = read_gzip(r, buf, cap, got);
        break;
    case CODEC_SNAPPY:
        r->err = read_snappy(r, buf, cap, got);
        break;
    case CODEC_LZ4:
        r->err = read_lz4(r, buf, cap, got);
        break;
    case CODEC_ZSTD:
        r->err = read_zstd(r, buf, cap, got);
        break;
    default: {
        size_t left = r->in.len - r->pos;
        *got = left < cap ? left : cap;
        if (*got > 0) {
            memcpy(buf, r->in.data + r->pos, *got);
        }
        r->pos += *got;
        r->done = r->pos == r->in.len;
        break;
    }
    }
    return r->err;
}

void codec__reader_free(struct codec_reader *r)
{
    if (!r) {
        return;
    }
    if (r->live) {
        (void)inflateEnd(&r->z);
    }
    if (r->lz4) {
        (void)LZ4F_freeDecompressionContext(r->lz4);
    }
    if (r->zstd) {
        (void)ZSTD_freeDCtx(r->zstd);
    }
    mem_free(r->block);
    mem_free(r);
}

// Frees what has grown past what is worth keeping.
static void reader_shrink(struct codec_reader *r)
{
    if (r->zstd && ZSTD_sizeof_DCtx(r->zstd) > CODEC_KEPT_BYTES_MAX) {
        (void)ZSTD_freeDCtx(r->zstd);
        r->zstd = NULL;
    }
    if (r->lz4 && r->in.len > 5 && ((r->in.data[5] >> 4) & 7) > 5) { // blocks of 1 MiB and more
        (void)LZ4F_freeDecompressionContext(r->lz4);
        r->lz4 = NULL;
    }
    if (r->block_cap > CODEC_WINDOW_BYTES) {
        mem_free(r->block);
        r->block = NULL;
        r->block_cap = r->block_len = r->block_pos = 0;
    }
}

void codec_reader_close(struct codec_reader *r)
{
    if (!r) {
        return;
    }
    if (r->cache && !r->cache->readers[r->codec]) {
        reader_shrink(r);
        r->in = SLICE_NULL;
        r->cache->readers[r->codec] = r;
    } else {
        codec__reader_free(r);
    }
}
