// SPDX-License-Identifier: Apache-2.0
// Facts of log directories: lock, marks, checkpoints, manifest, strays, deletion, going offline.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "storage/small_file.h"
#include "tests/unit/storage/fixture.h"

static char *text_of(struct store *s, const char *path)
{
    char *text;
    size_t len;
    if (small_file_read(vfs_faulty_fs(s->disk), path, &text, &len, NULL))
        return NULL;
    return text;
}

static void put_file(struct store *s, const char *path, const char *text)
{
    assert_int_equal(small_file_replace(vfs_faulty_fs(s->disk), path, slice_str(text), true, NULL), 0);
}

static void expect_text(struct store *s, const char *path, const char *want)
{
    char *text = text_of(s, path);
    assert_non_null(text);
    assert_string_equal(text, want);
    mem_free(text);
}

struct seen {
    unsigned count[LOG_DIR_FOREIGN + 1];
    unsigned from_manifest, clean;
    log_offset watermark;
};
static int see(void *data, const struct log_dir_entry *e)
{
    struct seen *s = data;
    s->count[e->kind]++;
    s->from_manifest += e->from_manifest;
    s->clean += e->clean;
    if (e->kind == LOG_DIR_PARTITION)
        s->watermark = e->high_watermark;
    return 0;
}

// Free space is kept for others, and what is refused costs nothing.
static void appends_leave_the_space_that_is_to_be_kept(void **state)
{
    struct store s;
    store_init(&s, 1);
    store_drop_dir(&s);
    s.files = file_cache_new(16);
    struct log_dir_options opts = {
        .fs = vfs_faulty_fs(s.disk), .path = "/data", .files = s.files, .keep_free_bytes = 1u << 20};
    uint64_t available, total;
    assert_int_equal(log_dir_open(&opts, &s.dir, NULL), 0);
    vfs_faulty_set_capacity(s.disk, 2u << 20);
    struct partition_log *log = store_create(&s, "t");
    int err = 0;
    for (int i = 0; i < 10000 && err == 0; i++) {
        struct batch_spec spec = {.base = plog_end_offset(log), .value_bytes = 10000};
        err = store_append(&s, log, &spec, NULL);
    }
    assert_int_equal(err, ERR_NOSPACE);
    assert_true(log_dir_is_full(s.dir));
    assert_false(log_dir_is_offline(s.dir));
    assert_int_equal(log_dir_space(s.dir, &available, &total), 0);
    assert_in_range(available, (1u << 20) - 20000, (1u << 20) + 30000);
    log_offset end = plog_end_offset(log);
    vfs_faulty_set_capacity(s.disk, 4u << 20);
    store_append_ok(&s, log, &(struct batch_spec){.base = end, .value_bytes = 10000});
    assert_false(log_dir_is_full(s.dir));
    assert_int_equal(store_verify(log), (int)end + 1);
    plog_drop(log);
    store_fini(&s);
}

static void a_directory_is_used_by_one_process(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct log_dir *second;
    struct errmsg msg;
    struct log_dir_options opts = {.fs = vfs_faulty_fs(s.disk), .path = "/data", .files = s.files};
    assert_int_equal(log_dir_open(&opts, &second, &msg), ERR_LOCKED);
    assert_non_null(strstr(msg.text, "/data"));
    store_drop_dir(&s);
    store_open_dir(&s);
    store_fini(&s);
}

static void the_clean_mark_is_not_written_before_everything_was_loaded(void **state)
{
    struct store s;
    store_init(&s, 1);
    assert_int_equal(log_dir_close(s.dir, 5, NULL), 0); // a start that was broken off
    s.dir = NULL;
    file_cache_free(s.files);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    store_open_dir(&s);
    store_close_dir(&s);
    assert_true(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    expect_text(&s, "/data/.kafka_cleanshutdown", "{\"version\":0,\"brokerEpoch\":17}");
    store_fini(&s);
}

static void a_mark_is_gone_as_soon_as_it_was_read(void **state)
{
    struct store s;
    store_init(&s, 1);
    store_close_dir(&s);
    store_open_dir(&s);
    assert_true(log_dir_was_clean(s.dir));
    store_drop_dir(&s);
    vfs_faulty_crash_hard(s.disk);
    store_open_dir(&s); // the removal was durable
    assert_false(log_dir_was_clean(s.dir));
    assert_int_equal(log_dir_previous_epoch(s.dir), -1);
    store_fini(&s);
}

static void a_log_that_was_not_closed_well_leaves_no_mark(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 3, 1);
    plog_drop(log);
    store_close_dir(&s);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    store_fini(&s);
}

static void checkpoints_are_kafkas_and_hold_what_the_logs_say(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t"), *idle = store_create(&s, "idle");
    store_fill(&s, log, 10, 1);
    plog_set_high_watermark(log, 7);
    assert_int_equal(plog_flush_all(log, NULL), 0);
    store_fill(&s, log, 2, 1);
    assert_int_equal(plog_advance_start(log, 3, NULL), 0);
    assert_int_equal(log_dir_checkpoint(s.dir, NULL), 0);
    expect_text(&s, "/data/recovery-point-offset-checkpoint", "0\n1\nt 0 10\n");
    expect_text(&s, "/data/replication-offset-checkpoint", "0\n1\nt 0 7\n");
    expect_text(&s, "/data/log-start-offset-checkpoint", "0\n1\nt 0 3\n");
    uint64_t writes = vfs_faulty_calls(s.disk, VFS_CALL_WRITE);
    assert_int_equal(log_dir_checkpoint(s.dir, NULL), 0); // nothing has changed
    assert_int_equal(vfs_faulty_calls(s.disk, VFS_CALL_WRITE), writes);
    plog_set_high_watermark(log, 8);
    assert_int_equal(log_dir_checkpoint_hw(s.dir, NULL), 0);
    expect_text(&s, "/data/replication-offset-checkpoint", "0\n1\nt 0 8\n");
    plog_drop(log);
    plog_drop(idle);
    store_drop_dir(&s);
    vfs_faulty_crash_hard(s.disk);
    store_open_dir(&s);
    struct plog_recovery rec;
    log = store_reopen(&s, "t", false, &rec);
    assert_int_equal(plog_start_offset(log), 3);
    assert_int_equal(plog_high_watermark(log), 8);
    plog_drop(log);
    store_fini(&s);
}

static void a_checkpoint_that_cannot_be_read_makes_the_directory_unclean(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 10, 1);
    assert_int_equal(plog_close(log, NULL), 0);
    store_close_dir(&s);
    put_file(&s, "/data/recovery-point-offset-checkpoint", "0\n1\nt 0 ten\n");
    store_open_dir(&s);
    assert_non_null(strstr(log_dir_warning(s.dir), "recovery-point-offset-checkpoint"));
    struct seen seen = {.watermark = 0};
    assert_int_equal(log_dir_list(s.dir, see, &seen, NULL), 0);
    assert_int_equal(seen.clean, 0);
    assert_int_equal(seen.from_manifest, 0);
    log = store_reopen(&s, "t", false, NULL);
    assert_int_equal(store_verify(log), 10);
    plog_drop(log);
    store_fini(&s);
}

static void a_clean_start_reads_the_manifest_and_no_partition(void **state)
{
    struct store s;
    store_init(&s, 1);
    for (int i = 0; i < 100; i++) {
        char topic[20];
        (void)snprintf(topic, sizeof(topic), "topic%d", i);
        struct partition_log *log = store_create(&s, topic);
        store_fill(&s, log, 2, 1);
        plog_set_high_watermark(log, 2);
        assert_int_equal(plog_close(log, NULL), 0);
    }
    store_close_dir(&s);
    uint64_t before = vfs_faulty_calls(s.disk, VFS_CALL_OPEN);
    store_open_dir(&s);
    struct seen seen = {.watermark = 0};
    assert_int_equal(log_dir_list(s.dir, see, &seen, NULL), 0);
    assert_int_equal(seen.count[LOG_DIR_PARTITION], 100);
    assert_int_equal(seen.from_manifest, 100);
    assert_int_equal(seen.clean, 100);
    assert_int_equal(seen.watermark, 2);
    assert_true(vfs_faulty_calls(s.disk, VFS_CALL_OPEN) - before < 10);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kraft-manifest"));
    store_fini(&s);
}

static void a_manifest_is_not_believed_when_kafka_used_the_directory_in_between(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 10, 1);
    assert_int_equal(plog_close(log, NULL), 0);
    store_close_dir(&s);
    put_file(&s, "/data/replication-offset-checkpoint", "0\n1\nt 0 9\n"); // as another broker would leave it
    store_open_dir(&s);
    struct seen seen = {.watermark = 0};
    assert_int_equal(log_dir_list(s.dir, see, &seen, NULL), 0);
    assert_int_equal(seen.from_manifest, 0);
    assert_int_equal(seen.clean, 1); // clean it is
    assert_int_equal(seen.watermark, 9);
    store_fini(&s);
}

static void a_directory_that_the_manifest_does_not_know_is_not_forgotten(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 1, 1);
    assert_int_equal(plog_close(log, NULL), 0);
    struct vfs *fs = vfs_faulty_fs(s.disk);
    assert_int_equal(fs->ops->mkdir(fs, "/data/other-0"), 0); // nobody opened it
    store_close_dir(&s);
    store_open_dir(&s);
    struct seen seen = {.watermark = 0};
    assert_int_equal(log_dir_list(s.dir, see, &seen, NULL), 0);
    assert_int_equal(seen.count[LOG_DIR_PARTITION], 2);
    store_fini(&s);
}

static void a_deleted_log_is_renamed_and_removed_later(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 10, 1);
    struct plog_read_args args = {.offset = 0, .bound = 10, .max_bytes = 1000, .min_one = true};
    struct plog_range r;
    assert_int_equal(plog_read(log, &args, &r, NULL), 0);
    assert_int_equal(plog_delete(log, "3a8f74bef7ef4c798ffb65c713972f58", NULL), 0);
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0"));
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0.3a8f74bef7ef4c798ffb65c713972f58-delete"));
    uint8_t *buf = mem_alloc(r.len); // who was reading goes on
    assert_int_equal(plog_range_copy(&r, buf), 0);
    mem_free(buf);
    plog_range_release(&r);
    log = store_create(&s, "t"); // the name may be used again at once
    store_fill(&s, log, 1, 1);
    unsigned removed;
    assert_int_equal(log_dir_remove_doomed(s.dir, &removed, NULL), 0);
    assert_int_equal(removed, 1);
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0.3a8f74bef7ef4c798ffb65c713972f58-delete"));
    assert_int_equal(store_verify(log), 1);
    plog_drop(log);
    store_fini(&s);
}

static void a_long_name_is_cut_before_the_suffix(void **state)
{
    struct store s;
    store_init(&s, 1);
    char topic[250], path[600];
    memset(topic, 'x', 249);
    topic[249] = 0;
    struct partition_log *log = store_create(&s, topic);
    store_fill(&s, log, 1, 1);
    assert_int_equal(plog_delete(log, "3a8f74bef7ef4c798ffb65c713972f58", NULL), 0);
    (void)snprintf(path, sizeof(path), "/data/%.*s-0.3a8f74bef7ef4c798ffb65c713972f58-delete", 255 - 42,
                   topic);
    assert_true(vfs_faulty_exists(s.disk, path));
    store_fini(&s);
}

static unsigned offline_calls;
static void note_offline(void *data, struct log_dir *dir, const char *reason)
{
    offline_calls++;
    assert_non_null(strstr(reason, "t-0"));
}

static void a_failed_write_takes_the_directory_offline_with_its_reason(void **state)
{
    struct store s;
    store_init(&s, 1);
    store_drop_dir(&s);
    s.files = file_cache_new(16);
    struct log_dir_options opts = {
        .fs = vfs_faulty_fs(s.disk), .path = "/data", .files = s.files, .offline = note_offline};
    assert_int_equal(log_dir_open(&opts, &s.dir, NULL), 0);
    struct partition_log *log = store_create(&s, "t"), *other = store_create(&s, "u");
    store_fill(&s, log, 3, 1);
    offline_calls = 0;
    vfs_faulty_fail(s.disk, VFS_CALL_WRITE, 1, ERR_IO, false, true);
    struct errmsg msg;
    assert_int_equal(store_append(&s, log, &(struct batch_spec){.base = 3}, &msg), ERR_IO);
    assert_int_equal(offline_calls, 1);
    assert_true(log_dir_is_offline(s.dir));
    assert_non_null(strstr(log_dir_offline_reason(s.dir), "t-0"));
    assert_int_equal(store_append(&s, log, &(struct batch_spec){.base = 3}, &msg), ERR_OFFLINE);
    assert_int_equal(store_append(&s, other, &(struct batch_spec){.base = 0}, &msg), ERR_OFFLINE);
    assert_int_equal(log_dir_checkpoint(s.dir, &msg), ERR_OFFLINE);
    assert_int_equal(plog_close(log, &msg), ERR_OFFLINE);
    assert_int_equal(plog_close(other, &msg), ERR_OFFLINE);
    assert_int_equal(log_dir_close(s.dir, 1, &msg), 0);
    s.dir = NULL;
    file_cache_free(s.files);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kafka_cleanshutdown"));
    store_fini(&s);
}

static void a_failed_sync_takes_the_directory_offline(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 3, 1);
    vfs_faulty_fail(s.disk, VFS_CALL_SYNC, 1, ERR_IO, false, false);
    assert_int_equal(plog_flush_all(log, NULL), ERR_IO);
    assert_true(log_dir_is_offline(s.dir));
    assert_int_equal(plog_recovery_point(log), 0);
    plog_drop(log);
    store_fini(&s);
}

static void descriptors_are_bounded_whatever_the_number_of_logs(void **state)
{
    struct store s;
    store_init(&s, 1); // the cache keeps 16
    struct partition_log *logs[60];
    for (int i = 0; i < 60; i++) {
        char topic[20];
        (void)snprintf(topic, sizeof(topic), "topic%d", i);
        logs[i] = store_create(&s, topic);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 60; i++)
            store_fill(&s, logs[i], 1, 1);
    assert_true(file_cache_open(s.files) <= 16);
    assert_true(vfs_faulty_open_files(s.disk) <= 17); // and the lock
    for (int i = 0; i < 60; i++) {
        assert_int_equal(store_verify(logs[i]), 3);
        plog_drop(logs[i]);
    }
    assert_int_equal(file_cache_open(s.files), 0);
    store_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_leave_the_space_that_is_to_be_kept),
        cmocka_unit_test(a_directory_is_used_by_one_process),
        cmocka_unit_test(the_clean_mark_is_not_written_before_everything_was_loaded),
        cmocka_unit_test(a_mark_is_gone_as_soon_as_it_was_read),
        cmocka_unit_test(a_log_that_was_not_closed_well_leaves_no_mark),
        cmocka_unit_test(checkpoints_are_kafkas_and_hold_what_the_logs_say),
        cmocka_unit_test(a_checkpoint_that_cannot_be_read_makes_the_directory_unclean),
        cmocka_unit_test(a_clean_start_reads_the_manifest_and_no_partition),
        cmocka_unit_test(a_manifest_is_not_believed_when_kafka_used_the_directory_in_between),
        cmocka_unit_test(a_directory_that_the_manifest_does_not_know_is_not_forgotten),
        cmocka_unit_test(a_deleted_log_is_renamed_and_removed_later),
        cmocka_unit_test(a_long_name_is_cut_before_the_suffix),
        cmocka_unit_test(a_failed_write_takes_the_directory_offline_with_its_reason),
        cmocka_unit_test(a_failed_sync_takes_the_directory_offline),
        cmocka_unit_test(descriptors_are_bounded_whatever_the_number_of_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
