// SPDX-License-Identifier: Apache-2.0
// Hashes that clients agree on, against the reference implementation's answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "core/base/hash.h"
#include "tests/unit/core/base/hash_vectors.h"

#define COUNT (sizeof hash_vectors / sizeof hash_vectors[0])

static void murmur2_is_the_java_clients(void **state)
{
    for (size_t i = 0; i < COUNT; i++) {
        const struct hash_vector *v = &hash_vectors[i];
        assert_int_equal(hash_murmur2(v->bytes, (size_t)v->len), v->murmur2);
        assert_int_equal(hash_murmur2_partition(slice_of(v->bytes, (size_t)v->len), 7), v->partition_of_7);
    }
}

static void string_hash_is_javas(void **state)
{
    for (size_t i = 0; i < COUNT; i++) {
        const struct hash_vector *v = &hash_vectors[i];
        if (!v->is_text)
            continue;
        struct slice s = slice_of(v->bytes, (size_t)v->len);
        assert_int_equal(hash_java_string(s), v->java_hash_code);
        assert_int_equal(hash_coordinator_partition(s, 50), v->coordinator_of_50);
    }
}

static void malformed_text_hashes_without_reading_past_its_end(void **state)
{
    const uint8_t bad[] = {0xf0, 0x9f};
    assert_int_equal(hash_java_string(slice_of(bad, 2)), 31 * 0xfffd + 0xfffd);
}

static void our_own_hashes_are_fixed(void **state)
{
    assert_true(hash_bytes("kraft", 5) == hash_bytes_seeded("kraft", 5, 0));
    assert_true(hash_bytes("", 0) == 0x2d06800538d394c2u);
    assert_true(hash_bytes(NULL, 0) == hash_bytes("", 0));
    assert_true(hash_u64(1) != hash_u64(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(murmur2_is_the_java_clients),
        cmocka_unit_test(string_hash_is_javas),
        cmocka_unit_test(malformed_text_hashes_without_reading_past_its_end),
        cmocka_unit_test(our_own_hashes_are_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
