// SPDX-License-Identifier: Apache-2.0
// Random histories: a snapshot equals the replay it stands for, sets equal what they are sets of, differences
// are complete.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/metadata/delta.h"
#include "core/metadata/metadata_version.h"
#include "tests/unit/core/metadata/history.h"

static bool same_hash(const struct image *a, const struct image *b)
{
    struct image_hash x = image_hash_of(a), y = image_hash_of(b);
    return x.low == y.low && x.high == y.high;
}

// Counts by brute force and compares with the kept sets.
static void check_sets(const struct image *img)
{
    int64_t partitions = 0, reassigning = 0, seen = 0;
    for (broker_id id = -1; id < 7; id++) {
        int64_t count[IMAGE_SET_COUNT] = {0}, preferred = 0;
        partitions = reassigning = 0;
        for (const struct image_topic *t = NULL; (t = image_topic_next(img, t)) != NULL;)
            for (partition_id i = 0; i < topic_partition_count(t); i++) {
                const struct image_partition *p = topic_partition(t, i);
                if (!p)
                    continue;
                bool elr = false;
                for (int k = 0; k < p->elr_count + p->last_elr_count; k++)
                    elr = elr || partition_elr(p)[k] == id;
                partitions++;
                reassigning += partition_reassigning(p);
                count[IMAGE_SET_ISR] += partition_in_isr(p, id);
                count[IMAGE_SET_LEADER] += p->leader == id;
                count[IMAGE_SET_REPLICA] += partition_has_replica(p, id);
                count[IMAGE_SET_NOT_PREFERRED] += partition_preferred(p) == id && p->leader != id;
                count[IMAGE_SET_ELR] += elr;
                preferred += partition_preferred(p) == id;
            }
        for (int set = 0; set < IMAGE_SET_COUNT; set++) {
            struct image_walk w = {0};
            for (seen = 0; image_walk_next(img, (enum image_set)set, id, &w);)
                seen++;
            assert_int_equal(image_set_count(img, (enum image_set)set, id), count[set]);
            assert_int_equal(seen, count[set]);
        }
        assert_int_equal(image_preferred_count(img, id), preferred);
    }
    assert_int_equal(image_partition_count(img), partitions);
    assert_int_equal(image_reassigning_count(img), reassigning);
}

static void a_snapshot_replays_to_an_equal_image(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct history h;
        history_init(&h, seed);
        assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX), 0);
        for (int step = 0; step < 1500; step++)
            (void)history_step(&h);
        struct image *copy = history_through_snapshot(h.img, &h.msg);
        if (!copy)
            fail_msg("seed %llu: %s", (unsigned long long)seed, h.msg.text);
        assert_true(same_hash(copy, h.img));
        check_sets(h.img);
        check_sets(copy);
        struct image_delta d;
        image_diff(h.img, copy, &h.arena, &d);
        assert_int_equal(d.topics_count, 0);
        assert_int_equal(d.partitions_count, 0);
        assert_int_equal(d.configs_count, 0);
        image_unref(copy);
        history_fini(&h);
    }
}

static void an_old_image_stays_as_it_was(void **state)
{
    (void)state;
    struct history h;
    history_init(&h, 77);
    for (int step = 0; step < 500; step++)
        (void)history_step(&h);
    struct image *old = image_ref(h.img);
    struct image_hash before = image_hash_of(old);
    for (int step = 0; step < 2000; step++)
        (void)history_step(&h);
    struct image_hash after = image_hash_of(old);
    assert_true(before.low == after.low && before.high == after.high);
    check_sets(old);
    assert_false(same_hash(old, h.img));
    image_unref(old);
    history_fini(&h);
}

static void one_builder_for_many_records_gives_the_same_as_one_each(void **state)
{
    (void)state;
    struct history one, many;
    history_init(&one, 5);
    history_init(&many, 5);
    struct image_builder *b = image_builder_create(many.img);
    for (int step = 0; step < 3000; step++) {
        log_offset offset = one.offset;
        if (history_step(&one) == 0 && one.offset > offset)
            assert_int_equal(image_replay(b, &one.r, offset, 1, &many.msg), 0);
    }
    image_unref(many.img);
    many.img = image_builder_finish(b);
    assert_true(same_hash(one.img, many.img));
    check_sets(many.img);
    history_fini(&one);
    history_fini(&many);
}

static void records_are_written_at_versions_that_the_metadata_version_allows(void **state)
{
    (void)state;
    for (int16_t level = METADATA_VERSION_MIN; level <= METADATA_VERSION_MAX; level++) {
        struct history h;
        history_init(&h, 9);
        assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, level), 0);
        for (int step = 0; step < 200; step++)
            (void)history_step(&h);
        struct image_snapshot *s = image_snapshot_create(h.img);
        struct metadata_record r;
        const struct metadata_version *mv = metadata_version_of(level);
        int records = 0;
        while (image_snapshot_next(s, &h.arena, &r)) {
            if (records++ == 0)
                assert_true(slice_equal_str(r.body.feature_level.name, FEATURE_METADATA_VERSION));
            if (r.type == METADATA_PARTITION)
                assert_int_equal(r.version, mv->partition);
            if (r.type == METADATA_REGISTER_BROKER)
                assert_int_equal(r.version, mv->register_broker);
            if (r.type == METADATA_USER_SCRAM_CREDENTIAL)
                assert_true(level >= METADATA_VERSION_SCRAM);
        }
        image_snapshot_free(s);
        history_fini(&h);
    }
}

static void versions_and_features_have_names(void **state)
{
    (void)state;
    assert_int_equal(metadata_version_parse(SLICE_LIT("4.4-IV2")), 33);
    assert_int_equal(metadata_version_parse(SLICE_LIT("4.0")), 25);
    assert_int_equal(metadata_version_parse(SLICE_LIT("3.3-IV3")), 7);
    assert_int_equal(metadata_version_parse(SLICE_LIT("4")), 0);
    assert_int_equal(metadata_version_parse(SLICE_LIT("")), 0);
    assert_int_equal(feature_default(SLICE_LIT("group.version"), 33), 1);
    assert_int_equal(feature_default(SLICE_LIT("group.version"), 21), 0);
    assert_int_equal(feature_level_of(SLICE_LIT("eligible.leader.replicas.version"), 1)->needs_metadata, 23);
    assert_null(feature_level_of(SLICE_LIT("group.version"), 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_replays_to_an_equal_image),
        cmocka_unit_test(an_old_image_stays_as_it_was),
        cmocka_unit_test(one_builder_for_many_records_gives_the_same_as_one_each),
        cmocka_unit_test(records_are_written_at_versions_that_the_metadata_version_allows),
        cmocka_unit_test(versions_and_features_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
