// SPDX-License-Identifier: Apache-2.0
// Precedence, synonyms and sources of DescribeConfigs; typed topic configuration; changes that are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/config/topic_config.h"

// A layer is a list of key, value, ..., NULL.
static struct slice list_get(const void *data, struct slice key)
{
    const char *const *p = data;
    for (; *p; p += 2) {
        if (slice_equal_str(key, p[0])) {
            return slice_str(p[1]);
        }
    }
    return SLICE_NULL;
}

#define LAYER(...) ((struct config_layer){list_get, (const char *const[]){__VA_ARGS__, NULL}})

static struct config_values file;

static int reset(void **state)
{
    config_values_init(&file);
    return 0;
}
static int clean(void **state)
{
    config_values_fini(&file);
    return 0;
}
static void in_file(const char *key, const char *value)
{
    config_values_set(&file, slice_str(key), slice_str(value), CONFIG_FROM_FILE, 1);
}

static void assert_answer(const struct config_chain *chain, enum config_kind kind, const char *name,
                          const char *value, enum config_source source)
{
    struct config_answer a;
    config_resolve(chain, config_find(kind, slice_str(name)), slice_str(name), &a);
    assert_true(slice_equal(a.value, slice_str(value)));
    assert_int_equal(a.source, source);
}

static void a_topic_key_falls_back_from_layer_to_layer(void **state)
{
    struct config_chain chain = {.file = &file};
    assert_answer(&chain, CONFIG_KIND_TOPIC, "segment.bytes", "1073741824", CONFIG_SOURCE_DEFAULT);
    in_file("log.segment.bytes", "2000000");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "segment.bytes", "2000000", CONFIG_SOURCE_FILE);
    chain.cluster = LAYER("log.segment.bytes", "3000000");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "segment.bytes", "3000000", CONFIG_SOURCE_DYNAMIC_CLUSTER);
    chain.broker = LAYER("log.segment.bytes", "4000000");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "segment.bytes", "4000000", CONFIG_SOURCE_DYNAMIC_BROKER);
    chain.resource = LAYER("segment.bytes", "1073741824"); // equal to the default, and yet set
    assert_answer(&chain, CONFIG_KIND_TOPIC, "segment.bytes", "1073741824", CONFIG_SOURCE_TOPIC);
    struct config_answer a;
    config_resolve(&chain, config_find(CONFIG_KIND_TOPIC, SLICE_LIT("segment.bytes")),
                   SLICE_LIT("segment.bytes"), &a);
    assert_int_equal(a.synonyms_count, 5);
    enum config_source order[] = {CONFIG_SOURCE_TOPIC, CONFIG_SOURCE_DYNAMIC_BROKER,
                                  CONFIG_SOURCE_DYNAMIC_CLUSTER, CONFIG_SOURCE_FILE, CONFIG_SOURCE_DEFAULT};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(a.synonyms[i].source, order[i]);
        assert_true(slice_equal_str(a.synonyms[i].name, i == 0 ? "segment.bytes" : "log.segment.bytes"));
    }
}

static void retention_in_ms_wins_over_minutes_over_hours(void **state)
{
    struct config_chain chain = {.file = &file};
    assert_answer(&chain, CONFIG_KIND_TOPIC, "retention.ms", "604800000", CONFIG_SOURCE_DEFAULT);
    in_file("log.retention.hours", "1");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "retention.ms", "3600000", CONFIG_SOURCE_FILE);
    in_file("log.retention.minutes", "2");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "retention.ms", "120000", CONFIG_SOURCE_FILE);
    in_file("log.retention.ms", "3");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "retention.ms", "3", CONFIG_SOURCE_FILE);
    chain.cluster = LAYER("log.retention.ms", "4");
    struct config_answer a;
    config_resolve(&chain, config_find(CONFIG_KIND_TOPIC, SLICE_LIT("retention.ms")),
                   SLICE_LIT("retention.ms"), &a);
    assert_true(slice_equal_str(a.value, "4"));
    const char *names[] = {"log.retention.ms", "log.retention.ms", "log.retention.minutes",
                           "log.retention.hours", "log.retention.hours"};
    assert_int_equal(a.synonyms_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_true(slice_equal_str(a.synonyms[i].name, names[i]));
    }
    assert_true(slice_equal_str(a.synonyms[2].value, "2")); // in minutes, as set
}

static void no_limit_in_hours_is_no_limit_in_ms(void **state)
{
    struct config_chain chain = {.file = &file};
    in_file("log.retention.hours", "-1");
    assert_answer(&chain, CONFIG_KIND_TOPIC, "retention.ms", "-1", CONFIG_SOURCE_FILE);
}

static void a_broker_key_shows_its_own_value_and_all_synonyms(void **state)
{
    struct config_chain chain = {.file = &file};
    struct config_answer a;
    config_resolve(&chain, config_find(CONFIG_KIND_BROKER, SLICE_LIT("log.retention.ms")),
                   SLICE_LIT("log.retention.ms"), &a);
    assert_true(slice_is_null(a.value));
    assert_int_equal(a.synonyms_count, 1);
    assert_true(slice_equal_str(a.synonyms[0].name, "log.retention.hours"));
    chain.broker = LAYER("message.max.bytes", "5");
    assert_answer(&chain, CONFIG_KIND_BROKER, "message.max.bytes", "5", CONFIG_SOURCE_DYNAMIC_BROKER);
    assert_answer(&chain, CONFIG_KIND_BROKER, "num.partitions", "1", CONFIG_SOURCE_DEFAULT);
    assert_answer(&chain, CONFIG_KIND_BROKER, "broker.rack", NULL, CONFIG_SOURCE_DEFAULT);
}

static void a_listeners_key_falls_back_to_the_plain_one(void **state)
{
    struct config_chain chain = {.file = &file};
    in_file("ssl.keystore.location", "/a");
    assert_answer(&chain, CONFIG_KIND_BROKER, "listener.name.x.ssl.keystore.location", "/a",
                  CONFIG_SOURCE_FILE);
    in_file("listener.name.x.ssl.keystore.location", "/b");
    assert_answer(&chain, CONFIG_KIND_BROKER, "listener.name.x.ssl.keystore.location", "/b",
                  CONFIG_SOURCE_FILE);
}

static void a_group_key_has_the_brokers_behind_it(void **state)
{
    struct config_chain chain = {.file = &file};
    in_file("group.consumer.session.timeout.ms", "50000");
    assert_answer(&chain, CONFIG_KIND_GROUP, "consumer.session.timeout.ms", "50000", CONFIG_SOURCE_FILE);
    chain.resource = LAYER("consumer.session.timeout.ms", "55000");
    assert_answer(&chain, CONFIG_KIND_GROUP, "consumer.session.timeout.ms", "55000", CONFIG_SOURCE_GROUP);
    chain.resource = LAYER("interval.ms", "1000");
    assert_answer(&chain, CONFIG_KIND_CLIENT_METRICS, "interval.ms", "1000", CONFIG_SOURCE_CLIENT_METRICS);
    assert_answer(&chain, CONFIG_KIND_CLIENT_METRICS, "match", "", CONFIG_SOURCE_DEFAULT);
}

static void a_topic_without_settings_has_kafkas_defaults(void **state)
{
    struct config_chain chain = {.file = &file};
    struct topic_config t;
    topic_config_resolve(&chain, &t);
    assert_int_equal(t.segment_bytes, 1 << 30);
    assert_int_equal(t.segment_ms, 604800000);
    assert_int_equal(t.segment_jitter_ms, 0);
    assert_int_equal(t.retention_ms, 604800000);
    assert_int_equal(t.retention_bytes, -1);
    assert_int_equal(t.flush_messages, INT64_MAX);
    assert_int_equal(t.flush_ms, INT64_MAX);
    assert_int_equal(t.message_bytes_max, 1048588);
    assert_int_equal(t.codec, TOPIC_CODEC_PRODUCER);
    assert_int_equal(t.unpacked_bytes_max, 0);
    assert_true(t.cleanup_delete && !t.cleanup_compact && !t.append_time && !t.preallocate);
    assert_int_equal(t.timestamp_after_ms, 3600000);
    assert_int_equal(t.timestamp_before_ms, INT64_MAX);
    assert_int_equal(t.min_insync_replicas, 1);
    assert_int_equal(t.file_delete_delay_ms, 60000);
}

static void a_topics_settings_are_typed(void **state)
{
    struct config_chain chain = {.file = &file};
    chain.resource = LAYER("cleanup.policy", "compact,delete", "compression.type", "gzip",
                           "compression.gzip.level", "7", "message.timestamp.type", "LogAppendTime",
                           "flush.messages", "1", "internal.segment.bytes", "512");
    struct topic_config t;
    topic_config_resolve(&chain, &t);
    assert_true(t.cleanup_delete && t.cleanup_compact && t.append_time);
    assert_int_equal(t.codec, TOPIC_CODEC_GZIP);
    assert_int_equal(t.codec_level, 7);
    assert_int_equal(t.flush_messages, 1);
    assert_int_equal(t.segment_bytes, 512);
}

static void a_stored_value_that_is_not_good_counts_as_not_set(void **state)
{
    struct config_chain chain = {.file = &file};
    chain.resource = LAYER("retention.bytes", "many");
    chain.cluster = LAYER("log.retention.bytes", "77");
    struct topic_config t;
    topic_config_resolve(&chain, &t);
    assert_int_equal(t.retention_bytes, 77);
}

static int entry(enum config_kind kind, bool cluster, const char *name, const char *value)
{
    return config_check_entry(kind, cluster, slice_str(name), slice_str(value), NULL);
}

static void changes_are_judged_before_they_are_stored(void **state)
{
    assert_int_equal(entry(CONFIG_KIND_TOPIC, false, "retention.ms", "1"), 0);
    assert_int_equal(entry(CONFIG_KIND_TOPIC, false, "retention.ms", "x"), ERR_INVALID);
    assert_int_equal(entry(CONFIG_KIND_TOPIC, false, "retention", "1"), ERR_NOTFOUND);
    assert_int_equal(entry(CONFIG_KIND_BROKER, false, "num.partitions", "2"), ERR_INVALID);
    assert_int_equal(entry(CONFIG_KIND_BROKER, true, "message.max.bytes", "2"), 0);
    assert_int_equal(entry(CONFIG_KIND_BROKER, true, "ssl.keystore.location", "/x"), ERR_INVALID);
    assert_int_equal(entry(CONFIG_KIND_BROKER, false, "ssl.keystore.location", "/x"), 0);
}

static void entries_are_judged_together(void **state)
{
    struct config_chain chain = {.file = &file};
    struct config_pair lag[] = {{SLICE_LIT("min.compaction.lag.ms"), SLICE_LIT("10")},
                                {SLICE_LIT("max.compaction.lag.ms"), SLICE_LIT("5")}};
    assert_int_equal(config_check_resource(CONFIG_KIND_TOPIC, false, lag, 2, &chain, NULL), ERR_INVALID);
    assert_int_equal(config_check_resource(CONFIG_KIND_TOPIC, false, lag, 1, &chain, NULL), 0);
    struct config_pair tiered[] = {{SLICE_LIT("remote.storage.enable"), SLICE_LIT("true")}};
    assert_int_equal(config_check_resource(CONFIG_KIND_TOPIC, false, tiered, 1, &chain, NULL), ERR_INVALID);
    struct config_pair session[] = {{SLICE_LIT("consumer.session.timeout.ms"), SLICE_LIT("60001")}};
    struct errmsg msg;
    assert_int_equal(config_check_resource(CONFIG_KIND_GROUP, false, session, 1, &chain, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "group.consumer.max.session.timeout.ms"));
    session[0].value = SLICE_LIT("50000");
    assert_int_equal(config_check_resource(CONFIG_KIND_GROUP, false, session, 1, &chain, NULL), 0);
}

static void lists_grow_and_shrink(void **state)
{
    struct arena arena;
    arena_init(&arena);
    struct slice l = config_list_change(SLICE_LIT("a, b"), SLICE_LIT("c,a"), true, &arena);
    assert_true(slice_equal_str(l, "a,b,c"));
    assert_true(slice_equal_str(config_list_change(l, SLICE_LIT("a,c"), false, &arena), "b"));
    assert_true(slice_equal_str(config_list_change(SLICE_NULL, SLICE_LIT("x"), true, &arena), "x"));
    assert_true(slice_equal_str(config_list_change(SLICE_LIT("x"), SLICE_LIT("x"), false, &arena), ""));
    arena_fini(&arena);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, clean)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_topic_key_falls_back_from_layer_to_layer),
        TEST(retention_in_ms_wins_over_minutes_over_hours),
        TEST(no_limit_in_hours_is_no_limit_in_ms),
        TEST(a_broker_key_shows_its_own_value_and_all_synonyms),
        TEST(a_listeners_key_falls_back_to_the_plain_one),
        TEST(a_group_key_has_the_brokers_behind_it),
        TEST(a_topic_without_settings_has_kafkas_defaults),
        TEST(a_topics_settings_are_typed),
        TEST(a_stored_value_that_is_not_good_counts_as_not_set),
        TEST(changes_are_judged_before_they_are_stored),
        TEST(entries_are_judged_together),
        TEST(lists_grow_and_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
