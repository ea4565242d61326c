// SPDX-License-Identifier: Apache-2.0
// The walk over an image in canonical order, one record a step, and the hash over it.
//
// Order: feature levels (metadata.version first, the others by name), controllers by id, brokers by id,
// topics by topic id (each followed by its partitions), configs by (type, name, key), quotas by entity and
// key, the next producer id, ACLs by id, SCRAM credentials by (mechanism, user), delegation tokens by id.
#include "core/metadata/snapshot.h"

#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/metadata/image_priv.h"
#include "core/metadata/metadata_version.h"

enum phase {
    PHASE_VERSION,
    PHASE_FEATURES,
    PHASE_CONTROLLERS,
    PHASE_BROKERS,
    PHASE_TOPICS,
    PHASE_CONFIGS,
    PHASE_QUOTAS,
    PHASE_PRODUCER_IDS,
    PHASE_ACLS,
    PHASE_SCRAM,
    PHASE_TOKENS,
    PHASE_END
};

struct image_snapshot {
    const struct image *img;             // owned: one reference
    const struct metadata_version *mv;   // versions to write at
    enum phase phase;                    // what is being written
    const void **list;                   // objects of the phase in order; NULL where the phase needs none
    size_t list_count, list_cap;         // objects, room
    size_t at;                           // next object
    int64_t inner;                       // next part of that object (partition, entry, value), from 0
    const struct image_broker *broker;   // last broker written
    const struct image_controller *node; // last controller written
};

struct image_snapshot *image_snapshot_create(const struct image *img)
{
    struct image_snapshot *s = mem_zalloc(sizeof *s);
    s->img = image_ref(image_visible(img));
    s->mv = metadata_version_writing(s->img->metadata_version);
    return s;
}

const struct image *image_snapshot_image(const struct image_snapshot *s)
{
    return s->img;
}

void image_snapshot_free(struct image_snapshot *s)
{
    if (!s)
        return;
    image_unref(s->img);
    mem_free(s->list);
    mem_free(s);
}

// ---- lists in order
// ------------------------------------------------------------------------------------------
static void list_add(struct image_snapshot *s, const void *object)
{
    if (s->list_count == s->list_cap) {
        s->list_cap = s->list_cap ? s->list_cap * 2 : 64;
        s->list = mem_realloc(s->list, s->list_cap * sizeof *s->list);
    }
    s->list[s->list_count++] = object;
}

static void list_fill(struct image_snapshot *s, const struct pmap *map,
                      int (*compare)(const void *, const void *))
{
    struct pmap_iter it;
    pmap_iter_init(&it, map);
    for (const void *o; (o = pmap_iter_next(&it)) != NULL;)
        list_add(s, o);
    if (s->list_count > 1)
        qsort(s->list, s->list_count, sizeof *s->list, compare);
}

static int compare_bytes(struct slice a, struct slice b)
{
    return slice_compare(a, b);
}

static int by_topic_id(const void *a, const void *b)
{
    const struct topic_info *x = *(const struct topic_info *const *)a,
                            *y = *(const struct topic_info *const *)b;
    return memcmp(x->id.b, y->id.b, sizeof x->id.b);
}

static int by_config(const void *a, const void *b)
{
    const struct image_config *x = *(const struct image_config *const *)a,
                              *y = *(const struct image_config *const *)b;
    return x->type != y->type ? x->type - y->type : compare_bytes(x->name, y->name);
}

static int by_entity(const void *a, const void *b)
{
    const struct image_quota *x = *(const struct image_quota *const *)a,
                             *y = *(const struct image_quota *const *)b;
    for (int32_t i = 0; i < x->parts_count && i < y->parts_count; i++) {
        int order = compare_bytes(x->parts[i].type, y->parts[i].type);
        if (order == 0)
            order = slice_is_null(y->parts[i].name) - slice_is_null(x->parts[i].name);
        if (order == 0)
            order = compare_bytes(x->parts[i].name, y->parts[i].name);
        if (order != 0)
            return order;
    }
    return x->parts_count - y->parts_count;
}

static int by_acl_id(const void *a, const void *b)
{
    const struct image_acl *x = *(const struct image_acl *const *)a, *y = *(const struct image_acl *const *)b;
    return memcmp(x->id.b, y->id.b, sizeof x->id.b);
}

static int by_credential(const void *a, const void *b)
{
    const struct image_scram *x = *(const struct image_scram *const *)a,
                             *y = *(const struct image_scram *const *)b;
    return x->mechanism != y->mechanism ? x->mechanism - y->mechanism : compare_bytes(x->user, y->user);
}

static int by_token_id(const void *a, const void *b)
{
    const struct image_token *x = *(const struct image_token *const *)a,
                             *y = *(const struct image_token *const *)b;
    return compare_bytes(x->id, y->id);
}

static void phase_begin(struct image_snapshot *s)
{
    s->list_count = 0;
    s->at = 0;
    s->inner = 0;
    if (s->phase == PHASE_TOPICS)
        list_fill(s, &s->img->topic_ids, by_topic_id);
    else if (s->phase == PHASE_CONFIGS)
        list_fill(s, &s->img->configs, by_config);
    else if (s->phase == PHASE_QUOTAS)
        list_fill(s, &s->img->quotas, by_entity);
    else if (s->phase == PHASE_ACLS)
        list_fill(s, &s->img->acls, by_acl_id);
    else if (s->phase == PHASE_SCRAM && s->mv->level >= METADATA_VERSION_SCRAM)
        list_fill(s, &s->img->scram, by_credential);
    else if (s->phase == PHASE_TOKENS && s->mv->level >= METADATA_VERSION_TOKENS)
        list_fill(s, &s->img->tokens, by_token_id);
}

// ---- one record of each kind
// ---------------------------------------------------------------------------------
static bool next_version(struct image_snapshot *s, struct metadata_record *out)
{
    if (s->at++ > 0 || s->img->metadata_version == 0)
        return false;
    metadata_record_init(out, METADATA_FEATURE_LEVEL, 0);
    out->body.feature_level.name = SLICE_LIT(FEATURE_METADATA_VERSION);
    out->body.feature_level.feature_level = s->img->metadata_version;
    return true;
}

static bool next_feature(struct image_snapshot *s, struct metadata_record *out)
{
    int32_t count;
    const struct image_feature *items = image_features(s->img, &count);
    while (s->at < (size_t)count) {
        const struct image_feature *f = &items[s->at++];
        if (slice_equal_str(f->name, FEATURE_METADATA_VERSION))
            continue;
        metadata_record_init(out, METADATA_FEATURE_LEVEL, 0);
        out->body.feature_level.name = f->name;
        out->body.feature_level.feature_level = f->level;
        return true;
    }
    return false;
}

static bool next_controller(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    if (s->mv->level < METADATA_VERSION_CONTROLLERS)
        return false;
    const struct image_controller *c = s->node = image_controller_next(s->img, s->node);
    if (!c)
        return false;
    metadata_record_init(out, METADATA_REGISTER_CONTROLLER, 0);
    struct kp_register_controller_record *r = &out->body.register_controller;
    r->controller_id = c->id;
    r->incarnation_id = c->incarnation;
    r->zk_migration_ready = c->zk_migration_ready;
    r->end_points = arena_zalloc(arena, (size_t)c->endpoints_count * sizeof *r->end_points);
    r->end_points_count = c->endpoints_count;
    for (int32_t i = 0; i < c->endpoints_count; i++) {
        r->end_points[i].name = c->endpoints[i].name;
        r->end_points[i].host = c->endpoints[i].host;
        r->end_points[i].port = c->endpoints[i].port;
        r->end_points[i].security_protocol = c->endpoints[i].security_protocol;
    }
    r->features = arena_zalloc(arena, (size_t)c->features_count * sizeof *r->features);
    r->features_count = c->features_count;
    for (int32_t i = 0; i < c->features_count; i++) {
        r->features[i].name = c->features[i].name;
        r->features[i].min_supported_version = c->features[i].min;
        r->features[i].max_supported_version = c->features[i].max;
    }
    return true;
}

static bool next_broker(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    const struct image_broker *b = s->broker = image_broker_next(s->img, s->broker);
    if (!b)
        return false;
    metadata_record_init(out, METADATA_REGISTER_BROKER, s->mv->register_broker);
    struct kp_register_broker_record *r = &out->body.register_broker;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    r->incarnation_id = b->incarnation;
    r->rack = b->rack;
    r->fenced = b->fenced;
    r->in_controlled_shutdown = b->in_controlled_shutdown;
    r->is_migrating_zk_broker = b->migrating;
    r->end_points = arena_zalloc(arena, (size_t)b->endpoints_count * sizeof *r->end_points);
    r->end_points_count = b->endpoints_count;
    for (int32_t i = 0; i < b->endpoints_count; i++) {
        r->end_points[i].name = b->endpoints[i].name;
        r->end_points[i].host = b->endpoints[i].host;
        r->end_points[i].port = b->endpoints[i].port;
        r->end_points[i].security_protocol = b->endpoints[i].security_protocol;
    }
    r->features = arena_zalloc(arena, (size_t)b->features_count * sizeof *r->features);
    r->features_count = b->features_count;
    for (int32_t i = 0; i < b->features_count; i++) {
        r->features[i].name = b->features[i].name;
        r->features[i].min_supported_version = b->features[i].min;
        r->features[i].max_supported_version = b->features[i].max;
    }
    r->log_dirs = (struct uuid *)(uintptr_t)b->log_dirs;
    r->log_dirs_count = b->log_dirs_count;
    r->cordoned_log_dirs = (struct uuid *)(uintptr_t)b->cordoned_dirs;
    r->cordoned_log_dirs_count = b->cordoned_dirs_count;
    return true;
}

static int32_t *ids_of(const broker_id *ids)
{
    return (int32_t *)(uintptr_t)ids;
}

static void partition_record(struct image_snapshot *s, const struct image_topic *t, partition_id index,
                             const struct image_partition *p, struct arena *arena,
                             struct metadata_record *out)
{
    metadata_record_init(out, METADATA_PARTITION, s->mv->partition);
    struct kp_partition_record *r = &out->body.partition;
    r->partition_id = index;
    r->topic_id = t->info->id;
    r->replicas = ids_of(partition_replicas(p));
    r->replicas_count = p->replicas_count;
    r->isr = ids_of(partition_isr(p));
    r->isr_count = p->isr_count;
    r->removing_replicas = ids_of(partition_removing(p));
    r->removing_replicas_count = p->removing_count;
    r->adding_replicas = ids_of(partition_adding(p));
    r->adding_replicas_count = p->adding_count;
    r->leader = p->leader;
    r->leader_epoch = p->epoch;
    r->partition_epoch = p->partition_epoch;
    r->leader_recovery_state = p->recovery;
    if (s->mv->partition >= 1) {
        r->directories = arena_alloc(arena, p->replicas_count * sizeof *r->directories);
        r->directories_count = p->replicas_count;
        for (uint32_t i = 0; i < p->replicas_count; i++)
            r->directories[i] = partition_directory(p, i);
    }
    if (s->mv->partition >= 2 && p->elr_count > 0) {
        r->eligible_leader_replicas = ids_of(partition_elr(p));
        r->eligible_leader_replicas_count = p->elr_count;
    }
    if (s->mv->partition >= 2 && p->last_elr_count > 0) {
        r->last_known_elr = ids_of(partition_last_elr(p));
        r->last_known_elr_count = p->last_elr_count;
    }
}

static bool next_topic(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    while (s->at < s->list_count) {
        const struct topic_info *info = s->list[s->at];
        const struct image_topic *t = imap_get(&s->img->topics, info->ordinal);
        if (s->inner == 0) {
            metadata_record_init(out, METADATA_TOPIC, 0);
            out->body.topic.name = info->name;
            out->body.topic.topic_id = info->id;
            s->inner = 1;
            return true;
        }
        uint64_t index;
        const struct image_partition *p = imap_next(&t->partitions, (uint64_t)(s->inner - 1), &index);
        if (p) {
            partition_record(s, t, (partition_id)index, p, arena, out);
            s->inner = (int64_t)index + 2;
            return true;
        }
        s->at++;
        s->inner = 0;
    }
    return false;
}

static bool next_config(struct image_snapshot *s, struct metadata_record *out)
{
    while (s->at < s->list_count) {
        const struct image_config *c = s->list[s->at];
        if (s->inner < c->entries_count) {
            const struct image_config_entry *e = &c->entries[s->inner++];
            metadata_record_init(out, METADATA_CONFIG, 0);
            out->body.config.resource_type = c->type;
            out->body.config.resource_name = c->name;
            out->body.config.name = e->key;
            out->body.config.value = e->value;
            return true;
        }
        s->at++;
        s->inner = 0;
    }
    return false;
}

static bool next_quota(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    while (s->at < s->list_count) {
        const struct image_quota *q = s->list[s->at];
        if (s->inner < q->values_count) {
            const struct image_quota_value *v = &q->values[s->inner++];
            metadata_record_init(out, METADATA_CLIENT_QUOTA, 0);
            struct kp_client_quota_record *r = &out->body.client_quota;
            r->entity = arena_zalloc(arena, (size_t)q->parts_count * sizeof *r->entity);
            r->entity_count = q->parts_count;
            for (int32_t i = 0; i < q->parts_count; i++) {
                r->entity[i].entity_type = q->parts[i].type;
                r->entity[i].entity_name = q->parts[i].name;
            }
            r->key = v->key;
            r->value = v->value;
            return true;
        }
        s->at++;
        s->inner = 0;
    }
    return false;
}

static bool next_producer_ids(struct image_snapshot *s, struct metadata_record *out)
{
    if (s->at++ > 0 || s->img->next_producer_id == 0)
        return false;
    metadata_record_init(out, METADATA_PRODUCER_IDS, 0);
    out->body.producer_ids.broker_id = -1;
    out->body.producer_ids.broker_epoch = -1;
    out->body.producer_ids.next_producer_id = s->img->next_producer_id;
    return true;
}

static bool next_acl(struct image_snapshot *s, struct metadata_record *out)
{
    if (s->at >= s->list_count)
        return false;
    const struct image_acl *a = s->list[s->at++];
    metadata_record_init(out, METADATA_ACCESS_CONTROL_ENTRY, 0);
    struct kp_access_control_entry_record *r = &out->body.access_control_entry;
    r->id = a->id;
    r->resource_type = a->resource_type;
    r->resource_name = a->resource;
    r->pattern_type = a->pattern_type;
    r->principal = a->principal;
    r->host = a->host;
    r->operation = a->operation;
    r->permission_type = a->permission;
    return true;
}

static bool next_credential(struct image_snapshot *s, struct metadata_record *out)
{
    if (s->at >= s->list_count)
        return false;
    const struct image_scram *c = s->list[s->at++];
    metadata_record_init(out, METADATA_USER_SCRAM_CREDENTIAL, 0);
    struct kp_user_scram_credential_record *r = &out->body.user_scram_credential;
    r->name = c->user;
    r->mechanism = c->mechanism;
    r->salt = c->salt;
    r->stored_key = c->stored_key;
    r->server_key = c->server_key;
    r->iterations = c->iterations;
    return true;
}

static bool next_token(struct image_snapshot *s, struct metadata_record *out)
{
    if (s->at >= s->list_count)
        return false;
    const struct image_token *t = s->list[s->at++];
    metadata_record_init(out, METADATA_DELEGATION_TOKEN, 0);
    struct kp_delegation_token_record *r = &out->body.delegation_token;
    r->owner = t->owner;
    r->requester = t->requester;
    r->renewers = (struct slice *)(uintptr_t)t->renewers;
    r->renewers_count = t->renewers_count;
    r->issue_timestamp = t->issued;
    r->max_timestamp = t->max;
    r->expiration_timestamp = t->expires;
    r->token_id = t->id;
    return true;
}

static bool next_of_phase(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    switch (s->phase) {
    case PHASE_VERSION:
        return next_version(s, out);
    case PHASE_FEATURES:
        return next_feature(s, out);
    case PHASE_CONTROLLERS:
        return next_controller(s, arena, out);
    case PHASE_BROKERS:
        return next_broker(s, arena, out);
    case PHASE_TOPICS:
        return next_topic(s, arena, out);
    case PHASE_CONFIGS:
        return next_config(s, out);
    case PHASE_QUOTAS:
        return next_quota(s, arena, out);
    case PHASE_PRODUCER_IDS:
        return next_producer_ids(s, out);
    case PHASE_ACLS:
        return next_acl(s, out);
    case PHASE_SCRAM:
        return next_credential(s, out);
    case PHASE_TOKENS:
        return next_token(s, out);
    case PHASE_END:
        break;
    }
    return false;
}

bool image_snapshot_next(struct image_snapshot *s, struct arena *arena, struct metadata_record *out)
{
    while (s->phase != PHASE_END) {
        if (next_of_phase(s, arena, out))
            return true;
        s->phase++;
        phase_begin(s);
    }
    return false;
}

struct image_hash image_hash_of(const struct image *img)
{
    struct image_hash hash = {0x6b72616674, 0x696d616765}; // two different seeds
    struct image_snapshot *s = image_snapshot_create(img);
    struct arena arena;
    arena_init(&arena);
    struct metadata_record r;
    while (image_snapshot_next(s, &arena, &r)) {
        size_t size = metadata_record_size(&r);
        uint8_t *bytes = arena_alloc(&arena, size);
        if (metadata_record_encode_into(&r, bytes) != 0)
            size = 0;
        hash.low = hash_bytes_seeded(bytes, size, hash.low);
        hash.high = hash_bytes_seeded(bytes, size, hash.high);
        arena_reset(&arena);
    }
    arena_fini(&arena);
    image_snapshot_free(s);
    return hash;
}
