// SPDX-License-Identifier: Apache-2.0
// Threads on one log as a partition has them: two appenders, two readers, a flusher, and the directory's
// checkpoints.
//
// Run under the thread sanitizer it shows that nothing is touched outside the partition's mutex but what may
// be.
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/base/mutex.h"
#include "core/record/batch.h"
#include "tests/unit/storage/fixture.h"

#define APPENDS 1500 // of each appender

struct stress {
    struct mutex lock; // the partition's
    struct partition_log *log;
    struct log_dir *dir;
    struct file_cache *files;
    atomic_int writers;       // still running
    _Atomic int64_t appended; // offsets
    atomic_int bad;           // what a reader should not have seen
};

static void *append(void *data)
{
    struct stress *s = data;
    struct slice b = batch_make(&(struct batch_spec){.base = 0, .count = 3, .value_bytes = 200});
    uint8_t *bytes = (uint8_t *)(uintptr_t)b.data;
    for (int i = 0; i < APPENDS; i++) {
        struct plog_append_result r;
        struct errmsg msg;
        mutex_lock(&s->lock);
        batch_set_base_offset(bytes, plog_end_offset(s->log));
        int rc = plog_append(s->log, &b, 1, 0, 1700000000000, &r, &msg);
        plog_set_high_watermark(s->log, plog_end_offset(s->log));
        mutex_unlock(&s->lock);
        if (rc)
            atomic_fetch_add(&s->bad, 1);
        atomic_fetch_add(&s->appended, 3);
    }
    batch_free(b);
    atomic_fetch_sub(&s->writers, 1);
    return NULL;
}

static bool read_some(struct stress *s, log_offset *at, uint8_t *buf, size_t max)
{
    struct plog_range r;
    mutex_lock(&s->lock);
    log_offset hw = plog_high_watermark(s->log);
    struct plog_read_args args = {.offset = *at, .bound = hw, .max_bytes = max, .min_one = true};
    int rc = plog_read(s->log, &args, &r, NULL);
    mutex_unlock(&s->lock);
    if (rc || !r.file)
        return false;
    if (plog_range_copy(&r, buf)) // without the lock, as a reply is sent
        atomic_fetch_add(&s->bad, 1);
    struct batch_iter it = batch_iter_of(slice_of(buf, r.len));
    while (batch_iter_next(&it)) {
        if (batch_base_offset(it.batch) != *at || batch_check_crc(it.batch, NULL) ||
            batch_next_offset(it.batch) > hw)
            atomic_fetch_add(&s->bad, 1);
        *at = batch_next_offset(it.batch);
    }
    if (it.rest.len || *at != r.next_offset)
        atomic_fetch_add(&s->bad, 1);
    plog_range_release(&r);
    return true;
}

static void *read_all(void *data)
{
    struct stress *s = data;
    enum { MAX = 64 * 1024 };
    uint8_t *buf = mem_alloc(MAX);
    log_offset at = 0;
    while (atomic_load(&s->writers) > 0)
        (void)read_some(s, &at, buf, MAX);
    while (read_some(s, &at, buf, MAX))
        continue;
    if (at != atomic_load(&s->appended))
        atomic_fetch_add(&s->bad, 1);
    mem_free(buf);
    return NULL;
}

static void *flush(void *data)
{
    struct stress *s = data;
    while (atomic_load(&s->writers) > 0) {
        struct plog_flush f;
        struct errmsg msg;
        mutex_lock(&s->lock);
        bool work = plog_flush_begin(s->log, &f);
        mutex_unlock(&s->lock);
        if (work)
            (void)plog_flush_run(&f, &msg);
        mutex_lock(&s->lock);
        int rc = plog_flush_end(&f, &msg);
        mutex_unlock(&s->lock);
        if (rc || log_dir_checkpoint(s->dir, &msg))
            atomic_fetch_add(&s->bad, 1);
        if (plog_recovery_point(s->log) > plog_end_offset(s->log))
            atomic_fetch_add(&s->bad, 1);
    }
    return NULL;
}

static void run_on(struct vfs *fs, const char *path)
{
    struct stress s = {.writers = 2};
    mutex_init(&s.lock);
    s.files = file_cache_new(4);
    struct log_dir_options opts = {.fs = fs, .path = path, .files = s.files};
    assert_int_equal(log_dir_open(&opts, &s.dir, NULL), 0);
    struct log_config c = {.refs = 1};
    log_config_defaults(&c);
    c.segment_bytes = 200000; // a roll now and then
    struct log_config *config = log_config_new(&c);
    struct plog_open_args args = {.topic = "t", .topic_id = {{1}}, .config = config};
    assert_int_equal(plog_open(s.dir, &args, &s.log, NULL), 0);
    pthread_t threads[5];
    void *(*const what[5])(void *) = {append, append, read_all, read_all, flush};
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, what[i], &s), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&s.bad), 0);
    assert_int_equal(plog_end_offset(s.log), 2 * APPENDS * 3);
    assert_int_equal(store_verify(s.log), 2 * APPENDS);
    assert_int_equal(plog_close(s.log, NULL), 0);
    log_dir_loaded(s.dir);
    assert_int_equal(log_dir_close(s.dir, 1, NULL), 0);
    log_config_unref(config);
    file_cache_free(s.files);
    mutex_fini(&s.lock);
}

static void five_threads_share_a_log_on_the_real_disk(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char root[200], command[300];
    (void)snprintf(root, sizeof(root), "%s/kraft-stress-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(root));
    run_on(vfs_posix(), root);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

static void five_threads_share_a_log_in_memory(void **state)
{
    struct vfs_faulty *v = vfs_faulty_new(3);
    run_on(vfs_faulty_fs(v), "/data");
    vfs_faulty_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_threads_share_a_log_on_the_real_disk),
        cmocka_unit_test(five_threads_share_a_log_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
