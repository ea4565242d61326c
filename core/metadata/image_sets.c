// SPDX-License-Identifier: Apache-2.0
// The sets of partitions that deciders go through: by broker and role, and those under reassignment.
//
// A set is a map from set_key to a word of 64 bits. The key has the number of the block of 64 partitions
// above the topic's ordinal, so that the first (often the only) blocks of all topics lie densely beside each
// other.
#include "core/metadata/image_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"

#define ORDINAL_BITS 40
#define ORDINAL_MASK ((1ull << ORDINAL_BITS) - 1)
#define BLOCK_BITS 6

static uint64_t set_key(uint64_t ordinal, partition_id index)
{
    return ((uint64_t)(uint32_t)index >> BLOCK_BITS) << ORDINAL_BITS | ordinal;
}

static uint64_t set_bit(partition_id index)
{
    return 1ull << (index & 63);
}

static uint64_t broker_key(broker_id id)
{
    return (uint32_t)id;
}

void sets__unref(void *object)
{
    if (!image__unref(object))
        return;
    struct broker_sets *s = object;
    for (int i = 0; i < IMAGE_SET_COUNT; i++)
        imap_drop(&s->set[i]);
    mem_free(s);
}

// The sets of a broker, to be changed: made where there are none, copied where they are shared.
static struct broker_sets *sets_writable(struct image *img, broker_id id)
{
    struct broker_sets *s = imap_own(&img->sets, broker_key(id));
    if (s)
        return s;
    s = imap_get(&img->sets, broker_key(id));
    if (s) {
        struct broker_sets *copy =
            mem_alloc(sizeof *copy); // field by field: others count references meanwhile
        *copy = (struct broker_sets){.preferred = s->preferred};
        atomic_init(&copy->refs, 1);
        for (int i = 0; i < IMAGE_SET_COUNT; i++) {
            copy->set[i] = imap_copy(&s->set[i]);
            copy->count[i] = s->count[i];
        }
        s = copy;
    } else {
        s = mem_zalloc(sizeof *s);
        atomic_init(&s->refs, 1);
    }
    imap_put(&img->sets, broker_key(id), s);
    return s;
}

// What a broker is to a partition: one bit for each set.
static unsigned roles_of(const struct image_partition *p, broker_id id)
{
    unsigned roles = 0;
    if (!p)
        return 0;
    if (partition_in_isr(p, id))
        roles |= 1u << IMAGE_SET_ISR;
    if (p->leader == id)
        roles |= 1u << IMAGE_SET_LEADER;
    if (partition_has_replica(p, id))
        roles |= 1u << IMAGE_SET_REPLICA;
    if (partition_preferred(p) == id && p->leader != id)
        roles |= 1u << IMAGE_SET_NOT_PREFERRED;
    const broker_id *elr = partition_elr(p);
    for (uint32_t i = 0; i < (uint32_t)p->elr_count + p->last_elr_count; i++)
        if (elr[i] == id)
            roles |= 1u << IMAGE_SET_ELR;
    return roles;
}

struct change {
    struct image *img;                            // being built
    const struct image_partition *before, *after; // of the partition; NULL: none
    uint64_t key, bit;                            // where it is in a set
};

static void flip(struct imap *set, int64_t *count, uint64_t key, uint64_t bit, bool on)
{
    uint64_t word = imap_get_word(set, key);
    if (((word & bit) != 0) == on)
        return;
    imap_put_word(set, key, word ^ bit);
    *count += on ? 1 : -1;
}

// Brings the broker's bits up to date; doing it again changes nothing.
static void update_broker(const struct change *c, broker_id id)
{
    unsigned before = roles_of(c->before, id), after = roles_of(c->after, id);
    if (before == after)
        return;
    struct broker_sets *s = sets_writable(c->img, id);
    for (int i = 0; i < IMAGE_SET_COUNT; i++)
        if ((before ^ after) & (1u << i))
            flip(&s->set[i], &s->count[i], c->key, c->bit, (after >> i) & 1);
}

static void update_brokers(const struct change *c, const struct image_partition *p)
{
    if (!p)
        return;
    update_broker(c, p->leader);
    uint32_t count = (uint32_t)p->replicas_count + p->isr_count + p->removing_count + p->adding_count +
                     p->elr_count + p->last_elr_count;
    for (uint32_t i = 0; i < count; i++)
        update_broker(c, p->ids[i]);
}

void sets__update(struct image *img, uint64_t ordinal, partition_id index,
                  const struct image_partition *before, const struct image_partition *after)
{
    struct change c = {img, before, after, set_key(ordinal, index), set_bit(index)};
    update_brokers(&c, before);
    update_brokers(&c, after);
    broker_id was = before ? partition_preferred(before) : LEADER_NONE;
    broker_id is = after ? partition_preferred(after) : LEADER_NONE;
    if (was != is && before)
        sets_writable(img, was)->preferred--;
    if (was != is && after)
        sets_writable(img, is)->preferred++;
    flip(&img->reassigning, &img->reassigning_count, c.key, c.bit, after && partition_reassigning(after));
}

static bool walk(const struct image *img, const struct imap *set, struct image_walk *w)
{
    if (w->rest == 0) {
        w->rest = imap_next_word(set, w->next_key, &w->next_key);
        if (w->rest == 0)
            return false;
        w->topic = imap_get(&img->topics, w->next_key & ORDINAL_MASK);
        MUST(w->topic);
        w->base = (partition_id)(w->next_key >> ORDINAL_BITS << BLOCK_BITS);
        w->next_key++;
    }
    w->index = w->base + __builtin_ctzll(w->rest);
    w->rest &= w->rest - 1;
    w->partition = topic_partition(w->topic, w->index);
    MUST(w->partition);
    return true;
}

bool image_walk_next(const struct image *img, enum image_set set, broker_id broker, struct image_walk *w)
{
    const struct broker_sets *s = imap_get(&img->sets, broker_key(broker));
    return s && walk(img, &s->set[set], w);
}

bool image_walk_reassigning(const struct image *img, struct image_walk *w)
{
    return walk(img, &img->reassigning, w);
}

int64_t image_set_count(const struct image *img, enum image_set set, broker_id broker)
{
    const struct broker_sets *s = imap_get(&img->sets, broker_key(broker));
    return s ? s->count[set] : 0;
}

int64_t image_preferred_count(const struct image *img, broker_id broker)
{
    const struct broker_sets *s = imap_get(&img->sets, broker_key(broker));
    return s ? s->preferred : 0;
}

int64_t image_reassigning_count(const struct image *img)
{
    return img->reassigning_count;
}
