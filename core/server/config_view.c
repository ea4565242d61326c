// SPDX-License-Identifier: Apache-2.0
// Chains of configuration layers over an image, and the decider's validator made from core/config.
#include "core/server/config_view.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/config/server_config.h"

static struct slice get_entry(const void *data, struct slice key)
{
    const struct image_config *c = data;
    int32_t low = 0, high = c->entries_count;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        int cmp = slice_compare(c->entries[mid].key, key);
        if (cmp == 0)
            return c->entries[mid].value;
        if (cmp < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return SLICE_NULL;
}

static struct config_layer layer_of(const struct image_config *c)
{
    return c ? (struct config_layer){get_entry, c} : (struct config_layer){NULL, NULL};
}

void config_view_chain(struct config_view *v, const struct image *image, const struct config_values *file,
                       node_id id, int8_t type, struct slice name, struct config_chain *out)
{
    *v = (struct config_view){.image = image};
    (void)snprintf(v->broker_name, sizeof v->broker_name, "%d", id);
    if (image) {
        v->broker = image_config(image, CONFIG_RESOURCE_BROKER, slice_str(v->broker_name));
        v->cluster = image_config(image, CONFIG_RESOURCE_BROKER, SLICE_LIT(""));
        if (type != CONFIG_RESOURCE_BROKER)
            v->self = image_config(image, type, name);
    }
    *out = (struct config_chain){.resource = layer_of(v->self),
                                 .broker = layer_of(v->broker),
                                 .cluster = layer_of(v->cluster),
                                 .file = file};
}

// ---- the decider's validator ----------------------------------------------------------------------------
static bool has_kind(int8_t type)
{
    return type == CONFIG_RESOURCE_TOPIC || type == CONFIG_RESOURCE_BROKER || type == CONFIG_RESOURCE_GROUP ||
           type == CONFIG_RESOURCE_CLIENT_METRICS;
}

static void info(void *data, const struct image *img, int8_t type, struct slice key, struct arena *arena,
                 struct controller_config_info *out)
{
    const struct server_config *config = data;
    const struct config_key *k = has_kind(type) ? config_find((enum config_kind)type, key) : NULL;
    *out = (struct controller_config_info){.known = k != NULL, .source = CONFIG_SOURCE_DEFAULT};
    if (!k)
        return;
    struct config_view view;
    struct config_chain chain;
    struct config_answer answer;
    // As the controllers see it: no broker of its own, so the cluster's defaults, the file and what is built
    // in.
    config_view_chain(&view, img, &config->values, -1, type, SLICE_NULL, &chain);
    chain.broker = chain.resource = (struct config_layer){NULL, NULL};
    config_resolve(&chain, k, key, &answer);
    out->list = k->type == CONFIG_LIST;
    out->read_only = config_is_read_only(k);
    out->sensitive = config_is_sensitive(k);
    out->source = (int8_t)answer.source;
    out->value = arena_dup_slice(arena, answer.value);
}

static int validate(void *data, int8_t type, struct slice name, const struct image_config_entry *entries,
                    int32_t count, struct errmsg *msg)
{
    const struct server_config *config = data;
    if (!has_kind(type))
        return err_set(msg, ERR_INVALID, "resources of type %d have no configuration that can be altered",
                       type);
    struct config_pair *pairs = mem_calloc((size_t)count + 1, sizeof *pairs);
    for (int32_t i = 0; i < count; i++)
        pairs[i] = (struct config_pair){entries[i].key, entries[i].value};
    struct config_chain chain = {.file = &config->values};
    bool cluster_default = type == CONFIG_RESOURCE_BROKER && name.len == 0;
    int err =
        config_check_resource((enum config_kind)type, cluster_default, pairs, (size_t)count, &chain, msg);
    mem_free(pairs);
    return err;
}

static void each_key(void *data, int8_t type, void (*each)(void *to, struct slice key), void *to)
{
    if (!has_kind(type))
        return;
    for (size_t i = 0; i < config_key_count((enum config_kind)type); i++) {
        const struct config_key *k = config_key_at((enum config_kind)type, i);
        if (!(k->flags & CONFIG_INTERNAL))
            each(to, slice_str(k->name));
    }
}

struct config_validator *config_view_validator(const struct server_config *config)
{
    struct config_validator *v = mem_zalloc(sizeof *v);
    *v = (struct config_validator){
        .data = (void *)(uintptr_t)config, .info = info, .validate = validate, .each_key = each_key};
    return v;
}
