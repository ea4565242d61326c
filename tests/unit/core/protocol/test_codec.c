// SPDX-License-Identifier: Apache-2.0
// The codec's rules that the vectors cannot show: defaults, nulls, unknown tags, limits, wrong versions.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/consumer_group_member_metadata_value.h"
#include "core/protocol/gen/describe_topic_partitions_request.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/metadata_request.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/gen/update_features_request.h"
#include "core/protocol/gen/vote_response.h"
#include "core/protocol/json.h"

static struct arena arena;
static struct errmsg err;

static int setup(void **state)
{
    arena_init(&arena);
    return 0;
}
static int teardown(void **state)
{
    arena_fini(&arena);
    return 0;
}

static struct kp_reader reader_of(const void *bytes, size_t len)
{
    struct kp_reader r;
    kp_reader_init(&r, slice_of(bytes, len), &arena, &err);
    return r;
}

static struct slice flat(struct rope *rope)
{
    uint8_t *bytes = arena_alloc(&arena, rope->len + 1);
    size_t len = rope->len;
    assert_int_equal(rope_flatten(rope, bytes), 0);
    rope_clear(rope);
    return slice_of(bytes, len);
}

static void init_sets_the_schema_defaults(void **state)
{
    struct kp_fetch_request m;
    memset(&m, 0xcc, sizeof(m));
    kp_fetch_request_init(&m);
    assert_int_equal(m.replica_id, -1);
    assert_int_equal(m.max_bytes, INT32_MAX);
    assert_int_equal(m.session_epoch, -1);
    assert_int_equal(m.topics_count, 0);
    assert_true(slice_is_null(m.cluster_id));
    assert_true(slice_equal_str(m.rack_id, ""));
    assert_int_equal(m.replica_state.replica_epoch, -1);
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_fetch_partition_init(&p);
    assert_int_equal(p.high_watermark, INT64_MAX);
}

static void fields_that_a_version_lacks_get_their_defaults(void **state)
{
    struct kp_fetch_request in, out;
    struct rope rope;
    kp_fetch_request_init(&in);
    in.session_id = 7;
    in.rack_id = SLICE_LIT("r1");
    rope_init(&rope);
    assert_int_equal(kp_fetch_request_encode(&in, &rope, 4), 0);
    struct slice bytes = flat(&rope);
    struct kp_reader r = reader_of(bytes.data, bytes.len);
    memset(&out, 0xcc, sizeof(out));
    assert_int_equal(kp_fetch_request_decode(&out, &r, 4), 0);
    assert_int_equal(out.session_id, 0);
    assert_int_equal(out.session_epoch, -1);
    assert_true(slice_equal_str(out.rack_id, ""));
    assert_int_equal(out.replica_state.replica_id, -1);
}

// Metadata v0 has no null array: null (all topics) is written as its empty one, which means the same there.
static void a_null_that_the_version_forbids_is_written_as_empty(void **state)
{
    struct kp_metadata_request m;
    struct rope rope;
    kp_metadata_request_init(&m);
    m.topics_count = -1;
    rope_init(&rope);
    assert_int_equal(kp_metadata_request_encode(&m, &rope, 0), 0);
    struct slice bytes = flat(&rope);
    assert_true(slice_equal(bytes, SLICE_LIT("\0\0\0\0")));
    assert_int_equal(kp_metadata_request_encode(&m, &rope, 1), 0);
    assert_true(slice_equal(flat(&rope), SLICE_LIT("\xff\xff\xff\xff")));
}

static void a_null_that_the_version_forbids_is_refused_when_read(void **state)
{
    struct kp_metadata_request m;
    struct kp_reader r = reader_of("\xff\xff\xff\xff", 4);
    assert_int_equal(kp_metadata_request_decode(&m, &r, 0), ERR_MALFORMED);
    assert_non_null(strstr(err.text, "topics"));
}

static void unknown_tagged_fields_survive_in_their_place(void **state)
{
    // client name, version; three tags: 1 (unknown at v3), 5, 300
    static const char bytes[] = "\x02"
                                "a"
                                "\x02"
                                "b"
                                "\x03"
                                "\x01\x02xy"
                                "\x05\x00"
                                "\xac\x02\x01z";
    struct kp_api_versions_request m;
    struct kp_reader r = reader_of(bytes, sizeof(bytes) - 1);
    assert_int_equal(kp_api_versions_request_decode(&m, &r, 3), 0);
    assert_int_equal(kp_reader_left(&r), 0);
    const struct kp_unknown_tag *u = m.unknown_tags.first;
    assert_int_equal(u->tag, 1);
    assert_true(slice_equal_str(u->bytes, "xy"));
    assert_int_equal(u->next->next->tag, 300);
    struct rope rope;
    rope_init(&rope);
    assert_int_equal(kp_api_versions_request_encode(&m, &rope, 3), 0);
    assert_true(slice_equal(flat(&rope), slice_of(bytes, sizeof(bytes) - 1)));
}

static void unknown_tags_are_merged_with_known_ones_by_number(void **state)
{
    struct kp_fetch_request m;
    struct kp_unknown_tag high = {.tag = 9, .bytes = SLICE_LIT("h")};
    struct rope rope;
    kp_fetch_request_init(&m);
    m.cluster_id = SLICE_LIT("c");  // tag 0
    m.replica_state.replica_id = 3; // tag 1
    m.unknown_tags.first = &high;   // tag 9
    rope_init(&rope);
    assert_int_equal(kp_fetch_request_encode(&m, &rope, 17), 0);
    struct slice bytes = flat(&rope);
    static const char tail[] = "\x03\x00\x02\x02"
                               "c\x01\x0d\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff\0"
                               "\x09\x01h";
    assert_memory_equal(bytes.data + bytes.len - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
}

static void a_tag_whose_length_is_wrong_is_refused(void **state)
{
    static const char shorter[] =
        "\x02"
        "a\x02"
        "b\x01\x00\x03\x02"
        "cd"; // tag 0 of v5 is the cluster id: a string of one byte in a value of three
    struct kp_api_versions_request m;
    struct kp_reader r = reader_of(shorter, sizeof(shorter) - 1);
    assert_int_equal(kp_api_versions_request_decode(&m, &r, 5), ERR_MALFORMED);
}

static void a_nullable_struct_is_null_or_in_the_arena(void **state)
{
    struct kp_describe_topic_partitions_request m, back;
    struct kp_describe_topic_partitions_request_cursor cursor;
    struct rope rope;
    kp_describe_topic_partitions_request_init(&m);
    assert_null(m.cursor);
    kp_describe_topic_partitions_request_cursor_init(&cursor);
    cursor.topic_name = SLICE_LIT("t");
    cursor.partition_index = 4;
    m.cursor = &cursor;
    rope_init(&rope);
    assert_int_equal(kp_describe_topic_partitions_request_encode(&m, &rope, 0), 0);
    struct slice bytes = flat(&rope);
    struct kp_reader r = reader_of(bytes.data, bytes.len);
    assert_int_equal(kp_describe_topic_partitions_request_decode(&back, &r, 0), 0);
    assert_int_equal(back.cursor->partition_index, 4);
}

// The one nullable struct whose default is not null.
static void classic_member_metadata_is_zeros_when_absent_and_null_when_said(void **state)
{
    struct kp_consumer_group_member_metadata_value m, back;
    struct rope rope;
    kp_consumer_group_member_metadata_value_init(&m);
    assert_non_null(m.classic_member_metadata);
    m.classic_member_metadata = NULL;
    rope_init(&rope);
    assert_int_equal(kp_consumer_group_member_metadata_value_encode(&m, &rope, 0), 0);
    struct slice bytes = flat(&rope);
    struct kp_reader r = reader_of(bytes.data, bytes.len);
    assert_int_equal(kp_consumer_group_member_metadata_value_decode(&back, &r, 0), 0);
    assert_null(back.classic_member_metadata);
}

static void a_rope_of_records_is_moved_into_the_output(void **state)
{
    struct kp_produce_request m, back;
    struct kp_produce_request_topic_produce_data topic;
    struct kp_produce_request_partition_produce_data partition;
    struct rope records, out;
    kp_produce_request_init(&m);
    kp_produce_request_topic_produce_data_init(&topic);
    kp_produce_request_partition_produce_data_init(&partition);
    rope_init(&records);
    rope_init(&out);
    rope_write(&records, "batch", 5);
    partition.records.rope = &records;
    topic.name = SLICE_LIT("t");
    topic.partition_data = &partition;
    topic.partition_data_count = 1;
    m.topic_data = &topic;
    m.topic_data_count = 1;
    size_t size = kp_produce_request_size(&m, 9);
    assert_int_equal(kp_produce_request_encode(&m, &out, 9), 0);
    assert_int_equal(records.len, 0);
    assert_int_equal(out.len, size);
    struct slice bytes = flat(&out);
    struct kp_reader r = reader_of(bytes.data, bytes.len);
    assert_int_equal(kp_produce_request_decode(&back, &r, 9), 0);
    assert_true(slice_equal_str(back.topic_data[0].partition_data[0].records.bytes, "batch"));
}

static void a_version_that_does_not_exist_is_refused(void **state)
{
    struct kp_produce_request m;
    struct rope rope;
    struct kp_reader r = reader_of("", 0);
    assert_int_equal(kp_produce_request_decode(&m, &r, 2), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "3 to 13"));
    kp_produce_request_init(&m);
    rope_init(&rope);
    assert_int_equal(kp_produce_request_encode(&m, &rope, 14), ERR_UNSUPPORTED);
    assert_int_equal(kp_produce_request_size(&m, -1), 0);
}

static void a_string_of_more_than_32767_bytes_is_not_written(void **state)
{
    struct kp_fetch_request m;
    struct rope rope;
    char *text = malloc(32768);
    memset(text, 'x', 32768);
    kp_fetch_request_init(&m);
    m.rack_id = slice_of(text, 32768);
    rope_init(&rope);
    assert_int_equal(kp_fetch_request_encode(&m, &rope, 11), ERR_TOO_LARGE);
    rope_clear(&rope);
    m.rack_id.len--;
    assert_int_equal(kp_fetch_request_encode(&m, &rope, 11), 0);
    rope_clear(&rope);
    free(text);
}

// Eight bytes that claim 54 million topics (CVE-2022-34917).
static void a_count_beyond_the_bytes_left_reserves_nothing(void **state)
{
    struct kp_metadata_request m;
    struct kp_reader r = reader_of("\x03\x3a\xd7\x00\0\0\0\0", 8);
    assert_int_equal(kp_metadata_request_decode(&m, &r, 0), ERR_MALFORMED);
    assert_int_equal(arena.used, 0);
}

static void the_arena_limit_bounds_what_a_message_takes(void **state)
{
    struct kp_metadata_request m;
    char bytes[4 + 2 * 1000] = "\0\0\x03\xe8"; // 1,000 empty names
    struct kp_reader r = reader_of(bytes, sizeof(bytes));
    arena.limit = 1024;
    assert_int_equal(kp_metadata_request_decode(&m, &r, 0), ERR_TOO_LARGE);
    arena.limit = 0;
}

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    return json;
}

static void strict_json_refuses_unknown_and_missing_names(void **state)
{
    struct kp_metadata_request m;
    json_t *unknown = parse("{\"topics\":[],\"colour\":1}"), *missing = parse("{}");
    const struct kp_message_type *t = &kp_metadata_request_type;
    assert_int_equal(kp_message_from_json(t, &m, unknown, 1, KP_JSON_STRICT, &arena, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "colour"));
    assert_int_equal(kp_message_from_json(t, &m, missing, 1, KP_JSON_STRICT, &arena, &err), ERR_INVALID);
    assert_int_equal(kp_message_from_json(t, &m, unknown, 1, KP_JSON_LOOSE, &arena, &err), 0);
    assert_int_equal(kp_message_from_json(t, &m, missing, 1, KP_JSON_LOOSE, &arena, &err), 0);
    json_decref(unknown);
    json_decref(missing);
}

static void json_numbers_must_fit_their_field(void **state)
{
    struct kp_metadata_request m;
    struct kp_fetch_request f;
    json_t *word = parse("{\"topics\":7}"), *large = parse("{\"maxWaitMs\":2147483648}");
    assert_int_equal(
        kp_message_from_json(&kp_metadata_request_type, &m, word, 1, KP_JSON_LOOSE, &arena, &err),
        ERR_INVALID);
    assert_int_equal(kp_message_from_json(&kp_fetch_request_type, &f, large, 4, KP_JSON_LOOSE, &arena, &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.text, "maxWaitMs"));
    json_decref(word);
    json_decref(large);
}

static void text_that_is_not_utf8_prints_with_replacement_characters(void **state)
{
    struct kp_fetch_request m;
    kp_fetch_request_init(&m);
    m.rack_id = SLICE_LIT("a\xff\xc3\xa9\xc3");
    json_t *json = kp_message_to_json(&kp_fetch_request_type, &m, 11);
    assert_string_equal(json_string_value(json_object_get(json, "rackId")),
                        "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    json_decref(json);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(init_sets_the_schema_defaults),
        T(fields_that_a_version_lacks_get_their_defaults),
        T(a_null_that_the_version_forbids_is_written_as_empty),
        T(a_null_that_the_version_forbids_is_refused_when_read),
        T(unknown_tagged_fields_survive_in_their_place),
        T(unknown_tags_are_merged_with_known_ones_by_number),
        T(a_tag_whose_length_is_wrong_is_refused),
        T(a_nullable_struct_is_null_or_in_the_arena),
        T(classic_member_metadata_is_zeros_when_absent_and_null_when_said),
        T(a_rope_of_records_is_moved_into_the_output),
        T(a_version_that_does_not_exist_is_refused),
        T(a_string_of_more_than_32767_bytes_is_not_written),
        T(a_count_beyond_the_bytes_left_reserves_nothing),
        T(the_arena_limit_bounds_what_a_message_takes),
        T(strict_json_refuses_unknown_and_missing_names),
        T(json_numbers_must_fit_their_field),
        T(text_that_is_not_utf8_prints_with_replacement_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
