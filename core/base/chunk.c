// SPDX-License-Identifier: Apache-2.0
// The pool of chunks: size classes over arenas of 2 MiB, reused for ever under load, given back when idle.
//
// An arena is 32 units of 64 KiB. A span is a run of units that serves one class: either many small blocks,
// carved one by one so that nothing is touched ahead, or one block. Each class keeps its spans that have room
// in a list, last used first; an empty span stays there until chunk_trim finds that it was not needed for two
// rounds. The first arenas are ordinary pages, so that a small process stays small; later ones ask for huge
// pages. Blocks above 2 MiB are mappings of their own, of which freed ones are kept for a while.
//
// A block begins with its header (struct chunk and the pool's own part, 64 bytes); the bytes follow.
// Locks: one for each class, then the one of the arenas.
#include "core/base/chunk.h"

#include "core/base/assert.h"
#include "core/base/limits.h"
#include "core/base/list.h"
#include "core/base/mem.h"
#include "core/base/mutex.h"
#include "core/base/page.h"

#if defined(__SANITIZE_ADDRESS__)
#define CHUNK_PLAIN 1 // the sanitizer sees each chunk as a block of its own
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHUNK_PLAIN 1
#endif
#endif
#ifndef CHUNK_PLAIN
#define CHUNK_PLAIN 0
#endif

#define HEADER_BYTES 64        // in front of each block's bytes
#define UNIT_BYTES (64u << 10) // smallest span
#define ARENA_UNITS 32         // units of an arena
#define ARENA_BYTES (UNIT_BYTES * ARENA_UNITS)
#define SMALL_ARENAS 4                // arenas on ordinary pages, before huge ones come
#define TRIM_ROUNDS 2                 // rounds of chunk_trim for which an empty span is kept
#define LARGE_KEEP_BYTES (256u << 20) // most bytes in large blocks that are kept for reuse

_Static_assert(ARENA_BYTES == 2u << 20, "an arena is one huge page");

struct chunk_arena {
    struct list_node link; // in pool.arenas, in order of making
    uint8_t *base;         // first byte, aligned to its size
    uint32_t used;         // bit per unit that belongs to a span
    uint32_t free_round;   // round in which the last unit was freed
    bool huge;             // on huge pages
};
struct chunk_span {
    struct list_node link;     // in its class's list while it has room
    struct chunk_arena *arena; // where its units are
    struct block *free;        // freed blocks
    uint16_t first, units;     // run of units
    uint16_t class;            // index of the size class
    uint16_t blocks;           // blocks that it can hold
    uint16_t carved;           // blocks that were ever handed out
    uint16_t used;             // blocks that are out
    uint32_t round;            // round in which a block was last handed out
};
struct block {
    struct chunk chunk;      // what the user sees; first
    struct chunk_span *span; // owner, or NULL of a large or plain block
    struct block *next;      // in a free list
    size_t bytes;            // large: size of the mapping
    uint32_t round;          // large: round in which it was freed
};
_Static_assert(sizeof(struct block) <= HEADER_BYTES, "the header fits");

// Bytes of a block of each class, header included. Small ones share a unit; from one unit up a span is one
// block.
static const uint32_t class_bytes[] = {
    256,
    384,
    512,
    768,
    1024,
    1536,
    2048,
    3072,
    4096,
    6144,
    8192,
    12288,
    16384,
    20480,
    32768,
    UNIT_BYTES,
    2 * UNIT_BYTES,
    3 * UNIT_BYTES,
    4 * UNIT_BYTES,
    6 * UNIT_BYTES,
    8 * UNIT_BYTES,
    12 * UNIT_BYTES,
    16 * UNIT_BYTES,
    20 * UNIT_BYTES,
    24 * UNIT_BYTES,
    32 * UNIT_BYTES,
};
#define CLASSES (sizeof class_bytes / sizeof class_bytes[0])

struct class_pool {
    struct mutex mutex; // guards the list and its spans
    struct list spans;  // those with room, last used first
};

// The process-wide state that mem.h names.
static struct {
    struct class_pool classes[CLASSES];
    struct mutex mutex;             // guards what follows
    struct list arenas;             // chunk_arena
    struct list_node *spare_spans;  // descriptors for reuse, linked by `next`
    struct list_node *spare_arenas; // the same
    uint8_t *descriptors;           // memory for descriptors
    size_t descriptors_left;        // bytes of it
    struct block *large;            // kept large blocks
    size_t large_bytes;             // their bytes
    unsigned arena_count;           // arenas now
    _Atomic uint32_t round;         // calls of chunk_trim
    _Atomic size_t used_bytes;      // in blocks that are out
    _Atomic size_t used_chunks;     // blocks that are out
    _Atomic size_t held_bytes;      // taken from the kernel
    bool ready;                     // lists are initialised
    pthread_once_t once;
} pool = {.once = PTHREAD_ONCE_INIT};

static void pool_init(void)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        mutex_init(&pool.classes[i].mutex);
        list_init(&pool.classes[i].spans);
    }
    mutex_init(&pool.mutex);
    list_init(&pool.arenas);
    pool.ready = true;
}

static uint32_t pool_round(void)
{
    return atomic_load_explicit(&pool.round, memory_order_relaxed);
}

static unsigned class_of(size_t bytes)
{
    unsigned lo = 0, hi = CLASSES - 1;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (class_bytes[mid] < bytes)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// A zeroed descriptor; under pool.mutex. Descriptors are reused, never given back.
static void *descriptor_new(struct list_node **spare, size_t size)
{
    if (*spare) {
        struct list_node *n = *spare;
        *spare = n->next;
        return memset(n, 0, size);
    }
    size = (size + 15) & ~(size_t)15;
    if (pool.descriptors_left < size) {
        pool.descriptors_left = UNIT_BYTES;
        pool.descriptors = page_alloc(pool.descriptors_left, 4096, false);
        atomic_fetch_add(&pool.held_bytes, 4096);
    }
    void *p = pool.descriptors;
    pool.descriptors += size;
    pool.descriptors_left -= size;
    return p;
}

static void descriptor_free(struct list_node **spare, struct list_node *n)
{
    n->next = *spare;
    *spare = n;
}

// First run of `units` free units, or -1.
static int arena_find_run(const struct chunk_arena *a, unsigned units)
{
    if (a->used == 0)
        return 0;
    uint32_t mask = units == 32 ? UINT32_MAX : (1u << units) - 1;
    for (unsigned at = 0; at + units <= ARENA_UNITS; at++)
        if (!(a->used & (mask << at)))
            return (int)at;
    return -1;
}

static struct chunk_arena *arena_new(void)
{
    struct chunk_arena *a = descriptor_new(&pool.spare_arenas, sizeof *a);
    a->huge = pool.arena_count >= SMALL_ARENAS;
    a->base = page_alloc(ARENA_BYTES, ARENA_BYTES, a->huge);
    list_add_tail(&pool.arenas, &a->link);
    pool.arena_count++;
    atomic_fetch_add(&pool.held_bytes, ARENA_BYTES);
    return a;
}

static struct chunk_span *span_new(unsigned class)
{
    uint32_t bytes = class_bytes[class];
    unsigned units = bytes <= UNIT_BYTES ? 1 : bytes / UNIT_BYTES;
    mutex_lock(&pool.mutex);
    struct chunk_arena *arena = NULL;
    int first = -1;
    LIST_FOR_EACH(it, &pool.arenas)
    {
        struct chunk_arena *a = LIST_ENTRY(it, struct chunk_arena, link);
        if ((first = arena_find_run(a, units)) >= 0) {
            arena = a;
            break;
        }
    }
    if (!arena) {
        arena = arena_new();
        first = 0;
    }
    uint32_t mask = units == 32 ? UINT32_MAX : (1u << units) - 1;
    arena->used |= mask << first;
    struct chunk_span *s = descriptor_new(&pool.spare_spans, sizeof *s);
    mutex_unlock(&pool.mutex);
    s->arena = arena;
    s->first = (uint16_t)first;
    s->units = (uint16_t)units;
    s->class = (uint16_t) class;
    s->blocks = (uint16_t)(bytes >= UNIT_BYTES ? 1 : UNIT_BYTES / bytes);
    return s;
}

// Gives an empty span's units back; it is in no list.
static void span_free(struct chunk_span *s)
{
    struct chunk_arena *a = s->arena;
    if (!a->huge)
        page_discard(a->base + (size_t)s->first * UNIT_BYTES, (size_t)s->units * UNIT_BYTES);
    uint32_t mask = s->units == 32 ? UINT32_MAX : (1u << s->units) - 1;
    mutex_lock(&pool.mutex);
    a->used &= ~(mask << s->first);
    a->free_round = pool_round();
    descriptor_free(&pool.spare_spans, &s->link);
    mutex_unlock(&pool.mutex);
}

static void block_free(struct chunk *c);
static void large_free(struct chunk *c);
static void plain_free(struct chunk *c);

static struct chunk *block_init(struct block *b, size_t bytes, void (*free)(struct chunk *))
{
    atomic_init(&b->chunk.refs, 1);
    b->chunk.cap = (uint32_t)(bytes - HEADER_BYTES);
    b->chunk.data = (uint8_t *)b + HEADER_BYTES;
    b->chunk.free = free;
    atomic_fetch_add_explicit(&pool.used_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.used_chunks, 1, memory_order_relaxed);
    return &b->chunk;
}

static void block_count_out(size_t bytes)
{
    atomic_fetch_sub_explicit(&pool.used_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pool.used_chunks, 1, memory_order_relaxed);
}

static struct chunk *class_alloc(unsigned class)
{
    struct class_pool *cp = &pool.classes[class];
    mutex_lock(&cp->mutex);
    struct list_node *n = list_first(&cp->spans);
    struct chunk_span *s;
    if (n) {
        s = LIST_ENTRY(n, struct chunk_span, link);
    } else {
        s = span_new(class);
        list_add_head(&cp->spans, &s->link);
    }
    struct block *b = s->free;
    if (b) {
        s->free = b->next;
    } else {
        uint8_t *base = s->arena->base + (size_t)s->first * UNIT_BYTES;
        b = (struct block *)(void *)(base + (size_t)s->carved * class_bytes[class]);
        s->carved++;
        b->span = s;
    }
    s->used++;
    s->round = pool_round();
    if (s->used == s->blocks)
        list_remove(&s->link);
    mutex_unlock(&cp->mutex);
    return block_init(b, class_bytes[class], block_free);
}

static void block_free(struct chunk *c)
{
    struct block *b = (struct block *)(void *)c;
    struct chunk_span *s = b->span;
    struct class_pool *cp = &pool.classes[s->class];
    block_count_out(class_bytes[s->class]);
    mutex_lock(&cp->mutex);
    b->next = s->free;
    s->free = b;
    if (s->used == s->blocks)
        list_add_head(&cp->spans, &s->link);
    s->used--;
    s->round = pool_round();
    mutex_unlock(&cp->mutex);
}

static struct chunk *large_alloc(size_t bytes)
{
    bytes = (bytes + ARENA_BYTES - 1) & ~(size_t)(ARENA_BYTES - 1);
    mutex_lock(&pool.mutex);
    struct block **best = NULL;
    for (struct block **at = &pool.large; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (*at)->bytes <= 2 * bytes && (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    struct block *b = best ? *best : NULL;
    if (b) {
        *best = b->next;
        pool.large_bytes -= b->bytes;
    }
    mutex_unlock(&pool.mutex);
    if (!b) {
        b = page_alloc(bytes, ARENA_BYTES, true);
        b->bytes = bytes;
        atomic_fetch_add(&pool.held_bytes, bytes);
    }
    b->span = NULL;
    return block_init(b, b->bytes, large_free);
}

static void large_unmap(struct block *b)
{
    atomic_fetch_sub(&pool.held_bytes, b->bytes);
    page_free(b, b->bytes);
}

static void large_free(struct chunk *c)
{
    struct block *b = (struct block *)(void *)c;
    block_count_out(b->bytes);
    mutex_lock(&pool.mutex);
    bool keep = pool.large_bytes + b->bytes <= LARGE_KEEP_BYTES;
    if (keep) {
        b->round = pool_round();
        b->next = pool.large;
        pool.large = b;
        pool.large_bytes += b->bytes;
    }
    mutex_unlock(&pool.mutex);
    if (!keep)
        large_unmap(b);
}

static struct chunk *plain_alloc(size_t bytes)
{
    struct block *b = mem_aligned(HEADER_BYTES, bytes);
    b->bytes = bytes;
    b->span = NULL;
    return block_init(b, bytes, plain_free);
}

static void plain_free(struct chunk *c)
{
    struct block *b = (struct block *)(void *)c;
    block_count_out(b->bytes);
    mem_free(b);
}

struct chunk *chunk_alloc(size_t size)
{
    MUST(size <= CHUNK_BYTES_MAX);
    size_t bytes = size + HEADER_BYTES;
    if (CHUNK_PLAIN || mem_is_hooked())
        return plain_alloc(bytes);
    (void)pthread_once(&pool.once, pool_init);
    if (bytes > ARENA_BYTES)
        return large_alloc(bytes);
    return class_alloc(class_of(bytes));
}

struct chunk *chunk_ref(struct chunk *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void chunk_unref(struct chunk *c)
{
    if (!c)
        return;
    // The only owner needs no atomic step to learn that it is the last.
    if (atomic_load_explicit(&c->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
        c->free(c);
}

void chunk_stats(struct chunk_stats *out)
{
    (void)pthread_once(&pool.once, pool_init);
    mutex_lock(&pool.mutex);
    out->arenas = pool.arena_count;
    mutex_unlock(&pool.mutex);
    out->used_bytes = atomic_load(&pool.used_bytes);
    out->chunks_used = atomic_load(&pool.used_chunks);
    out->held_bytes = atomic_load(&pool.held_bytes);
}

static bool is_old(uint32_t round, uint32_t now, uint32_t rounds)
{
    return now - round >= rounds;
}

static void trim_classes(uint32_t now, uint32_t rounds)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        struct class_pool *cp = &pool.classes[i];
        struct list old;
        list_init(&old);
        mutex_lock(&cp->mutex);
        LIST_FOR_EACH_SAFE(it, &cp->spans)
        {
            struct chunk_span *s = LIST_ENTRY(it, struct chunk_span, link);
            if (s->used == 0 && is_old(s->round, now, rounds)) {
                list_remove(it);
                list_add_tail(&old, it);
            }
        }
        mutex_unlock(&cp->mutex);
        struct list_node *n;
        while ((n = list_pop(&old)) != NULL)
            span_free(LIST_ENTRY(n, struct chunk_span, link));
    }
}

static void trim(uint32_t rounds)
{
    (void)pthread_once(&pool.once, pool_init);
    uint32_t now = atomic_fetch_add(&pool.round, 1) + 1;
    trim_classes(now, rounds);
    struct block *large = NULL;
    struct list arenas;
    list_init(&arenas);
    mutex_lock(&pool.mutex);
    LIST_FOR_EACH_SAFE(it, &pool.arenas)
    {
        struct chunk_arena *a = LIST_ENTRY(it, struct chunk_arena, link);
        if (a->used == 0 && a->huge && is_old(a->free_round, now, rounds)) {
            list_remove(it);
            list_add_tail(&arenas, it);
            pool.arena_count--;
        }
    }
    for (struct block **at = &pool.large; *at;) {
        struct block *b = *at;
        if (!is_old(b->round, now, rounds)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        pool.large_bytes -= b->bytes;
        b->next = large;
        large = b;
    }
    mutex_unlock(&pool.mutex);
    while (large) {
        struct block *b = large;
        large = b->next;
        large_unmap(b);
    }
    struct list_node *n;
    while ((n = list_pop(&arenas)) != NULL) {
        struct chunk_arena *a = LIST_ENTRY(n, struct chunk_arena, link);
        page_free(a->base, ARENA_BYTES);
        atomic_fetch_sub(&pool.held_bytes, ARENA_BYTES);
        mutex_lock(&pool.mutex);
        descriptor_free(&pool.spare_arenas, n);
        mutex_unlock(&pool.mutex);
    }
}

void chunk_trim(void)
{
    trim(TRIM_ROUNDS);
}

void chunk_release_all(void)
{
    trim(0);
}
