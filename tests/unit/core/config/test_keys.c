// SPDX-License-Identifier: Apache-2.0
// The table of keys against the reference implementation's, and values judged by it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/config/check.h"
#include "core/config/key.h"
#include "tests/vectors/vectors.h"

static const char *const types[] = {"",     "BOOLEAN", "STRING", "INT",   "SHORT",
                                    "LONG", "DOUBLE",  "LIST",   "CLASS", "PASSWORD"};
static const char *const importances[] = {"HIGH", "MEDIUM", "LOW"};
static const char *const dynamics[] = {"read-only", "per-broker", "cluster-wide"};

static enum config_kind kind_of(const char *name)
{
    return strcmp(name, "broker") == 0           ? CONFIG_KIND_BROKER
           : strcmp(name, "topic") == 0          ? CONFIG_KIND_TOPIC
           : strcmp(name, "group") == 0          ? CONFIG_KIND_GROUP
           : strcmp(name, "client-metrics") == 0 ? CONFIG_KIND_CLIENT_METRICS
           : strcmp(name, "ip-quota") == 0       ? CONFIG_KIND_QUOTA_IP
                                                 : CONFIG_KIND_QUOTA_CLIENT;
}

static const char *text(json_t *line, const char *name)
{
    return json_string_value(json_object_get(line, name));
}

static void every_key_is_the_references(void **state)
{
    struct vectors v = vectors_open("configs");
    size_t lines = 0;
    for (json_t *line; (line = vectors_next(&v)); json_decref(line), lines++) {
        enum config_kind kind = kind_of(text(line, "kind"));
        const struct config_key *k = config_find(kind, slice_str(text(line, "name")));
        if (!k) {
            print_message("no key %s\n", text(line, "name"));
        }
        assert_non_null(k);
        assert_string_equal(types[k->type], text(line, "type"));
        assert_string_equal(importances[k->importance], text(line, "importance"));
        assert_int_equal((k->flags & CONFIG_INTERNAL) != 0, json_is_true(json_object_get(line, "internal")));
        assert_int_equal((k->flags & CONFIG_REQUIRED) != 0, json_is_true(json_object_get(line, "required")));
        assert_true(slice_equal(slice_str(k->value), slice_str(text(line, "default"))));
        const char *valid = text(line, "valid");
        assert_true(slice_equal(slice_str(k->valid), slice_str(valid && *valid ? valid : NULL)));
        if (text(line, "dynamic")) {
            assert_string_equal(dynamics[k->dynamic], text(line, "dynamic"));
        }
        if (text(line, "server_key")) {
            assert_string_equal(k->broker_keys[0], text(line, "server_key"));
        }
    }
    vectors_close(&v);
    assert_int_equal(lines, 452);
}

static void keys_are_sorted_and_defaults_are_allowed(void **state)
{
    enum config_kind kinds[] = {CONFIG_KIND_BROKER,         CONFIG_KIND_TOPIC,        CONFIG_KIND_GROUP,
                                CONFIG_KIND_CLIENT_METRICS, CONFIG_KIND_QUOTA_CLIENT, CONFIG_KIND_QUOTA_IP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (size_t n = 0; n < config_key_count(kinds[i]); n++) {
            const struct config_key *k = config_key_at(kinds[i], n);
            assert_true(n == 0 || strcmp(config_key_at(kinds[i], n - 1)->name, k->name) < 0);
            struct errmsg msg;
            if (k->value && config_check(k, slice_str(k->value), &msg)) {
                fail_msg("%s", msg.text);
            }
            assert_true(!(k->flags & CONFIG_OBEYED) || k->doc != NULL);
            for (int b = 0; b < CONFIG_BROKER_KEYS_MAX && k->broker_keys[b]; b++) {
                assert_non_null(config_find(CONFIG_KIND_BROKER, slice_str(k->broker_keys[b])));
            }
        }
    }
}

static int check(enum config_kind kind, const char *name, const char *value)
{
    struct errmsg msg = {""};
    int rc = config_check(config_find(kind, slice_str(name)), slice_str(value), &msg);
    assert_int_equal(rc != 0, msg.text[0] != '\0');
    return rc;
}

static void values_are_judged_by_type_and_range(void **state)
{
    assert_int_equal(check(CONFIG_KIND_BROKER, "num.partitions", " 12 "), 0);
    assert_int_equal(check(CONFIG_KIND_BROKER, "num.partitions", "0"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_BROKER, "num.partitions", "2147483648"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_BROKER, "num.partitions", "12x"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_BROKER, "num.partitions", ""), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_BROKER, "auto.create.topics.enable", "TRUE"), 0);
    assert_int_equal(check(CONFIG_KIND_BROKER, "auto.create.topics.enable", "yes"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "flush.messages", "9223372036854775807"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "flush.messages", "9223372036854775808"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "min.cleanable.dirty.ratio", "0.25"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "min.cleanable.dirty.ratio", "1.5"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "compression.gzip.level", "-1"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "compression.gzip.level", "0"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "segment.bytes", "1048575"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "retention.ms", "-2"), ERR_INVALID);
}

static void words_and_lists_are_judged(void **state)
{
    assert_int_equal(check(CONFIG_KIND_TOPIC, "compression.type", "zstd"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "compression.type", "ZSTD"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "cleanup.policy", "compact, delete"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "cleanup.policy", ""), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "cleanup.policy", "compact,shred"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "cleanup.policy", "compact,compact"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "leader.replication.throttled.replicas", "0:1,1:2"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "leader.replication.throttled.replicas", "*"), 0);
    assert_int_equal(check(CONFIG_KIND_TOPIC, "leader.replication.throttled.replicas", "0-1"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_GROUP, "share.auto.offset.reset", "by_duration:PT1H"), 0);
    assert_int_equal(check(CONFIG_KIND_GROUP, "share.auto.offset.reset", "by_duration:"), ERR_INVALID);
    assert_int_equal(check(CONFIG_KIND_BROKER, "group.consumer.migration.policy", "Upgrade"), 0);
}

static void secrets_never_stand_in_messages(void **state)
{
    struct config_key secret = *config_find(CONFIG_KIND_BROKER, SLICE_LIT("ssl.key.password"));
    secret.valid = "non-empty string";
    struct errmsg msg;
    assert_int_equal(config_check(&secret, SLICE_LIT("  "), &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "[hidden]"));
}

static void mistyped_keys_have_a_nearest_one(void **state)
{
    assert_string_equal(config_nearest(CONFIG_KIND_BROKER, SLICE_LIT("log.retentoin.ms")),
                        "log.retention.ms");
    assert_string_equal(config_nearest(CONFIG_KIND_BROKER, SLICE_LIT("advertised.listener")),
                        "advertised.listeners");
    assert_string_equal(config_nearest(CONFIG_KIND_TOPIC, SLICE_LIT("retention.m")), "retention.ms");
    assert_null(config_nearest(CONFIG_KIND_BROKER, SLICE_LIT("something.quite.different")));
    assert_null(config_nearest(CONFIG_KIND_BROKER, SLICE_LIT("")));
}

static void removed_keys_have_advice(void **state)
{
    assert_non_null(config_removed(SLICE_LIT("zookeeper.connect")));
    assert_non_null(config_removed(SLICE_LIT("inter.broker.protocol.version")));
    assert_null(config_removed(SLICE_LIT("log.dirs")));
    assert_null(config_removed(SLICE_LIT("leader.imbalance.per.broker.percentage")));
    assert_non_null(config_find(CONFIG_KIND_BROKER, SLICE_LIT("leader.imbalance.per.broker.percentage")));
}

static void listener_prefixes_are_understood(void **state)
{
    assert_string_equal(
        config_find(CONFIG_KIND_BROKER, SLICE_LIT("listener.name.ext.ssl.keystore.location"))->name,
        "ssl.keystore.location");
    assert_string_equal(
        config_find(CONFIG_KIND_BROKER, SLICE_LIT("listener.name.ext.plain.sasl.jaas.config"))->name,
        "sasl.jaas.config");
    assert_null(config_find(CONFIG_KIND_BROKER, SLICE_LIT("listener.name.ext.num.partitions")));
    assert_null(config_find(CONFIG_KIND_BROKER, SLICE_LIT("listener.name.")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_the_references),
        cmocka_unit_test(keys_are_sorted_and_defaults_are_allowed),
        cmocka_unit_test(values_are_judged_by_type_and_range),
        cmocka_unit_test(words_and_lists_are_judged),
        cmocka_unit_test(secrets_never_stand_in_messages),
        cmocka_unit_test(mistyped_keys_have_a_nearest_one),
        cmocka_unit_test(removed_keys_have_advice),
        cmocka_unit_test(listener_prefixes_are_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
