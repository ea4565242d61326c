// SPDX-License-Identifier: Apache-2.0
// The chunk pool: reuse, sharing between threads, and giving memory back.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/chunk.h"

static void a_chunk_has_at_least_the_room_asked_for_and_is_aligned(void **state)
{
    const size_t sizes[] = {0,        1,       192, 193, 4096, 65535, 65536, 1u << 20, (1u << 20) + 100,
                            2u << 20, 5u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct chunk *c = chunk_alloc(sizes[i]);
        assert_true(c->cap >= sizes[i]);
        assert_int_equal((uintptr_t)c->data % 64, 0);
        memset(c->data, 0xaa, c->cap);
        chunk_unref(c);
    }
}

static void chunks_do_not_overlap(void **state)
{
    enum { N = 3000 };
    struct chunk *all[N];
    for (int i = 0; i < N; i++) {
        all[i] = chunk_alloc((size_t)(i * 37 % 5000) + 1);
        memset(all[i]->data, i & 0xff, all[i]->cap);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(all[i]->data[0], i & 0xff);
        assert_int_equal(all[i]->data[all[i]->cap - 1], i & 0xff);
        chunk_unref(all[i]);
    }
}

static void the_last_reference_frees(void **state)
{
    struct chunk_stats before, during, after;
    chunk_stats(&before);
    struct chunk *c = chunk_ref(chunk_alloc(1000));
    chunk_unref(c);
    chunk_stats(&during);
    assert_int_equal(during.chunks_used, before.chunks_used + 1);
    chunk_unref(c);
    chunk_stats(&after);
    assert_int_equal(after.chunks_used, before.chunks_used);
    assert_int_equal(after.used_bytes, before.used_bytes);
}

static void unref_of_null_is_nothing(void **state)
{
    chunk_unref(NULL);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void mixed_round(void)
{
    struct chunk *all[64];
    for (int i = 0; i < 64; i++) {
        all[i] = chunk_alloc((size_t)(i % 7) * 30000 + 100);
        memset(all[i]->data, 1, all[i]->cap);
    }
    struct chunk *big = chunk_alloc(10u << 20);
    memset(big->data, 1, big->cap);
    chunk_unref(big);
    for (int i = 0; i < 64; i++)
        chunk_unref(all[i]);
}

#endif

static void a_steady_load_takes_no_memory_and_no_faults(void **state)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    mixed_round();
    struct chunk_stats before, after;
    struct rusage r0, r1;
    chunk_stats(&before);
    getrusage(RUSAGE_SELF, &r0);
    for (int i = 0; i < 50; i++)
        mixed_round();
    getrusage(RUSAGE_SELF, &r1);
    chunk_stats(&after);
    assert_int_equal(after.held_bytes, before.held_bytes);
    assert_true(r1.ru_minflt - r0.ru_minflt < 10);
#endif
}

static void idle_memory_is_given_back(void **state)
{
#if !defined(__SANITIZE_ADDRESS__)
    enum { N = 64 };
    struct chunk *all[N];
    for (int i = 0; i < N; i++)
        all[i] = chunk_alloc(900000);
    struct chunk_stats peak, after;
    chunk_stats(&peak);
    assert_true(peak.held_bytes > (50u << 20));
    for (int i = 0; i < N; i++)
        chunk_unref(all[i]);
    chunk_stats(&after);
    assert_int_equal(after.held_bytes, peak.held_bytes); // kept for reuse
    for (int i = 0; i < 6; i++)
        chunk_trim();
    chunk_stats(&after);
    assert_true(after.held_bytes < (16u << 20));
    struct chunk *again = chunk_alloc(900000);
    memset(again->data, 1, again->cap);
    chunk_unref(again);
    chunk_release_all();
#endif
}

static void *worker(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct chunk *ring[32] = {0};
    for (int i = 0; i < 20000; i++) {
        int at = rand_r(&seed) % 32;
        chunk_unref(ring[at]);
        ring[at] = chunk_alloc((size_t)rand_r(&seed) % 40000 + 1);
        ring[at]->data[0] = (uint8_t)at;
        if (i % 5000 == 0)
            chunk_trim();
    }
    for (int i = 0; i < 32; i++)
        chunk_unref(ring[i]);
    return NULL;
}

static void four_threads_share_the_pool(void **state)
{
    pthread_t t[4];
    struct chunk_stats before, after;
    chunk_stats(&before);
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, worker, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    chunk_stats(&after);
    assert_int_equal(after.chunks_used, before.chunks_used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_has_at_least_the_room_asked_for_and_is_aligned),
        cmocka_unit_test(chunks_do_not_overlap),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(unref_of_null_is_nothing),
        cmocka_unit_test(a_steady_load_takes_no_memory_and_no_faults),
        cmocka_unit_test(idle_memory_is_given_back),
        cmocka_unit_test(four_threads_share_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
