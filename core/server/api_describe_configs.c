// SPDX-License-Identifier: Apache-2.0
// DescribeConfigs (32): every key of a resource with its value, where that comes from and what else would
// hold (KIP-226).
//
// Answered by whoever is asked, from its image and file. A broker resource with a name must be this node;
// with an empty name it is the default of all brokers, of which only what is set is listed.
#include <stdio.h>

#include "core/config/server_config.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/describe_configs_request.h"
#include "core/protocol/gen/describe_configs_response.h"
#include "core/protocol/gen/errors.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/config_view.h"
#include "core/server/controller_node.h"
#include "core/server/server.h"

typedef struct kp_describe_configs_request_describe_configs_resource asked_resource;
typedef struct kp_describe_configs_response_describe_configs_result described_resource;
typedef struct kp_describe_configs_response_describe_configs_resource_result described_key;
typedef struct kp_describe_configs_response_describe_configs_synonym described_synonym;

struct describing {
    struct request *rq;                           // whose arena
    const struct kp_describe_configs_request *in; // what is wanted
    const struct image *image;                    // of this turn
    const struct server_config *config;           // of this node
};

static bool is_asked(const asked_resource *r, struct slice key)
{
    if (r->configuration_keys_count < 0)
        return true;
    for (int32_t i = 0; i < r->configuration_keys_count; i++)
        if (slice_equal(r->configuration_keys[i], key))
            return true;
    return false;
}

static void refuse(described_resource *out, enum kafka_error error, const char *why)
{
    out->error_code = (int16_t)error;
    out->error_message = slice_str(why);
}

static void add_synonyms(struct describing *d, const struct config_answer *a, bool sensitive,
                         described_key *out)
{
    out->synonyms = arena_alloc(&d->rq->arena, ((size_t)a->synonyms_count + 1) * sizeof *out->synonyms);
    for (int32_t i = 0; i < a->synonyms_count; i++) {
        described_synonym *s = &out->synonyms[out->synonyms_count++];
        kp_describe_configs_response_describe_configs_synonym_init(s);
        s->name = arena_dup_slice(&d->rq->arena, a->synonyms[i].name);
        s->value = sensitive ? SLICE_NULL : arena_dup_slice(&d->rq->arena, a->synonyms[i].value);
        s->source = (int8_t)a->synonyms[i].source;
    }
}

static void add_key(struct describing *d, const struct config_chain *chain, const struct config_key *k,
                    struct slice name, described_resource *to)
{
    struct config_answer a;
    config_resolve(chain, k, name, &a);
    described_key *out = &to->configs[to->configs_count++];
    kp_describe_configs_response_describe_configs_resource_result_init(out);
    bool sensitive = config_is_sensitive(k);
    out->name = arena_dup_slice(&d->rq->arena, name);
    out->value = sensitive ? SLICE_NULL : arena_dup_slice(&d->rq->arena, a.value);
    out->read_only = config_is_read_only(k);
    out->config_source = (int8_t)a.source;
    out->is_sensitive = sensitive;
    out->config_type = (int8_t)k->type;
    if (d->in->include_synonyms)
        add_synonyms(d, &a, sensitive, out);
    out->documentation = d->in->include_documentation ? slice_str(k->doc) : SLICE_NULL;
    if (k->flags & CONFIG_INTERNAL && a.source == CONFIG_SOURCE_DEFAULT)
        to->configs_count--; // shown only where it is set
}

static void describe_all_keys(struct describing *d, const asked_resource *r, const struct config_chain *chain,
                              described_resource *out)
{
    size_t count = config_key_count((enum config_kind)r->resource_type);
    out->configs = arena_alloc(&d->rq->arena, (count + 1) * sizeof *out->configs);
    for (size_t i = 0; i < count; i++) {
        const struct config_key *k = config_key_at((enum config_kind)r->resource_type, i);
        struct slice name = slice_str(k->name);
        if (is_asked(r, name))
            add_key(d, chain, k, name, out);
    }
}

// Only what is set on it: the default of all brokers, and keys that are no key of the table (listener
// prefixes).
static void describe_set_keys(struct describing *d, const asked_resource *r, const struct config_chain *chain,
                              const struct image_config *set, described_resource *out)
{
    out->configs =
        arena_alloc(&d->rq->arena, ((size_t)(set ? set->entries_count : 0) + 1) * sizeof *out->configs);
    for (int32_t i = 0; set && i < set->entries_count; i++) {
        const struct config_key *k = config_find((enum config_kind)r->resource_type, set->entries[i].key);
        if (k && is_asked(r, set->entries[i].key))
            add_key(d, chain, k, set->entries[i].key, out);
    }
}

static void describe_broker(struct describing *d, const asked_resource *r, described_resource *out)
{
    struct config_view view;
    struct config_chain chain;
    char *own = arena_printf(&d->rq->arena, "%d", d->config->id);
    config_view_chain(&view, d->image, &d->config->values, d->config->id, CONFIG_RESOURCE_BROKER,
                      r->resource_name, &chain);
    if (r->resource_name.len == 0) {
        chain.broker = (struct config_layer){NULL, NULL};
        describe_set_keys(d, r, &chain, view.cluster, out);
    } else if (!slice_equal_str(r->resource_name, own)) {
        refuse(out, KE_INVALID_REQUEST,
               arena_printf(&d->rq->arena,
                            "Unexpected broker id, expected %s or empty string, but received " SLICE_FMT, own,
                            SLICE_ARG(r->resource_name)));
    } else {
        describe_all_keys(d, r, &chain, out);
    }
}

// DescribeConfigs on the topic or group, else on the cluster.
static enum kafka_error judge(struct describing *d, const asked_resource *r)
{
    bool topic = r->resource_type == CONFIG_RESOURCE_TOPIC, group = r->resource_type == CONFIG_RESOURCE_GROUP;
    if (authorize(d->rq->ctx, ACL_DESCRIBE_CONFIGS,
                  topic   ? ACL_TOPIC
                  : group ? ACL_GROUP
                          : ACL_CLUSTER,
                  topic || group ? r->resource_name : ACL_CLUSTER_NAME))
        return KE_NONE;
    return topic   ? KE_TOPIC_AUTHORIZATION_FAILED
           : group ? KE_GROUP_AUTHORIZATION_FAILED
                   : KE_CLUSTER_AUTHORIZATION_FAILED;
}

static void describe(struct describing *d, const asked_resource *r, described_resource *out)
{
    struct config_view view;
    struct config_chain chain;
    kp_describe_configs_response_describe_configs_result_init(out);
    out->resource_type = r->resource_type;
    out->resource_name = r->resource_name;
    enum kafka_error error = judge(d, r);
    if (error != KE_NONE) {
        refuse(out, error, kafka_error_text(error));
        return;
    }
    switch (r->resource_type) {
    case CONFIG_RESOURCE_TOPIC:
        if (!image_topic_named(d->image, r->resource_name)) {
            refuse(out, KE_UNKNOWN_TOPIC_OR_PARTITION, NULL);
            return;
        }
        break;
    case CONFIG_RESOURCE_BROKER:
        describe_broker(d, r, out);
        return;
    case CONFIG_RESOURCE_GROUP:
    case CONFIG_RESOURCE_CLIENT_METRICS:
        if (r->resource_name.len == 0) {
            refuse(out, KE_INVALID_REQUEST, "The resource needs a name");
            return;
        }
        break;
    default:
        refuse(out, KE_INVALID_REQUEST, "Unsupported resource type");
        return;
    }
    config_view_chain(&view, d->image, &d->config->values, d->config->id, r->resource_type, r->resource_name,
                      &chain);
    describe_all_keys(d, r, &chain, out);
}

static void answer(struct request *rq, const struct server_config *config)
{
    struct kp_describe_configs_request *in = REQUEST_DECODE(rq, describe_configs_request);
    if (!in)
        return;
    struct describing d = {.rq = rq, .in = in, .image = request_image(rq), .config = config};
    struct kp_describe_configs_response out;
    kp_describe_configs_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.results = arena_alloc(&rq->arena, ((size_t)in->resources_count + 1) * sizeof *out.results);
    for (int32_t i = 0; i < in->resources_count; i++)
        describe(&d, &in->resources[i], &out.results[out.results_count++]);
    REQUEST_REPLY(rq, describe_configs_response, &out);
}

static void handle_on_broker(struct request *rq)
{
    answer(rq, server_configuration(request_broker(rq)->ops_data));
}

static void handle_on_controller(struct request *rq)
{
    answer(rq, controller_node_config(rq->listener->controller_node));
}

const struct request_api api_describe_configs = {.key = KP_API_DESCRIBE_CONFIGS,
                                                 .version_min = 1,
                                                 .version_max = 4,
                                                 .advertised_min = 1,
                                                 .on_broker = handle_on_broker,
                                                 .on_controller = handle_on_controller};
