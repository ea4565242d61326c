// SPDX-License-Identifier: Apache-2.0
// Brokers, controllers and topics of the image: each one block of memory, made once and then only read.
#include "core/metadata/image_priv.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

// Fills one block: arrays first, then strings.
struct packer {
    uint8_t *at; // next free byte
};

static void *pack(struct packer *p, const void *data, size_t size)
{
    void *at = p->at;
    if (size)
        memcpy(at, data, size);
    p->at += size;
    return at;
}

static struct slice pack_slice(struct packer *p, struct slice s)
{
    return slice_is_null(s) ? s : slice_of(pack(p, s.data, s.len), s.len);
}

static size_t at_least_zero(int32_t count)
{
    return count > 0 ? (size_t)count : 0;
}

static int compare_features(const void *a, const void *b)
{
    return slice_compare(((const struct image_feature_range *)a)->name,
                         ((const struct image_feature_range *)b)->name);
}

static int compare_uuids(const void *a, const void *b)
{
    return uuid_compare(*(const struct uuid *)a, *(const struct uuid *)b);
}

// Copies `from`, whose lists and strings may lie anywhere, into a block of its own.
static struct image_broker *broker_pack(const struct image_broker *from)
{
    size_t size = sizeof *from + (size_t)from->endpoints_count * sizeof(struct image_endpoint) +
                  (size_t)from->features_count * sizeof(struct image_feature_range) +
                  (size_t)(from->log_dirs_count + from->cordoned_dirs_count) * sizeof(struct uuid) +
                  from->rack.len;
    for (int32_t i = 0; i < from->endpoints_count; i++)
        size += from->endpoints[i].name.len + from->endpoints[i].host.len;
    for (int32_t i = 0; i < from->features_count; i++)
        size += from->features[i].name.len;
    struct image_broker *b = mem_alloc(size);
    memcpy((void *)b, (const void *)from, sizeof *b);
    atomic_init(&b->refs, 1);
    struct packer p = {(uint8_t *)(b + 1)};
    struct image_endpoint *endpoints =
        pack(&p, from->endpoints, (size_t)from->endpoints_count * sizeof *from->endpoints);
    struct image_feature_range *features =
        pack(&p, from->features, (size_t)from->features_count * sizeof *from->features);
    struct uuid *dirs = pack(&p, from->log_dirs, (size_t)from->log_dirs_count * sizeof *dirs);
    struct uuid *cordoned =
        pack(&p, from->cordoned_dirs, (size_t)from->cordoned_dirs_count * sizeof *cordoned);
    for (int32_t i = 0; i < b->endpoints_count; i++) {
        endpoints[i].name = pack_slice(&p, endpoints[i].name);
        endpoints[i].host = pack_slice(&p, endpoints[i].host);
    }
    for (int32_t i = 0; i < b->features_count; i++)
        features[i].name = pack_slice(&p, features[i].name);
    b->rack = pack_slice(&p, from->rack);
    qsort(features, (size_t)b->features_count, sizeof *features, compare_features);
    qsort(dirs, (size_t)b->log_dirs_count, sizeof *dirs, compare_uuids);
    qsort(cordoned, (size_t)b->cordoned_dirs_count, sizeof *cordoned, compare_uuids);
    b->endpoints = endpoints;
    b->features = features;
    b->log_dirs = dirs;
    b->cordoned_dirs = cordoned;
    return b;
}

struct image_broker *broker__from_record(const struct kp_register_broker_record *r)
{
    size_t endpoints_count = at_least_zero(r->end_points_count),
           features_count = at_least_zero(r->features_count);
    struct image_endpoint *endpoints = mem_calloc(endpoints_count, sizeof *endpoints);
    struct image_feature_range *features = mem_calloc(features_count, sizeof *features);
    for (size_t i = 0; i < endpoints_count; i++)
        endpoints[i] = (struct image_endpoint){r->end_points[i].name, r->end_points[i].host,
                                               r->end_points[i].port, r->end_points[i].security_protocol};
    for (size_t i = 0; i < features_count; i++)
        features[i] = (struct image_feature_range){r->features[i].name, r->features[i].min_supported_version,
                                                   r->features[i].max_supported_version};
    struct image_broker loose = {
        .id = r->broker_id,
        .epoch = r->broker_epoch,
        .incarnation = r->incarnation_id,
        .rack = r->rack,
        .endpoints = endpoints,
        .features = features,
        .log_dirs = r->log_dirs,
        .cordoned_dirs = r->cordoned_log_dirs,
        .endpoints_count = (int32_t)endpoints_count,
        .features_count = (int32_t)features_count,
        .log_dirs_count = (int32_t)at_least_zero(r->log_dirs_count),
        .cordoned_dirs_count = (int32_t)at_least_zero(r->cordoned_log_dirs_count),
        .fenced = r->fenced,
        .in_controlled_shutdown = r->in_controlled_shutdown,
        .migrating = r->is_migrating_zk_broker,
    };
    struct image_broker *b = broker_pack(&loose);
    mem_free(endpoints);
    mem_free(features);
    return b;
}

struct image_broker *broker__changed(const struct image_broker *b, bool fenced, bool in_controlled_shutdown,
                                     const struct uuid *log_dirs, int32_t log_dirs_count,
                                     const struct uuid *cordoned, int32_t cordoned_count)
{
    struct image_broker loose;
    memcpy((void *)&loose, (const void *)b, sizeof loose);
    loose.fenced = fenced;
    loose.in_controlled_shutdown = in_controlled_shutdown;
    if (log_dirs) {
        loose.log_dirs = log_dirs;
        loose.log_dirs_count = log_dirs_count;
    }
    if (cordoned) {
        loose.cordoned_dirs = cordoned;
        loose.cordoned_dirs_count = cordoned_count;
    }
    return broker_pack(&loose);
}

void broker__unref(void *b)
{
    if (image__unref(b))
        mem_free(b);
}

bool image_broker_active(const struct image_broker *b)
{
    return b && !b->fenced && !b->in_controlled_shutdown;
}

bool image_broker_dir_online(const struct image_broker *b, struct uuid dir)
{
    if (uuid_equal(dir, UUID_DIR_MIGRATING) || uuid_equal(dir, UUID_DIR_UNASSIGNED))
        return true;
    if (uuid_equal(dir, UUID_DIR_LOST))
        return false;
    if (b->log_dirs_count == 0)
        return true;
    return bsearch(&dir, b->log_dirs, (size_t)b->log_dirs_count, sizeof dir, compare_uuids) != NULL;
}

struct image_controller *controller__from_record(const struct kp_register_controller_record *r)
{
    size_t endpoints_count = at_least_zero(r->end_points_count),
           features_count = at_least_zero(r->features_count);
    size_t size = sizeof(struct image_controller) + endpoints_count * sizeof(struct image_endpoint) +
                  features_count * sizeof(struct image_feature_range);
    for (size_t i = 0; i < endpoints_count; i++)
        size += r->end_points[i].name.len + r->end_points[i].host.len;
    for (size_t i = 0; i < features_count; i++)
        size += r->features[i].name.len;
    struct image_controller *c = mem_zalloc(size);
    struct image_endpoint *endpoints = (struct image_endpoint *)(c + 1);
    struct image_feature_range *features = (struct image_feature_range *)(endpoints + endpoints_count);
    struct packer p = {(uint8_t *)(features + features_count)};
    atomic_init(&c->refs, 1);
    c->id = r->controller_id;
    c->incarnation = r->incarnation_id;
    c->zk_migration_ready = r->zk_migration_ready;
    c->endpoints = endpoints;
    c->endpoints_count = (int32_t)endpoints_count;
    c->features = features;
    c->features_count = (int32_t)features_count;
    for (size_t i = 0; i < endpoints_count; i++) {
        endpoints[i].name = pack_slice(&p, r->end_points[i].name);
        endpoints[i].host = pack_slice(&p, r->end_points[i].host);
        endpoints[i].port = r->end_points[i].port;
        endpoints[i].security_protocol = r->end_points[i].security_protocol;
    }
    for (size_t i = 0; i < features_count; i++) {
        features[i].name = pack_slice(&p, r->features[i].name);
        features[i].min = r->features[i].min_supported_version;
        features[i].max = r->features[i].max_supported_version;
    }
    qsort(features, features_count, sizeof *features, compare_features);
    return c;
}

void controller__unref(void *c)
{
    if (image__unref(c))
        mem_free(c);
}

struct topic_info *topic_info__create(struct slice name, struct uuid id, uint64_t ordinal)
{
    struct topic_info *info = mem_alloc(sizeof *info + name.len);
    struct packer p = {(uint8_t *)(info + 1)};
    atomic_init(&info->refs, 1);
    info->ordinal = ordinal;
    info->id = id;
    info->name = pack_slice(&p, name);
    return info;
}

void topic_info__unref(void *info)
{
    if (image__unref(info))
        mem_free(info);
}

struct image_topic *topic__create(struct topic_info *info)
{
    struct image_topic *t = mem_zalloc(sizeof *t);
    atomic_init(&t->refs, 1);
    t->info = info;
    imap_init(&t->partitions, partition__unref);
    return t;
}

struct image_topic *topic__writable(struct image *img, const struct image_topic *t)
{
    struct image_topic *own = imap_own(&img->topics, t->info->ordinal);
    if (own)
        return own;
    own = mem_zalloc(sizeof *own);
    atomic_init(&own->refs, 1);
    own->count = t->count;
    own->info = image__ref(t->info);
    own->partitions = imap_copy(&t->partitions);
    imap_put(&img->topics, own->info->ordinal, own);
    return own;
}

void topic__unref(void *object)
{
    if (!image__unref(object))
        return;
    struct image_topic *t = object;
    imap_drop(&t->partitions);
    topic_info__unref(t->info);
    mem_free(t);
}

struct uuid topic_id(const struct image_topic *t)
{
    return t->info->id;
}

struct slice topic_name(const struct image_topic *t)
{
    return t->info->name;
}

int32_t topic_partition_count(const struct image_topic *t)
{
    return t->count;
}

const struct image_partition *topic_partition(const struct image_topic *t, partition_id index)
{
    return index < 0 ? NULL : imap_get(&t->partitions, (uint64_t)index);
}
