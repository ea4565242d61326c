// SPDX-License-Identifier: Apache-2.0
// Brokers whose process has gone: their heartbeat connection closes and a dial to their listener is refused.
//
// A mere disconnect means nothing (a network hiccup, a busy host): only a refused dial says that nobody
// listens there any more, and then the broker is fenced at once instead of after its session timeout. A
// broker that has connected anew meanwhile, registered anew or is fenced already is left alone.
#include "core/server/controller_node_priv.h"

#include "core/base/mem.h"

struct broker_watch {
    struct request_watch watch;   // first member; in the connection's list
    struct list_node link;        // node->watches
    struct controller_node *node; // whose
    broker_id id;                 // broker that heartbeats over the connection
    broker_epoch epoch;           // its registration
};

static struct broker_watch *find(struct controller_node *cn, broker_id id, const struct request_conn *conn)
{
    LIST_FOR_EACH(n, &cn->watches)
    {
        struct broker_watch *w = LIST_ENTRY(n, struct broker_watch, link);
        if (conn ? w->watch.conn == conn : w->id == id)
            return w;
    }
    return NULL;
}

static void dial_done(struct node_conn *c, int err, void *data)
{
    struct broker_watch *w = data;
    struct controller_node *cn = w->node;
    if (c)
        node_conn_close(c, false);
    if (err == ERR_REFUSED && cn->state == CONTROLLER_SERVING && !find(cn, w->id, NULL)) {
        log_warn(cn->opts.log, "controller", "the broker's process is gone, fencing it",
                 "broker=%d epoch=%lld", w->id, (long long)w->epoch);
        controller_node_fence(cn, w->id, w->epoch);
    }
    mem_free(w);
}

// Dials the broker's first listener; `w` is free afterwards.
static void dial_broker(struct broker_watch *w, const struct image_broker *b)
{
    char *host = slice_dup_str(b->endpoints[0].host);
    struct node_dial d = {.host = host,
                          .port = b->endpoints[0].port,
                          .timeout_ms = CONTROLLER_DIAL_MS,
                          .limits = {.frame_bytes_max = 1024},
                          .done = dial_done,
                          .data = w};
    node_dial(w->node->opts.loop, &d);
    mem_free(host);
}

static void gone(struct request_watch *watch)
{
    struct broker_watch *w = (struct broker_watch *)watch;
    struct controller_node *cn = w->node;
    list_remove(&w->link);
    const struct image_broker *b =
        cn->state == CONTROLLER_SERVING ? image_broker(cn->committed, w->id) : NULL;
    if (!b || b->epoch != w->epoch || b->fenced || b->endpoints_count == 0 || cn->stopping ||
        find(cn, w->id, NULL)) {
        mem_free(w);
        return;
    }
    dial_broker(w, b);
}

void controller_node_probe_brokers(struct controller_node *cn)
{
    for (const struct image_broker *b = image_broker_next(cn->committed, NULL); b;
         b = image_broker_next(cn->committed, b)) {
        if (b->fenced || b->endpoints_count == 0)
            continue;
        struct broker_watch *w = mem_zalloc(sizeof *w);
        w->node = cn;
        w->id = b->id;
        w->epoch = b->epoch;
        dial_broker(w, b);
    }
}

void controller_node_watch_broker(struct controller_node *cn, struct request *rq, broker_id id,
                                  broker_epoch epoch)
{
    struct broker_watch *w = find(cn, id, rq->conn);
    if (!w) {
        w = mem_zalloc(sizeof *w);
        w->node = cn;
        w->watch.gone = gone;
        request_watch_conn(rq, &w->watch);
        list_add_tail(&cn->watches, &w->link);
    }
    w->id = id;
    w->epoch = epoch;
}

void controller_node_drop_watches(struct controller_node *cn)
{
    for (struct list_node *n = list_pop(&cn->watches); n; n = list_pop(&cn->watches)) {
        struct broker_watch *w = LIST_ENTRY(n, struct broker_watch, link);
        request_watch_drop(&w->watch);
        mem_free(w);
    }
}
