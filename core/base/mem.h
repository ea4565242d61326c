// SPDX-License-Identifier: Apache-2.0
// The allocator of core/, storage/ and raft/ (and, through raft_heap_set, of libraft).
//
// A node's memory comes from the hooks that are set at program start. The simulator sets hooks that give each
// node a heap of its own, so that a crash drops a node whole. This pointer and the page allocator behind
// chunk.h are the only process-wide mutable state of these rooms.
#ifndef KRAFT_BASE_MEM_H
#define KRAFT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

struct mem_hooks {
    void *data;                                              // passed to each function
    void *(*alloc)(void *data, size_t size);                 // as malloc
    void *(*realloc)(void *data, void *ptr, size_t size);    // as realloc
    void *(*aligned)(void *data, size_t align, size_t size); // as aligned_alloc
    void (*free)(void *data, void *ptr);                     // as free
};

// Replaces the hooks; `hooks` must outlive all use. NULL: back to libc. Call before any other thread runs.
void mem_set_hooks(const struct mem_hooks *hooks);
bool mem_is_hooked(void); // hooks other than libc's are set: then chunks come from them, too

// Never answer NULL: without memory the process stops with a line on stderr. Sizes that a peer chose are
// bounded by the caller before. size 0 gives a unique pointer. Contents of mem_calloc and mem_zalloc are
// zero.
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_calloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull)); // stops on overflow
void *mem_realloc(void *ptr, size_t size) __attribute__((returns_nonnull));
void *mem_aligned(size_t align, size_t size) __attribute__((malloc, returns_nonnull));
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
void *mem_dup(const void *data, size_t size) __attribute__((malloc, returns_nonnull));
void mem_free(void *ptr); // NULL is allowed

#endif
