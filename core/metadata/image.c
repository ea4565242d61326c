// SPDX-License-Identifier: Apache-2.0
// The image as a whole: life, look-ups, walks over brokers and topics.
#include "core/metadata/image_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"

struct image *image_empty(void)
{
    struct image *img = mem_zalloc(sizeof *img);
    atomic_init(&img->refs, 1);
    img->offset = -1;
    img->epoch = -1;
    imap_init(&img->brokers, broker__unref);
    imap_init(&img->controllers, controller__unref);
    imap_init(&img->topics, topic__unref);
    imap_init(&img->sets, sets__unref);
    imap_init(&img->reassigning, NULL);
    pmap_init(&img->topic_ids, &topic_id__map);
    pmap_init(&img->topic_names, &topic_name__map);
    pmap_init(&img->configs, &config__map);
    pmap_init(&img->acls, &acl__map);
    pmap_init(&img->scram, &scram__map);
    pmap_init(&img->quotas, &quota__map);
    pmap_init(&img->tokens, &token__map);
    return img;
}

struct image *image_ref(const struct image *img)
{
    return image__ref(img);
}

static void drop_content(struct image *img)
{
    imap_drop(&img->brokers);
    imap_drop(&img->controllers);
    imap_drop(&img->topics);
    imap_drop(&img->sets);
    imap_drop(&img->reassigning);
    pmap_drop(&img->topic_ids);
    pmap_drop(&img->topic_names);
    pmap_drop(&img->configs);
    pmap_drop(&img->acls);
    pmap_drop(&img->scram);
    pmap_drop(&img->quotas);
    pmap_drop(&img->tokens);
    features__unref(img->features);
    image_unref(img->base);
}

void image_unref(const struct image *img)
{
    if (!img || !image__unref((void *)(uintptr_t)img))
        return;
    struct image *last = (struct image *)(uintptr_t)img;
    drop_content(last);
    mem_free(last);
}

struct image *image__copy(const struct image *from)
{
    struct image *img = mem_alloc(sizeof *img);
    memcpy((void *)img, (const void *)from, sizeof *img);
    atomic_init(&img->refs, 1);
    img->brokers = imap_copy(&from->brokers);
    img->controllers = imap_copy(&from->controllers);
    img->topics = imap_copy(&from->topics);
    img->sets = imap_copy(&from->sets);
    img->reassigning = imap_copy(&from->reassigning);
    img->topic_ids = pmap_copy(&from->topic_ids);
    img->topic_names = pmap_copy(&from->topic_names);
    img->configs = pmap_copy(&from->configs);
    img->acls = pmap_copy(&from->acls);
    img->scram = pmap_copy(&from->scram);
    img->quotas = pmap_copy(&from->quotas);
    img->tokens = pmap_copy(&from->tokens);
    img->features = from->features ? image__ref(from->features) : NULL;
    img->base = from->base ? image_ref(from->base) : NULL;
    return img;
}

void image__replace(struct image *img, struct image *from)
{
    MUST(atomic_load(&from->refs) == 1);
    log_offset offset = img->offset;
    leader_epoch epoch = img->epoch;
    drop_content(img);
    memcpy((void *)img, (const void *)from, sizeof *img);
    atomic_init(&img->refs, 1);
    img->offset = offset;
    img->epoch = epoch;
    mem_free(from);
}

log_offset image_offset(const struct image *img)
{
    return img->offset;
}

leader_epoch image_epoch(const struct image *img)
{
    return img->epoch;
}

const struct image *image_visible(const struct image *img)
{
    return img->base ? img->base : img;
}

bool image_in_transaction(const struct image *img)
{
    return img->base != NULL;
}

const struct image_broker *image_broker(const struct image *img, broker_id id)
{
    return id < 0 ? NULL : imap_get(&img->brokers, (uint64_t)id);
}

const struct image_broker *image_broker_next(const struct image *img, const struct image_broker *after)
{
    uint64_t key;
    return imap_next(&img->brokers, after ? (uint64_t)after->id + 1 : 0, &key);
}

int32_t image_broker_count(const struct image *img)
{
    return img->broker_count;
}

const struct image_controller *image_controller(const struct image *img, node_id id)
{
    return id < 0 ? NULL : imap_get(&img->controllers, (uint64_t)id);
}

const struct image_controller *image_controller_next(const struct image *img,
                                                     const struct image_controller *after)
{
    uint64_t key;
    return imap_next(&img->controllers, after ? (uint64_t)after->id + 1 : 0, &key);
}

static const struct image_topic *topic_of(const struct image *img, const struct topic_info *info)
{
    return info ? imap_get(&img->topics, info->ordinal) : NULL;
}

const struct image_topic *image_topic(const struct image *img, struct uuid id)
{
    return topic_of(img, pmap_get(&img->topic_ids, &id));
}

const struct image_topic *image_topic_named(const struct image *img, struct slice name)
{
    return topic_of(img, pmap_get(&img->topic_names, &name));
}

const struct image_topic *image_topic_next(const struct image *img, const struct image_topic *after)
{
    uint64_t key;
    return imap_next(&img->topics, after ? after->info->ordinal + 1 : 0, &key);
}

int64_t image_topic_count(const struct image *img)
{
    return (int64_t)pmap_count(&img->topic_ids);
}

int64_t image_partition_count(const struct image *img)
{
    return img->partition_count;
}

const struct image_partition *image_partition(const struct image *img, struct uuid topic, partition_id index)
{
    const struct image_topic *t = image_topic(img, topic);
    return t ? topic_partition(t, index) : NULL;
}

int16_t image_metadata_version(const struct image *img)
{
    return img->metadata_version;
}

int64_t image_next_producer_id(const struct image *img)
{
    return img->next_producer_id;
}
