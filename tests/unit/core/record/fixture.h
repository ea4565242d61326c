// SPDX-License-Identifier: Apache-2.0
// What the tests of record batches share: a seeded generator, and batches made from it.
#ifndef KRAFT_TEST_RECORD_FIXTURE_H
#define KRAFT_TEST_RECORD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/record/builder.h"
#include "core/record/validate.h"

static inline uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

// Fills `buf` with text that compresses somewhat.
static inline void fill_text(uint8_t *buf, size_t len, uint64_t *seed)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)("abcdefgh ijklmno"[next_random(seed) & 15]);
    }
}

#define TEST_NOW 1700000000000LL // wall clock of the tests

// A batch of `count` records at base offset 0, values of up to `value_max` bytes; free() it.
static inline uint8_t *make_batch(enum codec codec, int32_t count, size_t value_max, uint64_t seed,
                                  size_t *size)
{
    struct builder_options o = BUILDER_OPTIONS_DEFAULT;
    o.codec = codec;
    struct builder b;
    builder_init(&b, &o);
    uint8_t *value = malloc(value_max + 1);
    uint8_t key[16];
    for (int32_t i = 0; i < count; i++) {
        size_t len = next_random(&seed) % (value_max + 1);
        fill_text(value, len, &seed);
        fill_text(key, sizeof key, &seed);
        struct record_header h[2] = {{SLICE_LIT("h1"), SLICE_LIT("v")}, {SLICE_LIT(""), SLICE_NULL}};
        builder_append(&b, TEST_NOW + i % 7, i % 5 == 4 ? SLICE_NULL : slice_of(key, (size_t)i % 17),
                       i % 11 == 10 ? SLICE_NULL : slice_of(value, len), h, i % 3);
    }
    struct slice out;
    assert_int_equal(builder_finish(&b, &out, NULL), 0);
    uint8_t *copy = malloc(out.len);
    memcpy(copy, out.data, out.len);
    *size = out.len;
    builder_fini(&b);
    free(value);
    return copy;
}

static inline struct validate_rules usual_rules(void)
{
    return (struct validate_rules){.producer_codec = true,
                                   .level = CODEC_LEVEL_DEFAULT,
                                   .timestamp = TIMESTAMP_CREATE,
                                   .before_ms_max = INT64_MAX,
                                   .after_ms_max = 3600000,
                                   .batch_bytes_max = 1048588,
                                   .zstd_allowed = true,
                                   .now = TEST_NOW};
}

#endif
