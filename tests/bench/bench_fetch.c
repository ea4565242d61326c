// SPDX-License-Identifier: Apache-2.0
// Fetch load, ping load and idle connections. Every batch that is fetched is checked: CRC and dense offsets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <errno.h>
#include "tests/bench/bench.h"

struct fconn {
    int fd, partition;
    int64_t offset;   // next to ask for
    uint64_t sent_ns; // when the request left
    struct out request;
    uint8_t *in; // a whole answer with its length
    size_t in_len, in_cap;
};

static void ask(const struct bench_opts *o, struct fconn *c)
{
    struct out *r = &c->request;
    out_frame_begin(r);
    out_i16(r, API_FETCH), out_i16(r, FETCH_VERSION), out_i32(r, 0);
    out_str(r, "kraft-bench");
    out_i8(r, 0);
    out_i32(r, -1);  // replica
    out_i32(r, 500); // max wait
    out_i32(r, 1);   // min bytes
    out_i32(r, o->max_bytes);
    out_i8(r, 0);                  // read uncommitted
    out_i32(r, 0), out_i32(r, -1); // no session
    out_uvarint(r, 2);
    out_compact_str(r, o->topic);
    out_uvarint(r, 2);
    out_i32(r, c->partition);
    out_i32(r, -1); // current leader epoch
    out_i64(r, c->offset);
    out_i32(r, -1); // last fetched epoch
    out_i64(r, -1); // log start offset
    out_i32(r, o->max_bytes);
    out_i8(r, 0), out_i8(r, 0);
    out_uvarint(r, 1);      // nothing forgotten
    out_compact_str(r, ""); // no rack
    out_i8(r, 0);
    out_frame_end(r);
    c->sent_ns = bench_now_ns();
    bench_send_all(c->fd, r->data, r->len);
}

// Walks an answer; returns the bytes of whole batches and moves the offset.
static size_t take(const struct bench_opts *o, struct fconn *c)
{
    const uint8_t *p = c->in + 4, *end = c->in + c->in_len;
    p += 4 + 1 + 4; // correlation, tags, throttle
    if (get_u16(p) != 0)
        bench_die("Fetch: error %d", (int16_t)get_u16(p));
    p += 2 + 4; // error, session
    if (get_uvarint(&p, end) != 2)
        return 0;
    uint32_t name = get_uvarint(&p, end) - 1;
    p += name;
    if (get_uvarint(&p, end) != 2)
        return 0;
    if (get_u16(p + 4) != 0)
        bench_die("Fetch of %s-%d: error %d", o->topic, c->partition, (int16_t)get_u16(p + 4));
    p += 4 + 2 + 8 + 8 + 8;
    uint32_t aborted = get_uvarint(&p, end);
    if (aborted > 1)
        bench_die("aborted transactions in a log without transactions");
    p += 4; // preferred replica
    uint32_t records = get_uvarint(&p, end);
    size_t left = records > 0 ? records - 1 : 0, taken = 0;
    if (left > (size_t)(end - p))
        bench_die("records pass the end of the answer");
    while (left >= 61) {
        size_t len = 12 + (size_t)get_u32(p + 8);
        if (len > left)
            break;
        int64_t base = (int64_t)get_u64(p);
        int64_t last = base + get_u32(p + 23);
        if (get_u32(p + 17) != batch_crc(p, len))
            bench_die("bad CRC at offset %lld of partition %d", (long long)base, c->partition);
        if (base > c->offset || last < c->offset)
            bench_die("gap: asked for %lld, got %lld to %lld", (long long)c->offset, (long long)base,
                      (long long)last);
        c->offset = last + 1;
        p += len, left -= len, taken += len;
    }
    return taken;
}

int bench_fetch(const struct bench_opts *o)
{
    struct hist latency = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC), admin = bench_connect(o->host, o->port);
    int64_t *end = calloc((size_t)o->partitions, sizeof *end);
    for (int p = 0; p < o->partitions; p++)
        end[p] = bench_end_offset(admin, o->topic, p);
    struct fconn *conns = calloc((size_t)o->conns, sizeof *conns);
    uint64_t start = bench_now_ns(), requests = 0, bytes = 0, stop = start + (uint64_t)(o->seconds * 1e9);
    for (int i = 0; i < o->conns; i++) {
        struct fconn *c = &conns[i];
        c->fd = bench_connect(o->host, o->port);
        c->partition = i % o->partitions;
        c->in_cap = (size_t)o->max_bytes * 2 + (4u << 20);
        c->in = malloc(c->in_cap);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
    }
    for (int i = 0; i < o->conns; i++)
        ask(o, &conns[i]);
    int live = o->conns;
    while (live > 0) {
        struct epoll_event ev[64];
        int n = epoll_wait(epoll, ev, 64, 30000);
        if (n == 0)
            bench_die("no answer for 30 s");
        for (int i = 0; i < n; i++) {
            struct fconn *c = ev[i].data.ptr;
            ssize_t got = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN)
                continue;
            if (got <= 0)
                bench_die("the broker closed the connection");
            c->in_len += (size_t)got;
            if (c->in_len < 4 || c->in_len < 4 + (size_t)get_u32(c->in)) {
                if (c->in_len >= 4 && 4 + (size_t)get_u32(c->in) > c->in_cap)
                    bench_die("answer of %u bytes", get_u32(c->in));
                continue;
            }
            uint64_t now = bench_now_ns();
            hist_add(&latency, (now - c->sent_ns) / 1000);
            bytes += take(o, c);
            requests++;
            c->in_len = 0;
            if ((o->requests > 0 && requests >= o->requests) || (o->requests == 0 && now >= stop)) {
                live--;
                continue;
            }
            if (c->offset >= end[c->partition]) {
                c->partition = (c->partition + o->conns) % o->partitions;
                c->offset = 0;
            }
            ask(o, c);
        }
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    printf("{\"seconds\":%.4f,\"requests\":%llu,\"errors\":0,\"bytes\":%llu,\"gb_per_s\":%.4f,\"requests_per_"
           "s\":%.1f,",
           seconds, (unsigned long long)requests, (unsigned long long)bytes, (double)bytes / seconds / 1e9,
           (double)requests / seconds);
    hist_print(&latency, "us");
    printf("}\n");
    return 0;
}

static void api_versions(struct out *r)
{
    out_frame_begin(r);
    out_i16(r, API_API_VERSIONS), out_i16(r, 0), out_i32(r, 7);
    out_str(r, "kraft-bench");
    out_frame_end(r);
}

int bench_ping(const struct bench_opts *o)
{
    struct hist latency = {0};
    struct out r = {0};
    uint8_t *in = NULL;
    size_t cap = 0;
    int fd = bench_connect(o->host, o->port);
    api_versions(&r);
    uint64_t count = o->requests > 0 ? o->requests : 10000, start = bench_now_ns();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t t = bench_now_ns();
        bench_send_all(fd, r.data, r.len);
        bench_recv_frame(fd, &in, &cap);
        hist_add(&latency, (bench_now_ns() - t) / 1000);
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    printf("{\"seconds\":%.4f,\"requests\":%llu,\"errors\":0,\"requests_per_s\":%.1f,", seconds,
           (unsigned long long)count, (double)count / seconds);
    hist_print(&latency, "us");
    printf("}\n");
    return 0;
}

int bench_idle(const struct bench_opts *o)
{
    struct out r = {0};
    uint8_t *in = NULL;
    size_t cap = 0;
    int *fds = calloc((size_t)o->conns, sizeof *fds);
    api_versions(&r);
    for (int i = 0; i < o->conns; i++) {
        fds[i] = bench_connect(o->host, o->port);
        bench_send_all(fds[i], r.data, r.len);
        bench_recv_frame(fds[i], &in, &cap);
    }
    printf("{\"connections\":%d}\n", o->conns);
    fflush(stdout);
    uint64_t stop = bench_now_ns() + (uint64_t)(o->seconds * 1e9);
    while (bench_now_ns() < stop)
        usleep(100000);
    for (int i = 0; i < o->conns; i++) // every one must still be served
        bench_send_all(fds[i], r.data, r.len), bench_recv_frame(fds[i], &in, &cap);
    return 0;
}
