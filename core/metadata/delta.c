// SPDX-License-Identifier: Apache-2.0
// The difference of two images, by walking only what they do not share.
#include "core/metadata/delta.h"

#include "core/metadata/image_priv.h"

// A list in an arena that grows by doubling.
static void *grow(struct arena *arena, void *items, int64_t count, size_t size)
{
    bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!full)
        return items;
    void *bigger = arena_alloc(arena, (size_t)(count ? count * 2 : 8) * size);
    if (count)
        memcpy(bigger, items, (size_t)count * size);
    return bigger;
}

struct walk {
    struct arena *arena;             // takes the lists
    struct image_delta *out;         // being filled
    const struct image_topic *topic; // of the partitions that are being compared
    bool deletions;                  // this pass takes deleted topics, the next one the rest
};

static void broker_changed(void *data, uint64_t key, void *before, void *after)
{
    struct walk *w = data;
    struct image_delta *d = w->out;
    d->brokers = grow(w->arena, d->brokers, d->brokers_count, sizeof *d->brokers);
    d->brokers[d->brokers_count++] = (struct delta_broker){(broker_id)key, before, after};
}

static void controller_changed(void *data, uint64_t key, void *before, void *after)
{
    struct walk *w = data;
    struct image_delta *d = w->out;
    d->controllers = grow(w->arena, d->controllers, d->controllers_count, sizeof *d->controllers);
    d->controllers[d->controllers_count++] = (struct delta_controller){(node_id)key, before, after};
}

// Whether the contents are equal: after a snapshot was loaded, equal partitions are two objects.
static bool same_partition(const struct image_partition *a, const struct image_partition *b)
{
    if (!a || !b)
        return false;
    size_t lists = (size_t)a->replicas_count + a->isr_count + a->removing_count + a->adding_count +
                   a->elr_count + a->last_elr_count;
    size_t dirs = a->dirs == PARTITION_DIRS_STORED ? a->replicas_count * sizeof(struct uuid) : 0;
    size_t head = offsetof(struct image_partition, dirs) + 1,
           start = offsetof(struct image_partition, leader);
    return memcmp(&a->leader, &b->leader, head - start) == 0 &&
           memcmp(a->ids, b->ids, lists * sizeof(broker_id) + dirs) == 0;
}

static bool same_config(const struct image_config *a, const struct image_config *b)
{
    if (!a || !b || a->entries_count != b->entries_count)
        return false;
    for (int32_t i = 0; i < a->entries_count; i++)
        if (!slice_equal(a->entries[i].key, b->entries[i].key) ||
            !slice_equal(a->entries[i].value, b->entries[i].value))
            return false;
    return true;
}

static void partition_changed(void *data, uint64_t key, void *before, void *after)
{
    struct walk *w = data;
    struct image_delta *d = w->out;
    if (same_partition(before, after))
        return;
    d->partitions = grow(w->arena, d->partitions, d->partitions_count, sizeof *d->partitions);
    d->partitions[d->partitions_count++] =
        (struct delta_partition){w->topic, (partition_id)key, before, after};
}

static void topic_pair(struct walk *w, const struct image_topic *before, const struct image_topic *after)
{
    static const struct imap none = {NULL, NULL};
    struct image_delta *d = w->out;
    if (!before || !after) {
        d->topics = grow(w->arena, d->topics, d->topics_count, sizeof *d->topics);
        d->topics[d->topics_count++] = (struct delta_topic){before, after};
    }
    w->topic = after ? after : before;
    imap_diff(before ? &before->partitions : &none, after ? &after->partitions : &none, partition_changed, w);
}

// Ordinals mean the same topic only within one line of descent, so a pair is told apart by id.
static void topic_changed(void *data, uint64_t key, void *old_value, void *new_value)
{
    struct walk *w = data;
    const struct image_topic *before = old_value, *after = new_value;
    (void)key;
    // What stands at the same id in the other image, wherever that is.
    const struct image_topic *later = before ? image_topic(w->out->to, before->info->id) : NULL;
    const struct image_topic *earlier = after ? image_topic(w->out->from, after->info->id) : NULL;
    if (w->deletions && before && !later)
        topic_pair(w, before, NULL);
    if (!w->deletions && after && earlier != after)
        topic_pair(w, earlier, after);
}

static int config_changed(void *data, void *before, void *after)
{
    struct walk *w = data;
    struct image_delta *d = w->out;
    const struct image_config *c = after ? after : before;
    if (same_config(before, after))
        return 0;
    d->configs = grow(w->arena, d->configs, d->configs_count, sizeof *d->configs);
    d->configs[d->configs_count++] = (struct delta_config){c->type, c->name, before, after};
    return 0;
}

static int any_changed(void *data, void *before, void *after)
{
    return 1;
}

static bool maps_differ(const struct pmap *before, const struct pmap *after)
{
    return pmap_diff(before, after, any_changed, NULL) != 0;
}

static bool features_differ(const struct image *from, const struct image *to)
{
    int32_t from_count, to_count;
    const struct image_feature *a = image_features(from, &from_count), *b = image_features(to, &to_count);
    if (a == b)
        return false;
    if (from_count != to_count)
        return true;
    for (int32_t i = 0; i < from_count; i++)
        if (!slice_equal(a[i].name, b[i].name) || a[i].level != b[i].level)
            return true;
    return false;
}

void image_diff(const struct image *from, const struct image *to, struct arena *arena,
                struct image_delta *out)
{
    *out = (struct image_delta){.from = from, .to = to};
    struct walk w = {.arena = arena, .out = out};
    imap_diff(&from->brokers, &to->brokers, broker_changed, &w);
    imap_diff(&from->controllers, &to->controllers, controller_changed, &w);
    w.deletions = true;
    imap_diff(&from->topics, &to->topics, topic_changed, &w);
    w.deletions = false;
    imap_diff(&from->topics, &to->topics, topic_changed, &w);
    (void)pmap_diff(&from->configs, &to->configs, config_changed, &w);
    out->features_changed = features_differ(from, to);
    out->producer_ids_changed = from->next_producer_id != to->next_producer_id;
    out->acls_changed = maps_differ(&from->acls, &to->acls);
    out->scram_changed = maps_differ(&from->scram, &to->scram);
    out->quotas_changed = maps_differ(&from->quotas, &to->quotas);
    out->tokens_changed = maps_differ(&from->tokens, &to->tokens);
}

enum delta_role delta_partition_role(const struct delta_partition *p, broker_id broker)
{
    if (p->after && partition_has_replica(p->after, broker))
        return p->after->leader == broker ? DELTA_ROLE_LEADER : DELTA_ROLE_FOLLOWER;
    if (p->before && partition_has_replica(p->before, broker))
        return DELTA_ROLE_REMOVED;
    return DELTA_ROLE_NONE;
}

bool delta_partition_new_epoch(const struct delta_partition *p)
{
    return p->after && (!p->before || p->after->epoch > p->before->epoch);
}
