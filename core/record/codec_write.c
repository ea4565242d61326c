// SPDX-License-Identifier: Apache-2.0
// Packs a stream as Java clients write it, piece by piece into the caller's sink.
#include "core/record/codec_internal.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

#define LZ4_STEP_BYTES (64U << 10) // fed to lz4 at a time: its block size
#define OUT_BYTES_MIN (64U << 10)  // room for packed bytes on their way to the sink
#define LZ4_HC_LEVEL_MAX 12        // configs go to 17, the library to here
#define LZ4_LEVEL_FAST 9           // Kafka's default level means the fast compressor

struct codec_writer {
    enum codec codec;          // which of the members below are in use
    struct codec_cache *cache; // where it goes at close; may be NULL
    struct codec_sink *sink;   // where packed bytes go
    int err;                   // sticky
    bool live;                 // z holds state of zlib
    z_stream z;                // gzip
    LZ4F_cctx *lz4;            // lz4
    ZSTD_CCtx *zstd;           // zstd
    uint8_t *block;            // snappy: bytes of the block being filled, SNAPPY_BLOCK_BYTES
    size_t block_len;          // snappy: filled
    uint8_t *out;              // packed bytes; owned
    size_t out_cap;            // room there
};

static int sink_write(struct codec_writer *w, const void *data, size_t len)
{
    if (!w->err && len > 0) {
        w->err = w->sink->write(w->sink, data, len);
    }
    return w->err;
}

static void out_room(struct codec_writer *w, size_t need)
{
    if (w->out_cap < need) {
        mem_free(w->out);
        w->out = mem_alloc(need);
        w->out_cap = need;
    }
}

static LZ4F_preferences_t lz4_preferences(int level)
{
    LZ4F_preferences_t p;
    memset(&p, 0, sizeof p);
    p.frameInfo.blockSizeID = LZ4F_max64KB;
    p.frameInfo.blockMode = LZ4F_blockIndependent;
    if (level != CODEC_LEVEL_DEFAULT && level != LZ4_LEVEL_FAST) {
        p.compressionLevel = level > LZ4_HC_LEVEL_MAX ? LZ4_HC_LEVEL_MAX : level < 3 ? 3 : level;
    }
    return p;
}

static void start_gzip(struct codec_writer *w, int level)
{
    int z_level = level == CODEC_LEVEL_DEFAULT || level < CODEC_GZIP_LEVEL_MIN || level > CODEC_GZIP_LEVEL_MAX
                      ? Z_DEFAULT_COMPRESSION
                      : level;
    if (w->live) {
        (void)deflateEnd(&w->z);
    }
    w->z = (z_stream){.zalloc = codec__zalloc, .zfree = codec__zfree};
    MUST(deflateInit2(&w->z, z_level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    w->live = true;
}

static void start_lz4(struct codec_writer *w, int level)
{
    if (!w->lz4) {
        MUST(!LZ4F_isError(LZ4F_createCompressionContext(&w->lz4, LZ4F_VERSION)));
    }
    LZ4F_preferences_t p = lz4_preferences(level);
    out_room(w, LZ4F_compressBound(LZ4_STEP_BYTES, &p) + LZ4F_HEADER_SIZE_MAX);
    size_t n = LZ4F_compressBegin(w->lz4, w->out, w->out_cap, &p);
    MUST(!LZ4F_isError(n));
    (void)sink_write(w, w->out, n);
}

static void start_snappy(struct codec_writer *w)
{
    if (!w->block) {
        w->block = mem_alloc(SNAPPY_BLOCK_BYTES);
    }
    w->block_len = 0;
    uint8_t header[XERIAL_HEADER_BYTES];
    memcpy(header, codec__xerial_magic, sizeof codec__xerial_magic);
    bytes_store_be32(header + 8, 1);
    bytes_store_be32(header + 12, 1);
    out_room(w, 4 + snappy_max_compressed_length(SNAPPY_BLOCK_BYTES));
    (void)sink_write(w, header, sizeof header);
}

static void start_zstd(struct codec_writer *w, int level)
{
    if (!w->zstd) {
        w->zstd = ZSTD_createCCtx();
        MUST(w->zstd != NULL);
    }
    (void)ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_and_parameters);
    int z_level = level == CODEC_LEVEL_DEFAULT ? ZSTD_CLEVEL_DEFAULT : level;
    MUST(!ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, z_level)));
}

struct codec_writer *codec_writer_open(enum codec c, int level, struct codec_sink *sink,
                                       struct codec_cache *cache)
{
    if ((unsigned)c >= CODEC_COUNT) {
        return NULL;
    }
    struct codec_writer *w;
    if (cache && cache->writers[c]) {
        w = cache->writers[c];
        cache->writers[c] = NULL;
    } else {
        w = mem_zalloc(sizeof *w);
        w->codec = c;
    }
    w->cache = cache;
    w->sink = sink;
    w->err = 0;
    if (c != CODEC_NONE) {
        out_room(w, OUT_BYTES_MIN);
    }
    switch (c) {
    case CODEC_GZIP:
        start_gzip(w, level);
        break;
    case CODEC_SNAPPY:
        start_snappy(w);
        break;
    case CODEC_LZ4:
        start_lz4(w, level);
        break;
    case CODEC_ZSTD:
        start_zstd(w, level);
        break;
    default:
        break;
    }
    return w;
}

static int write_gzip(struct codec_writer *w, const uint8_t *data, size_t len, int flush)
{
    w->z.next_in = (Bytef *)(uintptr_t)data;
    w->z.avail_in = (uInt)len;
    int rc;
    do {
        w->z.next_out = w->out;
        w->z.avail_out = (uInt)w->out_cap;
        rc = deflate(&w->z, flush);
        MUST(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
        if (sink_write(w, w->out, w->out_cap - w->z.avail_out)) {
            return w->err;
        }
    } while (w->z.avail_out == 0 || (flush == Z_FINISH && rc != Z_STREAM_END));
    return 0;
}

static int write_zstd(struct codec_writer *w, const uint8_t *data, size_t len, ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = {data, len, 0};
    for (;;) {
        ZSTD_outBuffer out = {w->out, w->out_cap, 0};
        size_t left = ZSTD_compressStream2(w->zstd, &out, &in, end);
        MUST(!ZSTD_isError(left));
        if (sink_write(w, w->out, out.pos)) {
            return w->err;
        }
        if (end == ZSTD_e_end ? left == 0 : in.pos == in.size) {
            return 0;
        }
    }
}

static int flush_snappy(struct codec_writer *w)
{
    if (w->block_len == 0) {
        return w->err;
    }
    size_t n = w->out_cap - 4;
    MUST(snappy_compress((const char *)w->block, w->block_len, (char *)w->out + 4, &n) == SNAPPY_OK);
    bytes_store_be32(w->out, (uint32_t)n);
    w->block_len = 0;
    return sink_write(w, w->out, n + 4);
}

int codec_writer_write(struct codec_writer *w, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0 && !w->err) {
        size_t step = len;
        switch (w->codec) {
        case CODEC_GZIP:
            step = step < (1U << 30) ? step : (1U << 30);
            (void)write_gzip(w, p, step, Z_NO_FLUSH);
            break;
        case CODEC_SNAPPY: {
            size_t room = SNAPPY_BLOCK_BYTES - w->block_len;
            step = step < room ? step : room;
            memcpy(w->block + w->block_len, p, step);
            w->block_len += step;
            if (w->block_len == SNAPPY_BLOCK_BYTES) {
                (void)flush_snappy(w);
            }
            break;
        }
        case CODEC_LZ4: {
            step = step < LZ4_STEP_BYTES ? step : LZ4_STEP_BYTES;
            size_t n = LZ4F_compressUpdate(w->lz4, w->out, w->out_cap, p, step, NULL);
            MUST(!LZ4F_isError(n));
            (void)sink_write(w, w->out, n);
            break;
        }
        case CODEC_ZSTD:
            (void)write_zstd(w, p, step, ZSTD_e_continue);
            break;
        default:
            (void)sink_write(w, p, step);
            break;
        }
        p += step;
        len -= step;
    }
    return w->err;
}

int codec_writer_finish(struct codec_writer *w)
{
    if (w->err) {
        return w->err;
    }
    switch (w->codec) {
    case CODEC_GZIP:
        return write_gzip(w, (const uint8_t *)"", 0, Z_FINISH);
    case CODEC_SNAPPY:
        return flush_snappy(w);
    case CODEC_LZ4: {
        size_t n = LZ4F_compressEnd(w->lz4, w->out, w->out_cap, NULL);
        MUST(!LZ4F_isError(n));
        return sink_write(w, w->out, n);
    }
    case CODEC_ZSTD:
        return write_zstd(w, (const uint8_t *)"", 0, ZSTD_e_end);
    default:
        return 0;
    }
}

void codec__writer_free(struct codec_writer *w)
{
    if (!w) {
        return;
    }
    if (w->live) {
        (void)deflateEnd(&w->z);
    }
    if (w->lz4) {
        (void)LZ4F_freeCompressionContext(w->lz4);
    }
    if (w->zstd) {
        (void)ZSTD_freeCCtx(w->zstd);
    }
    mem_free(w->block);
    mem_free(w->out);
    mem_free(w);
}

void codec_writer_close(struct codec_writer *w)
{
    if (!w) {
        return;
    }
    if (w->zstd && ZSTD_sizeof_CCtx(w->zstd) > CODEC_KEPT_BYTES_MAX) {
        (void)ZSTD_freeCCtx(w->zstd);
        w->zstd = NULL;
    }
    if (w->cache && !w->cache->writers[w->codec]) {
        w->sink = NULL;
        w->cache->writers[w->codec] = w;
    } else {
        codec__writer_free(w);
    }
}
