// SPDX-License-Identifier: Apache-2.0
// Dialling: resolve off the loop, then try each address until one connects.
//
// 1. The name is resolved: at once where it is a number, else on the resolver pool.
// 2. Addresses are tried in the resolver's order. Refused by all = ERR_REFUSED; any other failure outranks
// it, since only
//    "nobody listens there" may be taken as a sign that the process is gone.
// 3. `done` is called from a task, so never from inside node_dial.
// A timer bounds the whole. A dial that times out while its name is being resolved answers at once and is
// freed when the resolver comes back.
#include "net/world.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bytes.h"
#include "core/base/mem.h"

struct net_dial {
    struct list_node link;      // in loop.dials until answered
    struct node_loop *loop;     // where it runs
    struct node_dial d;         // what was asked; host is a copy
    char *host;                 // the copy
    struct node_timer timer;    // the whole time
    struct node_task task;      // answers, or begins
    struct node_job job;        // resolves
    bool queued;                // `task` is posted
    bool resolving;             // the job is out
    bool answered;              // `done` was called
    int gai;                    // result of resolving
    struct addrinfo *addresses; // of the name
    struct addrinfo *next;      // to be tried
    int fd;                     // connecting socket; -1: none
    uv_poll_t *poll;            // watches it; freed by its own close callback
    int err;                    // worst failure so far
    bool no_way;                // `err` only says that this host cannot reach addresses of that kind
};

int resolve(const char *host, uint16_t port, bool passive, bool numeric_only, struct addrinfo **out)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) | (numeric_only ? AI_NUMERICHOST : 0);
    return getaddrinfo(host, service, &hints, out);
}

static void dial_free(struct net_dial *d)
{
    if (d->addresses)
        freeaddrinfo(d->addresses);
    mem_free(d->host);
    mem_free(d);
}

static void free_handle(uv_handle_t *h)
{
    mem_free(h);
}

static void stop_polling(struct net_dial *d)
{
    if (!d->poll)
        return;
    uv_close((uv_handle_t *)d->poll, free_handle);
    d->poll = NULL;
}

// Calls `done`. Afterwards the dial is gone, or goes when the resolver comes back.
static void answer(struct net_dial *d, int err)
{
    struct node_loop *l = d->loop;
    struct node *n = l->node;
    MUST(!d->answered);
    loop_touch(l);
    d->answered = true;
    node_timer_stop(l, &d->timer);
    list_remove(&d->link);
    stop_polling(d);
    struct node_conn *c = NULL;
    if (!err) {
        c = conn_new(l, d->fd, &d->d.limits);
        if (!c)
            err = ERR_IO;
        else
            d->fd = -1;
    }
    if (d->fd >= 0)
        (void)close(d->fd);
    d->fd = -1;
    net_count(n, err ? NET_DIAL_FAILED : NET_DIALLED, 1);
    if (c && d->d.magic) {
        uint8_t magic[4];
        struct rope r;
        bytes_store_be32(magic, d->d.magic);
        rope_init(&r);
        rope_write(&r, magic, sizeof magic);
        node_conn_send(c, &r);
    }
    d->d.done(c, err, d->d.data);
    if (c)
        conn_start(c);
    if (!d->resolving && !d->queued)
        dial_free(d);
}

static void note_failure(struct net_dial *d, int errno_value)
{
    int err = errno_value == ECONNREFUSED ? ERR_REFUSED
              : errno_value == ETIMEDOUT  ? ERR_TIMEOUT
              : errno_value == ECONNRESET ? ERR_RESET
                                          : ERR_IO;
    // An address of a kind that this host does not have (::1 of "localhost" without IPv6) says nothing of the
    // peer.
    bool no_way = errno_value == EADDRNOTAVAIL || errno_value == EAFNOSUPPORT || errno_value == ENETUNREACH;
    if (!d->err || d->no_way || (d->err == ERR_REFUSED && !no_way)) {
        d->err = err;
        d->no_way = no_way;
    }
}

static void try_next(struct net_dial *d);

static void on_connected(uv_poll_t *h, int status, int events)
{
    struct net_dial *d = h->data;
    int err = 0;
    socklen_t len = sizeof err;
    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    if (!err && status < 0)
        err = ECONNRESET;
    if (!err) {
        answer(d, 0);
        return;
    }
    stop_polling(d);
    (void)close(d->fd);
    d->fd = -1;
    note_failure(d, err);
    try_next(d);
}

static void try_next(struct net_dial *d)
{
    while (d->next) {
        struct addrinfo *ai = d->next;
        d->next = ai->ai_next;
        d->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (d->fd < 0) {
            note_failure(d, errno);
            continue;
        }
        socket_tune(d->loop->node, d->fd, true);
        if (connect(d->fd, ai->ai_addr, ai->ai_addrlen) == 0) {
            answer(d, 0);
            return;
        }
        if (errno == EINPROGRESS) {
            d->poll = mem_zalloc(sizeof *d->poll);
            MUST(uv_poll_init(&d->loop->uv, d->poll, d->fd) == 0);
            d->poll->data = d;
            MUST(uv_poll_start(d->poll, UV_WRITABLE, on_connected) == 0);
            return;
        }
        note_failure(d, errno);
        (void)close(d->fd);
        d->fd = -1;
    }
    answer(d, d->err ? d->err : ERR_RESOLVE);
}

static void resolve_work(struct node_job *j)
{
    struct net_dial *d = LIST_ENTRY(j, struct net_dial, job);
    d->gai = resolve(d->host, d->d.port, false, false, &d->addresses);
}

static void resolve_done(struct node_job *j)
{
    struct net_dial *d = LIST_ENTRY(j, struct net_dial, job);
    d->resolving = false;
    if (d->gai)
        d->addresses = NULL;
    if (d->answered) {
        dial_free(d);
        return;
    }
    if (d->gai) {
        answer(d, ERR_RESOLVE);
        return;
    }
    d->next = d->addresses;
    try_next(d);
}

static void begin(struct node_task *t)
{
    struct net_dial *d = LIST_ENTRY(t, struct net_dial, task);
    struct node *n = d->loop->node;
    d->queued = false;
    if (d->answered) {
        dial_free(d);
        return;
    }
    if (d->loop->draining) {
        answer(d, ERR_CANCELED);
        return;
    }
    if (resolve(d->host, d->d.port, false, true, &d->addresses) == 0) {
        d->next = d->addresses;
        try_next(d);
        return;
    }
    d->addresses = NULL;
    pthread_mutex_lock(&n->mutex);
    bool make = !n->resolver;
    pthread_mutex_unlock(&n->mutex);
    if (make) {
        struct node_pool *p = node_pool_create(n, "resolver", NET_RESOLVER_THREADS);
        pthread_mutex_lock(&n->mutex);
        if (!n->resolver)
            n->resolver = p; // a second one, made at the same moment, just stays unused
        pthread_mutex_unlock(&n->mutex);
    }
    d->resolving = true;
    d->job.work = resolve_work;
    d->job.done = resolve_done;
    d->job.loop = d->loop;
    pthread_mutex_lock(&n->mutex);
    struct node_pool *pool = n->resolver;
    pthread_mutex_unlock(&n->mutex);
    node_pool_run(pool, &d->job);
}

static void on_timeout(struct node_timer *t)
{
    answer(LIST_ENTRY(t, struct net_dial, timer), ERR_TIMEOUT);
}

void node_dial(struct node_loop *l, const struct node_dial *ask)
{
    MUST(node_loop_is_current(l));
    MUST(ask->done != NULL);
    struct net_dial *d = mem_zalloc(sizeof *d);
    d->loop = l;
    d->d = *ask;
    d->host = mem_strdup(ask->host);
    d->d.host = d->host;
    d->fd = -1;
    d->timer.fire = on_timeout;
    d->task.run = begin;
    list_add_tail(&l->dials, &d->link);
    if (ask->timeout_ms)
        node_timer_start(l, &d->timer, ask->timeout_ms);
    d->queued = true;
    node_loop_post(l, &d->task);
}

void dial_cancel_all(struct node_loop *l)
{
    struct list_node *n;
    while ((n = list_first(&l->dials)) != NULL) {
        struct net_dial *d = LIST_ENTRY(n, struct net_dial, link);
        MUST(!d->answered);
        answer(d, ERR_CANCELED);
    }
}
