// SPDX-License-Identifier: Apache-2.0
// CreateTopics, DeleteTopics, CreatePartitions, and where replicas are put.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"
#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"
#include "tests/unit/core/controller/cluster.h"

static int start(void **state)
{
    static struct cluster k;
    cluster_init(&k);
    cluster_brokers(&k, 1, 6);
    *state = &k;
    return 0;
}

static int stop(void **state)
{
    cluster_fini(*state);
    return 0;
}

// ---- placement
// -------------------------------------------------------------------------------------------------
static void replicas_are_striped_over_racks_and_leaders_over_brokers(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", 60, 3), KE_NONE);
    int leads[7] = {0}, holds[7] = {0};
    for (partition_id i = 0; i < 60; i++) {
        const struct image_partition *p = cluster_part(k, "t", i);
        assert_int_equal(p->leader, partition_preferred(p));
        assert_int_equal(p->isr_count, 3);
        unsigned racks = 0;
        for (int r = 0; r < 3; r++) {
            racks |= 1u << (partition_replicas(p)[r] % 3);
            holds[partition_replicas(p)[r]]++;
        }
        assert_int_equal(racks, 7);
        leads[p->leader]++;
    }
    for (int b = 1; b <= 6; b++) {
        assert_int_equal(leads[b], 10);
        assert_in_range(holds[b], 28, 32);
    }
}

static void the_followers_of_one_leader_differ(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", 60, 2), KE_NONE);
    unsigned followers = 0;
    int leads = 0, holds[7] = {0};
    for (partition_id i = 0; i < 60; i++) {
        const broker_id *r = partition_replicas(cluster_part(k, "t", i));
        leads += r[0] == 1;
        followers |= r[0] == 1 ? 1u << r[1] : 0;
        holds[r[0]]++;
        holds[r[1]]++;
    }
    assert_int_equal(leads, 10);
    assert_true(__builtin_popcount(followers) >= 2);
    for (int b = 1; b <= 6; b++)
        assert_in_range(holds[b], 18, 22);
}

static void brokers_without_racks_share_evenly(void **state)
{
    (void)state;
    struct cluster k;
    cluster_init(&k);
    for (broker_id id = 1; id <= 4; id++) {
        assert_int_equal(cluster_register(&k, cluster_registration(&k, id, 100 + (uint64_t)id, NULL)),
                         KE_NONE);
        (void)cluster_beat(&k, id, false, false);
    }
    assert_int_equal(cluster_create(&k, "t", 40, 3), KE_NONE);
    int leads[5] = {0}, holds[5] = {0};
    for (partition_id i = 0; i < 40; i++) {
        const struct image_partition *p = cluster_part(&k, "t", i);
        leads[p->leader]++;
        for (int r = 0; r < 3; r++)
            holds[partition_replicas(p)[r]]++;
    }
    for (int b = 1; b <= 4; b++) {
        assert_int_equal(leads[b], 10);
        assert_in_range(holds[b], 28, 32);
    }
    cluster_fini(&k);
}

static void a_fenced_broker_follows_but_never_leads(void **state)
{
    struct cluster *k = *state;
    cluster_gone(k, 4);
    assert_int_equal(cluster_create(k, "t", 30, 6), KE_NONE);
    for (partition_id i = 0; i < 30; i++) {
        const struct image_partition *p = cluster_part(k, "t", i);
        assert_true(partition_has_replica(p, 4));
        assert_int_not_equal(p->leader, 4);
        assert_int_equal(p->isr_count, 5);
        assert_false(partition_in_isr(p, 4));
    }
}

static void more_replicas_than_brokers_and_no_live_broker_are_refused(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", 1, 7), KE_INVALID_REPLICATION_FACTOR);
    for (broker_id id = 1; id <= 6; id++)
        cluster_gone(k, id);
    assert_int_equal(cluster_create(k, "t", 1, 1), KE_INVALID_REPLICATION_FACTOR);
}

static void until_brokers_replicate_one_replica_is_the_most(void **state)
{
    struct cluster *k = *state;
    k->opts.replication_factor_max = 1;
    struct kp_create_topics_response_creatable_topic_result r =
        cluster_create_with(k, cluster_topic(k, "t", 1, 3));
    assert_int_equal(r.error_code, KE_INVALID_REPLICATION_FACTOR);
    assert_non_null(
        strstr((const char *)arena_dup_slice(&k->arena, r.error_message).data, "does not replicate"));
    assert_int_equal(cluster_create(k, "t", 1, 1), KE_NONE);
}

static void added_partitions_go_on_with_the_striping(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", 4, 2), KE_NONE);
    struct kp_create_partitions_request_create_partitions_topic topic = {
        .name = SLICE_LIT("t"), .count = 6, .assignments_count = -1};
    struct kp_create_partitions_request in = {.topics = &topic, .topics_count = 1};
    struct kp_create_partitions_response out;
    controller_create_partitions(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(out.results[0].error_code, KE_NONE);
    unsigned leaders = 0;
    for (partition_id i = 0; i < 6; i++) {
        assert_int_equal(cluster_part(k, "t", i)->replicas_count, 2);
        leaders |= 1u << cluster_part(k, "t", i)->leader;
    }
    assert_int_equal(leaders, 0x7e);
}

// ---- CreateTopics
// ----------------------------------------------------------------------------------------------
static void names_are_judged(void **state)
{
    struct cluster *k = *state;
    static const char *const wrong[] = {"", ".", "..", "a b", "a/b", "\xc3\xa4"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(cluster_create(k, wrong[i], 1, 1), KE_INVALID_TOPIC_EXCEPTION);
    char longest[251];
    memset(longest, 'a', sizeof longest);
    longest[250] = 0;
    assert_int_equal(cluster_create(k, longest, 1, 1), KE_INVALID_TOPIC_EXCEPTION);
    longest[249] = 0;
    assert_int_equal(cluster_create(k, longest, 1, 1), KE_NONE);
    assert_int_equal(cluster_create(k, longest, 1, 1), KE_TOPIC_ALREADY_EXISTS);
    assert_int_equal(cluster_create(k, "__cluster_metadata", 1, 1), KE_INVALID_REQUEST);
}

static void names_that_differ_in_dot_and_underscore_collide(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "a.b_c", 1, 1), KE_NONE);
    assert_int_equal(cluster_create(k, "a_b.c", 1, 1), KE_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(cluster_create(k, "a-b_c", 1, 1), KE_NONE);
}

static void a_topic_named_twice_is_refused_once_and_others_are_made(void **state)
{
    struct cluster *k = *state;
    struct kp_create_topics_request *in = cluster_topic(k, "x", 1, 1);
    struct kp_create_topics_request_creatable_topic topics[3] = {in->topics[0], in->topics[0], in->topics[0]};
    topics[1].name = SLICE_LIT("y");
    in->topics = topics;
    in->topics_count = 3;
    struct kp_create_topics_response out;
    controller_create_topics(cluster_op(k), in, true, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(out.topics_count, 2);
    assert_int_equal(out.topics[0].error_code, KE_INVALID_REQUEST);
    assert_int_equal(out.topics[1].error_code, KE_NONE);
    assert_null(image_topic_named(k->img, SLICE_LIT("x")));
}

static void counts_are_judged_and_defaulted(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", 0, 1), KE_INVALID_PARTITIONS);
    assert_int_equal(cluster_create(k, "t", -2, 1), KE_INVALID_PARTITIONS);
    assert_int_equal(cluster_create(k, "t", 1, 0), KE_INVALID_REPLICATION_FACTOR);
    k->opts.num_partitions = 4;
    k->opts.replication_factor = 2;
    struct kp_create_topics_response_creatable_topic_result r =
        cluster_create_with(k, cluster_topic(k, "t", -1, -1));
    assert_int_equal(r.num_partitions, 4);
    assert_int_equal(r.replication_factor, 2);
    assert_true(uuid_equal(r.topic_id, topic_id(image_topic_named(k->img, SLICE_LIT("t")))));
    assert_false(uuid_is_reserved(r.topic_id));
}

static void one_request_makes_at_most_ten_thousand(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "t", CONTROLLER_RECORDS_MAX, 1), KE_POLICY_VIOLATION);
    assert_int_equal(cluster_create(k, "t", INT32_MAX, 1), KE_POLICY_VIOLATION);
    assert_int_equal(k->records.count, 0);
    assert_int_equal(cluster_create(k, "t", CONTROLLER_RECORDS_MAX - 1, 1), KE_NONE);
    struct kp_create_topics_request *in = cluster_topic(k, "x", 1, 1);
    in->topics_count = 10001;
    in->topics = arena_alloc(&k->arena, 10001 * sizeof *in->topics);
    for (int i = 0; i < 10001; i++) {
        kp_create_topics_request_creatable_topic_init(&in->topics[i]);
        in->topics[i].name = slice_str(arena_printf(&k->arena, "many%d", i));
        in->topics[i].num_partitions = 1;
        in->topics[i].replication_factor = 1;
    }
    struct kp_create_topics_response out;
    controller_create_topics(cluster_op(k), in, true, &out, &k->records);
    assert_int_equal(out.topics_count, 10001);
    assert_int_equal(out.topics[10000].error_code, KE_POLICY_VIOLATION);
    assert_int_equal(k->records.count, 0);
}

static void validate_only_runs_every_check_and_writes_nothing(void **state)
{
    struct cluster *k = *state;
    struct kp_create_topics_request *in = cluster_topic(k, "t", 3, 3);
    in->validate_only = true;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_NONE);
    assert_null(image_topic_named(k->img, SLICE_LIT("t")));
    in->topics[0].replication_factor = 9;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_INVALID_REPLICATION_FACTOR);
}

static enum kafka_error assigned(struct cluster *k, int32_t first_index, int32_t a, int32_t b, int32_t c,
                                 int32_t d)
{
    struct kp_create_topics_request *in = cluster_topic(k, "t", -1, -1);
    int32_t *ids = arena_alloc(&k->arena, 4 * sizeof *ids);
    ids[0] = a;
    ids[1] = b;
    ids[2] = c;
    ids[3] = d;
    in->topics[0].assignments = arena_zalloc(&k->arena, 2 * sizeof *in->topics[0].assignments);
    in->topics[0].assignments_count = 2;
    for (int32_t i = 0; i < 2; i++) {
        in->topics[0].assignments[i].partition_index = i == 0 ? first_index : 0;
        in->topics[0].assignments[i].broker_ids = ids + 2 * i;
        in->topics[0].assignments[i].broker_ids_count = ids[2 * i + 1] < 0 ? 1 : 2;
    }
    return (enum kafka_error)cluster_create_with(k, in).error_code;
}

static void an_assignment_of_the_users_own_is_judged_and_followed(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(assigned(k, 0, 1, 2, 2, 3), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(assigned(k, 2, 1, 2, 2, 3), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(assigned(k, 1, 1, 1, 2, 3), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(assigned(k, 1, 1, 9, 2, 3), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(assigned(k, 1, 1, 2, 2, -1), KE_INVALID_REPLICA_ASSIGNMENT);
    struct kp_create_topics_request *in = cluster_topic(k, "t", 2, -1);
    in->topics[0].assignments = arena_zalloc(&k->arena, sizeof *in->topics[0].assignments);
    in->topics[0].assignments_count = 1;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_INVALID_REQUEST);
    cluster_gone(k, 5);
    cluster_gone(k, 6);
    assert_int_equal(assigned(k, 1, 5, 6, 2, 3), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(assigned(k, 1, 5, 1, 2, 3), KE_NONE);
    assert_int_equal(cluster_part(k, "t", 1)->leader, 1);
    assert_int_equal(cluster_part(k, "t", 1)->isr_count, 1);
    assert_int_equal(cluster_part(k, "t", 0)->leader, 2);
}

// ---- configs
// ---------------------------------------------------------------------------------------------------
static void info(void *data, const struct image *img, int8_t type, struct slice key, struct arena *arena,
                 struct controller_config_info *out)
{
    (void)data, (void)img, (void)type, (void)arena;
    out->known = true;
    out->source = 5;
    out->value = slice_equal_str(key, "retention.ms") ? SLICE_LIT("604800000") : SLICE_LIT("delete");
}

static int validate(void *data, int8_t type, struct slice name, const struct image_config_entry *entries,
                    int32_t count, struct errmsg *msg)
{
    (void)data, (void)type, (void)name;
    for (int32_t i = 0; i < count; i++)
        if (slice_equal_str(entries[i].value, "bad"))
            return err_set(msg, ERR_INVALID, "bad value of " SLICE_FMT, SLICE_ARG(entries[i].key));
    return 0;
}

static void each_key(void *data, int8_t type, void (*each)(void *to, struct slice key), void *to)
{
    (void)data, (void)type;
    each(to, SLICE_LIT("cleanup.policy"));
    each(to, SLICE_LIT("retention.ms"));
}

static const struct config_validator validator = {.info = info, .validate = validate, .each_key = each_key};

static void configs_are_judged_kept_and_answered(void **state)
{
    struct cluster *k = *state;
    k->opts.configs = &validator;
    struct kp_create_topics_request *in = cluster_topic(k, "t", 1, 1);
    struct kp_create_topics_request_creatable_topic_config config = {.name = SLICE_LIT("retention.ms"),
                                                                     .value = SLICE_LIT("bad")};
    in->topics[0].configs = &config;
    in->topics[0].configs_count = 1;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_INVALID_CONFIG);
    config.value = SLICE_NULL;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_INVALID_CONFIG);
    config.value = SLICE_LIT("1000");
    struct kp_create_topics_response_creatable_topic_result r = cluster_create_with(k, in);
    assert_int_equal(r.error_code, KE_NONE);
    assert_int_equal(r.configs_count, 2);
    assert_int_equal(r.configs[0].config_source, 5);
    assert_int_equal(r.configs[1].config_source, 1);
    assert_true(slice_equal_str(r.configs[1].value, "1000"));
    struct slice kept =
        image_config_value(k->img, CONFIG_RESOURCE_TOPIC, SLICE_LIT("t"), SLICE_LIT("retention.ms"));
    assert_true(slice_equal_str(kept, "1000"));
}

static void who_may_not_describe_configs_gets_the_topic_without_them(void **state)
{
    struct cluster *k = *state;
    struct kp_create_topics_response out;
    controller_create_topics(cluster_op(k), cluster_topic(k, "t", 1, 1), false, &out, &k->records);
    assert_int_equal(out.topics[0].error_code, KE_NONE);
    assert_int_equal(out.topics[0].topic_config_error_code, KE_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(out.topics[0].num_partitions, -1);
}

// ---- DeleteTopics
// ----------------------------------------------------------------------------------------------
static struct kp_delete_topics_response_deletable_topic_result delete_one(struct cluster *k,
                                                                          struct slice name, struct uuid id)
{
    struct kp_delete_topics_request_delete_topic_state topic = {.name = name, .topic_id = id};
    struct kp_delete_topics_request in = {.topics = &topic, .topics_count = 1};
    struct kp_delete_topics_response out;
    controller_delete_topics(cluster_op(k), &in, 6, &out, &k->records);
    cluster_commit(k);
    return out.responses[0];
}

static void topics_are_deleted_by_name_or_by_id(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "a", 1, 1), KE_NONE);
    assert_int_equal(cluster_create(k, "b", 1, 1), KE_NONE);
    struct uuid a = topic_id(image_topic_named(k->img, SLICE_LIT("a")));
    struct kp_delete_topics_response_deletable_topic_result r = delete_one(k, SLICE_NULL, a);
    assert_int_equal(r.error_code, KE_NONE);
    assert_true(slice_equal_str(r.name, "a"));
    r = delete_one(k, SLICE_LIT("b"), UUID_ZERO);
    assert_int_equal(r.error_code, KE_NONE);
    assert_false(uuid_is_zero(r.topic_id));
    assert_int_equal(image_topic_count(k->img), 0);
    assert_int_equal(delete_one(k, SLICE_LIT("b"), UUID_ZERO).error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(delete_one(k, SLICE_NULL, a).error_code, KE_UNKNOWN_TOPIC_ID);
    assert_int_equal(delete_one(k, SLICE_LIT("b"), a).error_code, KE_INVALID_REQUEST);
    assert_int_equal(delete_one(k, SLICE_NULL, UUID_ZERO).error_code, KE_INVALID_REQUEST);
}

static void a_topic_named_twice_is_deleted_once(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "a", 1, 1), KE_NONE);
    struct slice names[] = {SLICE_LIT("a"), SLICE_LIT("a")};
    struct kp_delete_topics_request in = {.topic_names = names, .topic_names_count = 2};
    struct kp_delete_topics_response out;
    controller_delete_topics(cluster_op(k), &in, 3, &out, &k->records);
    assert_int_equal(out.responses[0].error_code, KE_NONE);
    assert_int_equal(out.responses[1].error_code, KE_INVALID_REQUEST);
    assert_int_equal(k->records.count, 1);
}

static void deletion_can_be_switched_off(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(cluster_create(k, "a", 1, 1), KE_NONE);
    k->opts.delete_topics = false;
    assert_int_equal(delete_one(k, SLICE_LIT("a"), UUID_ZERO).error_code, KE_TOPIC_DELETION_DISABLED);
}

// ---- CreatePartitions
// ------------------------------------------------------------------------------------------
static enum kafka_error grow(struct cluster *k, const char *name, int32_t count, const int32_t *ids,
                             int32_t ids_count)
{
    struct kp_create_partitions_request_create_partitions_assignment assignment = {
        .broker_ids = (int32_t *)(uintptr_t)ids, .broker_ids_count = ids_count};
    struct kp_create_partitions_request_create_partitions_topic topic = {.name = slice_str(name),
                                                                         .count = count};
    topic.assignments = ids ? &assignment : NULL;
    topic.assignments_count = ids ? 1 : -1;
    struct kp_create_partitions_request in = {.topics = &topic, .topics_count = 1};
    struct kp_create_partitions_response out;
    controller_create_partitions(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    return (enum kafka_error)out.results[0].error_code;
}

static void partitions_only_grow(void **state)
{
    struct cluster *k = *state;
    static const int32_t two[] = {1, 2}, one[] = {1};
    assert_int_equal(cluster_create(k, "t", 2, 2), KE_NONE);
    assert_int_equal(grow(k, "u", 3, NULL, 0), KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(grow(k, "t", 2, NULL, 0), KE_INVALID_PARTITIONS);
    assert_int_equal(grow(k, "t", 1, NULL, 0), KE_INVALID_PARTITIONS);
    assert_int_equal(grow(k, "t", 20000, NULL, 0), KE_POLICY_VIOLATION);
    assert_int_equal(grow(k, "t", 4, two, 2), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(grow(k, "t", 3, one, 1), KE_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(grow(k, "t", 3, two, 2), KE_NONE);
    assert_int_equal(cluster_part(k, "t", 2)->leader, 1);
    assert_int_equal(grow(k, "t", 9, NULL, 0), KE_NONE);
    assert_int_equal(topic_partition_count(image_topic_named(k->img, SLICE_LIT("t"))), 9);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(replicas_are_striped_over_racks_and_leaders_over_brokers),
        T(the_followers_of_one_leader_differ),
        cmocka_unit_test(brokers_without_racks_share_evenly),
        T(a_fenced_broker_follows_but_never_leads),
        T(more_replicas_than_brokers_and_no_live_broker_are_refused),
        T(until_brokers_replicate_one_replica_is_the_most),
        T(added_partitions_go_on_with_the_striping),
        T(names_are_judged),
        T(names_that_differ_in_dot_and_underscore_collide),
        T(a_topic_named_twice_is_refused_once_and_others_are_made),
        T(counts_are_judged_and_defaulted),
        T(one_request_makes_at_most_ten_thousand),
        T(validate_only_runs_every_check_and_writes_nothing),
        T(an_assignment_of_the_users_own_is_judged_and_followed),
        T(configs_are_judged_kept_and_answered),
        T(who_may_not_describe_configs_gets_the_topic_without_them),
        T(topics_are_deleted_by_name_or_by_id),
        T(a_topic_named_twice_is_deleted_once),
        T(deletion_can_be_switched_off),
        T(partitions_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
