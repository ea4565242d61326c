// SPDX-License-Identifier: Apache-2.0
// The event queue, hosts and crashes of the simulated world.
#include "tests/sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/assert.h"
#include "tests/sim/world/world_priv.h"

// The interface is found by link names, so the world that a node belongs to hangs from the node; this one
// pointer serves the memory hooks.
static struct world *the_world;

struct world *world_current(void)
{
    return the_world;
}

// ---- random
// ----------------------------------------------------------------------------------------------------
static uint64_t next_random(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t world_random(struct world *w)
{
    return next_random(&w->rng);
}

uint64_t world_between(struct world *w, uint64_t min, uint64_t max)
{
    return min + (max > min ? world_random(w) % (max - min + 1) : 0);
}

uint64_t node_random_u64(struct node *n)
{
    return next_random(&n->rng);
}

void node_random(struct node *n, void *buf, size_t len)
{
    uint8_t *p = buf;
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)next_random(&n->rng);
}

// ---- events
// ----------------------------------------------------------------------------------------------------
static bool before(const struct world_event *a, const struct world_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void world_schedule(struct world *w, mono_us at, struct node *node, void (*run)(struct world *, void *),
                    void *data)
{
    if (w->heap_count == w->heap_cap) {
        w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 256;
        w->heap = realloc(w->heap, w->heap_cap * sizeof *w->heap);
        MUST(w->heap != NULL);
    }
    size_t i = w->heap_count++;
    struct world_event e = {at < w->now ? w->now : at, w->seq++, node, node ? node->life : 0, run, data};
    while (i > 0 && before(&e, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
}

static struct world_event pop(struct world *w)
{
    struct world_event top = w->heap[0], last = w->heap[--w->heap_count];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= w->heap_count)
            break;
        if (c + 1 < w->heap_count && before(&w->heap[c + 1], &w->heap[c]))
            c++;
        if (!before(&w->heap[c], &last))
            break;
        w->heap[i] = w->heap[c];
        i = c;
    }
    if (w->heap_count)
        w->heap[i] = last;
    return top;
}

// A node of an earlier life: its struct is kept until the world ends, so that the pointer may be looked at.
static bool is_stale(const struct world_event *e)
{
    return e->node && (e->node->dead || e->node->life != e->life);
}

bool world_step(struct world *w)
{
    if (w->heap_count == 0)
        return false;
    struct world_event e = pop(w);
    w->now = e.at;
    if (is_stale(&e))
        world_release(w, e.data);
    else
        e.run(w, e.data);
    return true;
}

void world_run(struct world *w, uint64_t ms)
{
    mono_us end = w->now + ms * 1000;
    while (w->heap_count && w->heap[0].at <= end)
        (void)world_step(w);
    w->now = end;
}

bool world_run_until(struct world *w, uint64_t ms, bool (*done)(void *data), void *data)
{
    mono_us end = w->now + ms * 1000;
    while (!done(data)) {
        if (!w->heap_count || w->heap[0].at > end)
            return false;
        (void)world_step(w);
    }
    return true;
}

mono_us world_now(const struct world *w)
{
    return w->now;
}

void world_set_times(struct world *w, const struct world_times *t)
{
    w->times = *t;
}

// ---- context
// ---------------------------------------------------------------------------------------------------
bool world_in_context(struct world *w, struct node *n, struct node_loop *loop, void (*fn)(void *), void *data)
{
    jmp_buf here, *outer = w->escape;
    struct node *was = w->current;
    struct node_loop *was_loop = w->loop;
    volatile bool ok = true;
    w->escape = &here;
    w->current = n;
    w->loop = loop;
    if (setjmp(here) == 0) {
        fn(data);
        if (loop)
            world_turn_end(loop);
    } else {
        ok = false;
    }
    w->escape = outer;
    w->current = was;
    w->loop = was_loop;
    if (!ok) {
        vfs_faulty_kill(n->host->disk);
        world_host_lost(n->host);
    }
    return ok;
}

void node_stop(struct node *n, const char *fmt, ...)
{
    struct world *w = n->w;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(n->host->stopped, sizeof n->host->stopped, fmt, args);
    va_end(args);
    MUST(w->escape != NULL && w->current == n);
    longjmp(*w->escape, 1);
}

bool world_call(struct node *n, void (*fn)(void *data), void *data)
{
    return world_in_context(n->w, n, n->loops, fn, data);
}

// ---- hosts
// -----------------------------------------------------------------------------------------------------
struct world_host *world_host_new(struct world *w, const char *name)
{
    MUST(w->hosts_count < WORLD_HOSTS_MAX);
    struct world_host *h = world_alloc(w, sizeof *h);
    memset(h, 0, sizeof *h);
    h->w = w;
    h->number = w->hosts_count;
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    h->disk = vfs_faulty_new(world_random(w));
    world_disk_init(h);
    w->hosts[w->hosts_count++] = h;
    return h;
}

struct vfs_faulty *world_host_disk(struct world_host *h)
{
    return h->disk;
}

struct vfs *world_host_fs(struct world_host *h)
{
    return &h->fs.fs;
}

void world_host_set_disk_us(struct world_host *h, uint32_t min, uint32_t max)
{
    h->disk_us_min = min;
    h->disk_us_max = max;
}

struct node *world_boot(struct world_host *h)
{
    MUST(h->node == NULL);
    struct node *n = calloc(1, sizeof *n); // outlives its own life: events look at it
    MUST(n != NULL);
    n->w = h->w;
    n->host = h;
    n->earlier = h->w->nodes;
    h->w->nodes = n;
    n->life = ++h->w->lives;
    n->rng = world_random(h->w);
    h->node = n;
    h->stopped[0] = 0;
    return n;
}

struct node *world_host_node(struct world_host *h)
{
    return h->node;
}

const char *world_host_stopped(const struct world_host *h)
{
    return h->stopped[0] ? h->stopped : NULL;
}

void world_host_forget_stop(struct world_host *h)
{
    h->stopped[0] = 0;
}

uint64_t world_host_memory(const struct world_host *h)
{
    return h->node ? h->node->heap_bytes : 0;
}

void world_host_lost(struct world_host *h)
{
    struct node *n = h->node;
    MUST(n != NULL && h->w->current != n);
    n->dead = true;
    h->node = NULL;
    world_conns_drop(n);
    world_disk_drop(h);
    world_heap_drop(n);
}

void world_crash(struct world_host *h, bool machine)
{
    if (!h->node)
        return;
    world_host_lost(h);
    if (machine)
        vfs_faulty_crash(h->disk, world_random(h->w));
    else
        vfs_faulty_kill(h->disk);
}

// ---- network faults
// --------------------------------------------------------------------------------------------
bool world_is_cut(const struct world *w, const struct world_host *a, const struct world_host *b)
{
    return w->cut[a->number][b->number];
}

void world_cut(struct world *w, struct world_host *a, struct world_host *b, bool cut)
{
    w->cut[a->number][b->number] = cut;
    w->cut[b->number][a->number] = cut;
}

void world_cut_all(struct world *w, struct world_host *a, bool cut)
{
    for (unsigned i = 0; i < w->hosts_count; i++) {
        if (w->hosts[i] != a)
            world_cut(w, a, w->hosts[i], cut);
    }
}

void world_heal(struct world *w)
{
    memset(w->cut, 0, sizeof w->cut);
    for (unsigned i = 0; i < w->hosts_count; i++)
        world_host_set_disk_us(w->hosts[i], 0, 0);
}

mono_us world_net_delay(struct world *w)
{
    return world_between(w, w->times.net_us_min, w->times.net_us_max);
}

// ---- life
// ------------------------------------------------------------------------------------------------------
struct world *world_new(uint64_t seed)
{
    MUST(the_world == NULL);
    struct world *w = calloc(1, sizeof *w);
    MUST(w != NULL);
    w->rng = seed;
    w->now = 1000000;
    w->times = (struct world_times){100, 1000, 100, 2000, 20};
    the_world = w;
    world_heap_init(w);
    return w;
}

void world_free(struct world *w)
{
    for (unsigned i = 0; i < w->hosts_count; i++)
        world_crash(w->hosts[i], false);
    while (w->heap_count) {
        struct world_event e = pop(w);
        world_release(w, e.data);
    }
    while (w->conns) {
        struct node_conn *c = w->conns;
        w->conns = c->next;
        world_release(w, c->in);
        world_release(w, c);
    }
    for (unsigned i = 0; i < w->hosts_count; i++) {
        vfs_faulty_free(w->hosts[i]->disk);
        world_release(w, w->hosts[i]);
    }
    while (w->nodes) {
        struct node *n = w->nodes;
        w->nodes = n->earlier;
        free(n);
    }
    mem_set_hooks(NULL);
    free(w->heap);
    the_world = NULL;
    free(w);
}
