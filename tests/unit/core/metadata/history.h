// SPDX-License-Identifier: Apache-2.0
// Verbs for the tests of the image: write a history of records and replay it.
#ifndef KRAFT_TEST_METADATA_HISTORY_H
#define KRAFT_TEST_METADATA_HISTORY_H

#include <stdio.h>

#include "core/base/arena.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/metadata/record_list.h"
#include "core/metadata/snapshot.h"

struct history {
    struct arena arena;       // takes the records
    struct image *img;        // image after all records so far; owned
    log_offset offset;        // of the next record
    uint64_t seed;            // of random histories
    struct errmsg msg;        // of the last refusal
    struct metadata_record r; // record that is being filled
};

static inline void history_init(struct history *h, uint64_t seed)
{
    *h = (struct history){.img = image_empty(), .seed = seed};
    arena_init(&h->arena);
}

static inline void history_fini(struct history *h)
{
    image_unref(h->img);
    arena_fini(&h->arena);
}

static inline uint64_t history_random(struct history *h, uint64_t below)
{
    h->seed = h->seed * 6364136223846793005ull + 1442695040888963407ull;
    return below ? (h->seed >> 33) % below : 0;
}

// A record of the type at the newest version, to be filled and replayed by history_apply.
static inline union metadata_record_body *history_record(struct history *h, enum metadata_record_type type,
                                                         int16_t version)
{
    metadata_record_init(&h->r, type, version);
    return &h->r.body;
}

// Replays the record that was filled last; the image moves on where it is accepted.
static inline int history_apply(struct history *h)
{
    struct image_builder *b = image_builder_create(h->img);
    int err = image_replay(b, &h->r, h->offset, 1, &h->msg);
    struct image *next = image_builder_finish(b);
    image_unref(h->img);
    h->img = next;
    if (err == 0)
        h->offset++;
    return err;
}

static inline struct uuid uuid_number(uint64_t n)
{
    struct uuid id = UUID_ZERO;
    for (int i = 0; i < 8; i++)
        id.b[15 - i] = (uint8_t)(n >> (8 * i));
    id.b[0] = 7;
    return id;
}

static inline struct slice history_text(struct history *h, const char *prefix, uint64_t n)
{
    return slice_str(arena_printf(&h->arena, "%s%llu", prefix, (unsigned long long)n));
}

static inline int history_feature(struct history *h, const char *name, int16_t level)
{
    struct kp_feature_level_record *r = &history_record(h, METADATA_FEATURE_LEVEL, 0)->feature_level;
    r->name = slice_str(name);
    r->feature_level = level;
    return history_apply(h);
}

static inline int history_broker(struct history *h, broker_id id, bool fenced)
{
    struct kp_register_broker_record *r = &history_record(h, METADATA_REGISTER_BROKER, 4)->register_broker;
    r->broker_id = id;
    r->broker_epoch = h->offset;
    r->incarnation_id = uuid_number(1000 + (uint64_t)id);
    r->fenced = fenced;
    r->rack = history_text(h, "rack", (uint64_t)id % 3);
    r->log_dirs = arena_alloc(&h->arena, sizeof(struct uuid));
    r->log_dirs[0] = uuid_number(2000 + (uint64_t)id);
    r->log_dirs_count = 1;
    r->end_points = arena_zalloc(&h->arena, sizeof *r->end_points);
    r->end_points[0].name = SLICE_LIT("PLAINTEXT");
    r->end_points[0].host = SLICE_LIT("127.0.0.1");
    r->end_points[0].port = (uint16_t)(9092 + id);
    r->end_points_count = 1;
    return history_apply(h);
}

static inline int history_topic(struct history *h, const char *name, uint64_t id)
{
    struct kp_topic_record *r = &history_record(h, METADATA_TOPIC, 0)->topic;
    r->name = slice_str(name);
    r->topic_id = uuid_number(id);
    return history_apply(h);
}

// A partition led by its first replica, all of them in sync.
static inline int history_partition(struct history *h, uint64_t topic, partition_id index,
                                    const int32_t *replicas, int32_t count)
{
    struct kp_partition_record *r = &history_record(h, METADATA_PARTITION, 2)->partition;
    r->topic_id = uuid_number(topic);
    r->partition_id = index;
    r->replicas = arena_dup(&h->arena, replicas, (size_t)count * sizeof *replicas);
    r->replicas_count = count;
    r->isr = r->replicas;
    r->isr_count = count;
    r->leader = replicas[0];
    r->leader_epoch = 0;
    r->partition_epoch = 0;
    r->directories = arena_alloc(&h->arena, (size_t)count * sizeof *r->directories);
    r->directories_count = count;
    for (int32_t i = 0; i < count; i++)
        r->directories[i] = uuid_number(2000 + (uint64_t)replicas[i]);
    return history_apply(h);
}

static inline struct kp_partition_change_record *history_change(struct history *h, uint64_t topic,
                                                                partition_id index)
{
    struct kp_partition_change_record *r = &history_record(h, METADATA_PARTITION_CHANGE, 2)->partition_change;
    r->topic_id = uuid_number(topic);
    r->partition_id = index;
    return r;
}

static inline int history_config(struct history *h, int8_t type, const char *name, const char *key,
                                 const char *value)
{
    struct kp_config_record *r = &history_record(h, METADATA_CONFIG, 0)->config;
    r->resource_type = type;
    r->resource_name = slice_str(name);
    r->name = slice_str(key);
    r->value = slice_str(value);
    return history_apply(h);
}

// One record of a random history: mostly sensible, sometimes not.
static inline int history_step(struct history *h)
{
    static const char *const keys[] = {"retention.ms", "cleanup.policy", "segment.bytes"};
    broker_id broker = (broker_id)history_random(h, 6);
    uint64_t topic = 1 + history_random(h, 20);
    partition_id index = (partition_id)history_random(h, 130);
    int32_t replicas[3] = {broker, (broker + 1) % 6, (broker + 3) % 6};
    int32_t some = 1 + (int32_t)history_random(h, 3);
    switch (history_random(h, 16)) {
    case 0:
        return history_broker(h, broker, history_random(h, 2));
    case 1: {
        struct kp_broker_registration_change_record *r =
            &history_record(h, METADATA_BROKER_REGISTRATION_CHANGE, 3)->broker_registration_change;
        const struct image_broker *b = image_broker(h->img, broker);
        r->broker_id = broker;
        r->broker_epoch = b ? b->epoch : 5;
        r->fenced = (int8_t)(history_random(h, 3) - 1);
        return history_apply(h);
    }
    case 2:
        return history_topic(h, (const char *)history_text(h, "topic", topic).data, topic);
    case 3:
        if (history_random(h, 4))
            return 0;
        history_record(h, METADATA_REMOVE_TOPIC, 0)->remove_topic.topic_id = uuid_number(topic);
        return history_apply(h);
    case 4:
    case 5:
    case 6:
    case 7:
        return history_partition(h, topic, index, replicas, some);
    case 8:
    case 9:
    case 10: {
        struct kp_partition_change_record *r = history_change(h, topic, index);
        r->leader = (int32_t)history_random(h, 8) - 2;
        r->isr = arena_dup(&h->arena, replicas, sizeof replicas);
        r->isr_count = some - 1;
        if (history_random(h, 4) == 0) {
            r->replicas = arena_dup(&h->arena, replicas, sizeof replicas);
            r->replicas_count = 3;
            r->adding_replicas = r->replicas;
            r->adding_replicas_count = some - 1;
        }
        if (history_random(h, 4) == 0) {
            r->eligible_leader_replicas = arena_dup(&h->arena, replicas, sizeof replicas);
            r->eligible_leader_replicas_count = some - 1;
        }
        return history_apply(h);
    }
    case 11:
        return history_config(h, CONFIG_RESOURCE_TOPIC, (const char *)history_text(h, "topic", topic).data,
                              keys[history_random(h, 3)], history_random(h, 3) ? "17" : NULL);
    case 12: {
        struct kp_client_quota_record *r = &history_record(h, METADATA_CLIENT_QUOTA, 0)->client_quota;
        r->entity = arena_zalloc(&h->arena, 2 * sizeof *r->entity);
        r->entity[0].entity_type = SLICE_LIT("user");
        r->entity[0].entity_name = history_random(h, 3) ? history_text(h, "u", topic) : SLICE_NULL;
        r->entity[1].entity_type = SLICE_LIT("client-id");
        r->entity[1].entity_name = SLICE_LIT("c");
        r->entity_count = 1 + (int32_t)history_random(h, 2);
        r->key = slice_str(history_random(h, 2) ? "producer_byte_rate" : "consumer_byte_rate");
        r->value = (double)topic;
        r->remove = history_random(h, 3) == 0;
        return history_apply(h);
    }
    case 13: {
        struct kp_user_scram_credential_record *r =
            &history_record(h, METADATA_USER_SCRAM_CREDENTIAL, 0)->user_scram_credential;
        r->name = history_text(h, "u", topic);
        r->mechanism = (int8_t)(1 + history_random(h, 2));
        r->salt = r->stored_key = r->server_key = SLICE_LIT("abc");
        r->iterations = 4096;
        return history_apply(h);
    }
    case 14: {
        struct kp_access_control_entry_record *r =
            &history_record(h, METADATA_ACCESS_CONTROL_ENTRY, 0)->access_control_entry;
        r->id = uuid_number(topic);
        r->resource_name = r->principal = r->host = history_text(h, "x", topic);
        if (history_random(h, 3) == 0) {
            history_record(h, METADATA_REMOVE_ACCESS_CONTROL_ENTRY, 0)->remove_access_control_entry.id =
                uuid_number(topic);
        }
        return history_apply(h);
    }
    default: {
        struct kp_producer_ids_record *r = &history_record(h, METADATA_PRODUCER_IDS, 0)->producer_ids;
        r->next_producer_id = image_next_producer_id(h->img);
        if (r->next_producer_id < INT64_MAX / 2)
            r->next_producer_id += (int64_t)history_random(h, 3) * 1000;
        return history_apply(h);
    }
    }
}

// The image that replaying the snapshot of `img` on an empty one gives.
static inline struct image *history_through_snapshot(const struct image *img, struct errmsg *msg)
{
    struct image *empty = image_empty();
    struct image_builder *b = image_builder_create(empty);
    image_unref(empty);
    struct image_snapshot *s = image_snapshot_create(img);
    struct arena arena;
    arena_init(&arena);
    struct metadata_record r;
    int err = 0;
    while (err == 0 && image_snapshot_next(s, &arena, &r))
        err = image_replay(b, &r, image_offset(img), image_epoch(img), msg);
    arena_fini(&arena);
    image_snapshot_free(s);
    struct image *copy = image_builder_finish(b);
    if (err == 0)
        return copy;
    image_unref(copy);
    return NULL;
}

#endif
