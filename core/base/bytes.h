// SPDX-License-Identifier: Apache-2.0
// Integers as bytes: big-endian and little-endian, and the varints of Kafka's records and tagged fields.
//
// Readers are given what is left and answer how many bytes they took, or 0 where the bytes end too early or
// the number does not fit. Writers answer how many bytes they wrote; VARINT_BYTES_MAX and VARLONG_BYTES_MAX
// suffice.
#ifndef KRAFT_BASE_BYTES_H
#define KRAFT_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

static inline uint16_t bytes_load_be16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}
static inline uint32_t bytes_load_be32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}
static inline uint64_t bytes_load_be64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}
static inline void bytes_store_be16(void *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}
static inline void bytes_store_be32(void *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}
static inline void bytes_store_be64(void *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}
static inline uint32_t bytes_load_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t bytes_load_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void bytes_store_le32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}
static inline void bytes_store_le64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the loads and stores above assume a little-endian machine");

// Unsigned varint of up to 64 bits: seven bits a byte, least significant first.
static inline size_t uvarlong_read(const uint8_t *p, size_t len, uint64_t *out)
{
    uint64_t v = 0;
    size_t end = len < VARLONG_BYTES_MAX ? len : VARLONG_BYTES_MAX;
    for (size_t i = 0; i < end; i++) {
        if (i == VARLONG_BYTES_MAX - 1 && p[i] > 1)
            return 0;
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}
static inline size_t uvarint_read(const uint8_t *p, size_t len, uint32_t *out)
{
    uint32_t v = 0;
    size_t end = len < VARINT_BYTES_MAX ? len : VARINT_BYTES_MAX;
    for (size_t i = 0; i < end; i++) {
        if (i == VARINT_BYTES_MAX - 1 && p[i] > 15)
            return 0;
        v |= (uint32_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}
static inline size_t uvarlong_write(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}
static inline size_t uvarint_write(uint8_t *p, uint32_t v)
{
    return uvarlong_write(p, v);
}
static inline size_t uvarlong_size(uint64_t v)
{
    return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}
static inline size_t uvarint_size(uint32_t v)
{
    return uvarlong_size(v);
}

// Zigzag forms, for signed numbers.
static inline uint32_t zigzag_encode32(int32_t v)
{
    return ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
}
static inline int32_t zigzag_decode32(uint32_t v)
{
    return (int32_t)((v >> 1) ^ (0u - (v & 1)));
}
static inline uint64_t zigzag_encode64(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline int64_t zigzag_decode64(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (0u - (v & 1)));
}
static inline size_t varint_read(const uint8_t *p, size_t len, int32_t *out)
{
    uint32_t u;
    size_t n = uvarint_read(p, len, &u);
    if (n)
        *out = zigzag_decode32(u);
    return n;
}
static inline size_t varlong_read(const uint8_t *p, size_t len, int64_t *out)
{
    uint64_t u;
    size_t n = uvarlong_read(p, len, &u);
    if (n)
        *out = zigzag_decode64(u);
    return n;
}
static inline size_t varint_write(uint8_t *p, int32_t v)
{
    return uvarlong_write(p, zigzag_encode32(v));
}
static inline size_t varlong_write(uint8_t *p, int64_t v)
{
    return uvarlong_write(p, zigzag_encode64(v));
}
static inline size_t varint_size(int32_t v)
{
    return uvarlong_size(zigzag_encode32(v));
}
static inline size_t varlong_size(int64_t v)
{
    return uvarlong_size(zigzag_encode64(v));
}

#endif
