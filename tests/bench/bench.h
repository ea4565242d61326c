// SPDX-License-Identifier: Apache-2.0
// Shared pieces of the load generator and the null broker: clock, histogram, byte writer, batches, wire
// requests.
//
// Deliberately written without Kraft's own codec: what measures and checks a broker should not share its
// mistakes.
#ifndef KRAFT_TESTS_BENCH_H
#define KRAFT_TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t bench_now_ns(void); // monotonic, ns
void bench_die(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2))); // message to stderr, exit 1

// ---- histogram: log-linear, 128 steps an octave (error under 1 %), values in microseconds
// ---------------------
#define HIST_SUB 128
#define HIST_OCTAVES 40
struct hist {
    uint64_t count;                           // samples
    uint64_t max;                             // largest value
    uint32_t bucket[HIST_OCTAVES * HIST_SUB]; // samples by bucket
};
void hist_add(struct hist *h, uint64_t value);
uint64_t hist_quantile(const struct hist *h, double q); // lower edge of the bucket that holds the quantile
void hist_print(const struct hist *h,
                const char *name); // "name_p50":..,"name_p99":..,"name_p999":..,"name_max":..

// ---- bytes
// -----------------------------------------------------------------------------------------------------
struct out {
    uint8_t *data; // malloc'd
    size_t len, cap;
};
void out_bytes(struct out *o, const void *data, size_t len);
void out_i8(struct out *o, int v);
void out_i16(struct out *o, int v);
void out_i32(struct out *o, int64_t v);
void out_i64(struct out *o, int64_t v);
void out_uvarint(struct out *o, uint32_t v);
void out_str(struct out *o, const char *s);         // int16 length
void out_compact_str(struct out *o, const char *s); // uvarint length + 1
void out_frame_begin(struct out *o);                // room for the length; one frame a buffer
void out_frame_end(struct out *o);

static inline uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)get_u16(p) << 16 | get_u16(p + 2);
}
static inline uint64_t get_u64(const uint8_t *p)
{
    return (uint64_t)get_u32(p) << 32 | get_u32(p + 4);
}
static inline void put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}
static inline void put_u64(uint8_t *p, uint64_t v)
{
    put_u32(p, (uint32_t)(v >> 32)), put_u32(p + 4, (uint32_t)v);
}
// Reads an unsigned varint at *p before `end`; returns it and moves *p, or dies.
uint32_t get_uvarint(const uint8_t **p, const uint8_t *end);

// ---- record batches
// -------------------------------------------------------------------------------------------- One v2 batch
// of at most `bytes` bytes made of records with `record_bytes` of random value each, CRC correct. Returns the
// number of records. The timestamp is the time of the call.
uint32_t batch_build(struct out *o, size_t bytes, size_t record_bytes, uint64_t seed);
uint32_t batch_crc(const uint8_t *batch, size_t len); // CRC-32C over what the header's CRC covers

// ---- requests
// --------------------------------------------------------------------------------------------------
enum {
    API_PRODUCE = 0,
    API_FETCH = 1,
    API_LIST_OFFSETS = 2,
    API_METADATA = 3,
    API_API_VERSIONS = 18,
    API_CREATE_TOPICS = 19,
    API_DELETE_TOPICS = 20
};
#define PRODUCE_VERSION 9
#define FETCH_VERSION 12

struct produce_frame {
    struct out bytes;      // the whole frame
    size_t correlation_at; // position of the correlation id
    size_t payload_bytes;  // bytes of record batches
    uint32_t records;      // records in all batches
};
// Produce v9 to partitions [first, first + count) of a topic, one batch each.
void produce_frame_build(struct produce_frame *f, const char *topic, int acks, uint32_t first, uint32_t count,
                         size_t batch_bytes, size_t record_bytes);

// ---- sockets
// ---------------------------------------------------------------------------------------------------
int bench_connect(const char *host, int port);               // blocking connect, TCP_NODELAY; dies on failure
void bench_send_all(int fd, const void *data, size_t len);   // blocking
size_t bench_recv_frame(int fd, uint8_t **buf, size_t *cap); // blocking; returns the payload length
// Creates a topic and waits until every partition has a leader, at most 60 s. Existing is fine.
void bench_create_topic(int fd, const char *topic, int partitions);
int64_t bench_end_offset(int fd, const char *topic, int partition); // ListOffsets latest

// ---- modes (their options are in main.c)
// -------------------------------------------------------------------------
struct bench_opts {
    const char *host, *topic;
    int port, partitions, conns, window, acks, max_bytes, per_request;
    size_t batch_bytes, record_bytes;
    uint64_t requests; // stop after this many; 0 = by time
    double seconds, rate;
    bool create, check;
};
int bench_produce(const struct bench_opts *o);
int bench_fetch(const struct bench_opts *o);
int bench_ping(const struct bench_opts *o);
int bench_idle(const struct bench_opts *o);

#endif
