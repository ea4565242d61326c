// SPDX-License-Identifier: Apache-2.0
// Connections of the node interface in memory: delays, cuts, resets; bytes arrive in order or not at all.
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "tests/sim/world/world_priv.h"

#define CUT_RETRY_US 20000      // how often waiting bytes look whether the cut has healed
#define STALL_RESET_US 15000000 // a connection whose bytes cannot leave for this long is reset

void node_conn_set_data(struct node_conn *c, void *data)
{
    c->data = data;
}
void *node_conn_data(struct node_conn *c)
{
    return c->data;
}
struct node_loop *node_conn_loop(struct node_conn *c)
{
    return c->loop;
}
size_t node_conn_queued(struct node_conn *c)
{
    return c->queued;
}

void node_conn_set_ops(struct node_conn *c, const struct node_conn_ops *ops)
{
    c->ops = *ops;
    c->has_ops = true;
}

void node_conn_peer(struct node_conn *c, char *host, size_t host_size, uint16_t *port)
{
    (void)snprintf(host, host_size, "%s", c->peer_host->name);
    *port = c->port;
}

static struct node_conn *conn_new(struct world *w, struct node *n, struct node_loop *loop,
                                  struct world_host *peer_host)
{
    struct node_conn *c = world_alloc(w, sizeof *c);
    memset(c, 0, sizeof *c);
    c->w = w;
    c->node = n;
    c->life = n->life;
    c->loop = loop;
    c->host = n->host;
    c->peer_host = peer_host;
    c->next = w->conns;
    w->conns = c;
    return c;
}

static bool alive(const struct node_conn *c)
{
    return c->node && !c->node->dead && c->node->life == c->life && !c->closed;
}

// ---- closing
// ---------------------------------------------------------------------------------------------------
struct closing {
    struct node_conn *c;
    int reason;
};

static void call_closed(void *data)
{
    struct closing *x = data;
    if (x->c->has_ops && x->c->ops.closed)
        x->c->ops.closed(x->c, x->reason);
}

static void closed_event(struct world *w, void *data)
{
    struct closing x = *(struct closing *)data;
    world_release(w, data);
    if (x.c->node && !x.c->node->dead && x.c->node->life == x.c->life)
        (void)world_in_context(w, x.c->node, x.c->loop, call_closed, &x);
}

static void close_end(struct node_conn *c, int reason, mono_us at)
{
    if (!alive(c))
        return;
    struct closing *x = world_alloc(c->w, sizeof *x);
    c->closed = true;
    *x = (struct closing){c, reason};
    world_schedule(c->w, at, c->node, closed_event, x);
}

struct remote_close {
    struct node_conn *c; // the end that learns of it
    int reason;
    mono_us since; // when it was sent
};

static void remote_close_event(struct world *w, void *data)
{
    struct remote_close *r = data;
    if (alive(r->c) && world_is_cut(w, r->c->host, r->c->peer_host) && w->now - r->since < STALL_RESET_US) {
        world_schedule(w, w->now + CUT_RETRY_US, r->c->node, remote_close_event, r);
        return;
    }
    close_end(r->c, r->reason, w->now);
    world_release(w, r);
}

// The other end learns that this one is gone, after what was sent before.
static void tell_peer(struct node_conn *c, int reason)
{
    struct node_conn *p = c->peer;
    c->peer = NULL;
    if (!p)
        return;
    p->peer = NULL;
    if (!alive(p))
        return;
    struct world *w = c->w;
    struct remote_close *r = world_alloc(w, sizeof *r);
    mono_us at = w->now + world_net_delay(w);
    if (at < p->last_arrival)
        at = p->last_arrival;
    *r = (struct remote_close){p, reason, w->now};
    world_schedule(w, at, p->node, remote_close_event, r);
}

void node_conn_close(struct node_conn *c, bool flush)
{
    (void)flush;
    if (c->closed)
        return;
    close_end(c, 0, c->w->now);
    tell_peer(c, 0);
}

void world_conns_drop(struct node *n)
{
    for (struct node_conn *c = n->w->conns; c; c = c->next) {
        if (c->node != n || c->life != n->life)
            continue;
        bool was_open = !c->closed;
        c->closed = true;
        c->node = NULL;
        if (was_open)
            tell_peer(c, ERR_RESET);
    }
}

// ---- bytes
// -----------------------------------------------------------------------------------------------------
struct parcel {
    struct node_conn *to, *from;
    mono_us since; // when it was sent
    size_t len;
    uint8_t bytes[];
};

struct frame_call {
    struct node_conn *c;
    uint8_t *data;
    size_t len;
    int err;
};

static void call_frame(void *data)
{
    struct frame_call *f = data;
    f->err = f->c->ops.frame(f->c, f->data, f->len);
}

static void take_frames(struct world *w, struct node_conn *c)
{
    while (alive(c) && c->has_ops && !c->paused && c->in_len >= 4) {
        uint32_t len = bytes_load_be32(c->in);
        if (len > INT32_MAX || (c->limits.frame_bytes_max && len > c->limits.frame_bytes_max)) {
            close_end(c, ERR_MALFORMED, w->now);
            tell_peer(c, ERR_RESET);
            return;
        }
        if (c->in_len < 4 + (size_t)len)
            return;
        uint8_t *frame = world_alloc(w, len + 1u);
        memcpy(frame, c->in + 4, len);
        memmove(c->in, c->in + 4 + len, c->in_len - 4 - len);
        c->in_len -= 4 + (size_t)len;
        struct frame_call f = {c, frame, len, 0};
        bool ok = world_in_context(w, c->node, c->loop, call_frame, &f);
        world_release(w, frame);
        if (ok && f.err && alive(c)) {
            close_end(c, f.err, w->now);
            tell_peer(c, ERR_RESET);
        }
        if (!ok)
            return;
    }
}

static void parcel_event(struct world *w, void *data)
{
    struct parcel *p = data;
    struct node_conn *c = p->to;
    if (alive(c) && world_is_cut(w, c->host, c->peer_host)) {
        if (w->now - p->since < STALL_RESET_US) {
            c->last_arrival = w->now + CUT_RETRY_US;
            world_schedule(w, c->last_arrival, c->node, parcel_event, p);
            return;
        }
        close_end(c, ERR_TIMEOUT, w->now);
        tell_peer(c, ERR_RESET);
    }
    if (p->from->node && p->from->life == p->from->node->life)
        p->from->queued -= p->from->queued < p->len ? p->from->queued : p->len;
    if (alive(c)) {
        if (c->in_len + p->len > c->in_cap) {
            c->in_cap = (c->in_len + p->len) * 2;
            uint8_t *grown = world_alloc(w, c->in_cap);
            if (c->in_len)
                memcpy(grown, c->in, c->in_len);
            world_release(w, c->in);
            c->in = grown;
        }
        memcpy(c->in + c->in_len, p->bytes, p->len);
        c->in_len += p->len;
    }
    world_release(w, p);
    take_frames(w, c);
}

void node_conn_send(struct node_conn *c, struct rope *bytes)
{
    struct world *w = c->w;
    if (c->closed || !c->peer || bytes->len == 0) {
        rope_clear(bytes);
        return;
    }
    struct parcel *p = world_alloc(w, sizeof *p + bytes->len);
    struct node_conn *to = c->peer;
    *p = (struct parcel){.to = to, .from = c, .since = w->now, .len = bytes->len};
    int err = rope_flatten(bytes, p->bytes);
    rope_clear(bytes);
    if (err) {
        world_release(w, p);
        node_conn_close(c, false);
        return;
    }
    c->queued += p->len;
    mono_us at = w->now + world_net_delay(w);
    if (at < to->last_arrival)
        at = to->last_arrival;
    to->last_arrival = at;
    world_schedule(w, at, to->node, parcel_event, p);
}

void node_conn_pause(struct node_conn *c)
{
    c->paused++;
}

static void resume_event(struct world *w, void *data)
{
    struct closing x = *(struct closing *)data;
    world_release(w, data);
    take_frames(w, x.c);
}

void node_conn_resume(struct node_conn *c)
{
    MUST(c->paused > 0);
    if (--c->paused > 0 || c->closed)
        return;
    struct closing *x = world_alloc(c->w, sizeof *x);
    *x = (struct closing){c, 0};
    world_schedule(c->w, c->w->now, c->node, resume_event, x);
}

// ---- listening and dialling
// ------------------------------------------------------------------------------------
int node_listen(struct node *n, const struct node_listen_opts *opts, struct node_listener **out,
                struct errmsg *msg)
{
    struct node_listener *l = mem_zalloc(sizeof *l);
    (void)msg;
    l->node = n;
    l->opts = *opts;
    l->port = opts->port;
    l->opts.loops = mem_dup(opts->loops, opts->loops_count * sizeof(struct node_loop *));
    l->next = n->listeners;
    n->listeners = l;
    *out = l;
    return 0;
}

uint16_t node_listener_port(const struct node_listener *l)
{
    return l->port;
}
void node_listener_close(struct node_listener *l)
{
    l->closed = true;
}

struct dialing {
    struct node_loop *loop;
    struct node_dial d;
    char host[256];
    mono_us since;
    struct node_conn *conn; // result
    int err;
};

static void call_dialled(void *data)
{
    struct dialing *x = data;
    x->d.done(x->conn, x->err, x->d.data);
}

struct accepting {
    struct node_listener *l;
    struct node_conn *c;
    bool magic;
    int err;
};

static void call_accept(void *data)
{
    struct accepting *a = data;
    a->err = a->l->opts.accept ? a->l->opts.accept(a->c, a->l->opts.data) : 0;
    if (!a->err && a->magic && a->l->opts.accept_magic)
        a->err = a->l->opts.accept_magic(a->c, a->l->opts.data);
}

static struct world_host *find_host(struct world *w, const char *name)
{
    for (unsigned i = 0; i < w->hosts_count; i++) {
        if (strcmp(w->hosts[i]->name, name) == 0)
            return w->hosts[i];
    }
    return NULL;
}

static struct node_listener *find_listener(struct node *n, uint16_t port)
{
    struct node_listener *l = n ? n->listeners : NULL;
    while (l && (l->closed || l->port != port))
        l = l->next;
    return l;
}

static void dial_result(struct world *w, void *data)
{
    struct dialing *x = data;
    (void)world_in_context(w, x->loop->node, x->loop, call_dialled, x);
    world_release(w, x);
}

static void connect_event(struct world *w, void *data)
{
    struct dialing *x = data;
    struct node *n = x->loop->node;
    struct world_host *target = find_host(w, x->host);
    mono_us back = w->now + world_net_delay(w);
    if (target && world_is_cut(w, n->host, target)) {
        if (w->now - x->since < x->d.timeout_ms * 1000ull) {
            world_schedule(w, w->now + CUT_RETRY_US, n, connect_event, x);
            return;
        }
        x->err = ERR_TIMEOUT;
    } else if (!target) {
        x->err = ERR_RESOLVE;
    } else {
        struct node_listener *l = find_listener(target->node, x->d.port);
        x->err = l ? 0 : ERR_REFUSED;
        if (l) {
            struct node_conn *ours = conn_new(w, n, x->loop, target);
            struct node_conn *theirs = conn_new(w, target->node, l->opts.loops[0], n->host);
            ours->limits = x->d.limits;
            theirs->limits = l->opts.limits;
            ours->port = theirs->port = x->d.port;
            ours->peer = theirs;
            theirs->peer = ours;
            ours->last_arrival = back;
            struct accepting a = {l, theirs, x->d.magic && x->d.magic == l->opts.magic, 0};
            if (!world_in_context(w, target->node, theirs->loop, call_accept, &a) || a.err) {
                theirs->closed = true;
                theirs->node = NULL;
                tell_peer(theirs, ERR_RESET);
            }
            x->conn = ours;
        }
    }
    world_schedule(w, back, n, dial_result, x);
}

void node_dial(struct node_loop *loop, const struct node_dial *d)
{
    struct world *w = loop->node->w;
    struct dialing *x = world_alloc(w, sizeof *x);
    memset(x, 0, sizeof *x);
    x->loop = loop;
    x->d = *d;
    x->since = w->now;
    (void)snprintf(x->host, sizeof x->host, "%s", d->host);
    world_schedule(w, w->now + world_net_delay(w), loop->node, connect_event, x);
}
