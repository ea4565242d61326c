// SPDX-License-Identifier: Apache-2.0
// The rules that libraft's plug-in interface needs, each by its number, looked at from inside.
//
// Longer than other files because one fixture looks inside for all of the rules.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"
#include "tests/unit/raft/cluster.h"

static struct cluster *three_running(uint64_t seed, uint32_t snapshot_bytes)
{
    struct cluster *c = cluster_new(
        seed, &(struct cluster_opts){.voters = 3, .dynamic = true, .snapshot_bytes = snapshot_bytes});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 10, 2000));
    cluster_run(c, 1000);
    return c;
}

static struct quorum *leader_of(struct cluster *c)
{
    return c->servers[cluster_active(c)].q;
}

static struct quorum *follower_of(struct cluster *c)
{
    return c->servers[(cluster_active(c) + 1) % 3].q;
}

// ---- feeding a member messages as if from a peer
// ---------------------------------------------------------------
struct feed {
    struct quorum *q;
    struct strbuf body;
    enum wire_kind kind;
    int err;
};

static void feed_inside(void *data)
{
    struct feed *f = data;
    struct link *l = NULL;
    raft_id from = f->q->seen_leader;
    LIST_FOR_EACH(it, &f->q->transport.links)
    {
        struct link *x = LIST_ENTRY(it, struct link, node);
        if (x->ready && (x->peer->id == from || from == 0 || from == f->q->self))
            l = x;
    }
    assert_non_null(l);
    f->err = quorum__receive(f->q, l, f->kind, strbuf_slice(&f->body));
}

// Takes the frame's body (without length and kind) from a rope and feeds it.
static int feed(struct cluster *c, struct quorum *q, struct rope *frame)
{
    struct feed f = {.q = q};
    uint8_t *bytes = malloc(frame->len);
    assert_int_equal(rope_flatten(frame, bytes), 0);
    f.kind = (enum wire_kind)bytes[4];
    strbuf_init(&f.body);
    strbuf_add(&f.body, bytes + 5, frame->len - 5);
    free(bytes);
    rope_clear(frame);
    for (unsigned i = 0; i < c->count; i++) {
        if (c->servers[i].q == q)
            assert_true(world_call(world_host_node(c->servers[i].host), feed_inside, &f));
    }
    strbuf_fini(&f.body);
    return f.err;
}

struct entries {
    struct slice batches[8];
    uint32_t count;
    log_offset next;
    leader_epoch epoch;
};

static struct entries entries_at_end(struct quorum *q)
{
    return (struct entries){.next = q->log_store->end, .epoch = (leader_epoch)q->raft.current_term};
}

static void add_batch(struct entries *e, uint8_t *bytes, size_t size, bool library)
{
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    if (library)
        raft_free(bytes);
    else
        mem_free(bytes);
    e->batches[e->count++] = slice_of(copy, size);
    e->next = batch_next_offset(copy);
}

// A config record of the default broker resource: frame 1, record 4, version 0, type 4, name "", key "a",
// value "b", no tags.
static void add_command(struct entries *e)
{
    static const uint8_t value[] = {1, 4, 0, 4, 1, 2, 'a', 2, 'b', 0};
    struct slice v = slice_of(value, sizeof value);
    size_t size;
    uint8_t *b = entry_make_command(&v, 1, e->next, e->epoch, 1, &size);
    add_batch(e, b, size, true);
}

static void add_change(struct entries *e, struct voter_set *set)
{
    struct entry_origin o = {.base = e->next, .epoch = e->epoch, .now = 1, .leader = 0, .voters = set};
    size_t size;
    uint8_t *b = entry_make_change(&o, &size);
    add_batch(e, b, size, false);
}

static void drop(struct entries *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        free((void *)(uintptr_t)e->batches[i].data);
}

static void put_append(struct rope *frame, struct quorum *q, const struct entries *e, raft_index commit)
{
    struct wire_append w = {.term = q->raft.current_term,
                            .prev_index = mlog_last_index(q->log_store),
                            .prev_term = (raft_term)mlog_last_epoch(q->log_store),
                            .leader_commit = commit,
                            .count = e->count};
    rope_init(frame);
    wire_put_append(frame, &w, e->batches);
}

// ---- 1 to 6
// ----------------------------------------------------------------------------------------------------
static void rule_1_the_library_is_configured_before_it_starts(void **state)
{
    (void)state;
    struct cluster *c = three_running(101, 0);
    const struct raft *r = &leader_of(c)->raft;
    assert_int_equal(r->capacity_threshold, 0);
    assert_true(r->pre_vote);
    assert_int_equal(r->election_timeout, 1000);
    assert_int_equal(r->heartbeat_timeout, 100);
    assert_true(r->max_inflight_entries >= 256);
    assert_int_equal(r->max_catch_up_round_duration, RAFT_CATCH_UP_ROUND_MS);
    assert_true(r->id != 0);
    cluster_free(c);
}

static void rule_2_a_failed_log_write_stops_the_node(void **state)
{
    (void)state;
    struct cluster *c = three_running(102, 0);
    unsigned leader = (unsigned)cluster_active(c);
    vfs_faulty_fail_path(world_host_disk(c->servers[leader].host), ".log");
    vfs_faulty_fail(world_host_disk(c->servers[leader].host), VFS_CALL_WRITE, 1, ERR_IO, true, true);
    assert_int_equal(cluster_propose(c), 0);
    world_run(c->w, 100);
    assert_non_null(world_host_stopped(c->servers[leader].host));
    world_host_forget_stop(c->servers[leader].host);
    c->servers[leader].q = NULL;
    vfs_faulty_heal(world_host_disk(c->servers[leader].host));
    cluster_start(c, leader);
    assert_int_equal(c->servers[leader].create_err, 0);
    cluster_settle(c, 20000);
    cluster_free(c);
}

static void rule_2_a_failed_vote_write_stops_the_node(void **state)
{
    (void)state;
    struct cluster *c = three_running(103, 0);
    unsigned leader = (unsigned)cluster_active(c), next = (leader + 1) % 3, other = (leader + 2) % 3;
    cluster_crash(c, other, false);
    vfs_faulty_fail_path(world_host_disk(c->servers[next].host), "quorum-state");
    vfs_faulty_fail(world_host_disk(c->servers[next].host), VFS_CALL_SYNC, 1, ERR_IO, true, false);
    cluster_crash(c, leader, false);
    cluster_start(c, other);
    world_run(c->w, 5000);
    assert_non_null(world_host_stopped(c->servers[next].host));
    assert_true(cluster_active(c) < 0); // nobody got a vote that was not on disk
    world_host_forget_stop(c->servers[next].host);
    c->servers[next].q = NULL;
    vfs_faulty_heal(world_host_disk(c->servers[next].host));
    cluster_start(c, next);
    cluster_start(c, leader);
    cluster_settle(c, 20000);
    cluster_free(c);
}

static void rule_3_an_append_is_answered_in_a_later_turn(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(104, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    struct quorum *q = leader_of(c);
    raft_index applied = q->raft.last_applied;
    assert_int_equal(cluster_propose(c), 0);
    assert_int_equal(q->raft.last_applied, applied);
    assert_int_equal(c->acked_count, 0);
    cluster_run(c, 100);
    assert_int_equal(c->acked_count, 1);
    cluster_free(c);
}

static void rule_5_the_library_and_the_log_end_at_the_same_entry(void **state)
{
    (void)state;
    struct cluster *c = three_running(105, 3000);
    assert_true(cluster_commit(c, 60, 2000));
    for (unsigned i = 0; i < 3; i++) {
        struct quorum *q = c->servers[i].q;
        assert_int_equal(raft_last_index(&q->raft), mlog_last_index(q->log_store));
        assert_true(q->raft.trail.offset >= q->log_store->base.index);
    }
    cluster_free(c);
}

// ---- 7
// ---------------------------------------------------------------------------------------------------------
static void rule_7_what_is_not_good_closes_the_connection_and_never_reaches_the_library(void **state)
{
    (void)state;
    struct cluster *c = three_running(107, 0);
    struct quorum *q = follower_of(c);
    raft_index last = raft_last_index(&q->raft);
    for (int what = 0; what < 7; what++) {
        struct entries e = entries_at_end(q);
        struct rope frame;
        add_command(&e);
        add_command(&e);
        uint8_t *first = (uint8_t *)(uintptr_t)e.batches[0].data,
                *second = (uint8_t *)(uintptr_t)e.batches[1].data;
        switch (what) {
        case 0:
            first[70] ^= 1; // CRC
            break;
        case 1:
            batch_set_base_offset(second, batch_base_offset(second) + 1); // a gap
            break;
        case 2:
            batch_set_leader_epoch(second, e.epoch + 1); // of a term to come
            break;
        case 3:
            batch_set_base_offset(first, batch_base_offset(first) + 1); // not at our end
            batch_set_base_offset(second, batch_base_offset(second) + 1);
            break;
        case 4:
            e.batches[1].len -= 1; // cut short
            break;
        case 5:
            batch_set_leader_epoch(first, 0); // no term
            break;
        case 6:
            batch_set_last_offset_delta(first, 5); // gaps inside
            batch_seal(first);
            break;
        }
        put_append(&frame, q, &e, 0);
        assert_int_equal(feed(c, q, &frame), ERR_MALFORMED);
        assert_int_equal(raft_last_index(&q->raft), last);
        drop(&e);
    }
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void rule_7_a_configuration_out_of_bounds_is_refused(void **state)
{
    (void)state;
    struct cluster *c = three_running(117, 0);
    struct quorum *q = follower_of(c);
    for (int what = 0; what < 3; what++) {
        struct voter_set *set = voter_set_with_endpoints(quorum__voters(q), NULL);
        struct entries e = entries_at_end(q);
        struct rope frame;
        if (what == 0)
            set->servers[0].id = 0;
        else if (what == 1)
            set->servers[1].id = set->servers[0].id;
        else
            set->servers[0].role = 7;
        add_change(&e, set);
        put_append(&frame, q, &e, 0);
        assert_int_equal(feed(c, q, &frame), ERR_MALFORMED);
        drop(&e);
        voter_set_unref(set);
    }
    cluster_free(c);
}

// ---- 8, 9, 10
// -------------------------------------------------------------------------------------------------- Two
// changes in the middle of one message: each is noted at its own index, the first one as committed before the
// second.
static void rule_8_a_message_is_cut_in_front_of_each_change(void **state)
{
    (void)state;
    struct cluster *c = three_running(108, 0);
    struct quorum *q = follower_of(c);
    cluster_crash(c, (unsigned)cluster_active(c), false);
    raft_index last = raft_last_index(&q->raft);
    struct entries e = entries_at_end(q);
    struct voter_set *set = voter_set_with_endpoints(quorum__voters(q), NULL);
    struct rope frame;
    add_command(&e);
    add_change(&e, set);
    add_command(&e);
    add_change(&e, set);
    add_command(&e);
    put_append(&frame, q, &e, last);
    assert_int_equal(feed(c, q, &frame), 0);
    assert_int_equal(raft_last_index(&q->raft), last + 5);
    assert_int_equal(q->raft.configuration_committed_index, last + 2);
    assert_int_equal(q->raft.configuration_uncommitted_index, last + 4);
    voter_set_unref(set);
    drop(&e);
    cluster_free(c);
}

static void rule_9_an_old_message_does_not_lower_the_commit_index(void **state)
{
    (void)state;
    struct cluster *c = three_running(109, 0);
    struct quorum *q = follower_of(c);
    raft_index commit = q->raft.commit_index;
    struct wire_append w = {.term = q->raft.current_term,
                            .prev_index = commit - 3,
                            .prev_term = (raft_term)mlog_epoch_of_index(q->log_store, commit - 3),
                            .leader_commit = commit + 50};
    struct rope frame;
    rope_init(&frame);
    wire_put_append(&frame, &w, NULL);
    assert_int_equal(feed(c, q, &frame), 0);
    assert_int_equal(q->raft.commit_index, commit);
    cluster_free(c);
}

static void rule_9_a_message_from_before_our_snapshot_begins_at_the_snapshot(void **state)
{
    (void)state;
    struct cluster *c = three_running(119, 2000);
    assert_true(cluster_commit(c, 60, 2000));
    cluster_run(c, 2000);
    struct quorum *q = follower_of(c);
    assert_true(q->raft.trail.snapshot.index > 3);
    raft_index last = raft_last_index(&q->raft);
    struct wire_append w = {
        .term = q->raft.current_term, .prev_index = 2, .prev_term = 1, .leader_commit = last};
    struct rope frame;
    rope_init(&frame);
    wire_put_append(&frame, &w, NULL);
    assert_int_equal(feed(c, q, &frame), 0);
    assert_int_equal(raft_last_index(&q->raft), last);
    assert_true(q->raft.commit_index <= last);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void rule_10_a_member_that_is_not_yet_a_voter_gives_its_vote(void **state)
{
    (void)state;
    struct cluster *c = three_running(110, 0);
    struct quorum *q = follower_of(c);
    raft_id candidate = q->seen_leader;
    struct raft_server *own = NULL;
    for (unsigned i = 0; i < q->raft.configuration.n; i++) {
        if (q->raft.configuration.servers[i].id == q->self)
            own = &q->raft.configuration.servers[i];
    }
    own->role = RAFT_SPARE;
    raft_term term = q->raft.current_term + 1;
    struct raft_message m = {.type = RAFT_REQUEST_VOTE};
    m.request_vote = (struct raft_request_vote){.version = 2,
                                                .term = term,
                                                .candidate_id = candidate,
                                                .last_log_index = raft_last_index(&q->raft) + 1,
                                                .last_log_term = q->raft.current_term,
                                                .disrupt_leader = true};
    struct rope frame;
    rope_init(&frame);
    wire_put_small(&frame, &m);
    assert_int_equal(feed(c, q, &frame), 0);
    assert_int_equal(q->raft.voted_for, candidate);
    assert_int_equal(q->raft.current_term, term);
    assert_int_equal(own->role, RAFT_SPARE);
    cluster_free(c);
}

// ---- 11, 12
// ---------------------------------------------------------------------------------------------------- A
// member that lags by several MiB gets them in messages of 1 MiB at most (the frame limit of the listener is
// far below the whole).
static void rule_11_entries_are_sent_in_messages_of_one_mebibyte(void **state)
{
    (void)state;
    struct cluster *c = three_running(111, 0);
    unsigned down = (unsigned)(cluster_active(c) + 1) % 3;
    cluster_crash(c, down, false);
    for (int i = 0; i < 700; i++) {
        assert_int_equal(cluster_propose_bytes(c, 30000), 0);
        cluster_run(c, 5);
    }
    assert_true(quorum_log_end(leader_of(c)) > 700);
    cluster_start(c, down);
    cluster_settle(c, 20000);
    cluster_free(c);
}

static void rule_12_the_first_proposal_after_a_pause_waits_for_no_tick(void **state)
{
    (void)state;
    struct cluster *c = three_running(112, 0);
    mono_us longest = 0;
    for (int i = 0; i < 20; i++) {
        cluster_run(c, 333);
        mono_us began = world_now(c->w);
        assert_true(cluster_commit(c, 1, 2000));
        if (world_now(c->w) - began > longest)
            longest = world_now(c->w) - began;
    }
    assert_true(longest < 20000);
    cluster_free(c);
}

// ---- 13 to 16
// -------------------------------------------------------------------------------------------------- The
// leader dies while a member fetches its snapshot: the two that are left elect one of them.
static void rule_13_a_leader_that_dies_during_a_fetch_does_not_stop_the_quorum(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(
        113,
        &(struct cluster_opts){.voters = 3, .dynamic = true, .snapshot_bytes = 20000, .fetch_bytes = 2048});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    unsigned leader = (unsigned)cluster_active(c), down = (leader + 1) % 3;
    cluster_crash(c, down, false);
    for (int i = 0; i < 140; i++) {
        assert_int_equal(cluster_propose_bytes(c, 30000), 0);
        cluster_run(c, 50);
    }
    cluster_run(c, 2000);
    leader = (unsigned)cluster_active(c);
    cluster_start(c, down);
    while (c->servers[down].q->fetch.state != FETCH_READING || c->servers[down].q->fetch.pos < 6000)
        cluster_run(c, 1);
    assert_false(c->servers[down].q->raft.snapshot.installing);
    cluster_crash(c, leader, false);
    assert_true(cluster_wait_active(c, 20000));
    cluster_settle(c, 20000);
    cluster_start(c, leader);
    cluster_settle(c, 20000);
    cluster_free(c);
}

static void rule_14_an_installed_snapshot_survives_a_crash_right_after(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct cluster *c = cluster_new(
            114 + seed, &(struct cluster_opts){.voters = 3, .dynamic = true, .snapshot_bytes = 20000});
        cluster_start_all(c);
        assert_true(cluster_wait_active(c, 10000));
        unsigned down = (unsigned)(cluster_active(c) + 1) % 3;
        cluster_crash(c, down, false);
        for (int i = 0; i < 140; i++) {
            assert_int_equal(cluster_propose_bytes(c, 30000), 0);
            cluster_run(c, 20);
        }
        cluster_run(c, 2000);
        cluster_start(c, down);
        for (int i = 0; i < 20000 && !c->servers[down].q->raft.snapshot.installing; i++)
            (void)world_step(c->w);
        for (uint64_t i = 0; i < seed * 3; i++)
            (void)world_step(c->w);
        cluster_crash(c, down, true);
        cluster_start(c, down);
        assert_int_equal(c->servers[down].create_err, 0);
        cluster_settle(c, 20000);
        cluster_free(c);
    }
}

static void rule_15_no_snapshot_while_something_is_not_synced_or_not_noted(void **state)
{
    (void)state;
    struct cluster *c = three_running(115, 0);
    struct quorum *q = leader_of(c);
    struct raft *r = &q->raft;
    assert_true(quorum__snapshot_allowed(q));
    r->last_applied--;
    assert_false(quorum__snapshot_allowed(q));
    r->last_applied++;
    raft_index stored = r->last_stored, noted = r->configuration_committed_index;
    r->last_stored = r->commit_index - 1;
    assert_false(quorum__snapshot_allowed(q));
    r->last_stored = stored;
    r->configuration_committed_index = noted - 1;
    assert_false(quorum__snapshot_allowed(q));
    r->configuration_committed_index = noted;
    struct peer *p = LIST_ENTRY(list_first(&q->transport.peers), struct peer, node);
    p->snapshot_sent_at = node_clock(q->opts.node);
    raft_index at = r->trail.snapshot.index;
    r->trail.snapshot.index = r->commit_index + 5; // as if it had not caught up
    assert_false(quorum__snapshot_allowed(q));
    r->trail.snapshot.index = at;
    assert_true(quorum__snapshot_allowed(q));
    cluster_free(c);
}

// ---- 18 to 25
// --------------------------------------------------------------------------------------------------
static void rule_19_the_high_watermark_is_never_above_what_is_synced(void **state)
{
    (void)state;
    struct cluster *c = three_running(121, 0);
    unsigned slow = (unsigned)cluster_active(c);
    struct quorum *q = c->servers[slow].q;
    world_host_set_disk_us(c->servers[slow].host, 500000, 500000);
    log_offset before = quorum_high_watermark(q);
    assert_int_equal(cluster_propose(c), 0);
    cluster_run(c, 200); // the two others have it: it is committed and applied here, but not yet on this disk
    assert_true(mlog_end_of_index(q->log_store, q->raft.last_applied) > before);
    assert_int_equal(quorum_high_watermark(q), before);
    cluster_run(c, 2000);
    assert_true(quorum_high_watermark(q) > before);
    cluster_free(c);
}

static void rule_22_a_full_disk_refuses_proposals_and_heals(void **state)
{
    (void)state;
    struct cluster *c = three_running(122, 0);
    unsigned leader = (unsigned)cluster_active(c);
    struct vfs_faulty *disk = world_host_disk(c->servers[leader].host);
    vfs_faulty_set_capacity(disk, vfs_faulty_used(disk) + 1000000);
    cluster_run(c, 500);
    assert_int_equal(cluster_propose(c), ERR_NOSPACE);
    assert_int_equal(cluster_active(c), (int)leader); // reads go on, it still leads
    vfs_faulty_set_capacity(disk, 0);
    cluster_run(c, 500);
    assert_int_equal(cluster_propose(c), 0);
    cluster_settle(c, 10000);
    cluster_free(c);
}

static void rule_22_a_majority_without_space_refuses_proposals(void **state)
{
    (void)state;
    struct cluster *c = three_running(123, 0);
    unsigned leader = (unsigned)cluster_active(c);
    for (unsigned i = 0; i < 3; i++) {
        struct vfs_faulty *disk = world_host_disk(c->servers[i].host);
        if (i != leader)
            vfs_faulty_set_capacity(disk, vfs_faulty_used(disk) + 1000000);
    }
    cluster_run(c, 1000);
    assert_int_equal(cluster_propose(c), ERR_NOSPACE);
    for (unsigned i = 0; i < 3; i++)
        vfs_faulty_set_capacity(world_host_disk(c->servers[i].host), 0);
    cluster_run(c, 1000);
    assert_int_equal(cluster_propose(c), 0);
    cluster_free(c);
}

static void rule_23_every_term_begins_with_a_leader_change_batch(void **state)
{
    (void)state;
    struct cluster *c = three_running(124, 0);
    for (int i = 0; i < 3; i++) {
        unsigned leader = (unsigned)cluster_active(c);
        cluster_crash(c, leader, false);
        assert_true(cluster_wait_active(c, 10000));
        assert_true(cluster_commit(c, 3, 2000));
        cluster_start(c, leader);
        cluster_run(c, 1000);
    }
    struct quorum *q = leader_of(c);
    struct mlog *m = q->log_store;
    leader_epoch last = 0;
    for (raft_index i = mlog_first_index(m); i <= mlog_last_index(m); i++) {
        const struct mlog_entry *e = mlog_entry_at(m, i);
        if (e->epoch != last)
            assert_int_equal(e->type, RAFT_BARRIER);
        last = e->epoch;
    }
    assert_true(m->epochs_count >= 4);
    cluster_free(c);
}

static void rule_25_an_orderly_stop_gives_everything_back(void **state)
{
    (void)state;
    struct cluster *c = three_running(125, 3000);
    for (int i = 0; i < 20; i++)
        (void)cluster_propose(c);
    unsigned leader = (unsigned)cluster_active(c);
    struct server *s = &c->servers[leader];
    world_host_set_disk_us(s->host, 50000, 90000); // appends are under way
    (void)cluster_propose(c);
    cluster_stop(c, leader);
    assert_true(s->memory_left < 4096); // the loop, the pools and the listener
    assert_int_equal(c->acked_count + c->unknown, c->proposed - c->failed); // everybody got an answer
    world_host_set_disk_us(s->host, 0, 0);
    cluster_start(c, leader);
    cluster_settle(c, 10000);
    cluster_free(c);
}

// ---- the linked library itself
// -----------------------------------------------------------------------------------
static int feed_result(struct cluster *c, struct quorum *q, raft_index stored)
{
    struct raft_message m = {.type = RAFT_APPEND_ENTRIES_RESULT};
    m.append_entries_result = (struct raft_append_entries_result){.version = 2,
                                                                  .term = q->raft.current_term,
                                                                  .last_log_index = stored,
                                                                  .features = 1,
                                                                  .capacity = 60000};
    struct rope frame;
    rope_init(&frame);
    wire_put_small(&frame, &m);
    return feed(c, q, &frame);
}

// Figure 8 of the Raft paper: a leader does not commit an entry of an older term because a majority has it,
// only with one of its own term. libraft 0.15 did, and lost committed records.
static void an_entry_of_an_older_term_is_committed_only_with_one_of_the_own(void **state)
{
    (void)state;
    struct cluster *c = three_running(130, 0);
    unsigned a = (unsigned)cluster_active(c), b = (a + 1) % 3, gone = (a + 2) % 3;
    world_cut_all(c->w, c->servers[a].host, true);
    assert_int_equal(cluster_propose(c), 0); // stays in this log alone
    cluster_run(c, 30);
    raft_index old = mlog_last_index(c->servers[a].q->log_store);
    cluster_crash(c, b, false);
    cluster_crash(c, gone, false);
    cluster_crash(c, a, false);
    world_heal(c->w);
    world_host_set_disk_us(c->servers[b].host, 900000000, 900000000); // gives its vote, stores nothing
    cluster_start(c, a);
    cluster_start(c, b);
    struct quorum *q = c->servers[a].q;
    for (int i = 0; i < 10000 && q->raft.state != RAFT_LEADER; i++)
        cluster_run(c, 1);
    assert_int_equal(q->raft.state, RAFT_LEADER);
    cluster_run(c, 50);
    assert_int_equal(mlog_entry_at(q->log_store, old)->type, RAFT_COMMAND);
    assert_true((raft_term)mlog_epoch_of_index(q->log_store, old) < q->raft.current_term);
    assert_int_equal(feed_result(c, q, old), 0);
    assert_true(q->raft.commit_index < old);
    assert_int_equal(feed_result(c, q, old + 1), 0);
    assert_true(q->raft.commit_index >= old + 1);
    cluster_free(c);
}

static void an_answer_that_acknowledges_what_does_not_exist_closes_the_connection(void **state)
{
    (void)state;
    struct cluster *c = three_running(131, 0);
    struct quorum *q = leader_of(c);
    assert_int_equal(feed_result(c, q, mlog_last_index(q->log_store) + 1), ERR_MALFORMED);
    cluster_free(c);
}

// The library answers an AppendEntries or a snapshot of an old term with an index that it never set.
static void an_offer_of_an_old_term_is_not_answered(void **state)
{
    (void)state;
    struct cluster *c = three_running(132, 0);
    struct quorum *q = follower_of(c);
    struct voter_set *set = voter_set_with_endpoints(quorum__voters(q), NULL);
    struct wire_install w = {.term = 1, .last_term = 1, .last_index = 2, .conf_index = 2, .voters = set};
    struct rope frame;
    rope_init(&frame);
    wire_put_install(&frame, &w);
    raft_index stored = q->raft.last_stored;
    assert_int_equal(feed(c, q, &frame), 0);
    assert_int_equal(q->raft.last_stored, stored);
    assert_int_equal(q->fetch.state, FETCH_NONE);
    voter_set_unref(set);
    cluster_settle(c, 10000);
    cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_1_the_library_is_configured_before_it_starts),
        cmocka_unit_test(rule_2_a_failed_log_write_stops_the_node),
        cmocka_unit_test(rule_2_a_failed_vote_write_stops_the_node),
        cmocka_unit_test(rule_3_an_append_is_answered_in_a_later_turn),
        cmocka_unit_test(rule_5_the_library_and_the_log_end_at_the_same_entry),
        cmocka_unit_test(rule_7_what_is_not_good_closes_the_connection_and_never_reaches_the_library),
        cmocka_unit_test(rule_7_a_configuration_out_of_bounds_is_refused),
        cmocka_unit_test(rule_8_a_message_is_cut_in_front_of_each_change),
        cmocka_unit_test(rule_9_an_old_message_does_not_lower_the_commit_index),
        cmocka_unit_test(rule_9_a_message_from_before_our_snapshot_begins_at_the_snapshot),
        cmocka_unit_test(rule_10_a_member_that_is_not_yet_a_voter_gives_its_vote),
        cmocka_unit_test(rule_11_entries_are_sent_in_messages_of_one_mebibyte),
        cmocka_unit_test(rule_12_the_first_proposal_after_a_pause_waits_for_no_tick),
        cmocka_unit_test(rule_13_a_leader_that_dies_during_a_fetch_does_not_stop_the_quorum),
        cmocka_unit_test(rule_14_an_installed_snapshot_survives_a_crash_right_after),
        cmocka_unit_test(rule_15_no_snapshot_while_something_is_not_synced_or_not_noted),
        cmocka_unit_test(rule_19_the_high_watermark_is_never_above_what_is_synced),
        cmocka_unit_test(rule_22_a_full_disk_refuses_proposals_and_heals),
        cmocka_unit_test(rule_22_a_majority_without_space_refuses_proposals),
        cmocka_unit_test(rule_23_every_term_begins_with_a_leader_change_batch),
        cmocka_unit_test(rule_25_an_orderly_stop_gives_everything_back),
        cmocka_unit_test(an_entry_of_an_older_term_is_committed_only_with_one_of_the_own),
        cmocka_unit_test(an_answer_that_acknowledges_what_does_not_exist_closes_the_connection),
        cmocka_unit_test(an_offer_of_an_old_term_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
