// SPDX-License-Identifier: Apache-2.0
// A node's configuration: what a good file gives, and what each mistake is told.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/config/server_config.h"

static char warnings[4096];

static void remember(void *data, const char *text)
{
    strncat(warnings, text, sizeof warnings - strlen(warnings) - 2);
    strncat(warnings, "\n", sizeof warnings - strlen(warnings) - 1);
}

static struct errmsg message;

// The configuration of a text with overrides and environment; NULL where it is refused (`message` says why).
static struct server_config *make(const char *file, const char *const *environment, const char *override)
{
    struct config_values values;
    struct server_config *c = NULL;
    struct config_warn w = {remember, NULL};
    warnings[0] = message.text[0] = '\0';
    config_values_init(&values);
    assert_int_equal(config_values_add_file(&values, slice_str(file), &message), 0);
    config_values_add_environment(&values, (char *const *)(uintptr_t)environment);
    if (override) {
        assert_int_equal(config_values_add_override(&values, override, &message), 0);
    }
    int rc = server_config_make(&values, &w, &c, &message);
    assert_int_equal(rc != 0, message.text[0] != '\0');
    config_values_fini(&values);
    return rc ? NULL : c;
}

#define COMBINED                                                                                             \
    "process.roles=broker,controller\nnode.id=1\nlog.dirs=/data/a,/data/b\n"                                 \
    "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://"                                                     \
    "127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"                                                 \
    "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"

static void refused(const char *file, const char *expected)
{
    struct server_config *c = make(file, NULL, NULL);
    assert_null(c);
    if (!strstr(message.text, expected)) {
        fail_msg("\"%s\" lacks \"%s\"", message.text, expected);
    }
}

static void a_combined_node_from_a_usual_file(void **state)
{
    struct server_config *c = make(COMBINED "num.network.threads=3\nnum.partitions=4\n", NULL, NULL);
    assert_non_null(c);
    assert_true(c->is_broker && c->is_controller);
    assert_int_equal(c->id, 1);
    assert_int_equal(c->log_dirs_count, 2);
    assert_string_equal(c->log_dirs[1], "/data/b");
    assert_string_equal(c->metadata_log_dir, "/data/a");
    assert_int_equal(c->listeners_count, 2);
    assert_int_equal(c->advertised_count, 1);
    assert_int_equal(c->advertised[0].port, 9092);
    assert_string_equal((const char *)c->controller_listener->name.data, "CONTROLLER");
    assert_int_equal(c->controller_advertised.port, 9093);
    assert_string_equal(c->inter_broker_listener, "PLAINTEXT");
    assert_int_equal(c->voters_count, 0);
    assert_int_equal(c->bootstrap_count, 1);
    assert_int_equal(c->num_partitions, 4);
    assert_int_equal(c->request_bytes_max, 104857600);
    assert_int_equal(c->flush_scheduler_ms, INT64_MAX);
    assert_int_equal(c->imbalance_percent, 10);
    assert_string_equal(warnings, "");
    server_config_free(c);
}

static void a_broker_and_a_controller_apart(void **state)
{
    struct server_config *c = make(
        "process.roles=broker\nnode.id=0\nlisteners=EXTERNAL://:9092\nadvertised.listeners=EXTERNAL://"
        "b0.example:9092\n"
        "listener.security.protocol.map=EXTERNAL:PLAINTEXT,CTL:PLAINTEXT\ncontroller.listener.names=CTL\n"
        "controller.quorum.voters=1@c1.example:9093,2@[::1]:9093\n",
        NULL, NULL);
    assert_non_null(c);
    assert_null(c->controller_listener);
    assert_int_equal(c->voters_count, 2);
    assert_int_equal(c->voters[1].id, 2);
    assert_string_equal((const char *)c->voters[1].host.data, "::1");
    assert_string_equal(c->inter_broker_listener, "EXTERNAL");
    assert_string_equal((const char *)c->advertised[0].host.data, "b0.example");
    server_config_free(c);
    c = make(
        "process.roles=controller\nnode.id=1\nlisteners=CTL://0.0.0.0:9093\ncontroller.listener.names=CTL\n"
        "controller.quorum.voters=1@c1.example:9093\n",
        NULL, NULL);
    assert_non_null(c);
    assert_int_equal(c->advertised_count, 0);
    assert_int_equal(c->controller_advertised.host.len, 0);
    server_config_free(c);
}

static void a_listener_without_a_host_has_the_machines_name(void **state)
{
    struct server_config *c =
        make("process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
             "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\n",
             NULL, NULL);
    assert_non_null(c);
    server_config_set_host(c, "machine.example");
    assert_string_equal((const char *)c->advertised[0].host.data, "machine.example");
    assert_string_equal((const char *)c->controller_advertised.host.data, "machine.example");
    assert_int_equal(c->listeners[0].host.len, 0); // still every address
    server_config_free(c);
}

static void later_sources_win(void **state)
{
    const char *const environment[] = {"KAFKA_NUM_PARTITIONS=5",
                                       "KRAFT_NUM_PARTITIONS=6",
                                       "KAFKA_LOG_RETENTION_MS=77",
                                       "KAFKA_HEAP_OPTS=-Xmx1g",
                                       "KAFKA_SERVICE_HOST=10.0.0.1",
                                       "PATH=/bin",
                                       NULL};
    struct server_config *c = make(COMBINED "num.partitions=4\n", environment, NULL);
    assert_non_null(c);
    assert_int_equal(c->num_partitions, 6);
    assert_true(slice_equal_str(config_values_get(&c->values, "log.retention.ms"), "77"));
    assert_null(config_values_find(&c->values, SLICE_LIT("heap.opts")));
    assert_string_equal(warnings, "");
    server_config_free(c);
    c = make(COMBINED "num.partitions=4\n", environment, "num.partitions=8");
    assert_int_equal(c->num_partitions, 8);
    server_config_free(c);
}

static void variables_map_as_the_apache_image_does(void **state)
{
    const char *const environment[] = {"KAFKA_A_B__C___D=1", "KRAFT_NETWORK_LOOPS=3",
                                       "KAFKA_LISTENER_NAME_EXT__1_SSL_KEY_PASSWORD=x", NULL};
    struct config_values v;
    config_values_init(&v);
    config_values_add_environment(&v, (char *const *)(uintptr_t)environment);
    assert_null(config_values_find(&v, SLICE_LIT("a.b_c-d"))); // no such key, and none near
    assert_true(slice_equal_str(config_values_get(&v, "kraft.network.loops"), "3"));
    assert_true(slice_equal_str(config_values_get(&v, "listener.name.ext_1.ssl.key.password"), "x"));
    config_values_fini(&v);
}

static void odd_keys_are_warned_about(void **state)
{
    struct server_config *c =
        make(COMBINED "num.partition=3\nzookeeper.connect=zk:2181\nnum.io.threads=8\nmy.own=1\n", NULL, NULL);
    assert_non_null(c);
    assert_non_null(
        strstr(warnings, "unknown key num.partition (line 7 of the file); did you mean num.partitions?"));
    assert_non_null(strstr(warnings, "zookeeper.connect was removed in Kafka 4.0"));
    assert_non_null(strstr(warnings, "without effect in this release: num.io.threads"));
    assert_non_null(strstr(warnings, "unknown key my.own"));
    server_config_free(c);
}

static void missing_basics_are_named(void **state)
{
    refused("node.id=1\n", "process.roles");
    refused("process.roles=broker\n", "node.id");
    refused("process.roles=broker\nnode.id=1\nbroker.id=2\n", "remove broker.id");
    refused("process.roles=brokr\nnode.id=1\n", "process.roles");
    refused("process.roles=broker\nnode.id=1\n", "controller.listener.names");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://h:1\n",
            "bootstrap.servers");
    refused(COMBINED "num.partitions=x\n", "line 7");
    refused(COMBINED "log.dirs=/a,/b,/a/\n", "twice");
}

static void roles_and_listeners_must_fit(void **state)
{
    refused(
        "process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://h:1,C://h:2\n",
        "only a broker");
    refused("process.roles=controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://h:1,C://"
            "h:2\n",
            "only a controller");
    refused("process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://"
            "h:1\n",
            "C://HOST:9093");
    refused("process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=C://h:1\n",
            "for clients");
    refused("process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://"
            "h:1,C://h:1\n",
            "same port");
    refused("process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://"
            "0.0.0.0:1,C://h:2\n",
            "advertised.listeners=PLAINTEXT://HOST:1");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=FOO://h:1\n",
            "FOO:PLAINTEXT");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT:h:1\n",
            "NAME://host:port");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://h:99999\n",
            "host:port");
    refused(COMBINED "advertised.listeners=OTHER://h:1\n", "OTHER");
    refused(COMBINED "advertised.listeners=PLAINTEXT://0.0.0.0:9092\n", "can reach");
    refused(COMBINED "inter.broker.listener.name=OTHER\n", "OTHER");
}

static void voters_must_fit(void **state)
{
    refused(COMBINED "controller.quorum.voters=2@h:1\n", "1@HOST:PORT");
    refused(COMBINED "controller.quorum.voters=1@h\n", "host:port");
    refused(COMBINED "controller.quorum.voters=1@h:1,1@g:1\n", "twice");
    refused(COMBINED "controller.quorum.voters=h:1\n", "id@host:port");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=PLAINTEXT://h:1\n"
            "controller.quorum.voters=1@h:2\n",
            "only a broker");
}

static void doors_are_not_left_open(void **state)
{
    refused(COMBINED "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n",
            "no access control");
    refused("process.roles=broker\nnode.id=1\ncontroller.listener.names=C\nlisteners=SASL_SSL://h:1\n"
            "controller.quorum.bootstrap.servers=h:2\n",
            "PLAINTEXT only");
}

static void times_must_fit(void **state)
{
    refused(COMBINED "log.retention.hours=0\n", "log.retention.hours");
    refused(COMBINED "broker.session.timeout.ms=1000\n", "broker.heartbeat.interval.ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_combined_node_from_a_usual_file),
        cmocka_unit_test(a_broker_and_a_controller_apart),
        cmocka_unit_test(a_listener_without_a_host_has_the_machines_name),
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(variables_map_as_the_apache_image_does),
        cmocka_unit_test(odd_keys_are_warned_about),
        cmocka_unit_test(missing_basics_are_named),
        cmocka_unit_test(roles_and_listeners_must_fit),
        cmocka_unit_test(voters_must_fit),
        cmocka_unit_test(doors_are_not_left_open),
        cmocka_unit_test(times_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
