// SPDX-License-Identifier: Apache-2.0
// Record batches and the few requests that the benchmarks send, written out by hand.
#include <isa-l.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/bench/bench.h"

static uint64_t next_random(uint64_t *s) // xorshift64*
{
    *s ^= *s >> 12, *s ^= *s << 25, *s ^= *s >> 27;
    return *s * 2685821657736338717u;
}

static void out_varint(struct out *o, int32_t v)
{
    out_uvarint(o, (uint32_t)v << 1 ^ (uint32_t)(v >> 31));
}

static size_t varint_bytes(int32_t v)
{
    uint32_t u = (uint32_t)v << 1 ^ (uint32_t)(v >> 31);
    size_t n = 1;
    while (u >= 0x80)
        u >>= 7, n++;
    return n;
}

uint32_t batch_crc(const uint8_t *batch, size_t len)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)(batch + 21), (int)(len - 21), 0xffffffffu);
}

uint32_t batch_build(struct out *o, size_t bytes, size_t record_bytes, uint64_t seed)
{
    size_t at = o->len;
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    int64_t now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    out_i64(o, 0);  // base offset
    out_i32(o, 0);  // length, below
    out_i32(o, -1); // leader epoch
    out_i8(o, 2);   // magic
    out_i32(o, 0);  // crc, below
    out_i16(o, 0);  // attributes
    out_i32(o, 0);  // last offset delta, below
    out_i64(o, now), out_i64(o, now);
    out_i64(o, -1), out_i16(o, -1), out_i32(o, -1); // no producer id
    out_i32(o, 0);                                  // count, below
    uint32_t count = 0;
    uint64_t s = seed * 2 + 1;
    for (;;) {
        // attributes, timestamp delta 0, offset delta, null key, value length, value, no headers
        size_t fixed = 1 + 1 + varint_bytes((int32_t)count) + 1 + 1;
        size_t left = bytes - (o->len - at);
        size_t value = record_bytes;
        size_t body = fixed + varint_bytes((int32_t)value) + value;
        if (varint_bytes((int32_t)body) + body > left) {
            if (count > 0 || left < fixed + 16)
                break;
            value = left - fixed - 8; // a single record that fills the batch
            body = fixed + varint_bytes((int32_t)value) + value;
        }
        out_varint(o, (int32_t)body);
        out_i8(o, 0), out_i8(o, 0);
        out_varint(o, (int32_t)count);
        out_varint(o, -1);
        out_varint(o, (int32_t)value);
        size_t whole = value / 8;
        for (size_t i = 0; i < whole; i++) {
            uint64_t r = next_random(&s);
            out_bytes(o, &r, 8);
        }
        uint64_t r = next_random(&s);
        out_bytes(o, &r, value % 8);
        out_i8(o, 0);
        count++;
    }
    uint8_t *b = o->data + at;
    size_t len = o->len - at;
    put_u32(b + 8, (uint32_t)(len - 12));
    put_u32(b + 23, count - 1);
    put_u32(b + 57, count);
    put_u32(b + 17, batch_crc(b, len));
    return count;
}

static void header(struct out *o, int api, int version, bool flexible, size_t *correlation_at)
{
    out_frame_begin(o);
    out_i16(o, api);
    out_i16(o, version);
    if (correlation_at != NULL)
        *correlation_at = o->len;
    out_i32(o, 0);
    out_str(o, "kraft-bench");
    if (flexible)
        out_i8(o, 0);
}

void produce_frame_build(struct produce_frame *f, const char *topic, int acks, uint32_t first, uint32_t count,
                         size_t batch_bytes, size_t record_bytes)
{
    struct out *o = &f->bytes, batch = {0};
    memset(f, 0, sizeof *f);
    header(o, API_PRODUCE, PRODUCE_VERSION, true, &f->correlation_at);
    out_uvarint(o, 0); // no transactional id
    out_i16(o, acks);
    out_i32(o, 30000);
    out_uvarint(o, 2); // one topic
    out_compact_str(o, topic);
    out_uvarint(o, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        batch.len = 0;
        f->records += batch_build(&batch, batch_bytes, record_bytes, first + i + 1);
        f->payload_bytes += batch.len;
        out_i32(o, first + i);
        out_uvarint(o, (uint32_t)batch.len + 1);
        out_bytes(o, batch.data, batch.len);
        out_i8(o, 0);
    }
    out_i8(o, 0), out_i8(o, 0);
    out_frame_end(o);
    free(batch.data);
}

static void metadata(int fd, const char *topic, int partitions)
{
    struct out o = {0};
    uint8_t *in = NULL;
    size_t cap = 0;
    for (int tries = 0; tries < 6000; tries++) {
        header(&o, API_METADATA, 1, false, NULL);
        out_i32(&o, 1);
        out_str(&o, topic);
        out_frame_end(&o);
        bench_send_all(fd, o.data, o.len);
        size_t len = bench_recv_frame(fd, &in, &cap);
        const uint8_t *p = in + 4, *end = in + len;
        uint32_t brokers = get_u32(p);
        p += 4;
        for (uint32_t i = 0; i < brokers && p + 6 < end; i++) {
            p += 4;
            p += 2 + get_u16(p); // host
            p += 4;
            p += get_u16(p) == 0xffff ? 2 : 2 + get_u16(p); // rack
        }
        p += 4; // controller
        int led = 0;
        if (get_u32(p) == 1 && get_u16(p + 4) == 0) {
            p += 6;
            p += 2 + get_u16(p) + 1; // name, internal
            uint32_t n = get_u32(p);
            p += 4;
            for (uint32_t i = 0; i < n && p < end; i++) {
                led += get_u16(p) == 0 && (int32_t)get_u32(p + 6) >= 0;
                p += 10;
                p += 4 + 4 * (size_t)get_u32(p);
                p += 4 + 4 * (size_t)get_u32(p);
            }
        }
        if (led >= partitions) {
            free(o.data), free(in);
            return;
        }
        struct timespec wait = {.tv_nsec = 10 * 1000 * 1000};
        nanosleep(&wait, NULL);
    }
    bench_die("topic %s has no leaders after 60 s", topic);
}

// ListOffsets latest: the offset, or minus the error code.
static int64_t end_offset(int fd, const char *topic, int partition)
{
    struct out o = {0};
    uint8_t *in = NULL;
    size_t cap = 0;
    header(&o, API_LIST_OFFSETS, 1, false, NULL);
    out_i32(&o, -1);
    out_i32(&o, 1);
    out_str(&o, topic);
    out_i32(&o, 1);
    out_i32(&o, partition);
    out_i64(&o, -1);
    out_frame_end(&o);
    bench_send_all(fd, o.data, o.len);
    bench_recv_frame(fd, &in, &cap);
    const uint8_t *p = in + 4 + 4 + 2 + strlen(topic) + 4 + 4;
    int64_t offset = get_u16(p) != 0 ? -(int64_t)get_u16(p) : (int64_t)get_u64(p + 10);
    free(o.data), free(in);
    return offset;
}

int64_t bench_end_offset(int fd, const char *topic, int partition)
{
    int64_t offset = end_offset(fd, topic, partition);
    if (offset < 0)
        bench_die("ListOffsets %s-%d: error %lld", topic, partition, (long long)-offset);
    return offset;
}

void bench_create_topic(int fd, const char *topic, int partitions)
{
    struct out o = {0};
    uint8_t *in = NULL;
    size_t cap = 0;
    header(&o, API_CREATE_TOPICS, 2, false, NULL);
    out_i32(&o, 1);
    out_str(&o, topic);
    out_i32(&o, partitions);
    out_i16(&o, 1);
    out_i32(&o, 0), out_i32(&o, 0);
    out_i32(&o, 30000);
    out_i8(&o, 0);
    out_frame_end(&o);
    bench_send_all(fd, o.data, o.len);
    bench_recv_frame(fd, &in, &cap);
    size_t at = 4 + 4 + 4 + 2 + strlen(topic);
    int error = (int16_t)get_u16(in + at);
    if (error != 0 && error != 36)
        bench_die("CreateTopics %s: error %d", topic, error);
    free(o.data), free(in);
    metadata(fd, topic, partitions);
    // metadata may name a leader that has not opened the partition yet
    for (int p = 0, tries = 0; p < partitions;) {
        if (end_offset(fd, topic, p) >= 0) {
            p++;
            continue;
        }
        if (++tries > 6000)
            bench_die("%s-%d is not led after 60 s", topic, p);
        struct timespec wait = {.tv_nsec = 10 * 1000 * 1000};
        nanosleep(&wait, NULL);
    }
}
