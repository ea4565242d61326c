// SPDX-License-Identifier: Apache-2.0
// SCRAM keys against the example exchanges of the RFCs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/security/scram.h"

// RFC 7677, section 3: user "user", password "pencil"; the server's signature of that exchange proves
// ServerKey.
static void keys_of_the_example_in_rfc_7677(void **state)
{
    uint8_t salt[64], salted[SCRAM_KEY_BYTES_MAX];
    size_t salt_len;
    struct scram_keys keys;
    char text[128];
    assert_true(base64_decode(BASE64_STANDARD, SLICE_LIT("W22ZaJ0SNY7soEsUEjb6gQ=="), salt, &salt_len));
    assert_true(
        scram_salt_password(SCRAM_SHA_256, SLICE_LIT("pencil"), slice_of(salt, salt_len), 4096, salted));
    assert_true(scram_derive_keys(SCRAM_SHA_256, salted, &keys));
    assert_int_equal(keys.len, 32);
    base64_encode(BASE64_STANDARD, slice_of(keys.stored_key, keys.len), text);
    assert_string_equal(text, "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=");
    base64_encode(BASE64_STANDARD, slice_of(keys.server_key, keys.len), text);
    assert_string_equal(text, "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
}

static void mechanisms_by_name(void **state)
{
    enum scram_mechanism m;
    assert_true(scram_mechanism_parse(SLICE_LIT("scram-sha-512"), &m) && m == SCRAM_SHA_512);
    assert_false(scram_mechanism_parse(SLICE_LIT("SCRAM-SHA-1"), &m));
    assert_int_equal(scram_key_bytes(SCRAM_SHA_512), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_the_example_in_rfc_7677),
        cmocka_unit_test(mechanisms_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
