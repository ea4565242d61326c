// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated nodes: every block is booked to the node whose code asked for it, so that a crash
// drops a node whole.
//
// Freed memory is filled, and a double free or an overrun of the header is found at once.
#include <stdlib.h>
#include "core/base/assert.h"
#include "tests/sim/world/world_priv.h"

#define HEAP_MAGIC 0x4b524146544845u
#define HEAD ((sizeof(struct heap_block) + 15) / 16 * 16)

static struct heap_block *block_of(void *p)
{
    struct heap_block *b = (struct heap_block *)(void *)((char *)p - HEAD);
    MUST(b->magic == HEAP_MAGIC);
    return b;
}

static void link_block(struct heap_block *b)
{
    struct node *n = b->owner;
    b->prev = b->next = NULL;
    if (!n)
        return;
    b->next = n->blocks;
    if (n->blocks)
        n->blocks->prev = b;
    n->blocks = b;
    n->heap_bytes += b->size;
}

static void unlink_block(struct heap_block *b)
{
    struct node *n = b->owner;
    if (!n)
        return;
    if (b->prev)
        b->prev->next = b->next;
    else
        n->blocks = b->next;
    if (b->next)
        b->next->prev = b->prev;
    n->heap_bytes -= b->size;
}

static void *heap_alloc(void *data, size_t size)
{
    struct world *w = data;
    struct heap_block *b = malloc(HEAD + size);
    if (!b)
        return NULL;
    b->owner = w->current;
    b->size = size;
    b->base = b;
    b->magic = HEAP_MAGIC;
    link_block(b);
    return (char *)b + HEAD;
}

static void heap_free(void *data, void *p)
{
    (void)data;
    if (!p)
        return;
    struct heap_block *b = block_of(p);
    unlink_block(b);
    b->magic = 0;
    void *base = b->base;
    memset(p, 0xdd, b->size);
    free(base);
}

static void *heap_realloc(void *data, void *p, size_t size)
{
    if (!p)
        return heap_alloc(data, size);
    struct heap_block *b = block_of(p);
    MUST(b->base == b);
    unlink_block(b);
    struct heap_block *n = realloc(b, HEAD + size);
    MUST(n != NULL);
    n->size = size;
    n->base = n;
    link_block(n);
    return (char *)n + HEAD;
}

static void *heap_aligned(void *data, size_t align, size_t size)
{
    struct world *w = data;
    char *base = malloc(HEAD + align + size);
    if (!base)
        return NULL;
    uintptr_t at = ((uintptr_t)base + HEAD + align - 1) / align * align;
    struct heap_block *b = (struct heap_block *)(at - HEAD);
    b->owner = w->current;
    b->size = size;
    b->base = base;
    b->magic = HEAP_MAGIC;
    link_block(b);
    return (void *)at;
}

void world_heap_init(struct world *w)
{
    w->hooks = (struct mem_hooks){w, heap_alloc, heap_realloc, heap_aligned, heap_free};
    mem_set_hooks(&w->hooks);
}

void world_heap_drop(struct node *n)
{
    while (n->blocks) {
        struct heap_block *b = n->blocks;
        n->blocks = b->next;
        b->magic = 0;
        void *base = b->base;
        memset((char *)b + HEAD, 0xdd, b->size);
        free(base);
    }
    n->heap_bytes = 0;
}

struct node *world_enter_none(struct world *w)
{
    struct node *was = w->current;
    w->current = NULL;
    return was;
}

void world_leave(struct world *w, struct node *was)
{
    w->current = was;
}

void *world_alloc(struct world *w, size_t size)
{
    struct node *was = world_enter_none(w);
    void *p = heap_alloc(w, size);
    MUST(p != NULL);
    world_leave(w, was);
    return p;
}

void world_release(struct world *w, void *p)
{
    heap_free(w, p);
}
