// SPDX-License-Identifier: Apache-2.0
// Facts of retention, truncation and rolling.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "tests/unit/storage/fixture.h"

#define HOUR ((int64_t)3600 * 1000)

static struct plog_doomed doomed;

static unsigned retain(struct store *s, struct partition_log *log, log_offset hw)
{
    struct errmsg msg = {""};
    if (plog_retain(log, s->now, hw, &doomed, &msg))
        fail_msg("%s", msg.text);
    unsigned n = doomed.count;
    plog_doomed_remove(&doomed);
    return n;
}

// Segments of three batches each, an hour apart, the last batch an hour before now.
static struct partition_log *hourly(struct store *s, int batches)
{
    s->config.segment_bytes = 400;
    struct partition_log *log = store_create(s, "t");
    for (int i = 0; i < batches; i++)
        store_append_ok(
            s, log,
            &(struct batch_spec){.base = i, .value_bytes = 50, .time = s->now - (batches - i) * HOUR});
    return log;
}

static void time_retention_takes_segments_whose_newest_record_is_too_old(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.retention_ms = 5 * HOUR + 1;
    struct partition_log *log = hourly(&s, 12);
    unsigned before = plog_segments(log);
    assert_true(before >= 4);
    unsigned gone = retain(&s, log, 12);
    assert_true(gone > 0 && gone < before);
    log_offset start = plog_start_offset(log);
    assert_int_equal(start, plog_active_base(log) - (plog_segments(log) - 1) * 3);
    assert_true(12 - start >= 5 && 12 - start <= 5 + 3); // no more than a segment is kept too long
    (void)store_verify(log);
    assert_int_equal(retain(&s, log, 12), 0);
    plog_drop(log);
    store_fini(&s);
}

static void time_retention_rolls_an_active_segment_that_is_over_time(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.retention_ms = HOUR / 2;
    struct partition_log *log = hourly(&s, 7);
    unsigned before = plog_segments(log);
    assert_int_equal(retain(&s, log, 7), before);
    assert_int_equal(plog_start_offset(log), 7);
    assert_int_equal(plog_end_offset(log), 7);
    assert_int_equal(plog_segments(log), 1);
    assert_int_equal(retain(&s, log, 7), 0); // the empty one stays
    store_append_ok(&s, log, &(struct batch_spec){.base = 7});
    plog_drop(log);
    store_fini(&s);
}

static void size_retention_takes_the_oldest_and_never_the_active_segment(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.retention_ms = -1;
    s.config.retention_bytes = 800;
    struct partition_log *log = hourly(&s, 12);
    assert_true(retain(&s, log, 12) > 0);
    assert_true(plog_size(log) >= 800 && plog_size(log) < 800 + 400);
    s.config.retention_bytes = 0;
    struct log_config *c = log_config_new(&s.config);
    plog_set_config(log, c);
    log_config_unref(c);
    (void)retain(&s, log, 12);
    assert_int_equal(plog_segments(log), 1);
    assert_true(plog_size(log) > 0);
    plog_drop(log);
    store_fini(&s);
}

static void nothing_at_or_above_the_high_watermark_goes(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.retention_ms = HOUR / 2;
    struct partition_log *log = hourly(&s, 12);
    (void)retain(&s, log, 7);
    assert_true(plog_start_offset(log) <= 7);
    assert_int_equal(plog_end_offset(log), 12);
    (void)store_verify(log);
    plog_drop(log);
    store_fini(&s);
}

static void a_compacted_topic_is_not_retained_by_time_or_size_but_by_its_start(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.retention_ms = HOUR / 2;
    s.config.retention_bytes = 0;
    s.config.cleanup_delete = false;
    s.config.cleanup_compact = true;
    struct partition_log *log = hourly(&s, 12);
    assert_int_equal(retain(&s, log, 12), 0);
    assert_int_equal(plog_advance_start(log, 7, NULL), 0);
    assert_int_equal(retain(&s, log, 12), 2); // those whose successor begins at or below 7
    assert_int_equal(plog_start_offset(log), 7);
    plog_drop(log);
    store_fini(&s);
}

static void deleted_files_are_renamed_first_and_a_crash_does_not_bring_them_back_as_segments(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = hourly(&s, 12);
    assert_int_equal(plog_flush_all(log, NULL), 0);
    assert_int_equal(plog_advance_start(log, 6, NULL), 0);
    assert_int_equal(plog_retain(log, s.now, 12, &doomed, NULL), 0);
    assert_int_equal(doomed.count, 2);
    assert_int_equal(doomed.delay_ms, 60000);
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.log.deleted"));
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.log"));
    plog_doomed_fini(&doomed);
    assert_int_equal(log_dir_checkpoint(s.dir, NULL), 0);
    plog_drop(log);
    store_drop_dir(&s);
    vfs_faulty_kill(s.disk);
    store_open_dir(&s);
    log = store_reopen(&s, "t", false, NULL);
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.log.deleted"));
    assert_int_equal(plog_start_offset(log), 6);
    plog_drop(log);
    store_fini(&s);
}

static void a_look_by_retention_leaves_an_idle_log_idle(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = hourly(&s, 12);
    assert_int_equal(plog_close(log, NULL), 0);
    store_close_dir(&s);
    store_open_dir(&s);
    log = store_reopen(&s, "t", true, NULL);
    assert_int_equal(retain(&s, log, 12), 0);
    assert_false(plog_is_loaded(log));
    struct partition_log *empty = store_create(&s, "never-written");
    assert_int_equal(retain(&s, empty, 0), 0);
    assert_false(plog_is_loaded(empty));
    plog_drop(log);
    plog_drop(empty);
    store_fini(&s);
}

// ---- roll -------------------------------------------------------------------------------------------------
static void a_segment_rolls_when_its_first_record_is_segment_ms_old(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_ms = HOUR;
    struct partition_log *log = store_create(&s, "t");
    store_append_ok(&s, log, &(struct batch_spec){.base = 0, .time = 1000});
    store_append_ok(&s, log, &(struct batch_spec){.base = 1, .time = 1000 + HOUR});
    assert_int_equal(plog_segments(log), 1);
    store_append_ok(&s, log, &(struct batch_spec){.base = 2, .time = 1001 + HOUR});
    assert_int_equal(plog_segments(log), 2);
    assert_int_equal(plog_active_base(log), 2);
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.index"));
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.timeindex"));
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000002.snapshot"));
    plog_drop(log);
    store_fini(&s);
}

static void a_full_index_rolls_the_segment(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.index_interval_bytes = 1;
    s.config.index_bytes_max = 10 * 8;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 40, 1);
    assert_true(plog_segments(log) >= 4);
    assert_int_equal(store_verify(log), 40);
    plog_drop(log);
    store_fini(&s);
}

static void an_offset_that_does_not_fit_an_int_rolls_the_segment(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 1, 1);
    log_offset far = (log_offset)INT32_MAX + 10;
    store_append_ok(&s, log, &(struct batch_spec){.base = far});
    assert_int_equal(plog_segments(log), 2);
    struct plog_read_args args = {.offset = 5, .bound = far + 1, .max_bytes = 1000, .min_one = true};
    struct plog_range r;
    assert_int_equal(plog_read(log, &args, &r, NULL), 0);
    assert_non_null(r.file);
    assert_int_equal(r.next_offset, far + 1);
    plog_range_release(&r);
    plog_drop(log);
    store_fini(&s);
}

// ---- truncation -------------------------------------------------------------------------------------------
static void truncation_cuts_batches_epochs_producers_and_the_high_watermark(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 500;
    struct partition_log *log = store_create(&s, "t");
    for (int i = 0; i < 20; i++)
        store_append_ok(&s, log,
                        &(struct batch_spec){
                            .base = i * 2, .count = 2, .epoch = i / 5, .producer = 8, .sequence = i * 2});
    plog_set_high_watermark(log, 40);
    assert_int_equal(plog_truncate_to(log, 21, NULL), 0); // inside a batch: it goes whole
    assert_int_equal(plog_end_offset(log), 20);
    assert_int_equal(plog_high_watermark(log), 20);
    assert_int_equal(plog_last_epoch(log), 1);
    struct producer_duplicate dup;
    struct producer_batch next = {
        .producer_id = 7, .base_sequence = 20, .last_sequence = 21, .base_offset = 20, .last_offset = 21};
    assert_int_equal(plog_check_producer(log, &next, &dup), PRODUCER_OK);
    next.base_sequence = 22;
    next.last_sequence = 23;
    assert_int_equal(plog_check_producer(log, &next, &dup), PRODUCER_OUT_OF_ORDER);
    assert_int_equal(store_verify(log), 10);
    assert_int_equal(plog_truncate_to(log, 500, NULL), 0); // past the end: nothing
    assert_int_equal(plog_end_offset(log), 20);
    store_append_ok(&s, log, &(struct batch_spec){.base = 20, .epoch = 9});
    assert_int_equal(plog_epoch_of(log, 20), 9);
    assert_int_equal(store_verify(log), 11);
    plog_drop(log);
    store_fini(&s);
}

static void a_log_that_is_emptied_goes_on_at_the_given_offset(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 500;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 20, 1);
    assert_int_equal(plog_truncate_fully(log, 1000, NULL), 0);
    assert_int_equal(plog_start_offset(log), 1000);
    assert_int_equal(plog_end_offset(log), 1000);
    assert_int_equal(plog_last_epoch(log), -1);
    assert_int_equal(plog_size(log), 0);
    store_append_ok(&s, log, &(struct batch_spec){.base = 1000, .epoch = 3});
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000001000.log"));
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.log"));
    plog_drop(log);
    store_drop_dir(&s);
    vfs_faulty_kill(s.disk);
    store_open_dir(&s);
    log = store_reopen(&s, "t", false, NULL);
    assert_int_equal(plog_start_offset(log), 1000);
    assert_int_equal(plog_end_offset(log), 1001);
    plog_drop(log);
    store_fini(&s);
}

static void the_log_start_only_rises_and_not_past_the_end(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 10, 1);
    assert_int_equal(plog_advance_start(log, 4, NULL), 0);
    assert_int_equal(plog_advance_start(log, 2, NULL), 0);
    assert_int_equal(plog_start_offset(log), 4);
    assert_int_equal(plog_advance_start(log, 11, NULL), ERR_RANGE);
    assert_int_equal(plog_advance_start(log, 10, NULL), 0);
    plog_drop(log);
    store_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_retention_takes_segments_whose_newest_record_is_too_old),
        cmocka_unit_test(time_retention_rolls_an_active_segment_that_is_over_time),
        cmocka_unit_test(size_retention_takes_the_oldest_and_never_the_active_segment),
        cmocka_unit_test(nothing_at_or_above_the_high_watermark_goes),
        cmocka_unit_test(a_compacted_topic_is_not_retained_by_time_or_size_but_by_its_start),
        cmocka_unit_test(deleted_files_are_renamed_first_and_a_crash_does_not_bring_them_back_as_segments),
        cmocka_unit_test(a_look_by_retention_leaves_an_idle_log_idle),
        cmocka_unit_test(a_segment_rolls_when_its_first_record_is_segment_ms_old),
        cmocka_unit_test(a_full_index_rolls_the_segment),
        cmocka_unit_test(an_offset_that_does_not_fit_an_int_rolls_the_segment),
        cmocka_unit_test(truncation_cuts_batches_epochs_producers_and_the_high_watermark),
        cmocka_unit_test(a_log_that_is_emptied_goes_on_at_the_given_offset),
        cmocka_unit_test(the_log_start_only_rises_and_not_past_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
