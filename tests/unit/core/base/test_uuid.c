// SPDX-License-Identifier: Apache-2.0
// Ids and base64.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/uuid.h"
#include "tests/unit/core/base/hash_vectors.h"

static void the_metadata_topics_id_has_its_known_text(void **state)
{
    char text[UUID_TEXT_BYTES];
    uuid_format(UUID_METADATA_TOPIC, text);
    assert_string_equal(text, "AAAAAAAAAAAAAAAAAAAAAQ");
}

static void text_and_bytes_go_both_ways(void **state)
{
    for (int i = 0; i < 256; i++) {
        struct uuid a, b;
        char text[UUID_TEXT_BYTES];
        for (int k = 0; k < 16; k++)
            a.b[k] = (uint8_t)(i * 7 + k * 31);
        uuid_format(a, text);
        assert_int_equal(strlen(text), 22);
        assert_true(uuid_parse(slice_str(text), &b));
        assert_true(uuid_equal(a, b));
    }
}

static void ids_match_the_reference_implementation(void **state)
{
    for (size_t i = 0; i < sizeof uuid_vectors / sizeof uuid_vectors[0]; i++) {
        struct uuid id;
        char text[UUID_TEXT_BYTES];
        assert_true(uuid_parse(slice_str(uuid_vectors[i].text), &id));
        assert_memory_equal(id.b, uuid_vectors[i].bytes, 16);
        uuid_format(id, text);
        assert_string_equal(text, uuid_vectors[i].text);
    }
}

static void text_that_is_no_id_is_refused(void **state)
{
    struct uuid id;
    const char *bad[] = {"",
                         "AAAA",
                         "AAAAAAAAAAAAAAAAAAAAAQA",
                         "AAAAAAAAAAAAAAAAAAAA+Q",
                         "AAAAAAAAAAAAAAAAAAAAAR",
                         "AAAAAAAAAAAAAAAAAAAAAQAAAA"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(uuid_parse(slice_str(bad[i]), &id));
    assert_true(uuid_parse(SLICE_LIT("AAAAAAAAAAAAAAAAAAAAAQ=="), &id));
}

static void random_ids_are_never_reserved_nor_begin_with_a_dash(void **state)
{
    struct uuid id;
    char text[UUID_TEXT_BYTES];
    int refused = 0;
    for (int i = 0; i < 256; i++) {
        uint8_t bytes[16] = {(uint8_t)i};
        if (!uuid_from_random(bytes, &id)) {
            refused++;
            continue;
        }
        uuid_format(id, text);
        assert_true(text[0] != '-');
        assert_false(uuid_is_reserved(id));
        assert_int_equal(id.b[6] >> 4, 4);
        assert_int_equal(id.b[8] >> 6, 2);
    }
    assert_int_equal(refused, 4);
}

static void the_first_hundred_are_reserved(void **state)
{
    struct uuid id = UUID_ZERO;
    for (int i = 0; i < 100; i++) {
        id.b[15] = (uint8_t)i;
        assert_true(uuid_is_reserved(id));
    }
    id.b[15] = 100;
    assert_false(uuid_is_reserved(id));
    assert_true(uuid_is_reserved(UUID_DIR_LOST));
}

static void order_is_javas_signed_halves(void **state)
{
    struct uuid small = {{0x80}}, zero = UUID_ZERO, big = {{0x7f}};
    assert_int_equal(uuid_compare(small, zero), -1);
    assert_int_equal(uuid_compare(big, zero), 1);
    assert_int_equal(uuid_compare(zero, zero), 0);
    struct uuid low = {{[8] = 0xff}};
    assert_int_equal(uuid_compare(low, zero), -1);
}

static void base64_matches_rfc_4648(void **state)
{
    const char *pairs[][2] = {{"", ""},
                              {"f", "Zg=="},
                              {"fo", "Zm8="},
                              {"foo", "Zm9v"},
                              {"foob", "Zm9vYg=="},
                              {"fooba", "Zm9vYmE="},
                              {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[32];
        uint8_t bytes[32];
        size_t n;
        assert_int_equal(base64_encode(BASE64_STANDARD, slice_str(pairs[i][0]), text), strlen(pairs[i][1]));
        assert_string_equal(text, pairs[i][1]);
        assert_true(base64_decode(BASE64_STANDARD, slice_str(pairs[i][1]), bytes, &n));
        assert_int_equal(n, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], n);
    }
}

static void malformed_base64_is_refused(void **state)
{
    uint8_t out[32];
    size_t n;
    const char *bad[] = {"Z", "Zg=", "Zh==", "Zg==Zg==", "Zm9v=", "Zm9v====", "Z*==", "Zm-v", "=", "===="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(base64_decode(BASE64_STANDARD, slice_str(bad[i]), out, &n));
    assert_true(base64_decode(BASE64_STANDARD, SLICE_LIT("Zg"), out, &n)); // padding may be left out
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_metadata_topics_id_has_its_known_text),
        cmocka_unit_test(text_and_bytes_go_both_ways),
        cmocka_unit_test(ids_match_the_reference_implementation),
        cmocka_unit_test(text_that_is_no_id_is_refused),
        cmocka_unit_test(random_ids_are_never_reserved_nor_begin_with_a_dash),
        cmocka_unit_test(the_first_hundred_are_reserved),
        cmocka_unit_test(order_is_javas_signed_halves),
        cmocka_unit_test(base64_matches_rfc_4648),
        cmocka_unit_test(malformed_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
