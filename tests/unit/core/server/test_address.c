// SPDX-License-Identifier: Apache-2.0
// Addresses as text and bytes, and what stands around the messages that a node sends.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/bytes.h"
#include "core/base/err.h"
#include "core/protocol/gen/apis.h"
#include "core/server/address.h"
#include "core/server/outbound.h"

static size_t parse(const char *text, uint8_t out[16])
{
    return address_parse(slice_str(text), out);
}

static void an_ipv4_address_is_four_bytes(void **state)
{
    uint8_t b[16];
    assert_int_equal(parse("127.0.0.11", b), 4);
    assert_memory_equal(b, ((uint8_t[]){127, 0, 0, 11}), 4);
}

static void an_ipv6_address_is_sixteen_bytes(void **state)
{
    uint8_t b[16];
    const uint8_t loopback[16] = {[15] = 1};
    assert_int_equal(parse("::1", b), 16);
    assert_memory_equal(b, loopback, 16);
    assert_int_equal(parse("fe80::1:2%eth0", b), 16);
    assert_memory_equal(b, ((uint8_t[]){0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2}), 16);
    assert_int_equal(parse("::ffff:10.1.2.3", b), 16);
    assert_memory_equal(b + 10, ((uint8_t[]){0xff, 0xff, 10, 1, 2, 3}), 6);
    assert_int_equal(parse("1:2:3:4:5:6:7:8", b), 16);
    assert_int_equal(parse("::", b), 16);
}

static void what_is_no_address_is_refused(void **state)
{
    uint8_t b[16];
    const char *bad[] = {"",        "1.2.3",   "1.2.3.4.5", "256.1.1.1",         "host",    "1:2:3",
                         "1::2::3", "12345::", ":::",       "1:2:3:4:5:6:7:8:9", "1.2.3.4 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(parse(bad[i], b), 0);
}

static void bytes_print_as_the_text_that_parses_back(void **state)
{
    uint8_t b[16], again[16];
    char text[ADDRESS_TEXT_BYTES];
    assert_int_equal(parse("10.20.30.40", b), 4);
    assert_true(address_print(slice_of(b, 4), text));
    assert_string_equal(text, "10.20.30.40");
    assert_int_equal(parse("2001:db8::ff00:42:8329", b), 16);
    assert_true(address_print(slice_of(b, 16), text));
    assert_int_equal(parse(text, again), 16);
    assert_memory_equal(b, again, 16);
    assert_false(address_print(slice_of(b, 5), text));
}

static void a_request_frame_has_length_and_header(void **state)
{
    struct rope body, frame;
    uint8_t flat[64];
    rope_init(&body);
    rope_init(&frame);
    rope_write(&body, "xyz", 3);
    outbound_request_frame(&frame, KP_API_BROKER_HEARTBEAT, 1, 7, "ab", &body);
    assert_int_equal(frame.len, 4 + 8 + 2 + 2 + 1 + 3);
    assert_int_equal(rope_flatten(&frame, flat), 0);
    assert_int_equal(bytes_load_be32(flat), frame.len - 4);
    assert_int_equal(bytes_load_be16(flat + 4), KP_API_BROKER_HEARTBEAT);
    assert_int_equal(bytes_load_be32(flat + 8), 7);
    assert_int_equal(flat[16], 0); // no tagged fields in the header of a flexible version
    assert_memory_equal(flat + 17, "xyz", 3);
    rope_clear(&frame);
}

static void tagged_fields_of_an_answers_header_are_skipped(void **state)
{
    const uint8_t frame[] = {0, 0, 0, 7, /* one tag */ 1, /* number */ 9, /* length */ 2, 'a', 'b', 'X'};
    struct slice body;
    int32_t correlation;
    assert_int_equal(outbound_response_correlation(slice_of(frame, sizeof frame), &correlation), 0);
    assert_int_equal(correlation, 7);
    assert_int_equal(outbound_response_body(slice_of(frame, sizeof frame), KP_API_BROKER_HEARTBEAT, 1, &body),
                     0);
    assert_int_equal(body.len, 1);
    assert_int_equal(body.data[0], 'X');
}

static void an_answer_that_is_cut_short_is_malformed(void **state)
{
    const uint8_t frame[] = {0, 0, 0, 7, 1, 9, 200, 'a'};
    struct slice body;
    for (size_t n = 0; n < sizeof frame; n++)
        assert_int_equal(outbound_response_body(slice_of(frame, n), KP_API_BROKER_HEARTBEAT, 1, &body),
                         ERR_MALFORMED);
}

static void the_answer_to_api_versions_has_no_tags_in_its_header(void **state)
{
    const uint8_t frame[] = {0, 0, 0, 7, 'X'};
    struct slice body;
    assert_int_equal(outbound_response_body(slice_of(frame, sizeof frame), KP_API_API_VERSIONS, 3, &body), 0);
    assert_int_equal(body.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_address_is_four_bytes),
        cmocka_unit_test(an_ipv6_address_is_sixteen_bytes),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(bytes_print_as_the_text_that_parses_back),
        cmocka_unit_test(a_request_frame_has_length_and_header),
        cmocka_unit_test(tagged_fields_of_an_answers_header_are_skipped),
        cmocka_unit_test(an_answer_that_is_cut_short_is_malformed),
        cmocka_unit_test(the_answer_to_api_versions_has_no_tags_in_its_header),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
