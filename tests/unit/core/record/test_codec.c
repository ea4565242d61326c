// SPDX-License-Identifier: Apache-2.0
// The codecs: what is packed unpacks to the same, damage is an error, and a bomb never takes memory.
#include "tests/unit/core/record/fixture.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <stdio.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

struct buffer_sink {
    struct codec_sink sink;
    uint8_t *data;
    size_t len, cap;
};

static int buffer_write(struct codec_sink *sink, const uint8_t *data, size_t len)
{
    struct buffer_sink *s = (struct buffer_sink *)sink;
    if (s->len + len > s->cap) {
        s->cap = (s->len + len) * 2;
        s->data = realloc(s->data, s->cap);
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return 0;
}

static void pack(struct buffer_sink *s, enum codec c, int level, const uint8_t *data, size_t len, size_t step,
                 struct codec_cache *cache)
{
    *s = (struct buffer_sink){.sink = {buffer_write}};
    struct codec_writer *w = codec_writer_open(c, level, &s->sink, cache);
    for (size_t at = 0; at < len; at += step) {
        assert_int_equal(codec_writer_write(w, data + at, len - at < step ? len - at : step), 0);
    }
    assert_int_equal(codec_writer_finish(w), 0);
    codec_writer_close(w);
}

// Unpacks all of it in pieces of `step`; the answer is the reader's.
static int unpack(enum codec c, struct slice packed, uint8_t *out, size_t cap, size_t step, size_t *len,
                  struct codec_cache *cache)
{
    struct codec_reader *r = codec_reader_open(c, packed, cache);
    int rc = 0;
    size_t got;
    *len = 0;
    do {
        size_t room = cap - *len < step ? cap - *len : step;
        if (room == 0) {
            break;
        }
        rc = codec_reader_read(r, out + *len, room, &got);
        *len += got;
    } while (rc == 0 && got > 0);
    codec_reader_close(r);
    return rc;
}

static void packing_and_unpacking_gives_the_same_bytes(void **state)
{
    uint64_t seed = 7;
    static uint8_t data[300000], back[300001];
    struct codec_cache *cache = codec_cache_create();
    size_t sizes[] = {0, 1, 100, 4096, 32768, 32769, 65536, 200000, 300000};
    for (int c = 0; c < CODEC_COUNT; c++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            fill_text(data, sizes[i], &seed);
            struct buffer_sink s;
            pack(&s, (enum codec)c, CODEC_LEVEL_DEFAULT, data, sizes[i], 1000 + i * 777,
                 i & 1 ? cache : NULL);
            size_t len;
            assert_int_equal(
                unpack((enum codec)c, slice_of(s.data, s.len), back, sizeof back, 999, &len, cache), 0);
            assert_int_equal(len, sizes[i]);
            assert_memory_equal(back, data, len);
            free(s.data);
        }
    }
    codec_cache_destroy(cache);
}

static void every_level_of_the_configs_works(void **state)
{
    uint64_t seed = 8;
    static uint8_t data[70000], back[70001];
    fill_text(data, sizeof data, &seed);
    struct {
        enum codec c;
        int from, to, step;
    } ranges[] = {{CODEC_GZIP, -1, 9, 1},
                  {CODEC_LZ4, 1, 17, 1},
                  {CODEC_ZSTD, -3, 19, 1},
                  {CODEC_ZSTD, -131072, 0, 60000}};
    struct codec_cache *cache = codec_cache_create();
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (int level = ranges[i].from; level <= ranges[i].to; level += ranges[i].step) {
            struct buffer_sink s;
            size_t len;
            pack(&s, ranges[i].c, level, data, sizeof data, 30000, cache);
            assert_int_equal(
                unpack(ranges[i].c, slice_of(s.data, s.len), back, sizeof back, 5000, &len, cache), 0);
            assert_int_equal(len, sizeof data);
            assert_memory_equal(back, data, len);
            free(s.data);
        }
    }
    codec_cache_destroy(cache);
}

static void a_stream_cut_at_any_length_is_an_error_or_shorter(void **state)
{
    uint64_t seed = 9;
    uint8_t data[600], back[700];
    fill_text(data, sizeof data, &seed);
    struct codec_cache *cache = codec_cache_create();
    for (int c = CODEC_GZIP; c < CODEC_COUNT; c++) {
        struct buffer_sink s;
        pack(&s, (enum codec)c, CODEC_LEVEL_DEFAULT, data, sizeof data, 100, NULL);
        for (size_t cut = 0; cut < s.len; cut++) {
            uint8_t *copy = malloc(cut + 1); // exact size, so that a read past the end is seen
            memcpy(copy, s.data, cut);
            size_t len;
            int rc = unpack((enum codec)c, slice_of(copy, cut), back, sizeof back, 64, &len, cache);
            assert_true(rc == ERR_CORRUPT || len < sizeof data);
            free(copy);
        }
        free(s.data);
    }
    codec_cache_destroy(cache);
}

static void flipped_bits_never_do_harm(void **state)
{
    uint64_t seed = 10;
    uint8_t data[2000];
    static uint8_t back[100000];
    fill_text(data, sizeof data, &seed);
    struct codec_cache *cache = codec_cache_create();
    for (int c = CODEC_GZIP; c < CODEC_COUNT; c++) {
        struct buffer_sink s;
        pack(&s, (enum codec)c, CODEC_LEVEL_DEFAULT, data, sizeof data, 100, NULL);
        for (size_t i = 0; i < s.len * 2; i++) {
            uint8_t *copy = malloc(s.len);
            memcpy(copy, s.data, s.len);
            copy[i % s.len] ^= (uint8_t)(1 << (next_random(&seed) & 7));
            size_t len;
            (void)unpack((enum codec)c, slice_of(copy, s.len), back, sizeof back, 1000, &len, cache);
            free(copy);
        }
        // The cached state is as good as new after all that.
        size_t len;
        assert_int_equal(unpack((enum codec)c, slice_of(s.data, s.len), back, sizeof back, 77, &len, cache),
                         0);
        assert_int_equal(len, sizeof data);
        assert_memory_equal(back, data, len);
        free(s.data);
    }
    codec_cache_destroy(cache);
}

static void raw_snappy_of_other_clients_is_read(void **state)
{
    uint64_t seed = 11;
    static uint8_t data[100000], back[100001];
    fill_text(data, sizeof data, &seed);
    size_t packed_len = snappy_max_compressed_length(sizeof data), len;
    char *packed = malloc(packed_len);
    assert_int_equal(snappy_compress((char *)data, sizeof data, packed, &packed_len), SNAPPY_OK);
    assert_int_equal(unpack(CODEC_SNAPPY, slice_of(packed, packed_len), back, sizeof back, 4096, &len, NULL),
                     0);
    assert_int_equal(len, sizeof data);
    assert_memory_equal(back, data, len);
    free(packed);
}

static void a_raw_snappy_block_that_claims_gigabytes_is_refused_before_memory_is_taken(void **state)
{
    uint8_t block[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'x'}; // length 2^32 - 1
    uint8_t back[16];
    size_t len;
    assert_int_equal(unpack(CODEC_SNAPPY, slice_of(block, sizeof block), back, sizeof back, 16, &len, NULL),
                     ERR_CORRUPT);
}

static void lz4_frames_with_linked_blocks_and_checksums_are_read(void **state)
{
    uint64_t seed = 12;
    static uint8_t data[400000], back[400001];
    fill_text(data, sizeof data, &seed);
    for (int kind = 0; kind < 32; kind++) {
        LZ4F_preferences_t p;
        memset(&p, 0, sizeof p);
        p.frameInfo.blockMode = kind & 1 ? LZ4F_blockLinked : LZ4F_blockIndependent;
        p.frameInfo.contentSize = kind & 2 ? sizeof data : 0;
        p.frameInfo.contentChecksumFlag = kind & 4 ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
        p.frameInfo.blockChecksumFlag = kind & 8 ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
        p.frameInfo.blockSizeID = kind & 16 ? LZ4F_max4MB : LZ4F_max64KB;
        size_t cap = LZ4F_compressFrameBound(sizeof data, &p);
        uint8_t *packed = malloc(cap);
        size_t n = LZ4F_compressFrame(packed, cap, data, sizeof data, &p), len;
        assert_int_equal(unpack(CODEC_LZ4, slice_of(packed, n), back, sizeof back, 10007, &len, NULL), 0);
        assert_int_equal(len, sizeof data);
        assert_memory_equal(back, data, len);
        free(packed);
    }
}

static void joined_zstd_frames_and_gzip_members_are_one_stream(void **state)
{
    uint8_t data[] = "one and two", back[64];
    for (int c = CODEC_GZIP; c <= CODEC_ZSTD; c += CODEC_ZSTD - CODEC_GZIP) {
        struct buffer_sink a, b;
        pack(&a, (enum codec)c, CODEC_LEVEL_DEFAULT, data, 4, 4, NULL);
        pack(&b, (enum codec)c, CODEC_LEVEL_DEFAULT, data + 4, sizeof data - 4, 4, NULL);
        buffer_write(&a.sink, b.data, b.len);
        size_t len;
        assert_int_equal(unpack((enum codec)c, slice_of(a.data, a.len), back, sizeof back, 3, &len, NULL), 0);
        assert_int_equal(len, sizeof data);
        assert_memory_equal(back, data, len);
        free(a.data);
        free(b.data);
    }
}

static void names_of_codecs(void **state)
{
    enum codec c;
    assert_true(codec_from_name(SLICE_LIT("uncompressed"), &c) && c == CODEC_NONE);
    assert_true(codec_from_name(SLICE_LIT("zstd"), &c) && c == CODEC_ZSTD);
    assert_false(codec_from_name(SLICE_LIT("producer"), &c));
    assert_string_equal(codec_name(CODEC_SNAPPY), "snappy");
    assert_string_equal(codec_name((enum codec)6), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_and_unpacking_gives_the_same_bytes),
        cmocka_unit_test(every_level_of_the_configs_works),
        cmocka_unit_test(a_stream_cut_at_any_length_is_an_error_or_shorter),
        cmocka_unit_test(flipped_bits_never_do_harm),
        cmocka_unit_test(raw_snappy_of_other_clients_is_read),
        cmocka_unit_test(a_raw_snappy_block_that_claims_gigabytes_is_refused_before_memory_is_taken),
        cmocka_unit_test(lz4_frames_with_linked_blocks_and_checksums_are_read),
        cmocka_unit_test(joined_zstd_frames_and_gzip_members_are_one_stream),
        cmocka_unit_test(names_of_codecs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
