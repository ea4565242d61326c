// SPDX-License-Identifier: Apache-2.0
// Facts of the partition log: append, read, roll, reopen.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "tests/unit/storage/fixture.h"

static void a_new_log_is_empty_and_has_no_directory(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    assert_int_equal(plog_start_offset(log), 0);
    assert_int_equal(plog_end_offset(log), 0);
    assert_false(plog_is_loaded(log));
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0"));
    plog_drop(log);
    store_fini(&s);
}

static void what_was_appended_is_read_back(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 50, 3);
    assert_int_equal(plog_end_offset(log), 150);
    assert_int_equal(store_verify(log), 50);
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000000.log"));
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/partition.metadata"));
    plog_drop(log);
    store_fini(&s);
}

static void a_read_begins_at_the_batch_that_holds_the_offset(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.index_interval_bytes = 200;
    s.config.segment_bytes = 1500;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 100, 3);
    assert_true(plog_segments(log) > 3);
    for (log_offset o = 0; o < 300; o++) {
        struct plog_read_args args = {.offset = o, .bound = 300, .max_bytes = 1, .min_one = true};
        struct plog_range r;
        assert_int_equal(plog_read(log, &args, &r, NULL), 0);
        assert_non_null(r.file);
        uint8_t buf[1024];
        assert_true(r.len <= sizeof(buf));
        assert_int_equal(plog_range_copy(&r, buf), 0);
        assert_int_equal(batch_base_offset(buf), o - o % 3);
        assert_int_equal(batch_size(buf), r.len);
        assert_int_equal(r.next_offset, o - o % 3 + 3);
        plog_range_release(&r);
    }
    plog_drop(log);
    store_fini(&s);
}

static void a_read_never_passes_its_bound(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.index_interval_bytes = 200;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 40, 1);
    for (log_offset bound = 0; bound <= 40; bound++) {
        struct plog_read_args args = {.offset = 0, .bound = bound, .max_bytes = 1 << 20, .min_one = true};
        struct plog_range r;
        assert_int_equal(plog_read(log, &args, &r, NULL), 0);
        if (bound == 0) {
            assert_null(r.file);
            continue;
        }
        assert_int_equal(r.next_offset, bound);
        uint8_t *buf = mem_alloc(r.len);
        assert_int_equal(plog_range_copy(&r, buf), 0);
        struct batch_iter it = batch_iter_of(slice_of(buf, r.len));
        log_offset n = 0;
        while (batch_iter_next(&it))
            n++;
        assert_int_equal(n, bound);
        mem_free(buf);
        plog_range_release(&r);
    }
    plog_drop(log);
    store_fini(&s);
}

static void offsets_outside_the_log_are_refused(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 4, 1);
    struct plog_range r;
    struct plog_read_args args = {.offset = 5, .bound = 4, .max_bytes = 100};
    assert_int_equal(plog_read(log, &args, &r, NULL), ERR_RANGE);
    assert_int_equal(plog_advance_start(log, 2, NULL), 0);
    args.offset = 1;
    assert_int_equal(plog_read(log, &args, &r, NULL), ERR_RANGE);
    args.offset = 4;
    assert_int_equal(plog_read(log, &args, &r, NULL), 0);
    assert_null(r.file);
    plog_drop(log);
    store_fini(&s);
}

static void many_small_batches_are_one_write(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 1, 1);
    struct slice run[64];
    for (int i = 0; i < 64; i++)
        run[i] = batch_make(&(struct batch_spec){.base = 1 + i});
    uint64_t before = vfs_faulty_calls(s.disk, VFS_CALL_WRITE);
    struct plog_append_result r;
    assert_int_equal(plog_append(log, run, 64, 0, s.now, &r, NULL), 0);
    assert_int_equal(vfs_faulty_calls(s.disk, VFS_CALL_WRITE) - before, 1);
    assert_int_equal(r.first_offset, 1);
    assert_int_equal(r.last_offset, 64);
    for (int i = 0; i < 64; i++)
        batch_free(run[i]);
    assert_int_equal(store_verify(log), 65);
    plog_drop(log);
    store_fini(&s);
}

static void a_clean_stop_is_opened_without_a_scan(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 2000;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 100, 2);
    plog_set_high_watermark(log, 150);
    assert_int_equal(plog_close(log, NULL), 0);
    store_close_dir(&s);
    assert_true(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    store_open_dir(&s);
    assert_true(log_dir_was_clean(s.dir));
    assert_int_equal(log_dir_previous_epoch(s.dir), 17);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    uint64_t reads = vfs_faulty_calls(s.disk, VFS_CALL_READ);
    struct plog_recovery rec;
    log = store_reopen(&s, "t", true, &rec);
    assert_false(rec.scanned);
    assert_int_equal(vfs_faulty_calls(s.disk, VFS_CALL_READ), reads);
    assert_false(plog_is_loaded(log));
    assert_int_equal(plog_end_offset(log), 200);
    assert_int_equal(plog_high_watermark(log), 150);
    assert_int_equal(store_verify(log), 100);
    store_fill(&s, log, 5, 1);
    assert_int_equal(store_verify(log), 105);
    plog_drop(log);
    store_fini(&s);
}

static void after_a_kill_everything_written_is_there(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 2000;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 100, 2);
    plog_drop(log);
    store_drop_dir(&s);
    vfs_faulty_kill(s.disk);
    store_open_dir(&s);
    assert_false(log_dir_was_clean(s.dir));
    struct plog_recovery rec;
    log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.scanned);
    assert_false(rec.cut);
    assert_int_equal(rec.indexes_rebuilt, 0);
    assert_int_equal(plog_end_offset(log), 200);
    assert_int_equal(store_verify(log), 100);
    plog_drop(log);
    store_fini(&s);
}

// The file of a closed segment that was cut at an entry looks whole; it must not hide the segment.
static void a_time_index_that_lost_its_end_is_made_again(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 20000;
    s.config.index_interval_bytes = 1000;
    struct partition_log *log = store_create(&s, "t");
    for (int i = 0; i < 100; i++)
        store_append_ok(&s, log, &(struct batch_spec){.base = i, .time = 1000 + i, .value_bytes = 500});
    assert_true(plog_segments(log) > 2);
    assert_int_equal(plog_close(log, NULL), 0);
    store_close_dir(&s);
    char path[128];
    (void)snprintf(path, sizeof path, "/data/t-0/%020d.timeindex", 0);
    for (int cut = 0; cut < 3; cut++) {
        struct vfs *fs = vfs_faulty_fs(s.disk);
        struct vfs_file *f;
        uint64_t size;
        assert_int_equal(fs->ops->open(fs, path, VFS_WRITE, &f, NULL), 0);
        assert_int_equal(fs->ops->size(f, &size), 0);
        assert_true(size > 24 && size % 12 == 0);
        assert_int_equal(fs->ops->truncate(f, cut == 0 ? 0 : size - 12 * (uint64_t)cut), 0);
        vfs_file_unref(f);
        store_open_dir(&s);
        log = store_reopen(&s, "t", true, NULL);
        struct plog_timestamp found;
        assert_int_equal(plog_find_timestamp(log, 1010, 100, &found, NULL), 0);
        assert_int_equal(found.offset, 10);
        assert_int_equal(plog_close(log, NULL), 0);
        store_close_dir(&s);
    }
    store_open_dir(&s);
    store_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_index_that_lost_its_end_is_made_again),
        cmocka_unit_test(a_new_log_is_empty_and_has_no_directory),
        cmocka_unit_test(what_was_appended_is_read_back),
        cmocka_unit_test(a_read_begins_at_the_batch_that_holds_the_offset),
        cmocka_unit_test(a_read_never_passes_its_bound),
        cmocka_unit_test(offsets_outside_the_log_are_refused),
        cmocka_unit_test(many_small_batches_are_one_write),
        cmocka_unit_test(a_clean_stop_is_opened_without_a_scan),
        cmocka_unit_test(after_a_kill_everything_written_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
