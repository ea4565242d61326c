// SPDX-License-Identifier: Apache-2.0
// Error codes, their texts and the message buffer.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/base/err.h"

static void err_set_fills_the_message_and_answers_the_code(void **state)
{
    struct errmsg msg;
    assert_int_equal(err_set(&msg, ERR_IO, "write %s: %d", "x", 7), ERR_IO);
    assert_string_equal(msg.text, "write x: 7");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
}

static void err_prefix_goes_in_front_of_the_message(void **state)
{
    struct errmsg msg;
    err_set(&msg, ERR_IO, "disk on fire");
    err_prefix(&msg, "log %d", 3);
    assert_string_equal(msg.text, "log 3: disk on fire");
    msg.text[0] = 0;
    err_prefix(&msg, "alone");
    assert_string_equal(msg.text, "alone");
    err_prefix(NULL, "nobody listens");
}

static void a_message_that_is_too_long_is_cut(void **state)
{
    struct errmsg msg;
    char big[2 * ERRMSG_BYTES];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    err_set(&msg, ERR_IO, "%s", big);
    assert_int_equal(strlen(msg.text), ERRMSG_BYTES - 1);
    err_prefix(&msg, "p");
    assert_int_equal(strlen(msg.text), ERRMSG_BYTES - 1);
    err_prefix(&msg, "%s", big);
    assert_int_equal(strlen(msg.text), ERRMSG_BYTES - 1);
}

static void every_code_has_a_text(void **state)
{
    assert_string_equal(err_text(ERR_OK), "ok");
    assert_string_equal(err_text(ERR_FENCED), "fenced by a newer epoch");
    assert_string_equal(err_text(9999), "unknown error");
}

static void errno_values_become_codes(void **state)
{
    assert_int_equal(err_from_errno(ENOSPC), ERR_NOSPACE);
    assert_int_equal(err_from_errno(EDQUOT), ERR_NOSPACE);
    assert_int_equal(err_from_errno(ECONNREFUSED), ERR_REFUSED);
    assert_int_equal(err_from_errno(EIO), ERR_IO);
    assert_int_equal(err_from_errno(0), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_set_fills_the_message_and_answers_the_code),
        cmocka_unit_test(err_prefix_goes_in_front_of_the_message),
        cmocka_unit_test(a_message_that_is_too_long_is_cut),
        cmocka_unit_test(every_code_has_a_text),
        cmocka_unit_test(errno_values_become_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
