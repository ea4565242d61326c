// SPDX-License-Identifier: Apache-2.0
// Clock, histogram, byte writer and sockets of the benchmarks.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/bench/bench.h"

uint64_t bench_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void bench_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static unsigned hist_index(uint64_t v)
{
    if (v < HIST_SUB)
        return (unsigned)v;
    unsigned octave = 63u - (unsigned)__builtin_clzll(v) - 6u; // v >= 128: at least 1
    unsigned i = octave * HIST_SUB + (unsigned)((v >> octave) & (HIST_SUB - 1));
    return i < HIST_OCTAVES * HIST_SUB ? i : HIST_OCTAVES * HIST_SUB - 1;
}

void hist_add(struct hist *h, uint64_t value)
{
    h->bucket[hist_index(value)]++;
    h->count++;
    if (value > h->max)
        h->max = value;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
    uint64_t want = (uint64_t)((double)h->count * q), seen = 0;
    for (unsigned i = 0; i < HIST_OCTAVES * HIST_SUB; i++) {
        seen += h->bucket[i];
        if (h->bucket[i] > 0 && (seen > want || seen == h->count)) {
            unsigned octave = i / HIST_SUB;
            uint64_t value = (uint64_t)(i % HIST_SUB) << octave;
            return value < h->max ? value : h->max;
        }
    }
    return h->max;
}

void hist_print(const struct hist *h, const char *name)
{
    printf("\"%s_p50\":%llu,\"%s_p99\":%llu,\"%s_p999\":%llu,\"%s_max\":%llu", name,
           (unsigned long long)hist_quantile(h, 0.5), name, (unsigned long long)hist_quantile(h, 0.99), name,
           (unsigned long long)hist_quantile(h, 0.999), name, (unsigned long long)h->max);
}

void out_bytes(struct out *o, const void *data, size_t len)
{
    if (o->len + len > o->cap) {
        o->cap = (o->len + len) * 2 + 64;
        o->data = realloc(o->data, o->cap);
        if (o->data == NULL)
            bench_die("out of memory");
    }
    if (len > 0)
        memcpy(o->data + o->len, data, len);
    o->len += len;
}
void out_i8(struct out *o, int v)
{
    uint8_t b = (uint8_t)v;
    out_bytes(o, &b, 1);
}
void out_i16(struct out *o, int v)
{
    uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};
    out_bytes(o, b, 2);
}
void out_i32(struct out *o, int64_t v)
{
    uint8_t b[4];
    put_u32(b, (uint32_t)v);
    out_bytes(o, b, 4);
}
void out_i64(struct out *o, int64_t v)
{
    uint8_t b[8];
    put_u64(b, (uint64_t)v);
    out_bytes(o, b, 8);
}
void out_uvarint(struct out *o, uint32_t v)
{
    while (v >= 0x80) {
        out_i8(o, (int)(v & 0x7f) | 0x80);
        v >>= 7;
    }
    out_i8(o, (int)v);
}
void out_str(struct out *o, const char *s)
{
    out_i16(o, (int)strlen(s));
    out_bytes(o, s, strlen(s));
}
void out_compact_str(struct out *o, const char *s)
{
    out_uvarint(o, (uint32_t)strlen(s) + 1);
    out_bytes(o, s, strlen(s));
}
void out_frame_begin(struct out *o)
{
    o->len = 0;
    out_i32(o, 0);
}
void out_frame_end(struct out *o)
{
    put_u32(o->data, (uint32_t)(o->len - 4));
}

uint32_t get_uvarint(const uint8_t **p, const uint8_t *end)
{
    uint32_t v = 0;
    for (unsigned shift = 0; shift < 35 && *p < end; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint32_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return v;
    }
    bench_die("bad varint in an answer");
}

int bench_connect(const char *host, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (fd < 0 || inet_pton(AF_INET, host, &a.sin_addr) != 1)
        bench_die("bad host %s", host);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        bench_die("connect to %s:%d: %s", host, port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

void bench_send_all(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            bench_die("send: %s", strerror(errno));
        p += n, len -= (size_t)n;
    }
}

static void recv_exact(int fd, uint8_t *p, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, p, len, MSG_WAITALL);
        if (n <= 0)
            bench_die("recv: %s", n == 0 ? "the broker closed the connection" : strerror(errno));
        p += n, len -= (size_t)n;
    }
}

size_t bench_recv_frame(int fd, uint8_t **buf, size_t *cap)
{
    uint8_t head[4];
    recv_exact(fd, head, 4);
    size_t len = get_u32(head);
    if (len > *cap) {
        *cap = len;
        *buf = realloc(*buf, len);
        if (*buf == NULL)
            bench_die("out of memory");
    }
    recv_exact(fd, *buf, len);
    return len;
}
