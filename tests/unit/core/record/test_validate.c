// SPDX-License-Identifier: Apache-2.0
// Produce validation, one rule a test; the codes are those of Apache Kafka.
#include "tests/unit/core/record/fixture.h"

#include <sys/resource.h>

static enum validate_verdict verdict_of(uint8_t *b, size_t size, const struct validate_rules *rules)
{
    struct validate_result out;
    validate_produce(b, size, rules, NULL, &out);
    if (out.verdict == VALIDATE_OK && out.rewritten) {
        chunk_unref(out.rewritten);
    }
    assert_true(out.verdict == VALIDATE_OK || out.msg.text[0] != '\0');
    return out.verdict;
}

static void a_good_batch_passes_unchanged(void **state)
{
    struct validate_rules rules = usual_rules();
    for (int c = 0; c < CODEC_COUNT; c++) {
        size_t size;
        uint8_t *b = make_batch((enum codec)c, 20, 100, 4, &size), *copy = malloc(size);
        memcpy(copy, b, size);
        struct validate_result out;
        validate_produce(b, size, &rules, NULL, &out);
        assert_int_equal(out.verdict, VALIDATE_OK);
        assert_null(out.rewritten);
        assert_int_equal(out.size, size);
        assert_int_equal(out.count, 20);
        assert_int_equal(out.max_timestamp, TEST_NOW + 6);
        assert_int_equal(out.max_timestamp_delta, 6);
        assert_memory_equal(b, copy, size);
        free(b);
        free(copy);
    }
}

static void wrong_counts_checksums_and_magics_are_refused(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    int32_t counts[] = {0, -1, 19, 21, INT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint8_t *b = make_batch(CODEC_NONE, 20, 100, 4, &size);
        batch_set_count(b, counts[i]);
        batch_seal(b);
        enum validate_verdict v = verdict_of(b, size, &rules);
        assert_true(v == VALIDATE_BAD_RECORD || v == VALIDATE_CORRUPT);
        free(b);
    }
    uint8_t *b = make_batch(CODEC_NONE, 20, 100, 4, &size);
    batch_set_count(b, 21); // header agrees with itself, records do not
    batch_set_last_offset_delta(b, 20);
    batch_seal(b);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_RECORD);
    free(b);
    b = make_batch(CODEC_NONE, 20, 100, 4, &size);
    b[size - 1] ^= 1;
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_CORRUPT);
    b[size - 1] ^= 1;
    batch_set_magic(b, 1);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_RECORD);
    batch_set_magic(b, 3);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_CORRUPT);
    batch_set_magic(b, 2);
    batch_set_length(b, (int32_t)size - 11);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_RECORD);
    batch_set_length(b, (int32_t)size - 13);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_CORRUPT);
    free(b);
}

static void exactly_one_batch_is_taken(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_NONE, 2, 10, 4, &size), *two = malloc(2 * size);
    memcpy(two, b, size);
    memcpy(two + size, b, size);
    assert_int_equal(verdict_of(two, 2 * size, &rules), VALIDATE_BAD_RECORD);
    assert_int_equal(verdict_of(two, 0, &rules), VALIDATE_BAD_RECORD);
    assert_int_equal(verdict_of(two, size, &rules), VALIDATE_OK);
    free(b);
    free(two);
}

static void control_batches_and_base_offsets_of_clients_are_refused(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_NONE, 2, 10, 4, &size);
    batch_set_base_offset(b, 5);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_RECORD);
    batch_set_base_offset(b, 0);
    batch_set_attributes(b, BATCH_CONTROL);
    batch_seal(b);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_RECORD);
    free(b);
}

static void codecs_that_may_not_be_are_refused(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_ZSTD, 2, 10, 4, &size);
    rules.zstd_allowed = false;
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_UNSUPPORTED_CODEC);
    batch_set_attributes(b, 6);
    batch_seal(b);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_UNSUPPORTED_CODEC);
    free(b);
}

static void a_batch_above_the_limit_is_too_large(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_NONE, 20, 100, 4, &size);
    rules.batch_bytes_max = (uint32_t)size - 1;
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_TOO_LARGE);
    rules.batch_bytes_max = (uint32_t)size;
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_OK);
    free(b);
}

static void timestamps_out_of_range_name_their_records(void **state)
{
    struct validate_rules rules = usual_rules();
    rules.after_ms_max = 4;
    rules.before_ms_max = 1000;
    for (int c = 0; c < CODEC_COUNT; c++) {
        size_t size;
        uint8_t *b = make_batch((enum codec)c, 14, 10, 4, &size);
        struct validate_result out;
        validate_produce(b, size, &rules, NULL, &out);
        assert_int_equal(out.verdict, VALIDATE_BAD_TIMESTAMP);
        assert_int_equal(out.errors_count, 4); // + 5 and + 6, twice
        assert_int_equal(out.errors[0].index, 5);
        assert_int_equal(out.errors[3].index, 13);
        char text[200];
        validate_error_text(&out.errors[0], &rules, text, sizeof text);
        assert_string_equal(
            text, "Timestamp 1700000000005 of message with offset 5 is out of range. The timestamp should be "
                  "within [1699999999000, 1700000000004]");
        free(b);
    }
}

static void records_without_a_key_are_refused_on_compacted_topics(void **state)
{
    struct validate_rules rules = usual_rules();
    rules.compacted = true;
    size_t size;
    uint8_t *b = make_batch(CODEC_LZ4, 10, 10, 4, &size);
    struct validate_result out;
    validate_produce(b, size, &rules, NULL, &out);
    assert_int_equal(out.verdict, VALIDATE_BAD_RECORD);
    assert_int_equal(out.errors_count, 2);
    assert_int_equal(out.errors[1].index, 9);
    free(b);
}

static void append_time_is_stamped_and_sealed(void **state)
{
    struct validate_rules rules = usual_rules();
    rules.timestamp = TIMESTAMP_APPEND;
    rules.now = 42;
    size_t size;
    uint8_t *b = make_batch(CODEC_GZIP, 10, 10, 4, &size);
    struct validate_result out;
    validate_produce(b, size, &rules, NULL, &out);
    assert_int_equal(out.verdict, VALIDATE_OK);
    assert_true(batch_is_append_time(b));
    assert_int_equal(batch_max_timestamp(b), 42);
    assert_int_equal(out.max_timestamp, 42);
    assert_int_equal(batch_check_crc(b, NULL), 0);
    struct record_iter it;
    struct record r;
    record_iter_init(&it, b, NULL, NULL);
    assert_int_equal(record_iter_next(&it, &r, NULL), 0);
    assert_int_equal(r.timestamp, 42);
    record_iter_fini(&it);
    // A client that claims append time is refused.
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_BAD_TIMESTAMP);
    free(b);
}

static void a_wrong_max_timestamp_is_put_right(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_NONE, 10, 10, 4, &size);
    batch_set_max_timestamp(b, 5);
    batch_seal(b);
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_OK);
    assert_int_equal(batch_max_timestamp(b), TEST_NOW + 6);
    assert_int_equal(batch_check_crc(b, NULL), 0);
    free(b);
}

// Compares all records of two batches.
static void assert_same_records(const uint8_t *a, const uint8_t *b)
{
    struct record_iter x, y;
    struct record r, q;
    record_iter_init(&x, a, NULL, NULL);
    record_iter_init(&y, b, NULL, NULL);
    for (int32_t i = 0;; i++) {
        int rc = record_iter_next(&x, &r, NULL);
        assert_int_equal(record_iter_next(&y, &q, NULL), rc);
        if (rc) {
            assert_int_equal(rc, ERR_NOTFOUND);
            break;
        }
        assert_true(slice_equal(r.key, q.key) && slice_equal(r.value, q.value) &&
                    slice_equal(r.headers, q.headers));
        assert_int_equal(r.timestamp, q.timestamp);
        assert_int_equal(q.offset_delta, i);
    }
    record_iter_fini(&x);
    record_iter_fini(&y);
}

static void another_codec_of_the_topic_repacks(void **state)
{
    struct codec_cache *cache = codec_cache_create();
    for (int from = 0; from < CODEC_COUNT; from++) {
        for (int to = 0; to < CODEC_COUNT; to++) {
            struct validate_rules rules = usual_rules();
            rules.producer_codec = false;
            rules.codec = (enum codec)to;
            size_t size;
            uint8_t *b = make_batch((enum codec)from, 50, 3000, 4, &size);
            batch_set_producer_id(b, 99);
            batch_seal(b);
            struct validate_result out;
            validate_produce(b, size, &rules, cache, &out);
            assert_int_equal(out.verdict, VALIDATE_OK);
            assert_int_equal(out.rewritten != NULL, from != to);
            if (out.rewritten) {
                const uint8_t *n = out.rewritten->data;
                assert_int_equal(batch_codec(n), to);
                assert_int_equal(batch_size(n), out.size);
                assert_int_equal(batch_check_crc(n, NULL), 0);
                assert_int_equal(batch_producer_id(n), 99);
                assert_same_records(b, n);
                chunk_unref(out.rewritten);
            }
            free(b);
        }
    }
    codec_cache_destroy(cache);
}

static void repacking_past_the_limit_is_too_large(void **state)
{
    struct validate_rules rules = usual_rules();
    size_t size;
    uint8_t *b = make_batch(CODEC_ZSTD, 50, 3000, 4, &size);
    rules.producer_codec = false;
    rules.codec = CODEC_NONE;
    rules.batch_bytes_max = (uint32_t)size + 100;
    assert_int_equal(verdict_of(b, size, &rules), VALIDATE_TOO_LARGE);
    free(b);
}

static void inner_offsets_with_gaps_are_rewritten_in_sequence(void **state)
{
    struct validate_rules rules = usual_rules();
    for (int c = 0; c < CODEC_COUNT; c++) {
        struct builder_options o = BUILDER_OPTIONS_DEFAULT;
        o.codec = (enum codec)c;
        struct builder b;
        builder_init(&b, &o);
        uint8_t big[1000] = {0};
        for (int i = 0; i < 100; i++) {
            builder_append_at(&b, i * 1000 + 5, TEST_NOW, SLICE_LIT("k"), slice_of(big, (size_t)i * 10), NULL,
                              0);
        }
        struct slice built;
        assert_int_equal(builder_finish(&b, &built, NULL), 0);
        uint8_t *data = (uint8_t *)(uintptr_t)built.data;
        batch_set_last_offset_delta(data, 99);
        batch_seal(data);
        struct validate_result out;
        validate_produce(data, built.len, &rules, NULL, &out);
        assert_int_equal(out.verdict, VALIDATE_OK);
        assert_non_null(out.rewritten);
        assert_int_equal(batch_last_offset_delta(out.rewritten->data), 99);
        assert_same_records(data, out.rewritten->data);
        chunk_unref(out.rewritten);
        builder_fini(&b);
    }
}

// A batch of one record with `len` zeros as value, packed as `c` without ever holding them.
struct bomb_sink {
    struct codec_sink sink;
    uint8_t *data;
    size_t len, cap;
};
static int bomb_write(struct codec_sink *sink, const uint8_t *data, size_t len)
{
    struct bomb_sink *s = (struct bomb_sink *)sink;
    if (s->len + len > s->cap) {
        s->cap = (s->len + len) * 2;
        s->data = realloc(s->data, s->cap);
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return 0;
}
static uint8_t *make_bomb(enum codec c, uint32_t value_bytes, size_t *size)
{
    struct bomb_sink s = {.sink = {bomb_write}};
    uint8_t header[BATCH_HEADER_BYTES] = {0};
    bomb_write(&s.sink, header, sizeof header);
    struct codec_writer *w = codec_writer_open(c, CODEC_LEVEL_DEFAULT, &s.sink, NULL);
    uint8_t head[32], *p = head;
    p += varint_write(p, (int32_t)(1 + 1 + 1 + 1 + varint_size((int32_t)value_bytes) + value_bytes + 1));
    *p++ = 0;
    *p++ = 0;
    *p++ = 0;
    p += varint_write(p, -1);
    p += varint_write(p, (int32_t)value_bytes);
    assert_int_equal(codec_writer_write(w, head, (size_t)(p - head)), 0);
    uint8_t *zeros = calloc(1, 1 << 20);
    for (uint32_t left = value_bytes; left > 0;) {
        uint32_t step = left < (1 << 20) ? left : (1 << 20);
        assert_int_equal(codec_writer_write(w, zeros, step), 0);
        left -= step;
    }
    assert_int_equal(codec_writer_write(w, zeros, 1), 0);
    assert_int_equal(codec_writer_finish(w), 0);
    codec_writer_close(w);
    free(zeros);
    batch_set_magic(s.data, 2);
    batch_set_length(s.data, (int32_t)s.len - BATCH_OVERHEAD_BYTES);
    batch_set_attributes(s.data, (int16_t)c);
    batch_set_count(s.data, 1);
    batch_set_base_timestamp(s.data, TEST_NOW);
    batch_set_max_timestamp(s.data, TEST_NOW);
    batch_seal(s.data);
    *size = s.len;
    return s.data;
}

static long rss_peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void a_batch_that_unpacks_to_very_much_is_stopped_in_constant_memory(void **state)
{
    struct validate_rules rules = usual_rules();
    rules.batch_bytes_max = 64 << 20;
    rules.unpacked_bytes_max = 40 << 20;
    for (int c = CODEC_GZIP; c < CODEC_COUNT; c++) {
        size_t size;
        uint8_t *b = make_bomb((enum codec)c, 80U << 20, &size);
        long before = rss_peak_kib();
        assert_int_equal(verdict_of(b, size, &rules), VALIDATE_TOO_LARGE);
        assert_true(rss_peak_kib() - before < 12 << 10);
        // Under the limit the same record passes, still without being held.
        rules.unpacked_bytes_max = 100 << 20;
        assert_int_equal(verdict_of(b, size, &rules), VALIDATE_OK);
        assert_true(rss_peak_kib() - before < 12 << 10);
        rules.unpacked_bytes_max = 40 << 20;
        free(b);
    }
}

static void random_damage_is_never_stored_and_never_harms(void **state)
{
    struct validate_rules rules = usual_rules();
    struct codec_cache *cache = codec_cache_create();
    uint64_t seed = 123;
    for (int c = 0; c < CODEC_COUNT; c++) {
        size_t size;
        uint8_t *b = make_batch((enum codec)c, 20, 100, 4, &size);
        for (int i = 0; i < 3000; i++) {
            uint8_t *copy = malloc(size);
            memcpy(copy, b, size);
            for (uint64_t n = next_random(&seed) % 4 + 1; n > 0; n--) {
                copy[next_random(&seed) % size] = (uint8_t)next_random(&seed);
            }
            if (i & 1) { // also behind the checksum
                size_t parsed;
                if (batch_parse(slice_of(copy, size), &parsed, NULL) == 0) {
                    batch_seal(copy);
                }
            }
            struct validate_result out;
            validate_produce(copy, size, &rules, cache, &out);
            if (out.rewritten) {
                chunk_unref(out.rewritten);
            }
            free(copy);
        }
        free(b);
    }
    codec_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_batch_passes_unchanged),
        cmocka_unit_test(wrong_counts_checksums_and_magics_are_refused),
        cmocka_unit_test(exactly_one_batch_is_taken),
        cmocka_unit_test(control_batches_and_base_offsets_of_clients_are_refused),
        cmocka_unit_test(codecs_that_may_not_be_are_refused),
        cmocka_unit_test(a_batch_above_the_limit_is_too_large),
        cmocka_unit_test(timestamps_out_of_range_name_their_records),
        cmocka_unit_test(records_without_a_key_are_refused_on_compacted_topics),
        cmocka_unit_test(append_time_is_stamped_and_sealed),
        cmocka_unit_test(a_wrong_max_timestamp_is_put_right),
        cmocka_unit_test(another_codec_of_the_topic_repacks),
        cmocka_unit_test(repacking_past_the_limit_is_too_large),
        cmocka_unit_test(inner_offsets_with_gaps_are_rewritten_in_sequence),
        cmocka_unit_test(a_batch_that_unpacks_to_very_much_is_stopped_in_constant_memory),
        cmocka_unit_test(random_damage_is_never_stored_and_never_harms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
