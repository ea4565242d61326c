// SPDX-License-Identifier: Apache-2.0
// Facts of recovery: damage, torn tails, missing and stale side files, unfinished compaction, a full disk.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "tests/unit/storage/fixture.h"

#define SEGMENT0 "/data/t-0/00000000000000000000"

// A log of 40 batches of 2 records, in segments of 1000 bytes, whose process was killed.
static void killed(struct store *s, int64_t segment_bytes)
{
    store_init(s, 1);
    s->config.segment_bytes = segment_bytes;
    s->config.index_interval_bytes = 200;
    struct partition_log *log = store_create(s, "t");
    store_fill(s, log, 40, 2);
    plog_drop(log);
    store_drop_dir(s);
    vfs_faulty_kill(s->disk);
    store_open_dir(s);
}

static uint64_t size_of(struct store *s, const char *path)
{
    struct vfs_stat st;
    return vfs_faulty_fs(s->disk)->ops->stat(vfs_faulty_fs(s->disk), path, &st) == 0 ? st.size : 0;
}

static void write_at(struct store *s, const char *path, uint64_t pos, const void *data, size_t len)
{
    struct vfs *fs = vfs_faulty_fs(s->disk);
    struct vfs_file *f;
    assert_int_equal(fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE, &f, NULL), 0);
    struct iovec iov = {(void *)(uintptr_t)data, len};
    assert_int_equal(fs->ops->pwritev(f, &iov, 1, pos), 0);
    vfs_file_unref(f);
}

static void cut_file(struct store *s, const char *path, uint64_t size)
{
    struct vfs *fs = vfs_faulty_fs(s->disk);
    struct vfs_file *f;
    assert_int_equal(fs->ops->open(fs, path, VFS_WRITE, &f, NULL), 0);
    assert_int_equal(fs->ops->truncate(f, size), 0);
    vfs_file_unref(f);
}

static void a_torn_tail_is_cut_at_the_last_whole_batch_and_kept_aside(void **state)
{
    struct store s;
    killed(&s, 1 << 20);
    uint64_t size = size_of(&s, SEGMENT0 ".log");
    cut_file(&s, SEGMENT0 ".log", size - 17);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.cut && !rec.unreadable);
    assert_int_equal(plog_end_offset(log), 78);
    assert_int_equal(rec.end_offset, 78);
    assert_int_equal(rec.batches_after, 0);
    assert_string_equal(rec.kept_as, "00000000000000000078.cutoff");
    assert_int_equal(size_of(&s, "/data/t-0/00000000000000000078.cutoff"), rec.cut_bytes);
    assert_int_equal(rec.cut_pos + rec.cut_bytes, size - 17);
    assert_int_equal(store_verify(log), 39);
    store_fill(&s, log, 3, 1); // and it goes on
    assert_int_equal(store_verify(log), 42);
    plog_drop(log);
    store_fini(&s);
}

static void a_flipped_bit_ends_the_log_and_the_whole_batches_behind_it_are_counted(void **state)
{
    struct store s;
    killed(&s, 1 << 20);
    uint64_t size = size_of(&s, SEGMENT0 ".log");
    uint64_t batch = size / 40;
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 10 * batch + 70, 0x04), 0);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.cut && rec.unreadable);
    assert_int_equal(plog_end_offset(log), 20);
    assert_int_equal(rec.cut_segment, 0);
    assert_int_equal(rec.cut_pos, 10 * batch);
    assert_int_equal(rec.cut_bytes, size - 10 * batch);
    assert_int_equal(rec.batches_after, 29);
    assert_int_equal(size_of(&s, "/data/t-0/00000000000000000020.cutoff"), size - 10 * batch);
    plog_drop(log);
    store_fini(&s);
}

static void damage_in_the_length_does_not_hide_the_batches_behind_it(void **state)
{
    struct store s;
    killed(&s, 1 << 20);
    uint64_t batch = size_of(&s, SEGMENT0 ".log") / 40;
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 5 * batch + 10, 0xff), 0);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_int_equal(plog_end_offset(log), 10);
    assert_int_equal(rec.batches_after, 34);
    plog_drop(log);
    store_fini(&s);
}

static void segments_behind_the_damage_are_set_aside_whole(void **state)
{
    struct store s;
    killed(&s, 1000);
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 70, 1), 0);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_int_equal(plog_end_offset(log), 0);
    assert_true(rec.segments_dropped > 2);
    assert_int_equal(rec.batches_after, 39);
    assert_int_equal(plog_segments(log), 1);
    store_fill(&s, log, 2, 1);
    assert_int_equal(store_verify(log), 2);
    plog_drop(log);
    store_fini(&s);
}

static void damage_below_what_must_be_intact_is_refused_and_nothing_is_changed(void **state)
{
    struct store s;
    killed(&s, 1 << 20);
    uint64_t size = size_of(&s, SEGMENT0 ".log"), batch = size / 40;
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 10 * batch + 70, 0x04), 0);
    struct log_config *c = log_config_new(&s.config);
    struct plog_open_args args = {
        .topic = "t", .topic_id = s.topic_id, .config = c, .existing = true, .intact_below = 60};
    struct partition_log *log;
    struct errmsg msg;
    assert_int_equal(plog_open(s.dir, &args, &log, &msg), ERR_CORRUPT);
    assert_non_null(strstr(msg.text, "00000000000000000000.log"));
    assert_int_equal(size_of(&s, SEGMENT0 ".log"), size);
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000020.cutoff"));
    args.intact_below = 20; // just what is good
    assert_int_equal(plog_open(s.dir, &args, &log, &msg), 0);
    assert_int_equal(plog_end_offset(log), 20);
    plog_drop(log);
    args.intact_below = 40; // now the file ends before
    assert_int_equal(plog_open(s.dir, &args, &log, &msg), ERR_CORRUPT);
    log_config_unref(c);
    store_fini(&s);
}

static void zeros_behind_the_last_batch_are_cut_and_not_kept(void **state)
{
    struct store s;
    killed(&s, 1 << 20);
    uint64_t size = size_of(&s, SEGMENT0 ".log");
    static const uint8_t zeros[5000];
    write_at(&s, SEGMENT0 ".log", size, zeros, sizeof(zeros));
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.cut);
    assert_string_equal(rec.kept_as, "");
    assert_int_equal(plog_end_offset(log), 80);
    assert_int_equal(size_of(&s, SEGMENT0 ".log"), size);
    plog_drop(log);
    store_fini(&s);
}

static void missing_and_damaged_side_files_are_made_anew(void **state)
{
    static const char *const damage[] = {".index", ".timeindex"};
    for (int remove = 0; remove < 2; remove++) {
        for (int k = 0; k < 2; k++) {
            struct store s;
            killed(&s, 1000);
            char path[100];
            (void)snprintf(path, sizeof(path), SEGMENT0 "%s", damage[k]);
            struct vfs *fs = vfs_faulty_fs(s.disk);
            if (remove)
                assert_int_equal(fs->ops->unlink(fs, path), 0);
            else
                write_at(&s, path, 0, "\x7f\xff\xff\xff garbage", 12);
            struct plog_recovery rec;
            struct partition_log *log = store_reopen(&s, "t", false, &rec);
            assert_true(rec.indexes_rebuilt > 0);
            assert_false(rec.cut);
            assert_int_equal(store_verify(log), 40);
            plog_drop(log);
            store_fini(&s);
        }
    }
}

static void every_side_file_may_be_missing_after_a_clean_stop(void **state)
{
    static const char *const names[] = {"00000000000000000000.index",
                                        "00000000000000000000.timeindex",
                                        "leader-epoch-checkpoint",
                                        "00000000000000000080.snapshot",
                                        "partition.metadata",
                                        "../recovery-point-offset-checkpoint",
                                        "../replication-offset-checkpoint",
                                        "../.kraft-manifest",
                                        "../log-start-offset-checkpoint",
                                        "../.kafka_cleanshutdown"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct store s;
        killed(&s, 1000);
        struct partition_log *log = store_reopen(&s, "t", false, NULL);
        assert_int_equal(plog_close(log, NULL), 0);
        store_close_dir(&s);
        char path[100];
        struct vfs *fs = vfs_faulty_fs(s.disk);
        if (strncmp(names[i], "../", 3) == 0)
            (void)snprintf(path, sizeof(path), "/data/%s", names[i] + 3);
        else
            (void)snprintf(path, sizeof(path), "/data/t-0/%s", names[i]);
        assert_int_equal(fs->ops->unlink(fs, path), 0);
        store_open_dir(&s);
        struct plog_recovery rec;
        log = store_reopen(&s, "t", log_dir_was_clean(s.dir), &rec);
        assert_int_equal(plog_end_offset(log), 80);
        assert_int_equal(store_verify(log), 40);
        assert_int_equal(plog_last_epoch(log), 0);
        plog_drop(log);
        store_fini(&s);
    }
}

static void a_missing_partition_metadata_is_reported_and_written_anew(void **state)
{
    struct store s;
    killed(&s, 1000);
    struct vfs *fs = vfs_faulty_fs(s.disk);
    assert_int_equal(fs->ops->unlink(fs, "/data/t-0/partition.metadata"), 0);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.metadata_missing);
    assert_true(vfs_faulty_exists(s.disk, "/data/t-0/partition.metadata"));
    assert_int_equal(store_verify(log), 40);
    plog_drop(log);
    store_fini(&s);
}

static void a_directory_of_another_topic_id_is_refused(void **state)
{
    struct store s;
    killed(&s, 1000);
    s.topic_id.b[0] ^= 1;
    struct partition_log *log;
    struct errmsg msg;
    assert_int_equal(store_try_reopen(&s, "t", false, NULL, &log, &msg), ERR_INVALID);
    assert_int_equal(log_dir_retire(s.dir, "t-0", "3a8f74bef7ef4c798ffb65c713972f58", LOG_DIR_STRAY, NULL),
                     0);
    assert_true(vfs_faulty_exists(
        s.disk, "/data/t-0.3a8f74bef7ef4c798ffb65c713972f58-stray/00000000000000000000.log"));
    store_fini(&s);
}

// ---- compaction left half done ----------------------------------------------------------------------------
static void copy_segment(struct store *s, log_offset base, const char *suffix)
{
    struct vfs *fs = vfs_faulty_fs(s->disk);
    char from[100], to[100];
    (void)snprintf(from, sizeof(from), "/data/t-0/%020lld.log", (long long)base);
    (void)snprintf(to, sizeof(to), "/data/t-0/%020lld.log%s", (long long)base, suffix);
    uint64_t size = size_of(s, from);
    uint8_t *buf = mem_alloc((size_t)size);
    struct vfs_file *f;
    size_t got;
    assert_int_equal(fs->ops->open(fs, from, VFS_READ, &f, NULL), 0);
    assert_int_equal(fs->ops->pread(f, buf, (size_t)size, 0, &got), 0);
    vfs_file_unref(f);
    write_at(s, to, 0, buf, got);
    mem_free(buf);
}

static void a_cleaned_file_that_is_left_drops_the_swap_as_well(void **state)
{
    struct store s;
    killed(&s, 1000);
    copy_segment(&s, 0, ".cleaned");
    write_at(&s, SEGMENT0 ".index.cleaned", 0, "x", 1);
    write_at(&s, "/data/t-0/00000000000000000500.log.swap", 0, "x", 1);
    struct partition_log *log = store_reopen(&s, "t", false, NULL);
    assert_int_equal(store_verify(log), 40);
    assert_false(vfs_faulty_exists(s.disk, SEGMENT0 ".log.cleaned"));
    assert_false(vfs_faulty_exists(s.disk, SEGMENT0 ".index.cleaned"));
    assert_false(vfs_faulty_exists(s.disk, "/data/t-0/00000000000000000500.log.swap"));
    plog_drop(log);
    store_fini(&s);
}

static void a_complete_swap_is_finished(void **state)
{
    struct store s;
    killed(&s, 1000);
    copy_segment(&s, 0, ".swap");
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 70, 1),
                     0); // the old one must not be read any more
    write_at(&s, "/data/t-0/00000000000000000000.log.deleted", 0, "x", 1);
    struct plog_recovery rec;
    struct partition_log *log = store_reopen(&s, "t", false, &rec);
    assert_false(rec.cut);
    assert_int_equal(store_verify(log), 40);
    assert_false(vfs_faulty_exists(s.disk, SEGMENT0 ".log.swap"));
    assert_false(vfs_faulty_exists(s.disk, SEGMENT0 ".log.deleted"));
    plog_drop(log);
    store_fini(&s);
}

static void gaps_between_segments_are_holes_but_for_compacted_logs(void **state)
{
    for (int compact = 0; compact < 2; compact++) {
        struct store s;
        killed(&s, 1000);
        s.config.cleanup_compact = compact;
        struct vfs *fs = vfs_faulty_fs(s.disk);
        struct partition_log *log = store_reopen(&s, "t", false, NULL);
        log_offset bases[16];
        assert_true(plog_segment_bases(log, bases, 16) > 3);
        plog_drop(log);
        char path[100];
        (void)snprintf(path, sizeof(path), "/data/t-0/%020lld.log", (long long)bases[2]);
        assert_int_equal(fs->ops->unlink(fs, path), 0);
        struct plog_recovery rec;
        log = store_reopen(&s, "t", false, &rec);
        assert_int_equal(plog_end_offset(log), compact ? 80 : bases[2]);
        assert_int_equal(rec.cut, !compact);
        store_fill(&s, log, 3, 1);
        (void)store_verify(log);
        if (compact) { // a read inside the gap goes on behind it
            struct plog_read_args args = {.offset = bases[2], .bound = 80, .max_bytes = 1, .min_one = true};
            struct plog_range r;
            assert_int_equal(plog_read(log, &args, &r, NULL), 0);
            assert_int_equal(r.segment, bases[3]);
            plog_range_release(&r);
        }
        plog_drop(log);
        store_fini(&s);
    }
}

static void a_batch_of_a_lower_epoch_ends_the_log(void **state)
{
    struct store s;
    store_init(&s, 1);
    struct partition_log *log = store_create(&s, "t");
    store_append_ok(&s, log, &(struct batch_spec){.base = 0, .epoch = 5});
    plog_drop(log);
    store_drop_dir(&s);
    vfs_faulty_kill(s.disk);
    struct slice old = batch_make(&(struct batch_spec){.base = 1, .epoch = 4});
    write_at(&s, SEGMENT0 ".log", size_of(&s, SEGMENT0 ".log"), old.data, old.len);
    batch_free(old);
    store_open_dir(&s);
    struct plog_recovery rec;
    log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.cut);
    assert_int_equal(plog_end_offset(log), 1);
    plog_drop(log);
    store_fini(&s);
}

static void on_a_full_disk_recovery_gets_the_reserve(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 20000;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 400, 2);
    plog_drop(log);
    store_drop_dir(&s);
    vfs_faulty_kill(s.disk);
    assert_int_equal(vfs_faulty_corrupt(s.disk, SEGMENT0 ".log", 70, 1), 0);
    s.files = file_cache_new(16);
    struct log_dir_options opts = {
        .fs = vfs_faulty_fs(s.disk), .path = "/data", .files = s.files, .reserve_bytes = 1 << 20};
    assert_int_equal(log_dir_open(&opts, &s.dir, NULL), 0);
    assert_true(vfs_faulty_exists(s.disk, "/data/.kraft-reserve"));
    vfs_faulty_set_capacity(s.disk, vfs_faulty_used(s.disk) + 100); // no room for what must be kept aside
    struct plog_recovery rec;
    log = store_reopen(&s, "t", false, &rec);
    assert_true(rec.cut);
    assert_int_equal(rec.batches_after, 399);
    assert_false(vfs_faulty_exists(s.disk, "/data/.kraft-reserve"));
    vfs_faulty_set_capacity(s.disk, 0);
    assert_int_equal(log_dir_reserve_restore(s.dir, NULL), 0);
    assert_true(vfs_faulty_exists(s.disk, "/data/.kraft-reserve"));
    plog_drop(log);
    store_fini(&s);
}

static void a_full_disk_refuses_appends_and_serves_everything_else(void **state)
{
    struct store s;
    store_init(&s, 1);
    s.config.segment_bytes = 3000;
    struct partition_log *log = store_create(&s, "t");
    store_fill(&s, log, 60, 2);
    vfs_faulty_set_capacity(s.disk, vfs_faulty_used(s.disk) + 50);
    struct errmsg msg = {""};
    assert_int_equal(store_append(&s, log, &(struct batch_spec){.base = 120}, &msg), ERR_NOSPACE);
    assert_true(log_dir_is_full(s.dir));
    assert_false(log_dir_is_offline(s.dir));
    assert_int_equal(plog_end_offset(log), 120);
    assert_int_equal(store_verify(log), 60);
    assert_int_equal(plog_advance_start(log, 60, NULL), 0);
    struct plog_doomed doomed;
    assert_int_equal(plog_retain(log, s.now, 120, &doomed, &msg), 0);
    assert_true(doomed.count > 0);
    plog_doomed_remove(&doomed); // makes room
    store_append_ok(&s, log, &(struct batch_spec){.base = 120});
    assert_false(log_dir_is_full(s.dir));
    (void)store_verify(log);
    plog_drop(log);
    store_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_torn_tail_is_cut_at_the_last_whole_batch_and_kept_aside),
        cmocka_unit_test(a_flipped_bit_ends_the_log_and_the_whole_batches_behind_it_are_counted),
        cmocka_unit_test(damage_in_the_length_does_not_hide_the_batches_behind_it),
        cmocka_unit_test(segments_behind_the_damage_are_set_aside_whole),
        cmocka_unit_test(damage_below_what_must_be_intact_is_refused_and_nothing_is_changed),
        cmocka_unit_test(zeros_behind_the_last_batch_are_cut_and_not_kept),
        cmocka_unit_test(missing_and_damaged_side_files_are_made_anew),
        cmocka_unit_test(every_side_file_may_be_missing_after_a_clean_stop),
        cmocka_unit_test(a_missing_partition_metadata_is_reported_and_written_anew),
        cmocka_unit_test(a_directory_of_another_topic_id_is_refused),
        cmocka_unit_test(a_cleaned_file_that_is_left_drops_the_swap_as_well),
        cmocka_unit_test(a_complete_swap_is_finished),
        cmocka_unit_test(gaps_between_segments_are_holes_but_for_compacted_logs),
        cmocka_unit_test(a_batch_of_a_lower_epoch_ends_the_log),
        cmocka_unit_test(on_a_full_disk_recovery_gets_the_reserve),
        cmocka_unit_test(a_full_disk_refuses_appends_and_serves_everything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
