// SPDX-License-Identifier: Apache-2.0
// CRC-32C: known values, and all ways to compute it agree.
#include "tests/unit/core/record/fixture.h"

#include "core/record/crc32c.h"

static void known_values(void **state)
{
    assert_int_equal(crc32c("", 0), 0);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    uint8_t zeros[32] = {0};
    assert_int_equal(crc32c(zeros, 32), 0x8a9136aa); // RFC 3720, B.4
}

static void all_ways_agree_at_every_length(void **state)
{
    static uint8_t data[1500];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)next_random(&seed);
    }
    for (size_t len = 0; len < 1200; len += len < 300 ? 1 : 37) {
        uint32_t want = crc32c_extend_portable(0, data + len % 9, len);
        assert_int_equal(crc32c(data + len % 9, len), want);
        size_t cut = len ? next_random(&seed) % len : 0;
        uint32_t a = crc32c(data + len % 9, cut), b = crc32c(data + len % 9 + cut, len - cut);
        assert_int_equal(crc32c_extend(a, data + len % 9 + cut, len - cut), want);
        assert_int_equal(crc32c_combine(a, b, len - cut), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(all_ways_agree_at_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
