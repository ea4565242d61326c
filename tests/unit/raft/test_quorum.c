// SPDX-License-Identifier: Apache-2.0
// The quorum as its users see it: elections, commits, restarts, snapshots, membership, in a simulated world.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/raft/cluster.h"

// A sole voter becomes active by itself and commits.
static void a_single_voter_commits(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(1, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    assert_true(cluster_commit(c, 20, 1000));
    cluster_check_acked(c, 0);
    cluster_free(c);
}

// Its term rises at every start: a standby could hold its lost tail under the old one.
static void a_single_voter_starts_with_a_higher_term(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(2, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    for (int i = 0; i < 5; i++) {
        assert_true(cluster_wait_active(c, 5000));
        leader_epoch term = c->servers[0].term;
        assert_true(cluster_commit(c, 5, 1000));
        cluster_crash(c, 0, true);
        cluster_start(c, 0);
        assert_int_equal(c->servers[0].create_err, 0);
        assert_true(cluster_wait_active(c, 5000));
        assert_true(c->servers[0].term > term);
        cluster_check_acked(c, 0);
    }
    cluster_free(c);
}

static void three(uint64_t seed, bool dynamic)
{
    struct cluster *c = cluster_new(seed, &(struct cluster_opts){.voters = 3, .dynamic = dynamic});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 50, 2000));
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void three_voters_of_a_static_quorum_commit(void **state)
{
    (void)state;
    three(3, false);
}

static void three_voters_of_a_dynamic_quorum_commit(void **state)
{
    (void)state;
    three(4, true);
}

// The leader's process dies: another one is active long before an election timeout.
static void a_dead_leader_is_replaced_at_once(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(5, &(struct cluster_opts){.voters = 3, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 10, 2000));
    cluster_run(c, 2000);
    int leader = cluster_active(c);
    cluster_crash(c, (unsigned)leader, false);
    mono_us dead = world_now(c->w);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(world_now(c->w) - dead < 200000);
    cluster_start(c, (unsigned)leader);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void an_orderly_stop_hands_leadership_over(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(6, &(struct cluster_opts){.voters = 3, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 10, 2000));
    cluster_run(c, 2000);
    unsigned leader = (unsigned)cluster_active(c);
    mono_us asked = world_now(c->w);
    cluster_stop(c, leader);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(world_now(c->w) - asked < 300000);
    cluster_start(c, leader);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void all_may_be_stopped_and_started_again(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_new(7, &(struct cluster_opts){.voters = 3, .dynamic = true, .snapshot_bytes = 3000});
    cluster_start_all(c);
    for (int round = 0; round < 4; round++) {
        assert_true(cluster_wait_active(c, 10000));
        assert_true(cluster_commit(c, 30, 2000));
        for (unsigned i = 0; i < 3; i++)
            cluster_stop(c, i);
        for (unsigned i = 0; i < 3; i++) {
            cluster_start(c, i);
            assert_int_equal(c->servers[i].create_err, 0);
        }
    }
    cluster_settle(c, 10000);
    cluster_free(c);
}

// A member that was down while the others took snapshots and pruned their logs comes back by a snapshot
// fetched in chunks.
static void a_member_that_is_far_behind_gets_a_snapshot(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(
        8,
        &(struct cluster_opts){.voters = 3, .dynamic = true, .snapshot_bytes = 20000, .fetch_bytes = 4096});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 5, 2000));
    unsigned down = cluster_active(c) == 0 ? 1 : 0;
    cluster_crash(c, down, false);
    for (int i = 0; i < 140; i++) { // beyond the bytes that are kept for peers that lag a little
        assert_int_equal(cluster_propose_bytes(c, 30000), 0);
        cluster_run(c, 50);
    }
    assert_true(cluster_commit(c, 50, 2000));
    cluster_run(c, 2000);
    struct quorum_snapshot_id id;
    assert_true(quorum_latest_snapshot(c->servers[cluster_active(c)].q, &id));
    cluster_start(c, down);
    cluster_settle(c, 20000);
    assert_true(quorum_log_start(c->servers[down].q) > 0);
    cluster_free(c);
}

static void a_voter_is_added_and_removed(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(9, &(struct cluster_opts){.voters = 1, .servers = 3, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 20, 2000));
    for (unsigned i = 1; i < 3; i++) {
        cluster_start(c, i);
        assert_int_equal(c->servers[i].create_err, 0);
        cluster_run(c, 100);
        unsigned done = c->changes_done;
        cluster_add(c, i);
        assert_true(cluster_wait_change(c, done + 1, 20000));
        assert_string_equal(c->change_why, "added");
        assert_true(cluster_commit(c, 5, 2000));
    }
    cluster_settle(c, 10000);
    struct quorum_description d;
    quorum_describe(c->servers[cluster_active(c)].q, &d);
    assert_int_equal(d.members_count, 3);
    unsigned gone = cluster_active(c) == 2 ? 1 : 2;
    unsigned done = c->changes_done;
    cluster_remove(c, gone);
    assert_true(cluster_wait_change(c, done + 1, 20000));
    assert_string_equal(c->change_why, "removed");
    cluster_crash(c, gone, false);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void the_active_controller_is_not_removed_but_hands_over(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(10, &(struct cluster_opts){.voters = 3, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    unsigned leader = (unsigned)cluster_active(c);
    cluster_run(c, 1000);
    cluster_remove(c, leader);
    assert_true(cluster_wait_change(c, 1, 5000));
    assert_int_equal(c->change_err, ERR_NOTLEADER);
    cluster_run(c, 1000);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_active(c) != (int)leader);
    cluster_remove(c, leader);
    assert_true(cluster_wait_change(c, 2, 5000));
    assert_int_equal(c->change_err, 0);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void the_last_voter_is_not_removed(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(11, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    cluster_remove(c, 0);
    assert_true(cluster_wait_change(c, 1, 5000));
    assert_int_equal(c->change_err, ERR_STATE);
    cluster_free(c);
}

static void the_voters_of_a_static_quorum_do_not_change(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(12, &(struct cluster_opts){.voters = 1, .servers = 2});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    cluster_add(c, 1);
    assert_true(cluster_wait_change(c, 1, 5000));
    assert_int_equal(c->change_err, ERR_STATE);
    cluster_free(c);
}

static void transfer_inside(void *data)
{
    (void)quorum_transfer_leadership(data, -1);
}

static void leadership_is_handed_over_under_load(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(14, &(struct cluster_opts){.voters = 3, .dynamic = true});
    unsigned changes = 0;
    int last = -1;
    cluster_start_all(c);
    for (int i = 0; i < 200; i++) {
        assert_true(cluster_wait_active(c, 10000));
        unsigned leader = (unsigned)cluster_active(c);
        changes += (int)leader != last;
        last = (int)leader;
        for (int k = 0; k < 5; k++)
            (void)cluster_propose(c);
        cluster_run(c, world_between(c->w, 0, 10));
        (void)world_call(world_host_node(c->servers[leader].host), transfer_inside, c->servers[leader].q);
        for (int k = 0; k < 5; k++)
            (void)cluster_propose(c);
        cluster_run(c, world_between(c->w, 10, 60));
    }
    assert_in_range(changes, 195, 200);
    cluster_settle(c, 10000);
    assert_int_equal(c->acked_count + c->unknown, c->proposed - c->failed);
    cluster_free(c);
}

static void noop_inside(void *data)
{
    (void)quorum_propose_noop(data);
}

// Idle no-ops and snapshots for a long time: neither memory nor disk grows.
static void an_idle_quorum_does_not_grow(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(13, &(struct cluster_opts){.voters = 3,
                                                               .dynamic = true,
                                                               .snapshot_bytes = 20000,
                                                               .segment_bytes = 20000,
                                                               .trailing_bytes = 1000,
                                                               .retention_bytes = 60000});
    uint64_t memory = 0, disk = 0;
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 10, 2000));
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 1000; i++) {
            unsigned leader = (unsigned)cluster_active(c);
            (void)world_call(world_host_node(c->servers[leader].host), noop_inside, c->servers[leader].q);
            cluster_run(c, 20);
        }
        if (round == 2) {
            memory = world_host_memory(c->servers[0].host);
            disk = vfs_faulty_used(world_host_disk(c->servers[0].host));
        }
    }
    assert_true(quorum_log_start(c->servers[0].q) > 1000);
    assert_true(world_host_memory(c->servers[0].host) < memory + memory / 2);
    assert_true(vfs_faulty_used(world_host_disk(c->servers[0].host)) < disk + 80000);
    cluster_settle(c, 10000);
    cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_voter_commits),
        cmocka_unit_test(a_single_voter_starts_with_a_higher_term),
        cmocka_unit_test(three_voters_of_a_static_quorum_commit),
        cmocka_unit_test(three_voters_of_a_dynamic_quorum_commit),
        cmocka_unit_test(a_dead_leader_is_replaced_at_once),
        cmocka_unit_test(an_orderly_stop_hands_leadership_over),
        cmocka_unit_test(all_may_be_stopped_and_started_again),
        cmocka_unit_test(a_member_that_is_far_behind_gets_a_snapshot),
        cmocka_unit_test(a_voter_is_added_and_removed),
        cmocka_unit_test(the_active_controller_is_not_removed_but_hands_over),
        cmocka_unit_test(the_last_voter_is_not_removed),
        cmocka_unit_test(the_voters_of_a_static_quorum_do_not_change),
        cmocka_unit_test(leadership_is_handed_over_under_load),
        cmocka_unit_test(an_idle_quorum_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
