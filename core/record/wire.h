// SPDX-License-Identifier: Apache-2.0
// Big-endian integers and zigzag varints, as record batches and Kafka's files hold them.
#ifndef KRAFT_RECORD_WIRE_H
#define KRAFT_RECORD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WIRE_VARINT_BYTES_MAX 5   // longest varint of 32 bits
#define WIRE_VARLONG_BYTES_MAX 10 // longest varint of 64 bits

static inline int16_t wire_get_i16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return (int16_t)__builtin_bswap16(v);
}
static inline int32_t wire_get_i32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return (int32_t)__builtin_bswap32(v);
}
static inline uint32_t wire_get_u32(const uint8_t *p)
{
    return (uint32_t)wire_get_i32(p);
}
static inline int64_t wire_get_i64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return (int64_t)__builtin_bswap64(v);
}
static inline void wire_put_i16(uint8_t *p, int16_t value)
{
    uint16_t v = __builtin_bswap16((uint16_t)value);
    memcpy(p, &v, sizeof v);
}
static inline void wire_put_i32(uint8_t *p, int32_t value)
{
    uint32_t v = __builtin_bswap32((uint32_t)value);
    memcpy(p, &v, sizeof v);
}
static inline void wire_put_u32(uint8_t *p, uint32_t value)
{
    wire_put_i32(p, (int32_t)value);
}
static inline void wire_put_i64(uint8_t *p, int64_t value)
{
    uint64_t v = __builtin_bswap64((uint64_t)value);
    memcpy(p, &v, sizeof v);
}

// Reads an unsigned LEB128 number of at most `bytes_max` bytes from [*p, end) and moves *p past it. False,
// and *p unchanged, where it is cut off or too long. Excess bits of the last byte are dropped, as Java does.
static inline bool wire_get_uvarint(const uint8_t **p, const uint8_t *end, int bytes_max, uint64_t *out)
{
    const uint8_t *q = *p;
    uint64_t value = 0;
    for (int i = 0; i < bytes_max; i++) {
        if (q == end) {
            return false;
        }
        uint8_t byte = *q++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *p = q;
            *out = value;
            return true;
        }
    }
    return false;
}

// Zigzag number of 32 bits (a record's lengths and offset delta). As wire_get_uvarint.
static inline bool wire_get_varint(const uint8_t **p, const uint8_t *end, int32_t *out)
{
    uint64_t raw;
    if (!wire_get_uvarint(p, end, WIRE_VARINT_BYTES_MAX, &raw)) {
        return false;
    }
    uint32_t v = (uint32_t)raw;
    *out = (int32_t)((v >> 1) ^ (0U - (v & 1)));
    return true;
}

// Zigzag number of 64 bits (a record's timestamp delta). As wire_get_uvarint.
static inline bool wire_get_varlong(const uint8_t **p, const uint8_t *end, int64_t *out)
{
    uint64_t v;
    if (!wire_get_uvarint(p, end, WIRE_VARLONG_BYTES_MAX, &v)) {
        return false;
    }
    *out = (int64_t)((v >> 1) ^ (0U - (v & 1)));
    return true;
}

// Writes an unsigned LEB128 number and answers the byte after it; room for WIRE_VARLONG_BYTES_MAX bytes is
// needed.
static inline uint8_t *wire_put_uvarint(uint8_t *p, uint64_t value)
{
    while (value >= 0x80) {
        *p++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}
static inline uint64_t wire_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}
static inline uint8_t *wire_put_varint(uint8_t *p, int64_t value)
{
    return wire_put_uvarint(p, wire_zigzag(value));
}
static inline size_t wire_uvarint_bytes(uint64_t value)
{
    size_t bits = 64 - (size_t)__builtin_clzll(value | 1);
    return (bits + 6) / 7;
}
static inline size_t wire_varint_bytes(int64_t value)
{
    return wire_uvarint_bytes(wire_zigzag(value));
}

#endif
