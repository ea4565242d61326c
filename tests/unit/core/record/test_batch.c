// SPDX-License-Identifier: Apache-2.0
// Batches and records: built, walked, cut and damaged.
#include "tests/unit/core/record/fixture.h"

#include "core/record/crc32c.h"

// Walks all records; gives the last answer of the iterator and counts.
static int walk(const uint8_t *batch, struct codec_cache *cache, int32_t *count)
{
    struct record_iter it;
    struct record r;
    int rc;
    *count = 0;
    record_iter_init(&it, batch, cache, NULL);
    while ((rc = record_iter_next(&it, &r, NULL)) == 0) {
        struct slice headers = r.headers;
        struct record_header h;
        int32_t seen = 0;
        while (record_header_next(&headers, &h)) {
            seen++;
        }
        assert_int_equal(seen, r.headers_count);
        ++*count;
    }
    record_iter_fini(&it);
    return rc;
}

static void what_is_built_is_read_back_with_every_codec(void **state)
{
    struct codec_cache *cache = codec_cache_create();
    for (int c = 0; c < CODEC_COUNT; c++) {
        for (uint64_t seed = 1; seed < 40; seed++) {
            size_t size, parsed;
            int32_t count, want = (int32_t)(seed * 7 % 200) + 1;
            uint8_t *b =
                make_batch((enum codec)c, want, seed % 10 == 9 ? 200000 / (size_t)want : 50, seed, &size);
            assert_int_equal(batch_parse(slice_of(b, size), &parsed, NULL), 0);
            assert_int_equal(parsed, size);
            assert_int_equal(batch_check_crc(b, NULL), 0);
            assert_int_equal(batch_count(b), want);
            assert_int_equal(batch_last_offset_delta(b), want - 1);
            assert_int_equal(walk(b, cache, &count), ERR_NOTFOUND);
            assert_int_equal(count, want);
            free(b);
        }
    }
    codec_cache_destroy(cache);
}

static void a_record_larger_than_the_window_is_given_whole(void **state)
{
    for (int c = 0; c < CODEC_COUNT; c++) {
        struct builder_options o = BUILDER_OPTIONS_DEFAULT;
        o.codec = (enum codec)c;
        struct builder b;
        builder_init(&b, &o);
        uint8_t *value = malloc(700000);
        uint64_t seed = 5;
        fill_text(value, 700000, &seed);
        builder_append(&b, 1, SLICE_LIT("a"), SLICE_LIT("small"), NULL, 0);
        builder_append(&b, 2, SLICE_LIT("b"), slice_of(value, 700000), NULL, 0);
        builder_append(&b, 3, SLICE_LIT("c"), SLICE_NULL, NULL, 0);
        struct slice out;
        assert_int_equal(builder_finish(&b, &out, NULL), 0);
        struct record_iter it;
        struct record r;
        record_iter_init(&it, out.data, NULL, NULL);
        assert_int_equal(record_iter_next(&it, &r, NULL), 0);
        assert_int_equal(record_iter_next(&it, &r, NULL), 0);
        assert_int_equal(r.value.len, 700000);
        assert_memory_equal(r.value.data, value, 700000);
        assert_int_equal(record_iter_next(&it, &r, NULL), 0);
        assert_true(slice_is_null(r.value));
        assert_int_equal(r.timestamp, 3);
        assert_int_equal(record_iter_next(&it, &r, NULL), ERR_NOTFOUND);
        record_iter_fini(&it);
        struct record_limits limits = {.record_bytes_max = 1000};
        record_iter_init(&it, out.data, NULL, &limits);
        assert_int_equal(record_iter_next(&it, &r, NULL), 0);
        assert_int_equal(record_iter_next(&it, &r, NULL), ERR_TOO_LARGE);
        record_iter_fini(&it);
        builder_fini(&b);
        free(value);
    }
}

static void a_batch_cut_at_any_length_asks_for_more(void **state)
{
    size_t size, parsed;
    uint8_t *b = make_batch(CODEC_NONE, 3, 20, 1, &size);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, b, cut);
        assert_int_equal(batch_parse(slice_of(copy, cut), &parsed, NULL), ERR_AGAIN);
        assert_int_equal(parsed, cut < BATCH_OVERHEAD_BYTES ? 0 : size);
        free(copy);
    }
    free(b);
}

static void headers_that_cannot_be_are_told_apart(void **state)
{
    size_t size, parsed;
    uint8_t *b = make_batch(CODEC_NONE, 3, 20, 1, &size);
    batch_set_magic(b, 1);
    assert_int_equal(batch_parse(slice_of(b, size), &parsed, NULL), ERR_UNSUPPORTED);
    batch_set_magic(b, 2);
    batch_set_length(b, 48);
    assert_int_equal(batch_parse(slice_of(b, size), &parsed, NULL), ERR_CORRUPT);
    batch_set_length(b, -1);
    assert_int_equal(batch_parse(slice_of(b, size), &parsed, NULL), ERR_CORRUPT);
    batch_set_length(b, (int32_t)size - 12);
    batch_set_count(b, -1);
    assert_int_equal(batch_parse(slice_of(b, size), &parsed, NULL), ERR_CORRUPT);
    free(b);
}

static void damaged_records_end_in_an_error_and_never_in_harm(void **state)
{
    struct codec_cache *cache = codec_cache_create();
    for (int c = 0; c < CODEC_COUNT; c++) {
        size_t size;
        uint8_t *b = make_batch((enum codec)c, 20, 40, 77, &size);
        uint64_t seed = 100 + (uint64_t)c;
        for (int i = 0; i < 4000; i++) {
            uint8_t *copy = malloc(size);
            memcpy(copy, b, size);
            for (uint64_t n = next_random(&seed) % 3 + 1; n > 0; n--) {
                size_t at = BATCH_HEADER_BYTES + next_random(&seed) % (size - BATCH_HEADER_BYTES);
                copy[at] = (uint8_t)next_random(&seed);
            }
            int32_t count;
            (void)walk(copy, cache, &count);
            free(copy);
        }
        for (size_t cut = BATCH_HEADER_BYTES; cut < size; cut++) { // a section that ends early
            uint8_t *copy = malloc(cut);
            memcpy(copy, b, cut);
            batch_set_length(copy, (int32_t)cut - BATCH_OVERHEAD_BYTES);
            int32_t count;
            assert_int_equal(walk(copy, cache, &count), ERR_CORRUPT);
            free(copy);
        }
        free(b);
    }
    codec_cache_destroy(cache);
}

static void a_count_above_or_below_the_records_is_damage(void **state)
{
    for (int c = 0; c < CODEC_COUNT; c++) {
        size_t size;
        int32_t count;
        uint8_t *b = make_batch((enum codec)c, 20, 40, 77, &size);
        batch_set_count(b, 21);
        assert_int_equal(walk(b, NULL, &count), ERR_CORRUPT);
        batch_set_count(b, 19);
        assert_int_equal(walk(b, NULL, &count), ERR_CORRUPT);
        batch_set_count(b, INT32_MAX);
        assert_int_equal(walk(b, NULL, &count), ERR_CORRUPT);
        free(b);
    }
}

static void consecutive_batches_are_walked_up_to_a_partial_tail(void **state)
{
    size_t a_size, b_size, whole;
    uint8_t *a = make_batch(CODEC_NONE, 3, 20, 1, &a_size), *b = make_batch(CODEC_ZSTD, 5, 20, 2, &b_size);
    batch_set_base_offset(b, 3);
    uint8_t *both = malloc(a_size + b_size);
    memcpy(both, a, a_size);
    memcpy(both + a_size, b, b_size);
    struct batch_iter it = batch_iter_of(slice_of(both, a_size + b_size - 1));
    assert_true(batch_iter_next(&it));
    assert_int_equal(it.size, a_size);
    assert_false(batch_iter_next(&it));
    assert_int_equal(it.err, ERR_AGAIN);
    assert_int_equal(batch_check_run(slice_of(both, a_size + b_size), 0, &whole, NULL), 0);
    assert_int_equal(whole, a_size + b_size);
    assert_int_equal(batch_check_run(slice_of(both, a_size + b_size), 1, &whole, NULL), ERR_CORRUPT);
    both[a_size + BATCH_HEADER_BYTES] ^= 1;
    assert_int_equal(batch_check_run(slice_of(both, a_size + b_size), 0, &whole, NULL), ERR_CORRUPT);
    assert_int_equal(whole, a_size);
    free(a);
    free(b);
    free(both);
}

static void sequences_wrap_to_zero(void **state)
{
    size_t size;
    uint8_t *b = make_batch(CODEC_NONE, 20, 10, 3, &size);
    assert_int_equal(batch_last_sequence(b), -1);
    batch_set_base_sequence(b, INT32_MAX - 7);
    assert_int_equal(batch_last_sequence(b), 11);
    free(b);
}

static void a_marker_is_one_control_record(void **state)
{
    struct builder_options o = BUILDER_OPTIONS_DEFAULT;
    o.base_offset = 44;
    o.epoch = 5;
    o.producer_id = 4000;
    o.producer_epoch = 3;
    struct builder b;
    struct slice out;
    builder_init(&b, &o);
    assert_int_equal(builder_marker(&b, &o, true, 11, TEST_NOW, &out), 0);
    assert_int_equal(out.len, 78);
    assert_int_equal(batch_crc(out.data), 500322538); // as Apache Kafka makes it
    builder_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_built_is_read_back_with_every_codec),
        cmocka_unit_test(a_record_larger_than_the_window_is_given_whole),
        cmocka_unit_test(a_batch_cut_at_any_length_asks_for_more),
        cmocka_unit_test(headers_that_cannot_be_are_told_apart),
        cmocka_unit_test(damaged_records_end_in_an_error_and_never_in_harm),
        cmocka_unit_test(a_count_above_or_below_the_records_is_damage),
        cmocka_unit_test(consecutive_batches_are_walked_up_to_a_partial_tail),
        cmocka_unit_test(sequences_wrap_to_zero),
        cmocka_unit_test(a_marker_is_one_control_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
