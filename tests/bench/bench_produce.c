// SPDX-License-Identifier: Apache-2.0
// Produce load: closed loop (a fixed window a connection) or open loop (a fixed schedule), pre-built batches.
//
// Each connection owns a template: up to `window` whole frames, one behind the other, sent round and round
// with no copying. Answers come in order, so the k-th answer belongs to the k-th frame sent. In open loop a
// request's latency counts from when it was due, not from when it was sent.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "tests/bench/bench.h"

#define RING 65536 // requests in flight a connection at most (open loop may fall behind)

struct pconn {
    int fd;
    bool want_write;          // EPOLLOUT is armed
    uint8_t *frames;          // template: frames_count frames
    size_t frames_len;        // bytes of it
    size_t frame_len;         // bytes of one frame (all are equal)
    uint32_t frames_count;    // frames in it
    size_t at;                // next byte to send
    uint64_t queued;          // bytes that may be sent and were not yet
    uint64_t begun, answered; // requests
    uint64_t due[RING];       // ns; when request i was due (open loop) or allowed (closed loop)
    uint8_t *in;              // receive buffer
    size_t in_len, in_cap;
};

struct produce_run {
    const struct bench_opts *o;
    struct pconn *conns;
    int epoll;
    uint64_t begun, answered, errors, last_error;
    uint64_t limit; // requests to send in all; UINT64_MAX while by time
    struct hist latency, lateness;
    size_t payload;   // bytes a request
    uint32_t records; // a request
};

static void arm(struct produce_run *r, struct pconn *c, bool write)
{
    if (c->want_write == write)
        return;
    struct epoll_event e = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = c};
    c->want_write = write;
    epoll_ctl(r->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void push(struct produce_run *r, struct pconn *c)
{
    while (c->queued > 0) {
        size_t n = c->frames_len - c->at;
        if (n > c->queued)
            n = c->queued;
        ssize_t sent = send(c->fd, c->frames + c->at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            arm(r, c, true);
            return;
        }
        if (sent <= 0)
            bench_die("send: %s", strerror(errno));
        c->at += (size_t)sent;
        c->queued -= (uint64_t)sent;
        if (c->at == c->frames_len)
            c->at = 0;
    }
    arm(r, c, false);
}

static void begin(struct produce_run *r, struct pconn *c, uint64_t due)
{
    if (c->begun - c->answered >= RING)
        bench_die("more than %d requests in flight; the broker cannot keep the rate", RING);
    c->due[c->begun % RING] = due;
    c->begun++;
    r->begun++;
    c->queued += c->frame_len;
}

static void check_answer(struct produce_run *r, const uint8_t *p, size_t len)
{
    const uint8_t *end = p + len;
    p += 4 + 1; // correlation, tags
    uint32_t topics = get_uvarint(&p, end) - 1;
    for (uint32_t t = 0; t < topics; t++) {
        uint32_t name = get_uvarint(&p, end) - 1;
        p += name;
        uint32_t parts = get_uvarint(&p, end) - 1;
        for (uint32_t i = 0; i < parts; i++) {
            if (end - p < 30)
                bench_die("short Produce answer");
            int16_t error = (int16_t)get_u16(p + 4);
            if (error != 0)
                r->errors++, r->last_error = (uint64_t)error;
            p += 4 + 2 + 8 + 8 + 8;
            uint32_t record_errors = get_uvarint(&p, end);
            if (record_errors > 1)
                return; // counted above; the rest is not needed
            uint32_t message = get_uvarint(&p, end);
            p += message > 0 ? message - 1 : 0;
            p += 1;
        }
        p += 1;
    }
}

static void answers(struct produce_run *r, struct pconn *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            bench_die("the broker closed the connection after %llu answers", (unsigned long long)r->answered);
        c->in_len += (size_t)n;
        uint64_t now = bench_now_ns();
        size_t at = 0;
        while (c->in_len - at >= 4) {
            size_t len = get_u32(c->in + at);
            if (len + 4 > c->in_cap)
                bench_die("answer of %zu bytes", len);
            if (c->in_len - at < len + 4)
                break;
            if (get_u32(c->in + at + 4) != (uint32_t)(c->answered % c->frames_count))
                bench_die("answers out of order");
            check_answer(r, c->in + at + 4, len);
            hist_add(&r->latency, (now - c->due[c->answered % RING]) / 1000);
            c->answered++;
            r->answered++;
            if (r->o->rate <= 0 && r->begun < r->limit)
                begin(r, c, now);
            at += len + 4;
        }
        memmove(c->in, c->in + at, c->in_len - at);
        c->in_len -= at;
        push(r, c);
        if ((size_t)n < c->in_cap / 2)
            return;
    }
}

static void conn_open(struct produce_run *r, struct pconn *c, int index)
{
    const struct bench_opts *o = r->o;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    c->fd = bench_connect(o->host, o->port);
    uint32_t count = (uint32_t)o->window;
    for (uint32_t i = 0; i < count; i++) {
        struct produce_frame f;
        uint32_t first =
            (uint32_t)(((uint64_t)index * count + i) * (uint64_t)o->per_request % (uint64_t)o->partitions);
        produce_frame_build(&f, o->topic, o->acks, first, (uint32_t)o->per_request, o->batch_bytes,
                            o->record_bytes);
        put_u32(f.bytes.data + f.correlation_at, i);
        if (i == 0) {
            size_t most = 16u << 20;
            while (count > 1 && count * f.bytes.len > most)
                count--;
            c->frame_len = f.bytes.len;
            c->frames_len = count * f.bytes.len;
            c->frames = aligned_alloc(4096, (c->frames_len + 4095) & ~(size_t)4095);
            r->payload = f.payload_bytes, r->records = f.records;
        }
        if (f.bytes.len != c->frame_len)
            bench_die("frames differ in size");
        memcpy(c->frames + i * c->frame_len, f.bytes.data, c->frame_len);
        free(f.bytes.data);
    }
    c->frames_count = count;
    c->in_cap = 1 << 20;
    c->in = malloc(c->in_cap);
    if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0)
        bench_die("epoll: %s", strerror(errno));
}

static int64_t ends(const struct bench_opts *o, int fd)
{
    int64_t sum = 0;
    for (int p = 0; p < o->partitions; p++)
        sum += bench_end_offset(fd, o->topic, p);
    return sum;
}

int bench_produce(const struct bench_opts *o)
{
    struct produce_run *r = calloc(1, sizeof *r);
    r->o = o;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->limit = o->requests > 0 ? o->requests : UINT64_MAX;
    int admin = -1;
    int64_t before = 0;
    if (o->create || o->check)
        admin = bench_connect(o->host, o->port);
    if (o->create)
        bench_create_topic(admin, o->topic, o->partitions);
    if (o->check)
        before = ends(o, admin);
    r->conns = calloc((size_t)o->conns, sizeof *r->conns);
    for (int i = 0; i < o->conns; i++)
        conn_open(r, &r->conns[i], i);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event te = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(r->epoll, EPOLL_CTL_ADD, timer, &te);

    uint64_t start = bench_now_ns(),
             stop = o->requests > 0 ? UINT64_MAX : start + (uint64_t)(o->seconds * 1e9);
    uint64_t step = o->rate > 0 ? (uint64_t)(1e9 / o->rate) : 0, next = start;
    uint64_t planned = o->rate > 0 ? (o->requests > 0 ? o->requests : (uint64_t)(o->seconds * o->rate)) : 0;
    if (o->rate <= 0)
        for (int w = 0; w < o->window; w++)
            for (int i = 0; i < o->conns && r->begun < r->limit; i++)
                begin(r, &r->conns[i], start);
    for (int i = 0; i < o->conns; i++)
        push(r, &r->conns[i]);
    for (;;) {
        uint64_t now = bench_now_ns();
        if (o->rate > 0) {
            while (next <= now && r->begun < planned) {
                struct pconn *c = &r->conns[r->begun % (uint64_t)o->conns];
                hist_add(&r->lateness, (now - next) / 1000);
                begin(r, c, next);
                push(r, c);
                next += step;
            }
            if (r->begun < planned) {
                struct itimerspec ts = {.it_value = {.tv_sec = (time_t)(next / 1000000000u),
                                                     .tv_nsec = (long)(next % 1000000000u)}};
                timerfd_settime(timer, TFD_TIMER_ABSTIME, &ts, NULL);
            } else if (r->answered == r->begun) {
                break;
            }
        } else {
            if (now >= stop)
                r->limit = 0; // begins no more
            if (r->begun >= r->limit && r->answered >= r->begun)
                break;
        }
        struct epoll_event ev[64];
        int n = epoll_wait(r->epoll, ev, 64, 1000);
        for (int i = 0; i < n; i++) {
            struct pconn *c = ev[i].data.ptr;
            if (c == NULL) {
                uint64_t ticks;
                (void)!read(timer, &ticks, sizeof ticks);
                continue;
            }
            if (ev[i].events & EPOLLOUT)
                push(r, c);
            if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                answers(r, c);
        }
        if (n == 0 && bench_now_ns() > start + 120u * 1000000000ull)
            bench_die("no answer for long; %llu of %llu requests answered", (unsigned long long)r->answered,
                      (unsigned long long)r->begun);
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    double bytes = (double)r->answered * (double)r->payload;
    bool equal = true;
    if (o->check)
        equal = ends(o, admin) - before == (int64_t)(r->answered * r->records);
    printf("{\"seconds\":%.4f,\"requests\":%llu,\"errors\":%llu,\"last_error\":%lld,\"bytes\":%.0f,\"gb_per_"
           "s\":%.4f,\"requests_per_s\":%.1f,",
           seconds, (unsigned long long)r->answered, (unsigned long long)r->errors, (long long)r->last_error,
           bytes, bytes / seconds / 1e9, (double)r->answered / seconds);
    hist_print(&r->latency, "us");
    if (o->rate > 0) {
        printf(",\"achieved\":%.4f,", (double)r->answered / seconds / o->rate);
        hist_print(&r->lateness, "late_us");
    }
    if (o->check)
        printf(",\"offsets_equal\":%s", equal ? "true" : "false");
    printf("}\n");
    return r->errors > 0 || !equal;
}
