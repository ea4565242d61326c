// SPDX-License-Identifier: Apache-2.0
// The allocator hooks and the wrappers that never answer NULL.
#include "core/base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

static void *libc_alloc(void *data, size_t size)
{
    return malloc(size);
}

static void *libc_realloc(void *data, void *ptr, size_t size)
{
    return realloc(ptr, size);
}

static void *libc_aligned(void *data, size_t align, size_t size)
{
    return aligned_alloc(align, size);
}

static void libc_free(void *data, void *ptr)
{
    free(ptr);
}

static const struct mem_hooks libc_hooks = {NULL, libc_alloc, libc_realloc, libc_aligned, libc_free};

// The process-wide state that mem.h names; written before any other thread runs.
static const struct mem_hooks *hooks = &libc_hooks;

void mem_set_hooks(const struct mem_hooks *h)
{
    hooks = h ? h : &libc_hooks;
}

bool mem_is_hooked(void)
{
    return hooks != &libc_hooks;
}

static void *checked(void *ptr, size_t size)
{
    if (!ptr) {
        fprintf(stderr, "out of memory: %zu bytes refused\n", size);
        abort();
    }
    return ptr;
}

void *mem_alloc(size_t size)
{
    size = size ? size : 1;
    return checked(hooks->alloc(hooks->data, size), size);
}

void *mem_zalloc(size_t size)
{
    if (hooks == &libc_hooks) // fresh pages are zero already: calloc knows
        return checked(calloc(1, size ? size : 1), size);
    void *p = mem_alloc(size);
    return memset(p, 0, size);
}

void *mem_calloc(size_t count, size_t size)
{
    size_t total;
    MUST(!__builtin_mul_overflow(count, size, &total));
    return mem_zalloc(total);
}

void *mem_realloc(void *ptr, size_t size)
{
    size = size ? size : 1;
    return checked(hooks->realloc(hooks->data, ptr, size), size);
}

void *mem_aligned(size_t align, size_t size)
{
    MUST(align && (align & (align - 1)) == 0);
    size = (size + align - 1) & ~(align - 1);
    size = size ? size : align;
    return checked(hooks->aligned(hooks->data, align, size), size);
}

char *mem_strdup(const char *text)
{
    return mem_dup(text, strlen(text) + 1);
}

void *mem_dup(const void *data, size_t size)
{
    void *p = mem_alloc(size);
    if (size)
        memcpy(p, data, size);
    return p;
}

void mem_free(void *ptr)
{
    if (ptr)
        hooks->free(hooks->data, ptr);
}
