// SPDX-License-Identifier: Apache-2.0
// CRC-32C by ISA-L for long runs, by the processor's instruction for short ones, by a table where it has
// none.
#include "core/record/crc32c.h"

#include <isa-l/crc.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define ISAL_BYTES_MIN 256 // below this the call and its set-up cost more than they save

// Table of the reflected polynomial 0x82f63b78, one nibble a step: 64 bytes that need no start-up code.
static const uint32_t nibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_extend_portable(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t extend_sse42(uint32_t crc, const uint8_t *p, size_t len)
{
    uint64_t c = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        c = _mm_crc32_u64(c, v);
    }
    uint32_t c32 = (uint32_t)c;
    for (; len > 0; p++, len--) {
        c32 = _mm_crc32_u8(c32, *p);
    }
    return ~c32;
}
#endif

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t len)
{
    if (len >= ISAL_BYTES_MIN) {
        // ISA-L takes an int length and works on the register without the final inversion.
        const uint8_t *p = data;
        while (len > 0) {
            size_t step = len < (1U << 30) ? len : (1U << 30);
            crc = ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)step, ~crc);
            p += step;
            len -= step;
        }
        return crc;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        return extend_sse42(crc, data, len);
    }
#endif
    return crc32c_extend_portable(crc, data, len);
}

uint32_t crc32c(const void *data, size_t len)
{
    return crc32c_extend(0, data, len);
}

// A CRC register as a vector over GF(2), "one more zero byte" as a matrix on it: combining is the matrix's
// power.
static uint32_t matrix_times(const uint32_t matrix[32], uint32_t vector)
{
    uint32_t sum = 0;
    for (int i = 0; vector != 0; i++, vector >>= 1) {
        sum ^= matrix[i] & (0U - (vector & 1));
    }
    return sum;
}

static void matrix_square(uint32_t to[32], const uint32_t from[32])
{
    for (int i = 0; i < 32; i++) {
        to[i] = matrix_times(from, from[i]);
    }
}

uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
    uint32_t odd[32], even[32];
    odd[0] = 0x82f63b78; // one zero bit
    for (int i = 1; i < 32; i++) {
        odd[i] = 1U << (i - 1);
    }
    matrix_square(even, odd); // two bits
    matrix_square(odd, even); // four
    uint32_t *now = even, *last = odd;
    while (len_b != 0) {
        matrix_square(now, last);
        if (len_b & 1) {
            crc_a = matrix_times(now, crc_a);
        }
        len_b >>= 1;
        uint32_t *swap = now;
        now = last;
        last = swap;
    }
    return crc_a ^ crc_b;
}
