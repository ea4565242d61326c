// SPDX-License-Identifier: Apache-2.0
// A principal in an Envelope, byte for byte, and what each API asks for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/protocol/gen/apis.h"
#include "core/security/authorize.h"
#include "core/security/principal.h"

static const uint8_t anonymous[] = {0,   0,   5,   'U', 's', 'e', 'r', 10, 'A', 'N',
                                    'O', 'N', 'Y', 'M', 'O', 'U', 'S', 0,  0};

static void a_principal_is_written_as_the_reference_writes_it(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    struct request_context ctx = {.principal_type = SLICE_LIT("User"),
                                  .principal_name = SLICE_LIT("ANONYMOUS")};
    assert_true(slice_equal(principal_serialize(&ctx, &a), slice_of(anonymous, sizeof anonymous)));
    arena_fini(&a);
}

static void a_principal_comes_back(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    struct request_context in = {
        .principal_type = SLICE_LIT("User"), .principal_name = SLICE_LIT("al"), .token_authenticated = true};
    struct request_context out = {.client_host = SLICE_LIT("h")};
    assert_int_equal(principal_deserialize(principal_serialize(&in, &a), &a, &out, NULL), 0);
    assert_true(slice_equal_str(out.principal_name, "al"));
    assert_true(out.token_authenticated);
    assert_true(slice_equal_str(out.client_host, "h"));
    arena_fini(&a);
}

static void a_principal_cut_short_or_too_long_is_refused(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    struct request_context ctx;
    uint8_t longer[sizeof anonymous + 1] = {0};
    memcpy(longer, anonymous, sizeof anonymous);
    for (size_t len = 0; len < sizeof anonymous; len++)
        assert_int_equal(principal_deserialize(slice_of(anonymous, len), &a, &ctx, NULL), ERR_MALFORMED);
    assert_int_equal(principal_deserialize(slice_of(longer, sizeof longer), &a, &ctx, NULL), ERR_MALFORMED);
    assert_int_equal(principal_deserialize(SLICE_NULL, &a, &ctx, NULL), ERR_MALFORMED);
    arena_fini(&a);
}

static void an_api_names_what_it_needs(void **state)
{
    (void)state;
    int count;
    const struct api_permission *p = api_permissions(KP_API_CREATE_TOPICS, &count);
    assert_int_equal(count, 2);
    assert_int_equal(p[0].operation, ACL_CREATE);
    assert_int_equal(p[0].resource, ACL_CLUSTER);
    assert_null(api_permissions(KP_API_API_VERSIONS, &count));
    assert_int_equal(count, 0);
    assert_non_null(api_permissions(KP_API_UNREGISTER_CONTROLLER, &count));
}

static void everybody_may_do_everything_without_an_authorizer(void **state)
{
    (void)state;
    struct request_context ctx = {.principal_type = SLICE_LIT("User"),
                                  .principal_name = SLICE_LIT("ANONYMOUS")};
    assert_true(authorize(&ctx, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_principal_is_written_as_the_reference_writes_it),
        cmocka_unit_test(a_principal_comes_back),
        cmocka_unit_test(a_principal_cut_short_or_too_long_is_refused),
        cmocka_unit_test(an_api_names_what_it_needs),
        cmocka_unit_test(everybody_may_do_everything_without_an_authorizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
