// SPDX-License-Identifier: Apache-2.0
// Links and peers: dial, shake hands, keep connected, find the link for a message.
//
// Happy path of a dial: dialing -> connected, HELLO sent -> WELCOME read -> ready. Of an accept: HELLO read,
// checked -> WELCOME sent -> ready. Failures: a dial that fails is tried again after a pause that doubles; a
// link that breaks is dialled again at once, and if that is refused, the process of the peer is gone
// (take_over.c). A REFUSED frame closes the link; a peer that has another directory id of ours on record
// stops us.
#include "raft/transport.h"

#include "core/base/mem.h"
#include "raft/quorum_impl.h"

static const struct node_conn_ops link_ops;
static void dial(struct peer *p);

// ---- peers
// -----------------------------------------------------------------------------------------------------
struct peer *transport_peer(struct quorum *q, raft_id id)
{
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        struct peer *p = LIST_ENTRY(it, struct peer, node);
        if (p->id == id)
            return p;
    }
    return NULL;
}

static void retry_fire(struct node_timer *t)
{
    dial(LIST_ENTRY(t, struct peer, retry));
}

static void retry_later(struct peer *p)
{
    p->retry_ms = p->retry_ms ? p->retry_ms * 2 : RAFT_DIAL_RETRY_MS_MIN;
    if (p->retry_ms > RAFT_DIAL_RETRY_MS_MAX)
        p->retry_ms = RAFT_DIAL_RETRY_MS_MAX;
    node_timer_start(p->q->opts.loop, &p->retry, p->retry_ms);
}

static struct peer *peer_get(struct quorum *q, raft_id id)
{
    struct peer *p = transport_peer(q, id);
    if (p)
        return p;
    p = mem_zalloc(sizeof *p);
    p->q = q;
    p->id = id;
    quorum_raft_address(id, p->address);
    p->node_id = -1;
    p->last_contact = p->last_caught_up = -1;
    p->retry.fire = retry_fire;
    list_add_tail(&q->transport.peers, &p->node);
    return p;
}

bool transport_connected(const struct peer *p)
{
    return (p->out && p->out->ready) || (p->in && p->in->ready);
}

void transport_init(struct quorum *q)
{
    list_init(&q->transport.links);
    list_init(&q->transport.peers);
}

void transport_update(struct quorum *q)
{
    struct voter_set *set = quorum__voters(q);
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        struct peer *p = LIST_ENTRY(it, struct peer, node);
        p->member = false;
    }
    for (uint32_t i = 0; set && i < set->count; i++) {
        const struct quorum_server *s = &set->servers[i];
        if (s->id == q->self)
            continue;
        struct peer *p = peer_get(q, s->id);
        p->member = true;
        p->node_id = s->voter.id;
        if (s->voter.endpoints_count)
            p->endpoint = s->voter.endpoints[0];
        if (!p->out && !p->dialing && !node_timer_running(&p->retry))
            dial(p);
    }
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        struct peer *p = LIST_ENTRY(it, struct peer, node);
        if (!p->member && p->out)
            transport_close_link(p->out); // it may still reach us by its own
    }
}

// ---- links
// -----------------------------------------------------------------------------------------------------
static void hello_fire(struct node_timer *t)
{
    transport_close_link(LIST_ENTRY(t, struct link, hello));
}

static struct link *link_new(struct quorum *q, struct node_conn *c, bool outgoing)
{
    struct link *l = mem_zalloc(sizeof *l);
    l->q = q;
    l->conn = c;
    l->outgoing = outgoing;
    list_add_tail(&q->transport.links, &l->node);
    node_conn_set_data(c, l);
    node_conn_set_ops(c, &link_ops);
    l->hello.fire = hello_fire;
    node_timer_start(q->opts.loop, &l->hello, RAFT_HELLO_TIMEOUT_MS);
    return l;
}

void transport_close_link(struct link *l)
{
    if (l->closing)
        return;
    l->closing = true;
    l->ready = false;
    node_conn_close(l->conn, true);
}

void transport_send_link(struct link *l, struct rope *frame)
{
    if (!l->closing)
        node_conn_send(l->conn, frame);
    rope_clear(frame);
}

bool transport_send(struct peer *p, struct rope *frame)
{
    struct link *l = p->out && p->out->ready ? p->out : p->in;
    if (!l || !l->ready || l->closing || node_conn_queued(l->conn) > RAFT_PEER_QUEUE_BYTES_MAX) {
        rope_clear(frame);
        return false;
    }
    transport_send_link(l, frame);
    return true;
}

static void link_closed(struct node_conn *c, int reason)
{
    struct link *l = node_conn_data(c);
    struct quorum *q = l->q;
    struct peer *p = l->peer;
    bool was_ready = l->ready, refused = l->refused;
    list_remove(&l->node);
    node_timer_stop(q->opts.loop, &l->hello);
    quorum__fetch_link_lost(q, l);
    if (p && p->in == l)
        p->in = NULL;
    if (p && p->out == l) {
        p->out = NULL;
        if (was_ready) { // it worked until now: dial at once, and know what a refusal means
            log_info(q->log, "raft", "connection to a member lost", "node=%d reason=%s", (int)p->node_id,
                     reason == 0 ? "closed by it" : err_text(reason));
            p->gone_suspected = true;
            p->retry_ms = 0;
            if (p->member && !q->transport.closed)
                dial(p);
        } else if (p->member && !q->transport.closed) {
            retry_later(p);
            if (refused)
                node_timer_start(q->opts.loop, &p->retry, RAFT_DIAL_REFUSED_MS);
        }
    }
    mem_free(l);
    if (q->closing)
        quorum__close_settle(q);
}

// ---- hand-shake
// ------------------------------------------------------------------------------------------------
static void put_self(struct quorum *q, enum wire_kind kind, raft_id expected, struct link *l)
{
    struct wire_hello h = {.protocol = WIRE_PROTOCOL,
                           .node = q->opts.id,
                           .directory = q->opts.directory_id,
                           .id = q->self,
                           .expected = expected,
                           .dynamic = q->dynamic,
                           .replaced = q->opts.disk_replaced};
    struct rope out;
    size_t n = strlen(q->cluster_id);
    n = n < sizeof h.cluster_id ? n : sizeof h.cluster_id - 1;
    memcpy(h.cluster_id, q->cluster_id, n);
    rope_init(&out);
    wire_put_hello(&out, kind, &h);
    transport_send_link(l, &out);
}

static int refuse(struct link *l, enum refuse_reason reason, const char *words)
{
    struct rope out;
    char host[64];
    uint16_t port;
    node_conn_peer(l->conn, host, sizeof host, &port);
    log_warn(l->q->log, "raft", "quorum connection refused", "peer=%s:%u why=\"%s\"", host, (unsigned)port,
             words);
    rope_init(&out);
    wire_put_refused(&out, reason, words);
    transport_send_link(l, &out);
    transport_close_link(l);
    return 0;
}

// Checks who is at the other end. True: it may talk to us. Else it was refused.
static bool identity_ok(struct link *l, const struct wire_hello *h)
{
    struct quorum *q = l->q;
    struct errmsg msg = {{0}};
    if (h->protocol != WIRE_PROTOCOL)
        return refuse(l, REFUSE_PROTOCOL, "another version of the quorum protocol"), false;
    if (strcmp(h->cluster_id, q->cluster_id) != 0)
        return refuse(l, REFUSE_CLUSTER, "another cluster id: this node belongs to another cluster"), false;
    if (h->dynamic != q->dynamic)
        return refuse(
                   l, REFUSE_KIND,
                   "one of the two has a static quorum (controller.quorum.voters), the other a dynamic one"),
               false;
    if (h->id == q->self || h->id != quorum_raft_id(h->node, h->directory, q->dynamic))
        return refuse(l, REFUSE_IDENTITY, "the same node id twice, or ids that do not fit together"), false;
    if (h->expected != 0 && h->expected != q->self)
        return refuse(l, REFUSE_IDENTITY,
                      "another controller is reached at this address than the voter set says"),
               false;
    if (l->peer && l->peer->id != h->id)
        return refuse(l, REFUSE_IDENTITY,
                      "another controller answers at this address than the voter set says"),
               false;
    int err = voter_memory_check(q, h->node, h->directory, h->replaced, &msg);
    if (err == ERR_FENCED)
        return refuse(l, REFUSE_DIRECTORY, msg.text), false;
    if (err)
        node_stop(q->opts.node, "voter memory: %s", msg.text);
    return true;
}

static void link_is_ready(struct link *l, const struct wire_hello *h)
{
    struct peer *p = peer_get(l->q, h->id);
    struct link **slot = l->outgoing ? &p->out : &p->in;
    if (*slot && *slot != l)
        transport_close_link(*slot); // a newer one counts
    *slot = l;
    l->peer = p;
    l->ready = true;
    node_timer_stop(l->q->opts.loop, &l->hello);
    p->node_id = h->node;
    p->directory = h->directory;
    if (l->outgoing) {
        p->gone_suspected = false;
        p->retry_ms = 0;
    }
    log_debug(l->q->log, "raft", "connected to a member", "node=%d outgoing=%d", (int)h->node,
              (int)l->outgoing);
}

static int handle_refused(struct link *l, struct slice body)
{
    struct wire_refused r;
    struct quorum *q = l->q;
    if (!wire_get_refused(body, &r))
        return ERR_MALFORMED;
    if (r.reason == REFUSE_DIRECTORY && !q->dynamic)
        node_stop(q->opts.node, "a voter of the quorum refused this one: %s", r.words);
    l->refused = true;
    log_warn(q->log, "raft", "refused by a member", "node=%d why=\"%s\"",
             l->peer ? (int)l->peer->node_id : -1, r.words);
    transport_close_link(l);
    return 0;
}

static int handle_hello(struct link *l, enum wire_kind kind, struct slice body)
{
    struct wire_hello h;
    if ((kind == WIRE_HELLO) == l->outgoing || (kind != WIRE_HELLO && kind != WIRE_WELCOME) ||
        !wire_get_hello(body, &h))
        return ERR_MALFORMED;
    if (!identity_ok(l, &h))
        return 0;
    if (kind == WIRE_HELLO)
        put_self(l->q, WIRE_WELCOME, h.id, l);
    link_is_ready(l, &h);
    return 0;
}

static int link_frame(struct node_conn *c, uint8_t *data, size_t len)
{
    struct link *l = node_conn_data(c);
    if (l->closing || l->q->close_begun)
        return 0;
    if (len < 1)
        return ERR_MALFORMED;
    enum wire_kind kind = (enum wire_kind)data[0];
    struct slice body = slice_of(data + 1, len - 1);
    if (kind == WIRE_REFUSED)
        return handle_refused(l, body);
    if (!l->ready)
        return handle_hello(l, kind, body);
    int err = quorum__receive(l->q, l, kind, body);
    if (err)
        log_warn(l->q->log, "raft", "malformed message from a member: connection closed", "node=%d kind=%d",
                 (int)l->peer->node_id, (int)kind);
    return err;
}

static const struct node_conn_ops link_ops = {.frame = link_frame, .closed = link_closed};

// ---- dialling
// --------------------------------------------------------------------------------------------------
static void dial_done(struct node_conn *c, int err, void *data)
{
    struct peer *p = data;
    struct quorum *q = p->q;
    p->dialing = false;
    if (q->transport.closed) {
        if (c) {
            struct link *l = link_new(q, c, true);
            transport_close_link(l);
        }
        if (q->closing)
            quorum__close_settle(q);
        return;
    }
    if (err) {
        if (err == ERR_REFUSED && p->gone_suspected)
            quorum__leader_process_gone(q, p->id);
        p->gone_suspected = false;
        if (p->member)
            retry_later(p);
        return;
    }
    struct link *l = link_new(q, c, true);
    l->peer = p;
    p->out = l;
    put_self(q, WIRE_HELLO, p->id, l);
}

static void dial(struct peer *p)
{
    struct quorum *q = p->q;
    if (p->dialing || p->out || !p->member || p->endpoint.port == 0 || q->transport.closed)
        return;
    node_timer_stop(q->opts.loop, &p->retry);
    p->dialing = true;
    node_dial(q->opts.loop, &(struct node_dial){.host = p->endpoint.host,
                                                .port = p->endpoint.port,
                                                .timeout_ms = RAFT_DIAL_TIMEOUT_MS,
                                                .magic = QUORUM_MAGIC,
                                                .limits = {.frame_bytes_max = QUORUM_FRAME_BYTES_MAX},
                                                .done = dial_done,
                                                .data = p});
}

int quorum_accept(struct quorum *q, struct node_conn *c)
{
    if (q->transport.closed || !q->raft_live)
        return ERR_STATE;
    (void)link_new(q, c, false);
    return 0;
}

// ---- the end
// ---------------------------------------------------------------------------------------------------
void transport_close(struct quorum *q)
{
    q->transport.closed = true;
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        struct peer *p = LIST_ENTRY(it, struct peer, node);
        node_timer_stop(q->opts.loop, &p->retry);
    }
    LIST_FOR_EACH(it, &q->transport.links)
    transport_close_link(LIST_ENTRY(it, struct link, node));
}

bool transport_idle(const struct quorum *q)
{
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        if (LIST_ENTRY(it, struct peer, node)->dialing)
            return false;
    }
    return list_is_empty(&q->transport.links);
}

void transport_fini(struct quorum *q)
{
    for (struct list_node *n; (n = list_pop(&q->transport.peers)) != NULL;)
        mem_free(LIST_ENTRY(n, struct peer, node));
    mem_free(q->transport.memory);
}
