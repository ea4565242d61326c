// SPDX-License-Identifier: Apache-2.0
// Whole nodes: they form a quorum, serve, lose leaders and power, and come back with the same metadata.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/protocol/gen/broker_heartbeat_request.h"
#include "core/protocol/gen/broker_heartbeat_response.h"
#include "core/protocol/gen/broker_registration_request.h"
#include "core/protocol/gen/broker_registration_response.h"
#include "core/protocol/gen/describe_cluster_request.h"
#include "core/protocol/gen/describe_cluster_response.h"
#include "core/protocol/gen/describe_configs_request.h"
#include "core/protocol/gen/describe_configs_response.h"
#include "core/protocol/gen/describe_quorum_request.h"
#include "core/protocol/gen/describe_quorum_response.h"
#include "core/protocol/gen/envelope_request.h"
#include "core/protocol/gen/envelope_response.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/gen/init_producer_id_request.h"
#include "core/protocol/gen/init_producer_id_response.h"
#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"
#include "tests/unit/core/server/node_fixture.h"

#define SECONDS(s) ((s)*1000)

static void start(struct nodes *n, uint64_t seed, unsigned controllers, unsigned brokers, bool combined)
{
    nodes_init(n, seed, controllers, brokers, combined, NULL);
    nodes_start_all(n);
    assert_true(nodes_wait_running(n, SECONDS(30)));
    assert_true(nodes_wait_active(n, SECONDS(30)));
}

static void a_single_combined_node_forms_a_cluster_and_makes_a_topic(void **state)
{
    struct nodes n;
    start(&n, 1, 1, 0, true);
    assert_int_equal(nodes_create_topic(&n, &n.node[0], "t", 3, SECONDS(10)), KE_NONE);
    assert_true(node_has_topic(&n.node[0], "t"));
    assert_int_equal(nodes_create_topic(&n, &n.node[0], "t", 3, SECONDS(10)), KE_TOPIC_ALREADY_EXISTS);
    nodes_free(&n);
}

static void three_controllers_and_a_broker_make_a_topic_by_forwarding(void **state)
{
    struct nodes n;
    start(&n, 2, 3, 1, false);
    struct sim_node *broker = nodes_get(&n, 11);
    assert_int_equal(nodes_create_topic(&n, broker, "t", 3, SECONDS(10)), KE_NONE);
    world_run(n.world, 1000);
    assert_true(node_has_topic(broker, "t"));
    nodes_free(&n);
}

static void a_topic_is_made_in_under_a_second_after_the_leader_died(void **state)
{
    struct nodes n;
    start(&n, 3, 3, 1, false);
    struct sim_node *broker = nodes_get(&n, 11);
    assert_int_equal(nodes_create_topic(&n, broker, "before", 1, SECONDS(10)), KE_NONE);
    mono_us before = world_now(n.world);
    node_crash(nodes_active(&n), false);
    assert_int_equal(nodes_create_topic(&n, broker, "after", 1, SECONDS(10)), KE_NONE);
    assert_true(world_now(n.world) - before < 1000 * 1000);
    nodes_free(&n);
}

static bool all_at_one_offset(void *data)
{
    struct nodes *n = data;
    for (unsigned i = 0; i < n->count; i++)
        if (node_offset(&n->node[i]) != node_offset(&n->node[0]))
            return false;
    return true;
}

static void assert_images_equal(struct nodes *n)
{
    assert_true(world_run_until(n->world, SECONDS(30), all_at_one_offset, n));
    struct image_hash first = node_hash(&n->node[0]);
    for (unsigned i = 1; i < n->count; i++) {
        struct image_hash h = node_hash(&n->node[i]);
        assert_true(h.low == first.low && h.high == first.high);
    }
}

static void all_lose_power_and_come_back_with_what_was_answered(void **state)
{
    struct nodes n;
    start(&n, 4, 3, 0, true);
    char name[16];
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(nodes_create_topic(&n, &n.node[i % 3], name, 2, SECONDS(10)), KE_NONE);
    }
    for (unsigned i = 0; i < 3; i++)
        node_crash(&n.node[i], true);
    nodes_start_all(&n);
    assert_true(nodes_wait_active(&n, SECONDS(30)));
    assert_true(nodes_wait_running(&n, SECONDS(30)));
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        for (unsigned k = 0; k < 3; k++)
            assert_true(node_has_topic(&n.node[k], name));
    }
    assert_images_equal(&n);
    nodes_free(&n);
}

// An old leader that is cut off has an uncommitted topic: nobody is told of it, and it is gone when the cut
// heals.
static void what_was_not_committed_is_never_answered(void **state)
{
    struct nodes n;
    start(&n, 5, 3, 1, false);
    struct sim_node *old = nodes_active(&n);
    world_cut_all(n.world, old->host, true);
    world_cut(n.world, old->host, n.client_host, false);
    int error = nodes_create_topic(&n, old, "ghost", 1, SECONDS(20));
    assert_true(error == KE_NOT_CONTROLLER || error == -100);
    world_run(n.world, SECONDS(5)); // the others have a leader of their own and its barrier
    world_heal(n.world);
    assert_true(nodes_wait_active(&n, SECONDS(30)));
    assert_images_equal(&n);
    for (unsigned i = 0; i < 3; i++)
        assert_false(node_has_topic(&n.node[i], "ghost"));
    nodes_free(&n);
}

static void a_broker_that_died_is_fenced_at_once(void **state)
{
    struct nodes n;
    start(&n, 6, 1, 2, false);
    world_run(n.world, 3000);
    node_crash(nodes_get(&n, 12), false);
    world_run(n.world, 500);
    const struct image_broker *b =
        image_broker(controller_node_image(nodes_get(&n, 1)->server->controller), 12);
    assert_non_null(b);
    assert_true(b->fenced);
    nodes_free(&n);
}

static void a_broker_that_hangs_is_fenced_after_its_session(void **state)
{
    struct nodes n;
    start(&n, 7, 1, 2, false);
    world_cut_all(n.world, nodes_get(&n, 12)->host, true);
    world_run(n.world, 5000);
    struct controller_node *cn = nodes_get(&n, 1)->server->controller;
    assert_false(image_broker(controller_node_image(cn), 12)->fenced);
    world_run(n.world, 6000);
    assert_true(image_broker(controller_node_image(cn), 12)->fenced);
    world_heal(n.world);
    world_run(n.world, 5000);
    assert_false(image_broker(controller_node_image(cn), 12)->fenced);
    nodes_free(&n);
}

static void a_stopped_broker_comes_back_with_its_epoch_known(void **state)
{
    struct nodes n;
    start(&n, 8, 1, 1, false);
    struct sim_node *b = nodes_get(&n, 11);
    assert_int_equal(nodes_create_topic(&n, b, "t", 1, SECONDS(10)), KE_NONE);
    broker_epoch before = atomic_load(&b->server->broker.epoch);
    node_end(b);
    node_start(b);
    assert_true(nodes_wait_running(&n, SECONDS(30)));
    assert_true(atomic_load(&b->server->broker.epoch) > before);
    world_run(n.world, 1000);
    const struct image_topic *t = image_topic_named(b->server->published, SLICE_LIT("t"));
    assert_int_equal(topic_partition(t, 0)->leader, 11);
    nodes_free(&n);
}

static void describe_quorum_tells_voters_and_observers(void **state)
{
    struct nodes n;
    start(&n, 9, 3, 1, false);
    world_run(n.world, 2000);
    struct kp_describe_quorum_request q;
    struct kp_describe_quorum_request_topic_data t;
    struct kp_describe_quorum_request_partition_data p;
    kp_describe_quorum_request_init(&q);
    kp_describe_quorum_request_topic_data_init(&t);
    kp_describe_quorum_request_partition_data_init(&p);
    q.topics = &t;
    q.topics_count = 1;
    t.topic_name = SLICE_LIT("__cluster_metadata");
    t.partitions = &p;
    t.partitions_count = 1;
    struct kp_describe_quorum_response *a =
        nodes_ask(&n, nodes_get(&n, 11), KP_API_DESCRIBE_QUORUM, 2, &q, SECONDS(10));
    assert_non_null(a);
    assert_int_equal(a->topics[0].partitions[0].error_code, KE_NONE);
    assert_int_equal(a->topics[0].partitions[0].current_voters_count, 3);
    assert_int_equal(a->topics[0].partitions[0].observers_count, 1);
    assert_int_equal(a->topics[0].partitions[0].observers[0].replica_id, 11);
    assert_int_equal(a->nodes_count, 3);
    nodes_free(&n);
}

static struct kp_fetch_response *fetch_metadata(struct nodes *n, struct sim_node *from, log_offset offset,
                                                leader_epoch epoch, int32_t last_epoch, int32_t wait_ms)
{
    struct kp_fetch_request q;
    struct kp_fetch_request_fetch_topic t;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&q);
    kp_fetch_request_fetch_topic_init(&t);
    kp_fetch_request_fetch_partition_init(&p);
    q.max_wait_ms = wait_ms;
    q.topics = &t;
    q.topics_count = 1;
    t.topic_id = UUID_METADATA_TOPIC;
    t.partitions = &p;
    t.partitions_count = 1;
    p.fetch_offset = offset;
    p.current_leader_epoch = epoch;
    p.last_fetched_epoch = last_epoch;
    p.high_watermark = INT64_MAX;
    return nodes_ask(n, from, KP_API_FETCH, 17, &q, SECONDS(10));
}

static void the_metadata_log_is_served_by_any_controller(void **state)
{
    struct nodes n;
    start(&n, 10, 3, 0, false);
    world_run(n.world, 1000);
    for (unsigned i = 0; i < 3; i++) {
        struct kp_fetch_response *a = fetch_metadata(&n, &n.node[i], 0, -1, -1, 0);
        assert_non_null(a);
        assert_int_equal(a->error_code, KE_NONE);
        assert_int_equal(a->responses[0].partitions[0].error_code, KE_NONE);
        assert_true(a->responses[0].partitions[0].records.bytes.len > 61);
        assert_true(a->responses[0].partitions[0].high_watermark > 0);
    }
    nodes_free(&n);
}

static void a_fetch_of_an_old_epoch_is_told_the_new_leader(void **state)
{
    struct nodes n;
    start(&n, 11, 3, 0, false);
    struct sim_node *active = nodes_active(&n);
    struct kp_fetch_response *a = fetch_metadata(&n, active, 0, 0, -1, 0);
    assert_int_equal(a->responses[0].partitions[0].error_code, KE_FENCED_LEADER_EPOCH);
    assert_int_equal(a->responses[0].partitions[0].current_leader.leader_id, active->id);
    assert_int_equal(a->node_endpoints_count, 1);
    a = fetch_metadata(&n, active, 0, 1000, -1, 0);
    assert_int_equal(a->responses[0].partitions[0].error_code, KE_UNKNOWN_LEADER_EPOCH);
    nodes_free(&n);
}

static void a_fetch_of_an_epoch_that_never_was_diverges(void **state)
{
    struct nodes n;
    start(&n, 12, 1, 0, false);
    world_run(n.world, 1000);
    struct kp_fetch_response *a = fetch_metadata(&n, &n.node[0], 3, -1, 1, 0);
    assert_int_equal(a->responses[0].partitions[0].error_code, KE_NONE);
    assert_true(a->responses[0].partitions[0].diverging_epoch.end_offset >= 0);
    nodes_free(&n);
}

static void a_fetch_at_the_end_waits_for_the_next_record(void **state)
{
    struct nodes n;
    start(&n, 13, 1, 0, false);
    log_offset end = quorum_high_watermark(controller_node_quorum(n.node[0].server->controller));
    mono_us before = world_now(n.world);
    struct kp_fetch_response *a = fetch_metadata(&n, &n.node[0], end, -1, -1, 5000);
    assert_true(a->responses[0].partitions[0].records.bytes.len > 0); // the idle no-op
    assert_true(world_now(n.world) - before < 2000 * 1000);
    nodes_free(&n);
}

static void a_broker_of_another_cluster_is_refused(void **state)
{
    struct nodes n;
    start(&n, 14, 1, 0, false);
    struct kp_broker_registration_request q;
    kp_broker_registration_request_init(&q);
    q.broker_id = 77;
    q.cluster_id = SLICE_LIT("AAAAAAAAAAAAAAAAAAAAAA");
    q.incarnation_id.b[3] = 1;
    struct kp_broker_registration_response *a =
        nodes_ask(&n, &n.node[0], KP_API_BROKER_REGISTRATION, 4, &q, SECONDS(10));
    assert_int_equal(a->error_code, KE_INCONSISTENT_CLUSTER_ID);
    nodes_free(&n);
}

static void a_follower_refuses_what_only_the_active_controller_may_do(void **state)
{
    struct nodes n;
    start(&n, 15, 3, 0, false);
    for (unsigned i = 0; i < 3; i++)
        if (&n.node[i] != nodes_active(&n))
            assert_int_equal(nodes_create_topic(&n, &n.node[i], "t", 1, SECONDS(10)), KE_NOT_CONTROLLER);
    nodes_free(&n);
}

static void controllers_are_described_with_the_active_one(void **state)
{
    struct nodes n;
    start(&n, 16, 3, 0, false);
    world_run(n.world, 1000);
    struct kp_describe_cluster_request q;
    kp_describe_cluster_request_init(&q);
    q.endpoint_type = 2;
    for (unsigned i = 0; i < 3; i++) {
        struct kp_describe_cluster_response *a =
            nodes_ask(&n, &n.node[i], KP_API_DESCRIBE_CLUSTER, 1, &q, SECONDS(10));
        assert_int_equal(a->error_code, KE_NONE);
        assert_int_equal(a->brokers_count, 3);
        assert_int_equal(a->controller_id, nodes_active(&n)->id);
    }
    nodes_free(&n);
}

static void configs_of_a_topic_have_sources_and_synonyms(void **state)
{
    struct nodes n;
    start(&n, 17, 1, 0, true);
    assert_int_equal(nodes_create_topic(&n, &n.node[0], "t", 1, SECONDS(10)), KE_NONE);
    world_run(n.world, 500);
    struct kp_describe_configs_request q;
    struct kp_describe_configs_request_describe_configs_resource r;
    struct slice key = SLICE_LIT("retention.ms");
    kp_describe_configs_request_init(&q);
    kp_describe_configs_request_describe_configs_resource_init(&r);
    q.resources = &r;
    q.resources_count = 1;
    q.include_synonyms = true;
    r.resource_type = 2;
    r.resource_name = SLICE_LIT("t");
    r.configuration_keys = &key;
    r.configuration_keys_count = 1;
    struct kp_describe_configs_response *a =
        nodes_ask(&n, &n.node[0], KP_API_DESCRIBE_CONFIGS, 4, &q, SECONDS(10));
    assert_int_equal(a->results[0].error_code, KE_NONE);
    assert_int_equal(a->results[0].configs_count, 1);
    assert_true(slice_equal_str(a->results[0].configs[0].value, "604800000"));
    assert_int_equal(a->results[0].configs[0].config_source, 5);
    assert_true(a->results[0].configs[0].synonyms_count >= 1);
    nodes_free(&n);
}

static struct kp_envelope_response *envelope(struct nodes *n, struct slice principal, struct slice inner)
{
    struct kp_envelope_request q;
    const uint8_t address[4] = {10, 0, 0, 1};
    kp_envelope_request_init(&q);
    q.request_data = inner;
    q.request_principal = principal;
    q.client_host_address = slice_of(address, 4);
    struct kp_envelope_response *a = nodes_ask(n, &n->node[0], KP_API_ENVELOPE, 0, &q, SECONDS(10));
    assert_non_null(a);
    return a;
}

#define ANONYMOUS SLICE_LIT("\0\0\5User\12ANONYMOUS\0\0") // version 0, type, name, no token, no tags

static void an_envelope_with_a_strange_principal_is_refused(void **state)
{
    struct nodes n;
    start(&n, 18, 1, 0, false);
    assert_int_equal(envelope(&n, SLICE_LIT("\0\7xyz"), SLICE_LIT("\0\23\0\7"))->error_code,
                     KE_PRINCIPAL_DESERIALIZATION_FAILURE);
    nodes_free(&n);
}

static void an_envelope_carries_only_what_brokers_forward(void **state)
{
    struct nodes n;
    start(&n, 19, 1, 0, false);
    const uint8_t heartbeat[] = {0, KP_API_BROKER_HEARTBEAT, 0, 0, 0, 0, 0, 1, 255, 255, 0};
    const uint8_t nested[] = {0, KP_API_ENVELOPE, 0, 0, 0, 0, 0, 1, 255, 255, 0};
    assert_int_equal(envelope(&n, ANONYMOUS, slice_of(heartbeat, sizeof heartbeat))->error_code,
                     KE_INVALID_REQUEST);
    assert_int_equal(envelope(&n, ANONYMOUS, slice_of(nested, sizeof nested))->error_code,
                     KE_INVALID_REQUEST);
    assert_int_equal(envelope(&n, ANONYMOUS, SLICE_LIT("\0"))->error_code, KE_INVALID_REQUEST);
    nodes_free(&n);
}

static void an_envelope_answers_with_the_inner_header_and_body(void **state)
{
    struct nodes n;
    start(&n, 20, 1, 0, false);
    // DeleteTopics v6, correlation 9, client id null, no tags: one topic by name "x", timeout 0.
    const uint8_t inner[] = {0,   KP_API_DELETE_TOPICS,
                             0,   6,
                             0,   0,
                             0,   9,
                             255, 255,
                             0,   2,
                             2,   'x',
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0,
                             0,   0};
    struct kp_envelope_response *a = envelope(&n, ANONYMOUS, slice_of(inner, sizeof inner));
    assert_int_equal(a->error_code, KE_NONE);
    assert_true(a->response_data.len > 5);
    assert_int_equal(a->response_data.data[3], 9);
    nodes_free(&n);
}

static void a_heartbeat_of_an_old_registration_is_stale(void **state)
{
    struct nodes n;
    start(&n, 21, 1, 1, false);
    struct kp_broker_heartbeat_request q;
    kp_broker_heartbeat_request_init(&q);
    q.broker_id = 11;
    q.broker_epoch = atomic_load(&nodes_get(&n, 11)->server->broker.epoch) - 1;
    struct kp_broker_heartbeat_response *a =
        nodes_ask(&n, &n.node[0], KP_API_BROKER_HEARTBEAT, 1, &q, SECONDS(10));
    assert_int_equal(a->error_code, KE_STALE_BROKER_EPOCH);
    nodes_free(&n);
}

static void a_broker_that_was_unregistered_registers_anew(void **state)
{
    struct nodes n;
    start(&n, 22, 1, 2, false);
    struct sim_node *gone = nodes_get(&n, 12);
    world_cut_all(n.world, gone->host, true);
    world_run(n.world, 12000);
    struct kp_unregister_broker_request q;
    kp_unregister_broker_request_init(&q);
    q.broker_id = 12;
    struct kp_unregister_broker_response *a =
        nodes_ask(&n, nodes_get(&n, 11), KP_API_UNREGISTER_BROKER, 0, &q, SECONDS(10));
    assert_int_equal(a->error_code, KE_NONE);
    struct controller_node *cn = n.node[0].server->controller;
    assert_null(image_broker(controller_node_image(cn), 12));
    world_heal(n.world);
    world_run(n.world, 20000);
    assert_non_null(image_broker(controller_node_image(cn), 12));
    assert_false(image_broker(controller_node_image(cn), 12)->fenced);
    nodes_free(&n);
}

static void producer_ids_are_unique_over_brokers_and_restarts(void **state)
{
    struct nodes n;
    start(&n, 23, 1, 2, false);
    int64_t seen[40];
    for (int i = 0; i < 40; i++) {
        struct sim_node *b = nodes_get(&n, i % 2 ? 11 : 12);
        if (i == 20) {
            node_crash(b, false);
            node_start(b);
            assert_true(nodes_wait_running(&n, SECONDS(30)));
        }
        struct kp_init_producer_id_request q;
        kp_init_producer_id_request_init(&q);
        q.transactional_id = SLICE_NULL;
        struct kp_init_producer_id_response *a =
            nodes_ask(&n, b, KP_API_INIT_PRODUCER_ID, 4, &q, SECONDS(10));
        assert_non_null(a);
        assert_int_equal(a->error_code, KE_NONE);
        seen[i] = a->producer_id;
        for (int k = 0; k < i; k++)
            assert_true(seen[k] != seen[i]);
    }
    nodes_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_combined_node_forms_a_cluster_and_makes_a_topic),
        cmocka_unit_test(three_controllers_and_a_broker_make_a_topic_by_forwarding),
        cmocka_unit_test(a_topic_is_made_in_under_a_second_after_the_leader_died),
        cmocka_unit_test(all_lose_power_and_come_back_with_what_was_answered),
        cmocka_unit_test(what_was_not_committed_is_never_answered),
        cmocka_unit_test(a_broker_that_died_is_fenced_at_once),
        cmocka_unit_test(a_broker_that_hangs_is_fenced_after_its_session),
        cmocka_unit_test(a_stopped_broker_comes_back_with_its_epoch_known),
        cmocka_unit_test(describe_quorum_tells_voters_and_observers),
        cmocka_unit_test(the_metadata_log_is_served_by_any_controller),
        cmocka_unit_test(a_fetch_of_an_old_epoch_is_told_the_new_leader),
        cmocka_unit_test(a_fetch_of_an_epoch_that_never_was_diverges),
        cmocka_unit_test(a_fetch_at_the_end_waits_for_the_next_record),
        cmocka_unit_test(a_broker_of_another_cluster_is_refused),
        cmocka_unit_test(a_follower_refuses_what_only_the_active_controller_may_do),
        cmocka_unit_test(controllers_are_described_with_the_active_one),
        cmocka_unit_test(configs_of_a_topic_have_sources_and_synonyms),
        cmocka_unit_test(an_envelope_with_a_strange_principal_is_refused),
        cmocka_unit_test(an_envelope_carries_only_what_brokers_forward),
        cmocka_unit_test(an_envelope_answers_with_the_inner_header_and_body),
        cmocka_unit_test(a_heartbeat_of_an_old_registration_is_stale),
        cmocka_unit_test(a_broker_that_was_unregistered_registers_anew),
        cmocka_unit_test(producer_ids_are_unique_over_brokers_and_restarts),
    };
    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
