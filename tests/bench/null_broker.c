// SPDX-License-Identifier: Apache-2.0
// The null broker: the least any broker must do, as the yardstick of every benchmark. Not a broker.
//
// Produce: receive as much as there is, check each batch's CRC-32C, one pwritev for each partition's run, all
// answers in one send. Fetch: header bytes and sendfile of one batch-aligned range. ApiVersions,
// CreateTopics, Metadata and ListOffsets are answered so that the load generator runs unchanged. One thread,
// epoll, one topic at a time; every batch of a partition must have the size and record count of its first.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "tests/bench/bench.h"

#define PARTITIONS 1024
#define IN_BYTES (4u << 20)
#define RUN 1024 // iovecs of a partition run

struct part {
    int fd;             // -1 until first use
    uint64_t bytes;     // written
    int64_t end;        // next offset
    size_t batch_bytes; // of every batch
    uint32_t batch_records;
    int iov_count; // pending run
    struct iovec iov[RUN];
    bool listed; // in `dirty`
};
struct conn {
    int fd;
    uint8_t *in;
    size_t in_len;
    struct out out; // answers not sent
    size_t out_at;
    int file_fd; // sendfile in progress
    off_t file_at;
    size_t file_left;
    bool want_write;
};

static struct part parts[PARTITIONS];
static struct part *dirty[PARTITIONS];
static int dirty_count;
static const char *dir;
static int port;
static char topic[256];
static int epoll_fd;

static struct part *part_of(uint32_t index)
{
    if (index >= PARTITIONS)
        bench_die("partition %u", index);
    struct part *p = &parts[index];
    if (p->fd <= 0) {
        char path[512];
        snprintf(path, sizeof path, "%s/null-%u.log", dir, index);
        p->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (p->fd < 0)
            bench_die("%s: %s", path, strerror(errno));
    }
    return p;
}

static void flush_part(struct part *p)
{
    int i = 0;
    while (i < p->iov_count) {
        ssize_t n = pwritev(p->fd, p->iov + i, p->iov_count - i, (off_t)p->bytes);
        if (n <= 0)
            bench_die("pwritev: %s", strerror(errno));
        p->bytes += (uint64_t)n;
        while (i < p->iov_count && (size_t)n >= p->iov[i].iov_len)
            n -= (ssize_t)p->iov[i++].iov_len;
        if (n > 0)
            p->iov[i].iov_base = (uint8_t *)p->iov[i].iov_base + n, p->iov[i].iov_len -= (size_t)n;
    }
    p->iov_count = 0;
    p->listed = false;
}

static void flush_all(void)
{
    for (int i = 0; i < dirty_count; i++)
        flush_part(dirty[i]);
    dirty_count = 0;
}

static void produce(struct conn *c, const uint8_t *p, const uint8_t *end, uint32_t correlation)
{
    uint32_t txn = get_uvarint(&p, end);
    p += txn > 0 ? txn - 1 : 0;
    p += 2 + 4;
    uint32_t topics = get_uvarint(&p, end) - 1;
    if (topics != 1)
        bench_die("one topic a request");
    uint32_t name = get_uvarint(&p, end) - 1;
    struct out *o = &c->out;
    size_t at = o->len;
    out_i32(o, 0);
    out_i32(o, correlation);
    out_i8(o, 0);
    out_uvarint(o, 2);
    out_uvarint(o, name + 1);
    out_bytes(o, p, name);
    p += name;
    uint32_t count = get_uvarint(&p, end) - 1;
    out_uvarint(o, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = part_of(get_u32(p));
        out_i32(o, get_u32(p));
        p += 4;
        uint32_t len = get_uvarint(&p, end) - 1;
        uint8_t *batch = (uint8_t *)(uintptr_t)p;
        if (get_u32(batch + 17) != batch_crc(batch, len))
            bench_die("bad CRC from the generator");
        put_u64(batch, (uint64_t)part->end);
        put_u32(batch + 12, 0);
        if (part->batch_bytes == 0)
            part->batch_bytes = len, part->batch_records = get_u32(batch + 57);
        if (!part->listed)
            dirty[dirty_count++] = part, part->listed = true;
        if (part->iov_count == RUN)
            flush_part(part), part->listed = true;
        part->iov[part->iov_count++] = (struct iovec){batch, len};
        out_i16(o, 0);
        out_i64(o, part->end);
        out_i64(o, -1), out_i64(o, 0);
        out_uvarint(o, 1), out_uvarint(o, 0);
        out_i8(o, 0);
        part->end += get_u32(batch + 57);
        p += len + 1;
    }
    out_i8(o, 0);
    out_i32(o, 0);
    out_i8(o, 0);
    put_u32(o->data + at, (uint32_t)(o->len - at - 4));
}

static void fetch(struct conn *c, const uint8_t *p, const uint8_t *end, uint32_t correlation)
{
    p += 4 + 4 + 4;
    uint32_t most = get_u32(p);
    p += 4 + 1 + 4 + 4;
    if (get_uvarint(&p, end) != 2)
        bench_die("one topic a fetch");
    uint32_t name = get_uvarint(&p, end) - 1;
    const uint8_t *name_at = p;
    p += name;
    get_uvarint(&p, end);
    uint32_t index = get_u32(p);
    int64_t offset = (int64_t)get_u64(p + 8);
    struct part *part = part_of(index);
    size_t size = part->batch_bytes ? part->batch_bytes : 1;
    uint64_t pos = part->batch_records ? (uint64_t)offset / part->batch_records * size : 0;
    uint64_t left = part->bytes > pos ? part->bytes - pos : 0, take = most / size * size;
    if (take == 0)
        take = size;
    if (take > left)
        take = left;
    struct out *o = &c->out;
    size_t at = o->len;
    out_i32(o, 0);
    out_i32(o, correlation);
    out_i8(o, 0);
    out_i32(o, 0), out_i16(o, 0), out_i32(o, 0);
    out_uvarint(o, 2);
    out_uvarint(o, name + 1);
    out_bytes(o, name_at, name);
    out_uvarint(o, 2);
    out_i32(o, index), out_i16(o, 0);
    out_i64(o, part->end), out_i64(o, part->end), out_i64(o, 0);
    out_uvarint(o, 0);
    out_i32(o, -1);
    out_uvarint(o, (uint32_t)take + 1);
    // the tags of partition, topic and answer follow the records; the generator does not read them
    put_u32(o->data + at, (uint32_t)(o->len - at - 4 + take));
    c->file_fd = part->fd, c->file_at = (off_t)pos, c->file_left = take;
}

static void forget_all(void)
{
    for (int i = 0; i < PARTITIONS; i++) {
        struct part *p = &parts[i];
        if (p->fd > 0 && ftruncate(p->fd, 0) != 0)
            bench_die("ftruncate: %s", strerror(errno));
        p->bytes = 0, p->end = 0, p->batch_bytes = 0, p->batch_records = 0;
    }
}

static void other(struct conn *c, int api, const uint8_t *p, uint32_t correlation)
{
    struct out *o = &c->out;
    size_t at = o->len;
    out_i32(o, 0);
    out_i32(o, correlation);
    if (api == API_API_VERSIONS) {
        out_i16(o, 0), out_i32(o, 0);
    } else if (api == API_CREATE_TOPICS) {
        size_t len = get_u16(p + 4);
        if (strlen(topic) != len || memcmp(topic, p + 6, len) != 0)
            forget_all();
        snprintf(topic, sizeof topic, "%.*s", (int)len, (const char *)p + 6);
        out_i32(o, 0), out_i32(o, 1), out_str(o, topic), out_i16(o, 0), out_i16(o, -1);
    } else if (api == API_DELETE_TOPICS) {
        forget_all();
        out_i32(o, 0), out_i32(o, 1), out_str(o, topic), out_i16(o, 0);
    } else if (api == API_METADATA) {
        out_i32(o, 1);
        out_i32(o, 1), out_str(o, "127.0.0.1"), out_i32(o, port), out_i16(o, -1);
        out_i32(o, 1);
        out_i32(o, 1), out_i16(o, 0), out_str(o, topic), out_i8(o, 0), out_i32(o, PARTITIONS);
        for (int i = 0; i < PARTITIONS; i++)
            out_i16(o, 0), out_i32(o, i), out_i32(o, 1), out_i32(o, 1), out_i32(o, 1), out_i32(o, 1),
                out_i32(o, 1);
    } else if (api == API_LIST_OFFSETS) {
        size_t len = get_u16(p + 8);
        uint32_t index = get_u32(p + 10 + len + 4);
        out_i32(o, 1), out_i16(o, (int)len), out_bytes(o, p + 10, len), out_i32(o, 1);
        out_i32(o, index), out_i16(o, 0), out_i64(o, -1), out_i64(o, part_of(index)->end);
    } else {
        bench_die("api %d", api);
    }
    put_u32(o->data + at, (uint32_t)(o->len - at - 4));
}

static void arm(struct conn *c, bool write)
{
    if (c->want_write == write)
        return;
    c->want_write = write;
    struct epoll_event e = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

// Sends what there is; true when all has left.
static bool push(struct conn *c)
{
    while (c->out_at < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT | (c->file_left ? MSG_MORE : 0));
        if (n < 0 && errno == EAGAIN)
            return arm(c, true), false;
        if (n <= 0)
            return c->out_at = c->out.len = 0, c->file_left = 0, true; // the peer's close is seen by recv
        c->out_at += (size_t)n;
    }
    c->out_at = c->out.len = 0;
    while (c->file_left > 0) {
        ssize_t n = sendfile(c->fd, c->file_fd, &c->file_at, c->file_left);
        if (n < 0 && errno == EAGAIN)
            return arm(c, true), false;
        if (n <= 0)
            return c->file_left = 0, true;
        c->file_left -= (size_t)n;
    }
    return arm(c, false), true;
}

static bool serve(struct conn *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_len, IN_BYTES - c->in_len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return true;
    if (n <= 0)
        return false;
    c->in_len += (size_t)n;
    size_t at = 0;
    while (c->in_len - at >= 4 && c->file_left == 0) {
        size_t len = get_u32(c->in + at);
        if (len + 4 > IN_BYTES)
            bench_die("frame of %zu bytes", len);
        if (c->in_len - at < len + 4)
            break;
        const uint8_t *p = c->in + at + 4, *end = p + len;
        int api = get_u16(p);
        uint32_t correlation = get_u32(p + 4);
        p += 8;
        p += 2 + get_u16(p);
        if (api == API_PRODUCE)
            produce(c, p + 1, end, correlation);
        else if (api == API_FETCH)
            fetch(c, p + 1, end, correlation);
        else
            other(c, api, p, correlation);
        at += len + 4;
    }
    flush_all();
    push(c);
    memmove(c->in, c->in + at, c->in_len - at);
    c->in_len -= at;
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_die("usage: null_broker PORT DIRECTORY");
    port = (int)strtol(argv[1], NULL, 10);
    dir = argv[2];
    signal(SIGPIPE, SIG_IGN);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(l, (struct sockaddr *)&a, sizeof a) != 0 || listen(l, 1024) != 0)
        bench_die("port %d: %s", port, strerror(errno));
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, l, &e);
    for (;;) {
        struct epoll_event ev[128];
        int n = epoll_wait(epoll_fd, ev, 128, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (c == NULL) {
                int fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0)
                    continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                c = calloc(1, sizeof *c);
                c->fd = fd;
                c->in = aligned_alloc(2u << 20, IN_BYTES);
                madvise(c->in, IN_BYTES, MADV_HUGEPAGE);
                e = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
                continue;
            }
            bool alive = true;
            if (ev[i].events & EPOLLOUT)
                push(c);
            if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                alive = serve(c);
            if (!alive) {
                close(c->fd);
                free(c->in), free(c->out.data), free(c);
            }
        }
    }
}
