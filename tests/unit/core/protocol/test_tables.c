// SPDX-License-Identifier: Apache-2.0
// The API table, error codes, headers and metadata frames against the reference's.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/protocol/gen/errors.h"
#include "core/protocol/header.h"
#include "core/protocol/metadata_record.h"
#include "tests/vectors/vectors.h"

static int64_t number(const json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

static unsigned listeners_of(const json_t *row)
{
    unsigned bits = 0;
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(row, "listeners"), i, name) bits |=
        strcmp(json_string_value(name), "broker") == 0 ? KP_LISTENER_BROKER : KP_LISTENER_CONTROLLER;
    return bits;
}

static void the_api_table_is_the_reference_table(void **state)
{
    struct vectors v = vectors_open("apis");
    json_t *row;
    while ((row = vectors_next(&v))) {
        int key = (int)number(row, "key");
        const struct kp_api_info *api = kp_api_find(key);
        if (number(row, "max") < 0) {
            assert_null(api);
            json_decref(row);
            continue;
        }
        assert_string_equal(api->name, json_string_value(json_object_get(row, "name")));
        assert_int_equal(api->key, key);
        assert_int_equal(api->min_version, number(row, "min"));
        assert_int_equal(api->max_version, number(row, "max"));
        assert_int_equal(api->max_stable, number(row, "max_stable"));
        assert_int_equal(api->forwarded, json_is_true(json_object_get(row, "forwardable")));
        assert_int_equal(api->cluster_action, json_is_true(json_object_get(row, "cluster_action")));
        assert_int_equal(api->listeners, listeners_of(row));
        size_t i;
        json_t *h;
        json_array_foreach(json_object_get(row, "header_versions"), i, h)
        {
            int version = (int)number(h, "version");
            assert_int_equal(kp_api_request_header_version(api, version), number(h, "request"));
            assert_int_equal(kp_api_response_header_version(api, version), number(h, "response"));
        }
        json_decref(row);
    }
    vectors_close(&v);
}

static void the_error_table_is_the_reference_table(void **state)
{
    struct vectors v = vectors_open("errors");
    json_t *row;
    int rows = 0;
    while ((row = vectors_next(&v))) {
        int code = (int)number(row, "code");
        enum kafka_error found;
        const char *name = json_string_value(json_object_get(row, "name"));
        assert_string_equal(kafka_error_name(code), name);
        assert_int_equal(kafka_error_is_retriable(code), json_is_true(json_object_get(row, "retriable")));
        assert_true(kafka_error_by_name(slice_str(name), &found));
        assert_int_equal(found, code);
        assert_true(strlen(kafka_error_text(code)) > 0);
        json_decref(row);
        rows++;
    }
    vectors_close(&v);
    assert_int_equal(rows, KAFKA_ERROR_MAX - KAFKA_ERROR_MIN + 1);
}

static void an_error_code_that_does_not_exist_has_a_name_all_the_same(void **state)
{
    enum kafka_error found;
    assert_string_equal(kafka_error_name(-2), "UNKNOWN");
    assert_string_equal(kafka_error_name(KAFKA_ERROR_MAX + 1), "UNKNOWN");
    assert_false(kafka_error_is_retriable(30000));
    assert_false(kafka_error_by_name(SLICE_LIT("NO_SUCH"), &found));
}

static void every_api_has_both_messages_and_removed_ones_have_none(void **state)
{
    for (int key = -1; key <= KP_API_COUNT; key++) {
        const struct kp_api_info *api = kp_api_find(key);
        assert_int_equal(kp_message_of_api(key, KP_REQUEST) != NULL, api != NULL);
        assert_int_equal(kp_message_of_api(key, KP_RESPONSE) != NULL, api != NULL);
        if (api) {
            assert_int_equal(kp_message_of_api(key, KP_REQUEST)->flexible_from, api->flexible_from);
            assert_int_equal(kp_message_of_api(key, KP_RESPONSE)->max_version, api->max_version);
        }
    }
}

static struct slice flat(struct rope *rope, uint8_t *out)
{
    size_t len = rope->len;
    assert_int_equal(rope_flatten(rope, out), 0);
    rope_clear(rope);
    return slice_of(out, len);
}

static void a_request_header_is_read_as_it_was_written(void **state)
{
    struct rope rope;
    struct arena arena;
    uint8_t bytes[64];
    const struct kp_api_info *api;
    struct kp_request_header h, back;
    struct kp_reader r;
    rope_init(&rope);
    arena_init(&arena);
    kp_request_header_init(&h);
    h.request_api_key = KP_API_FETCH;
    h.correlation_id = 77;
    h.client_id = SLICE_LIT("me");
    for (int16_t version = 11; version <= 12; version++) { // 12 is the first flexible one
        h.request_api_version = version;
        assert_int_equal(kp_header_write_request(&rope, &h), 0);
        assert_int_equal(rope.len, version == 12 ? 13 : 12);
        kp_reader_init(&r, flat(&rope, bytes), &arena, NULL);
        assert_int_equal(kp_header_read_request(&r, &back, &api), 0);
        assert_int_equal(kp_reader_left(&r), 0);
        assert_int_equal(api->key, KP_API_FETCH);
        assert_int_equal(back.correlation_id, 77);
        assert_true(slice_equal_str(back.client_id, "me"));
    }
    arena_fini(&arena);
}

static void a_header_of_an_unknown_key_still_gives_its_correlation_id(void **state)
{
    static const char bytes[] = "\0\x04\0\0\0\0\0\x09\xff\xff"; // LeaderAndIsr is gone
    const struct kp_api_info *api;
    struct kp_request_header h;
    struct kp_reader r;
    struct errmsg err;
    kp_reader_init(&r, slice_of(bytes, 10), NULL, &err);
    assert_int_equal(kp_header_read_request(&r, &h, &api), ERR_UNSUPPORTED);
    assert_int_equal(h.correlation_id, 9);
    kp_reader_init(&r, slice_of(bytes, 7), NULL, &err);
    assert_int_equal(kp_header_read_request(&r, &h, &api), ERR_MALFORMED);
}

static void the_response_header_of_api_versions_is_always_the_old_one(void **state)
{
    struct rope rope;
    rope_init(&rope);
    kp_header_write_response(&rope, kp_api_find(KP_API_API_VERSIONS), 4, 1);
    assert_int_equal(rope.len, 4);
    rope_clear(&rope);
    kp_header_write_response(&rope, kp_api_find(KP_API_FETCH), 12, 1);
    assert_int_equal(rope.len, 5);
    rope_clear(&rope);
}

static void a_metadata_record_is_framed_and_read_back(void **state)
{
    struct rope rope;
    struct arena arena;
    struct errmsg err;
    struct metadata_record m, back;
    uint8_t bytes[256];
    rope_init(&rope);
    arena_init(&arena);
    metadata_record_init(&m, METADATA_PARTITION_CHANGE, 1);
    m.body.partition_change.partition_id = 3;
    m.body.partition_change.leader = 2;
    assert_int_equal(metadata_record_encode(&m, &rope), 0);
    assert_int_equal(rope.len, metadata_record_size(&m));
    struct slice value = flat(&rope, bytes);
    assert_memory_equal(bytes, "\x01\x05\x01", 3);
    assert_int_equal(metadata_record_decode(&back, value, &arena, &err), 0);
    assert_int_equal(back.type, METADATA_PARTITION_CHANGE);
    assert_int_equal(back.version, 1);
    assert_int_equal(back.body.partition_change.leader, 2);
    assert_int_equal(back.body.partition_change.isr_count, -1);
    bytes[value.len] = 0;
    value.len++;
    assert_int_equal(metadata_record_decode(&back, value, &arena, &err), ERR_MALFORMED);
    arena_fini(&arena);
}

static void metadata_records_of_newer_releases_are_refused_with_a_reason(void **state)
{
    struct errmsg err;
    struct metadata_record m;
    assert_int_equal(metadata_record_decode(&m, SLICE_LIT("\x02\x05\x01"), NULL, &err), ERR_UNSUPPORTED);
    assert_int_equal(metadata_record_decode(&m, SLICE_LIT("\x01\x7f\x00"), NULL, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "type 127"));
    assert_int_equal(metadata_record_decode(&m, SLICE_LIT("\x01\x05\x63"), NULL, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "PartitionChangeRecord version 99"));
    assert_int_equal(metadata_record_decode(&m, SLICE_LIT(""), NULL, &err), ERR_MALFORMED);
}

static void messages_are_found_by_name(void **state)
{
    for (unsigned i = 0; i < kp_message_types_count; i++)
        assert_ptr_equal(kp_message_by_name(slice_str(kp_message_types[i]->name)), kp_message_types[i]);
    assert_null(kp_message_by_name(SLICE_LIT("Produce")));
    assert_null(kp_message_by_name(SLICE_LIT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_api_table_is_the_reference_table),
        cmocka_unit_test(the_error_table_is_the_reference_table),
        cmocka_unit_test(an_error_code_that_does_not_exist_has_a_name_all_the_same),
        cmocka_unit_test(every_api_has_both_messages_and_removed_ones_have_none),
        cmocka_unit_test(a_request_header_is_read_as_it_was_written),
        cmocka_unit_test(a_header_of_an_unknown_key_still_gives_its_correlation_id),
        cmocka_unit_test(the_response_header_of_api_versions_is_always_the_old_one),
        cmocka_unit_test(a_metadata_record_is_framed_and_read_back),
        cmocka_unit_test(metadata_records_of_newer_releases_are_refused_with_a_reason),
        cmocka_unit_test(messages_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
