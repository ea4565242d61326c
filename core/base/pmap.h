// SPDX-License-Identifier: Apache-2.0
// A persistent map: a hash-array-mapped trie whose copies share all nodes that did not change.
//
// A `struct pmap` variable is a value. pmap_copy costs one counter and gives a second, independent value;
// pmap_put and pmap_remove change the variable they are given and no copy of it. Nodes that only this
// variable reaches are changed in place, shared ones are copied first: so replaying ten thousand records on a
// fresh copy costs each touched node once, with no separate builder.
//
// The key lies in the value. Values are counted by the type's ref and unref. Threads: different copies may be
// used by different threads at once (counts are atomic); one variable is used by one thread at a time. Order
// of iteration depends only on the set of keys (keys with equal 64-bit hashes: on the order of putting).
#ifndef KRAFT_BASE_PMAP_H
#define KRAFT_BASE_PMAP_H

#include "core/base/slice.h"

struct pmap_type {
    const void *(*key)(const void *value);       // where a value keeps its key
    uint64_t (*hash)(const void *key);           // one of pmap_hash_*, or your own
    bool (*equal)(const void *a, const void *b); // one of pmap_equal_*, or your own
    void (*ref)(void *value);                    // one more owner; atomic
    void (*unref)(void *value);                  // one owner less; atomic
};

// Key forms: key() gives a pointer to int32_t, uint64_t (or int64_t), struct slice, struct uuid.
uint64_t pmap_hash_i32(const void *key);
bool pmap_equal_i32(const void *a, const void *b);
uint64_t pmap_hash_u64(const void *key);
bool pmap_equal_u64(const void *a, const void *b);
uint64_t pmap_hash_slice(const void *key);
bool pmap_equal_slice(const void *a, const void *b);
uint64_t pmap_hash_uuid(const void *key);
bool pmap_equal_uuid(const void *a, const void *b);

struct pmap_node;
struct pmap {
    const struct pmap_type *type; // how values are read and counted
    struct pmap_node *root;       // NULL when empty
    size_t count;                 // entries
};

void pmap_init(struct pmap *m, const struct pmap_type *type); // empty; allocates nothing
struct pmap pmap_copy(const struct pmap *m);                  // an owner of its own of all that m holds; O(1)
void pmap_drop(struct pmap *m); // gives up what m holds; m is empty and usable after
static inline size_t pmap_count(const struct pmap *m)
{
    return m->count;
}

void *pmap_get(const struct pmap *m,
               const void *key); // borrowed: valid while a copy that holds it lives; NULL: not there
void pmap_put(struct pmap *m, void *value); // takes over one reference of the caller; replaces an equal key
bool pmap_remove(struct pmap *m, const void *key); // false: was not there

// Walks all values, in the map's order. The map must not change meanwhile (a copy of it may).
#define PMAP_DEPTH_MAX 15
struct pmap_iter {
    const struct pmap_node *nodes[PMAP_DEPTH_MAX]; // path from the root
    uint32_t at[PMAP_DEPTH_MAX];                   // next slot in each
    int depth;                                     // last of the path in use; -1 at the end
};
void pmap_iter_init(struct pmap_iter *it, const struct pmap *m);
void *pmap_iter_next(struct pmap_iter *it); // borrowed value, or NULL at the end

// Calls `each` for every key whose value (as pointer) differs: old NULL = added, new NULL = removed. Shared
// nodes are skipped, so the cost is what changed. A non-zero answer ends the walk and is returned.
int pmap_diff(const struct pmap *before, const struct pmap *after,
              int (*each)(void *data, void *old_value, void *new_value), void *data);

#endif
