// SPDX-License-Identifier: Apache-2.0
// Four threads on one partition and its log: two append, one reads, one changes everything else. For the
// thread sanitizer.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/builder.h"
#include "core/server/partition_wake.h"
#include "storage/file_cache.h"
#include "storage/log_dir.h"
#include "storage/vfs_faulty.h"

#define APPENDS 5000 // batches of each appender
#define RECORDS 3    // records of a batch
#define NOW 1000000  // wall clock

struct stress {
    struct partition *p;          // under test
    struct topic_rules *rules[2]; // the changer goes between them
    atomic_int appenders;         // still at work
    atomic_llong failures;        // appends that were refused
    atomic_llong read;            // records that the reader saw
};

static struct topic_rules *make_rules(int64_t segment_bytes)
{
    struct log_config c;
    log_config_defaults(&c);
    c.segment_bytes = segment_bytes;
    c.retention_ms = -1;
    struct topic_rules *r = mem_zalloc(sizeof *r);
    atomic_init(&r->refs, 1);
    r->log = log_config_new(&c);
    r->min_isr = 1;
    return r;
}

static uint8_t *make_batch(int64_t producer, int32_t sequence, size_t *size)
{
    struct builder_options opts = BUILDER_OPTIONS_DEFAULT;
    opts.producer_id = producer;
    opts.producer_epoch = 0;
    opts.base_sequence = sequence;
    struct builder b;
    builder_init(&b, &opts);
    for (int i = 0; i < RECORDS; i++) {
        builder_append(&b, NOW, SLICE_LIT("key"), SLICE_LIT("a value of some length"), NULL, 0);
    }
    struct slice out;
    if (builder_finish(&b, &out, NULL) != 0) {
        abort();
    }
    uint8_t *copy = malloc(out.len);
    memcpy(copy, out.data, out.len);
    *size = out.len;
    builder_fini(&b);
    return copy;
}

struct appender {
    struct stress *s; // shared
    int64_t producer; // its id
};

static void *append(void *data)
{
    struct appender *a = data;
    for (int32_t i = 0; i < APPENDS; i++) {
        struct append_entry e = {.acks = -1};
        struct wake_list wl = {.count = 0};
        e.batch = make_batch(a->producer, i * RECORDS, &e.size);
        (void)partition_append(a->s->p, &e, NOW, &wl);
        if (e.error != KE_NONE || !e.acked || e.last_offset != e.base_offset + RECORDS - 1) {
            (void)atomic_fetch_add(&a->s->failures, 1);
        }
        free(e.batch);
    }
    (void)atomic_fetch_sub(&a->s->appenders, 1);
    return NULL;
}

// Whole batches only, each once, in order, below the high watermark.
static log_offset check_range(struct partition_read *r, log_offset expected, atomic_llong *seen)
{
    uint8_t *bytes = malloc(r->range.len);
    if (plog_range_copy(&r->range, bytes) != 0) {
        abort();
    }
    struct batch_iter it = batch_iter_of(slice_of(bytes, r->range.len));
    while (batch_iter_next(&it)) {
        if (batch_check_crc(it.batch, NULL) != 0 || batch_base_offset(it.batch) != expected ||
            batch_last_offset(it.batch) >= r->bound) {
            abort();
        }
        expected = batch_next_offset(it.batch);
        (void)atomic_fetch_add(seen, batch_count(it.batch));
    }
    if (it.err != 0) {
        abort();
    }
    free(bytes);
    return expected;
}

static void *read_all(void *data)
{
    struct stress *s = data;
    log_offset at = 0;
    for (;;) {
        bool last = atomic_load(&s->appenders) == 0;
        struct partition_read_args args = {.offset = at,
                                           .current_epoch = 0,
                                           .last_epoch = -1,
                                           .max_bytes = 10000,
                                           .min_one = true,
                                           .wait = true,
                                           .replica = -1};
        struct partition_read r;
        struct wake_list wl = {.count = 0};
        partition_read(s->p, &args, NOW, &r, &wl);
        if (r.error == KE_OFFSET_OUT_OF_RANGE) {
            at = r.log_start; // records were deleted under it
            continue;
        }
        if (r.error != KE_NONE) {
            abort();
        }
        if (r.range.len > 0) {
            at = check_range(&r, at, &s->read);
        } else if (last) {
            plog_range_release(&r.range);
            return NULL;
        }
        plog_range_release(&r.range);
    }
}

static void flush(struct partition *p)
{
    struct plog_flush f;
    mutex_lock(&p->io_lock);
    mutex_lock(&p->lock);
    bool begun = plog_flush_begin(p->log, &f);
    mutex_unlock(&p->lock);
    if (begun) {
        (void)plog_flush_run(&f, NULL);
        mutex_lock(&p->lock);
        (void)plog_flush_end(&f, NULL);
        mutex_unlock(&p->lock);
    }
    mutex_unlock(&p->io_lock);
}

static void *change(void *data)
{
    struct stress *s = data;
    const broker_id one[] = {1};
    int32_t version = 1;
    while (atomic_load(&s->appenders) > 0) {
        struct wake_list wl = {.count = 0};
        struct partition_assignment a = {.leader = 1,
                                         .epoch = 0,
                                         .partition_epoch = ++version,
                                         .replicas = one,
                                         .replicas_count = 1,
                                         .isr = one,
                                         .isr_count = 1};
        (void)partition_apply(s->p, &a, NOW, &wl);
        partition_set_rules(s->p, s->rules[version & 1], NOW, &wl);
        flush(s->p);
        if (version % 50 == 0) {
            mutex_lock(&s->p->lock);
            struct plog_timestamp found;
            (void)plog_find_timestamp(s->p->log, NOW, s->p->state.high_watermark, &found, NULL);
            mutex_unlock(&s->p->lock);
        }
    }
    return NULL;
}

static void four_threads_leave_a_dense_log(void **unused)
{
    (void)unused;
    struct vfs_faulty *disk = vfs_faulty_new(1);
    struct file_cache *files = file_cache_new(16);
    struct log_dir_options opts = {.fs = vfs_faulty_fs(disk), .path = "/d", .files = files};
    struct log_dir *dir = NULL;
    assert_int_equal(log_dir_open(&opts, &dir, NULL), 0);
    struct stress s = {.rules = {make_rules(20000), make_rules(50000)}};
    struct plog_open_args args = {
        .topic = "t", .topic_id = {{1}}, .config = s.rules[0]->log, .intact_below = -1};
    struct partition_log *log = NULL;
    assert_int_equal(plog_open(dir, &args, &log, NULL), 0);
    s.p = partition_new(NULL, args.topic_id, 0, 1, log, s.rules[0]);
    const broker_id one[] = {1};
    struct partition_assignment a = {.leader = 1,
                                     .epoch = 0,
                                     .partition_epoch = 0,
                                     .replicas = one,
                                     .replicas_count = 1,
                                     .isr = one,
                                     .isr_count = 1};
    struct wake_list wl = {.count = 0};
    assert_int_equal(partition_apply(s.p, &a, NOW, &wl), PARTITION_CHANGE_LEADER);
    atomic_store(&s.appenders, 2);
    struct appender appenders[2] = {{&s, 7}, {&s, 8}};
    pthread_t threads[4];
    assert_int_equal(pthread_create(&threads[0], NULL, append, &appenders[0]), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, append, &appenders[1]), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, read_all, &s), 0);
    assert_int_equal(pthread_create(&threads[3], NULL, change, &s), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&s.failures), 0);
    assert_int_equal(s.p->state.high_watermark, 2 * APPENDS * RECORDS);
    assert_int_equal(atomic_load(&s.read), 2 * APPENDS * RECORDS);
    s.p->log = NULL;
    assert_int_equal(plog_close(log, NULL), 0);
    partition_unref(s.p);
    topic_rules_unref(s.rules[0]);
    topic_rules_unref(s.rules[1]);
    assert_int_equal(log_dir_close(dir, -1, NULL), 0);
    file_cache_free(files);
    vfs_faulty_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(four_threads_leave_a_dense_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
