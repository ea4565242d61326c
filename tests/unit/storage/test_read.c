// SPDX-License-Identifier: Apache-2.0
// Facts of reading: what a read costs, cold files, times, transactions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "tests/unit/storage/fixture.h"

static struct plog_range read_at(struct partition_log *log, log_offset offset, log_offset bound, size_t max)
{
    struct plog_read_args args = {.offset = offset, .bound = bound, .max_bytes = max, .min_one = true};
    struct plog_range r;
    struct errmsg msg = {""};
    if (plog_read(log, &args, &r, &msg))
        fail_msg("%s", msg.text);
    return r;
}

static void a_reader_at_the_tail_needs_no_look_into_the_file(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 5, 1);
    log_offset at = plog_end_offset(log);
    for (int i = 0; i < 50; i++) {
        store_fill(&s, log, 3, 2);
        uint64_t reads = vfs_faulty_calls(s.disk, VFS_CALL_READ);
        struct plog_range r = read_at(log, at, plog_end_offset(log), 1 << 20);
        assert_int_equal(vfs_faulty_calls(s.disk, VFS_CALL_READ), reads);
        assert_int_equal(r.next_offset, plog_end_offset(log));
        at = r.next_offset;
        plog_range_release(&r);
    }
    plog_drop(log);
    store_fini(&s);
}

static void a_reader_that_goes_on_where_it_stopped_needs_one_look_at_most(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 500, 1);
    log_offset at = 0;
    while (at < 500) {
        uint64_t reads = vfs_faulty_calls(s.disk, VFS_CALL_READ);
        struct plog_range r = read_at(log, at, 500, 2000);
        assert_true(vfs_faulty_calls(s.disk, VFS_CALL_READ) - reads <= 2);
        at = r.next_offset;
        plog_range_release(&r);
    }
    plog_drop(log);
    store_fini(&s);
}

static void a_read_gives_whole_batches_up_to_its_limit(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.index_interval_bytes = 300;
    struct partition_log *log = store_create(&s, "t");
    for (int i = 0; i < 60; i++)
        store_append_ok(&s, log, &(struct batch_spec){.base = i, .value_bytes = 1 + i * 7 % 200});
    for (size_t max = 1; max < 3000; max += 37) {
        struct plog_range r = read_at(log, 11, 60, max);
        uint8_t buf[8192];
        assert_true(r.len <= sizeof(buf));
        assert_int_equal(plog_range_copy(&r, buf), 0);
        struct batch_iter it = batch_iter_of(slice_of(buf, r.len));
        size_t batches = 0;
        while (batch_iter_next(&it))
            batches++;
        assert_int_equal(it.err, 0);
        assert_int_equal(it.rest.len, 0);
        assert_true(r.len <= max || batches == 1);
        struct plog_range next =
            read_at(log, r.next_offset, 60, 1); // and nothing smaller could have been added
        assert_true(r.len + next.len > max);
        plog_range_release(&next);
        plog_range_release(&r);
    }
    plog_drop(log);
    store_fini(&s);
}

static void without_min_one_a_large_batch_is_left_out(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_append_ok(&s, log, &(struct batch_spec){.base = 0, .value_bytes = 500});
    struct plog_read_args args = {.offset = 0, .bound = 1, .max_bytes = 100, .min_one = false};
    struct plog_range r;
    assert_int_equal(plog_read(log, &args, &r, NULL), 0);
    assert_null(r.file);
    assert_int_equal(r.next_offset, 0);
    args.min_one = true;
    assert_int_equal(plog_read(log, &args, &r, NULL), 0);
    assert_true(r.len > 500);
    plog_range_release(&r);
    plog_drop(log);
    store_fini(&s);
}

static void a_cold_range_is_told_and_can_be_brought_in(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 2000;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 100, 1);
    vfs_faulty_set_cached(s.disk, false);
    struct plog_read_args args = {
        .offset = 3, .bound = 100, .max_bytes = 500, .min_one = true, .nowait = true};
    struct plog_range r;
    int tries = 0;
    while (plog_read(log, &args, &r, NULL) == ERR_AGAIN) {
        assert_true(++tries < 4);
        assert_non_null(r.file);
        assert_int_equal(plog_range_readahead(&r), 0);
        plog_range_release(&r);
    }
    assert_true(tries > 0);
    assert_true(r.len > 0);
    plog_range_release(&r);
    plog_drop(log);
    store_fini(&s);
}

// ---- time -------------------------------------------------------------------------------------------------
static void a_time_is_found_in_the_record_itself(void **state)
{
    for (int codec = CODEC_NONE; codec < CODEC_COUNT; codec++) {
        struct store s;
        store_init(&s, 1);
        s.config.segment_bytes = 2000;
        s.config.index_interval_bytes = 100;
        struct partition_log *log = store_create(&s, "t");
        for (int i = 0; i < 30; i++) // records 1 ms apart; each batch begins 100 ms after the one before
            store_append_ok(&s, log,
                            &(struct batch_spec){.base = i * 5,
                                                 .count = 5,
                                                 .time = 1000 + i * 100,
                                                 .epoch = i / 10,
                                                 .codec = (enum codec)codec});
        struct plog_timestamp t;
        for (int i = 0; i < 30; i++) {
            for (int k = 0; k < 5; k++) {
                assert_int_equal(plog_find_timestamp(log, 1000 + i * 100 + k, INT64_MAX, &t, NULL), 0);
                assert_int_equal(t.offset, i * 5 + k);
                assert_int_equal(t.timestamp, 1000 + i * 100 + k);
                assert_int_equal(t.epoch, i / 10);
            }
            assert_int_equal(plog_find_timestamp(log, 1000 + i * 100 + 5, INT64_MAX, &t, NULL), 0);
            assert_int_equal(t.offset, i < 29 ? i * 5 + 5 : -1);
        }
        assert_int_equal(plog_find_timestamp(log, 0, INT64_MAX, &t, NULL), 0);
        assert_int_equal(t.offset, 0);
        assert_int_equal(plog_find_timestamp(log, 2000, 50, &t, NULL),
                         0); // it lies at 50: not below the bound
        assert_int_equal(t.offset, -1);
        assert_int_equal(plog_advance_start(log, 72, NULL), 0);
        assert_int_equal(plog_find_timestamp(log, 0, INT64_MAX, &t, NULL), 0);
        assert_int_equal(t.offset, 72); // never below the log start
        plog_drop(log);
        store_fini(&s);
    }
}

static void the_largest_time_is_the_first_record_that_has_it(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 700;
    s.config.index_interval_bytes = 100;
    struct partition_log *log = store_create(&s, "t");
    time_ms times[] = {500, 900, 300, 990, 100, 990, 200, 600, 980, 50};
    for (int i = 0; i < 10; i++)
        store_append_ok(&s, log, &(struct batch_spec){.base = i * 3, .count = 3, .time = times[i]});
    struct plog_timestamp t;
    assert_int_equal(plog_find_max_timestamp(log, INT64_MAX, &t, NULL), 0);
    assert_int_equal(t.offset, 11);
    assert_int_equal(t.timestamp, 992);
    assert_int_equal(plog_find_max_timestamp(log, 11, &t, NULL), 0); // the best one is above this bound
    assert_int_equal(t.offset, 10);
    assert_int_equal(plog_find_max_timestamp(log, 9, &t, NULL), 0);
    assert_int_equal(t.offset, 5);
    assert_int_equal(plog_advance_start(log, 18, NULL), 0);
    assert_int_equal(plog_find_max_timestamp(log, INT64_MAX, &t, NULL), 0);
    assert_int_equal(t.offset, 26);
    plog_drop(log);
    struct partition_log *empty = store_create(&s, "u");
    assert_int_equal(plog_find_max_timestamp(empty, INT64_MAX, &t, NULL), 0);
    assert_int_equal(t.offset, -1);
    plog_drop(empty);
    store_fini(&s);
}

// ---- transactions -----------------------------------------------------------------------------------------
static void transactions_are_followed_over_segments_and_restarts(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 300;
    struct partition_log *log = store_create(&s, "t");
    log_offset o = 0;
    // Producer 1 aborts [0, 4), producer 2 commits [1..], producer 3 stays open from 5.
    store_append_ok(&s, log, &(struct batch_spec){.base = o++, .producer = 2, .transactional = true});
    store_append_ok(&s, log, &(struct batch_spec){.base = o++, .producer = 3, .transactional = true});
    store_append_ok(&s, log,
                    &(struct batch_spec){.base = o++, .producer = 2, .sequence = 1, .transactional = true});
    assert_int_equal(plog_last_stable(log, 3), 0);
    store_append_ok(&s, log,
                    &(struct batch_spec){.base = o++, .producer = 2, .marker = true, .commit = false}); // 3
    assert_int_equal(plog_last_stable(log, 3), 0); // the marker is not below the high watermark yet
    assert_int_equal(plog_last_stable(log, 4), 1);
    store_append_ok(&s, log,
                    &(struct batch_spec){.base = o++, .producer = 3, .marker = true, .commit = true}); // 4
    assert_int_equal(plog_last_stable(log, 5), 5);
    store_append_ok(&s, log, &(struct batch_spec){.base = o++, .producer = 4, .transactional = true}); // 5
    store_fill(&s, log, 10, 1);
    assert_true(plog_segments(log) > 3);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(plog_last_stable(log, 16), 5);
        struct plog_aborted *a;
        unsigned n;
        assert_int_equal(plog_aborted_in(log, 0, 16, &a, &n, NULL), 0);
        assert_int_equal(n, 1);
        assert_int_equal(a[0].producer_id, 1);
        assert_int_equal(a[0].first_offset, 0);
        mem_free(a);
        assert_int_equal(plog_aborted_in(log, 4, 16, &a, &n, NULL), 0); // behind its marker
        assert_int_equal(n, 0);
        assert_null(a);
        if (round == 0) {
            assert_int_equal(plog_close(log, NULL), 0);
            store_close_dir(&s);
            store_open_dir(&s);
            log = store_reopen(&s, "t", true, NULL);
        } else if (round == 1) {
            plog_drop(log);
            store_drop_dir(&s);
            vfs_faulty_kill(s.disk);
            store_open_dir(&s);
            log = store_reopen(&s, "t", false, NULL);
        }
    }
    assert_int_equal(plog_truncate_to(log, 3, NULL), 0); // the marker goes: the transaction is open again
    assert_int_equal(plog_last_stable(log, 3), 0);
    struct plog_aborted *a;
    unsigned n;
    assert_int_equal(plog_aborted_in(log, 0, 3, &a, &n, NULL), 0);
    assert_int_equal(n, 0);
    plog_drop(log);
    store_fini(&s);
}

// ---- flush ------------------------------------------------------------------------------------------------
static void a_flush_covers_what_was_there_when_it_began(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 5, 1);
    struct plog_flush f;
    assert_true(plog_flush_begin(log, &f));
    store_fill(&s, log, 5, 1); // while the flush is on its way
    assert_int_equal(plog_roll(log, s.now, NULL), 0);
    store_fill(&s, log, 1, 1);
    assert_int_equal(plog_recovery_point(log), 0);
    assert_int_equal(plog_flush_run(&f, NULL), 0);
    assert_int_equal(plog_recovery_point(log),
                     0); // a roll claims nothing, and neither does a run that is not noted
    assert_int_equal(plog_flush_end(&f, NULL), 0);
    assert_int_equal(plog_recovery_point(log), 5);
    assert_int_equal(plog_flush_all(log, NULL), 0);
    assert_int_equal(plog_recovery_point(log), 11);
    assert_false(plog_flush_begin(log, &f));
    assert_int_equal(plog_flush_end(&f, NULL), 0);
    plog_drop(log);
    store_fini(&s);
}

static void a_flush_that_a_truncation_overtook_claims_nothing(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 5, 1);
    struct plog_flush f;
    assert_true(plog_flush_begin(log, &f));
    assert_int_equal(plog_truncate_to(log, 2, NULL), 0);
    store_append_ok(&s, log, &(struct batch_spec){.base = 2, .epoch = 1});
    assert_int_equal(plog_flush_run(&f, NULL), 0);
    assert_int_equal(plog_flush_end(&f, NULL), 0);
    assert_int_equal(plog_recovery_point(log), 0);
    plog_drop(log);
    store_fini(&s);
}

static void a_flush_is_wanted_after_flush_ms_and_flush_messages_and_for_closed_segments(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.flush_ms = 1000;
    s.config.flush_messages = 10;
    struct partition_log *log = store_create(&s, "t");
    assert_false(plog_flush_wanted(log, s.now));
    store_fill(&s, log, 2, 1);
    assert_false(plog_flush_wanted(log, s.now + 999));
    assert_true(plog_flush_wanted(log, s.now + 1000));
    store_fill(&s, log, 8, 1);
    assert_true(plog_flush_wanted(log, s.now));
    assert_int_equal(plog_flush_all(log, NULL), 0);
    assert_false(plog_flush_wanted(log, s.now + 100000));
    store_fill(&s, log, 1, 1);
    assert_int_equal(plog_roll(log, s.now, NULL), 0);
    assert_true(plog_flush_wanted(log, s.now));
    plog_drop(log);
    store_fini(&s);
}

static void space_can_be_reserved_without_a_change_of_size(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    assert_int_equal(plog_materialize(log, s.now, NULL), 0);
    assert_int_equal(plog_reserve(log, 10000, NULL), 0);
    assert_int_equal(plog_size(log), 0);
    vfs_faulty_set_capacity(s.disk, vfs_faulty_used(s.disk));
    store_append_ok(&s, log, &(struct batch_spec){.base = 0}); // into the reserve, on a full disk
    assert_int_equal(plog_reserve(log, 1 << 20, NULL), ERR_NOSPACE);
    plog_drop(log);
    store_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_at_the_tail_needs_no_look_into_the_file),
        cmocka_unit_test(a_reader_that_goes_on_where_it_stopped_needs_one_look_at_most),
        cmocka_unit_test(a_read_gives_whole_batches_up_to_its_limit),
        cmocka_unit_test(without_min_one_a_large_batch_is_left_out),
        cmocka_unit_test(a_cold_range_is_told_and_can_be_brought_in),
        cmocka_unit_test(a_time_is_found_in_the_record_itself),
        cmocka_unit_test(the_largest_time_is_the_first_record_that_has_it),
        cmocka_unit_test(transactions_are_followed_over_segments_and_restarts),
        cmocka_unit_test(a_flush_covers_what_was_there_when_it_began),
        cmocka_unit_test(a_flush_that_a_truncation_overtook_claims_nothing),
        cmocka_unit_test(a_flush_is_wanted_after_flush_ms_and_flush_messages_and_for_closed_segments),
        cmocka_unit_test(space_can_be_reserved_without_a_change_of_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
