// SPDX-License-Identifier: Apache-2.0
// The ordered persistent map: nodes, search, change by path copying, difference.
#include "core/metadata/imap.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

#define FAN_BITS 5u
#define FAN_MASK 31u
#define KEY_BITS 64u

// A node covers the keys whose bits above `shift + 5` equal `prefix`. Slots lie densely, in order of the bits
// of `bitmap`. At shift 0 they hold values, above they hold nodes; a node above shift 0 has at least two.
struct imap_node {
    atomic_uint refs; // maps and parents that share it
    uint8_t shift;    // first key bit that it branches on
    uint8_t cap;      // room, in slots
    uint16_t spare;   // 0
    uint32_t bitmap;  // which of the 32 children there are
    uint64_t prefix;  // key >> (shift + 5), or 0 where that leaves nothing
    uint64_t slots[]; // child nodes or values
};

static uint64_t prefix_of(uint64_t key, unsigned shift)
{
    return shift + FAN_BITS >= KEY_BITS ? 0 : key >> (shift + FAN_BITS);
}

static uint32_t bit_of(uint64_t key, unsigned shift)
{
    return 1u << ((key >> shift) & FAN_MASK);
}

static unsigned slot_of(const struct imap_node *n, uint32_t bit)
{
    return (unsigned)__builtin_popcount(n->bitmap & (bit - 1));
}

static unsigned slots_used(const struct imap_node *n)
{
    return (unsigned)__builtin_popcount(n->bitmap);
}

static struct imap_node *child_at(const struct imap_node *n, unsigned slot)
{
    return (struct imap_node *)(uintptr_t)n->slots[slot];
}

static unsigned cap_for(unsigned count)
{
    unsigned cap = 1;
    while (cap < count)
        cap = cap < 4 ? cap * 2 : cap + 4;
    return cap > 32 ? 32 : cap;
}

static struct imap_node *node_new(unsigned shift, uint64_t key, unsigned cap)
{
    struct imap_node *n = mem_alloc(sizeof *n + cap * sizeof n->slots[0]);
    atomic_init(&n->refs, 1);
    n->shift = (uint8_t)shift;
    n->cap = (uint8_t)cap;
    n->spare = 0;
    n->bitmap = 0;
    n->prefix = prefix_of(key, shift);
    return n;
}

static void node_unref(struct imap_node *n, void (*unref)(void *))
{
    if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    unsigned used = slots_used(n);
    for (unsigned i = 0; i < used; i++) {
        if (n->shift > 0)
            node_unref(child_at(n, i), unref);
        else if (unref)
            unref((void *)(uintptr_t)n->slots[i]);
    }
    mem_free(n);
}

// One more owner for everything in the slots of `n`.
static void slots_ref(struct imap_node *n, bool counted)
{
    if (n->shift == 0 && !counted)
        return;
    unsigned used = slots_used(n);
    for (unsigned i = 0; i < used; i++)
        atomic_fetch_add_explicit((atomic_uint *)(uintptr_t)n->slots[i], 1, memory_order_relaxed);
}

// Turns an owned reference into one of a node that nobody else sees and that has room for `count` slots.
static struct imap_node *node_writable(struct imap_node *n, unsigned count, void (*unref)(void *))
{
    bool exclusive = atomic_load_explicit(&n->refs, memory_order_acquire) == 1;
    if (exclusive && n->cap >= count)
        return n;
    unsigned used = slots_used(n);
    unsigned cap = cap_for(count > used ? count : used);
    if (exclusive) {
        n = mem_realloc(n, sizeof *n + cap * sizeof n->slots[0]);
        n->cap = (uint8_t)cap;
        return n;
    }
    struct imap_node *copy = mem_alloc(sizeof *n + cap * sizeof n->slots[0]);
    atomic_init(&copy->refs, 1);
    copy->shift = n->shift;
    copy->cap = (uint8_t)cap;
    copy->spare = 0;
    copy->bitmap = n->bitmap;
    copy->prefix = n->prefix;
    memcpy(copy->slots, n->slots, used * sizeof n->slots[0]);
    slots_ref(copy, unref != NULL);
    node_unref(n, unref);
    return copy;
}

void imap_init(struct imap *m, void (*unref)(void *value))
{
    m->unref = unref;
    m->root = NULL;
}

struct imap imap_copy(const struct imap *m)
{
    if (m->root)
        atomic_fetch_add_explicit(&m->root->refs, 1, memory_order_relaxed);
    return *m;
}

void imap_drop(struct imap *m)
{
    node_unref(m->root, m->unref);
    m->root = NULL;
}

// Slot of the key, or NULL.
static const uint64_t *find(const struct imap *m, uint64_t key)
{
    const struct imap_node *n = m->root;
    while (n) {
        uint32_t bit = bit_of(key, n->shift);
        if (prefix_of(key, n->shift) != n->prefix || !(n->bitmap & bit))
            return NULL;
        unsigned slot = slot_of(n, bit);
        if (n->shift == 0)
            return &n->slots[slot];
        n = child_at(n, slot);
    }
    return NULL;
}

void *imap_get(const struct imap *m, uint64_t key)
{
    const uint64_t *slot = find(m, key);
    return slot ? (void *)(uintptr_t)*slot : NULL;
}

uint64_t imap_get_word(const struct imap *m, uint64_t key)
{
    const uint64_t *slot = find(m, key);
    return slot ? *slot : 0;
}

static struct imap_node *leaf_new(uint64_t key, uint64_t value)
{
    struct imap_node *n = node_new(0, key, 1);
    n->bitmap = bit_of(key, 0);
    n->slots[0] = value;
    return n;
}

static struct imap_node *insert_slot(struct imap_node *n, uint32_t bit, uint64_t value, void (*unref)(void *))
{
    unsigned used = slots_used(n);
    n = node_writable(n, used + 1, unref);
    unsigned slot = slot_of(n, bit);
    memmove(&n->slots[slot + 1], &n->slots[slot], (used - slot) * sizeof n->slots[0]);
    n->slots[slot] = value;
    n->bitmap |= bit;
    return n;
}

// A node above both `n` and the key, which `n` does not cover.
static struct imap_node *node_above(struct imap_node *n, uint64_t key, uint64_t value)
{
    uint64_t low = n->shift + FAN_BITS >= KEY_BITS ? 0 : n->prefix << (n->shift + FAN_BITS);
    unsigned shift = n->shift;
    while (prefix_of(key, shift) != prefix_of(low, shift))
        shift += FAN_BITS;
    struct imap_node *above = node_new(shift, key, 2);
    uint32_t old_bit = bit_of(low, shift), new_bit = bit_of(key, shift);
    MUST(old_bit != new_bit);
    above->bitmap = old_bit | new_bit;
    above->slots[slot_of(above, old_bit)] = (uintptr_t)n;
    above->slots[slot_of(above, new_bit)] = (uintptr_t)leaf_new(key, value);
    return above;
}

static struct imap_node *node_put(struct imap_node *n, uint64_t key, uint64_t value, void (*unref)(void *))
{
    if (!n)
        return leaf_new(key, value);
    if (prefix_of(key, n->shift) != n->prefix)
        return node_above(n, key, value);
    uint32_t bit = bit_of(key, n->shift);
    if (!(n->bitmap & bit))
        return insert_slot(n, bit, n->shift == 0 ? value : (uintptr_t)leaf_new(key, value), unref);
    n = node_writable(n, 0, unref);
    unsigned slot = slot_of(n, bit);
    if (n->shift > 0) {
        n->slots[slot] = (uintptr_t)node_put(child_at(n, slot), key, value, unref);
        return n;
    }
    if (unref)
        unref((void *)(uintptr_t)n->slots[slot]);
    n->slots[slot] = value;
    return n;
}

void imap_put(struct imap *m, uint64_t key, void *value)
{
    MUST(m->unref && value);
    m->root = node_put(m->root, key, (uintptr_t)value, m->unref);
}

void imap_put_word(struct imap *m, uint64_t key, uint64_t word)
{
    MUST(!m->unref);
    if (word == 0)
        (void)imap_remove(m, key);
    else
        m->root = node_put(m->root, key, word, NULL);
}

void *imap_own(struct imap *m, uint64_t key)
{
    MUST(m->unref);
    struct imap_node *n = m->root;
    while (n && atomic_load_explicit(&n->refs, memory_order_acquire) == 1) {
        uint32_t bit = bit_of(key, n->shift);
        if (prefix_of(key, n->shift) != n->prefix || !(n->bitmap & bit))
            return NULL;
        uint64_t slot = n->slots[slot_of(n, bit)];
        if (n->shift > 0) {
            n = (struct imap_node *)(uintptr_t)slot;
            continue;
        }
        atomic_uint *refs = (atomic_uint *)(uintptr_t)slot;
        return atomic_load_explicit(refs, memory_order_acquire) == 1 ? refs : NULL;
    }
    return NULL;
}

// The key is there.
static struct imap_node *node_remove(struct imap_node *n, uint64_t key, void (*unref)(void *))
{
    uint32_t bit = bit_of(key, n->shift);
    n = node_writable(n, 0, unref);
    unsigned slot = slot_of(n, bit);
    if (n->shift > 0) {
        struct imap_node *child = node_remove(child_at(n, slot), key, unref);
        if (child) {
            n->slots[slot] = (uintptr_t)child;
            return n;
        }
    } else if (unref) {
        unref((void *)(uintptr_t)n->slots[slot]);
    }
    unsigned used = slots_used(n);
    memmove(&n->slots[slot], &n->slots[slot + 1], (used - slot - 1) * sizeof n->slots[0]);
    n->bitmap &= ~bit;
    struct imap_node *only = n->shift > 0 && used == 2 ? child_at(n, 0) : NULL;
    if (used > 1 && !only)
        return n;
    mem_free(n);
    return only;
}

bool imap_remove(struct imap *m, uint64_t key)
{
    if (!find(m, key))
        return false;
    m->root = node_remove(m->root, key, m->unref);
    return true;
}

static const uint64_t *node_next(const struct imap_node *n, uint64_t min, uint64_t *key)
{
    uint64_t prefix = prefix_of(min, n->shift);
    if (n->prefix < prefix)
        return NULL;
    if (n->prefix > prefix)
        min = n->prefix << (n->shift + FAN_BITS);
    uint32_t from = (uint32_t)((min >> n->shift) & FAN_MASK);
    uint32_t bits = n->bitmap & (uint32_t)(UINT32_MAX << from);
    while (bits) {
        uint32_t bit = bits & (~bits + 1);
        unsigned slot = slot_of(n, bit), index = (unsigned)__builtin_ctz(bit);
        if (n->shift == 0) {
            *key = (n->prefix << FAN_BITS) | index;
            return &n->slots[slot];
        }
        const uint64_t *found = node_next(child_at(n, slot), index == from ? min : 0, key);
        if (found)
            return found;
        bits &= bits - 1;
    }
    return NULL;
}

void *imap_next(const struct imap *m, uint64_t min, uint64_t *key)
{
    const uint64_t *slot = m->root ? node_next(m->root, min, key) : NULL;
    return slot ? (void *)(uintptr_t)*slot : NULL;
}

uint64_t imap_next_word(const struct imap *m, uint64_t min, uint64_t *key)
{
    const uint64_t *slot = m->root ? node_next(m->root, min, key) : NULL;
    return slot ? *slot : 0;
}

struct diff {
    void (*each)(void *data, uint64_t key, void *old_value, void *new_value); // the caller's
    void *data;                                                               // for `each`
};

// Reports all of `n` as removed (`old`) or added.
static void diff_all(const struct diff *d, const struct imap_node *n, bool old)
{
    unsigned slot = 0;
    for (uint32_t bits = n->bitmap; bits; bits &= bits - 1, slot++) {
        if (n->shift > 0) {
            diff_all(d, child_at(n, slot), old);
            continue;
        }
        uint64_t key = (n->prefix << FAN_BITS) | (unsigned)__builtin_ctz(bits);
        void *value = (void *)(uintptr_t)n->slots[slot];
        d->each(d->data, key, old ? value : NULL, old ? NULL : value);
    }
}

static void diff_nodes(const struct diff *d, const struct imap_node *a, const struct imap_node *b);

// `high` covers a range that may hold all of `low` (which has the smaller shift); `high_old`: `high` is the
// older one.
static void diff_uneven(const struct diff *d, const struct imap_node *high, const struct imap_node *low,
                        bool high_old)
{
    uint64_t key = low->prefix << (low->shift + FAN_BITS);
    bool inside = prefix_of(key, high->shift) == high->prefix;
    uint32_t low_bit = inside ? bit_of(key, high->shift) : 0;
    bool done = false;
    if (!inside && prefix_of(key, high->shift) < high->prefix) {
        diff_all(d, low, !high_old);
        done = true;
    }
    unsigned slot = 0;
    for (uint32_t bits = high->bitmap; bits; bits &= bits - 1, slot++) {
        uint32_t bit = bits & (~bits + 1);
        const struct imap_node *child = child_at(high, slot);
        if (inside && !done && bit > low_bit) {
            diff_all(d, low, !high_old);
            done = true;
        }
        if (bit != low_bit) {
            diff_all(d, child, high_old);
            continue;
        }
        diff_nodes(d, high_old ? child : low, high_old ? low : child);
        done = true;
    }
    if (!done)
        diff_all(d, low, !high_old);
}

static void diff_nodes(const struct diff *d, const struct imap_node *a, const struct imap_node *b)
{
    if (a == b)
        return;
    if (!a || !b) {
        diff_all(d, a ? a : b, a != NULL);
    } else if (a->shift > b->shift) {
        diff_uneven(d, a, b, true);
    } else if (b->shift > a->shift) {
        diff_uneven(d, b, a, false);
    } else if (a->prefix != b->prefix) {
        bool a_first = a->prefix < b->prefix;
        diff_all(d, a_first ? a : b, a_first);
        diff_all(d, a_first ? b : a, !a_first);
    } else {
        for (uint32_t bits = a->bitmap | b->bitmap; bits; bits &= bits - 1) {
            uint32_t bit = bits & (~bits + 1);
            uint64_t x = a->bitmap & bit ? a->slots[slot_of(a, bit)] : 0;
            uint64_t y = b->bitmap & bit ? b->slots[slot_of(b, bit)] : 0;
            if (x == y)
                continue;
            if (a->shift > 0) {
                diff_nodes(d, (const struct imap_node *)(uintptr_t)x, (const struct imap_node *)(uintptr_t)y);
                continue;
            }
            uint64_t key = (a->prefix << FAN_BITS) | (unsigned)__builtin_ctz(bits);
            d->each(d->data, key, (void *)(uintptr_t)x, (void *)(uintptr_t)y);
        }
    }
}

void imap_diff(const struct imap *before, const struct imap *after,
               void (*each)(void *data, uint64_t key, void *old_value, void *new_value), void *data)
{
    struct diff d = {each, data};
    diff_nodes(&d, before->root, after->root);
}
