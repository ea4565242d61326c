// SPDX-License-Identifier: Apache-2.0
// A persistent vector: a radix tree of fan-out 32 from a dense index to a counted value, for the partitions
// of a topic.
//
// The same value semantics as pmap.h: pvec_copy is O(1), changes touch only the variable that they are given,
// and nodes that only it reaches are changed in place. A vector of one element costs one small node.
#ifndef KRAFT_BASE_PVEC_H
#define KRAFT_BASE_PVEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pvec_type {
    void (*ref)(void *value);   // one more owner; atomic
    void (*unref)(void *value); // one owner less; atomic
};

struct pvec_node;
struct pvec {
    const struct pvec_type *type; // how values are counted
    struct pvec_node *root;       // NULL when empty
    uint32_t count;               // elements
    uint32_t shift;               // 5 x (levels - 1)
};

void pvec_init(struct pvec *v, const struct pvec_type *type); // empty; allocates nothing
struct pvec pvec_copy(const struct pvec *v);
void pvec_drop(struct pvec *v); // v is empty and usable after
static inline uint32_t pvec_count(const struct pvec *v)
{
    return v->count;
}

void *pvec_get(const struct pvec *v, uint32_t index); // borrowed; NULL past the end
// Takes over one reference of a non-NULL value. index = count appends; more is our mistake (asserted).
void pvec_set(struct pvec *v, uint32_t index, void *value);
static inline void pvec_push(struct pvec *v, void *value)
{
    pvec_set(v, v->count, value);
}
void pvec_pop(struct pvec *v); // removes the last element; not of an empty vector

// Calls `each` for every index whose value (as pointer) differs, in order; NULL where one is shorter. A
// non-zero answer ends the walk and is returned. Shared nodes are skipped.
int pvec_diff(const struct pvec *before, const struct pvec *after,
              int (*each)(void *data, uint32_t index, void *old_value, void *new_value), void *data);

#endif
