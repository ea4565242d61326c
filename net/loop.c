// SPDX-License-Identifier: Apache-2.0
// The event loop: its thread, its turn, posted tasks and timers.
//
// Posting: the poster pushes to the inbox and wakes the loop only if it sleeps. Before it polls, the loop
// says that it sleeps and then looks into the inbox once more; so a task is never left behind, and a busy
// loop costs no wake-up.
#include "net/world.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/chunk.h"
#include "core/base/mem.h"

static _Thread_local struct node_loop *current;

static void on_timer(uv_timer_t *t);
static void on_spin(uv_idle_t *h);

mono_us node_clock(struct node *n)
{
    return uv_hrtime() / 1000;
}

mono_us node_now(struct node_loop *l)
{
    if (!l->now)
        l->now = uv_hrtime() / 1000;
    return l->now;
}

bool node_loop_is_current(struct node_loop *l)
{
    return current == l;
}

struct node *node_loop_node(struct node_loop *l)
{
    return l->node;
}

void loop_touch(struct node_loop *l)
{
    l->active = true;
}

void loop_wake(struct node_loop *l)
{
    if (atomic_load(&l->sleeping) && atomic_exchange(&l->sleeping, 0))
        (void)uv_async_send(&l->wake);
}

void node_loop_post(struct node_loop *l, struct node_task *t)
{
    net_pending_add(l->node, 1);
    struct node_task *head = atomic_load(&l->inbox);
    do
        t->next = head;
    while (!atomic_compare_exchange_weak(&l->inbox, &head, t));
    loop_wake(l);
}

void loop_hold(struct node_loop *l, struct chunk *c)
{
    if (l->held_count == l->held_cap) {
        l->held_cap = l->held_cap ? l->held_cap * 2 : 64;
        l->held = mem_realloc(l->held, l->held_cap * sizeof *l->held);
    }
    l->held[l->held_count++] = c;
}

// ---- the turn
// --------------------------------------------------------------------------------------------------

static void run_tasks(struct node_loop *l)
{
    struct node_task *t = atomic_exchange(&l->inbox, NULL), *in_order = NULL;
    while (t) {
        struct node_task *next = t->next;
        t->next = in_order;
        in_order = t;
        t = next;
    }
    while (in_order) {
        t = in_order;
        in_order = t->next;
        loop_touch(l);
        t->run(t);
        net_pending_add(l->node, -1);
    }
}

static void run_jobs_done(struct node_loop *l)
{
    struct node_job *j = atomic_exchange(&l->jobs_done, NULL), *in_order = NULL;
    while (j) {
        struct node_job *next = j->next;
        j->next = in_order;
        in_order = j;
        j = next;
    }
    while (in_order) {
        j = in_order;
        in_order = j->next;
        loop_touch(l);
        j->done(j);
        net_pending_add(l->node, -1);
    }
}

static void run_resumed(struct node_loop *l)
{
    struct list now;
    list_init(&now);
    list_splice_tail(&now, &l->resumed);
    struct list_node *n;
    while ((n = list_pop(&now)) != NULL) {
        loop_touch(l);
        conn_parse_on(LIST_ENTRY(n, struct node_conn, resume_link));
    }
}

static void run_output(struct node_loop *l)
{
    struct list now;
    list_init(&now);
    list_splice_tail(&now, &l->dirty);
    struct list_node *n;
    while ((n = list_pop(&now)) != NULL)
        conn_flush(LIST_ENTRY(n, struct node_conn, dirty_link));
}

static void recycle(struct node_loop *l)
{
    for (size_t i = 0; i < l->held_count; i++)
        chunk_unref(l->held[i]);
    l->held_count = 0;
    l->recv_used = 0;
    l->tidy_bytes += l->turn_bytes;
    if (l->turn_bytes && !node_timer_running(&l->tidy))
        node_timer_start(l, &l->tidy, NET_TIDY_MS);
    l->turn_bytes = 0;
}

static bool has_tasks(struct node_loop *l)
{
    return atomic_load(&l->inbox) || atomic_load(&l->jobs_done);
}

static void loop_turn(struct node_loop *l)
{
    run_tasks(l);
    run_jobs_done(l);
    run_resumed(l);
    if (!l->active)
        return;
    for (struct node_hook *h = l->hooks; h; h = h->next)
        h->run(h);
    run_output(l);
    conn_bury(l);
    recycle(l);
    l->active = false;
    net_count(l->node, NET_TURNS, 1);
}

void loop_timer_update(struct node_loop *l)
{
    uint64_t next = wheel_next_ms(&l->wheel);
    if (next == l->timer_ms)
        return;
    if (next == UINT64_MAX) {
        // A set timer that has lost its reason fires once for nothing; that is cheaper than stopping it each
        // time.
        return;
    }
    if (l->timer_ms != UINT64_MAX && l->timer_ms <= next)
        return;
    l->timer_ms = next;
    uv_update_time(&l->uv);
    uint64_t now = uv_now(&l->uv);
    MUST(uv_timer_start(&l->timer, on_timer, next > now ? next - now : 0, 0) == 0);
}

static void on_timer(uv_timer_t *t)
{
    struct node_loop *l = t->data;
    l->timer_ms = UINT64_MAX;
    l->now = 0;
    uint64_t before = l->wheel.count;
    wheel_advance(&l->wheel, node_now(l) / 1000);
    if (before)
        loop_touch(l);
}

static void on_prepare(uv_prepare_t *h)
{
    struct node_loop *l = h->data;
    if (l->active || has_tasks(l) || !list_is_empty(&l->resumed))
        loop_turn(l);
    l->now = 0;
    loop_timer_update(l);
    atomic_store(&l->sleeping, 1);
    bool more =
        has_tasks(l) || !list_is_empty(&l->resumed) || !list_is_empty(&l->dirty) || !list_is_empty(&l->dying);
    if (more) {
        atomic_store(&l->sleeping, 0);
        if (!list_is_empty(&l->dirty) || !list_is_empty(&l->dying))
            loop_touch(l);
        if (!uv_is_active((uv_handle_t *)&l->spin))
            (void)uv_idle_start(&l->spin, on_spin);
    } else if (uv_is_active((uv_handle_t *)&l->spin)) {
        (void)uv_idle_stop(&l->spin);
    }
}

static void on_check(uv_check_t *h)
{
    struct node_loop *l = h->data;
    atomic_store(&l->sleeping, 0);
    loop_turn(l);
    if (l->stopping)
        uv_stop(&l->uv);
}

static void on_spin(uv_idle_t *h) {}

static void on_wake(uv_async_t *h) {}

// Gives back what a burst took, once it is over.
static void on_tidy(struct node_timer *t)
{
    struct node_loop *l = LIST_ENTRY(t, struct node_loop, tidy);
    bool quiet = l->tidy_bytes == 0;
    l->tidy_bytes = 0;
    if (quiet && l->recv && l->recv_used == 0) {
        chunk_unref(l->recv);
        l->recv = NULL;
        chunk_unref(l->scratch);
        l->scratch = NULL;
    }
    chunk_trim();
    // Some quiet rounds more, so that the pool's own rounds pass; then nothing ticks in an idle process.
    l->tidy_rounds = quiet ? l->tidy_rounds + 1 : 0;
    if (l->tidy_rounds < NET_TIDY_ROUNDS)
        node_timer_start(l, &l->tidy, NET_TIDY_MS);
    else
        l->tidy_rounds = 0;
}

static void on_pressure(struct node_timer *t)
{
    conn_starved_check(LIST_ENTRY(t, struct node_loop, pressure));
}

// ---- life
// ------------------------------------------------------------------------------------------------------

static void *loop_main(void *arg)
{
    struct node_loop *l = arg;
    current = l;
    (void)pthread_setname_np(pthread_self(), l->name);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    return NULL;
}

struct node_loop *node_loop_create(struct node *n, const char *name)
{
    struct node_loop *l = mem_zalloc(sizeof *l);
    l->magic = LOOP_MAGIC;
    l->node = n;
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    l->hooks_end = &l->hooks;
    list_init(&l->conns);
    list_init(&l->dirty);
    list_init(&l->resumed);
    list_init(&l->starved);
    list_init(&l->partial);
    list_init(&l->dying);
    list_init(&l->dials);
    l->timer_ms = UINT64_MAX;
    l->tidy.fire = on_tidy;
    l->pressure.fire = on_pressure;
    wheel_init(&l->wheel, uv_hrtime() / 1000000);
    MUST(uv_loop_init(&l->uv) == 0);
    MUST(uv_async_init(&l->uv, &l->wake, on_wake) == 0);
    MUST(uv_prepare_init(&l->uv, &l->prepare) == 0);
    MUST(uv_check_init(&l->uv, &l->check) == 0);
    MUST(uv_idle_init(&l->uv, &l->spin) == 0);
    MUST(uv_timer_init(&l->uv, &l->timer) == 0);
    l->prepare.data = l->check.data = l->timer.data = l;
    MUST(uv_prepare_start(&l->prepare, on_prepare) == 0);
    MUST(uv_check_start(&l->check, on_check) == 0);
    pthread_mutex_lock(&n->mutex);
    list_add_tail(&n->loops, &l->link);
    pthread_mutex_unlock(&n->mutex);
    int err = pthread_create(&l->thread, NULL, loop_main, l);
    if (err)
        node_stop(n, "cannot start a thread: %s", strerror(err));
    return l;
}

struct stop_task {
    struct node_task task;  // posted
    struct node_loop *loop; // to end
};

static void close_handle(uv_handle_t *h, void *arg)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void stop_loop(struct node_task *t)
{
    struct stop_task *s = LIST_ENTRY(t, struct stop_task, task);
    s->loop->stopping = true;
}

void loop_stop_join(struct node_loop *l)
{
    struct stop_task s = {.task.run = stop_loop, .loop = l};
    node_loop_post(l, &s.task);
    pthread_join(l->thread, NULL);
    uv_walk(&l->uv, close_handle, NULL);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    (void)uv_loop_close(&l->uv);
    for (size_t i = 0; i < l->held_count; i++)
        chunk_unref(l->held[i]);
    mem_free(l->held);
    chunk_unref(l->recv);
    chunk_unref(l->scratch);
    mem_free(l);
}

struct hook_task {
    struct node_task task;  // posted
    struct node_loop *loop; // where to
    struct node_hook *hook; // what
};

static void append_hook(struct node_loop *l, struct node_hook *h)
{
    h->next = NULL;
    *l->hooks_end = h;
    l->hooks_end = &h->next;
}

static void run_hook_task(struct node_task *t)
{
    struct hook_task *h = LIST_ENTRY(t, struct hook_task, task);
    append_hook(h->loop, h->hook);
    mem_free(h);
}

void node_loop_add_turn_end(struct node_loop *l, struct node_hook *h)
{
    if (node_loop_is_current(l)) {
        append_hook(l, h);
        return;
    }
    struct hook_task *t = mem_alloc(sizeof *t);
    *t = (struct hook_task){.task.run = run_hook_task, .loop = l, .hook = h};
    node_loop_post(l, &t->task);
}

void node_timer_start(struct node_loop *l, struct node_timer *t, uint64_t after_ms)
{
    MUST(node_loop_is_current(l));
    // Rounded up: a timer never fires early.
    wheel_start(&l->wheel, t, (node_now(l) + 999) / 1000 + after_ms);
}

void node_timer_stop(struct node_loop *l, struct node_timer *t)
{
    MUST(node_loop_is_current(l) || l->stopping);
    wheel_stop(&l->wheel, t);
}
