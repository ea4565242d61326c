// SPDX-License-Identifier: Apache-2.0
// One million partitions of three replicas: bytes a partition, cost of replay and of one published change, in
// numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <malloc.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/metadata/delta.h"
#include "core/metadata/metadata_version.h"
#include "tests/unit/core/metadata/history.h"

#define PARTITIONS 1000000
#define BROKERS 30
#define BYTES_PER_PARTITION_MAX 200

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t heap_bytes; // bytes in use, malloc's own overhead included

static void *count_alloc(void *data, size_t size)
{
    (void)data;
    void *p = malloc(size);
    heap_bytes += malloc_usable_size(p) + 8;
    return p;
}
static void count_free(void *data, void *p)
{
    (void)data;
    if (p)
        heap_bytes -= malloc_usable_size(p) + 8;
    free(p);
}
static void *count_realloc(void *data, void *p, size_t size)
{
    (void)data;
    if (p)
        heap_bytes -= malloc_usable_size(p) + 8;
    p = realloc(p, size);
    heap_bytes += malloc_usable_size(p) + 8;
    return p;
}
static void *count_aligned(void *data, size_t align, size_t size)
{
    (void)data;
    void *p = aligned_alloc(align, size);
    heap_bytes += malloc_usable_size(p) + 8;
    return p;
}

static void replay(struct history *h, struct image_builder *b, int64_t *records)
{
    assert_int_equal(image_replay(b, &h->r, h->offset++, 1, &h->msg), 0);
    ++*records;
}

static void measure(int per_topic)
{
    static const struct mem_hooks hooks = {NULL, count_alloc, count_realloc, count_aligned, count_free};
    mem_set_hooks(&hooks);
    struct history h;
    history_init(&h, 1);
    assert_int_equal(history_feature(&h, FEATURE_METADATA_VERSION, METADATA_VERSION_MAX), 0);
    for (broker_id id = 0; id < BROKERS; id++)
        assert_int_equal(history_broker(&h, id, false), 0);
    size_t before = heap_bytes;
    double start = seconds();
    int64_t records = 0;
    struct image_builder *b = image_builder_create(h.img);
    struct uuid dirs[3];
    int32_t replicas[3];
    char name[64];
    for (int t = 0; t < PARTITIONS / per_topic; t++) {
        struct kp_topic_record *topic = &history_record(&h, METADATA_TOPIC, 0)->topic;
        snprintf(name, sizeof name, "orders.region-%d", t);
        topic->name = slice_str(name);
        topic->topic_id = uuid_number((uint64_t)t * 0x9e3779b97f4a7c15ull);
        struct uuid id = topic->topic_id;
        replay(&h, b, &records);
        for (int i = 0; i < per_topic; i++) {
            struct kp_partition_record *r = &history_record(&h, METADATA_PARTITION, 2)->partition;
            for (int k = 0; k < 3; k++) {
                replicas[k] = (t + i + k * 7) % BROKERS;
                dirs[k] = uuid_number(2000 + (uint64_t)replicas[k]);
            }
            r->topic_id = id;
            r->partition_id = i;
            r->replicas = r->isr = replicas;
            r->replicas_count = r->isr_count = r->directories_count = 3;
            r->directories = dirs;
            r->leader = replicas[0];
            r->leader_epoch = r->partition_epoch = 0;
            replay(&h, b, &records);
        }
    }
    image_unref(h.img);
    h.img = image_builder_finish(b);
    double took = seconds() - start;
    size_t bytes = (heap_bytes - before) / PARTITIONS;
    printf("%d partitions in %d topics: %zu bytes a partition, %.0f records/s\n", PARTITIONS,
           PARTITIONS / per_topic, bytes, (double)records / took);
    // A fresh image for every record, with the difference to the one before, as a follower does it.
    enum { CHANGES = 20000 };
    struct arena arena;
    arena_init(&arena);
    start = seconds();
    for (int i = 0; i < CHANGES; i++) {
        int t = (int)history_random(&h, (uint64_t)(PARTITIONS / per_topic));
        struct kp_partition_change_record *r =
            history_change(&h, 0, (partition_id)history_random(&h, (uint64_t)per_topic));
        r->topic_id = uuid_number((uint64_t)t * 0x9e3779b97f4a7c15ull);
        r->leader = (int32_t)history_random(&h, BROKERS);
        struct image *old = image_ref(h.img);
        assert_int_equal(history_apply(&h), 0);
        struct image_delta d;
        image_diff(old, h.img, &arena, &d);
        assert_int_equal(d.partitions_count, 1);
        arena_reset(&arena);
        image_unref(old);
    }
    took = seconds() - start;
    printf("one record, one published image, one difference: %.1f us\n", took / CHANGES * 1e6);
    assert_true(took / CHANGES < 1e-3);
    start = seconds();
    struct image_hash hash = image_hash_of(h.img);
    printf("hash over the snapshot: %.2f s (%016llx)\n", seconds() - start, (unsigned long long)hash.low);
    start = seconds();
    struct image *copy = history_through_snapshot(h.img, &h.msg);
    assert_non_null(copy);
    printf("snapshot and replay of it: %.2f s\n", seconds() - start);
    struct image_hash again = image_hash_of(copy);
    assert_true(hash.low == again.low && hash.high == again.high);
    start = seconds();
    image_unref(copy);
    printf("release of an image: %.2f s\n", seconds() - start);
    arena_fini(&arena);
    history_fini(&h);
    mem_set_hooks(NULL);
    assert_true(bytes <= BYTES_PER_PARTITION_MAX || per_topic == 1);
}

static void a_million_partitions_in_ten_thousand_topics_keep_the_budget(void **state)
{
    (void)state;
    measure(100);
}

static void a_million_partitions_in_one_thousand_topics_keep_the_budget(void **state)
{
    (void)state;
    measure(1000);
}

static void a_million_topics_of_one_partition_are_replayed_and_measured(void **state)
{
    (void)state;
    measure(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_partitions_in_ten_thousand_topics_keep_the_budget),
        cmocka_unit_test(a_million_partitions_in_one_thousand_topics_keep_the_budget),
        cmocka_unit_test(a_million_topics_of_one_partition_are_replayed_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
