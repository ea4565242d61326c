// SPDX-License-Identifier: Apache-2.0
// IncrementalAlterConfigs, AlterConfigs, UpdateFeatures, voters, what activation writes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/protocol/gen/add_raft_voter_request.h"
#include "core/protocol/gen/add_raft_voter_response.h"
#include "core/protocol/gen/alter_configs_request.h"
#include "core/protocol/gen/alter_configs_response.h"
#include "core/protocol/gen/incremental_alter_configs_request.h"
#include "core/protocol/gen/incremental_alter_configs_response.h"
#include "core/protocol/gen/remove_raft_voter_request.h"
#include "core/protocol/gen/remove_raft_voter_response.h"
#include "core/protocol/gen/update_features_request.h"
#include "core/protocol/gen/update_features_response.h"
#include "tests/unit/core/controller/cluster.h"

static void info(void *data, const struct image *img, int8_t type, struct slice key, struct arena *arena,
                 struct controller_config_info *out)
{
    (void)data, (void)img, (void)type, (void)arena;
    out->known = true;
    out->list = slice_equal_str(key, "cleanup.policy");
    out->value = out->list ? SLICE_LIT("delete") : SLICE_NULL;
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
}

static const struct config_validator validator = {.info = info, .validate = validate, .each_key = each_key};

static int start(void **state)
{
    static struct cluster k;
    cluster_init(&k);
    cluster_brokers(&k, 1, 3);
    k.opts.configs = &validator;
    assert_int_equal(cluster_create(&k, "t", 1, 1), KE_NONE);
    *state = &k;
    return 0;
}

static int stop(void **state)
{
    cluster_fini(*state);
    return 0;
}

static int16_t change(struct cluster *k, int8_t type, const char *name, const char *key, int8_t op,
                      const char *value)
{
    struct kp_incremental_alter_configs_request_alterable_config config = {
        .name = slice_str(key), .config_operation = op, .value = slice_str(value)};
    struct kp_incremental_alter_configs_request_alter_configs_resource resource = {
        .resource_type = type, .resource_name = slice_str(name), .configs = &config, .configs_count = 1};
    struct kp_incremental_alter_configs_request in = {.resources = &resource, .resources_count = 1};
    struct kp_incremental_alter_configs_response out;
    controller_incremental_alter_configs(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    return out.responses[0].error_code;
}

static struct slice value(struct cluster *k, const char *key)
{
    return image_config_value(k->img, CONFIG_RESOURCE_TOPIC, SLICE_LIT("t"), slice_str(key));
}

enum { SET, DELETE, APPEND, SUBTRACT };

static void keys_are_set_and_deleted_one_by_one(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "b", SET, "2"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "a", DELETE, NULL), KE_NONE);
    assert_true(slice_is_null(value(k, "a")));
    assert_true(slice_equal_str(value(k, "b"), "2"));
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "a", DELETE, NULL), KE_NONE);
    assert_int_equal(k->records.count, 0);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "b", SET, "2"), KE_NONE);
    assert_int_equal(k->records.count, 0);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "b", SET, NULL), KE_INVALID_REQUEST);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "b", 9, "2"), KE_INVALID_REQUEST);
}

static void lists_grow_and_shrink_from_what_holds(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "cleanup.policy", APPEND, "compact,delete"),
                     KE_NONE);
    assert_true(slice_equal_str(value(k, "cleanup.policy"), "delete,compact"));
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "cleanup.policy", SUBTRACT, "delete"), KE_NONE);
    assert_true(slice_equal_str(value(k, "cleanup.policy"), "compact"));
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "cleanup.policy", SUBTRACT, "compact"), KE_NONE);
    assert_true(slice_equal_str(value(k, "cleanup.policy"), ""));
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "retention.ms", APPEND, "5"), KE_INVALID_CONFIG);
}

static void a_bad_value_never_becomes_a_record(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "a", SET, "bad"), KE_INVALID_CONFIG);
    assert_int_equal(k->records.count, 0);
}

static void resources_must_be_there(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "u", "a", SET, "1"), KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "7", "a", SET, "1"), KE_BROKER_ID_NOT_REGISTERED);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "x", "a", SET, "1"), KE_INVALID_REQUEST);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER_LOGGER, "1", "a", SET, "1"), KE_INVALID_REQUEST);
    assert_int_equal(change(k, 77, "1", "a", SET, "1"), KE_INVALID_REQUEST);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "2", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_GROUP, "g", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_CLIENT_METRICS, "m", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_GROUP, "", "a", SET, "1"), KE_INVALID_REQUEST);
}

static void a_resource_or_a_key_named_twice_is_refused(void **state)
{
    struct cluster *k = *state;
    struct kp_incremental_alter_configs_request_alterable_config twice[] = {
        {.name = SLICE_LIT("a"), .value = SLICE_LIT("1")}, {.name = SLICE_LIT("a"), .value = SLICE_LIT("2")}};
    struct kp_incremental_alter_configs_request_alter_configs_resource resources[] = {
        {.resource_type = CONFIG_RESOURCE_TOPIC,
         .resource_name = SLICE_LIT("t"),
         .configs = twice,
         .configs_count = 2},
        {.resource_type = CONFIG_RESOURCE_BROKER,
         .resource_name = SLICE_LIT("1"),
         .configs = twice,
         .configs_count = 1},
        {.resource_type = CONFIG_RESOURCE_BROKER,
         .resource_name = SLICE_LIT("1"),
         .configs = twice,
         .configs_count = 1}};
    struct kp_incremental_alter_configs_request in = {.resources = resources, .resources_count = 3};
    struct kp_incremental_alter_configs_response out;
    controller_incremental_alter_configs(cluster_op(k), &in, &out, &k->records);
    for (int i = 0; i < 3; i++)
        assert_int_equal(out.responses[i].error_code, KE_INVALID_REQUEST);
    assert_int_equal(k->records.count, 0);
}

static void validate_only_writes_nothing(void **state)
{
    struct cluster *k = *state;
    struct kp_incremental_alter_configs_request_alterable_config config = {.name = SLICE_LIT("a"),
                                                                           .value = SLICE_LIT("1")};
    struct kp_incremental_alter_configs_request_alter_configs_resource resource = {
        .resource_type = CONFIG_RESOURCE_TOPIC,
        .resource_name = SLICE_LIT("t"),
        .configs = &config,
        .configs_count = 1};
    struct kp_incremental_alter_configs_request in = {
        .resources = &resource, .resources_count = 1, .validate_only = true};
    struct kp_incremental_alter_configs_response out;
    controller_incremental_alter_configs(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.responses[0].error_code, KE_NONE);
    assert_int_equal(k->records.count, 0);
    config.value = SLICE_LIT("bad");
    controller_incremental_alter_configs(cluster_op(k), &in, &out, &k->records);
    assert_int_equal(out.responses[0].error_code, KE_INVALID_CONFIG);
}

static void the_old_verb_resets_what_is_not_named(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "a", SET, "1"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "b", SET, "2"), KE_NONE);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "c", SET, "3"), KE_NONE);
    struct kp_alter_configs_request_alterable_config two[] = {
        {.name = SLICE_LIT("c"), .value = SLICE_LIT("4")}, {.name = SLICE_LIT("a"), .value = SLICE_LIT("1")}};
    struct kp_alter_configs_request_alter_configs_resource resource = {.resource_type = CONFIG_RESOURCE_TOPIC,
                                                                       .resource_name = SLICE_LIT("t"),
                                                                       .configs = two,
                                                                       .configs_count = 2};
    struct kp_alter_configs_request in = {.resources = &resource, .resources_count = 1};
    struct kp_alter_configs_response out;
    controller_alter_configs(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(out.responses[0].error_code, KE_NONE);
    assert_int_equal(k->records.count, 2);
    assert_true(slice_equal_str(value(k, "a"), "1"));
    assert_true(slice_is_null(value(k, "b")));
    assert_true(slice_equal_str(value(k, "c"), "4"));
}

static void with_elr_a_new_minimum_isr_voids_it_and_belongs_to_the_cluster(void **state)
{
    struct cluster *k = *state;
    cluster_feature(k, "eligible.leader.replicas.version", 1);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "1", "min.insync.replicas", SET, "2"),
                     KE_INVALID_CONFIG);
    assert_int_equal(change(k, CONFIG_RESOURCE_TOPIC, "t", "min.insync.replicas", SET, "2"), KE_NONE);
    assert_int_equal(k->records.count, 2);
    assert_int_equal(k->records.items[0].type, METADATA_CLEAR_ELR);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", SET, "2"), KE_NONE);
    assert_int_equal(k->records.items[0].body.clear_elr.topic_name.len, 0);
    assert_int_equal(change(k, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", DELETE, NULL),
                     KE_INVALID_CONFIG);
}

// ---- features
// --------------------------------------------------------------------------------------------------
static struct kp_update_features_response update(struct cluster *k, const char *name, int16_t level,
                                                 int8_t type)
{
    struct kp_update_features_request_feature_update_key key = {
        .feature = slice_str(name), .max_version_level = level, .upgrade_type = type};
    struct kp_update_features_request in = {.feature_updates = &key, .feature_updates_count = 1};
    struct kp_update_features_response out;
    controller_update_features(cluster_op(k), &in, 1, &out, &k->records);
    cluster_commit(k);
    return out;
}

static void features_are_raised_one_by_one(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(update(k, "group.version", 1, 1).error_code, KE_NONE);
    assert_int_equal(image_feature_level(k->img, SLICE_LIT("group.version")), 1);
    assert_int_equal(update(k, "group.version", 1, 1).error_code, KE_NONE);
    assert_int_equal(k->records.count, 0);
    assert_int_equal(update(k, "group.version", 2, 1).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, "no.such", 1, 1).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, "group.version", -1, 2).error_code, KE_INVALID_UPDATE_VERSION);
}

static void going_down_has_to_be_asked_for_and_may_lose_nothing(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(update(k, "group.version", 1, 1).error_code, KE_NONE);
    assert_int_equal(update(k, "group.version", 0, 1).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, "group.version", 0, 2).error_code, KE_NONE);
    assert_int_equal(update(k, "group.version", 1, 3).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, FEATURE_METADATA_VERSION, 31, 2).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, FEATURE_METADATA_VERSION, 31, 3).error_code, KE_INVALID_UPDATE_VERSION);
    cluster_feature(k, FEATURE_METADATA_VERSION, 29);
    assert_int_equal(update(k, FEATURE_METADATA_VERSION, 27, 2).error_code, KE_NONE);
    assert_int_equal(image_metadata_version(k->img), 27);
    assert_int_equal(update(k, FEATURE_METADATA_VERSION, 22, 2).error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(update(k, FEATURE_METADATA_VERSION, 0, 2).error_code, KE_INVALID_UPDATE_VERSION);
}

static void a_level_needs_every_node_and_its_metadata_version(void **state)
{
    struct cluster *k = *state;
    struct kp_broker_registration_request *in = cluster_registration(k, 9, 900, NULL);
    for (int32_t i = 0; i < in->features_count; i++)
        if (slice_equal_str(in->features[i].name, "group.version"))
            in->features[i].max_supported_version = 0;
    assert_int_equal(cluster_register(k, in), KE_NONE);
    struct kp_update_features_response out = update(k, "group.version", 1, 1);
    assert_int_equal(out.error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(out.results_count, 1);
    assert_int_equal(out.results[0].error_code, KE_INVALID_UPDATE_VERSION);
    cluster_feature(k, FEATURE_METADATA_VERSION, 22);
    assert_int_equal(update(k, "eligible.leader.replicas.version", 1, 1).error_code,
                     KE_INVALID_UPDATE_VERSION);
    cluster_feature(k, FEATURE_METADATA_VERSION, 29);
    cluster_set_config(k, CONFIG_RESOURCE_BROKER, "2", "min.insync.replicas", "3");
    assert_int_equal(update(k, "eligible.leader.replicas.version", 1, 1).error_code, KE_NONE);
    assert_true(slice_equal_str(
        image_config_value(k->img, CONFIG_RESOURCE_BROKER, SLICE_LIT(""), SLICE_LIT("min.insync.replicas")),
        "1"));
    assert_null(image_config(k->img, CONFIG_RESOURCE_BROKER, SLICE_LIT("2")));
}

static void the_quorums_own_feature_is_left_to_the_quorum(void **state)
{
    struct cluster *k = *state;
    assert_int_equal(update(k, "kraft.version", 1, 1).error_code, KE_NONE);
    assert_int_equal(k->records.count, 0);
    assert_int_equal(update(k, "kraft.version", 0, 2).error_code, KE_INVALID_UPDATE_VERSION);
}

static void one_bad_update_stops_all(void **state)
{
    struct cluster *k = *state;
    struct kp_update_features_request_feature_update_key keys[] = {
        {.feature = SLICE_LIT("group.version"), .max_version_level = 1, .upgrade_type = 1},
        {.feature = SLICE_LIT("share.version"), .max_version_level = 9, .upgrade_type = 1}};
    struct kp_update_features_request in = {.feature_updates = keys, .feature_updates_count = 2};
    struct kp_update_features_response out;
    controller_update_features(cluster_op(k), &in, 2, &out, &k->records);
    assert_int_equal(out.error_code, KE_INVALID_UPDATE_VERSION);
    assert_int_equal(out.results_count, 0);
    assert_int_equal(k->records.count, 0);
    keys[1].max_version_level = 1;
    in.validate_only = true;
    controller_update_features(cluster_op(k), &in, 2, &out, &k->records);
    assert_int_equal(out.error_code, KE_NONE);
    assert_int_equal(k->records.count, 0);
}

// ---- activation, voters
// ----------------------------------------------------------------------------------------
static void the_formatted_checkpoint_becomes_the_first_batch(void **state)
{
    (void)state;
    struct cluster k;
    cluster_init(&k);
    image_unref(k.img);
    k.img = image_empty();
    struct metadata_record boot[3];
    metadata_record_init(&boot[0], METADATA_USER_SCRAM_CREDENTIAL, 0);
    boot[0].body.user_scram_credential.name = SLICE_LIT("admin");
    boot[0].body.user_scram_credential.mechanism = 1;
    metadata_record_init(&boot[1], METADATA_FEATURE_LEVEL, 0);
    boot[1].body.feature_level.name = SLICE_LIT("group.version");
    boot[1].body.feature_level.feature_level = 1;
    metadata_record_init(&boot[2], METADATA_FEATURE_LEVEL, 0);
    boot[2].body.feature_level.name = SLICE_LIT(FEATURE_METADATA_VERSION);
    boot[2].body.feature_level.feature_level = 25;
    controller_activate(cluster_op(&k), boot, 3, &k.records);
    assert_int_equal(k.records.count, 3);
    assert_true(slice_equal_str(k.records.items[0].body.feature_level.name, FEATURE_METADATA_VERSION));
    cluster_commit(&k);
    assert_int_equal(image_metadata_version(k.img), 25);
    assert_non_null(image_scram(k.img, 1, SLICE_LIT("admin")));
    (void)cluster_op(&k);
    (void)record_list_add(&k.records, METADATA_BEGIN_TRANSACTION, 0);
    cluster_commit(&k);
    controller_activate(cluster_op(&k), boot, 3, &k.records);
    assert_int_equal(k.records.count, 1);
    assert_int_equal(k.records.items[0].type, METADATA_ABORT_TRANSACTION);
    cluster_fini(&k);
}

static void a_voter_is_named_fully_and_has_an_endpoint(void **state)
{
    struct cluster *k = *state;
    struct kp_add_raft_voter_request_listener listener = {
        .name = SLICE_LIT("CONTROLLER"), .host = SLICE_LIT("h"), .port = 9};
    struct kp_add_raft_voter_request in = {.cluster_id = SLICE_LIT("cluster"),
                                           .voter_id = 4,
                                           .voter_directory_id = uuid_number(1),
                                           .listeners = &listener,
                                           .listeners_count = 1};
    struct kp_add_raft_voter_response out;
    assert_true(controller_check_add_voter(cluster_op(k), &in, &out));
    listener.name = SLICE_LIT("OTHER");
    assert_false(controller_check_add_voter(cluster_op(k), &in, &out));
    assert_int_equal(out.error_code, KE_INVALID_REQUEST);
    listener.name = SLICE_LIT("CONTROLLER");
    in.cluster_id = SLICE_LIT("other");
    assert_false(controller_check_add_voter(cluster_op(k), &in, &out));
    assert_int_equal(out.error_code, KE_INCONSISTENT_CLUSTER_ID);
    struct kp_remove_raft_voter_request remove = {.cluster_id = SLICE_NULL, .voter_id = 4};
    struct kp_remove_raft_voter_response removed;
    assert_false(controller_check_remove_voter(cluster_op(k), &remove, &removed));
    remove.voter_directory_id = uuid_number(1);
    assert_true(controller_check_remove_voter(cluster_op(k), &remove, &removed));
    k->c.kraft_version = 0;
    assert_false(controller_check_remove_voter(cluster_op(k), &remove, &removed));
    assert_int_equal(removed.error_code, KE_UNSUPPORTED_VERSION);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(keys_are_set_and_deleted_one_by_one),
        T(lists_grow_and_shrink_from_what_holds),
        T(a_bad_value_never_becomes_a_record),
        T(resources_must_be_there),
        T(a_resource_or_a_key_named_twice_is_refused),
        T(validate_only_writes_nothing),
        T(the_old_verb_resets_what_is_not_named),
        T(with_elr_a_new_minimum_isr_voids_it_and_belongs_to_the_cluster),
        T(features_are_raised_one_by_one),
        T(going_down_has_to_be_asked_for_and_may_lose_nothing),
        T(a_level_needs_every_node_and_its_metadata_version),
        T(the_quorums_own_feature_is_left_to_the_quorum),
        T(one_bad_update_stops_all),
        cmocka_unit_test(the_formatted_checkpoint_becomes_the_first_batch),
        T(a_voter_is_named_fully_and_has_an_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
