// SPDX-License-Identifier: Apache-2.0
// What a batch is to libraft, voter sets in their forms, Raft ids, epochs of the log.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "raft/quorum_impl.h"
#include "tests/unit/raft/cluster.h"

static struct voter_set *sample_set(void)
{
    struct voter_set *s = voter_set_new(3);
    for (uint32_t i = 0; i < 3; i++) {
        struct quorum_server *v = &s->servers[i];
        v->voter.id = (node_id)(5 - i);
        v->voter.directory_id.b[3] = (uint8_t)(7 * (i + 1));
        v->id = quorum_raft_id(v->voter.id, v->voter.directory_id, true);
        v->role = i == 1 ? RAFT_SPARE : RAFT_VOTER;
        v->voter.endpoints_count = 1;
        (void)snprintf(v->voter.endpoints[0].name, sizeof v->voter.endpoints[0].name, "CONTROLLER");
        (void)snprintf(v->voter.endpoints[0].host, sizeof v->voter.endpoints[0].host, "host-%u", i);
        v->voter.endpoints[0].port = (uint16_t)(9093 + i);
        v->voter.kraft_version_max = 1;
    }
    return s;
}

static void assert_same(const struct voter_set *a, const struct voter_set *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->servers, b->servers, a->count * sizeof a->servers[0]);
}

static void a_raft_id_is_never_zero_and_follows_the_directory(void **state)
{
    (void)state;
    struct uuid a = UUID_ZERO, b = UUID_ZERO;
    b.b[0] = 1;
    assert_int_equal(quorum_raft_id(0, UUID_ZERO, false), 1);
    assert_int_equal(quorum_raft_id(7, a, false), 8);
    assert_true(quorum_raft_id(0, a, true) != 0);
    assert_true(quorum_raft_id(3, a, true) != quorum_raft_id(3, b, true));
    assert_int_equal(quorum_raft_id(3, a, true) >> 32, 3);
}

static void a_voter_set_survives_its_encodings(void **state)
{
    (void)state;
    struct voter_set *s = sample_set();
    struct strbuf b;
    bool configuration = false;
    strbuf_init(&b);
    voter_set_encode(s, &b);
    struct voter_set *again = voter_set_decode(strbuf_slice(&b));
    assert_same(s, again);
    voter_set_unref(again);
    for (size_t cut = 0; cut < b.len; cut++)
        assert_null(voter_set_decode(slice_of(b.data, cut)));
    strbuf_clear(&b);
    voter_set_encode_record(s, true, &b);
    again = voter_set_decode_record(strbuf_slice(&b), &configuration);
    assert_true(configuration);
    assert_same(s, again);
    voter_set_unref(again);
    strbuf_fini(&b);
    voter_set_unref(s);
}

// Without the tag the record lists voters only, as the reference implementation writes it.
static void a_record_of_endpoints_lists_voters_only(void **state)
{
    (void)state;
    struct voter_set *s = sample_set();
    struct strbuf b;
    bool configuration = true;
    strbuf_init(&b);
    voter_set_encode_record(s, false, &b);
    struct voter_set *again = voter_set_decode_record(strbuf_slice(&b), &configuration);
    assert_false(configuration);
    assert_int_equal(again->count, 2);
    assert_null(voter_set_find(again, s->servers[1].id));
    voter_set_unref(again);
    strbuf_fini(&b);
    voter_set_unref(s);
}

static void the_type_of_an_entry_is_read_from_its_batch(void **state)
{
    (void)state;
    struct voter_set *s = sample_set();
    struct entry_origin o = {.base = 40, .epoch = 6, .now = 9, .leader = 5, .voters = s};
    struct entry_batch e;
    size_t size;
    static const uint8_t noop[] = {1, 20, 0, 0}, config[] = {1, 4, 0, 4, 1, 2, 'a', 2, 'b', 0};
    struct slice two[] = {slice_of(noop, sizeof noop), slice_of(config, sizeof config)};

    o.first_of_term = true;
    uint8_t *b = entry_make_barrier(&o, &size);
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_BARRIER);
    assert_int_equal(e.offsets, 1);
    mem_free(b);

    o.first_of_log = true; // three records, three offsets, still a barrier
    b = entry_make_barrier(&o, &size);
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_BARRIER);
    assert_int_equal(e.offsets, 3);
    mem_free(b);

    o.first_of_term = o.first_of_log = false;
    b = entry_make_barrier(&o, &size);
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_BARRIER);
    mem_free(b);

    b = entry_make_change(&o, &size);
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_CHANGE);
    assert_same(e.voters, s);
    voter_set_unref(e.voters);
    mem_free(b);

    b = entry_make_endpoints(&o, &size);
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_COMMAND);
    assert_true(e.carries_voters);
    voter_set_unref(e.voters);
    raft_free(b);

    b = entry_make_command(two, 2, 40, 6, 9, &size); // a no-op among others is no barrier
    assert_int_equal(entry_batch_parse(slice_of(b, size), &e, NULL), 0);
    assert_int_equal(e.type, RAFT_COMMAND);
    assert_int_equal(e.base, 40);
    assert_int_equal(e.epoch, 6);
    raft_free(b);
    voter_set_unref(s);
}

static void the_prefix_of_a_change_is_what_the_library_encodes(void **state)
{
    (void)state;
    struct voter_set *s = sample_set();
    struct entry_batch e = {.type = RAFT_CHANGE, .voters = s};
    size_t n = entry_prefix_bytes(&e);
    uint8_t *bytes = mem_alloc(n + 100);
    memset(bytes, 0xaa, n + 100);
    entry_prefix_write(&e, bytes);
    assert_int_equal(entry_configuration_bytes(bytes, n + 100), n); // what follows does not matter
    assert_int_equal(entry_configuration_bytes(bytes, n - 1), 0);
    struct raft_configuration conf;
    struct raft_buffer buf = {bytes, n + 100};
    assert_int_equal(raft_configuration_decode(&buf, &conf), 0);
    assert_true(voter_set_equal_config(s, &conf));
    raft_configuration_close(&conf);
    mem_free(bytes);
    voter_set_unref(s);
}

// What Kafka's diverging-epoch answer is made of.
static void epochs_of_the_log_are_known(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(301, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    assert_true(cluster_commit(c, 5, 1000));
    leader_epoch first = quorum_term(c->servers[0].q), found;
    log_offset end = quorum_log_end(c->servers[0].q);
    cluster_stop(c, 0);
    cluster_start(c, 0);
    assert_true(cluster_wait_active(c, 5000));
    struct quorum *q = c->servers[0].q;
    assert_int_equal(quorum_epoch_at(q, end), first);
    assert_int_equal(quorum_epoch_at(q, end + 1), first + 1);
    assert_int_equal(quorum_epoch_at(q, quorum_log_end(q) + 1), -1);
    assert_int_equal(quorum_end_offset_of_epoch(q, first, &found), end);
    assert_int_equal(found, first);
    assert_int_equal(quorum_end_offset_of_epoch(q, first + 7, &found), quorum_log_end(q));
    assert_int_equal(found, first + 1);
    assert_int_equal(quorum_end_offset_of_epoch(q, first - 1, &found), -1);
    assert_int_equal(found, -1);
    cluster_free(c);
}

static void reading_outside_the_log_is_a_range_error(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(302, &(struct cluster_opts){.voters = 1, .dynamic = true});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    assert_true(cluster_commit(c, 5, 1000));
    cluster_run(c, 100);
    struct quorum *q = c->servers[0].q;
    struct rope r;
    rope_init(&r);
    assert_int_equal(quorum_read(q, quorum_high_watermark(q) + 1, 1000, &r), ERR_RANGE);
    assert_int_equal(quorum_read(q, quorum_high_watermark(q), 1000, &r), 0);
    assert_int_equal(r.len, 0);
    assert_int_equal(quorum_read(q, quorum_high_watermark(q) - 1, 1, &r), 0); // at least one batch
    assert_true(r.len > 61);
    rope_clear(&r);
    struct quorum_snapshot_id none = {99, 1};
    uint64_t size;
    assert_int_equal(quorum_read_snapshot(q, &none, 0, 100, &r, &size), ERR_NOTFOUND);
    cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_raft_id_is_never_zero_and_follows_the_directory),
        cmocka_unit_test(a_voter_set_survives_its_encodings),
        cmocka_unit_test(a_record_of_endpoints_lists_voters_only),
        cmocka_unit_test(the_type_of_an_entry_is_read_from_its_batch),
        cmocka_unit_test(the_prefix_of_a_change_is_what_the_library_encodes),
        cmocka_unit_test(epochs_of_the_log_are_known),
        cmocka_unit_test(reading_outside_the_log_is_a_range_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
