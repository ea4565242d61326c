// SPDX-License-Identifier: Apache-2.0
// The page allocator behind chunks: big aligned blocks straight from the kernel. The only system calls of
// core/.
#ifndef KRAFT_BASE_PAGE_H
#define KRAFT_BASE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

// `size` bytes (a multiple of 4096), aligned to `align` (a power of two >= 4096), zero, not yet backed by
// memory. `huge`: ask the kernel for huge pages. Stops the process where there is no address space left. Any
// thread.
void *page_alloc(size_t size, size_t align, bool huge);
void page_free(void *ptr, size_t size); // gives all back
void page_discard(void *ptr,
                  size_t size); // gives the memory back, keeps the addresses; reads as zero afterwards

#endif
