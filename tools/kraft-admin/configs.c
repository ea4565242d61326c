// SPDX-License-Identifier: Apache-2.0
// kraft-admin configs: describe and alter the configs of topics, brokers and groups.
#include "tools/kraft-admin/configs.h"

#include "core/protocol/gen/describe_configs_request.h"
#include "core/protocol/gen/describe_configs_response.h"
#include "core/protocol/gen/incremental_alter_configs_request.h"
#include "core/protocol/gen/incremental_alter_configs_response.h"

#define OP_SET 0 // operations of IncrementalAlterConfigs
#define OP_DELETE 1

#define SOURCE_TOPIC 1 // where a value comes from, as DescribeConfigs says it
#define SOURCE_GROUP 8

static const char *source_name(int source)
{
    static const char *const names[] = {
        "unknown", "topic",         "broker",         "cluster", "server.properties",
        "default", "broker logger", "client metrics", "group"};
    return source >= 0 && source < (int)(sizeof(names) / sizeof(names[0])) ? names[source] : "unknown";
}

// ---- reading

// Id of the broker that a resource names; -1: of none.
static node_id broker_of(struct slice name)
{
    int64_t id = 0;
    for (size_t i = 0; i < name.len && id <= INT32_MAX; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return -1;
        id = 10 * id + (name.data[i] - '0');
    }
    return name.len > 0 && id <= INT32_MAX ? (node_id)id : -1;
}

// A broker answers for its own configs only.
static int describe(struct admin *a, int8_t type, struct slice name, bool documentation,
                    struct kp_describe_configs_response *r)
{
    struct kp_describe_configs_request q;
    struct kp_describe_configs_request_describe_configs_resource resource;
    kp_describe_configs_request_init(&q);
    kp_describe_configs_request_describe_configs_resource_init(&resource);
    resource.resource_type = type;
    resource.resource_name = name;
    resource.configuration_keys_count = -1; // all
    q.resources = &resource;
    q.resources_count = 1;
    q.include_documentation = documentation;
    node_id broker = type == CONFIG_RESOURCE_BROKER ? broker_of(name) : -1;
    int rc = broker >= 0 ? admin_call_node(a, broker, KP_API_DESCRIBE_CONFIGS, -1, &q, r)
                         : admin_call(a, KP_API_DESCRIBE_CONFIGS, &q, r);
    if (rc)
        return admin_failed(a, rc);
    for (int32_t i = 0; i < r->results_count; i++)
        if (r->results[i].error_code)
            return admin_refusal(a, name, r->results[i].error_code, r->results[i].error_message);
    if (r->results_count != 1)
        return admin_refused(a, SLICE_FMT ": the server does not tell about it", SLICE_ARG(name));
    return ADMIN_OK;
}

int configs_of_topic(struct admin *a, struct slice topic, json_t *out)
{
    struct kp_describe_configs_response r;
    int status = describe(a, CONFIG_RESOURCE_TOPIC, topic, false, &r);
    for (int32_t i = 0; status == ADMIN_OK && i < r.results[0].configs_count; i++) {
        const struct kp_describe_configs_response_describe_configs_resource_result *c =
            &r.results[0].configs[i];
        if (c->config_source == SOURCE_TOPIC)
            json_object_set_new(out, (const char *)arena_printf(&a->arena, SLICE_FMT, SLICE_ARG(c->name)),
                                admin_text(c->value));
    }
    return status;
}

// Which resource the options name. False: none, or several; an error was printed.
static bool resource_of(struct admin *a, int8_t *type, const char **name)
{
    static const struct {
        const char *option;
        int8_t type;
    } kinds[] = {{"topic", CONFIG_RESOURCE_TOPIC},
                 {"broker", CONFIG_RESOURCE_BROKER},
                 {"group", CONFIG_RESOURCE_GROUP},
                 {"client-metrics", CONFIG_RESOURCE_CLIENT_METRICS}};
    int found = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (args_value(&a->args, kinds[i].option)) {
            *type = kinds[i].type;
            *name = args_value(&a->args, kinds[i].option);
            found++;
        }
    if (args_flag(&a->args, "all-brokers")) {
        *type = CONFIG_RESOURCE_BROKER;
        *name = "";
        found++;
    }
    if (found != 1)
        (void)admin_usage(a, "one of --topic, --broker, --all-brokers, --group, --client-metrics is needed");
    return found == 1;
}

static int configs_describe(struct admin *a)
{
    struct kp_describe_configs_response r;
    int8_t type;
    const char *name, *key = args_value(&a->args, "key");
    bool all = args_flag(&a->args, "all") || key, docs = args_flag(&a->args, "docs");
    struct table t;
    if (!resource_of(a, &type, &name))
        return ADMIN_USAGE;
    int status = describe(a, type, slice_str(name), docs, &r);
    if (status)
        return status;
    json_t *rows = json_array();
    table_init(&t, docs ? "KEY|VALUE|FROM|MEANING" : "KEY|VALUE|FROM");
    for (int32_t i = 0; i < r.results[0].configs_count; i++) {
        const struct kp_describe_configs_response_describe_configs_resource_result *c =
            &r.results[0].configs[i];
        bool own =
            c->config_source >= SOURCE_TOPIC && c->config_source <= SOURCE_GROUP && c->config_source != 5;
        if ((key && !slice_equal_str(c->name, key)) || (!all && !own))
            continue;
        json_array_append_new(rows,
                              json_pack("{s:o, s:o, s:s, s:b, s:b, s:o}", "key", admin_text(c->name), "value",
                                        admin_text(c->value), "source", source_name(c->config_source),
                                        "read_only", c->read_only, "sensitive", c->is_sensitive,
                                        "documentation", admin_text(c->documentation)));
        table_add(&t, SLICE_FMT, SLICE_ARG(c->name));
        if (c->is_sensitive)
            table_add(&t, "(hidden)");
        else
            table_add(&t, SLICE_FMT, SLICE_ARG(c->value));
        table_add(&t, "%s", source_name(c->config_source));
        if (docs)
            table_add(&t, SLICE_FMT, SLICE_ARG(c->documentation));
    }
    if (a->json) {
        (void)admin_print_json(rows);
    } else {
        table_print(&t, stdout);
        json_decref(rows);
    }
    table_fini(&t);
    return ADMIN_OK;
}

// ---- changing

int configs_change(struct admin *a, int8_t type, const char *name, const char *set, const char *unset)
{
    struct kp_incremental_alter_configs_request q;
    struct kp_incremental_alter_configs_response r;
    struct kp_incremental_alter_configs_request_alter_configs_resource resource;
    struct kp_incremental_alter_configs_request_alterable_config *configs =
        arena_zalloc(&a->arena, 2 * ARGS_OPTIONS_MAX * sizeof(*configs));
    kp_incremental_alter_configs_request_init(&q);
    kp_incremental_alter_configs_request_alter_configs_resource_init(&resource);
    resource.resource_type = type;
    resource.resource_name = slice_str(name);
    resource.configs = configs;
    int next = 0;
    for (const char *text; (text = args_each(&a->args, set, &next));) {
        struct kp_incremental_alter_configs_request_alterable_config *c = &configs[resource.configs_count++];
        const char *equals = strchr(text, '=');
        if (!equals)
            return admin_usage(a, "--%s is KEY=VALUE", set);
        c->name = slice_of(text, (size_t)(equals - text));
        c->config_operation = OP_SET;
        c->value = slice_str(equals + 1);
    }
    next = 0;
    for (const char *text; (text = args_each(&a->args, unset, &next));) {
        struct kp_incremental_alter_configs_request_alterable_config *c = &configs[resource.configs_count++];
        c->name = slice_str(text);
        c->config_operation = OP_DELETE;
    }
    q.resources = &resource;
    q.resources_count = 1;
    q.validate_only = args_flag(&a->args, "dry-run");
    int rc = admin_call(a, KP_API_INCREMENTAL_ALTER_CONFIGS, &q, &r);
    if (rc)
        return admin_failed(a, rc);
    for (int32_t i = 0; i < r.responses_count; i++)
        if (r.responses[i].error_code)
            return admin_refusal(a, slice_str(name), r.responses[i].error_code, r.responses[i].error_message);
    if (!a->json)
        printf("%s %s: %d config%s\n", q.validate_only ? "would change" : "changed",
               *name ? name : "all brokers", resource.configs_count, resource.configs_count == 1 ? "" : "s");
    return ADMIN_OK;
}

static int configs_alter(struct admin *a)
{
    int8_t type;
    const char *name;
    if (!resource_of(a, &type, &name))
        return ADMIN_USAGE;
    if (!args_value(&a->args, "set") && !args_value(&a->args, "delete"))
        return admin_usage(a, "--set KEY=VALUE or --delete KEY is needed");
    int status = configs_change(a, type, name, "set", "delete");
    if (status == ADMIN_OK && a->json)
        status = admin_print_json(
            json_pack("{s:s, s:b}", "resource", name, "dry_run", args_flag(&a->args, "dry-run")));
    return status;
}

static const char *const describe_options[] = {
    "topic=", "broker=", "all-brokers", "group=", "client-metrics=", "all", "docs", "key=", NULL};
static const char *const alter_options[] = {
    "topic=", "broker=", "all-brokers", "group=", "client-metrics=", "set=", "delete=", "dry-run", NULL};

#define RESOURCES                                                                                            \
    "  --topic NAME | --broker ID | --all-brokers | --group ID | --client-metrics NAME\n"                    \
    "                       whose configs; --all-brokers are the defaults of every broker\n"

const struct admin_verb configs_verbs[] = {
    {"configs describe", describe_options, "show configs and where their values come from",
     RESOURCES "  --all                also those at their default\n"
               "  --key KEY            only this one\n"
               "  --docs               with what each means\n"
               "\n"
               "Example:\n"
               "  kraft-admin configs describe --broker 1 --all\n",
     configs_describe},
    {"configs alter", alter_options, "set and delete configs",
     RESOURCES "  --set KEY=VALUE      may be given again\n"
               "  --delete KEY         back to the default; may be given again\n"
               "  --dry-run            only tell whether it would be accepted\n"
               "\n"
               "Example:\n"
               "  kraft-admin configs alter --topic orders --set retention.ms=3600000\n",
     configs_alter},
    {NULL, NULL, NULL, NULL, NULL},
};
