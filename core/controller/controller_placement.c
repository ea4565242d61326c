// SPDX-License-Identifier: Apache-2.0
// Placement of new partitions: striped over racks, then over the brokers of a rack.
//
// Racks and the brokers in each are put into a random order once a request. Partition by partition the first
// rack moves on by one and gives the leader; the other replicas come from the following racks, round and
// round; within a rack the broker that begins moves on by one for each partition too. Unfenced brokers come
// before fenced ones, and the leader is always an unfenced one. For partitions added to a topic the order
// begins with the racks and brokers that lead the fewest of its partitions.
#include "core/controller/controller_priv.h"

struct ring {
    broker_id *ids; // brokers, in order
    int32_t count;  // of them
    int32_t lead;   // leads next
    int32_t offset; // the followers begin here
    int32_t index;  // given in this partition
    int32_t epoch;  // partition that `index` is of
};
struct rack {
    struct slice name;            // null: brokers without a rack
    struct ring unfenced, fenced; // its brokers
    int64_t leads;                // partitions of the topic that it leads
};
struct racks {
    struct rack *items; // in order
    int32_t count;      // of them
    int32_t offset;     // the next partition begins here
    int32_t epoch;      // partition that is being placed
    int32_t brokers;    // in all
    int32_t unfenced;   // of which may lead
};

static broker_id ring_lead(struct ring *r)
{
    if (r->count == 0)
        return -1;
    broker_id id = r->ids[r->lead];
    r->lead = (r->lead + 1) % r->count;
    if (r->lead == 0)
        r->offset = (r->offset + 1) % r->count;
    return id;
}

// The next follower of this partition, or -1.
static broker_id ring_next(struct ring *r, int32_t epoch, broker_id leader)
{
    if (r->count == 0)
        return -1;
    if (r->epoch != epoch) {
        r->epoch = epoch;
        r->index = 0;
        r->offset = (r->offset + 1) % r->count;
    }
    while (r->index < r->count) {
        broker_id id = r->ids[(r->offset + r->index++) % r->count];
        if (id != leader)
            return id;
    }
    return -1;
}

static broker_id rack_next(struct rack *r, int32_t epoch, broker_id leader)
{
    broker_id id = ring_next(&r->unfenced, epoch, leader);
    return id >= 0 ? id : ring_next(&r->fenced, epoch, leader);
}

static void shuffle(struct controller *c, void *items, int32_t count, size_t size)
{
    uint8_t *bytes = items, swap[sizeof(struct rack)];
    for (int32_t i = count - 1; i > 0; i--) {
        size_t k = (size_t)controller__random(c, (uint64_t)i + 1);
        memcpy(swap, bytes + (size_t)i * size, size);
        memmove(bytes + (size_t)i * size, bytes + k * size, size);
        memcpy(bytes + k * size, swap, size);
    }
}

// Whether every directory of the broker is closed to new replicas.
static bool cordoned(const struct image_broker *b)
{
    for (int32_t i = 0; i < b->log_dirs_count; i++) {
        bool closed = false;
        for (int32_t k = 0; k < b->cordoned_dirs_count && !closed; k++)
            closed = uuid_equal(b->log_dirs[i], b->cordoned_dirs[k]);
        if (!closed)
            return false;
    }
    return b->log_dirs_count > 0;
}

static struct rack *rack_named(struct racks *racks, struct slice name)
{
    for (int32_t i = 0; i < racks->count; i++)
        if (slice_equal(racks->items[i].name, name))
            return &racks->items[i];
    racks->items[racks->count] = (struct rack){.name = name, .unfenced.epoch = -1, .fenced.epoch = -1};
    return &racks->items[racks->count++];
}

static void collect(struct controller *c, struct racks *racks)
{
    size_t all = (size_t)image_broker_count(c->image);
    *racks = (struct racks){.items = arena_zalloc(c->arena, all * sizeof *racks->items + 1), .epoch = -1};
    for (const struct image_broker *b = NULL; (b = image_broker_next(c->image, b)) != NULL;) {
        if (cordoned(b))
            continue;
        struct rack *rack = rack_named(racks, b->rack);
        struct ring *ring = image_broker_active(b) ? &rack->unfenced : &rack->fenced;
        if (!ring->ids)
            ring->ids = arena_alloc(c->arena, all * sizeof *ring->ids);
        ring->ids[ring->count++] = b->id;
        racks->brokers++;
        racks->unfenced += ring == &rack->unfenced;
    }
}

// How many partitions of the topic each broker would lead by preference: broker id -> number.
static void count_leads(const struct image_topic *t, struct hmap *leads)
{
    hmap_init(leads, HMAP_U64);
    for (partition_id i = 0; i < topic_partition_count(t); i++) {
        const struct image_partition *p = topic_partition(t, i);
        if (!p)
            continue;
        uint64_t key = (uint64_t)partition_preferred(p);
        (void)hmap_put_u64(leads, key, (void *)((uintptr_t)hmap_get_u64(leads, key) + 1));
    }
}

// Sorts by fewest led partitions; those with equal numbers stay in their random order.
static void order_ring(const struct hmap *leads, struct ring *r, int64_t *led)
{
    for (int32_t i = 0; i < r->count; i++) {
        int64_t mine = (int64_t)(uintptr_t)hmap_get_u64(leads, (uint64_t)r->ids[i]);
        broker_id id = r->ids[i];
        int32_t k = i;
        for (; k > 0 && led[k - 1] > mine; k--) {
            led[k] = led[k - 1];
            r->ids[k] = r->ids[k - 1];
        }
        led[k] = mine;
        r->ids[k] = id;
    }
    r->lead = 0;
}

static void continue_striping(struct controller *c, struct racks *racks, const struct image_topic *t)
{
    int64_t *led = arena_zalloc(c->arena, (size_t)racks->brokers * sizeof *led + 1);
    struct hmap counts;
    count_leads(t, &counts);
    for (int32_t i = 0; i < racks->count; i++) {
        struct rack *r = &racks->items[i];
        order_ring(&counts, &r->fenced, led);
        for (int32_t k = 0; k < r->fenced.count; k++)
            r->leads += led[k];
        order_ring(&counts, &r->unfenced, led);
        for (int32_t k = 0; k < r->unfenced.count; k++)
            r->leads += led[k];
    }
    hmap_fini(&counts);
    for (int32_t i = 1; i < racks->count; i++)
        for (int32_t k = i; k > 0 && racks->items[k - 1].leads > racks->items[k].leads; k--) {
            struct rack swap = racks->items[k];
            racks->items[k] = racks->items[k - 1];
            racks->items[k - 1] = swap;
        }
    racks->offset = 0;
}

static void randomise(struct controller *c, struct racks *racks)
{
    shuffle(c, racks->items, racks->count, sizeof *racks->items);
    racks->offset = (int32_t)controller__random(c, (uint64_t)racks->count);
    for (int32_t i = 0; i < racks->count; i++) {
        struct ring *rings[] = {&racks->items[i].unfenced, &racks->items[i].fenced};
        for (int k = 0; k < 2; k++) {
            shuffle(c, rings[k]->ids, rings[k]->count, sizeof *rings[k]->ids);
            if (rings[k]->count > 0)
                rings[k]->offset = (int32_t)controller__random(c, (uint64_t)rings[k]->count);
        }
    }
}

// One partition. There are at least `factor` brokers, one of them unfenced, so both walks end.
static void place_one(struct racks *racks, int32_t factor, broker_id *out)
{
    racks->epoch++;
    int32_t at = racks->offset, placed = 0;
    racks->offset = (racks->offset + 1) % racks->count;
    while (placed == 0) {
        broker_id leader = ring_lead(&racks->items[at].unfenced);
        if (leader >= 0)
            out[placed++] = leader;
        at = (at + 1) % racks->count;
    }
    while (placed < factor) {
        broker_id id = rack_next(&racks->items[at], racks->epoch, out[0]);
        if (id >= 0)
            out[placed++] = id;
        at = (at + 1) % racks->count;
    }
}

struct refusal controller__check_factor(struct controller *c, int32_t factor)
{
    if (c->opts->replication_factor_max > 0 && factor > c->opts->replication_factor_max)
        return controller__refuse(
            c, KE_INVALID_REPLICATION_FACTOR,
            "Replication factor %d is not possible yet: this release does not replicate between "
            "brokers. Use a replication factor of %d.",
            factor, c->opts->replication_factor_max);
    return NO_REFUSAL;
}

struct refusal controller__place(struct controller *c, const struct image_topic *topic, int32_t count,
                                 int32_t factor, struct placement *out)
{
    struct refusal no = controller__check_factor(c, factor);
    if (no.code != KE_NONE)
        return no;
    struct racks racks;
    collect(c, &racks);
    if (factor < 1 || factor > racks.brokers)
        return controller__refuse(c, KE_INVALID_REPLICATION_FACTOR,
                                  "Replication factor %d cannot be reached: %d broker(s) are registered.",
                                  factor, racks.brokers);
    if (racks.unfenced == 0)
        return controller__refuse(c, KE_INVALID_REPLICATION_FACTOR,
                                  "All registered brokers are fenced: none could lead the partitions.");
    randomise(c, &racks);
    if (topic)
        continue_striping(c, &racks, topic);
    out->brokers = arena_alloc(c->arena, (size_t)count * (size_t)factor * sizeof *out->brokers);
    out->count = count;
    out->factor = factor;
    for (int32_t i = 0; i < count; i++)
        place_one(&racks, factor, out->brokers + (size_t)i * (size_t)factor);
    return NO_REFUSAL;
}

struct uuid controller__default_dir(const struct image *img, broker_id id)
{
    const struct image_broker *b = image_broker(img, id);
    if (!b || b->log_dirs_count == 0)
        return UUID_DIR_MIGRATING;
    const struct uuid *only = NULL;
    for (int32_t i = 0; i < b->log_dirs_count; i++) {
        bool closed = false;
        for (int32_t k = 0; k < b->cordoned_dirs_count && !closed; k++)
            closed = uuid_equal(b->log_dirs[i], b->cordoned_dirs[k]);
        if (closed)
            continue;
        if (only)
            return UUID_DIR_UNASSIGNED;
        only = &b->log_dirs[i];
    }
    return only ? *only : UUID_DIR_UNASSIGNED;
}

bool controller__add_partition(struct controller *c, struct record_list *records, struct uuid topic,
                               partition_id index, const broker_id *replicas, int32_t count)
{
    broker_id *isr = arena_alloc(c->arena, (size_t)count * sizeof *isr);
    int32_t isr_count = 0;
    for (int32_t i = 0; i < count; i++)
        if (image_broker_active(image_broker(c->image, replicas[i])))
            isr[isr_count++] = replicas[i];
    if (isr_count == 0)
        return false;
    int16_t version = controller__mv(c)->partition;
    struct kp_partition_record *r = &record_list_add(records, METADATA_PARTITION, version)->body.partition;
    r->partition_id = index;
    r->topic_id = topic;
    r->replicas = (int32_t *)(uintptr_t)replicas;
    r->replicas_count = count;
    r->isr = isr;
    r->isr_count = isr_count;
    r->leader = isr[0];
    r->leader_epoch = 0;
    r->partition_epoch = 0;
    if (version < 1)
        return true;
    r->directories = arena_alloc(c->arena, (size_t)count * sizeof *r->directories);
    r->directories_count = count;
    for (int32_t i = 0; i < count; i++)
        r->directories[i] = controller__default_dir(c->image, replicas[i]);
    return true;
}

struct refusal controller__check_assignment(struct controller *c, const broker_id *ids, int32_t count,
                                            int32_t factor)
{
    if (count <= 0)
        return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                  "The assignment holds a partition without replicas.");
    if (count > IMAGE_REPLICAS_MAX)
        return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                  "A partition can have at most %d replicas.", IMAGE_REPLICAS_MAX);
    for (int32_t i = 0; i < count; i++) {
        if (!image_broker(c->image, ids[i]))
            return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                      "The assignment names broker %d, which is not registered.", ids[i]);
        for (int32_t k = 0; k < i; k++)
            if (ids[i] == ids[k])
                return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                          "The assignment names broker %d twice for one partition.", ids[i]);
    }
    if (factor >= 0 && count != factor)
        return controller__refuse(c, KE_INVALID_REPLICA_ASSIGNMENT,
                                  "The assignment gives one partition %d replica(s) and others %d.", count,
                                  factor);
    return controller__check_factor(c, count);
}
