// SPDX-License-Identifier: Apache-2.0
// Log directories that Apache Kafka 4.4 left behind, clean and crashed, opened by us and compared with what
// Kafka read.
//
// KRAFT_SHARED names the folder that holds dirs/; without it every test here is skipped. zstd and tar are
// needed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/log.h"
#include "storage/log_dir.h"
#include "storage/segment.h"
#include "storage/small_file.h"
#include "storage/txn_index.h"

#define LOGS_MAX 64
#define PATH_BYTES 600

struct opened {
    struct partition_log *log;
    struct plog_recovery report;
    char key[300]; // "d1/TOPIC-N"
    char *bytes;   // whole of its segments, from the first one's base on, in order
    size_t len;
    bool metadata_missing;
};
struct world {
    char root[PATH_BYTES]; // extracted here
    struct file_cache *files;
    struct log_dir *dirs[2];
    struct opened logs[LOGS_MAX];
    unsigned count;
    unsigned deleted, foreign;
    struct log_config *config;
};

static const char *shared(void)
{
    return getenv("KRAFT_SHARED");
}

static void run(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static void world_extract(struct world *w, const char *which)
{
    memset(w, 0, sizeof(*w));
    const char *base = getenv("TMPDIR");
    char tmp[PATH_BYTES / 2], command[4 * PATH_BYTES];
    (void)snprintf(tmp, sizeof(tmp), "%s/kraft-dirs-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(tmp));
    (void)snprintf(command, sizeof(command), "zstd -dc '%s/dirs/kafka-4.4-%s.tar.zst' | tar x -C '%s'",
                   shared(), which, tmp);
    run(command);
    (void)snprintf(w->root, sizeof(w->root), "%s/%s", tmp, which);
}

static int open_one(void *data, const struct log_dir_entry *e)
{
    struct world *w = data;
    w->deleted += e->kind == LOG_DIR_DELETED;
    w->foreign += e->kind == LOG_DIR_FOREIGN;
    if (e->kind != LOG_DIR_PARTITION)
        return 0;
    assert_true(w->count < LOGS_MAX);
    unsigned d = w->dirs[1] ? 1 : 0;
    struct opened *o = &w->logs[w->count++];
    (void)snprintf(o->key, sizeof(o->key), "d%u/%s", d + 1, e->name);
    o->metadata_missing = e->metadata_missing;
    struct plog_open_args args = {.topic = e->topic,
                                  .partition = e->partition,
                                  .topic_id = e->topic_id,
                                  .config = w->config,
                                  .existing = true,
                                  .clean = e->clean,
                                  .report = &o->report};
    struct errmsg msg = {""};
    if (plog_open(w->dirs[d], &args, &o->log, &msg))
        fail_msg("%s: %s", o->key, msg.text);
    return 0;
}

static void world_open(struct world *w)
{
    struct log_config c = {.refs = 1};
    log_config_defaults(&c);
    w->config = log_config_new(&c);
    w->files = file_cache_new(32);
    w->count = w->deleted = w->foreign = 0;
    for (unsigned d = 0; d < 2; d++) {
        char path[PATH_BYTES + 8];
        (void)snprintf(path, sizeof(path), "%s/d%u", w->root, d + 1);
        struct log_dir_options opts = {.fs = vfs_posix(), .path = path, .files = w->files};
        struct errmsg msg = {""};
        struct log_dir *dir;
        if (log_dir_open(&opts, &dir, &msg))
            fail_msg("%s: %s", path, msg.text);
        w->dirs[d] = dir;
        if (log_dir_list(dir, open_one, w, &msg))
            fail_msg("%s: %s", path, msg.text);
    }
}

static void world_close(struct world *w, bool clean)
{
    struct errmsg msg = {""};
    for (unsigned i = 0; i < w->count; i++) {
        if (clean && plog_close(w->logs[i].log, &msg))
            fail_msg("%s: %s", w->logs[i].key, msg.text);
        if (!clean)
            plog_drop(w->logs[i].log);
    }
    for (unsigned d = 0; d < 2; d++) {
        if (clean) {
            log_dir_loaded(w->dirs[d]);
            if (log_dir_close(w->dirs[d], 384, &msg))
                fail_msg("%s", msg.text);
        } else {
            log_dir_drop(w->dirs[d]);
        }
        w->dirs[d] = NULL;
    }
    file_cache_free(w->files);
    log_config_unref(w->config);
}

static void world_remove(struct world *w)
{
    char command[4 * PATH_BYTES];
    (void)snprintf(command, sizeof(command),
                   "rm -rf '%s/..'/clean '%s/..'/crashed; rmdir \"$(dirname '%s')\"", w->root, w->root,
                   w->root);
    run(command);
}

static struct opened *find(struct world *w, const char *key)
{
    for (unsigned i = 0; i < w->count; i++)
        if (strcmp(w->logs[i].key, key) == 0)
            return &w->logs[i];
    fail_msg("%s was not found", key);
    return NULL;
}

// ---- comparing --------------------------------------------------------------------------------------------
static int64_t number(json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

// One batch that Kafka read, found by us at the same place with the same header.
static void compare_batch(struct world *w, json_t *o, unsigned *compared)
{
    const char *file = json_string_value(json_object_get(o, "file"));
    char key[300];
    const char *slash = strrchr(file, '/');
    (void)snprintf(key, sizeof(key), "%.*s", (int)(slash - file), file);
    log_offset base = number(o, "base_offset"), last = number(o, "last_offset");
    if (!strstr(slash, ".log") || strstr(key, "-delete"))
        return;
    struct partition_log *log = find(w, key)->log;
    if (last < plog_start_offset(log) || base >= plog_end_offset(log)) // trimmed; written after the recovery
        return;
    log_offset at = base < plog_start_offset(log) ? plog_start_offset(log) : base;
    struct plog_read_args args = {
        .offset = at, .bound = plog_end_offset(log), .max_bytes = 1, .min_one = true};
    struct plog_range r;
    struct errmsg msg = {""};
    if (plog_read(log, &args, &r, &msg))
        fail_msg("%s at %lld: %s", key, (long long)at, msg.text);
    assert_non_null(r.file);
    assert_int_equal(r.pos, number(o, "position"));
    assert_int_equal(r.len, number(o, "size"));
    uint8_t *b = mem_alloc(r.len);
    assert_int_equal(plog_range_copy(&r, b), 0);
    plog_range_release(&r);
    assert_int_equal(batch_base_offset(b), base);
    assert_int_equal(batch_last_offset(b), last);
    assert_int_equal(batch_crc(b), (uint32_t)number(o, "crc"));
    assert_int_equal(batch_leader_epoch(b), number(o, "leader_epoch"));
    assert_int_equal(batch_max_timestamp(b), number(o, "max_timestamp"));
    assert_int_equal(batch_producer_id(b), number(o, "producer_id"));
    assert_int_equal(batch_check_crc(b, NULL), 0);
    mem_free(b);
    ++*compared;
}

static void compare_batches(struct world *w, const char *name, unsigned *compared)
{
    char command[4 * PATH_BYTES];
    (void)snprintf(command, sizeof(command), "zstd -dc '%s/dirs/kafka-4.4-%s.batches.jsonl.zst'", shared(),
                   name);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    *compared = 0;
    while (getline(&line, &cap, f) > 0) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        compare_batch(w, o, compared);
        json_decref(o);
    }
    free(line);
    (void)pclose(f);
}

// The record with the largest and the first with at least some timestamps, by brute force over Kafka's
// records.
static void compare_times(struct world *w, const char *name, const char *key)
{
    char command[4 * PATH_BYTES];
    (void)snprintf(command, sizeof(command), "zstd -dc '%s/dirs/kafka-4.4-%s.batches.jsonl.zst'", shared(),
                   name);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0, n = 0;
    static struct {
        log_offset offset;
        time_ms time;
    } all[20000];
    while (getline(&line, &cap, f) > 0) {
        json_t *o = json_loads(line, 0, NULL);
        const char *file = json_string_value(json_object_get(o, "file"));
        if (strncmp(file, key, strlen(key)) == 0 && file[strlen(key)] == '/' && strstr(file, ".log") &&
            !json_is_true(json_object_get(o, "control"))) {
            json_t *records = json_object_get(o, "records");
            for (size_t i = 0; i < json_array_size(records); i++, n++) {
                json_t *r = json_array_get(records, i);
                all[n].offset = json_integer_value(json_array_get(r, 0));
                all[n].time = json_integer_value(json_array_get(r, 1));
            }
        }
        json_decref(o);
    }
    free(line);
    (void)pclose(f);
    assert_true(n > 0);
    struct partition_log *log = find(w, key)->log;
    log_offset start = plog_start_offset(log);
    for (size_t pick = 0; pick < n; pick += n / 37 + 1) {
        time_ms wanted = all[pick].time;
        log_offset expected = -1;
        for (size_t i = 0; i < n && expected < 0; i++)
            if (all[i].time >= wanted && all[i].offset >= start)
                expected = all[i].offset;
        struct plog_timestamp got;
        assert_int_equal(plog_find_timestamp(log, wanted, INT64_MAX, &got, NULL), 0);
        assert_int_equal(got.offset, expected);
    }
    size_t best = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].offset >= start && (all[i].time > all[best].time || all[best].offset < start))
            best = i;
    struct plog_timestamp got;
    assert_int_equal(plog_find_max_timestamp(log, INT64_MAX, &got, NULL), 0);
    assert_int_equal(got.offset, all[best].offset);
    assert_int_equal(got.timestamp, all[best].time);
    assert_int_equal(plog_find_timestamp(log, all[best].time + 1, INT64_MAX, &got, NULL), 0);
    assert_int_equal(got.offset, -1);
}

// ---- clean ------------------------------------------------------------------------------------------------
static void a_clean_directory_of_kafka_reads_as_kafka_reads_it(void **state)
{
    if (!shared())
        skip();
    struct world w;
    world_extract(&w, "clean");
    world_open(&w);
    assert_true(log_dir_was_clean(w.dirs[0]) && log_dir_was_clean(w.dirs[1]));
    assert_int_equal(log_dir_previous_epoch(w.dirs[0]), 384);
    assert_int_equal(w.deleted, 3);
    for (unsigned i = 0; i < w.count; i++) {
        assert_false(w.logs[i].report.scanned);
        assert_false(w.logs[i].metadata_missing);
    }
    assert_int_equal(plog_end_offset(find(&w, "d1/plain-none-0")->log), 1540);
    assert_int_equal(plog_high_watermark(find(&w, "d1/plain-none-0")->log), 1540);
    assert_int_equal(plog_start_offset(find(&w, "d2/trimmed-0")->log), 3210);
    unsigned compared;
    compare_batches(&w, "clean", &compared);
    assert_true(compared > 400);
    compare_times(&w, "clean", "d1/plain-none-0");
    compare_times(&w, "clean", "d2/plain-zstd-0");
    compare_times(&w, "clean", "d2/trimmed-0");
    compare_times(&w, "clean", "d1/appendtime-0");
    compare_times(&w, "clean", "d2/compacted-0");
    world_close(&w, false);
    world_remove(&w);
}

static void transactions_of_a_kafka_directory_are_known(void **state)
{
    if (!shared())
        skip();
    struct world w;
    world_extract(&w, "clean");
    world_open(&w);
    struct partition_log *log = find(&w, "d1/txn-0")->log;
    assert_int_equal(plog_end_offset(log), 75);
    log_offset open = producer_states_first_open(plog_producers(log));
    assert_true(open >= 0 && open < 75); // one transaction was left open
    assert_int_equal(plog_last_stable(log, 75), open);
    struct plog_aborted *aborted;
    unsigned count;
    assert_int_equal(plog_aborted_in(log, 0, 75, &aborted, &count, NULL), 0);
    assert_int_equal(count, 5);
    assert_int_equal(aborted[0].producer_id, 7);
    assert_int_equal(aborted[0].first_offset, 1);
    mem_free(aborted);
    assert_int_equal(plog_aborted_in(log, 13, 36, &aborted, &count, NULL), 0);
    assert_int_equal(count, 1);
    mem_free(aborted);
    world_close(&w, false);
    world_remove(&w);
}

// What we rebuild from the batches must be what Kafka wrote beside them.
static void rebuilt_indexes_are_those_that_kafka_wrote(void **state)
{
    if (!shared())
        skip();
    struct world w;
    world_extract(&w, "clean");
    char command[4 * PATH_BYTES];
    (void)snprintf(command, sizeof(command),
                   "rm -f '%s'/d?/recovery-point-offset-checkpoint '%s'/d?/.kafka_cleanshutdown", w.root,
                   w.root);
    run(command);
    world_open(&w);
    for (unsigned i = 0; i < w.count; i++) {
        struct opened *o = &w.logs[i];
        assert_true(o->report.scanned);
        assert_false(o->report.cut);
        if (o->report.indexes_rebuilt)
            fail_msg("%s: %u indexes differ from Kafka's", o->key, o->report.indexes_rebuilt);
    }
    struct txn_index kafka = {NULL, 0, 0, false};
    char dir[PATH_BYTES + 20];
    (void)snprintf(dir, sizeof(dir), "%s/d1/txn-0", w.root);
    assert_int_equal(txn_index_load(&kafka, vfs_posix(), dir, 0, NULL), 0);
    struct plog_aborted *aborted;
    unsigned count;
    assert_int_equal(plog_aborted_in(find(&w, "d1/txn-0")->log, 0, 75, &aborted, &count, NULL), 0);
    assert_int_equal(count, kafka.count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(aborted[i].producer_id, kafka.list[i].producer_id);
        assert_int_equal(aborted[i].first_offset, kafka.list[i].first_offset);
    }
    mem_free(aborted);
    txn_index_fini(&kafka);
    world_close(&w, true);
    // And the transaction index that we wrote at the close is Kafka's, byte for byte.
    struct world fresh;
    world_extract(&fresh, "clean");
    (void)snprintf(
        command, sizeof(command),
        "cmp '%s/d1/txn-0/00000000000000000000.txnindex' '%s/d1/txn-0/00000000000000000000.txnindex'", w.root,
        fresh.root);
    run(command);
    world_remove(&fresh);
    world_remove(&w);
}

// Producer state replayed from the batches must be what Kafka saved when it stopped.
static void replayed_producers_are_those_that_kafka_saved(void **state)
{
    if (!shared())
        skip();
    static const char *const keys[][2] = {{"d1/txn-0", "00000000000000000075"},
                                          {"d2/compacted-0", "00000000000000001200"},
                                          {"d1/plain-none-0", "00000000000000001540"},
                                          {"d2/__consumer_offsets-0", "00000000000000000033"}};
    struct world w;
    world_extract(&w, "clean");
    struct producer_states *saved[4];
    for (unsigned i = 0; i < 4; i++) {
        char path[2 * PATH_BYTES], *text;
        size_t len;
        (void)snprintf(path, sizeof(path), "%s/%s/%s.snapshot", w.root, keys[i][0], keys[i][1]);
        assert_int_equal(small_file_read(vfs_posix(), path, &text, &len, NULL), 0);
        saved[i] = producer_states_new();
        assert_int_equal(producer_states_decode(saved[i], slice_of(text, len), NULL), 0);
        mem_free(text);
    }
    char command[4 * PATH_BYTES];
    (void)snprintf(
        command, sizeof(command),
        "rm -f '%s'/d?/recovery-point-offset-checkpoint '%s'/d?/.kafka_cleanshutdown '%s'/d?/*/*.snapshot",
        w.root, w.root, w.root);
    run(command);
    world_open(&w);
    for (unsigned i = 0; i < 4; i++) {
        struct producer_states *p = plog_producers(find(&w, keys[i][0])->log);
        for (unsigned k = 0; k < producer_states_count(saved[i]); k++) {
            const struct producer_entry *a = producer_states_at(saved[i], k);
            const struct producer_entry *b = producer_states_find(p, a->producer_id);
            if (!b)
                fail_msg("%s: producer %lld is missing", keys[i][0], (long long)a->producer_id);
            assert_int_equal(a->producer_epoch, b->producer_epoch);
            assert_int_equal(a->coordinator_epoch, b->coordinator_epoch);
            assert_int_equal(a->txn_first_offset, b->txn_first_offset);
            assert_int_equal(a->last_timestamp, b->last_timestamp);
            assert_int_equal(a->batches_count > 0, b->batches_count > 0);
            if (a->batches_count) {
                const struct producer_batch_meta *x = &a->batches[0], *y = &b->batches[b->batches_count - 1];
                assert_int_equal(x->last_sequence, y->last_sequence);
                assert_int_equal(x->last_offset, y->last_offset);
                assert_int_equal(x->offset_delta, y->offset_delta);
            }
        }
        producer_states_free(saved[i]);
    }
    world_close(&w, false);
    world_remove(&w);
}

static void a_kafka_directory_that_we_close_opens_from_the_manifest(void **state)
{
    if (!shared())
        skip();
    struct world w;
    world_extract(&w, "clean");
    world_open(&w);
    unsigned logs = w.count;
    world_close(&w, true);
    world_open(&w);
    assert_int_equal(w.count, logs);
    for (unsigned i = 0; i < w.count; i++)
        assert_false(plog_is_loaded(w.logs[i].log));
    assert_int_equal(plog_start_offset(find(&w, "d2/trimmed-0")->log), 3210);
    unsigned compared;
    compare_batches(&w, "clean", &compared);
    assert_true(compared > 400);
    world_close(&w, true);
    world_remove(&w);
}

// ---- crashed ----------------------------------------------------------------------------------------------
static void a_crashed_directory_recovers_to_the_end_offsets_of_kafka(void **state)
{
    if (!shared())
        skip();
    struct world w;
    world_extract(&w, "crashed");
    world_open(&w);
    assert_false(log_dir_was_clean(w.dirs[0]));
    char path[PATH_BYTES], what[16], topic[256];
    (void)snprintf(path, sizeof(path), "%s/dirs/kafka-4.4-crashed.recovered-offsets.txt", shared());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int partition, lines = 0;
    long long offset;
    while (fscanf(f, "%15s %255[^:]:%d:%lld", what, topic, &partition, &offset) == 4) {
        char name[300];
        struct opened *o = NULL;
        (void)snprintf(name, sizeof(name), "/%s-%d", topic, partition);
        for (unsigned i = 0; i < w.count; i++)
            if (strcmp(w.logs[i].key + 2, name) == 0)
                o = &w.logs[i];
        assert_non_null(o);
        // The node's own start added a transaction's abort marker to txn-0 after the recovery.
        long long added = strcmp(topic, "txn") == 0 && what[0] == 'e' ? 1 : 0;
        log_offset ours = what[0] == 's' ? plog_start_offset(o->log) : plog_end_offset(o->log);
        if (ours != offset - added)
            fail_msg("%s of %s: %lld, Kafka %lld", what, name, (long long)ours, offset);
        lines++;
    }
    (void)fclose(f);
    assert_int_equal(lines, 28);
    const struct plog_recovery *zstd = &find(&w, "d2/plain-zstd-0")->report;
    assert_true(zstd->cut && zstd->unreadable);
    assert_int_equal(zstd->end_offset, 979);
    assert_true(zstd->batches_after > 0);
    assert_string_equal(zstd->kept_as, "00000000000000000979.cutoff");
    const struct plog_recovery *lz4 = &find(&w, "d2/plain-lz4-1")->report;
    assert_true(lz4->cut);
    assert_int_equal(lz4->cut_bytes, 100);
    assert_int_equal(lz4->batches_after, 0);
    const struct plog_recovery *none = &find(&w, "d1/plain-none-0")->report;
    assert_true(none->cut && !none->unreadable);
    assert_int_equal(none->cut_segment, 1500);
    assert_false(find(&w, "d2/plain-gzip-0")->report.cut);
    unsigned compared;
    compare_batches(&w, "crashed.recovered", &compared);
    assert_true(compared > 300);
    world_close(&w, true);
    world_open(&w); // and again, cleanly
    assert_int_equal(plog_end_offset(find(&w, "d2/plain-zstd-0")->log), 979);
    world_close(&w, true);
    world_remove(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_directory_of_kafka_reads_as_kafka_reads_it),
        cmocka_unit_test(transactions_of_a_kafka_directory_are_known),
        cmocka_unit_test(rebuilt_indexes_are_those_that_kafka_wrote),
        cmocka_unit_test(replayed_producers_are_those_that_kafka_saved),
        cmocka_unit_test(a_kafka_directory_that_we_close_opens_from_the_manifest),
        cmocka_unit_test(a_crashed_directory_recovers_to_the_end_offsets_of_kafka),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
