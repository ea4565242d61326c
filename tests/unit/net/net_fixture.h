// SPDX-License-Identifier: Apache-2.0
// A node with loops for the tests of net/, and a plain blocking client.
#ifndef TEST_NET_FIXTURE_H
#define TEST_NET_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/bytes.h"
#include "core/base/chunk.h"
#include "core/base/list.h"
#include "net/net.h"

#define HOST "127.0.0.9"

static struct node *node;
static struct node_loop *loops[2];

static inline void node_up(const struct net_options *opts)
{
    struct errmsg msg;
    struct net_options none = {0};
    assert_int_equal(node_create(opts ? opts : &none, &node, &msg), 0);
    loops[0] = node_loop_create(node, "loop-0");
    loops[1] = node_loop_create(node, "loop-1");
}

static inline void node_down(void)
{
    node_shutdown(node, 100);
    node = NULL;
}

// Runs a function on a loop and waits for it.
struct call {
    struct node_task task;
    void (*run)(void *arg);
    void *arg;
    sem_t done;
};
static inline void run_call(struct node_task *t)
{
    struct call *c = LIST_ENTRY(t, struct call, task);
    c->run(c->arg);
    sem_post(&c->done);
}
static inline void on_loop(struct node_loop *l, void (*run)(void *arg), void *arg)
{
    struct call c = {.task.run = run_call, .run = run, .arg = arg};
    sem_init(&c.done, 0, 0);
    node_loop_post(l, &c.task);
    while (sem_wait(&c.done) != 0)
        ;
    sem_destroy(&c.done);
}

static inline void wait_sem(sem_t *s)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 10;
    while (sem_timedwait(s, &t) != 0)
        assert_int_equal(errno, EINTR);
}

// Waits up to ten seconds until the condition holds.
#define WAIT_UNTIL(cond)                                                                                     \
    do {                                                                                                     \
        int tries = 0;                                                                                       \
        while (!(cond) && tries++ < 10000)                                                                   \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                                         \
        assert_true(cond);                                                                                   \
    } while (0)

// A test's own thread may be interrupted: the loops that it makes can use an io_uring, whose work comes as a
// signal.
static inline ssize_t client_receive(int fd, void *data, size_t len)
{
    ssize_t n;
    do
        n = recv(fd, data, len, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

static inline int client_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, HOST, &a.sin_addr);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}
static inline void client_send(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}
static inline void client_send_frame(int fd, const void *data, uint32_t len)
{
    uint8_t head[4];
    bytes_store_be32(head, len);
    client_send(fd, head, 4);
    client_send(fd, data, len);
}
// False: the server closed.
static inline bool client_recv(int fd, void *data, size_t len)
{
    char *at = data;
    while (len) {
        ssize_t n = client_receive(fd, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}
// Length of the frame, whose bytes go to `buf`; -1: closed.
static inline int64_t client_recv_frame(int fd, void *buf, size_t size)
{
    uint8_t head[4];
    if (!client_recv(fd, head, 4))
        return -1;
    uint32_t len = bytes_load_be32(head);
    assert_true(len <= size);
    return client_recv(fd, buf, len) ? (int64_t)len : -1;
}
static inline bool client_is_closed(int fd)
{
    char c;
    ssize_t n = client_receive(fd, &c, 1);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

// Sends a frame back.
static inline void reply(struct node_conn *c, const void *data, size_t len)
{
    struct rope r;
    rope_init(&r);
    bytes_store_be32(rope_reserve(&r, 4), (uint32_t)len);
    rope_write(&r, data, len);
    node_conn_send(c, &r);
}

#endif
