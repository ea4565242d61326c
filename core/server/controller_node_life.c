// SPDX-License-Identifier: Apache-2.0
// The controller half's life: start, leadership, committed images, timers, observers of the log, and the end.
#include "core/server/controller_node_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"

#define OF(ptr, field)                                                                                       \
    ((struct controller_node *)(void *)((char *)(ptr)-offsetof(struct controller_node, field)))

// ---- timers ---------------------------------------------------------------------------------------------
static void tick_cb(struct node_timer *t)
{
    struct controller_node *cn = OF(t, tick);
    if (cn->state == CONTROLLER_SERVING)
        controller_node_run(cn, &controller_op_expire);
    node_timer_start(cn->opts.loop, &cn->tick, CONTROLLER_TICK_MS);
}

static void noop_cb(struct node_timer *t)
{
    struct controller_node *cn = OF(t, noop_timer);
    mono_us idle = node_now(cn->opts.loop) - cn->last_proposal;
    if (cn->state == CONTROLLER_SERVING && list_is_empty(&cn->batches) &&
        idle >= (mono_us)cn->opts.idle_noop_ms * 1000)
        (void)quorum_propose_noop(cn->quorum); // refused: the next one will do
    node_timer_start(cn->opts.loop, &cn->noop_timer, cn->opts.idle_noop_ms);
}

static void balance_cb(struct node_timer *t)
{
    struct controller_node *cn = OF(t, balance_timer);
    if (cn->state == CONTROLLER_SERVING)
        controller_node_run(cn, &controller_op_balance);
    node_timer_start(cn->opts.loop, &cn->balance_timer, cn->opts.balance_interval_ms);
}

static void unclean_cb(struct node_timer *t)
{
    struct controller_node *cn = OF(t, unclean_timer);
    if (cn->state == CONTROLLER_SERVING)
        controller_node_run(cn, &controller_op_unclean);
    node_timer_start(cn->opts.loop, &cn->unclean_timer, cn->opts.unclean_interval_ms);
}

static void turn_end_cb(struct node_hook *h)
{
    struct controller_node *cn = OF(h, turn_end);
    if (cn->quorum && !list_is_empty(&cn->queue))
        controller_node_process(cn);
}

// ---- leadership -----------------------------------------------------------------------------------------
void controller_node_activated(struct controller_node *cn)
{
    if (cn->state != CONTROLLER_ACTIVATING)
        return;
    cn->state = CONTROLLER_SERVING;
    log_info(cn->opts.log, "controller", "this node is the active controller", "epoch=%d offset=%lld",
             quorum_term(cn->quorum), (long long)image_offset(cn->committed));
    controller_node_probe_brokers(cn);
}

static void resign(struct controller_node *cn)
{
    if (cn->state == CONTROLLER_FOLLOWING)
        return;
    cn->state = CONTROLLER_FOLLOWING;
    controller_node_drop_watches(cn);
    image_unref(cn->latest);
    cn->latest = NULL;
    // What is in flight is answered by its own callback (ERR_CANCELED), or, if it was committed after all, as
    // done.
    controller_node_fail_list(&cn->queue, KE_NOT_CONTROLLER);
    log_info(cn->opts.log, "controller", "this node is no longer the active controller", "epoch=%d",
             quorum_term(cn->quorum));
}

static void leadership_hook(void *data, bool active, node_id leader, leader_epoch term)
{
    struct controller_node *cn = data;
    if (leader >= 0 && cn->opts.on_leader)
        cn->opts.on_leader(cn->opts.data, leader);
    if (!active) {
        resign(cn);
        log_info(cn->opts.log, "controller", "leadership changed", "leader=%d epoch=%d", leader, term);
        return;
    }
    if (cn->state != CONTROLLER_FOLLOWING)
        resign(cn); // another term of our own: what was computed before is void
    cn->state = CONTROLLER_ACTIVATING;
    MUST(list_is_empty(&cn->queue));
    cn->latest = quorum_image(cn->quorum);
    controller_sessions_reset(&cn->sessions, node_now(cn->opts.loop));
    controller_node_run(cn, &controller_op_activate);
}

// ---- committed images and who waits for them ------------------------------------------------------------
static void wake_waiters(struct controller_node *cn)
{
    struct list woken;
    list_init(&woken);
    list_splice_tail(&woken, &cn->waiters);
    for (struct list_node *n = list_pop(&woken); n; n = list_pop(&woken)) {
        struct controller_waiter *w = LIST_ENTRY(n, struct controller_waiter, link);
        node_timer_stop(cn->opts.loop, &w->timer);
        w->wake(w);
    }
}

static void image_hook(void *data, struct image *image, log_offset end_offset, leader_epoch epoch)
{
    struct controller_node *cn = data;
    image_unref(cn->committed);
    cn->committed = image_ref(image);
    if (cn->state != CONTROLLER_FOLLOWING && list_is_empty(&cn->batches)) {
        image_unref(cn->latest);
        cn->latest = image_ref(image);
    }
    if (cn->opts.on_image)
        cn->opts.on_image(cn->opts.data, image);
}

// What observers may be given grew: it follows the image by the time of this disk's own sync.
static void high_watermark_hook(void *data, log_offset high_watermark)
{
    struct controller_node *cn = data;
    cn->high_watermark = high_watermark;
    wake_waiters(cn);
}

static void waiter_timer_cb(struct node_timer *t)
{
    struct controller_waiter *w =
        (struct controller_waiter *)(void *)((char *)t - offsetof(struct controller_waiter, timer));
    list_remove(&w->link);
    w->wake(w);
}

void controller_node_wait(struct controller_node *cn, struct controller_waiter *w, uint32_t wait_ms)
{
    w->node = cn;
    w->timer = (struct node_timer){.fire = waiter_timer_cb};
    list_add_tail(&cn->waiters, &w->link);
    node_timer_start(cn->opts.loop, &w->timer, wait_ms);
}

// ---- observers ------------------------------------------------------------------------------------------
void controller_node_observe(struct controller_node *cn, node_id id, struct uuid directory_id,
                             log_offset log_end_offset)
{
    time_ms now = node_wall(cn->opts.node);
    struct controller_observer *o = NULL;
    for (unsigned i = 0; i < cn->observers_count && !o; i++)
        if (cn->observers[i].id == id && uuid_equal(cn->observers[i].directory_id, directory_id))
            o = &cn->observers[i];
    if (!o && cn->observers_count < CONTROLLER_OBSERVERS_MAX)
        o = &cn->observers[cn->observers_count++];
    if (!o) {
        o = &cn->observers[0];
        for (unsigned i = 1; i < cn->observers_count; i++)
            if (cn->observers[i].last_fetch_ms < o->last_fetch_ms)
                o = &cn->observers[i];
    }
    if (o->id != id || !uuid_equal(o->directory_id, directory_id))
        *o = (struct controller_observer){.id = id, .directory_id = directory_id, .last_caught_up_ms = -1};
    o->log_end_offset = log_end_offset;
    o->last_fetch_ms = now;
    if (log_end_offset >= quorum_high_watermark(cn->quorum))
        o->last_caught_up_ms = now;
}

const struct controller_observer *controller_node_observers(const struct controller_node *cn, unsigned *count)
{
    *count = cn->observers_count;
    return cn->observers;
}

// ---- reading --------------------------------------------------------------------------------------------
struct quorum *controller_node_quorum(struct controller_node *cn)
{
    return cn->quorum;
}

struct image *controller_node_image(struct controller_node *cn)
{
    return cn->committed;
}

const struct controller_opts *controller_node_opts_of(struct controller_node *cn)
{
    return cn->opts.controller;
}

const struct server_config *controller_node_config(struct controller_node *cn)
{
    return cn->opts.config;
}

struct node_loop *controller_node_loop(struct controller_node *cn)
{
    return cn->opts.loop;
}

bool controller_node_is_serving(const struct controller_node *cn)
{
    return cn->state == CONTROLLER_SERVING;
}

// ---- life -----------------------------------------------------------------------------------------------
static void stopped_hook(void *data)
{
    struct controller_node *cn = data;
    if (cn->opts.stopped)
        cn->opts.stopped(cn->opts.data);
}

int controller_node_create(const struct controller_node_opts *opts, struct controller_node **out,
                           struct errmsg *msg)
{
    MUST(node_loop_is_current(opts->loop));
    struct controller_node *cn = mem_zalloc(sizeof *cn);
    cn->opts = *opts;
    cn->committed = image_empty();
    list_init(&cn->queue);
    list_init(&cn->batches);
    list_init(&cn->watches);
    list_init(&cn->waiters);
    controller_sessions_init(&cn->sessions, node_now(opts->loop));
    struct quorum_opts q = *opts->quorum;
    q.hooks = (struct quorum_hooks){.data = cn,
                                    .on_image = image_hook,
                                    .on_high_watermark = high_watermark_hook,
                                    .on_leadership = leadership_hook,
                                    .stopped = stopped_hook};
    int err = quorum_create(&q, &cn->quorum, msg);
    if (err != 0) {
        controller_sessions_fini(&cn->sessions);
        image_unref(cn->committed);
        mem_free(cn);
        return err;
    }
    cn->kraft_version = opts->quorum->static_voters ? 0 : 1;
    cn->opts.quorum = NULL; // the caller's, not needed any more
    cn->turn_end.run = turn_end_cb;
    node_loop_add_turn_end(opts->loop, &cn->turn_end);
    cn->tick.fire = tick_cb;
    node_timer_start(opts->loop, &cn->tick, CONTROLLER_TICK_MS);
    cn->noop_timer.fire = noop_cb;
    cn->balance_timer.fire = balance_cb;
    cn->unclean_timer.fire = unclean_cb;
    if (opts->idle_noop_ms)
        node_timer_start(opts->loop, &cn->noop_timer, opts->idle_noop_ms);
    if (opts->balance_interval_ms)
        node_timer_start(opts->loop, &cn->balance_timer, opts->balance_interval_ms);
    if (opts->unclean_interval_ms)
        node_timer_start(opts->loop, &cn->unclean_timer, opts->unclean_interval_ms);
    *out = cn;
    return 0;
}

void controller_node_shutdown(struct controller_node *cn)
{
    MUST(!cn->stopping);
    cn->stopping = true;
    node_timer_stop(cn->opts.loop, &cn->tick);
    node_timer_stop(cn->opts.loop, &cn->noop_timer);
    node_timer_stop(cn->opts.loop, &cn->balance_timer);
    node_timer_stop(cn->opts.loop, &cn->unclean_timer);
    wake_waiters(cn);
    quorum_shutdown(cn->quorum);
}

void controller_node_destroy(struct controller_node *cn)
{
    resign(cn);
    wake_waiters(cn);
    quorum_destroy(cn->quorum);
    cn->quorum = NULL;
    controller_sessions_fini(&cn->sessions);
    image_unref(cn->committed);
}

// The turn-end hook stays with the loop, so the memory outlives it.
void controller_node_free(struct controller_node *cn)
{
    MUST(cn->quorum == NULL);
    mem_free(cn);
}
