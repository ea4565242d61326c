// SPDX-License-Identifier: Apache-2.0
// The arena: a chain of growing blocks, of which some are kept over a reset.
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

struct arena_block {
    struct arena_block *next; // older block, or next kept one
    size_t cap;               // bytes at `data`
    size_t used;              // bytes of them handed out
    size_t pad;               // keeps `data` 16-byte aligned
    uint8_t data[];
};
_Static_assert(sizeof(struct arena_block) % 16 == 0, "data is 16-byte aligned");

void arena_init(struct arena *a)
{
    *a = (struct arena){NULL, NULL, 0, 0};
}

static void free_blocks(struct arena_block *b)
{
    while (b) {
        struct arena_block *next = b->next;
        mem_free(b);
        b = next;
    }
}

void arena_reset(struct arena *a)
{
    // All blocks become one list; the first of them that fit into the allowance are kept.
    struct arena_block *all = a->head, *kept = NULL;
    if (!all)
        all = a->free;
    else {
        struct arena_block *last = all;
        while (last->next)
            last = last->next;
        last->next = a->free;
    }
    size_t room = ARENA_KEEP_BYTES;
    while (all) {
        struct arena_block *b = all;
        all = b->next;
        if (b->cap > room) {
            mem_free(b);
            continue;
        }
        room -= b->cap;
        b->used = 0;
        b->next = kept;
        kept = b;
    }
    a->head = NULL;
    a->free = kept;
    a->used = 0;
}

void arena_fini(struct arena *a)
{
    free_blocks(a->head);
    free_blocks(a->free);
    a->head = a->free = NULL;
    a->used = 0;
}

// Puts a block with room for `size` in front.
static struct arena_block *arena_grow(struct arena *a, size_t size)
{
    for (struct arena_block **at = &a->free; *at; at = &(*at)->next) {
        struct arena_block *b = *at;
        if (b->cap >= size) {
            *at = b->next;
            b->next = a->head;
            a->head = b;
            return b;
        }
    }
    size_t cap = ARENA_BLOCK_BYTES_FIRST - sizeof(struct arena_block);
    if (a->head && a->head->cap * 2 > cap)
        cap = a->head->cap * 2 < ARENA_BLOCK_BYTES_MAX ? a->head->cap * 2 : ARENA_BLOCK_BYTES_MAX;
    if (cap < size)
        cap = size;
    struct arena_block *b = mem_alloc(sizeof *b + cap);
    b->cap = cap;
    b->used = 0;
    b->next = a->head;
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
    MUST(size < SIZE_MAX / 2);
    size = (size + 15) & ~(size_t)15;
    if (!size)
        size = 16;
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < size)
        b = arena_grow(a, size);
    void *p = b->data + b->used;
    b->used += size;
    a->used += size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    return memset(arena_alloc(a, size), 0, size);
}

void *arena_try_alloc(struct arena *a, size_t size)
{
    if (size >= SIZE_MAX / 2)
        return NULL;
    if (a->limit && (a->used > a->limit || size > a->limit - a->used))
        return NULL;
    return arena_alloc(a, size);
}

void *arena_dup(struct arena *a, const void *data, size_t size)
{
    void *p = arena_alloc(a, size);
    if (size)
        memcpy(p, data, size);
    return p;
}

struct slice arena_dup_slice(struct arena *a, struct slice s)
{
    return s.data ? slice_of(arena_dup(a, s.data, s.len), s.len) : SLICE_NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    MUST(fmt != NULL);
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    MUST(n >= 0);
    char *text = arena_alloc(a, (size_t)n + 1);
    (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}
