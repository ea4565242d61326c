// SPDX-License-Identifier: Apache-2.0
// xxHash3, murmur2 and Java's string hash.
#include "core/base/hash.h"

#include <assert.h> // static_assert, which xxhash.h uses

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/base/bytes.h"

uint64_t hash_bytes(const void *data, size_t len)
{
    return XXH3_64bits(len ? data : "", len);
}

uint64_t hash_bytes_seeded(const void *data, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(len ? data : "", len, seed);
}

uint64_t hash_u64(uint64_t v)
{
    // Xor-shifts and odd multiplications are bijections each.
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    v ^= v >> 32;
    return v;
}

int32_t hash_murmur2(const void *data, size_t len)
{
    const uint32_t m = 0x5bd1e995;
    const uint8_t *p = data;
    uint32_t h = 0x9747b28cu ^ (uint32_t)len;
    size_t rest = len;
    for (; rest >= 4; rest -= 4, p += 4) {
        uint32_t k = bytes_load_le32(p) * m;
        k ^= k >> 24;
        h = (h * m) ^ (k * m);
    }
    if (rest) {
        uint32_t tail = 0;
        for (size_t i = 0; i < rest; i++)
            tail |= (uint32_t)p[i] << (8 * i);
        h = (h ^ tail) * m;
    }
    h = (h ^ h >> 13) * m;
    return (int32_t)(h ^ h >> 15);
}

int32_t hash_murmur2_partition(struct slice key, int32_t partitions)
{
    MUST(partitions > 0);
    return (hash_murmur2(key.data, key.len) & INT32_MAX) % partitions;
}

int32_t hash_java_string(struct slice s)
{
    uint32_t h = 0;
    size_t i = 0;
    while (i < s.len) {
        const uint8_t *p = s.data + i;
        size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
        if (n > s.len - i || !slice_is_utf8(slice_of(p, n))) {
            h = 31 * h + 0xfffd;
            i++;
            continue;
        }
        uint32_t c = p[0];
        if (n == 2)
            c = (c & 0x1f) << 6 | (p[1] & 0x3fu);
        else if (n == 3)
            c = (c & 0x0f) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        else if (n == 4)
            c = (c & 0x07) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
        if (c >= 0x10000) {
            h = 31 * h + (0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        h = 31 * h + c;
        i += n;
    }
    return (int32_t)h;
}

int32_t hash_coordinator_partition(struct slice utf8, int32_t partitions)
{
    MUST(partitions > 0);
    int32_t h = hash_java_string(utf8);
    h = h == INT32_MIN ? 0 : h < 0 ? -h : h; // Kafka's absolute value
    return h % partitions;
}
