// SPDX-License-Identifier: Apache-2.0
// The persistent vector: a radix tree whose nodes have just the slots that are used.
//
// All levels but the rightmost path are full, so a node's number of slots follows from the vector's count; it
// is kept in the node, too. As in pmap.c a node that only its caller reaches is changed in place.
#include "core/base/pvec.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

#define BITS 5
#define FAN 32

struct pvec_node {
    atomic_uint refs; // owners: parents and variables
    uint32_t used;    // slots
    void *slots[];    // values in a leaf (shift 0), else children
};

static struct pvec_node *node_new(uint32_t used)
{
    struct pvec_node *n = mem_alloc(sizeof *n + used * sizeof n->slots[0]);
    atomic_init(&n->refs, 1);
    n->used = used;
    return n;
}

static struct pvec_node *node_ref(struct pvec_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

static void node_unref(const struct pvec_type *t, struct pvec_node *n, uint32_t shift)
{
    if (atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < n->used; i++)
        if (shift)
            node_unref(t, n->slots[i], shift - BITS);
        else
            t->unref(n->slots[i]);
    mem_free(n);
}

// The node where only the caller reaches it, else a copy; takes the caller's reference.
static struct pvec_node *node_own(const struct pvec_type *t, struct pvec_node *n, uint32_t shift)
{
    if (atomic_load_explicit(&n->refs, memory_order_acquire) == 1)
        return n;
    struct pvec_node *c = node_new(n->used);
    for (uint32_t i = 0; i < n->used; i++) {
        c->slots[i] = n->slots[i];
        if (shift)
            node_ref(c->slots[i]);
        else
            t->ref(c->slots[i]);
    }
    node_unref(t, n, shift);
    return c;
}

static struct pvec_node *node_resize(struct pvec_node *n, uint32_t used)
{
    n = mem_realloc(n, sizeof *n + used * sizeof n->slots[0]);
    n->used = used;
    return n;
}

void pvec_init(struct pvec *v, const struct pvec_type *type)
{
    *v = (struct pvec){type, NULL, 0, 0};
}

struct pvec pvec_copy(const struct pvec *v)
{
    if (v->root)
        node_ref(v->root);
    return *v;
}

void pvec_drop(struct pvec *v)
{
    if (v->root)
        node_unref(v->type, v->root, v->shift);
    pvec_init(v, v->type);
}

void *pvec_get(const struct pvec *v, uint32_t index)
{
    if (index >= v->count)
        return NULL;
    const struct pvec_node *n = v->root;
    for (uint32_t shift = v->shift; shift; shift -= BITS)
        n = n->slots[index >> shift & (FAN - 1)];
    return n->slots[index & (FAN - 1)];
}

static struct pvec_node *node_set(const struct pvec_type *t, struct pvec_node *n, uint32_t shift,
                                  uint32_t index, void *value)
{
    uint32_t at = index >> shift & (FAN - 1);
    n = n ? node_own(t, n, shift) : node_new(0);
    bool is_new = at == n->used;
    MUST(at <= n->used);
    if (is_new)
        n = node_resize(n, at + 1);
    if (shift) {
        n->slots[at] = node_set(t, is_new ? NULL : n->slots[at], shift - BITS, index, value);
    } else {
        void *old = is_new ? NULL : n->slots[at];
        n->slots[at] = value;
        if (old)
            t->unref(old);
    }
    return n;
}

void pvec_set(struct pvec *v, uint32_t index, void *value)
{
    MUST(value != NULL);
    MUST(index <= v->count && index < UINT32_MAX);
    if (v->root && (uint64_t)index >> (v->shift + BITS)) {
        struct pvec_node *root = node_new(1); // the tree is full: one level more
        root->slots[0] = v->root;
        v->root = root;
        v->shift += BITS;
    }
    v->root = node_set(v->type, v->root, v->shift, index, value);
    if (index == v->count)
        v->count++;
}

// Without its last value; NULL: nothing is left.
static struct pvec_node *node_pop(const struct pvec_type *t, struct pvec_node *n, uint32_t shift)
{
    n = node_own(t, n, shift);
    uint32_t last = n->used - 1;
    if (shift) {
        struct pvec_node *child = node_pop(t, n->slots[last], shift - BITS);
        n->slots[last] = child;
        if (child)
            return n;
    } else {
        t->unref(n->slots[last]);
    }
    if (last)
        return node_resize(n, last);
    mem_free(n);
    return NULL;
}

void pvec_pop(struct pvec *v)
{
    MUST(v->count > 0);
    v->root = node_pop(v->type, v->root, v->shift);
    v->count--;
    while (v->root && v->shift && v->root->used == 1) { // one level less
        struct pvec_node *root = v->root;
        v->root = node_ref(root->slots[0]);
        node_unref(v->type, root, v->shift);
        v->shift -= BITS;
    }
    if (!v->root)
        v->shift = 0;
}

struct diff {
    int (*each)(void *data, uint32_t index, void *old_value, void *new_value);
    void *data;
};

// Either side may be NULL (nothing there).
static int diff_nodes(const struct diff *d, const struct pvec_node *a, const struct pvec_node *b,
                      uint32_t shift, uint32_t base)
{
    if (a == b)
        return 0;
    uint32_t a_used = a ? a->used : 0, b_used = b ? b->used : 0;
    uint32_t n = a_used > b_used ? a_used : b_used;
    int r = 0;
    for (uint32_t i = 0; i < n && !r; i++) {
        void *x = i < a_used ? a->slots[i] : NULL;
        void *y = i < b_used ? b->slots[i] : NULL;
        if (x == y)
            continue;
        uint32_t index = base + (i << shift);
        r = shift ? diff_nodes(d, x, y, shift - BITS, index) : d->each(d->data, index, x, y);
    }
    return r;
}

// Brings a lower tree to the height of `shift` for the walk: its nodes are the first descendants.
static int diff_levels(const struct diff *d, const struct pvec_node *a, uint32_t a_shift,
                       const struct pvec_node *b, uint32_t b_shift, uint32_t base)
{
    if (a_shift == b_shift)
        return diff_nodes(d, a, b, a_shift, base);
    bool a_high = a_shift > b_shift;
    const struct pvec_node *high = a_high ? a : b;
    uint32_t shift = a_high ? a_shift : b_shift;
    int r = a_high ? diff_levels(d, high->slots[0], shift - BITS, b, b_shift, base)
                   : diff_levels(d, a, a_shift, high->slots[0], shift - BITS, base);
    for (uint32_t i = 1; i < high->used && !r; i++) {
        const struct pvec_node *child = high->slots[i];
        uint32_t index = base + (i << shift);
        r = a_high ? diff_nodes(d, child, NULL, shift - BITS, index)
                   : diff_nodes(d, NULL, child, shift - BITS, index);
    }
    return r;
}

int pvec_diff(const struct pvec *before, const struct pvec *after,
              int (*each)(void *data, uint32_t index, void *old_value, void *new_value), void *data)
{
    struct diff d = {each, data};
    if (before->root == after->root)
        return 0;
    if (!before->root)
        return diff_nodes(&d, NULL, after->root, after->shift, 0);
    if (!after->root)
        return diff_nodes(&d, before->root, NULL, before->shift, 0);
    return diff_levels(&d, before->root, before->shift, after->root, after->shift, 0);
}
