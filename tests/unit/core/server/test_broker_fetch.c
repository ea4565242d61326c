// SPDX-License-Identifier: Apache-2.0
// Fetch, offsets and metadata changes of a broker in the simulated world.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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

// ---- fetch ----------------------------------------------------------------------------------------------

static void an_empty_fetch_waits_its_time(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    mono_us before = world_now(f.world);
    struct kp_fetch_response *out = client_fetch(c, 0, 500);
    assert_int_equal(out->responses[0].partitions[0].records.bytes.len, 0);
    assert_true(world_now(f.world) - before >= 500000);
    assert_true(world_now(f.world) - before < 600000);
}

static void an_append_wakes_a_waiting_fetch(void **unused)
{
    (void)unused;
    struct client *reader = fixture_connect(&f, 0);
    struct client *writer = fixture_connect(&f, 1);
    client_send_fetch(reader, 0, 30000, 1);
    world_run(f.world, 1000);
    assert_false(client_has_reply(reader));
    assert_int_equal(client_produce(writer, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    world_run(f.world, 10);
    assert_true(client_has_reply(reader));
    struct kp_fetch_response *out = client_receive(reader, KP_API_FETCH, 12);
    assert_true(out->responses[0].partitions[0].records.bytes.len > 0);
}

static void a_fetch_waits_for_min_bytes(void **unused)
{
    (void)unused;
    struct client *reader = fixture_connect(&f, 0);
    struct client *writer = fixture_connect(&f, 1);
    client_send_fetch(reader, 0, 30000, 150);
    assert_int_equal(client_produce(writer, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    world_run(f.world, 100);
    assert_false(client_has_reply(reader));
    assert_int_equal(client_produce(writer, "t", 0, 1, fixture_batch(&f, 10, -1, -1), NULL), KE_NONE);
    world_run(f.world, 100);
    assert_true(client_has_reply(reader));
}

static void a_reader_that_goes_away_while_it_waits_leaves_nothing_behind(void **unused)
{
    (void)unused;
    struct client *reader = fixture_connect(&f, 0);
    struct client *writer = fixture_connect(&f, 1);
    client_send_fetch(reader, 0, 30000, 1);
    world_run(f.world, 100);
    world_crash(f.client_host, false);
    world_run(f.world, 100);
    (void)world_boot(f.client_host);
    writer = fixture_connect(&f, 2);
    assert_int_equal(client_produce(writer, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    assert_int_equal(client_fetch(writer, 0, 0)->responses[0].partitions[0].high_watermark, 1);
}

static void offsets_outside_the_log_are_out_of_range(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL);
    assert_int_equal(client_fetch(c, 2, 1000)->responses[0].partitions[0].error_code, KE_OFFSET_OUT_OF_RANGE);
    assert_int_equal(client_fetch(c, -1, 1000)->responses[0].partitions[0].error_code,
                     KE_OFFSET_OUT_OF_RANGE);
    assert_int_equal(client_fetch(c, 1, 0)->responses[0].partitions[0].error_code, KE_NONE);
}

static void cold_bytes_are_read_ahead_and_then_sent(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 3, -1, -1), NULL);
    vfs_faulty_set_cached(world_host_disk(f.host), false);
    struct kp_fetch_response *out = client_fetch(c, 0, 500);
    assert_true(out->responses[0].partitions[0].records.bytes.len > 0);
}

// One incremental fetch of t-0.
static struct kp_fetch_response *incremental(struct client *c, int32_t session, int32_t epoch,
                                             bool with_topic, log_offset offset)
{
    struct kp_fetch_request in;
    struct kp_fetch_request_fetch_topic t;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&in);
    kp_fetch_request_fetch_topic_init(&t);
    kp_fetch_request_fetch_partition_init(&p);
    in.max_wait_ms = 500;
    in.min_bytes = 1;
    in.max_bytes = 1 << 20;
    in.session_id = session;
    in.session_epoch = epoch;
    in.topics = &t;
    in.topics_count = with_topic;
    t.topic_id.b[3] = 1;
    t.partitions = &p;
    t.partitions_count = 1;
    p.fetch_offset = offset;
    p.partition_max_bytes = 1 << 20;
    return client_call(c, KP_API_FETCH, 17, &in);
}

static void incremental_fetches_without_news_wait_and_tell_nothing(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_fetch_response *out = incremental(c, 0, 0, true, 0);
    int32_t session = out->session_id;
    assert_int_not_equal(session, 0);
    assert_int_equal(out->responses_count, 1);
    mono_us before = world_now(f.world);
    for (int32_t e = 1; e <= 10; e++) {
        out = incremental(c, session, e, false, 0);
        assert_int_equal(out->error_code, KE_NONE);
        assert_int_equal(out->responses_count, 0);
    }
    assert_true(world_now(f.world) - before >= 5000000);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL);
    before = world_now(f.world);
    out = incremental(c, session, 11, false, 0);
    assert_int_equal(out->responses_count, 1);
    assert_true(world_now(f.world) - before < 100000);
    out = incremental(c, session, 13, false, 0);
    assert_int_equal(out->error_code, KE_INVALID_FETCH_SESSION_EPOCH);
}

static void an_unknown_topic_id_is_told_at_once(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_fetch_request in;
    struct kp_fetch_request_fetch_topic t;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&in);
    kp_fetch_request_fetch_topic_init(&t);
    kp_fetch_request_fetch_partition_init(&p);
    in.max_wait_ms = 30000;
    in.min_bytes = 1;
    in.topics = &t;
    in.topics_count = 1;
    t.topic_id.b[3] = 99;
    t.partitions = &p;
    t.partitions_count = 1;
    mono_us before = world_now(f.world);
    struct kp_fetch_response *out = client_call(c, KP_API_FETCH, 17, &in);
    assert_int_equal(out->responses[0].partitions[0].error_code, KE_UNKNOWN_TOPIC_ID);
    assert_true(world_now(f.world) - before < 100000);
}

// ---- offsets --------------------------------------------------------------------------------------------

static struct kp_list_offsets_response_list_offsets_partition_response *list(struct client *c,
                                                                             int16_t version, int64_t time)
{
    struct kp_list_offsets_request in;
    struct kp_list_offsets_request_list_offsets_topic t;
    struct kp_list_offsets_request_list_offsets_partition p;
    kp_list_offsets_request_init(&in);
    kp_list_offsets_request_list_offsets_topic_init(&t);
    kp_list_offsets_request_list_offsets_partition_init(&p);
    in.replica_id = -1;
    in.topics = &t;
    in.topics_count = 1;
    t.name = SLICE_LIT("t");
    t.partitions = &p;
    t.partitions_count = 1;
    p.timestamp = time;
    struct kp_list_offsets_response *out = client_call(c, KP_API_LIST_OFFSETS, version, &in);
    return &out->topics[0].partitions[0];
}

static void a_new_topic_begins_and_ends_at_0(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(list(c, 9, -1)->offset, 0);
    assert_int_equal(list(c, 9, -2)->offset, 0);
    assert_int_equal(list(c, 9, -4)->offset, 0);
}

static void offsets_are_found_by_time(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 3, -1, -1), NULL); // timestamps 1000, 1001, 1002
    assert_int_equal(list(c, 9, -1)->offset, 3);
    assert_int_equal(list(c, 9, 0)->offset, 0);
    assert_int_equal(list(c, 9, 1001)->offset, 1);
    assert_int_equal(list(c, 9, 1001)->timestamp, 1001);
    assert_int_equal(list(c, 9, -3)->offset, 2);
    assert_int_equal(list(c, 9, 5000)->offset, -1);
    assert_int_equal(list(c, 9, 5000)->error_code, KE_NONE);
    assert_int_equal(list(c, 11, -6)->offset, -1);
}

static void special_times_need_their_version(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(list(c, 6, -3)->error_code, KE_UNSUPPORTED_VERSION);
    assert_int_equal(list(c, 11, -9)->error_code, KE_UNSUPPORTED_VERSION);
}

static void deleted_records_are_gone_for_fetch_and_offsets(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 3, -1, -1), NULL);
    struct kp_delete_records_request in;
    struct kp_delete_records_request_delete_records_topic t;
    struct kp_delete_records_request_delete_records_partition p;
    kp_delete_records_request_init(&in);
    kp_delete_records_request_delete_records_topic_init(&t);
    kp_delete_records_request_delete_records_partition_init(&p);
    in.timeout_ms = 1000;
    in.topics = &t;
    in.topics_count = 1;
    t.name = SLICE_LIT("t");
    t.partitions = &p;
    t.partitions_count = 1;
    p.offset = 2;
    struct kp_delete_records_response *out = client_call(c, KP_API_DELETE_RECORDS, 2, &in);
    assert_int_equal(out->topics[0].partitions[0].error_code, KE_NONE);
    assert_int_equal(out->topics[0].partitions[0].low_watermark, 2);
    assert_int_equal(list(c, 9, -2)->offset, 2);
    assert_int_equal(list(c, 9, 0)->offset, 2);
    assert_int_equal(client_fetch(c, 1, 0)->responses[0].partitions[0].error_code, KE_OFFSET_OUT_OF_RANGE);
    p.offset = 10;
    out = client_call(c, KP_API_DELETE_RECORDS, 2, &in);
    assert_int_equal(out->topics[0].partitions[0].error_code, KE_OFFSET_OUT_OF_RANGE);
    p.offset = -1;
    out = client_call(c, KP_API_DELETE_RECORDS, 2, &in);
    assert_int_equal(out->topics[0].partitions[0].low_watermark, 3);
}

static void log_directories_list_their_partitions(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_describe_log_dirs_request in;
    kp_describe_log_dirs_request_init(&in);
    in.topics_count = -1;
    struct kp_describe_log_dirs_response *out = client_call(c, KP_API_DESCRIBE_LOG_DIRS, 4, &in);
    assert_int_equal(out->results_count, 1);
    assert_int_equal(out->results[0].error_code, KE_NONE);
    assert_int_equal(out->results[0].topics_count, 5);
}

// ---- metadata changes -----------------------------------------------------------------------------------

static void remove_t(struct record_list *l)
{
    record_list_add(l, METADATA_REMOVE_TOPIC, 0)->body.remove_topic.topic_id.b[3] = 1;
}

static void create_t_again(struct record_list *l)
{
    static int32_t self = 1;
    struct kp_topic_record *t = &record_list_add(l, METADATA_TOPIC, 0)->body.topic;
    t->name = SLICE_LIT("t");
    t->topic_id.b[3] = 50;
    struct kp_partition_record *p = &record_list_add(l, METADATA_PARTITION, 0)->body.partition;
    p->topic_id.b[3] = 50;
    p->partition_id = 0;
    p->replicas = p->isr = &self;
    p->replicas_count = p->isr_count = 1;
    p->leader = 1;
    p->leader_epoch = p->partition_epoch = 0;
}

static void raise_max_message_bytes(struct record_list *l)
{
    struct kp_config_record *c = &record_list_add(l, METADATA_CONFIG, 0)->body.config;
    c->resource_type = 2;
    c->resource_name = SLICE_LIT("small");
    c->name = SLICE_LIT("max.message.bytes");
    c->value = SLICE_LIT("100000");
}

static void lead_t_by_nobody(struct record_list *l)
{
    struct kp_partition_change_record *p =
        &record_list_add(l, METADATA_PARTITION_CHANGE, 0)->body.partition_change;
    p->topic_id.b[3] = 1;
    p->partition_id = 0;
    p->leader = -1;
}

static void a_deleted_topic_ends_its_waits(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL);
    client_send_fetch(c, 1, 30000, 1);
    world_run(f.world, 100);
    assert_false(client_has_reply(c));
    fixture_change(&f, remove_t);
    world_run(f.world, 100);
    assert_true(client_has_reply(c));
    struct kp_fetch_response *out = client_receive(c, KP_API_FETCH, 12);
    assert_int_equal(out->responses[0].partitions[0].error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL),
                     KE_UNKNOWN_TOPIC_OR_PARTITION);
}

static void a_topic_made_again_is_empty(void **unused)
{
    (void)unused;
    log_offset base = -1;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 7, -1, -1), NULL);
    fixture_change(&f, remove_t);
    fixture_change(&f, create_t_again);
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 0);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 0);
    world_run(f.world, 70000); // past file.delete.delay.ms: the old files go, the new ones stay
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 1);
}

static void a_changed_topic_configuration_holds_at_once(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "small", 0, 1, fixture_batch(&f, 20, -1, -1), NULL),
                     KE_MESSAGE_TOO_LARGE);
    fixture_change(&f, raise_max_message_bytes);
    assert_int_equal(client_produce(c, "small", 0, 1, fixture_batch(&f, 20, -1, -1), NULL), KE_NONE);
}

static void lost_leadership_wakes_readers_and_refuses_writers(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    client_send_fetch(c, 0, 30000, 1);
    world_run(f.world, 100);
    fixture_change(&f, lead_t_by_nobody);
    world_run(f.world, 100);
    assert_true(client_has_reply(c));
    struct kp_fetch_response *out = client_receive(c, KP_API_FETCH, 12);
    assert_int_equal(out->responses[0].partitions[0].error_code, KE_FENCED_LEADER_EPOCH);
    assert_int_equal(client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL),
                     KE_NOT_LEADER_OR_FOLLOWER);
}

// ---- retention and directories --------------------------------------------------------------------------

static log_offset earliest(struct client *c, const char *topic)
{
    struct kp_list_offsets_request in;
    struct kp_list_offsets_request_list_offsets_topic t;
    struct kp_list_offsets_request_list_offsets_partition p;
    kp_list_offsets_request_init(&in);
    kp_list_offsets_request_list_offsets_topic_init(&t);
    kp_list_offsets_request_list_offsets_partition_init(&p);
    in.replica_id = -1;
    in.topics = &t;
    in.topics_count = 1;
    t.name = slice_str(topic);
    t.partitions = &p;
    t.partitions_count = 1;
    p.timestamp = -2;
    return ((struct kp_list_offsets_response *)client_call(c, KP_API_LIST_OFFSETS, 9, &in))
        ->topics[0]
        .partitions[0]
        .offset;
}

static void old_segments_go_by_time(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    assert_int_equal(client_produce(c, "short", 0, 1, fixture_batch(&f, 5, -1, -1), NULL), KE_NONE);
    world_run(f.world, 40000); // past segment.ms: the next batch begins a new segment
    assert_int_equal(client_produce(c, "short", 0, 1, fixture_batch(&f, 1, -1, -1), NULL), KE_NONE);
    assert_int_equal(earliest(c, "short"), 0);
    world_run(f.world, 300000); // a retention check later
    assert_true(earliest(c, "short") >= 5);
    log_offset base = -1;
    assert_int_equal(client_produce(c, "short", 0, 1, fixture_batch(&f, 1, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 6);
}

static struct kp_describe_log_dirs_response *log_dirs(struct client *c)
{
    struct kp_describe_log_dirs_request in;
    kp_describe_log_dirs_request_init(&in);
    in.topics_count = -1;
    return client_call(c, KP_API_DESCRIBE_LOG_DIRS, 4, &in);
}

static int32_t partitions_in(const struct kp_describe_log_dirs_response *out, int dir)
{
    int32_t n = 0;
    for (int32_t i = 0; i < out->results[dir].topics_count; i++) {
        n += out->results[dir].topics[i].partitions_count;
    }
    return n;
}

static int setup_two_dirs(void **state)
{
    (void)state;
    fixture_start_with(&f, 1, 2);
    return 0;
}

static void partitions_are_spread_over_the_directories_and_stay_there(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    struct kp_describe_log_dirs_response *out = log_dirs(c);
    assert_int_equal(out->results_count, 2);
    assert_in_range(partitions_in(out, 0), 8, 9);
    assert_int_equal(partitions_in(out, 0) + partitions_in(out, 1), 17);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 2, -1, -1), NULL);
    (void)client_produce(c, "t", 1, 1, fixture_batch(&f, 4, -1, -1), NULL);
    fixture_restart(&f, true);
    c = fixture_connect(&f, 1);
    assert_int_equal(client_fetch(c, 0, 0)->responses[0].partitions[0].high_watermark, 2);
    log_offset base = -1;
    assert_int_equal(client_produce(c, "t", 1, 1, fixture_batch(&f, 1, -1, -1), &base), KE_NONE);
    assert_int_equal(base, 4);
}

static void a_failed_directory_leaves_the_other_one_serving(void **unused)
{
    (void)unused;
    struct client *c = fixture_connect(&f, 0);
    (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL);
    (void)client_produce(c, "t", 1, 1, fixture_batch(&f, 1, -1, -1), NULL);
    f.disk_failed = true;
    vfs_faulty_fail_path(world_host_disk(f.host), "/more/");
    vfs_faulty_fail(world_host_disk(f.host), VFS_CALL_WRITE, 1, ERR_IO, true, false);
    int16_t first = client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), NULL);
    int16_t second = client_produce(c, "t", 1, 1, fixture_batch(&f, 1, -1, -1), NULL);
    assert_true((first == KE_NONE) != (second == KE_NONE));
    assert_true(first == KE_KAFKA_STORAGE_ERROR || second == KE_KAFKA_STORAGE_ERROR);
    struct kp_describe_log_dirs_response *out = log_dirs(c);
    assert_int_equal(out->results[0].error_code, KE_NONE);
    assert_int_equal(out->results[1].error_code, KE_KAFKA_STORAGE_ERROR);
    vfs_faulty_heal(world_host_disk(f.host));
}

// ---- memory ---------------------------------------------------------------------------------------------

static void round_of_requests(struct client *c, log_offset *end)
{
    for (int i = 0; i < 20; i++) {
        (void)client_produce(c, "t", 0, 1, fixture_batch(&f, 1, -1, -1), end);
        (void)client_fetch(c, *end, 0);
    }
    for (unsigned i = 0; i < c->replies_count; i++) {
        free((void *)(uintptr_t)c->replies[i].data);
    }
    c->replies_taken = c->replies_count = 0;
}

static void requests_leave_no_memory_behind(void **unused)
{
    (void)unused;
    log_offset end = 0;
    struct client *c = fixture_connect(&f, 0);
    round_of_requests(c, &end);
    uint64_t before = world_host_memory(f.host);
    for (int i = 0; i < 10; i++) {
        round_of_requests(c, &end);
    }
    assert_true(world_host_memory(f.host) <= before + 4096); // the sparse index may grow
}

#define BROKER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BROKER_TEST(an_empty_fetch_waits_its_time),
        BROKER_TEST(an_append_wakes_a_waiting_fetch),
        BROKER_TEST(a_fetch_waits_for_min_bytes),
        BROKER_TEST(a_reader_that_goes_away_while_it_waits_leaves_nothing_behind),
        BROKER_TEST(offsets_outside_the_log_are_out_of_range),
        BROKER_TEST(cold_bytes_are_read_ahead_and_then_sent),
        BROKER_TEST(incremental_fetches_without_news_wait_and_tell_nothing),
        BROKER_TEST(an_unknown_topic_id_is_told_at_once),
        BROKER_TEST(a_new_topic_begins_and_ends_at_0),
        BROKER_TEST(offsets_are_found_by_time),
        BROKER_TEST(special_times_need_their_version),
        BROKER_TEST(deleted_records_are_gone_for_fetch_and_offsets),
        BROKER_TEST(log_directories_list_their_partitions),
        BROKER_TEST(a_deleted_topic_ends_its_waits),
        BROKER_TEST(a_topic_made_again_is_empty),
        BROKER_TEST(a_changed_topic_configuration_holds_at_once),
        BROKER_TEST(lost_leadership_wakes_readers_and_refuses_writers),
        BROKER_TEST(old_segments_go_by_time),
        cmocka_unit_test_setup_teardown(partitions_are_spread_over_the_directories_and_stay_there,
                                        setup_two_dirs, teardown),
        cmocka_unit_test_setup_teardown(a_failed_directory_leaves_the_other_one_serving, setup_two_dirs,
                                        teardown),
        BROKER_TEST(requests_leave_no_memory_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
