// SPDX-License-Identifier: Apache-2.0
// Loops, tasks, timers and pools of the node interface over virtual time.
#include <stdio.h>
#include "core/base/assert.h"
#include "tests/sim/world/world_priv.h"

mono_us node_now(struct node_loop *loop)
{
    return loop->node->w->now;
}

mono_us node_clock(struct node *n)
{
    return n->w->now;
}

time_ms node_wall(struct node *n)
{
    return (time_ms)(1700000000000ull + n->w->now / 1000);
}

// ---- loops and tasks
// -------------------------------------------------------------------------------------------
struct node_loop *node_loop_create(struct node *n, const char *name)
{
    struct node_loop *l = mem_zalloc(sizeof *l);
    l->node = n;
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    l->next = n->loops;
    n->loops = l;
    return l;
}

struct node *node_loop_node(struct node_loop *loop)
{
    return loop->node;
}

bool node_loop_is_current(struct node_loop *loop)
{
    return loop->node->w->loop == loop;
}

void node_loop_add_turn_end(struct node_loop *loop, struct node_hook *h)
{
    struct node_hook **at = &loop->hooks;
    while (*at)
        at = &(*at)->next;
    h->next = NULL;
    *at = h;
}

void world_turn_end(struct node_loop *loop)
{
    for (struct node_hook *h = loop->hooks; h; h = h->next)
        h->run(h);
}

struct posted {
    struct node_loop *loop;
    struct node_task *task;
};

static void run_task(void *data)
{
    struct node_task *t = data;
    t->run(t);
}

static void task_event(struct world *w, void *data)
{
    struct posted p = *(struct posted *)data;
    world_release(w, data);
    (void)world_in_context(w, p.loop->node, p.loop, run_task, p.task);
}

void node_loop_post(struct node_loop *loop, struct node_task *t)
{
    struct world *w = loop->node->w;
    struct posted *p = world_alloc(w, sizeof *p);
    mono_us at = w->now + world_between(w, 0, w->times.post_us_max);
    if (at < loop->last_post)
        at = loop->last_post;
    loop->last_post = at;
    *p = (struct posted){loop, t};
    world_schedule(w, at, loop->node, task_event, p);
}

// ---- timers
// ----------------------------------------------------------------------------------------------------
struct timer_shot {
    struct node_loop *loop;
    uint64_t id;
};

static void run_timer(void *data)
{
    struct node_timer *t = data;
    t->fire(t);
}

static size_t timer_find(const struct node_loop *loop, const struct node_timer *t, uint64_t id)
{
    size_t i = 0;
    while (i < loop->timers_count && (t ? loop->timers[i].t != t : loop->timers[i].id != id))
        i++;
    return i;
}

static void timer_forget(struct node_loop *loop, size_t i)
{
    loop->timers[i].t->prev_link = NULL;
    loop->timers[i] = loop->timers[--loop->timers_count];
}

static void timer_event(struct world *w, void *data)
{
    struct timer_shot s = *(struct timer_shot *)data;
    world_release(w, data);
    size_t i = timer_find(s.loop, NULL, s.id);
    if (i == s.loop->timers_count)
        return; // stopped or started anew
    struct node_timer *t = s.loop->timers[i].t;
    timer_forget(s.loop, i);
    (void)world_in_context(w, s.loop->node, s.loop, run_timer, t);
}

void node_timer_start(struct node_loop *loop, struct node_timer *t, uint64_t after_ms)
{
    struct world *w = loop->node->w;
    node_timer_stop(loop, t);
    if (loop->timers_count == loop->timers_cap) {
        loop->timers_cap = loop->timers_cap ? loop->timers_cap * 2 : 16;
        loop->timers = mem_realloc(loop->timers, loop->timers_cap * sizeof *loop->timers);
    }
    struct timer_shot *s = world_alloc(w, sizeof *s);
    *s = (struct timer_shot){loop, ++w->timer_ids};
    t->prev_link = &t->next;
    loop->timers[loop->timers_count++] = (struct world_timer){t, s->id};
    world_schedule(w, w->now + after_ms * 1000 + world_between(w, 0, 50), loop->node, timer_event, s);
}

void node_timer_stop(struct node_loop *loop, struct node_timer *t)
{
    if (!t->prev_link)
        return;
    size_t i = timer_find(loop, t, 0);
    MUST(i < loop->timers_count);
    timer_forget(loop, i);
}

// ---- pools
// -----------------------------------------------------------------------------------------------------
struct node_pool *node_pool_create(struct node *n, const char *name, unsigned threads)
{
    struct node_pool *p = mem_zalloc(sizeof *p);
    (void)name;
    p->node = n;
    p->threads = threads < 8 ? threads : 8;
    p->next = n->pools;
    n->pools = p;
    return p;
}

static void run_work(void *data)
{
    struct node_job *j = data;
    j->work(j);
}

static void run_done(void *data)
{
    struct node_job *j = data;
    j->done(j);
}

struct queued_job {
    struct node *node;
    struct node_job *job;
};

static void done_event(struct world *w, void *data)
{
    struct queued_job q = *(struct queued_job *)data;
    world_release(w, data);
    (void)world_in_context(w, q.node, q.job->loop, run_done, q.job);
}

static void work_event(struct world *w, void *data)
{
    struct queued_job q = *(struct queued_job *)data;
    struct node_loop *loop = q.job->loop;
    bool has_done = q.job->done != NULL;
    if (!world_in_context(w, q.node, NULL, run_work, q.job) || !has_done) {
        world_release(w, data);
        return;
    }
    mono_us at = w->now + world_between(w, 1, 5 + w->times.post_us_max);
    if (at < loop->last_post)
        at = loop->last_post;
    loop->last_post = at;
    world_schedule(w, at, q.node, done_event, data);
}

void node_pool_run(struct node_pool *pool, struct node_job *j)
{
    struct world *w = pool->node->w;
    struct world_host *h = pool->node->host;
    struct queued_job *q = world_alloc(w, sizeof *q);
    unsigned best = 0;
    for (unsigned i = 1; i < pool->threads; i++) {
        if (pool->free_at[i] < pool->free_at[best])
            best = i;
    }
    mono_us start = pool->free_at[best] > w->now ? pool->free_at[best] : w->now;
    mono_us took = h->disk_us_max ? world_between(w, h->disk_us_min, h->disk_us_max)
                                  : world_between(w, w->times.disk_us_min, w->times.disk_us_max);
    pool->free_at[best] = start + took;
    *q = (struct queued_job){pool->node, j};
    world_schedule(w, start + took, pool->node, work_event, q);
}
