// SPDX-License-Identifier: Apache-2.0
// Listeners: one socket each, accepted on the first of its loops and handed to the others in turn.
//
// SO_REUSEPORT is not used: with it a second server on the same port would start without an error and take
// half of the connections.
#include "net/world.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/mem.h"

struct handover {
    struct node_task task;   // runs on `loop`
    struct node_loop *loop;  // where the connection will live
    struct node_listener *l; // whose it is
    int fd;                  // socket
};

static void adopt(struct node_listener *l, struct node_loop *loop, int fd)
{
    struct node *n = l->node;
    if (loop->draining || l->closing) {
        (void)close(fd);
        return;
    }
    struct node_conn *c = conn_new(loop, fd, &l->opts.limits);
    if (!c) {
        (void)close(fd);
        return;
    }
    c->accepted = true;
    c->listener_magic = l->opts.magic;
    c->head_wanted = l->opts.magic != 0;
    c->accept_magic = l->opts.accept_magic;
    c->accept_data = l->opts.data;
    net_count(n, NET_ACCEPTED, 1);
    if (l->opts.accept(c, l->opts.data) != 0) {
        c->ops = NULL; // refused: nobody is told
        conn_fail(c, 0);
        return;
    }
    conn_start(c);
}

static void run_handover(struct node_task *t)
{
    struct handover *h = LIST_ENTRY(t, struct handover, task);
    adopt(h->l, h->loop, h->fd);
    mem_free(h);
}

static void tell_refused(struct node_listener *l)
{
    struct node *n = l->node;
    net_count(n, NET_REFUSED_FULL, 1);
    net_log_limited(n, &n->limit_full, LOG_LEVEL_ERROR, "no file descriptor left; connections are refused",
                    "port=%u connections=%u hint=\"raise the limit of open files (LimitNOFILE, ulimit -n)\"",
                    l->port, atomic_load_explicit(&n->conns, memory_order_relaxed));
}

// Are all descriptors that connections may have taken? The rest is for files: connections must not stop the
// node from writing.
static bool is_crowded(const struct node_listener *l)
{
    return atomic_load_explicit(&l->node->conns, memory_order_relaxed) >=
           l->node->conns_max + (l->opts.magic ? NET_CONNS_MORE : 0);
}

// Descriptors have run out: give up the spare one to take the connection and close it, so that the peer is
// told.
static void refuse_one(struct node_listener *l)
{
    struct node *n = l->node;
    net_count(n, NET_REFUSED_FULL, 1);
    net_log_limited(n, &n->limit_full, LOG_LEVEL_ERROR, "no file descriptor left; connections are refused",
                    "port=%u hint=\"raise the limit of open files (LimitNOFILE, ulimit -n)\"", l->port);
    pthread_mutex_lock(&n->mutex);
    if (n->spare_fd >= 0)
        (void)close(n->spare_fd);
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pthread_mutex_unlock(&n->mutex);
}

static void on_acceptable(uv_poll_t *h, int status, int events)
{
    struct node_listener *l = h->data;
    struct node_loop *here = l->opts.loops[0];
    loop_touch(here);
    for (int i = 0; i < NET_ACCEPT_MAX; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                refuse_one(l);
            else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !l->closing)
                net_log_limited(l->node, &l->node->limit_accept, LOG_LEVEL_WARN, "accept failed",
                                "port=%u reason=\"%s\"", l->port, strerror(errno));
            return;
        }
        if (is_crowded(l)) {
            (void)close(fd);
            tell_refused(l);
            continue;
        }
        socket_tune(l->node, fd, false);
        struct node_loop *loop = l->opts.loops[l->next_loop++ % l->opts.loops_count];
        if (loop == here) {
            adopt(l, loop, fd);
            continue;
        }
        struct handover *t = mem_alloc(sizeof *t);
        *t = (struct handover){.task.run = run_handover, .loop = loop, .l = l, .fd = fd};
        node_loop_post(loop, &t->task);
    }
}

static void start_listener(struct node_task *t)
{
    struct node_listener *l = LIST_ENTRY(t, struct node_listener, start);
    if (l->closing)
        return;
    MUST(uv_poll_init(&l->opts.loops[0]->uv, &l->poll, l->fd) == 0);
    l->poll.data = l;
    l->watching = true;
    MUST(uv_poll_start(&l->poll, UV_READABLE, on_acceptable) == 0);
}

static void stop_listener(struct node_task *t)
{
    struct node_listener *l = LIST_ENTRY(t, struct node_listener, stop);
    if (l->watching)
        uv_close((uv_handle_t *)&l->poll, NULL);
    l->watching = false;
    (void)close(l->fd);
    l->fd = -1;
}

static int open_socket(const struct addrinfo *ai, int backlog)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int one = 1, zero = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (ai->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, backlog > 0 ? backlog : 128) != 0) {
        int err = errno;
        (void)close(fd);
        return -err;
    }
    return fd;
}

// Every address: one IPv6 socket that takes IPv4, too; where there is no IPv6, IPv4 alone.
static int open_any(uint16_t port, int backlog)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
    struct addrinfo ai = {
        .ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&six, .ai_addrlen = sizeof six};
    int fd = open_socket(&ai, backlog);
    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    ai = (struct addrinfo){
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof four};
    return open_socket(&ai, backlog);
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)&a)->sin_port);
}

int node_listen(struct node *n, const struct node_listen_opts *o, struct node_listener **out,
                struct errmsg *msg)
{
    MUST(o->loops_count > 0 && o->accept && (!o->magic || o->accept_magic));
    const char *host = o->host && o->host[0] ? o->host : NULL;
    int fd = -EADDRNOTAVAIL;
    if (!host) {
        fd = open_any(o->port, o->backlog);
        host = "";
    } else {
        struct addrinfo *list;
        int err = resolve(host, o->port, true, false, &list);
        if (err)
            return err_set(msg, ERR_RESOLVE, "listener address %s does not resolve: %s", host,
                           gai_strerror(err));
        for (struct addrinfo *ai = list; ai && fd < 0 && fd != -EADDRINUSE; ai = ai->ai_next)
            fd = open_socket(ai, o->backlog);
        freeaddrinfo(list);
    }
    if (fd == -EADDRINUSE)
        return err_set(msg, ERR_EXISTS,
                       "port %u of %s is in use: stop what listens there or choose another port", o->port,
                       host[0] ? host : "this host");
    if (fd == -EACCES)
        return err_set(msg, ERR_IO, "port %u may not be opened by this user: choose a port above 1023",
                       o->port);
    if (fd < 0)
        return err_set(msg, ERR_IO, "cannot listen on %s:%u: %s", host, o->port, strerror(-fd));
    struct node_listener *l = mem_zalloc(sizeof *l);
    l->node = n;
    l->opts = *o;
    l->opts.loops = mem_dup(o->loops, o->loops_count * sizeof *o->loops);
    l->host = mem_strdup(host);
    l->opts.host = l->host;
    l->fd = fd;
    l->port = bound_port(fd);
    l->start.run = start_listener;
    l->stop.run = stop_listener;
    pthread_mutex_lock(&n->mutex);
    list_add_tail(&n->listeners, &l->link);
    pthread_mutex_unlock(&n->mutex);
    node_loop_post(l->opts.loops[0], &l->start);
    *out = l;
    return 0;
}

uint16_t node_listener_port(const struct node_listener *l)
{
    return l->port;
}

void node_listener_close(struct node_listener *l)
{
    if (atomic_exchange(&l->closing, true))
        return;
    (void)shutdown(l->fd, SHUT_RDWR); // from now on dials are refused
    node_loop_post(l->opts.loops[0], &l->stop);
}

void listener_free(struct node_listener *l)
{
    mem_free(l->opts.loops);
    mem_free(l->host);
    mem_free(l);
}
