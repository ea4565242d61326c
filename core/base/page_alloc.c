// SPDX-License-Identifier: Apache-2.0
// Pages from the kernel: anonymous mappings, aligned by cutting, with or without huge pages.
#include "core/base/page.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/assert.h"

void *page_alloc(size_t size, size_t align, bool huge)
{
    MUST(size % 4096 == 0 && align >= 4096 && (align & (align - 1)) == 0);
    size_t whole = size + align - 4096;
    uint8_t *p =
        mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "out of memory: %zu bytes of pages refused\n", size);
        abort();
    }
    uint8_t *start = (uint8_t *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
    if (start > p)
        (void)munmap(p, (size_t)(start - p));
    if (start + size < p + whole)
        (void)munmap(start + size, (size_t)(p + whole - start - size));
    // Only advice: where it is not taken, ordinary pages serve.
    (void)madvise(start, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return start;
}

void page_free(void *ptr, size_t size)
{
    (void)munmap(ptr, size);
}

void page_discard(void *ptr, size_t size)
{
    (void)madvise(ptr, size, MADV_DONTNEED);
}
