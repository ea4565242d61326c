// SPDX-License-Identifier: Apache-2.0
// Verbs for the tests of the decider: a cluster of brokers that beat, and operations whose records are
// replayed.
#ifndef KRAFT_TEST_CONTROLLER_CLUSTER_H
#define KRAFT_TEST_CONTROLLER_CLUSTER_H

#include <stdio.h>

#include "core/base/base64.h"
#include "core/controller/controller.h"
#include "core/metadata/metadata_version.h"
#include "core/metadata/replay.h"
#include "core/metadata/snapshot.h"
#include "core/protocol/gen/alter_partition_request.h"
#include "core/protocol/gen/alter_partition_response.h"
#include "core/protocol/gen/broker_heartbeat_request.h"
#include "core/protocol/gen/broker_heartbeat_response.h"
#include "core/protocol/gen/broker_registration_request.h"
#include "core/protocol/gen/broker_registration_response.h"
#include "core/protocol/gen/create_topics_request.h"
#include "core/protocol/gen/create_topics_response.h"
#include "core/protocol/gen/errors.h"
#include "tests/unit/core/metadata/history.h"

struct cluster {
    struct controller c;                 // context of the next operation
    struct controller_opts opts;         // its options
    struct controller_sessions sessions; // heartbeats
    struct arena arena;                  // everything the test makes
    struct record_list records;          // records of the last operation
    uint64_t seed;                       // of the random bits
    struct image *img;                   // owned
};

static inline uint64_t cluster_random(void *data)
{
    struct cluster *k = data;
    k->seed += 0x9e3779b97f4a7c15ull;
    uint64_t x = k->seed;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static inline struct controller *cluster_op(struct cluster *k)
{
    record_list_init(&k->records, &k->arena);
    k->c.image = k->img;
    k->c.next_offset = image_offset(k->img) + 1;
    return &k->c;
}

// Replays what the last operation asked for; every record of ours must be accepted, and survive its encoding.
static inline void cluster_commit(struct cluster *k)
{
    struct image_builder *b = image_builder_create(k->img);
    for (uint32_t i = 0; i < k->records.count; i++) {
        struct errmsg msg;
        size_t size = metadata_record_size(&k->records.items[i]);
        uint8_t *bytes = arena_alloc(&k->arena, size + 1);
        struct metadata_record r;
        assert_int_equal(metadata_record_encode_into(&k->records.items[i], bytes), 0);
        assert_int_equal(metadata_record_decode(&r, slice_of(bytes, size), &k->arena, &msg), 0);
        if (image_replay(b, &r, image_offset(image_builder_peek(b)) + 1, 1, &msg) != 0)
            fail_msg("%s", msg.text);
    }
    struct image *next = image_builder_finish(b);
    image_unref(k->img);
    k->img = next;
}

static inline void cluster_init(struct cluster *k)
{
    *k = (struct cluster){.seed = 42, .img = image_empty()};
    arena_init(&k->arena);
    controller_sessions_init(&k->sessions, 0);
    k->opts = (struct controller_opts){.id = 1,
                                       .cluster_id = SLICE_LIT("cluster"),
                                       .listener = SLICE_LIT("CONTROLLER"),
                                       .num_partitions = 1,
                                       .replication_factor = 1,
                                       .min_insync_replicas = 1,
                                       .delete_topics = true,
                                       .session_timeout_ms = 9000,
                                       .imbalance_limit = 0.1};
    k->c = (struct controller){.opts = &k->opts,
                               .sessions = &k->sessions,
                               .kraft_version = 1,
                               .random = {cluster_random, k},
                               .arena = &k->arena};
    controller_activate(cluster_op(k), NULL, 0, &k->records);
    cluster_commit(k);
}

static inline void cluster_fini(struct cluster *k)
{
    image_unref(k->img);
    controller_sessions_fini(&k->sessions);
    arena_fini(&k->arena);
}

static inline struct kp_broker_registration_request *
cluster_registration(struct cluster *k, broker_id id, uint64_t incarnation, const char *rack)
{
    struct kp_broker_registration_request *in = arena_alloc(&k->arena, sizeof *in);
    kp_broker_registration_request_init(in);
    in->broker_id = id;
    in->cluster_id = k->opts.cluster_id;
    in->incarnation_id = uuid_number(incarnation);
    in->rack = slice_str(rack);
    in->listeners = arena_zalloc(&k->arena, sizeof *in->listeners);
    in->listeners_count = 1;
    in->listeners[0].name = SLICE_LIT("PLAINTEXT");
    in->listeners[0].host = slice_str(arena_printf(&k->arena, "host%d", id));
    in->listeners[0].port = 9092;
    int32_t count;
    const struct feature_range *ranges = feature_ranges(&count);
    in->features = arena_zalloc(&k->arena, (size_t)count * sizeof *in->features);
    in->features_count = count;
    for (int32_t i = 0; i < count; i++) {
        in->features[i].name = slice_str(ranges[i].name);
        in->features[i].min_supported_version = ranges[i].min;
        in->features[i].max_supported_version = ranges[i].max;
    }
    in->log_dirs = arena_alloc(&k->arena, sizeof *in->log_dirs);
    in->log_dirs[0] = uuid_number(5000 + (uint64_t)id);
    in->log_dirs_count = 1;
    return in;
}

static inline enum kafka_error cluster_register(struct cluster *k,
                                                const struct kp_broker_registration_request *in)
{
    struct kp_broker_registration_response out;
    controller_register_broker(cluster_op(k), in, 4, &out, &k->records);
    cluster_commit(k);
    if (out.error_code == KE_NONE)
        assert_int_equal(out.broker_epoch, image_broker(k->img, in->broker_id)->epoch);
    return (enum kafka_error)out.error_code;
}

static inline struct kp_broker_heartbeat_response cluster_beat(struct cluster *k, broker_id id,
                                                               bool want_fence, bool want_stop)
{
    struct kp_broker_heartbeat_request in;
    struct kp_broker_heartbeat_response out;
    kp_broker_heartbeat_request_init(&in);
    in.broker_id = id;
    in.broker_epoch = image_broker(k->img, id)->epoch;
    in.current_metadata_offset = image_offset(k->img);
    in.want_fence = want_fence;
    in.want_shut_down = want_stop;
    controller_broker_heartbeat(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
    return out;
}

// Brokers first to last, registered, unfenced, in three racks r0, r1, r2.
static inline void cluster_brokers(struct cluster *k, broker_id first, broker_id last)
{
    for (broker_id id = first; id <= last; id++) {
        const char *rack = arena_printf(&k->arena, "r%d", id % 3);
        assert_int_equal(cluster_register(k, cluster_registration(k, id, 100 + (uint64_t)id, rack)), KE_NONE);
        struct kp_broker_heartbeat_response out = cluster_beat(k, id, false, false);
        assert_false(out.is_fenced);
    }
}

static inline struct kp_create_topics_request *cluster_topic(struct cluster *k, const char *name,
                                                             int32_t partitions, int16_t factor)
{
    struct kp_create_topics_request *in = arena_alloc(&k->arena, sizeof *in);
    kp_create_topics_request_init(in);
    in->topics = arena_alloc(&k->arena, sizeof *in->topics);
    kp_create_topics_request_creatable_topic_init(in->topics);
    in->topics_count = 1;
    in->topics[0].name = slice_str(name);
    in->topics[0].num_partitions = partitions;
    in->topics[0].replication_factor = factor;
    return in;
}

static inline struct kp_create_topics_response_creatable_topic_result
cluster_create_with(struct cluster *k, const struct kp_create_topics_request *in)
{
    struct kp_create_topics_response out;
    controller_create_topics(cluster_op(k), in, true, &out, &k->records);
    cluster_commit(k);
    assert_true(out.topics_count > 0);
    return out.topics[0];
}

static inline enum kafka_error cluster_create(struct cluster *k, const char *name, int32_t partitions,
                                              int16_t factor)
{
    return (enum kafka_error)cluster_create_with(k, cluster_topic(k, name, partitions, factor)).error_code;
}

// A topic of one partition on exactly these brokers.
static inline void cluster_create_on(struct cluster *k, const char *name, const int32_t *brokers,
                                     int32_t count)
{
    struct kp_create_topics_request *in = cluster_topic(k, name, -1, -1);
    in->topics[0].assignments = arena_zalloc(&k->arena, sizeof *in->topics[0].assignments);
    in->topics[0].assignments_count = 1;
    in->topics[0].assignments[0].broker_ids = arena_dup(&k->arena, brokers, (size_t)count * sizeof *brokers);
    in->topics[0].assignments[0].broker_ids_count = count;
    assert_int_equal(cluster_create_with(k, in).error_code, KE_NONE);
}

static inline const struct image_partition *cluster_part(const struct cluster *k, const char *topic,
                                                         partition_id index)
{
    const struct image_topic *t = image_topic_named(k->img, slice_str(topic));
    return t ? topic_partition(t, index) : NULL;
}

static inline void cluster_gone(struct cluster *k, broker_id id)
{
    controller_fence_gone_broker(cluster_op(k), id, image_broker(k->img, id)->epoch, &k->records);
    cluster_commit(k);
}

// The leader of topic-0 proposes an ISR, with the brokers' true epochs.
static inline struct kp_alter_partition_request *cluster_proposal(struct cluster *k, const char *topic,
                                                                  const int32_t *isr, int32_t count)
{
    const struct image_partition *p = cluster_part(k, topic, 0);
    struct kp_alter_partition_request *in = arena_alloc(&k->arena, sizeof *in);
    kp_alter_partition_request_init(in);
    in->broker_id = p->leader;
    in->broker_epoch = image_broker(k->img, p->leader)->epoch;
    in->topics = arena_zalloc(&k->arena, sizeof *in->topics);
    in->topics_count = 1;
    in->topics[0].topic_id = topic_id(image_topic_named(k->img, slice_str(topic)));
    in->topics[0].partitions = arena_zalloc(&k->arena, sizeof *in->topics[0].partitions);
    in->topics[0].partitions_count = 1;
    struct kp_alter_partition_request_partition_data *data = in->topics[0].partitions;
    data->leader_epoch = p->epoch;
    data->partition_epoch = p->partition_epoch;
    data->new_isr_with_epochs = arena_zalloc(&k->arena, (size_t)count * sizeof *data->new_isr_with_epochs);
    data->new_isr_with_epochs_count = count;
    for (int32_t i = 0; i < count; i++) {
        const struct image_broker *b = image_broker(k->img, isr[i]);
        data->new_isr_with_epochs[i].broker_id = isr[i];
        data->new_isr_with_epochs[i].broker_epoch = b ? b->epoch : 0;
    }
    return in;
}

static inline struct kp_alter_partition_response_partition_data
cluster_alter(struct cluster *k, const struct kp_alter_partition_request *in)
{
    struct kp_alter_partition_response out;
    controller_alter_partition(cluster_op(k), in, 3, &out, &k->records);
    cluster_commit(k);
    assert_int_equal(out.error_code, KE_NONE);
    return out.topics[0].partitions[0];
}

static inline void cluster_feature(struct cluster *k, const char *name, int16_t level)
{
    (void)cluster_op(k);
    struct metadata_record *r = record_list_add(&k->records, METADATA_FEATURE_LEVEL, 0);
    r->body.feature_level.name = slice_str(name);
    r->body.feature_level.feature_level = level;
    cluster_commit(k);
}

static inline void cluster_set_config(struct cluster *k, int8_t type, const char *name, const char *key,
                                      const char *value)
{
    (void)cluster_op(k);
    struct kp_config_record *r = &record_list_add(&k->records, METADATA_CONFIG, 0)->body.config;
    r->resource_type = type;
    r->resource_name = slice_str(name);
    r->name = slice_str(key);
    r->value = slice_str(value);
    cluster_commit(k);
}

#endif
