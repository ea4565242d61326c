// SPDX-License-Identifier: Apache-2.0
// The mutable hash map: linear probing with marks for removed slots.
#include "core/base/hmap.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/mem.h"

#define CAP_FIRST 8
#define HASH_FREE 0    // `hash` of a slot that never held an entry
#define HASH_REMOVED 1 // `hash` of a slot whose entry was removed
#define HASH_MIN 2     // real hashes are at least this

void hmap_init(struct hmap *m, enum hmap_kind kind)
{
    *m = (struct hmap){.kind = kind};
}

void hmap_fini(struct hmap *m)
{
    mem_free(m->slots);
    enum hmap_kind kind = m->kind;
    *m = (struct hmap){.kind = kind};
}

void hmap_clear(struct hmap *m)
{
    if (m->slots)
        memset(m->slots, 0, m->cap * sizeof *m->slots);
    m->count = m->used = 0;
}

static uint64_t real_hash(uint64_t h)
{
    return h < HASH_MIN ? h + HASH_MIN : h;
}

static bool same_key(const struct hmap *m, const struct hmap_slot *s, const struct hmap_slot *want)
{
    switch (m->kind) {
    case HMAP_U64:
        return s->key.u64 == want->key.u64;
    case HMAP_SLICE:
        return slice_equal(s->key.slice, want->key.slice);
    case HMAP_UUID:
        return uuid_equal(s->key.uuid, want->key.uuid);
    }
    UNREACHABLE("all kinds are above");
}

static struct hmap_slot *find(const struct hmap *m, const struct hmap_slot *want)
{
    if (!m->count)
        return NULL;
    size_t mask = m->cap - 1;
    for (size_t i = want->hash & mask;; i = (i + 1) & mask) {
        struct hmap_slot *s = &m->slots[i];
        if (s->hash == HASH_FREE)
            return NULL;
        if (s->hash == want->hash && same_key(m, s, want))
            return s;
    }
}

static void insert(struct hmap *m, const struct hmap_slot *entry)
{
    size_t mask = m->cap - 1;
    for (size_t i = entry->hash & mask;; i = (i + 1) & mask) {
        struct hmap_slot *s = &m->slots[i];
        if (s->hash >= HASH_MIN)
            continue;
        m->used += s->hash == HASH_FREE;
        m->count++;
        *s = *entry;
        return;
    }
}

// Room for one more: at most three quarters of the slots are used, removed ones included.
static void grow(struct hmap *m)
{
    if ((m->used + 1) * 4 <= m->cap * 3)
        return;
    size_t cap = m->cap ? m->cap : CAP_FIRST;
    while ((m->count + 1) * 2 > cap)
        cap *= 2;
    struct hmap_slot *old = m->slots;
    size_t old_cap = m->cap;
    m->slots = mem_calloc(cap, sizeof *m->slots);
    m->cap = cap;
    m->count = m->used = 0;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].hash >= HASH_MIN)
            insert(m, &old[i]);
    mem_free(old);
}

static void *put(struct hmap *m, const struct hmap_slot *entry)
{
    MUST(entry->value != NULL);
    struct hmap_slot *s = find(m, entry);
    if (s) {
        void *old = s->value;
        *s = *entry;
        return old;
    }
    grow(m);
    insert(m, entry);
    return NULL;
}

static void *take(struct hmap *m, const struct hmap_slot *want)
{
    struct hmap_slot *s = find(m, want);
    if (!s)
        return NULL;
    void *old = s->value;
    s->value = NULL;
    s->hash = HASH_REMOVED;
    m->count--;
    // Before a free slot nothing is probed further: removed marks there can go.
    size_t mask = m->cap - 1, i = (size_t)(s - m->slots);
    if (m->slots[(i + 1) & mask].hash == HASH_FREE)
        for (; m->slots[i].hash == HASH_REMOVED; i = (i - 1) & mask) {
            m->slots[i].hash = HASH_FREE;
            m->used--;
        }
    return old;
}

static void *value_of(const struct hmap_slot *s)
{
    return s ? s->value : NULL;
}

static struct hmap_slot slot_u64(const struct hmap *m, uint64_t key, void *value)
{
    MUST(m->kind == HMAP_U64);
    return (struct hmap_slot){.hash = real_hash(hash_u64(key)), .key.u64 = key, .value = value};
}

static struct hmap_slot slot_slice(const struct hmap *m, struct slice key, void *value)
{
    MUST(m->kind == HMAP_SLICE);
    return (struct hmap_slot){
        .hash = real_hash(hash_bytes_seeded(key.data, key.len, m->seed)), .key.slice = key, .value = value};
}

static struct hmap_slot slot_uuid(const struct hmap *m, struct uuid key, void *value)
{
    MUST(m->kind == HMAP_UUID);
    return (struct hmap_slot){
        .hash = real_hash(hash_bytes_seeded(key.b, sizeof key.b, m->seed)), .key.uuid = key, .value = value};
}

void *hmap_get_u64(const struct hmap *m, uint64_t key)
{
    struct hmap_slot s = slot_u64(m, key, NULL);
    return value_of(find(m, &s));
}

void *hmap_put_u64(struct hmap *m, uint64_t key, void *value)
{
    struct hmap_slot s = slot_u64(m, key, value);
    return put(m, &s);
}

void *hmap_remove_u64(struct hmap *m, uint64_t key)
{
    struct hmap_slot s = slot_u64(m, key, NULL);
    return take(m, &s);
}

void *hmap_get(const struct hmap *m, struct slice key)
{
    struct hmap_slot s = slot_slice(m, key, NULL);
    return value_of(find(m, &s));
}

void *hmap_put(struct hmap *m, struct slice key, void *value)
{
    struct hmap_slot s = slot_slice(m, key, value);
    return put(m, &s);
}

void *hmap_remove(struct hmap *m, struct slice key)
{
    struct hmap_slot s = slot_slice(m, key, NULL);
    return take(m, &s);
}

void *hmap_get_uuid(const struct hmap *m, struct uuid key)
{
    struct hmap_slot s = slot_uuid(m, key, NULL);
    return value_of(find(m, &s));
}

void *hmap_put_uuid(struct hmap *m, struct uuid key, void *value)
{
    struct hmap_slot s = slot_uuid(m, key, value);
    return put(m, &s);
}

void *hmap_remove_uuid(struct hmap *m, struct uuid key)
{
    struct hmap_slot s = slot_uuid(m, key, NULL);
    return take(m, &s);
}

const struct hmap_slot *hmap_next(const struct hmap *m, size_t *at)
{
    while (*at < m->cap) {
        const struct hmap_slot *s = &m->slots[(*at)++];
        if (s->hash >= HASH_MIN)
            return s;
    }
    return NULL;
}
