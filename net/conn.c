// SPDX-License-Identifier: Apache-2.0
// A connection's life: from its socket to its `closed` callback.
//
// OPEN -> FLUSHING (node_conn_close with flush: the last bytes leave, within a second) -> DYING (in
// loop.dying) -> GONE. A failure or a close without flush goes straight to DYING. `closed` is called at the
// end of the turn, so never from inside a call that the user makes; the struct is freed when libuv has let go
// of the handle.
#include "net/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

void socket_tune(struct node *n, int fd, bool dialled)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    int in = (int)n->opts.receive_buffer_bytes, out = (int)n->opts.send_buffer_bytes;
    if (in > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &in, sizeof in);
    if (out > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &out, sizeof out);
    unsigned ms = n->opts.user_timeout_ms;
    if (dialled && ms)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static bool wants_read(const struct node_conn *c)
{
    return c->state == CONN_OPEN && !c->paused && !c->choked && !c->starved;
}

static void set_events(struct node_conn *c, int want);

static void on_event(uv_poll_t *h, int status, int events)
{
    struct node_conn *c = h->data;
    if (c->state > CONN_FLUSHING)
        return;
    if (status < 0) {
        int err = 0;
        socklen_t len = sizeof err;
        (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
        c->watched = 0; // libuv has stopped watching
        conn_fail(c, err == ETIMEDOUT ? ERR_TIMEOUT : ERR_RESET);
        return;
    }
    if (events & UV_WRITABLE) {
        loop_touch(c->loop);
        if (!list_is_linked(&c->dirty_link))
            list_add_tail(&c->loop->dirty, &c->dirty_link);
        c->watching_write = false;
        conn_watch(c);
    }
    if (!(events & UV_READABLE) || c->state != CONN_OPEN)
        return;
    if (!wants_read(c))
        set_events(c, c->watched & ~UV_READABLE);
    else if (!list_is_linked(&c->resume_link)) // else what was kept comes first, in this turn
        conn_read(c);
}

static void set_events(struct node_conn *c, int want)
{
    if (want == c->watched)
        return;
    c->watched = want;
    int err = want ? uv_poll_start(&c->poll, want, on_event) : uv_poll_stop(&c->poll);
    MUST(err == 0);
}

// A connection that is read no further stays watched until it is readable: most are resumed before, at no
// cost.
void conn_watch(struct node_conn *c)
{
    int want = 0;
    if (c->state == CONN_OPEN)
        want |= wants_read(c) ? UV_READABLE : c->watched & UV_READABLE;
    if (c->state <= CONN_FLUSHING && c->watching_write)
        want |= UV_WRITABLE;
    set_events(c, want);
}

static void arm_idle(struct node_conn *c)
{
    if (!c->limits.idle_ms)
        return;
    uint64_t idle = (node_now(c->loop) - c->last_io) / 1000;
    node_timer_start(c->loop, &c->timer, idle < c->limits.idle_ms ? c->limits.idle_ms - idle : 1);
}

static void on_conn_timer(struct node_timer *t)
{
    struct node_conn *c = LIST_ENTRY(t, struct node_conn, timer);
    if (c->state == CONN_FLUSHING) {
        conn_fail(c, c->reason);
        return;
    }
    if ((node_now(c->loop) - c->last_io) / 1000 >= c->limits.idle_ms)
        conn_fail(c, ERR_TIMEOUT);
    else
        arm_idle(c);
}

struct node_conn *conn_new(struct node_loop *l, int fd, const struct node_conn_limits *limits)
{
    struct node_conn *c = mem_zalloc(sizeof *c);
    c->magic = CONN_MAGIC;
    c->loop = l;
    c->fd = fd;
    c->transport = &transport_plain;
    c->limits = *limits;
    if (c->limits.frame_bytes_max > CHUNK_BYTES_MAX - 64)
        c->limits.frame_bytes_max = CHUNK_BYTES_MAX - 64;
    c->timer.fire = on_conn_timer;
    rope_init(&c->out);
    if (uv_poll_init(&l->uv, &c->poll, fd) != 0) {
        mem_free(c);
        return NULL;
    }
    c->poll.data = c;
    c->last_io = node_now(l);
    list_add_tail(&l->conns, &c->link);
    l->conns_count++;
    atomic_fetch_add_explicit(&l->node->conns, 1, memory_order_relaxed);
    net_count(l->node, NET_OPEN, 1);
    loop_touch(l);
    return c;
}

void conn_start(struct node_conn *c)
{
    if (c->state != CONN_OPEN)
        return;
    MUST(c->ops != NULL);
    arm_idle(c);
    conn_watch(c);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct node_conn *c = h->data;
    c->magic = 0;
    mem_free(c);
}

// Lets go of everything; the struct follows when libuv has.
static void conn_release(struct node_conn *c)
{
    struct node_loop *l = c->loop;
    c->state = CONN_GONE;
    node_timer_stop(l, &c->timer);
    list_remove(&c->dirty_link);
    list_remove(&c->resume_link);
    list_remove(&c->link);
    conn_release_input(c);
    rope_clear(&c->out);
    if (c->transport->close)
        c->transport->close(c);
    uv_close((uv_handle_t *)&c->poll, on_handle_closed);
    (void)close(c->fd);
    c->fd = -1;
    l->conns_count--;
    atomic_fetch_sub_explicit(&l->node->conns, 1, memory_order_relaxed);
    net_count(l->node, NET_OPEN, -1);
    net_count(l->node, NET_CLOSED, 1);
}

void conn_discard(struct node_conn *c)
{
    conn_release(c);
}

void conn_fail(struct node_conn *c, int reason)
{
    if (c->state >= CONN_DYING)
        return;
    loop_touch(c->loop);
    c->state = CONN_DYING;
    c->reason = reason;
    list_remove(&c->dirty_link);
    list_remove(&c->resume_link);
    list_add_tail(&c->loop->dying, &c->dirty_link);
    conn_watch(c);
}

void conn_bury(struct node_loop *l)
{
    struct list now;
    list_init(&now);
    list_splice_tail(&now, &l->dying);
    struct list_node *n;
    while ((n = list_pop(&now)) != NULL) {
        struct node_conn *c = LIST_ENTRY(n, struct node_conn, dirty_link);
        c->state = CONN_GONE;
        if (c->ops && c->ops->closed)
            c->ops->closed(c, c->reason);
        conn_release(c);
    }
}

void conn_close_all(struct node_loop *l, uint32_t flush_ms)
{
    LIST_FOR_EACH_SAFE(it, &l->conns)
    {
        struct node_conn *c = LIST_ENTRY(it, struct node_conn, link);
        node_conn_close(c, flush_ms > 0);
        if (c->state == CONN_FLUSHING)
            node_timer_start(l, &c->timer, flush_ms);
    }
}

// ---- what users call
// -------------------------------------------------------------------------------------------

static void check(const struct node_conn *c)
{
    MUST(c->magic == CONN_MAGIC);
}

void node_conn_set_data(struct node_conn *c, void *data)
{
    check(c);
    c->data = data;
}

void *node_conn_data(struct node_conn *c)
{
    check(c);
    return c->data;
}

void node_conn_set_ops(struct node_conn *c, const struct node_conn_ops *ops)
{
    check(c);
    c->ops = ops;
}

struct node_loop *node_conn_loop(struct node_conn *c)
{
    check(c);
    return c->loop;
}

void node_conn_peer(struct node_conn *c, char *host, size_t host_size, uint16_t *port)
{
    check(c);
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    *port = 0;
    if (host_size)
        host[0] = 0;
    if (c->fd < 0 || getpeername(c->fd, (struct sockaddr *)&a, &len) != 0)
        return;
    if (a.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&a;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, (socklen_t)host_size);
        *port = ntohs(in->sin_port);
    } else if (a.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)&a;
        if (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr)) // an IPv4 peer on a socket for both
            (void)inet_ntop(AF_INET, in->sin6_addr.s6_addr + 12, host, (socklen_t)host_size);
        else
            (void)inet_ntop(AF_INET6, &in->sin6_addr, host, (socklen_t)host_size);
        *port = ntohs(in->sin6_port);
    }
}

void node_conn_send(struct node_conn *c, struct rope *bytes)
{
    check(c);
    if (c->state != CONN_OPEN) {
        rope_clear(bytes);
        return;
    }
    if (bytes->len <= NET_SMALL_SEND_BYTES && bytes->count == 1 && !bytes->pieces[0].file) {
        rope_write(&c->out, bytes->pieces[0].bytes.data, bytes->len);
        rope_clear(bytes);
    } else {
        rope_move(&c->out, bytes);
    }
    loop_touch(c->loop);
    if (c->watching_write) { // the socket is full: nothing to try before it says otherwise
        if (c->out.len > c->loop->node->opts.send_queue_bytes_high && !c->choked) {
            c->choked = c->above_low = true;
            conn_watch(c);
        }
        return;
    }
    if (!list_is_linked(&c->dirty_link))
        list_add_tail(&c->loop->dirty, &c->dirty_link);
}

size_t node_conn_queued(struct node_conn *c)
{
    check(c);
    return c->out.len;
}

void node_conn_pause(struct node_conn *c)
{
    check(c);
    c->paused++;
    if (c->paused == 1)
        conn_watch(c);
}

void node_conn_resume(struct node_conn *c)
{
    check(c);
    MUST(c->paused > 0);
    c->paused--;
    if (c->paused || c->state != CONN_OPEN)
        return;
    // What was kept is delivered from the turn, not from inside this call.
    if (c->in && !c->delivering && !list_is_linked(&c->resume_link)) {
        loop_touch(c->loop);
        list_add_tail(&c->loop->resumed, &c->resume_link);
    }
    conn_watch(c);
}

void node_conn_close(struct node_conn *c, bool flush)
{
    check(c);
    if (c->state != CONN_OPEN) {
        if (c->state == CONN_FLUSHING && !flush)
            conn_fail(c, 0);
        return;
    }
    if (!flush || !c->out.len) {
        conn_fail(c, 0);
        return;
    }
    loop_touch(c->loop);
    c->state = CONN_FLUSHING;
    list_remove(&c->resume_link);
    node_timer_start(c->loop, &c->timer, NET_CLOSE_FLUSH_MS);
    conn_watch(c);
}
