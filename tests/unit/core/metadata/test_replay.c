// SPDX-License-Identifier: Apache-2.0
// What each record does to the image, and what the image refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/metadata/delta.h"
#include "core/metadata/metadata_version.h"
#include "tests/unit/core/metadata/history.h"

static const int32_t three[] = {1, 2, 3};

// Brokers 1 to 3, topic "a" (id 1) with two partitions of three replicas.
static int start(void **state)
{
    static struct history h;
    history_init(&h, 1);
    assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX), 0);
    for (broker_id id = 1; id <= 3; id++)
        assert_int_equal(history_broker(&h, id, true), 0);
    assert_int_equal(history_topic(&h, "a", 1), 0);
    for (partition_id i = 0; i < 2; i++)
        assert_int_equal(history_partition(&h, 1, i, three, 3), 0);
    *state = &h;
    return 0;
}

static int stop(void **state)
{
    history_fini(*state);
    return 0;
}

static const struct image_partition *part(struct history *h, partition_id index)
{
    return image_partition(h->img, uuid_number(1), index);
}

static void the_broker_epoch_is_what_the_registration_says(void **state)
{
    struct history *h = *state;
    assert_int_equal(image_broker(h->img, 2)->epoch, 2);
    assert_true(image_broker(h->img, 2)->fenced);
    assert_int_equal(image_broker_count(h->img), 3);
    assert_null(image_broker(h->img, 7));
    assert_int_equal(image_offset(h->img), 6);
}

static void a_change_of_another_broker_epoch_is_refused(void **state)
{
    struct history *h = *state;
    struct kp_broker_registration_change_record *r =
        &history_record(h, METADATA_BROKER_REGISTRATION_CHANGE, 3)->broker_registration_change;
    r->broker_id = 2;
    r->broker_epoch = 99;
    r->fenced = -1;
    assert_int_equal(history_apply(h), ERR_INVALID);
    assert_non_null(strstr(h->msg.text, "BrokerRegistrationChangeRecord at offset 7: broker 2 has epoch 2"));
    r->broker_epoch = 2;
    assert_int_equal(history_apply(h), 0);
    assert_true(image_broker_active(image_broker(h->img, 2)));
    r->in_controlled_shutdown = 1;
    r->fenced = 0;
    assert_int_equal(history_apply(h), 0);
    assert_false(image_broker(h->img, 2)->fenced);
    assert_false(image_broker_active(image_broker(h->img, 2)));
}

static void the_old_fence_records_are_applied(void **state)
{
    struct history *h = *state;
    struct kp_unfence_broker_record *u = &history_record(h, METADATA_UNFENCE_BROKER, 0)->unfence_broker;
    u->id = 1;
    u->epoch = 1;
    assert_int_equal(history_apply(h), 0);
    assert_false(image_broker(h->img, 1)->fenced);
    struct kp_fence_broker_record *f = &history_record(h, METADATA_FENCE_BROKER, 0)->fence_broker;
    f->id = 1;
    f->epoch = 1;
    assert_int_equal(history_apply(h), 0);
    assert_true(image_broker(h->img, 1)->fenced);
}

static void a_leader_field_bumps_the_leader_epoch_even_for_the_same_leader(void **state)
{
    struct history *h = *state;
    history_change(h, 1, 0)->leader = 1;
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(part(h, 0)->epoch, 1);
    assert_int_equal(part(h, 0)->partition_epoch, 1);
    assert_int_equal(part(h, 1)->epoch, 0);
}

static void a_change_without_a_leader_bumps_only_the_partition_epoch(void **state)
{
    struct history *h = *state;
    struct kp_partition_change_record *r = history_change(h, 1, 1);
    r->isr = arena_dup(&h->arena, three, sizeof three);
    r->isr_count = 2;
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(part(h, 1)->epoch, 0);
    assert_int_equal(part(h, 1)->partition_epoch, 1);
    assert_int_equal(part(h, 1)->isr_count, 2);
    assert_int_equal(part(h, 1)->leader, 1);
}

static void the_sets_of_a_broker_follow_its_partitions(void **state)
{
    struct history *h = *state;
    assert_int_equal(image_set_count(h->img, IMAGE_SET_LEADER, 1), 2);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_ISR, 3), 2);
    assert_int_equal(image_preferred_count(h->img, 1), 2);
    history_change(h, 1, 1)->leader = LEADER_NONE;
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_LEADER, 1), 1);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_LEADER, LEADER_NONE), 1);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_NOT_PREFERRED, 1), 1);
    struct image_walk w = {0};
    assert_true(image_walk_next(h->img, IMAGE_SET_LEADER, LEADER_NONE, &w));
    assert_int_equal(w.index, 1);
    assert_true(slice_equal_str(topic_name(w.topic), "a"));
    assert_false(image_walk_next(h->img, IMAGE_SET_LEADER, LEADER_NONE, &w));
}

static void directories_stay_with_their_replica_when_the_list_changes(void **state)
{
    struct history *h = *state;
    struct kp_partition_change_record *r = history_change(h, 1, 0);
    static int32_t changed[] = {3, 4, 1};
    r->replicas = changed;
    r->replicas_count = 3;
    assert_int_equal(history_apply(h), 0);
    assert_true(uuid_equal(partition_directory(part(h, 0), 0), uuid_number(2003)));
    assert_true(uuid_equal(partition_directory(part(h, 0), 1), UUID_DIR_UNASSIGNED));
    assert_true(uuid_equal(partition_directory_of(part(h, 0), 1), uuid_number(2001)));
}

static void a_deleted_topic_takes_its_partitions_and_configs_along(void **state)
{
    struct history *h = *state;
    assert_int_equal(history_config(h, CONFIG_RESOURCE_TOPIC, "a", "retention.ms", "5"), 0);
    history_record(h, METADATA_REMOVE_TOPIC, 0)->remove_topic.topic_id = uuid_number(1);
    assert_int_equal(history_apply(h), 0);
    assert_null(image_topic_named(h->img, SLICE_LIT("a")));
    assert_int_equal(image_partition_count(h->img), 0);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_ISR, 2), 0);
    assert_int_equal(image_preferred_count(h->img, 1), 0);
    assert_null(image_config(h->img, CONFIG_RESOURCE_TOPIC, SLICE_LIT("a")));
    assert_int_equal(history_apply(h), ERR_INVALID);
}

static void configs_are_set_replaced_and_deleted_by_null(void **state)
{
    struct history *h = *state;
    assert_int_equal(history_config(h, CONFIG_RESOURCE_BROKER, "", "b", "1"), 0);
    assert_int_equal(history_config(h, CONFIG_RESOURCE_BROKER, "", "a", "2"), 0);
    assert_int_equal(history_config(h, CONFIG_RESOURCE_BROKER, "", "b", "3"), 0);
    const struct image_config *c = image_config(h->img, CONFIG_RESOURCE_BROKER, SLICE_LIT(""));
    assert_int_equal(c->entries_count, 2);
    assert_true(slice_equal_str(c->entries[0].key, "a"));
    assert_true(slice_equal_str(c->entries[1].value, "3"));
    assert_int_equal(history_config(h, CONFIG_RESOURCE_BROKER, "", "a", NULL), 0);
    assert_int_equal(history_config(h, CONFIG_RESOURCE_BROKER, "", "b", NULL), 0);
    assert_null(image_config(h->img, CONFIG_RESOURCE_BROKER, SLICE_LIT("")));
}

static void level_zero_removes_a_feature(void **state)
{
    struct history *h = *state;
    assert_int_equal(history_feature(h, "group.version", 1), 0);
    assert_int_equal(image_feature_level(h->img, SLICE_LIT("group.version")), 1);
    assert_int_equal(history_feature(h, "group.version", 0), 0);
    assert_int_equal(image_feature_level(h->img, SLICE_LIT("group.version")), 0);
    assert_int_equal(image_metadata_version(h->img), METADATA_VERSION_MAX);
    assert_int_equal(history_feature(h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX + 1), ERR_UNSUPPORTED);
}

static void a_transaction_is_seen_only_after_its_end(void **state)
{
    struct history *h = *state;
    history_record(h, METADATA_BEGIN_TRANSACTION, 0);
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(history_topic(h, "b", 2), 0);
    assert_true(image_in_transaction(h->img));
    assert_non_null(image_topic_named(h->img, SLICE_LIT("b")));
    assert_null(image_topic_named(image_visible(h->img), SLICE_LIT("b")));
    history_record(h, METADATA_BEGIN_TRANSACTION, 0);
    assert_int_equal(history_apply(h), ERR_INVALID);
    history_record(h, METADATA_END_TRANSACTION, 0);
    assert_int_equal(history_apply(h), 0);
    assert_non_null(image_topic_named(image_visible(h->img), SLICE_LIT("b")));
    assert_int_equal(history_apply(h), ERR_INVALID);
}

static void an_aborted_transaction_leaves_nothing(void **state)
{
    struct history *h = *state;
    struct image_hash before = image_hash_of(h->img);
    history_record(h, METADATA_BEGIN_TRANSACTION, 0);
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(history_topic(h, "b", 2), 0);
    history_record(h, METADATA_REMOVE_TOPIC, 0)->remove_topic.topic_id = uuid_number(1);
    assert_int_equal(history_apply(h), 0);
    history_record(h, METADATA_ABORT_TRANSACTION, 0);
    assert_int_equal(history_apply(h), 0);
    struct image_hash after = image_hash_of(h->img);
    assert_true(before.low == after.low && before.high == after.high);
    assert_int_equal(image_offset(h->img), 10);
    assert_false(image_in_transaction(h->img));
}

static void senseless_partitions_are_refused(void **state)
{
    struct history *h = *state;
    static int32_t twice[] = {1, 1}, negative[] = {-3};
    struct image_hash before = image_hash_of(h->img);
    assert_int_equal(history_partition(h, 1, 5, twice, 2), ERR_INVALID);
    assert_int_equal(history_partition(h, 1, 5, negative, 1), ERR_INVALID);
    assert_int_equal(history_partition(h, 1, -1, three, 3), ERR_INVALID);
    assert_int_equal(history_partition(h, 9, 0, three, 3), ERR_INVALID);
    struct kp_partition_change_record *r = history_change(h, 1, 0);
    r->directories = arena_zalloc(&h->arena, 4 * sizeof *r->directories);
    r->directories_count = 4;
    assert_int_equal(history_apply(h), ERR_INVALID);
    history_change(h, 1, 2)->leader = 1;
    assert_int_equal(history_apply(h), ERR_INVALID);
    h->r.type = (enum metadata_record_type)6;
    assert_int_equal(history_apply(h), ERR_UNSUPPORTED);
    struct image_hash after = image_hash_of(h->img);
    assert_true(before.low == after.low && before.high == after.high);
}

static void a_partition_with_a_huge_index_takes_no_memory_for_those_below(void **state)
{
    struct history *h = *state;
    assert_int_equal(history_partition(h, 1, INT32_MAX - 1, three, 3), 0);
    assert_int_equal(topic_partition_count(image_topic(h->img, uuid_number(1))), INT32_MAX);
    assert_int_equal(image_partition_count(h->img), 3);
    assert_null(part(h, 5));
}

static void clearing_elr_bumps_the_partition_epoch_where_there_was_some(void **state)
{
    struct history *h = *state;
    struct kp_partition_change_record *r = history_change(h, 1, 0);
    r->eligible_leader_replicas = arena_dup(&h->arena, three, sizeof three);
    r->eligible_leader_replicas_count = 1;
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_ELR, 1), 1);
    history_record(h, METADATA_CLEAR_ELR, 0);
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(part(h, 0)->elr_count, 0);
    assert_int_equal(part(h, 0)->partition_epoch, 2);
    assert_int_equal(part(h, 1)->partition_epoch, 0);
    assert_int_equal(image_set_count(h->img, IMAGE_SET_ELR, 1), 0);
}

static void producer_ids_never_go_back(void **state)
{
    struct history *h = *state;
    history_record(h, METADATA_PRODUCER_IDS, 0)->producer_ids.next_producer_id = 2000;
    assert_int_equal(history_apply(h), 0);
    history_record(h, METADATA_PRODUCER_IDS, 0)->producer_ids.next_producer_id = 1000;
    assert_int_equal(history_apply(h), ERR_INVALID);
    assert_int_equal(image_next_producer_id(h->img), 2000);
}

static void the_delta_names_what_changed_and_nothing_else(void **state)
{
    struct history *h = *state;
    struct image *before = image_ref(h->img);
    history_change(h, 1, 1)->leader = 2;
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(history_topic(h, "b", 2), 0);
    assert_int_equal(history_partition(h, 2, 0, three, 3), 0);
    assert_int_equal(history_config(h, CONFIG_RESOURCE_TOPIC, "b", "k", "v"), 0);
    assert_int_equal(history_broker(h, 2, true), 0);
    struct image_delta d;
    image_diff(before, h->img, &h->arena, &d);
    assert_int_equal(d.brokers_count, 1);
    assert_int_equal(d.brokers[0].id, 2);
    assert_int_equal(d.topics_count, 1);
    assert_null(d.topics[0].before);
    assert_int_equal(d.partitions_count, 2);
    assert_int_equal(d.partitions[0].index, 1);
    assert_true(delta_partition_new_epoch(&d.partitions[0]));
    assert_int_equal(delta_partition_role(&d.partitions[0], 2), DELTA_ROLE_LEADER);
    assert_int_equal(delta_partition_role(&d.partitions[0], 1), DELTA_ROLE_FOLLOWER);
    assert_int_equal(delta_partition_role(&d.partitions[0], 9), DELTA_ROLE_NONE);
    assert_int_equal(d.configs_count, 1);
    assert_false(d.features_changed || d.acls_changed || d.quotas_changed || d.producer_ids_changed);
    image_unref(before);
}

static void a_topic_made_again_is_another_topic_in_the_delta(void **state)
{
    struct history *h = *state;
    struct image *before = image_ref(h->img);
    history_record(h, METADATA_REMOVE_TOPIC, 0)->remove_topic.topic_id = uuid_number(1);
    assert_int_equal(history_apply(h), 0);
    assert_int_equal(history_topic(h, "a", 2), 0);
    assert_int_equal(history_partition(h, 2, 0, three, 1), 0);
    struct image_delta d;
    image_diff(before, h->img, &h->arena, &d);
    assert_int_equal(d.topics_count, 2);
    assert_null(d.topics[0].after);
    assert_null(d.topics[1].before);
    assert_int_equal(d.partitions_count, 3);
    assert_int_equal(delta_partition_role(&d.partitions[0], 3), DELTA_ROLE_REMOVED);
    image_unref(before);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(the_broker_epoch_is_what_the_registration_says),
        T(a_change_of_another_broker_epoch_is_refused),
        T(the_old_fence_records_are_applied),
        T(a_leader_field_bumps_the_leader_epoch_even_for_the_same_leader),
        T(a_change_without_a_leader_bumps_only_the_partition_epoch),
        T(the_sets_of_a_broker_follow_its_partitions),
        T(directories_stay_with_their_replica_when_the_list_changes),
        T(a_deleted_topic_takes_its_partitions_and_configs_along),
        T(configs_are_set_replaced_and_deleted_by_null),
        T(level_zero_removes_a_feature),
        T(a_transaction_is_seen_only_after_its_end),
        T(an_aborted_transaction_leaves_nothing),
        T(senseless_partitions_are_refused),
        T(a_partition_with_a_huge_index_takes_no_memory_for_those_below),
        T(clearing_elr_bumps_the_partition_epoch_where_there_was_some),
        T(producer_ids_never_go_back),
        T(the_delta_names_what_changed_and_nothing_else),
        T(a_topic_made_again_is_another_topic_in_the_delta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
