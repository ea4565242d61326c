// SPDX-License-Identifier: Apache-2.0
// Facts of the leader epoch cache.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "storage/epoch_cache.h"

static struct epoch_cache make(void) // 1 from 0, 3 from 10, 7 from 25
{
    struct epoch_cache c;
    epoch_cache_init(&c);
    assert_true(epoch_cache_assign(&c, 1, 0));
    assert_true(epoch_cache_assign(&c, 3, 10));
    assert_true(epoch_cache_assign(&c, 7, 25));
    return c;
}

static void the_end_of_an_epoch_is_the_start_of_the_next_or_the_log_end(void **state)
{
    struct epoch_cache c = make();
    leader_epoch found;
    log_offset end;
    assert_true(epoch_cache_end_of(&c, 1, 40, &found, &end));
    assert_int_equal(found, 1);
    assert_int_equal(end, 10);
    assert_true(epoch_cache_end_of(&c, 5, 40, &found, &end)); // the largest at or below
    assert_int_equal(found, 3);
    assert_int_equal(end, 25);
    assert_true(epoch_cache_end_of(&c, 7, 40, &found, &end));
    assert_int_equal(end, 40);
    assert_true(epoch_cache_end_of(&c, 9, 40, &found, &end));
    assert_int_equal(found, 7);
    assert_false(epoch_cache_end_of(&c, 0, 40, &found, &end));
    assert_int_equal(found, -1);
    assert_int_equal(end, -1);
    epoch_cache_fini(&c);
}

static void an_offset_belongs_to_the_epoch_that_began_at_or_below_it(void **state)
{
    struct epoch_cache c = make();
    assert_int_equal(epoch_cache_at(&c, 0), 1);
    assert_int_equal(epoch_cache_at(&c, 9), 1);
    assert_int_equal(epoch_cache_at(&c, 10), 3);
    assert_int_equal(epoch_cache_at(&c, 1000), 7);
    assert_int_equal(epoch_cache_last(&c), 7);
    assert_int_equal(epoch_cache_start_after(&c, 3), 25);
    assert_int_equal(epoch_cache_start_after(&c, 7), -1);
    epoch_cache_fini(&c);
}

static void cutting_the_end_removes_epochs_that_began_there_or_later(void **state)
{
    struct epoch_cache c = make();
    epoch_cache_truncate_end(&c, 25);
    assert_int_equal(epoch_cache_last(&c), 3);
    epoch_cache_truncate_end(&c, 11);
    assert_int_equal(epoch_cache_last(&c), 3);
    epoch_cache_truncate_end(&c, 0);
    assert_int_equal(epoch_cache_last(&c), -1);
    epoch_cache_fini(&c);
}

static void a_rising_log_start_keeps_the_covering_epoch_with_its_start_raised(void **state)
{
    struct epoch_cache c = make();
    epoch_cache_truncate_start(&c, 15);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.list[0].epoch, 3);
    assert_int_equal(c.list[0].start, 15);
    epoch_cache_truncate_start(&c, 25);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.list[0].epoch, 7);
    assert_int_equal(c.list[0].start, 25);
    epoch_cache_fini(&c);
}

static void elections_without_data_leave_one_entry(void **state)
{
    struct epoch_cache c = make();
    for (leader_epoch e = 8; e < 13; e++) // leadership moves on an idle log that ends at 40
        assert_true(epoch_cache_assign(&c, e, 40));
    assert_int_equal(c.count, 4);
    assert_int_equal(epoch_cache_last(&c), 12);
    assert_false(epoch_cache_assign(&c, 12, 41)); // the same epoch goes on
    epoch_cache_fini(&c);
}

static void records_correct_what_the_file_says(void **state)
{
    struct epoch_cache c = make();
    assert_false(epoch_cache_observe(&c, 3, 12)); // agrees
    assert_true(epoch_cache_observe(&c, 2, 12));  // 3 cannot have begun at 10
    assert_int_equal(epoch_cache_at(&c, 12), 2);
    assert_int_equal(epoch_cache_at(&c, 30), 7);
    assert_true(epoch_cache_observe(&c, 9, 20)); // then 7 at 25 is nothing newer
    assert_int_equal(epoch_cache_at(&c, 30), 9);
    for (unsigned i = 1; i < c.count; i++)
        assert_true(c.list[i - 1].epoch < c.list[i].epoch && c.list[i - 1].start < c.list[i].start);
    epoch_cache_fini(&c);
}

static void the_file_is_kafkas_text(void **state)
{
    struct epoch_cache c = make(), d;
    struct strbuf text;
    epoch_cache_format(&c, &text);
    assert_string_equal(strbuf_text(&text), "0\n3\n1 0\n3 10\n7 25\n");
    epoch_cache_init(&d);
    assert_int_equal(epoch_cache_parse(&d, strbuf_slice(&text), NULL), 0);
    assert_int_equal(d.count, 3);
    assert_int_equal(d.list[2].start, 25);
    strbuf_fini(&text);
    epoch_cache_fini(&c);
    epoch_cache_fini(&d);
}

static void a_damaged_file_leaves_the_cache_empty(void **state)
{
    static const char *const bad[] = {"",
                                      "1\n0\n",
                                      "0\n",
                                      "0\n2\n1 0\n",
                                      "0\n1\n1 0\n2 5\n",
                                      "0\n2\n1 5\n2 5\n",
                                      "0\n2\n2 0\n1 5\n",
                                      "0\n1\n1\n",
                                      "0\n1\nx 0\n",
                                      "0\n1\n1 0 9\n",
                                      "0\n-1\n",
                                      "0\n1\n-1 0\n",
                                      "0\n1\n3000000000 0\n"};
    struct epoch_cache c;
    epoch_cache_init(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(epoch_cache_parse(&c, slice_str(bad[i]), NULL), ERR_CORRUPT);
        assert_int_equal(c.count, 0);
    }
    epoch_cache_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_an_epoch_is_the_start_of_the_next_or_the_log_end),
        cmocka_unit_test(an_offset_belongs_to_the_epoch_that_began_at_or_below_it),
        cmocka_unit_test(cutting_the_end_removes_epochs_that_began_there_or_later),
        cmocka_unit_test(a_rising_log_start_keeps_the_covering_epoch_with_its_start_raised),
        cmocka_unit_test(elections_without_data_leave_one_entry),
        cmocka_unit_test(records_correct_what_the_file_says),
        cmocka_unit_test(the_file_is_kafkas_text),
        cmocka_unit_test(a_damaged_file_leaves_the_cache_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
