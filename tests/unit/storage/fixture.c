// SPDX-License-Identifier: Apache-2.0
// The verbs of the storage tests.
#include "tests/unit/storage/fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "core/record/batch.h"

void store_init(struct store *s, uint64_t seed)
{
    memset(s, 0, sizeof(*s));
    s->disk = vfs_faulty_new(seed);
    s->now = 1700000000000;
    vfs_faulty_set_time(s->disk, s->now);
    log_config_defaults(&s->config);
    for (int i = 0; i < 16; i++)
        s->topic_id.b[i] = (uint8_t)(0x40 + i);
    store_open_dir(s);
}

void store_fini(struct store *s)
{
    if (s->dir)
        store_drop_dir(s);
    vfs_faulty_free(s->disk);
}

int store_try_open_dir(struct store *s, struct errmsg *msg)
{
    s->files = file_cache_new(16);
    struct log_dir_options opts = {.fs = vfs_faulty_fs(s->disk), .path = "/data", .files = s->files};
    int rc = log_dir_open(&opts, &s->dir, msg);
    if (rc) {
        file_cache_free(s->files);
        s->files = NULL;
    }
    return rc;
}

void store_open_dir(struct store *s)
{
    struct errmsg msg = {""};
    int rc = store_try_open_dir(s, &msg);
    if (rc)
        fail_msg("log_dir_open: %s", msg.text);
}

void store_close_dir(struct store *s)
{
    struct errmsg msg = {""};
    log_dir_loaded(s->dir);
    if (log_dir_close(s->dir, 17, &msg))
        fail_msg("log_dir_close: %s", msg.text);
    s->dir = NULL;
    file_cache_free(s->files);
    s->files = NULL;
}

void store_drop_dir(struct store *s)
{
    log_dir_drop(s->dir);
    s->dir = NULL;
    file_cache_free(s->files);
    s->files = NULL;
}

static int open_log(struct store *s, const char *topic, bool existing, bool clean,
                    struct plog_recovery *report, struct partition_log **out, struct errmsg *msg)
{
    struct log_config *c = log_config_new(&s->config);
    struct plog_open_args args = {.topic = topic,
                                  .topic_id = s->topic_id,
                                  .config = c,
                                  .existing = existing,
                                  .clean = clean,
                                  .report = report};
    int rc = plog_open(s->dir, &args, out, msg);
    log_config_unref(c);
    return rc;
}

struct partition_log *store_create(struct store *s, const char *topic)
{
    struct partition_log *log;
    struct errmsg msg = {""};
    if (open_log(s, topic, false, false, NULL, &log, &msg))
        fail_msg("plog_open: %s", msg.text);
    return log;
}

int store_try_reopen(struct store *s, const char *topic, bool clean, struct plog_recovery *report,
                     struct partition_log **out, struct errmsg *msg)
{
    return open_log(s, topic, true, clean, report, out, msg);
}

struct partition_log *store_reopen(struct store *s, const char *topic, bool clean,
                                   struct plog_recovery *report)
{
    struct partition_log *log;
    struct errmsg msg = {""};
    if (open_log(s, topic, true, clean, report, &log, &msg))
        fail_msg("plog_open: %s", msg.text);
    return log;
}

// ---- batches ----------------------------------------------------------------------------------------------
struct slice batch_make(const struct batch_spec *spec)
{
    struct builder_options o = BUILDER_OPTIONS_DEFAULT;
    o.base_offset = spec->base;
    o.epoch = spec->epoch;
    o.codec = spec->codec;
    o.transactional = spec->transactional;
    if (spec->producer) {
        o.producer_id = spec->producer - 1;
        o.producer_epoch = spec->producer_epoch;
        o.base_sequence = spec->sequence;
    }
    time_ms time = spec->time ? spec->time : 1000000 + spec->base;
    struct builder b;
    struct slice out;
    builder_init(&b, &o);
    int rc;
    if (spec->marker) {
        rc = builder_marker(&b, &o, spec->commit, 3, time, &out);
    } else {
        int size = spec->value_bytes ? spec->value_bytes : 20;
        uint8_t *value = mem_alloc((size_t)size);
        memset(value, spec->fill, (size_t)size);
        for (int i = 0; i < (spec->count ? spec->count : 1); i++)
            builder_append(&b, time + i, SLICE_LIT("key"), slice_of(value, (size_t)size), NULL, 0);
        mem_free(value);
        rc = builder_finish(&b, &out, NULL);
    }
    assert_int_equal(rc, 0);
    struct slice copy = slice_of(mem_dup(out.data, out.len), out.len);
    builder_fini(&b);
    return copy;
}

void batch_free(struct slice b)
{
    mem_free((void *)(uintptr_t)b.data);
}

int store_append(struct store *s, struct partition_log *log, const struct batch_spec *spec,
                 struct errmsg *msg)
{
    struct slice b = batch_make(spec);
    struct plog_append_result r;
    int rc = plog_append(log, &b, 1, 0, s->now, &r, msg);
    batch_free(b);
    return rc;
}

void store_append_ok(struct store *s, struct partition_log *log, const struct batch_spec *spec)
{
    struct errmsg msg = {""};
    if (store_append(s, log, spec, &msg))
        fail_msg("plog_append: %s", msg.text);
}

void store_fill(struct store *s, struct partition_log *log, int batches, int count)
{
    for (int i = 0; i < batches; i++)
        store_append_ok(
            s, log, &(struct batch_spec){.base = plog_end_offset(log), .count = count, .fill = (uint8_t)i});
}

// ---- reading ----------------------------------------------------------------------------------------------
uint8_t *store_read_all(struct partition_log *log, log_offset from, size_t *len)
{
    uint8_t *all = mem_alloc(1);
    *len = 0;
    while (from < plog_end_offset(log)) {
        struct plog_read_args args = {
            .offset = from, .bound = plog_end_offset(log), .max_bytes = 1000, .min_one = true};
        struct plog_range r;
        struct errmsg msg = {""};
        if (plog_read(log, &args, &r, &msg))
            fail_msg("plog_read at %lld: %s", (long long)from, msg.text);
        if (!r.file)
            break; // nothing at or after: the rest was compacted away
        all = mem_realloc(all, *len + r.len + 1);
        assert_int_equal(plog_range_copy(&r, all + *len), 0);
        *len += r.len;
        assert_true(r.next_offset > from);
        from = r.next_offset;
        plog_range_release(&r);
    }
    return all;
}

int store_verify(struct partition_log *log)
{
    size_t len;
    uint8_t *all = store_read_all(log, plog_start_offset(log), &len);
    struct batch_iter it = batch_iter_of(slice_of(all, len));
    int n = 0;
    log_offset next = 0;
    while (batch_iter_next(&it)) {
        assert_int_equal(batch_check_crc(it.batch, NULL), 0);
        assert_true(batch_base_offset(it.batch) >= next);
        next = batch_next_offset(it.batch);
        n++;
    }
    assert_int_equal(it.err, 0);
    assert_int_equal(it.rest.len, 0);
    assert_true(next <= plog_end_offset(log));
    mem_free(all);
    return n;
}
