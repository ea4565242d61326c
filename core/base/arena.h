// SPDX-License-Identifier: Apache-2.0
// Memory that is freed in one go: what a request or a replay allocates while it is worked on.
//
// Blocks are kept over arena_reset, so that a reused arena allocates nothing in steady state.
// Not thread-safe.
#ifndef KRAFT_BASE_ARENA_H
#define KRAFT_BASE_ARENA_H

#include <stddef.h>
#include "core/base/slice.h"

struct arena_block;
struct arena {
    struct arena_block *head; // block that allocations come from; NULL before the first
    struct arena_block *free; // blocks kept from before the last reset
    size_t used;              // bytes handed out since the last reset
    size_t limit;             // most bytes to hand out before arena_try_alloc says no; 0 = no limit
};

void arena_init(struct arena *a);
void arena_reset(struct arena *a); // forgets all allocations; keeps a bounded amount of memory for reuse
void arena_fini(struct arena *a);  // frees all
void *arena_alloc(struct arena *a, size_t size); // 16-byte aligned, uninitialised; never NULL
void *arena_zalloc(struct arena *a, size_t size);
void *arena_try_alloc(struct arena *a, size_t size); // NULL when `limit` would be passed (peer-chosen sizes)
void *arena_dup(struct arena *a, const void *data, size_t size);
struct slice arena_dup_slice(struct arena *a, struct slice s); // null stays null
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
