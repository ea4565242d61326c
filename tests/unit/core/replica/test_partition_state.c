// SPDX-License-Identifier: Apache-2.0
// The partition state machine: epochs, high watermark, ISR proposals.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/replica/partition_state.h"

#define SELF 1
#define LAG_MS 30000

static const broker_id all[] = {1, 2, 3};

static struct partition_assignment assignment(broker_id leader, leader_epoch epoch, int32_t version,
                                              const broker_id *isr, int32_t isr_count)
{
    return (struct partition_assignment){.leader = leader,
                                         .epoch = epoch,
                                         .partition_epoch = version,
                                         .replicas = all,
                                         .replicas_count = 3,
                                         .isr = isr,
                                         .isr_count = isr_count};
}

// Leader of three replicas in epoch 1 with the given ISR; log 0..100, high watermark 50; others registered
// with epochs 12 and 13.
static struct partition_state leader_with(const broker_id *isr, int32_t isr_count)
{
    struct partition_state s;
    partition_state_init(&s, SELF, 0, 100, 50);
    struct partition_assignment a = assignment(SELF, 1, 1, isr, isr_count);
    assert_int_equal(partition_state_apply(&s, &a, 1000), PARTITION_CHANGE_LEADER);
    partition_state_set_broker(&s, 2, true, 12);
    partition_state_set_broker(&s, 3, true, 13);
    return s;
}

static bool fetched(struct partition_state *s, broker_id id, log_offset offset, time_ms now)
{
    return partition_state_fetched(s, id, 10 + id, offset, 0, now);
}

static void a_sole_replica_makes_its_appends_visible_at_once(void **unused)
{
    (void)unused;
    struct partition_state s;
    const broker_id one[] = {SELF};
    partition_state_init(&s, SELF, 0, 0, 0);
    struct partition_assignment a = {.leader = SELF,
                                     .epoch = 0,
                                     .partition_epoch = 0,
                                     .replicas = one,
                                     .replicas_count = 1,
                                     .isr = one,
                                     .isr_count = 1};
    assert_int_equal(partition_state_apply(&s, &a, 0), PARTITION_CHANGE_LEADER);
    assert_true(partition_state_appended(&s, 10, 0));
    assert_int_equal(s.high_watermark, 10);
    partition_state_fini(&s);
}

static void min_insync_replicas_is_bounded_by_the_replication_factor(void **unused)
{
    (void)unused;
    struct partition_state s;
    const broker_id one[] = {SELF};
    partition_state_init(&s, SELF, 0, 0, 0);
    (void)partition_state_set_min_isr(&s, 2, 0);
    struct partition_assignment a = {.leader = SELF,
                                     .epoch = 0,
                                     .partition_epoch = 0,
                                     .replicas = one,
                                     .replicas_count = 1,
                                     .isr = one,
                                     .isr_count = 1};
    (void)partition_state_apply(&s, &a, 0);
    assert_int_equal(partition_state_min_isr(&s), 1);
    assert_true(partition_state_appended(&s, 5, 0));
    partition_state_fini(&s);
}

static void the_high_watermark_waits_for_every_member_of_the_isr(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    assert_false(fetched(&s, 2, 100, 1001));
    assert_int_equal(s.high_watermark, 50);
    assert_true(fetched(&s, 3, 80, 1002));
    assert_int_equal(s.high_watermark, 80);
    partition_state_fini(&s);
}

static void the_high_watermark_stands_while_the_isr_is_below_its_minimum(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1};
    struct partition_state s = leader_with(isr, 1);
    log_offset before = s.high_watermark; // moved to the end while the minimum was one
    (void)partition_state_set_min_isr(&s, 2, 1001);
    assert_true(partition_state_under_min_isr(&s));
    assert_false(partition_state_appended(&s, 120, 1002));
    assert_int_equal(s.high_watermark, before);
    assert_true(partition_state_set_min_isr(&s, 1, 1003));
    assert_int_equal(s.high_watermark, 120);
    partition_state_fini(&s);
}

static void a_caught_up_replica_outside_the_isr_counts_for_the_high_watermark(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    assert_true(fetched(&s, 2, 100, 1001));
    assert_false(fetched(&s, 3, 100, 1002));
    (void)partition_state_appended(&s, 150, 1003);
    assert_false(fetched(&s, 2, 150, 1004)); // 3 keeps up, though not in the ISR: it is waited for
    assert_int_equal(s.high_watermark, 100);
    assert_true(fetched(&s, 3, 150, 1005));
    assert_int_equal(s.high_watermark, 150);
    partition_state_fini(&s);
}

static void a_fenced_replica_outside_the_isr_does_not_hold_the_high_watermark(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    (void)fetched(&s, 2, 100, 1001);
    (void)fetched(&s, 3, 100, 1002);
    partition_state_set_broker(&s, 3, false, 13);
    (void)partition_state_appended(&s, 150, 1003);
    assert_true(fetched(&s, 2, 150, 1004));
    assert_int_equal(s.high_watermark, 150);
    partition_state_fini(&s);
}

static void a_pending_expansion_counts_before_it_is_committed(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    (void)fetched(&s, 2, 100, 1001);
    (void)fetched(&s, 3, 100, 1002);
    assert_true(partition_state_may_expand(&s, 3));
    partition_state_propose_expand(&s, 3);
    assert_true(partition_state_in_maximal_isr(&s, 3));
    partition_state_set_broker(&s, 3, false, 13);
    (void)partition_state_appended(&s, 200, 1003);
    assert_false(fetched(&s, 2, 200, 1004));
    assert_int_equal(s.high_watermark, 100);
    partition_state_fini(&s);
}

static void a_pending_shrink_keeps_the_committed_isr(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    (void)fetched(&s, 2, 100, 1001);
    (void)fetched(&s, 3, 60, 1001);
    broker_id left[3];
    time_ms later = 1000 + LAG_MS + 1001;
    (void)fetched(&s, 2, 100, later);
    assert_int_equal(partition_state_shrunk_isr(&s, later, LAG_MS, left), 2);
    assert_int_equal(left[0], 1);
    assert_int_equal(left[1], 2);
    partition_state_propose_shrink(&s, left, 2);
    assert_int_equal(s.high_watermark, 60);
    (void)partition_state_appended(&s, 130, later);
    (void)fetched(&s, 2, 130, later);
    assert_int_equal(s.high_watermark, 60); // 3 is still in the committed ISR
    partition_state_fini(&s);
}

static void a_committed_shrink_lets_the_high_watermark_go_on(void **unused)
{
    (void)unused;
    const broker_id fewer[] = {1, 2};
    struct partition_state s = leader_with(all, 3);
    (void)fetched(&s, 2, 100, 1001);
    (void)fetched(&s, 3, 60, 1001);
    struct partition_assignment a = assignment(SELF, 1, 2, fewer, 2);
    assert_int_equal(partition_state_apply(&s, &a, 40000), PARTITION_CHANGE_ISR);
    assert_int_equal(s.high_watermark, 100);
    assert_int_equal(s.isr_change, ISR_SETTLED);
    partition_state_fini(&s);
}

static void a_follower_that_keeps_pace_under_load_is_not_dropped(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    broker_id left[3];
    log_offset end = 100;
    for (time_ms now = 2000; now < 100000; now += 1000) {
        log_offset before = end;
        end += 10;
        (void)partition_state_appended(&s, end, now);
        (void)fetched(&s, 2, before, now); // has what was there at its fetch before, never all
        (void)fetched(&s, 3, end, now);
    }
    assert_int_equal(partition_state_shrunk_isr(&s, 100000, LAG_MS, left), 3);
    partition_state_fini(&s);
}

static void a_replica_joins_only_past_high_watermark_and_epoch_start(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    assert_int_equal(s.epoch_start, 100);
    (void)fetched(&s, 3, 99, 1001);
    assert_false(
        partition_state_may_expand(&s, 3)); // at the high watermark, but below the start of this epoch
    (void)fetched(&s, 3, 100, 1002);
    assert_true(partition_state_may_expand(&s, 3));
    partition_state_fini(&s);
}

static void a_replica_with_an_old_broker_epoch_may_not_join(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    (void)fetched(&s, 3, 100, 1001);
    partition_state_set_broker(&s, 3, true, 99); // it has restarted and registered anew
    assert_false(partition_state_may_expand(&s, 3));
    partition_state_fini(&s);
}

static void an_uncleanly_elected_leader_does_not_grow_its_isr(void **unused)
{
    (void)unused;
    struct partition_state s;
    const broker_id isr[] = {1};
    partition_state_init(&s, SELF, 0, 10, 10);
    struct partition_assignment a = assignment(SELF, 4, 9, isr, 1);
    a.recovering = true;
    (void)partition_state_apply(&s, &a, 0);
    partition_state_set_broker(&s, 2, true, 12);
    (void)fetched(&s, 2, 10, 1);
    assert_false(partition_state_may_expand(&s, 2));
    partition_state_fini(&s);
}

static void older_assignments_are_ignored(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(all, 3);
    struct partition_assignment same = assignment(SELF, 1, 1, isr, 2);
    assert_int_equal(partition_state_apply(&s, &same, 0), PARTITION_CHANGE_NONE);
    struct partition_assignment older = assignment(2, 0, 7, isr, 2);
    assert_int_equal(partition_state_apply(&s, &older, 0), PARTITION_CHANGE_NONE);
    assert_int_equal(s.isr_count, 3);
    partition_state_fini(&s);
}

static void a_new_leader_does_not_lower_nor_guess_the_high_watermark(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    assert_int_equal(s.high_watermark, 50);
    struct partition_assignment a = assignment(SELF, 2, 2, all, 3);
    assert_int_equal(partition_state_apply(&s, &a, 2000), PARTITION_CHANGE_LEADER);
    assert_int_equal(s.high_watermark, 50);
    assert_int_equal(s.epoch_start, 100);
    partition_state_fini(&s);
}

static void a_follower_learns_the_high_watermark_up_to_its_log_end(void **unused)
{
    (void)unused;
    struct partition_state s;
    partition_state_init(&s, SELF, 0, 20, 5);
    struct partition_assignment a = assignment(2, 1, 1, all, 3);
    assert_int_equal(partition_state_apply(&s, &a, 0), PARTITION_CHANGE_FOLLOWER);
    assert_true(partition_state_learned(&s, 30, 100));
    assert_int_equal(s.high_watermark, 30);
    assert_false(partition_state_learned(&s, 30, 10));
    assert_int_equal(s.high_watermark, 30);
    partition_state_fini(&s);
}

static void truncation_takes_the_high_watermark_along(void **unused)
{
    (void)unused;
    struct partition_state s;
    partition_state_init(&s, SELF, 0, 100, 90);
    partition_state_truncated(&s, 70);
    assert_int_equal(s.log_end, 70);
    assert_int_equal(s.high_watermark, 70);
    partition_state_fini(&s);
}

static void a_fetch_past_the_log_end_moves_nothing(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    assert_false(fetched(&s, 2, 101, 1001));
    assert_int_equal(s.others[0].log_end, -1);
    partition_state_fini(&s);
}

static void the_low_watermark_is_the_smallest_start_of_the_live_replicas(void **unused)
{
    (void)unused;
    struct partition_state s = leader_with(all, 3);
    (void)partition_state_log_start(&s, 40);
    (void)partition_state_fetched(&s, 2, 12, 100, 40, 1001);
    (void)partition_state_fetched(&s, 3, 13, 100, 10, 1001);
    assert_int_equal(partition_state_low_watermark(&s), 10);
    partition_state_set_broker(&s, 3, false, 13);
    assert_int_equal(partition_state_low_watermark(&s), 40);
    partition_state_fini(&s);
}

static void a_lost_proposal_leaves_the_committed_isr(void **unused)
{
    (void)unused;
    const broker_id isr[] = {1, 2};
    struct partition_state s = leader_with(isr, 2);
    (void)fetched(&s, 3, 100, 1001);
    partition_state_propose_expand(&s, 3);
    assert_false(partition_state_may_expand(&s, 3));
    partition_state_drop_proposal(&s);
    assert_false(partition_state_in_maximal_isr(&s, 3));
    assert_true(partition_state_may_expand(&s, 3));
    partition_state_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sole_replica_makes_its_appends_visible_at_once),
        cmocka_unit_test(min_insync_replicas_is_bounded_by_the_replication_factor),
        cmocka_unit_test(the_high_watermark_waits_for_every_member_of_the_isr),
        cmocka_unit_test(the_high_watermark_stands_while_the_isr_is_below_its_minimum),
        cmocka_unit_test(a_caught_up_replica_outside_the_isr_counts_for_the_high_watermark),
        cmocka_unit_test(a_fenced_replica_outside_the_isr_does_not_hold_the_high_watermark),
        cmocka_unit_test(a_pending_expansion_counts_before_it_is_committed),
        cmocka_unit_test(a_pending_shrink_keeps_the_committed_isr),
        cmocka_unit_test(a_committed_shrink_lets_the_high_watermark_go_on),
        cmocka_unit_test(a_follower_that_keeps_pace_under_load_is_not_dropped),
        cmocka_unit_test(a_replica_joins_only_past_high_watermark_and_epoch_start),
        cmocka_unit_test(a_replica_with_an_old_broker_epoch_may_not_join),
        cmocka_unit_test(an_uncleanly_elected_leader_does_not_grow_its_isr),
        cmocka_unit_test(older_assignments_are_ignored),
        cmocka_unit_test(a_new_leader_does_not_lower_nor_guess_the_high_watermark),
        cmocka_unit_test(a_follower_learns_the_high_watermark_up_to_its_log_end),
        cmocka_unit_test(truncation_takes_the_high_watermark_along),
        cmocka_unit_test(a_fetch_past_the_log_end_moves_nothing),
        cmocka_unit_test(the_low_watermark_is_the_smallest_start_of_the_live_replicas),
        cmocka_unit_test(a_lost_proposal_leaves_the_committed_isr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
