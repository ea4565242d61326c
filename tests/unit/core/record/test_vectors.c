// SPDX-License-Identifier: Apache-2.0
// Every batch of the reference implementation is read with all its fields and records, and built again to the
// same bytes.
#include "tests/unit/core/record/fixture.h"

#include <stdio.h>

#include "core/record/crc32c.h"
#include "tests/vectors/vectors.h"

static int64_t num(json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static bool flag(json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

static void check_bytes(struct slice got, json_t *want)
{
    if (json_is_null(want)) {
        assert_true(slice_is_null(got));
        return;
    }
    size_t len;
    uint8_t *bytes = vectors_unhex(json_string_value(want), &len);
    assert_true(slice_equal(got, slice_of(bytes, len)));
    free(bytes);
}

static void check_header(const uint8_t *b, json_t *want)
{
    assert_int_equal(batch_base_offset(b), num(want, "base_offset"));
    assert_int_equal(batch_last_offset(b), num(want, "last_offset"));
    assert_int_equal(batch_size(b), num(want, "size"));
    assert_int_equal(batch_magic(b), num(want, "magic"));
    assert_int_equal(batch_crc(b), num(want, "crc"));
    assert_string_equal(codec_name(batch_codec(b)), json_string_value(json_object_get(want, "codec")));
    assert_string_equal(batch_is_append_time(b) ? "LogAppendTime" : "CreateTime",
                        json_string_value(json_object_get(want, "timestamp_type")));
    assert_int_equal(batch_max_timestamp(b), num(want, "max_timestamp"));
    assert_int_equal(batch_leader_epoch(b), num(want, "leader_epoch"));
    assert_int_equal(batch_producer_id(b), num(want, "producer_id"));
    assert_int_equal(batch_producer_epoch(b), num(want, "producer_epoch"));
    assert_int_equal(batch_base_sequence(b), num(want, "base_sequence"));
    assert_int_equal(batch_last_sequence(b), num(want, "last_sequence"));
    assert_int_equal(batch_is_transactional(b), flag(want, "transactional"));
    assert_int_equal(batch_is_control(b), flag(want, "control"));
}

static void check_record(const struct record *r, json_t *want)
{
    assert_int_equal(r->offset, num(want, "offset"));
    assert_int_equal(r->timestamp, num(want, "timestamp"));
    assert_int_equal(r->sequence, num(want, "sequence"));
    json_t *key = json_object_get(want, "key");
    check_bytes(r->key, key);
    json_t *crc = json_object_get(want, "value_crc32c");
    if (crc) {
        assert_int_equal(r->value.len, num(want, "value_size"));
        assert_int_equal(crc32c(r->value.data, r->value.len), json_integer_value(crc));
    } else {
        check_bytes(r->value, json_object_get(want, "value"));
    }
    json_t *control = json_object_get(want, "control_type");
    if (control) {
        static const char *const types[] = {"ABORT",           "COMMIT",          "LEADER_CHANGE",
                                            "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
                                            "KRAFT_VOTERS"};
        enum control_type type = control_type_of(r->key);
        assert_string_equal(types[type], json_string_value(control));
        assert_true(slice_equal(control_key(type), r->key));
    }
    json_t *headers = json_object_get(want, "headers");
    struct slice rest = r->headers;
    struct record_header h;
    assert_int_equal(r->headers_count, json_array_size(headers));
    for (size_t i = 0; i < json_array_size(headers); i++) {
        json_t *header = json_array_get(headers, i);
        assert_true(record_header_next(&rest, &h));
        assert_true(slice_equal_str(h.key, json_string_value(json_object_get(header, "key"))));
        check_bytes(h.value, json_object_get(header, "value"));
    }
    assert_int_equal(rest.len, 0);
}

// Builds the batch anew from its records; the uncompressed ones must come out byte for byte, and all read the
// same.
static void rebuild(const uint8_t *b, size_t size)
{
    struct builder_options o = {.base_offset = batch_base_offset(b),
                                .epoch = batch_leader_epoch(b),
                                .codec = batch_codec(b),
                                .level = CODEC_LEVEL_DEFAULT,
                                .append_time = batch_is_append_time(b),
                                .append_timestamp = batch_max_timestamp(b),
                                .transactional = batch_is_transactional(b),
                                .control = batch_is_control(b),
                                .producer_id = batch_producer_id(b),
                                .producer_epoch = batch_producer_epoch(b),
                                .base_sequence = batch_base_sequence(b)};
    struct builder n;
    builder_init(&n, &o);
    struct record_iter it;
    struct record r;
    record_iter_init(&it, b, NULL, NULL);
    while (record_iter_next(&it, &r, NULL) == 0) {
        struct record_header headers[8];
        struct slice rest = r.headers;
        int32_t count = 0;
        while (record_header_next(&rest, &headers[count])) {
            count++;
        }
        builder_append_at(&n, r.offset_delta, r.timestamp, r.key, r.value, headers, count);
    }
    record_iter_fini(&it);
    struct slice built;
    assert_int_equal(builder_finish(&n, &built, NULL), 0);
    // The reference keeps the given timestamps as deltas where the broker's time counts.
    if (batch_codec(b) == CODEC_NONE && !batch_is_append_time(b)) {
        assert_int_equal(built.len, size);
        assert_memory_equal(built.data, b, size);
    }
    builder_fini(&n);
}

static void every_batch_of_the_reference_reads_the_same(void **state)
{
    struct vectors v = vectors_open("batches");
    int lines = 0;
    struct codec_cache *cache = codec_cache_create();
    for (json_t *line; (line = vectors_next(&v)); json_decref(line), lines++) {
        size_t len;
        uint8_t *bytes = vectors_unhex(json_string_value(json_object_get(line, "hex")), &len);
        json_t *batches = json_object_get(line, "batches");
        struct batch_iter walk = batch_iter_of(slice_of(bytes, len));
        for (size_t i = 0; i < json_array_size(batches); i++) {
            json_t *want = json_array_get(batches, i);
            assert_true(batch_iter_next(&walk));
            assert_int_equal(batch_check_crc(walk.batch, NULL), 0);
            check_header(walk.batch, want);
            json_t *records = json_object_get(want, "records");
            struct record_iter it;
            struct record r;
            record_iter_init(&it, walk.batch, cache, NULL);
            for (size_t k = 0; k < json_array_size(records); k++) {
                assert_int_equal(record_iter_next(&it, &r, NULL), 0);
                check_record(&r, json_array_get(records, k));
            }
            assert_int_equal(record_iter_next(&it, &r, NULL), ERR_NOTFOUND);
            record_iter_fini(&it);
            rebuild(walk.batch, walk.size);
        }
        assert_false(batch_iter_next(&walk));
        assert_int_equal(walk.err, 0);
        free(bytes);
    }
    codec_cache_destroy(cache);
    vectors_close(&v);
    assert_int_equal(lines, 43);
}

static void checksums_of_the_reference(void **state)
{
    struct vectors v = vectors_open("hashes");
    int seen = 0;
    for (json_t *line; (line = vectors_next(&v)); json_decref(line)) {
        json_t *crc = json_object_get(line, "crc32c");
        if (crc) {
            json_t *text = json_object_get(line, "string");
            if (text) {
                assert_int_equal(crc32c(json_string_value(text), json_string_length(text)),
                                 json_integer_value(crc));
            } else {
                size_t len;
                uint8_t *bytes = vectors_unhex(json_string_value(json_object_get(line, "hex")), &len);
                assert_int_equal(crc32c(bytes, len), json_integer_value(crc));
                free(bytes);
            }
            seen++;
        }
    }
    vectors_close(&v);
    assert_true(seen > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_of_the_reference_reads_the_same),
        cmocka_unit_test(checksums_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
