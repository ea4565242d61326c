// SPDX-License-Identifier: Apache-2.0
// Bytes straight to and from the socket.
#include "net/world.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t plain_recv(struct node_conn *c, const struct iovec *iov, int count)
{
    ssize_t n;
    do
        n = count == 1 ? recv(c->fd, iov[0].iov_base, iov[0].iov_len, 0) : readv(c->fd, iov, count);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t plain_send(struct node_conn *c, const struct iovec *iov, int count, bool more)
{
    struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    ssize_t n;
    do
        n = sendmsg(c->fd, &m, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t plain_send_file(struct node_conn *c, int fd, uint64_t pos, size_t len)
{
    off_t at = (off_t)pos;
    ssize_t n;
    do
        n = sendfile(c->fd, fd, &at, len);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

const struct transport transport_plain = {"plain", plain_recv, plain_send, plain_send_file, NULL};
