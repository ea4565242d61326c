// SPDX-License-Identifier: Apache-2.0
// Four threads on one log on the real file system, its calls guarded as a partition guards them: one appends,
// one reads, one flushes, one rolls, trims and retains. For the thread sanitizer.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/base/mutex.h"
#include "core/record/batch.h"
#include "tests/unit/storage/fixture.h"
#include "storage/file_cache.h"
#include "storage/vfs.h"

#define APPENDS 3000 // batches
#define RECORDS 4    // records of each
#define NOW 1700000000000

struct shared {
    struct mutex lock;         // the partition's
    struct partition_log *log; // under test
    atomic_bool done;          // all is appended
    atomic_int rounds;         // of the flusher and the trimmer, so that both have had their turns
};

#define CHECK(cond)                                                                                          \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                                       \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

static void *append(void *data)
{
    struct shared *s = data;
    for (int i = 0; i < APPENDS; i++) {
        struct batch_spec spec = {.base = (log_offset)i * RECORDS, .count = RECORDS, .value_bytes = 50};
        struct slice b = batch_make(&spec);
        struct plog_append_result r;
        mutex_lock(&s->lock);
        CHECK(plog_append(s->log, &b, 1, 0, NOW, &r, NULL) == 0);
        plog_set_high_watermark(s->log, plog_end_offset(s->log));
        mutex_unlock(&s->lock);
        batch_free(b);
        CHECK(r.first_offset == spec.base);
    }
    atomic_store(&s->done, true);
    return NULL;
}

static log_offset check_batches(struct plog_range *r, log_offset at)
{
    uint8_t *bytes = malloc(r->len);
    CHECK(plog_range_copy(r, bytes) == 0);
    struct batch_iter it = batch_iter_of(slice_of(bytes, r->len));
    while (batch_iter_next(&it)) {
        CHECK(batch_check_crc(it.batch, NULL) == 0);
        CHECK(batch_base_offset(it.batch) == at);
        at = batch_next_offset(it.batch);
    }
    CHECK(it.err == 0);
    free(bytes);
    return at;
}

static void *read_on(void *data)
{
    struct shared *s = data;
    log_offset at = 0;
    while (at < (log_offset)APPENDS * RECORDS) {
        log_offset bound = plog_high_watermark(s->log); // needs no lock
        struct plog_read_args args = {.offset = at, .bound = bound, .max_bytes = 20000, .min_one = true};
        struct plog_range r = {0};
        mutex_lock(&s->lock);
        int err = plog_read(s->log, &args, &r, NULL);
        mutex_unlock(&s->lock);
        if (err == ERR_RANGE) { // trimmed under the reader: the first batch may begin below the start
            CHECK(plog_start_offset(s->log) > at);
            at = plog_start_offset(s->log);
            continue;
        }
        CHECK(err == 0);
        if (r.len > 0) {
            at = check_batches(&r, at); // the file is held, whatever happens to the log
        }
        plog_range_release(&r);
    }
    return NULL;
}

static void *flush(void *data)
{
    struct shared *s = data;
    while (!atomic_load(&s->done)) {
        struct plog_flush f = {0};
        mutex_lock(&s->lock);
        bool any = plog_flush_begin(s->log, &f);
        mutex_unlock(&s->lock);
        if (!any) {
            continue;
        }
        CHECK(plog_flush_run(&f, NULL) == 0);
        mutex_lock(&s->lock);
        CHECK(plog_flush_end(&f, NULL) == 0);
        mutex_unlock(&s->lock);
        CHECK(plog_recovery_point(s->log) <= plog_end_offset(s->log));
        (void)atomic_fetch_add(&s->rounds, 1);
    }
    return NULL;
}

static void *trim(void *data)
{
    struct shared *s = data;
    while (!atomic_load(&s->done) ||
           atomic_load(&s->rounds) <= 2) { // a busy machine may append it all meanwhile
        struct plog_doomed doomed = {0};
        mutex_lock(&s->lock);
        log_offset end = plog_end_offset(s->log), start = plog_start_offset(s->log);
        CHECK(plog_roll(s->log, NOW, NULL) == 0);
        if (end - start > 100 * RECORDS) {
            CHECK(plog_advance_start(s->log, end - 50 * RECORDS, NULL) == 0);
        }
        CHECK(plog_retain(s->log, NOW, end, &doomed, NULL) == 0);
        struct plog_timestamp t;
        CHECK(plog_find_timestamp(s->log, 1000000, end, &t, NULL) == 0);
        mutex_unlock(&s->lock);
        plog_doomed_remove(&doomed);
        (void)atomic_fetch_add(&s->rounds, 1);
        (void)usleep(200);
    }
    return NULL;
}

static void four_threads_share_a_log(void **state)
{
    (void)state;
    char path[] = "/tmp/kraft-log-threads-XXXXXX";
    assert_non_null(mkdtemp(path));
    struct file_cache *files = file_cache_new(4);
    struct log_dir *dir;
    struct log_dir_options opts = {.fs = vfs_posix(), .path = path, .files = files};
    assert_int_equal(log_dir_open(&opts, &dir, NULL), 0);
    struct log_config c;
    log_config_defaults(&c);
    c.segment_bytes = 60000;
    c.file_delete_delay_ms = 0;
    c.retention_ms = -1;
    struct log_config *config = log_config_new(&c);
    struct shared s = {0};
    struct plog_open_args args = {.topic = "shared", .config = config};
    memset(args.topic_id.b, 7, sizeof args.topic_id.b);
    assert_int_equal(plog_open(dir, &args, &s.log, NULL), 0);
    log_config_unref(config);
    mutex_init(&s.lock);

    void *(*const work[4])(void *) = {append, read_on, flush, trim};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work[i], &s), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(plog_end_offset(s.log), (log_offset)APPENDS * RECORDS);
    assert_true(atomic_load(&s.rounds) > 2);

    assert_int_equal(plog_close(s.log, NULL), 0);
    log_dir_loaded(dir);
    assert_int_equal(log_dir_close(dir, 1, NULL), 0);
    file_cache_free(files);
    mutex_fini(&s.lock);
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(four_threads_share_a_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
