// SPDX-License-Identifier: Apache-2.0
// A broker's requests from the wire to the disk and back, in the simulated world.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/bytes.h"
#include "core/protocol/gen/api_versions_request.h"
#include "core/protocol/gen/api_versions_response.h"
#include "core/protocol/gen/delete_records_request.h"
#include "core/protocol/gen/delete_records_response.h"
#include "core/protocol/gen/describe_log_dirs_request.h"
#include "core/protocol/gen/describe_log_dirs_response.h"
#include "core/protocol/gen/describe_topic_partitions_request.h"
#include "core/protocol/gen/describe_topic_partitions_response.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/gen/init_producer_id_request.h"
#include "core/protocol/gen/init_producer_id_response.h"
#include "core/protocol/gen/list_offsets_request.h"
#include "core/protocol/gen/list_offsets_response.h"
#include "core/protocol/gen/metadata_request.h"
#include "core/protocol/gen/metadata_response.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/gen/produce_response.h"
#include "core/protocol/gen/apis.h"
#include "core/record/batch.h"
#include "tests/unit/core/server/broker_fixture.h"

static struct fixture f; // one at a time

static int setup(void **state)
{
    (void)state;
    fixture_start(&f, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    return 0;
}

// ---- the conversation -----------------------------------------------------------------------------------

static void api_versions_answers_every_version(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    for (int16_t v = 0; v <= KP_API_VERSIONS_REQUEST_MAX_VERSION; v++) {
        struct kp_api_versions_request in;
        kp_api_versions_request_init(&in);
        in.client_software_name = SLICE_LIT("test");
        in.client_software_version = SLICE_LIT("1.0");
        struct kp_api_versions_response *out = client_call(c, KP_API_API_VERSIONS, v, &in);
        assert_int_equal(out->error_code, KE_NONE);
        assert_true(out->api_keys_count > 5);
    }
}

static void produce_is_advertised_from_version_0(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_api_versions_request in;
    kp_api_versions_request_init(&in);
    struct kp_api_versions_response *out = client_call(c, KP_API_API_VERSIONS, 0, &in);
    assert_int_equal(out->api_keys[0].api_key, KP_API_PRODUCE);
    assert_int_equal(out->api_keys[0].min_version, 0);
    assert_int_equal(out->api_keys[0].max_version, 13);
}

static void an_unknown_version_of_api_versions_is_answered_in_version_0(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    const uint8_t bytes[] = {0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff, 0};
    client_send_bytes(c, slice_of(bytes, sizeof bytes));
    struct kp_api_versions_response *out = client_receive(c, KP_API_API_VERSIONS, 0);
    assert_int_equal(out->error_code, KE_UNSUPPORTED_VERSION);
    assert_int_equal(out->api_keys_count, 1);
    assert_int_equal(out->api_keys[0].api_key, KP_API_API_VERSIONS);
}

static void a_client_of_another_cluster_is_sent_to_bootstrap(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_api_versions_request in;
    kp_api_versions_request_init(&in);
    in.client_software_name = SLICE_LIT("test");
    in.client_software_version = SLICE_LIT("1.0");
    in.cluster_id = SLICE_LIT("another");
    in.node_id = 1;
    struct kp_api_versions_response *out = client_call(c, KP_API_API_VERSIONS, 5, &in);
    assert_int_equal(out->error_code, KE_REBOOTSTRAP_REQUIRED);
}

static void what_is_not_served_closes_the_connection(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    const uint8_t vote[] = {0, 52, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0};
    client_send_bytes(c, slice_of(vote, sizeof vote));
    world_run(f.world, 100);
    assert_true(c->closed);
}

static void a_malformed_body_closes_only_its_connection(void **unused)
{
    (void)unused;
    struct client *good = fixture_connect(&f, 0);
    struct client *bad = fixture_connect(&f, 1);
    const uint8_t huge[] = {0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff};
    client_send_bytes(bad, slice_of(huge, sizeof huge));
    world_run(f.world, 100);
    assert_true(bad->closed);
    assert_int_equal(client_produce(good, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
}

// ---- metadata -------------------------------------------------------------------------------------------

static struct kp_metadata_response *metadata(struct client *c, int16_t version, const char *topic)
{
    struct kp_metadata_request in;
    struct kp_metadata_request_metadata_request_topic t;
    kp_metadata_request_init(&in);
    kp_metadata_request_metadata_request_topic_init(&t);
    t.name = slice_str(topic);
    in.topics = topic != NULL ? &t : NULL;
    in.topics_count = topic != NULL ? 1 : -1;
    return client_call(c, KP_API_METADATA, version, &in);
}

static void metadata_answers_every_version(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    for (int16_t v = 0; v <= KP_METADATA_REQUEST_MAX_VERSION; v++) {
        struct kp_metadata_response *out = metadata(c, v, "t");
        assert_int_equal(out->brokers_count, 2);
        assert_int_equal(out->topics_count, 1);
        assert_int_equal(out->topics[0].error_code, KE_NONE);
        assert_int_equal(out->topics[0].partitions_count, 2);
        assert_int_equal(out->topics[0].partitions[0].leader_id, 1);
    }
}

static void null_topics_are_all_and_empty_ones_are_none(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(metadata(c, 12, NULL)->topics_count, 6);
    struct kp_metadata_request none;
    kp_metadata_request_init(&none);
    none.topics_count = 0;
    assert_int_equal(
        ((struct kp_metadata_response *)client_call(c, KP_API_METADATA, 12, &none))->topics_count, 0);
    assert_int_equal(((struct kp_metadata_response *)client_call(c, KP_API_METADATA, 0, &none))->topics_count,
                     6);
}

static void a_missing_topic_is_asked_of_the_controller(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_metadata_response *out = metadata(c, 12, "new-topic");
    assert_int_equal(f.created_topics, 1);
    assert_int_equal(out->topics[0].error_code, KE_LEADER_NOT_AVAILABLE);
    out = metadata(c, 12, "bad name");
    assert_int_equal(f.created_topics, 1);
    assert_int_equal(out->topics[0].error_code, KE_INVALID_TOPIC_EXCEPTION);
}

static void topics_are_described_page_by_page(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_describe_topic_partitions_request in;
    struct kp_describe_topic_partitions_request_cursor at;
    kp_describe_topic_partitions_request_init(&in);
    in.response_partition_limit = 1;
    const char *const expected[] = {"elsewhere", "flushed", "short", "small", "t", "t", "wide"};
    for (unsigned i = 0; i < 7; i++) {
        struct kp_describe_topic_partitions_response *out =
            client_call(c, KP_API_DESCRIBE_TOPIC_PARTITIONS, 0, &in);
        assert_int_equal(out->topics_count, 1);
        assert_true(slice_equal_str(out->topics[0].name, expected[i]));
        assert_int_equal(out->topics[0].partitions_count, 1);
        assert_int_equal(out->next_cursor == NULL, false);
        if (out->next_cursor != NULL) {
            at = (struct kp_describe_topic_partitions_request_cursor){
                .topic_name = out->next_cursor->topic_name,
                .partition_index = out->next_cursor->partition_index};
            in.cursor = &at;
        }
    }
}

// ---- produce --------------------------------------------------------------------------------------------

static void a_batch_gets_offsets_and_can_be_fetched(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 3, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 0);
    assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 2, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 3);
    struct kp_fetch_response *out = client_fetch(c, 0, 0);
    assert_int_equal(out->responses[0].partitions[0].error_code, KE_NONE);
    assert_int_equal(out->responses[0].partitions[0].high_watermark, 5);
    const uint8_t *b = out->responses[0].partitions[0].records.bytes.data;
    assert_int_equal(batch_base_offset(b), 0);
    assert_int_equal(batch_count(b), 3);
    assert_int_equal(batch_base_offset(b + batch_size(b)), 3);
    assert_int_equal(batch_leader_epoch(b), 0);
    assert_int_equal(batch_check_crc(b, NULL), 0);
}

static void pipelined_batches_keep_their_order(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    for (int i = 0; i < 64; i++) {
        client_send_produce(c, "t", i % 2, 1, fixture_batch(&f, 1, -1, -1));
    }
    for (int i = 0; i < 64; i++) {
        struct kp_produce_response *out = client_receive(c, KP_API_PRODUCE, 9);
        assert_int_equal(out->responses[0].partition_responses[0].index, i % 2);
        assert_int_equal(out->responses[0].partition_responses[0].base_offset, i / 2);
    }
}

static void acks_0_is_not_answered(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    client_send_produce(c, "t", 0, 0, fixture_batch(&f, 1, -1, -1));
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 1);
    assert_false(client_has_reply(c));
}

static void acks_0_with_an_error_closes_the_connection(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    client_send_produce(c, "missing", 0, 0, fixture_batch(&f, 1, -1, -1));
    world_run(f.world, 100);
    assert_true(c->closed);
}

static void other_acks_are_refused(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "t", 0, 2, fixture_batch(&f, 1, -1, -1), NULL),
                     KE_INVALID_REQUIRED_ACKS);
}

static void partitions_that_do_not_exist_have_their_own_error(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    const partition_id bad[] = {-1, 2, INT32_MIN, INT32_MAX};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(client_produce(c, "t", bad[i], 1, fixture_batch(&f, 1, -1, -1), NULL),
                         KE_UNKNOWN_TOPIC_OR_PARTITION);
    }
    assert_int_equal(client_produce(c, "elsewhere", 0, 1, fixture_batch(&f, 1, -1, -1), NULL),
                     KE_NOT_LEADER_OR_FOLLOWER);
}

static void damaged_batches_store_nothing_and_keep_the_connection(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct slice good = fixture_batch(&f, 1, -1, -1);
    uint8_t *bad = arena_dup(&f.arena, good.data, good.len);
    bad[good.len - 1] ^= 1;
    assert_int_equal(client_produce(c, "t", 0, 1, slice_of(bad, good.len), NULL), KE_CORRUPT_MESSAGE);
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 0, 1, good, &base), KE_NONE);
    assert_int_equal(base, 0);
}

static void a_batch_above_max_message_bytes_is_refused(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "small", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    assert_int_equal(client_produce(c, "small", 0, 1, fixture_batch(&f, 20, -1, -1), NULL),
                     KE_MESSAGE_TOO_LARGE);
}

static void a_repeated_batch_is_answered_with_its_first_offset(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    log_offset base = -1;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 1, 77, i), &base), KE_NONE);
        assert_int_equal(base, i);
    }
    for (int i = 1; i < 6; i++) {
        assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 1, 77, i), &base), KE_NONE);
        assert_int_equal(base, i);
    }
    assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 1, 77, 0), &base),
                     KE_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(client_produce(c, "t", 0, -1, fixture_batch(&f, 1, 77, 8), &base),
                     KE_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

static void sequences_in_one_turn_follow_each_other(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    const int32_t sequences[] = {0, 1, 2, 2, 4, 3};
    const int16_t errors[] = {0, 0, 0, 0, KE_OUT_OF_ORDER_SEQUENCE_NUMBER, 0};
    const log_offset bases[] = {0, 1, 2, 2, -1, 3};
    for (int i = 0; i < 6; i++) {
        client_send_produce(c, "t", 0, 1, fixture_batch(&f, 1, 5, sequences[i]));
    }
    for (int i = 0; i < 6; i++) {
        struct kp_produce_response *out = client_receive(c, KP_API_PRODUCE, 9);
        assert_int_equal(out->responses[0].partition_responses[0].error_code, errors[i]);
        assert_int_equal(out->responses[0].partition_responses[0].base_offset, bases[i]);
    }
}

static void a_topic_that_asks_for_a_flush_is_on_disk_before_the_answer(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    uint64_t before = vfs_faulty_calls(world_host_disk(f.host), VFS_CALL_SYNC);
    assert_int_equal(client_produce(c, "flushed", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    assert_true(vfs_faulty_calls(world_host_disk(f.host), VFS_CALL_SYNC) > before);
    assert_int_equal(client_produce(c, "flushed", 0, -1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
}

// A retry is as good as what it repeats: it too waits until that is on disk.
static void a_repeated_batch_waits_for_the_flush_of_the_first(void **unused)
{
    (void)unused;
    struct client *a = fixture_connect(&f, 0), *b = fixture_connect(&f, 1);
    const uint32_t slow_us = 500000;
    world_host_set_disk_us(f.host, slow_us, slow_us);
    mono_us begun = world_now(f.world);
    client_send_produce(a, "flushed", 0, 1, fixture_batch(&f, 1, 5, 0));
    client_send_produce(b, "flushed", 0, 1, fixture_batch(&f, 1, 5, 0));
    struct kp_produce_response *out = client_receive(b, KP_API_PRODUCE, 9);
    assert_int_equal(out->responses[0].partition_responses[0].error_code, KE_NONE);
    assert_int_equal(out->responses[0].partition_responses[0].base_offset, 0);
    assert_true(world_now(f.world) - begun >= slow_us);
    client_receive(a, KP_API_PRODUCE, 9);
}

static void a_full_disk_refuses_produce_and_serves_reads(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), NULL), KE_NONE);
    vfs_faulty_fail(world_host_disk(f.host), VFS_CALL_WRITE, 1, ERR_NOSPACE, true, true);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), NULL),
                     KE_KAFKA_STORAGE_ERROR);
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 2);
    vfs_faulty_heal(world_host_disk(f.host));
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 2);
}

static void a_failed_write_takes_the_directory_offline(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), NULL), KE_NONE);
    f.disk_failed = true;
    vfs_faulty_fail(world_host_disk(f.host), VFS_CALL_WRITE, 1, ERR_IO, false, true);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), NULL),
                     KE_KAFKA_STORAGE_ERROR);
    assert_int_equal(client_produce(c, "t", 1, 1, fixture_batch(&f, 2, -1, -1), NULL),
                     KE_KAFKA_STORAGE_ERROR);
    vfs_faulty_heal(world_host_disk(f.host));
}

static void what_was_acknowledged_is_there_after_a_clean_stop_and_after_a_kill(void **unused)
{
    (void)unused;
    log_offset base = -1;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 3, 42, 0), NULL), KE_NONE);
    fixture_restart(&f, true);
    c = fixture_connect(&f, 1);
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 3);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 3, 42, 0), &base),
                     KE_NONE); // still known as stored
    assert_int_equal(base, 0);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 3, 42, 3), &base), KE_NONE);
    assert_int_equal(base, 3);
    fixture_restart(&f, false);
    c = fixture_connect(&f, 2);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 3, 42, 3), &base), KE_NONE);
    assert_int_equal(base, 3);
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 6);
}

static void producer_ids_come_from_the_controllers_block(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_init_producer_id_request in;
    kp_init_producer_id_request_init(&in);
    in.transactional_id = SLICE_NULL;
    struct kp_init_producer_id_response *out = client_call(c, KP_API_INIT_PRODUCER_ID, 4, &in);
    assert_int_equal(out->error_code, KE_NONE);
    assert_int_equal(out->producer_id, 1000);
    assert_int_equal(out->producer_epoch, 0);
}

static struct kp_produce_response_partition_produce_response *produce_answer(struct client *c,
                                                                             struct slice batch)
{
    client_send_produce(c, "t", 0, 1, batch);
    struct kp_produce_response *out = client_receive(c, KP_API_PRODUCE, 9);
    return &out->responses[0].partition_responses[0];
}

static void a_producer_without_a_sequence_is_refused(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(produce_answer(c, fixture_batch(&f, 1, 9, -1))->error_code, KE_INVALID_RECORD);
}

static void transactional_records_need_a_transactional_id(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct slice plain = fixture_batch(&f, 1, 9, 0);
    uint8_t *batch = arena_dup(&f.arena, plain.data, plain.len);
    batch_set_attributes(batch, BATCH_TRANSACTIONAL);
    batch_seal(batch);
    assert_int_equal(produce_answer(c, slice_of(batch, plain.len))->error_code,
                     KE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
}

static void a_refused_batch_is_told_the_log_start(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(produce_answer(c, fixture_batch(&f, 1, 9, 0))->error_code, KE_NONE);
    assert_int_equal(produce_answer(c, fixture_batch(&f, 1, 9, 5))->log_start_offset, 0);
    struct slice good = fixture_batch(&f, 1, -1, -1);
    uint8_t *bad = arena_dup(&f.arena, good.data, good.len);
    bad[good.len - 1] ^= 1;
    assert_int_equal(produce_answer(c, slice_of(bad, good.len))->log_start_offset, -1);
}

static void topics_are_not_found_by_id_before_version_12(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_metadata_request in;
    struct kp_metadata_request_metadata_request_topic t;
    kp_metadata_request_init(&in);
    kp_metadata_request_metadata_request_topic_init(&t);
    t.name = SLICE_LIT("t");
    t.topic_id.b[3] = 1;
    in.topics = &t;
    in.topics_count = 1;
    struct kp_metadata_response *out = client_call(c, KP_API_METADATA, 11, &in);
    assert_int_equal(out->topics[0].error_code, KE_INVALID_REQUEST);
    t.name = SLICE_NULL;
    out = client_call(c, KP_API_METADATA, 12, &in);
    assert_int_equal(out->topics[0].error_code, KE_NONE);
    assert_true(slice_equal_str(out->topics[0].name, "t"));
}

static void api_versions_wants_cluster_and_node_together(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_api_versions_request in;
    kp_api_versions_request_init(&in);
    in.client_software_name = SLICE_LIT("test");
    in.client_software_version = SLICE_LIT("1.0");
    in.node_id = 1;
    struct kp_api_versions_response *out = client_call(c, KP_API_API_VERSIONS, 5, &in);
    assert_int_equal(out->error_code, KE_INVALID_REQUEST);
    in.cluster_id = slice_str(f.listener.cluster_id);
    out = client_call(c, KP_API_API_VERSIONS, 5, &in);
    assert_int_equal(out->error_code, KE_NONE);
    in.node_id = 2;
    out = client_call(c, KP_API_API_VERSIONS, 5, &in);
    assert_int_equal(out->error_code, KE_REBOOTSTRAP_REQUIRED);
}

#define BROKER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BROKER_TEST(api_versions_answers_every_version),
        BROKER_TEST(produce_is_advertised_from_version_0),
        BROKER_TEST(an_unknown_version_of_api_versions_is_answered_in_version_0),
        BROKER_TEST(a_client_of_another_cluster_is_sent_to_bootstrap),
        BROKER_TEST(what_is_not_served_closes_the_connection),
        BROKER_TEST(a_malformed_body_closes_only_its_connection),
        BROKER_TEST(metadata_answers_every_version),
        BROKER_TEST(null_topics_are_all_and_empty_ones_are_none),
        BROKER_TEST(a_missing_topic_is_asked_of_the_controller),
        BROKER_TEST(topics_are_described_page_by_page),
        BROKER_TEST(a_batch_gets_offsets_and_can_be_fetched),
        BROKER_TEST(pipelined_batches_keep_their_order),
        BROKER_TEST(acks_0_is_not_answered),
        BROKER_TEST(acks_0_with_an_error_closes_the_connection),
        BROKER_TEST(other_acks_are_refused),
        BROKER_TEST(partitions_that_do_not_exist_have_their_own_error),
        BROKER_TEST(damaged_batches_store_nothing_and_keep_the_connection),
        BROKER_TEST(a_batch_above_max_message_bytes_is_refused),
        BROKER_TEST(a_repeated_batch_is_answered_with_its_first_offset),
        BROKER_TEST(sequences_in_one_turn_follow_each_other),
        BROKER_TEST(a_topic_that_asks_for_a_flush_is_on_disk_before_the_answer),
        BROKER_TEST(a_repeated_batch_waits_for_the_flush_of_the_first),
        BROKER_TEST(a_full_disk_refuses_produce_and_serves_reads),
        BROKER_TEST(a_failed_write_takes_the_directory_offline),
        BROKER_TEST(what_was_acknowledged_is_there_after_a_clean_stop_and_after_a_kill),
        BROKER_TEST(producer_ids_come_from_the_controllers_block),
        BROKER_TEST(a_producer_without_a_sequence_is_refused),
        BROKER_TEST(transactional_records_need_a_transactional_id),
        BROKER_TEST(a_refused_batch_is_told_the_log_start),
        BROKER_TEST(topics_are_not_found_by_id_before_version_12),
        BROKER_TEST(api_versions_wants_cluster_and_node_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
