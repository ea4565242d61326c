// SPDX-License-Identifier: Apache-2.0
// Elections, ISR changes as compare-and-swap, ELR, reassignments that complete, leader balance.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/protocol/gen/elect_leaders_request.h"
#include "core/protocol/gen/elect_leaders_response.h"
#include "tests/unit/core/controller/cluster.h"

static const int32_t all[] = {1, 2, 3}, first_two[] = {1, 2}, last_two[] = {2, 3}, only_one[] = {1},
                     only_two[] = {2};

// Brokers 1 to 3 and topic "a" on them, led by 1.
static int start(void **state)
{
    static struct cluster k;
    cluster_init(&k);
    cluster_brokers(&k, 1, 3);
    cluster_create_on(&k, "a", all, 3);
    *state = &k;
    return 0;
}

static int stop(void **state)
{
    cluster_fini(*state);
    return 0;
}

static const struct image_partition *a0(struct cluster *k)
{
    return cluster_part(k, "a", 0);
}

static void elr_on(struct cluster *k, const char *min_isr)
{
    cluster_feature(k, "eligible.leader.replicas.version", 1);
    cluster_set_config(k, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", min_isr);
}

static void unfence(struct cluster *k, broker_id id)
{
    (void)cluster_beat(k, id, false, false);
}

// ---- elections
// -------------------------------------------------------------------------------------------------
static void the_next_replica_in_order_that_is_in_sync_takes_over(void **state)
{
    struct cluster *k = *state;
    cluster_gone(k, 1);
    assert_int_equal(a0(k)->leader, 2);
    assert_int_equal(a0(k)->epoch, 1);
    assert_int_equal(a0(k)->isr_count, 2);
    cluster_gone(k, 3);
    assert_int_equal(a0(k)->leader, 2);
    assert_int_equal(a0(k)->epoch, 1); // a smaller ISR alone raises no leader epoch
    assert_int_equal(a0(k)->partition_epoch, 2);
}

static void the_last_in_sync_replica_is_waited_for(void **state)
{
    struct cluster *k = *state;
    cluster_gone(k, 1);
    cluster_gone(k, 3);
    cluster_gone(k, 2);
    assert_int_equal(a0(k)->leader, LEADER_NONE);
    assert_int_equal(a0(k)->isr_count, 1);
    assert_int_equal(partition_isr(a0(k))[0], 2);
    unfence(k, 1);
    assert_int_equal(a0(k)->leader, LEADER_NONE);
    unfence(k, 2);
    assert_int_equal(a0(k)->leader, 2);
    assert_int_equal(a0(k)->recovery, RECOVERY_RECOVERED);
}

static void an_old_metadata_version_raises_the_leader_epoch_with_a_smaller_isr(void **state)
{
    struct cluster *k = *state;
    cluster_feature(k, FEATURE_METADATA_VERSION, 11);
    cluster_gone(k, 3);
    assert_int_equal(a0(k)->leader, 1);
    assert_int_equal(a0(k)->epoch, 1);
}

static void unclean_election_takes_any_live_replica_where_the_topic_says_so(void **state)
{
    struct cluster *k = *state;
    cluster_gone(k, 1);
    cluster_gone(k, 3);
    cluster_gone(k, 2);
    unfence(k, 3);
    bool more = controller_elect_unclean(cluster_op(k), &k->records);
    assert_false(more);
    assert_int_equal(k->records.count, 0);
    cluster_set_config(k, CONFIG_RESOURCE_TOPIC, "a", "unclean.leader.election.enable", "true");
    (void)controller_elect_unclean(cluster_op(k), &k->records);
    cluster_commit(k);
    assert_int_equal(a0(k)->leader, 3);
    assert_int_equal(a0(k)->isr_count, 1);
    assert_int_equal(partition_isr(a0(k))[0], 3);
    assert_int_equal(a0(k)->recovery, RECOVERY_RECOVERING);
}

static struct kp_elect_leaders_response elect(struct cluster *k, int8_t type, const char *topic,
                                              int32_t *index)
{
    struct kp_elect_leaders_request in;
    struct kp_elect_leaders_response out;
    struct kp_elect_leaders_request_topic_partitions asked = {
        .topic = slice_str(topic), .partitions = index, .partitions_count = 1};
    kp_elect_leaders_request_init(&in);
    in.election_type = type;
    in.topic_partitions = topic ? &asked : NULL;
    in.topic_partitions_count = topic ? 1 : -1;
    controller_elect_leaders(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    return out;
}

static int16_t elect_error(struct cluster *k, int8_t type, const char *topic, int32_t index)
{
    return elect(k, type, topic, &index).replica_election_results[0].partition_result[0].error_code;
}

static void the_preferred_leader_is_elected_only_from_the_isr(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(elect_error(k, 0, "a", 0), KE_ELECTION_NOT_NEEDED);
    assert_int_equal(elect_error(k, 0, "a", 5), KE_UNKNOWN_TOPIC_OR_PARTITION);
    cluster_gone(k, 1);
    unfence(k, 1);
    assert_int_equal(elect_error(k, 0, "a", 0), KE_PREFERRED_LEADER_NOT_AVAILABLE);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", all, 3)).error_code, KE_NONE);
    struct kp_elect_leaders_response out = elect(k, 0, NULL, NULL);
    assert_int_equal(out.replica_election_results_count, 1);
    assert_int_equal(out.replica_election_results[0].partition_result[0].error_code, KE_NONE);
    assert_int_equal(a0(k)->leader, 1);
    assert_int_equal(elect(k, 0, NULL, NULL).replica_election_results_count, 0);
    assert_int_equal(elect(k, 7, NULL, NULL).error_code, KE_INVALID_REQUEST);
}

static void an_unclean_election_on_demand_asks_no_config(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(elect_error(k, 1, "a", 0), KE_ELECTION_NOT_NEEDED);
    cluster_gone(k, 1);
    cluster_gone(k, 3);
    cluster_gone(k, 2);
    assert_int_equal(elect_error(k, 1, "a", 0), KE_ELIGIBLE_LEADERS_NOT_AVAILABLE);
    unfence(k, 1);
    assert_int_equal(elect_error(k, 1, "a", 0), KE_NONE);
    assert_int_equal(a0(k)->leader, 1);
}

// ---- AlterPartition
// --------------------------------------------------------------------------------------------
static void a_smaller_isr_is_taken_and_answered(void **state)
{
    struct cluster *k = *state;
    struct kp_alter_partition_response_partition_data v =
        cluster_alter(k, cluster_proposal(k, "a", first_two, 2));
    assert_int_equal(v.error_code, KE_NONE);
    assert_int_equal(v.leader_id, 1);
    assert_int_equal(v.leader_epoch, 0);
    assert_int_equal(v.partition_epoch, 1);
    assert_int_equal(v.isr_count, 2);
    assert_int_equal(a0(k)->isr_count, 2);
}

static void the_swap_needs_both_epochs(void **state)
{
    struct cluster *k = *state;
    struct kp_alter_partition_request *in = cluster_proposal(k, "a", first_two, 2);
    struct kp_alter_partition_request_partition_data *p = in->topics[0].partitions;
    p->leader_epoch = 5;
    assert_int_equal(cluster_alter(k, in).error_code, KE_NOT_CONTROLLER);
    p->leader_epoch = -1;
    assert_int_equal(cluster_alter(k, in).error_code, KE_FENCED_LEADER_EPOCH);
    p->leader_epoch = 0;
    p->partition_epoch = 9;
    assert_int_equal(cluster_alter(k, in).error_code, KE_NOT_CONTROLLER);
    p->partition_epoch = -1;
    assert_int_equal(cluster_alter(k, in).error_code, KE_INVALID_UPDATE_VERSION);
    p->partition_epoch = 0;
    p->partition_index = 4;
    assert_int_equal(cluster_alter(k, in).error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    p->partition_index = 0;
    in->topics[0].topic_id = uuid_number(9);
    assert_int_equal(cluster_alter(k, in).error_code, KE_UNKNOWN_TOPIC_ID);
}

static void only_the_leader_may_ask_and_must_stay_in(void **state)
{
    struct cluster *k = *state;
    static const int32_t foreign[] = {1, 9}, twice[] = {1, 2, 2};
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", last_two, 2)).error_code, KE_INVALID_REQUEST);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", foreign, 2)).error_code, KE_INVALID_REQUEST);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", twice, 3)).error_code, KE_INVALID_REQUEST);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", twice, 0)).error_code, KE_INVALID_REQUEST);
    struct kp_alter_partition_request *in = cluster_proposal(k, "a", first_two, 2);
    in->broker_id = 2;
    in->broker_epoch = image_broker(k->img, 2)->epoch;
    assert_int_equal(cluster_alter(k, in).error_code, KE_INVALID_REQUEST);
}

static void a_replica_with_an_old_epoch_or_fenced_is_not_let_in(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", first_two, 2)).error_code, KE_NONE);
    struct kp_alter_partition_request *in = cluster_proposal(k, "a", all, 3);
    in->topics[0].partitions[0].new_isr_with_epochs[2].broker_epoch--;
    assert_int_equal(cluster_alter(k, in).error_code, KE_INELIGIBLE_REPLICA);
    in->topics[0].partitions[0].new_isr_with_epochs[2].broker_epoch = -1;
    assert_int_equal(cluster_alter(k, in).error_code, KE_NONE);
    cluster_gone(k, 3);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", all, 3)).error_code, KE_INELIGIBLE_REPLICA);
}

static void an_asker_with_a_stale_epoch_is_refused_as_a_whole(void **state)
{
    struct cluster *k = *state;
    struct kp_alter_partition_request *in = cluster_proposal(k, "a", first_two, 2);
    struct kp_alter_partition_response out;
    in->broker_epoch--;
    controller_alter_partition(cluster_op(k), in, 3, &out, &k->records);
    assert_int_equal(out.error_code, KE_STALE_BROKER_EPOCH);
    assert_int_equal(k->records.count, 0);
}

static void an_unclean_leader_stays_alone_until_it_has_recovered(void **state)
{
    struct cluster *k = *state;
    cluster_gone(k, 2);
    cluster_gone(k, 3);
    cluster_gone(k, 1);
    unfence(k, 2);
    unfence(k, 3);
    assert_int_equal(elect_error(k, 1, "a", 0), KE_NONE);
    assert_int_equal(a0(k)->leader, 2);
    struct kp_alter_partition_request *in = cluster_proposal(k, "a", last_two, 2);
    in->topics[0].partitions[0].leader_recovery_state = RECOVERY_RECOVERING;
    assert_int_equal(cluster_alter(k, in).error_code, KE_INVALID_REQUEST);
    in = cluster_proposal(k, "a", only_two, 1);
    assert_int_equal(cluster_alter(k, in).error_code, KE_NONE);
    assert_int_equal(a0(k)->recovery, RECOVERY_RECOVERED);
    in = cluster_proposal(k, "a", only_two, 1);
    in->topics[0].partitions[0].leader_recovery_state = RECOVERY_RECOVERING;
    assert_int_equal(cluster_alter(k, in).error_code, KE_INVALID_REQUEST);
}

// ---- reassignment
// ---------------------------------------------------------------------------------------------- Replicas of
// a-0 become `replicas`, of which `removing` shall go and `adding` shall come.
static void reassign(struct cluster *k, const int32_t *replicas, int32_t count, const int32_t *removing,
                     int32_t removing_count, const int32_t *adding, int32_t adding_count)
{
    (void)cluster_op(k);
    struct kp_partition_change_record *r =
        &record_list_add(&k->records, METADATA_PARTITION_CHANGE, 2)->body.partition_change;
    r->topic_id = topic_id(image_topic_named(k->img, SLICE_LIT("a")));
    r->partition_id = 0;
    r->replicas = (int32_t *)(uintptr_t)replicas;
    r->replicas_count = count;
    r->removing_replicas = (int32_t *)(uintptr_t)removing;
    r->removing_replicas_count = removing_count;
    r->adding_replicas = (int32_t *)(uintptr_t)adding;
    r->adding_replicas_count = adding_count;
    cluster_commit(k);
    assert_true(partition_reassigning(a0(k)));
    assert_int_equal(image_reassigning_count(k->img), 1);
}

static void a_reassignment_is_done_when_what_it_adds_is_in_sync(void **state)
{
    struct cluster *k = *state;
    cluster_brokers(k, 4, 4);
    static const int32_t four[] = {4, 2, 1, 3}, out_three[] = {3}, in_four[] = {4},
                         with_four[] = {1, 2, 3, 4};
    reassign(k, four, 4, out_three, 1, in_four, 1);
    struct kp_alter_partition_response_partition_data v = cluster_alter(k, cluster_proposal(k, "a", all, 3));
    assert_int_equal(v.error_code, KE_NONE);
    assert_true(partition_reassigning(a0(k)));
    v = cluster_alter(k, cluster_proposal(k, "a", with_four, 4));
    assert_int_equal(v.error_code, KE_NONE);
    assert_false(partition_reassigning(a0(k)));
    assert_int_equal(a0(k)->replicas_count, 3);
    assert_false(partition_in_isr(a0(k), 3));
    assert_int_equal(v.leader_id, 1);
    assert_int_equal(v.leader_epoch, 1); // a replica left: the leader epoch rises although the leader stays
    assert_int_equal(v.isr_count, 3);
    assert_int_equal(image_reassigning_count(k->img), 0);
}

static void a_leader_that_is_moved_away_is_told_so(void **state)
{
    struct cluster *k = *state;
    cluster_brokers(k, 4, 4);
    static const int32_t four[] = {4, 2, 3, 1}, out_one[] = {1}, in_four[] = {4}, with_four[] = {1, 2, 3, 4};
    reassign(k, four, 4, out_one, 1, in_four, 1);
    struct kp_alter_partition_response_partition_data v =
        cluster_alter(k, cluster_proposal(k, "a", with_four, 4));
    assert_int_equal(v.error_code, KE_NEW_LEADER_ELECTED);
    assert_int_equal(a0(k)->leader, 4);
    assert_int_equal(a0(k)->epoch, 1);
}

static void a_smaller_factor_waits_for_every_target_replica(void **state)
{
    struct cluster *k = *state;
    cluster_brokers(k, 4, 4);
    static const int32_t two[] = {1, 2, 3}, out_three[] = {3}, none[] = {0};
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", only_one, 1)).error_code, KE_NONE);
    reassign(k, two, 3, out_three, 1, none, 0);
    static const int32_t one_three[] = {1, 3};
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", one_three, 2)).error_code, KE_NONE);
    assert_true(partition_reassigning(a0(k)));
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", all, 3)).error_code, KE_NONE);
    assert_false(partition_reassigning(a0(k)));
    assert_int_equal(a0(k)->replicas_count, 2);
}

// ---- ELR
// -------------------------------------------------------------------------------------------------------
static void those_that_leave_an_isr_below_the_minimum_stay_eligible(void **state)
{
    struct cluster *k = *state;
    elr_on(k, "3");
    cluster_gone(k, 3);
    assert_int_equal(a0(k)->isr_count, 2);
    assert_int_equal(a0(k)->elr_count, 1);
    assert_int_equal(partition_elr(a0(k))[0], 3);
    cluster_gone(k, 2);
    assert_int_equal(a0(k)->elr_count, 2);
    unfence(k, 3);
    unfence(k, 2);
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", all, 3)).error_code, KE_NONE);
    assert_int_equal(a0(k)->elr_count, 0);
    assert_int_equal(a0(k)->last_elr_count, 0);
}

static void with_elr_the_isr_may_be_empty_and_an_eligible_replica_leads(void **state)
{
    struct cluster *k = *state;
    elr_on(k, "2");
    cluster_gone(k, 3);
    cluster_gone(k, 2);
    cluster_gone(k, 1);
    assert_int_equal(a0(k)->isr_count, 0);
    assert_int_equal(a0(k)->leader, LEADER_NONE);
    assert_int_equal(a0(k)->elr_count, 2);
    unfence(k, 2);
    assert_int_equal(a0(k)->leader, 2);
    assert_int_equal(a0(k)->isr_count, 1);
    assert_int_equal(a0(k)->recovery, RECOVERY_RECOVERED);
    assert_int_equal(a0(k)->elr_count, 1);
}

static void a_process_that_lost_its_data_is_no_longer_eligible(void **state)
{
    struct cluster *k = *state;
    elr_on(k, "3");
    cluster_gone(k, 3);
    cluster_gone(k, 2);
    struct kp_broker_registration_request *in = cluster_registration(k, 2, 902, "r2");
    in->previous_broker_epoch = -1;
    assert_int_equal(cluster_register(k, in), KE_NONE);
    assert_int_equal(a0(k)->elr_count, 1);
    assert_int_equal(partition_elr(a0(k))[0], 3);
    in = cluster_registration(k, 3, 903, "r0");
    in->previous_broker_epoch = image_broker(k->img, 3)->epoch;
    assert_int_equal(cluster_register(k, in), KE_NONE);
    assert_int_equal(a0(k)->elr_count, 1);
}

static void a_restart_with_lost_data_leaves_the_isr_before_it_can_lead(void **state)
{
    struct cluster *k = *state;
    elr_on(k, "1");
    assert_int_equal(cluster_alter(k, cluster_proposal(k, "a", only_one, 1)).error_code, KE_NONE);
    struct kp_broker_registration_request *in = cluster_registration(k, 1, 901, "r1");
    in->previous_broker_epoch = 12345;
    assert_int_equal(cluster_register(k, in), KE_NONE);
    assert_int_equal(a0(k)->isr_count, 0);
    assert_int_equal(a0(k)->leader, LEADER_NONE);
    assert_int_equal(a0(k)->last_elr_count, 1);
}

// ---- balance
// ---------------------------------------------------------------------------------------------------
static void leaders_go_home_when_a_broker_is_out_of_balance(void **state)
{
    struct cluster *k = *state;
    for (int i = 0; i < 19; i++)
        cluster_create_on(k, arena_printf(&k->arena, "t%d", i), first_two, 2);
    cluster_gone(k, 1);
    unfence(k, 1);
    assert_false(controller_balance_leaders(cluster_op(k), &k->records));
    assert_int_equal(k->records.count, 0); // preferred, alive, and not in sync anywhere
    static const int32_t both[] = {2, 1};
    for (int i = 0; i < 19; i++)
        assert_int_equal(
            cluster_alter(k, cluster_proposal(k, arena_printf(&k->arena, "t%d", i), both, 2)).error_code,
            KE_NONE);
    assert_false(controller_balance_leaders(cluster_op(k), &k->records));
    assert_int_equal(k->records.count, 19);
    cluster_commit(k);
    assert_int_equal(cluster_part(k, "t7", 0)->leader, 1);
    // One of twenty is left: below ten percent.
    cluster_alter(k, cluster_proposal(k, "a", all, 3));
    assert_int_equal(a0(k)->leader, 2);
    assert_false(controller_balance_leaders(cluster_op(k), &k->records));
    assert_int_equal(k->records.count, 0);
}

static void one_balance_run_moves_at_most_a_thousand_and_says_that_more_is_left(void **state)
{
    struct cluster *k = *state;
    struct kp_create_topics_request *in = cluster_topic(k, "many", -1, -1);
    enum { PARTITIONS = 1500 };
    in->topics[0].assignments = arena_zalloc(&k->arena, PARTITIONS * sizeof *in->topics[0].assignments);
    in->topics[0].assignments_count = PARTITIONS;
    for (int32_t i = 0; i < PARTITIONS; i++) {
        in->topics[0].assignments[i].partition_index = i;
        in->topics[0].assignments[i].broker_ids = (int32_t *)(uintptr_t)first_two;
        in->topics[0].assignments[i].broker_ids_count = 2;
    }
    assert_int_equal(cluster_create_with(k, in).error_code, KE_NONE);
    (void)cluster_op(k);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        struct kp_partition_change_record *r =
            &record_list_add(&k->records, METADATA_PARTITION_CHANGE, 2)->body.partition_change;
        r->topic_id = topic_id(image_topic_named(k->img, SLICE_LIT("many")));
        r->partition_id = i;
        r->leader = 2;
    }
    cluster_commit(k);
    assert_true(controller_balance_leaders(cluster_op(k), &k->records));
    assert_int_equal(k->records.count, CONTROLLER_ELECTIONS_MAX);
    cluster_commit(k);
    assert_false(controller_balance_leaders(cluster_op(k), &k->records));
    assert_int_equal(k->records.count, PARTITIONS - CONTROLLER_ELECTIONS_MAX);
}

static void fencing_more_than_a_batch_holds_goes_on_until_it_is_done(void **state)
{
    struct cluster *k = *state;
    for (int t = 0; t < 3; t++) {
        struct kp_create_topics_request *in = cluster_topic(k, arena_printf(&k->arena, "big%d", t), 5000, 3);
        assert_int_equal(cluster_create_with(k, in).error_code, KE_NONE);
    }
    broker_epoch epoch = image_broker(k->img, 1)->epoch;
    int runs = 0;
    while (!image_broker(k->img, 1)->fenced) {
        controller_fence_gone_broker(cluster_op(k), 1, epoch, &k->records);
        assert_in_range(k->records.count, 1, CONTROLLER_RECORDS_MAX);
        cluster_commit(k);
        assert_true(++runs < 4);
    }
    assert_int_equal(runs, 2);
    assert_int_equal(image_set_count(k->img, IMAGE_SET_ISR, 1), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(the_next_replica_in_order_that_is_in_sync_takes_over),
        T(the_last_in_sync_replica_is_waited_for),
        T(an_old_metadata_version_raises_the_leader_epoch_with_a_smaller_isr),
        T(unclean_election_takes_any_live_replica_where_the_topic_says_so),
        T(the_preferred_leader_is_elected_only_from_the_isr),
        T(an_unclean_election_on_demand_asks_no_config),
        T(a_smaller_isr_is_taken_and_answered),
        T(the_swap_needs_both_epochs),
        T(only_the_leader_may_ask_and_must_stay_in),
        T(a_replica_with_an_old_epoch_or_fenced_is_not_let_in),
        T(an_asker_with_a_stale_epoch_is_refused_as_a_whole),
        T(an_unclean_leader_stays_alone_until_it_has_recovered),
        T(a_reassignment_is_done_when_what_it_adds_is_in_sync),
        T(a_leader_that_is_moved_away_is_told_so),
        T(a_smaller_factor_waits_for_every_target_replica),
        T(those_that_leave_an_isr_below_the_minimum_stay_eligible),
        T(with_elr_the_isr_may_be_empty_and_an_eligible_replica_leads),
        T(a_process_that_lost_its_data_is_no_longer_eligible),
        T(a_restart_with_lost_data_leaves_the_isr_before_it_can_lead),
        T(leaders_go_home_when_a_broker_is_out_of_balance),
        T(one_balance_run_moves_at_most_a_thousand_and_says_that_more_is_left),
        T(fencing_more_than_a_batch_holds_goes_on_until_it_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
