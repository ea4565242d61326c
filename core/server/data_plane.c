// SPDX-License-Identifier: Apache-2.0
// Collects a turn's appends per partition, flushes them, continues what waited.
#include "core/server/data_plane.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/server/broker.h"
#include "storage/log_dir.h"

struct append_run {
    struct partition *partition;       // one reference
    struct append_entry *first, *last; // batches in order of arrival
    uint32_t next;                     // next run + 1 of the bucket; 0 none
};

// ---- waking ---------------------------------------------------------------------------------------------

void waiter_push(struct waiter *w, struct wake_list *wl)
{
    if (atomic_exchange_explicit(&w->pushed, true, memory_order_acq_rel)) {
        return;
    }
    struct data_plane *d = w->home;
    struct waiter *head = atomic_load_explicit(&d->woken, memory_order_relaxed);
    do {
        w->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&d->woken, &head, w, memory_order_acq_rel,
                                                    memory_order_relaxed));
    for (unsigned i = 0; i < wl->count; i++) {
        if (wl->planes[i] == d) {
            return;
        }
    }
    MUST(wl->count < WAKE_PLANES_MAX);
    wl->planes[wl->count++] = d;
}

void wake_list_send(struct wake_list *wl)
{
    for (unsigned i = 0; i < wl->count; i++) {
        struct data_plane *d = wl->planes[i];
        // On its own loop the end of the turn takes care of it.
        if (!node_loop_is_current(d->loop->requests.loop) && !atomic_exchange(&d->woken_posted, true)) {
            node_loop_post(d->loop->requests.loop, &d->woken_task);
        }
    }
    wl->count = 0;
}

static void run_woken(struct data_plane *d)
{
    struct waiter *w = atomic_exchange_explicit(&d->woken, NULL, memory_order_acq_rel);
    struct waiter *in_order = NULL; // the stack has the youngest first
    while (w != NULL) {
        struct waiter *next = w->next;
        w->next = in_order;
        in_order = w;
        w = next;
    }
    while (in_order != NULL) {
        w = in_order;
        in_order = w->next;
        w->next = NULL;
        atomic_store_explicit(&w->pushed, false, memory_order_release);
        w->wake(w); // may free itself; the others stay in our list
    }
}

static void woken_task(struct node_task *t)
{
    struct data_plane *d = (struct data_plane *)(void *)((char *)t - offsetof(struct data_plane, woken_task));
    atomic_store(&d->woken_posted, false); // the end of this turn runs them
}

// ---- appends --------------------------------------------------------------------------------------------

void data_plane_append(struct data_plane *d, struct partition *p, struct append_entry *e)
{
    e->next = NULL;
    uint32_t *bucket = &d->buckets[hash_u64((uint64_t)(uintptr_t)p) & (RUN_BUCKETS - 1)];
    for (uint32_t at = *bucket; at != 0; at = d->runs[at - 1].next) {
        struct append_run *r = &d->runs[at - 1];
        if (r->partition == p) {
            r->last->next = e;
            r->last = e;
            return;
        }
    }
    if (d->runs_count == d->runs_cap) {
        d->runs_cap = d->runs_cap == 0 ? 64 : d->runs_cap * 2;
        d->runs = mem_realloc(d->runs, d->runs_cap * sizeof *d->runs);
    }
    d->runs[d->runs_count++] =
        (struct append_run){.partition = partition_ref(p), .first = e, .last = e, .next = *bucket};
    *bucket = d->runs_count;
}

void data_plane_add_op(struct data_plane *d, struct append_op *op)
{
    op->next = NULL;
    if (d->ops_last != NULL) {
        d->ops_last->next = op;
    } else {
        d->ops_first = op;
    }
    d->ops_last = op;
}

#define FULL_PERIOD_US (10ull * 1000000) // one line in this time tells of a full disk

// Every refused write would say the same.
static void tell_full(struct data_plane *d, struct partition *p)
{
    struct broker *b = d->loop->broker;
    if (!log_limit_allow(&d->full_limit, node_clock(b->node), FULL_PERIOD_US, 1, NULL)) {
        return;
    }
    mutex_lock(&p->lock);
    const char *path = p->log != NULL ? log_dir_path(plog_dir(p->log)) : "";
    mutex_unlock(&p->lock);
    log_error(b->log, "log",
              "the disk is full: produce is refused until space is freed; reads and deletes go on", "dir=%s",
              path);
}

void data_plane_flush(struct data_plane *d)
{
    if (d->ops_first == NULL) {
        return;
    }
    struct wake_list wl = {.count = 0};
    time_ms now = data_plane_wall(d);
    for (unsigned i = 0; i < d->runs_count; i++) {
        struct append_run *r = &d->runs[i];
        int err = partition_append(r->partition, r->first, now, &wl);
        if (err == ERR_NOSPACE) {
            tell_full(d, r->partition);
        }
        d->buckets[hash_u64((uint64_t)(uintptr_t)r->partition) & (RUN_BUCKETS - 1)] = 0;
        partition_unref(r->partition);
    }
    d->runs_count = 0;
    wake_list_send(&wl);
    struct append_op *op = d->ops_first;
    d->ops_first = d->ops_last = NULL;
    while (op != NULL) {
        struct append_op *next = op->next;
        op->appended(op);
        op = next;
    }
}

static void turn_end(struct node_hook *h)
{
    struct data_plane *d = (struct data_plane *)(void *)((char *)h - offsetof(struct data_plane, turn_end));
    data_plane_flush(d);
    if (atomic_load_explicit(&d->woken, memory_order_relaxed) != NULL) {
        run_woken(d);
    }
    d->wall = 0;
}

time_ms data_plane_wall(struct data_plane *d)
{
    if (d->wall == 0) {
        d->wall = node_wall(d->loop->broker->node);
    }
    return d->wall;
}

struct data_plane *data_plane_create(struct broker_loop *loop)
{
    struct data_plane *d = mem_zalloc(sizeof *d);
    d->loop = loop;
    d->turn_end.run = turn_end;
    d->woken_task.run = woken_task;
    d->codecs = codec_cache_create();
    atomic_init(&d->woken, NULL);
    node_loop_add_turn_end(loop->requests.loop, &d->turn_end);
    return d;
}

void data_plane_destroy(struct data_plane *d)
{
    if (d != NULL) {
        MUST(d->ops_first == NULL);
        codec_cache_destroy(d->codecs);
        mem_free(d->runs);
        mem_free(d);
    }
}
