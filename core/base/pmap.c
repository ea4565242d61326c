// SPDX-License-Identifier: Apache-2.0
// The persistent map: a compressed hash-array-mapped trie.
//
// A node takes five bits of the hash (the lowest first) and has a bit map of places that hold a value and one
// of places that hold a child; values stand first in `slots`, then children. The form is canonical: a child
// that holds one value alone is folded into its parent, so equal sets of keys give equal tries (and equal
// order) whatever their past. Below the last bits of the hash a node is a plain list of values (`values_map`
// is then their count).
//
// A node is changed in place where the count of it and of every node above it is one: then nobody else can
// reach it.
#include "core/base/pmap.h"

#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/base/uuid.h"

#define BITS 5
#define HASH_BITS 64

struct pmap_node {
    atomic_uint refs;      // owners: parents and variables
    uint32_t values_map;   // places with a value; in a list node: number of values
    uint32_t children_map; // places with a child; in a list node 0
    uint32_t spare;        // keeps `slots` aligned
    void *slots[];         // values, then children
};
_Static_assert(PMAP_DEPTH_MAX >= (HASH_BITS + BITS - 1) / BITS + 1,
               "every trie fits into the iterator's path");

uint64_t pmap_hash_i32(const void *key)
{
    return hash_u64((uint64_t)(int64_t) * (const int32_t *)key);
}

bool pmap_equal_i32(const void *a, const void *b)
{
    return *(const int32_t *)a == *(const int32_t *)b;
}

uint64_t pmap_hash_u64(const void *key)
{
    return hash_u64(*(const uint64_t *)key);
}

bool pmap_equal_u64(const void *a, const void *b)
{
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

uint64_t pmap_hash_slice(const void *key)
{
    const struct slice *s = key;
    return hash_bytes(s->data, s->len);
}

bool pmap_equal_slice(const void *a, const void *b)
{
    return slice_equal(*(const struct slice *)a, *(const struct slice *)b);
}

uint64_t pmap_hash_uuid(const void *key)
{
    return uuid_hash(*(const struct uuid *)key);
}

bool pmap_equal_uuid(const void *a, const void *b)
{
    return uuid_equal(*(const struct uuid *)a, *(const struct uuid *)b);
}

static bool is_list(unsigned shift)
{
    return shift >= HASH_BITS;
}

static unsigned values_count(const struct pmap_node *n, unsigned shift)
{
    return is_list(shift) ? n->values_map : (unsigned)__builtin_popcount(n->values_map);
}

static unsigned children_count(const struct pmap_node *n)
{
    return (unsigned)__builtin_popcount(n->children_map);
}

static struct pmap_node **child_at(struct pmap_node *n, unsigned values, unsigned i)
{
    return (struct pmap_node **)&n->slots[values + i];
}

static uint32_t bit_of(uint64_t hash, unsigned shift)
{
    return 1u << (hash >> shift & 31);
}

static unsigned index_of(uint32_t map, uint32_t bit)
{
    return (unsigned)__builtin_popcount(map & (bit - 1));
}

static struct pmap_node *node_new(unsigned slots)
{
    struct pmap_node *n = mem_alloc(sizeof *n + slots * sizeof n->slots[0]);
    atomic_init(&n->refs, 1);
    n->values_map = n->children_map = n->spare = 0;
    return n;
}

static struct pmap_node *node_ref(struct pmap_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

static void node_unref(const struct pmap_type *t, struct pmap_node *n, unsigned shift)
{
    if (atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    unsigned values = values_count(n, shift), children = children_count(n);
    for (unsigned i = 0; i < values; i++)
        t->unref(n->slots[i]);
    for (unsigned i = 0; i < children; i++)
        node_unref(t, *child_at(n, values, i), shift + BITS);
    mem_free(n);
}

// The node itself where only the caller reaches it, else a copy; takes the caller's reference.
static struct pmap_node *node_own(const struct pmap_type *t, struct pmap_node *n, unsigned shift)
{
    if (atomic_load_explicit(&n->refs, memory_order_acquire) == 1)
        return n;
    unsigned values = values_count(n, shift), children = children_count(n);
    struct pmap_node *c = node_new(values + children);
    c->values_map = n->values_map;
    c->children_map = n->children_map;
    for (unsigned i = 0; i < values; i++) {
        c->slots[i] = n->slots[i];
        t->ref(c->slots[i]);
    }
    for (unsigned i = 0; i < children; i++)
        *child_at(c, values, i) = node_ref(*child_at(n, values, i));
    node_unref(t, n, shift);
    return c;
}

// Makes or closes a gap at slot `at` of an own node with `slots` slots. May move the node.
static struct pmap_node *slot_insert(struct pmap_node *n, unsigned slots, unsigned at, void *p)
{
    n = mem_realloc(n, sizeof *n + (slots + 1) * sizeof n->slots[0]);
    memmove(&n->slots[at + 1], &n->slots[at], (slots - at) * sizeof n->slots[0]);
    n->slots[at] = p;
    return n;
}

static struct pmap_node *slot_remove(struct pmap_node *n, unsigned slots, unsigned at)
{
    memmove(&n->slots[at], &n->slots[at + 1], (slots - at - 1) * sizeof n->slots[0]);
    return mem_realloc(n, sizeof *n + (slots - 1) * sizeof n->slots[0]);
}

// A node of two values whose hashes may agree for some levels.
static struct pmap_node *node_pair(void *a, uint64_t hash_a, void *b, uint64_t hash_b, unsigned shift)
{
    struct pmap_node *n;
    if (is_list(shift)) {
        n = node_new(2);
        n->values_map = 2;
        n->slots[0] = a;
        n->slots[1] = b;
        return n;
    }
    uint32_t bit_a = bit_of(hash_a, shift), bit_b = bit_of(hash_b, shift);
    if (bit_a == bit_b) {
        n = node_new(1);
        n->children_map = bit_a;
        n->slots[0] = node_pair(a, hash_a, b, hash_b, shift + BITS);
        return n;
    }
    n = node_new(2);
    n->values_map = bit_a | bit_b;
    n->slots[0] = bit_a < bit_b ? a : b;
    n->slots[1] = bit_a < bit_b ? b : a;
    return n;
}

static void replace_value(const struct pmap_type *t, void **slot, void *value)
{
    void *old = *slot;
    *slot = value;
    t->unref(old);
}

// Puts `value` (whose reference is taken over) under a node; takes and gives the caller's reference of the
// node.
static struct pmap_node *node_put(struct pmap *m, struct pmap_node *n, unsigned shift, uint64_t hash,
                                  void *value)
{
    const struct pmap_type *t = m->type;
    n = node_own(t, n, shift);
    unsigned values = values_count(n, shift), slots = values + children_count(n);
    const void *key = t->key(value);
    if (is_list(shift)) {
        for (unsigned i = 0; i < values; i++)
            if (t->equal(t->key(n->slots[i]), key)) {
                replace_value(t, &n->slots[i], value);
                return n;
            }
        n = slot_insert(n, slots, values, value);
        n->values_map++;
        m->count++;
        return n;
    }
    uint32_t bit = bit_of(hash, shift);
    if (n->children_map & bit) {
        struct pmap_node **child = child_at(n, values, index_of(n->children_map, bit));
        *child = node_put(m, *child, shift + BITS, hash, value);
        return n;
    }
    unsigned at = index_of(n->values_map, bit);
    if (!(n->values_map & bit)) {
        n = slot_insert(n, slots, at, value);
        n->values_map |= bit;
        m->count++;
        return n;
    }
    void *other = n->slots[at];
    const void *other_key = t->key(other);
    if (t->equal(other_key, key)) {
        replace_value(t, &n->slots[at], value);
        return n;
    }
    // The place is taken by another key: both move into a child. Slots keep their number.
    struct pmap_node *child = node_pair(other, t->hash(other_key), value, hash, shift + BITS);
    unsigned child_slot = values - 1 + index_of(n->children_map, bit);
    memmove(&n->slots[at], &n->slots[at + 1], (child_slot - at) * sizeof n->slots[0]);
    n->slots[child_slot] = child;
    n->values_map &= ~bit;
    n->children_map |= bit;
    m->count++;
    return n;
}

// Removes a key that is known to be there. NULL: the node is empty and gone.
static struct pmap_node *node_remove(const struct pmap_type *t, struct pmap_node *n, unsigned shift,
                                     uint64_t hash, const void *key)
{
    n = node_own(t, n, shift);
    unsigned values = values_count(n, shift), slots = values + children_count(n);
    uint32_t bit = is_list(shift) ? 0 : bit_of(hash, shift);
    if (bit && (n->children_map & bit)) {
        unsigned child_index = index_of(n->children_map, bit);
        struct pmap_node **slot = child_at(n, values, child_index);
        struct pmap_node *child = node_remove(t, *slot, shift + BITS, hash, key);
        *slot = child;
        if (child->children_map || values_count(child, shift + BITS) != 1)
            return n;
        // One value is left below: it moves up here. Slots keep their number.
        void *value = child->slots[0];
        mem_free(child);
        unsigned at = index_of(n->values_map, bit), child_slot = values + child_index;
        memmove(&n->slots[at + 1], &n->slots[at], (child_slot - at) * sizeof n->slots[0]);
        n->slots[at] = value;
        n->values_map |= bit;
        n->children_map &= ~bit;
        return n;
    }
    unsigned at = 0;
    if (bit)
        at = index_of(n->values_map, bit);
    else
        while (!t->equal(t->key(n->slots[at]), key))
            at++;
    void *old = n->slots[at];
    if (slots == 1) {
        mem_free(n);
        n = NULL;
    } else {
        n = slot_remove(n, slots, at);
        n->values_map = bit ? n->values_map & ~bit : n->values_map - 1;
    }
    t->unref(old);
    return n;
}

void pmap_init(struct pmap *m, const struct pmap_type *type)
{
    *m = (struct pmap){type, NULL, 0};
}

struct pmap pmap_copy(const struct pmap *m)
{
    if (m->root)
        node_ref(m->root);
    return *m;
}

void pmap_drop(struct pmap *m)
{
    if (m->root)
        node_unref(m->type, m->root, 0);
    m->root = NULL;
    m->count = 0;
}

static void *node_get(const struct pmap_type *t, const struct pmap_node *n, unsigned shift, uint64_t hash,
                      const void *key)
{
    while (n) {
        unsigned values = values_count(n, shift);
        if (is_list(shift)) {
            for (unsigned i = 0; i < values; i++)
                if (t->equal(t->key(n->slots[i]), key))
                    return n->slots[i];
            return NULL;
        }
        uint32_t bit = bit_of(hash, shift);
        if (n->values_map & bit) {
            void *value = n->slots[index_of(n->values_map, bit)];
            return t->equal(t->key(value), key) ? value : NULL;
        }
        if (!(n->children_map & bit))
            return NULL;
        n = n->slots[values + index_of(n->children_map, bit)];
        shift += BITS;
    }
    return NULL;
}

void *pmap_get(const struct pmap *m, const void *key)
{
    return m->root ? node_get(m->type, m->root, 0, m->type->hash(key), key) : NULL;
}

void pmap_put(struct pmap *m, void *value)
{
    MUST(value != NULL);
    uint64_t hash = m->type->hash(m->type->key(value));
    if (m->root) {
        m->root = node_put(m, m->root, 0, hash, value);
        return;
    }
    m->root = node_new(1);
    m->root->values_map = bit_of(hash, 0);
    m->root->slots[0] = value;
    m->count = 1;
}

bool pmap_remove(struct pmap *m, const void *key)
{
    if (!pmap_get(m, key))
        return false;
    m->root = node_remove(m->type, m->root, 0, m->type->hash(key), key);
    m->count--;
    return true;
}

void pmap_iter_init(struct pmap_iter *it, const struct pmap *m)
{
    it->depth = m->root ? 0 : -1;
    it->nodes[0] = m->root;
    it->at[0] = 0;
}

void *pmap_iter_next(struct pmap_iter *it)
{
    while (it->depth >= 0) {
        const struct pmap_node *n = it->nodes[it->depth];
        unsigned shift = (unsigned)it->depth * BITS;
        unsigned values = values_count(n, shift), at = it->at[it->depth];
        if (at == values + children_count(n)) {
            it->depth--;
            continue;
        }
        it->at[it->depth]++;
        if (at < values)
            return n->slots[at];
        it->depth++;
        it->nodes[it->depth] = n->slots[at];
        it->at[it->depth] = 0;
    }
    return NULL;
}

// ---- difference
// ------------------------------------------------------------------------------------------------

struct diff {
    const struct pmap_type *type;
    int (*each)(void *data, void *old_value, void *new_value);
    void *data;
};

// All values under a node are added (is_new) or removed.
static int diff_side(const struct diff *d, const struct pmap_node *n, unsigned shift, bool is_new)
{
    unsigned values = values_count(n, shift), children = children_count(n);
    int r = 0;
    for (unsigned i = 0; i < values && !r; i++)
        r = is_new ? d->each(d->data, NULL, n->slots[i]) : d->each(d->data, n->slots[i], NULL);
    for (unsigned i = 0; i < children && !r; i++)
        r = diff_side(d, n->slots[values + i], shift + BITS, is_new);
    return r;
}

// One value on this side against a whole node on the other.
static int diff_value_node(const struct diff *d, void *value, const struct pmap_node *n, unsigned shift,
                           bool node_is_new)
{
    const struct pmap_type *t = d->type;
    const void *key = t->key(value);
    void *same = node_get(t, n, shift, t->hash(key), key);
    unsigned values = values_count(n, shift), children = children_count(n);
    int r = 0;
    if (!same)
        r = node_is_new ? d->each(d->data, value, NULL) : d->each(d->data, NULL, value);
    for (unsigned i = 0; i < values && !r; i++) {
        void *v = n->slots[i];
        if (v == same) {
            if (v != value)
                r = node_is_new ? d->each(d->data, value, v) : d->each(d->data, v, value);
        } else {
            r = node_is_new ? d->each(d->data, NULL, v) : d->each(d->data, v, NULL);
        }
    }
    // The value's key, if there, lies in exactly one child; told apart by looking again one level down.
    for (unsigned i = 0; i < children && !r; i++) {
        const struct pmap_node *child = n->slots[values + i];
        if (same && node_get(t, child, shift + BITS, t->hash(key), key) == same)
            r = diff_value_node(d, value, child, shift + BITS, node_is_new);
        else
            r = diff_side(d, child, shift + BITS, node_is_new);
    }
    return r;
}

static int diff_lists(const struct diff *d, const struct pmap_node *a, const struct pmap_node *b,
                      unsigned shift)
{
    const struct pmap_type *t = d->type;
    int r = 0;
    for (unsigned i = 0; i < a->values_map && !r; i++) {
        void *other = node_get(t, b, shift, 0, t->key(a->slots[i]));
        if (other != a->slots[i])
            r = d->each(d->data, a->slots[i], other);
    }
    for (unsigned i = 0; i < b->values_map && !r; i++)
        if (!node_get(t, a, shift, 0, t->key(b->slots[i])))
            r = d->each(d->data, NULL, b->slots[i]);
    return r;
}

static int diff_values(const struct diff *d, void *a, void *b)
{
    if (a == b)
        return 0;
    if (d->type->equal(d->type->key(a), d->type->key(b)))
        return d->each(d->data, a, b);
    int r = d->each(d->data, a, NULL);
    return r ? r : d->each(d->data, NULL, b);
}

static int diff_nodes(const struct diff *d, const struct pmap_node *a, const struct pmap_node *b,
                      unsigned shift)
{
    if (a == b)
        return 0;
    if (is_list(shift))
        return diff_lists(d, a, b, shift);
    unsigned a_values = values_count(a, shift), b_values = values_count(b, shift);
    uint32_t rest = a->values_map | a->children_map | b->values_map | b->children_map;
    int r = 0;
    for (; rest && !r; rest &= rest - 1) {
        uint32_t bit = rest & (0u - rest);
        void *va = a->values_map & bit ? a->slots[index_of(a->values_map, bit)] : NULL;
        void *vb = b->values_map & bit ? b->slots[index_of(b->values_map, bit)] : NULL;
        struct pmap_node *ca =
            a->children_map & bit ? a->slots[a_values + index_of(a->children_map, bit)] : NULL;
        struct pmap_node *cb =
            b->children_map & bit ? b->slots[b_values + index_of(b->children_map, bit)] : NULL;
        if (ca && cb)
            r = diff_nodes(d, ca, cb, shift + BITS);
        else if (va && vb)
            r = diff_values(d, va, vb);
        else if (va && cb)
            r = diff_value_node(d, va, cb, shift + BITS, true);
        else if (ca && vb)
            r = diff_value_node(d, vb, ca, shift + BITS, false);
        else if (va)
            r = d->each(d->data, va, NULL);
        else if (vb)
            r = d->each(d->data, NULL, vb);
        else
            r = diff_side(d, ca ? ca : cb, shift + BITS, cb != NULL);
    }
    return r;
}

int pmap_diff(const struct pmap *before, const struct pmap *after,
              int (*each)(void *data, void *old_value, void *new_value), void *data)
{
    struct diff d = {after->type, each, data};
    if (before->root == after->root)
        return 0;
    if (!before->root)
        return diff_side(&d, after->root, 0, true);
    if (!after->root)
        return diff_side(&d, before->root, 0, false);
    return diff_nodes(&d, before->root, after->root, 0);
}
