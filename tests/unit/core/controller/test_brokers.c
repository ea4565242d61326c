// SPDX-License-Identifier: Apache-2.0
// Registration, heartbeats, fencing, controlled shutdown, unregistration.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/protocol/gen/allocate_producer_ids_request.h"
#include "core/protocol/gen/allocate_producer_ids_response.h"
#include "core/protocol/gen/assign_replicas_to_dirs_request.h"
#include "core/protocol/gen/assign_replicas_to_dirs_response.h"
#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"
#include "tests/unit/core/controller/cluster.h"

static int start(void **state)
{
    static struct cluster k;
    cluster_init(&k);
    cluster_brokers(&k, 1, 3);
    *state = &k;
    return 0;
}

static int stop(void **state)
{
    cluster_fini(*state);
    return 0;
}

static void an_empty_cluster_gets_its_metadata_version_first(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(image_metadata_version(k->img), METADATA_VERSION_DEFAULT);
    controller_activate(cluster_op(k), NULL, 0, &k->records);
    assert_int_equal(k->records.count, 0);
}

static void the_broker_epoch_is_the_offset_of_the_registration(void **state)
{
    struct cluster *k = *state;
    log_offset next = image_offset(k->img) + 1;
    assert_int_equal(cluster_register(k, cluster_registration(k, 9, 900, NULL)), KE_NONE);
    assert_int_equal(image_broker(k->img, 9)->epoch, next);
    assert_true(image_broker(k->img, 9)->fenced);
}

static void a_broker_of_another_cluster_is_refused(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 9, 900, NULL);
    in->cluster_id = SLICE_LIT("other");
    assert_int_equal(cluster_register(k, in), KE_INCONSISTENT_CLUSTER_ID);
    assert_non_null(strstr((const char *)k->c.why.data, "cluster other"));
    assert_null(image_broker(k->img, 9));
}

static void a_second_live_process_under_one_id_is_refused(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 2, 902, "r2");
    in->log_dirs[0] = uuid_number(77);
    assert_int_equal(cluster_register(k, in), KE_DUPLICATE_BROKER_REGISTRATION);
    k->c.now = 9000000;
    assert_int_equal(cluster_register(k, in), KE_NONE);
}

static void a_restarted_process_shows_its_directories_and_is_let_in_at_once(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 2, 902, "r2");
    assert_int_equal(cluster_register(k, in), KE_NONE);
    assert_true(image_broker(k->img, 2)->fenced);
    in->incarnation_id = uuid_number(903);
    in->listeners[0].host = SLICE_LIT("elsewhere");
    (void)cluster_beat(k, 2, false, false);
    assert_int_equal(cluster_register(k, in), KE_DUPLICATE_BROKER_REGISTRATION);
}

static void the_same_process_may_register_again_and_stays_as_it_is(void **state)
{
    struct cluster *k = *state;
    broker_epoch old = image_broker(k->img, 2)->epoch;
    assert_int_equal(cluster_register(k, cluster_registration(k, 2, 102, "r2")), KE_NONE);
    assert_true(image_broker(k->img, 2)->epoch > old);
    assert_false(image_broker(k->img, 2)->fenced);
}

static void a_broker_that_lacks_a_finalized_level_is_refused(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 9, 900, NULL);
    in->features_count = 0;
    assert_int_equal(cluster_register(k, in), KE_UNSUPPORTED_VERSION);
}

static void directories_must_be_there_and_be_ones_own(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 9, 900, NULL);
    in->log_dirs[0] = uuid_number(5001);
    assert_int_equal(cluster_register(k, in), KE_INVALID_REGISTRATION);
    in->log_dirs[0] = UUID_DIR_LOST;
    assert_int_equal(cluster_register(k, in), KE_INVALID_REGISTRATION);
    in->log_dirs_count = 0;
    assert_int_equal(cluster_register(k, in), KE_INVALID_REGISTRATION);
}

static void a_broker_is_unfenced_only_after_it_has_its_own_registration(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_register(k, cluster_registration(k, 9, 900, NULL)), KE_NONE);
    struct kp_broker_heartbeat_request in;
    struct kp_broker_heartbeat_response out;
    kp_broker_heartbeat_request_init(&in);
    in.broker_id = 9;
    in.broker_epoch = image_broker(k->img, 9)->epoch;
    in.current_metadata_offset = in.broker_epoch - 1;
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    assert_true(out.is_fenced);
    assert_false(out.is_caught_up);
    assert_int_equal(k->records.count, 0);
    out = cluster_beat(k, 9, true, false);
    assert_true(out.is_fenced && out.is_caught_up);
    out = cluster_beat(k, 9, false, false);
    assert_false(out.is_fenced);
}

static void a_stale_epoch_gets_no_heartbeat(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_heartbeat_request in;
    struct kp_broker_heartbeat_response out;
    kp_broker_heartbeat_request_init(&in);
    in.broker_id = 2;
    in.broker_epoch = 0;
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.error_code, KE_STALE_BROKER_EPOCH);
    in.broker_id = 55;
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.error_code, KE_BROKER_ID_NOT_REGISTERED);
}

static void two_sessions_that_end_together_leave_no_trace_of_either(void **state)
{
    struct cluster *k = *state;
    static const int32_t all[] = {1, 2, 3}, other[] = {2, 1, 3};
    cluster_create_on(k, "a", all, 3);
    cluster_create_on(k, "b", other, 3);
    k->c.now = 8000000;
    (void)cluster_beat(k, 3, false, false);
    k->c.now = 10000000;
    controller_expire_sessions(cluster_op(k), &k->records);
    cluster_commit(k);
    assert_true(image_broker(k->img, 1)->fenced && image_broker(k->img, 2)->fenced);
    for (const char *topic = "a"; topic; topic = *topic == 'a' ? "b" : NULL) {
        assert_int_equal(cluster_part(k, topic, 0)->leader, 3);
        assert_int_equal(cluster_part(k, topic, 0)->isr_count, 1);
    }
    controller_expire_sessions(cluster_op(k), &k->records);
    assert_int_equal(k->records.count, 0);
}

static void sessions_start_at_zero_idle_time_on_a_new_controller(void **state)
{
    struct cluster *k = *state;
    k->c.now = 100000000;
    controller_sessions_reset(&k->sessions, k->c.now);
    controller_expire_sessions(cluster_op(k), &k->records);
    assert_int_equal(k->records.count, 0);
    k->c.now += 9000000;
    controller_expire_sessions(cluster_op(k), &k->records);
    assert_int_equal(k->records.count, 3);
}

static void a_gone_process_is_fenced_at_once_and_may_come_back_at_once(void **state)
{
    struct cluster *k = *state;
    static const int32_t one[] = {2};
    cluster_create_on(k, "solo", one, 1);
    cluster_gone(k, 2);
    assert_true(image_broker(k->img, 2)->fenced);
    assert_int_equal(cluster_part(k, "solo", 0)->leader, LEADER_NONE);
    assert_int_equal(cluster_part(k, "solo", 0)->isr_count, 1);
    controller_fence_gone_broker(cluster_op(k), 3, 0, &k->records);
    assert_int_equal(k->records.count, 0);
    struct kp_broker_registration_request *in = cluster_registration(k, 2, 902, "r2");
    in->log_dirs[0] = uuid_number(5002);
    assert_int_equal(cluster_register(k, in), KE_NONE);
    (void)cluster_beat(k, 2, false, false);
    assert_int_equal(cluster_part(k, "solo", 0)->leader, 2);
    assert_int_equal(cluster_part(k, "solo", 0)->epoch, 2);
}

static void a_stopping_broker_hands_its_leaderships_over_and_is_let_go(void **state)
{
    struct cluster *k = *state;
    static const int32_t all[] = {1, 2, 3};
    cluster_create_on(k, "a", all, 3);
    struct kp_broker_heartbeat_response out = cluster_beat(k, 1, false, true);
    assert_false(out.should_shut_down || out.is_fenced);
    assert_true(image_broker(k->img, 1)->in_controlled_shutdown);
    assert_int_equal(cluster_part(k, "a", 0)->leader, 2);
    assert_false(partition_in_isr(cluster_part(k, "a", 0), 1));
    // The others have not heard of it yet.
    out = cluster_beat(k, 1, false, true);
    assert_false(out.should_shut_down);
    (void)cluster_beat(k, 2, false, false);
    out = cluster_beat(k, 1, false, true);
    assert_false(out.should_shut_down);
    (void)cluster_beat(k, 3, false, false);
    out = cluster_beat(k, 1, false, true);
    assert_true(out.should_shut_down && out.is_fenced);
    assert_true(image_broker(k->img, 1)->fenced);
}

static void the_last_broker_stops_although_nobody_takes_its_partitions(void **state)
{
    struct cluster *k = *state;
    static const int32_t one[] = {1};
    cluster_create_on(k, "solo", one, 1);
    cluster_gone(k, 2);
    cluster_gone(k, 3);
    struct kp_broker_heartbeat_response out = cluster_beat(k, 1, false, true);
    assert_false(out.should_shut_down);
    assert_int_equal(cluster_part(k, "solo", 0)->leader, LEADER_NONE);
    out = cluster_beat(k, 1, false, true);
    assert_true(out.should_shut_down);
    assert_int_equal(cluster_part(k, "solo", 0)->isr_count, 1);
}

static void a_live_broker_is_not_unregistered(void **state)
{
    struct cluster *k = *state;
    struct kp_unregister_broker_request in = {.broker_id = 2};
    struct kp_unregister_broker_response out;
    controller_unregister_broker(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.error_code, KE_INVALID_REQUEST);
    cluster_gone(k, 2);
    controller_unregister_broker(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(out.error_code, KE_NONE);
    assert_true(slice_equal_str(out.error_message, ""));
    assert_null(image_broker(k->img, 2));
    controller_unregister_broker(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.error_code, KE_BROKER_ID_NOT_REGISTERED);
}

static void producer_ids_come_in_blocks_of_a_thousand(void **state)
{
    struct cluster *k = *state;
    struct kp_allocate_producer_ids_request in = {.broker_id = 1,
                                                  .broker_epoch = image_broker(k->img, 1)->epoch};
    struct kp_allocate_producer_ids_response out;
    for (int64_t i = 0; i < 3; i++) {
        controller_allocate_producer_ids(cluster_op(k), &in, &out, &k->records);
        cluster_commit(k);
        assert_int_equal(out.producer_id_start, i * 1000);
        assert_int_equal(out.producer_id_len, 1000);
    }
    in.broker_epoch++;
    controller_allocate_producer_ids(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.error_code, KE_STALE_BROKER_EPOCH);
}

static void a_failed_directory_moves_the_leaders_on_it_away(void **state)
{
    struct cluster *k = *state;
    static const int32_t all[] = {1, 2, 3};
    struct kp_broker_registration_request *reg = cluster_registration(k, 1, 101, "r1");
    reg->log_dirs = arena_alloc(&k->arena, 2 * sizeof *reg->log_dirs);
    reg->log_dirs[0] = uuid_number(6001);
    reg->log_dirs[1] = uuid_number(6002);
    reg->log_dirs_count = 2;
    assert_int_equal(cluster_register(k, reg), KE_NONE);
    cluster_create_on(k, "a", all, 3);
    assert_true(uuid_equal(partition_directory(cluster_part(k, "a", 0), 0), UUID_DIR_UNASSIGNED));
    assert_true(uuid_equal(partition_directory(cluster_part(k, "a", 0), 1), uuid_number(5002)));
    struct kp_assign_replicas_to_dirs_request assign;
    struct kp_assign_replicas_to_dirs_response assigned;
    kp_assign_replicas_to_dirs_request_init(&assign);
    assign.broker_id = 1;
    assign.broker_epoch = image_broker(k->img, 1)->epoch;
    struct kp_assign_replicas_to_dirs_request_partition_data part = {.partition_index = 0};
    struct kp_assign_replicas_to_dirs_request_topic_data topic = {
        .topic_id = topic_id(image_topic_named(k->img, SLICE_LIT("a"))),
        .partitions = &part,
        .partitions_count = 1};
    struct kp_assign_replicas_to_dirs_request_directory_data dir = {
        .id = uuid_number(6001), .topics = &topic, .topics_count = 1};
    assign.directories = &dir;
    assign.directories_count = 1;
    controller_assign_replicas_to_dirs(cluster_op(k), &assign, &assigned, &k->records);
    cluster_commit(k);
    assert_int_equal(assigned.directories[0].topics[0].partitions[0].error_code, KE_NONE);
    assert_int_equal(cluster_part(k, "a", 0)->epoch, 0);
    assert_true(uuid_equal(partition_directory(cluster_part(k, "a", 0), 0), uuid_number(6001)));
    struct kp_broker_heartbeat_request in;
    struct kp_broker_heartbeat_response out;
    kp_broker_heartbeat_request_init(&in);
    in.broker_id = 1;
    in.broker_epoch = assign.broker_epoch;
    in.current_metadata_offset = image_offset(k->img);
    in.offline_log_dirs = &reg->log_dirs[0];
    in.offline_log_dirs_count = 1;
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(cluster_part(k, "a", 0)->leader, 2);
    assert_int_equal(image_broker(k->img, 1)->log_dirs_count, 1);
    assert_false(image_broker(k->img, 1)->fenced);
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(k->records.count, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(an_empty_cluster_gets_its_metadata_version_first),
        T(the_broker_epoch_is_the_offset_of_the_registration),
        T(a_broker_of_another_cluster_is_refused),
        T(a_second_live_process_under_one_id_is_refused),
        T(a_restarted_process_shows_its_directories_and_is_let_in_at_once),
        T(the_same_process_may_register_again_and_stays_as_it_is),
        T(a_broker_that_lacks_a_finalized_level_is_refused),
        T(directories_must_be_there_and_be_ones_own),
        T(a_broker_is_unfenced_only_after_it_has_its_own_registration),
        T(a_stale_epoch_gets_no_heartbeat),
        T(two_sessions_that_end_together_leave_no_trace_of_either),
        T(sessions_start_at_zero_idle_time_on_a_new_controller),
        T(a_gone_process_is_fenced_at_once_and_may_come_back_at_once),
        T(a_stopping_broker_hands_its_leaderships_over_and_is_let_go),
        T(the_last_broker_stops_although_nobody_takes_its_partitions),
        T(a_live_broker_is_not_unregistered),
        T(producer_ids_come_in_blocks_of_a_thousand),
        T(a_failed_directory_moves_the_leaders_on_it_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
