// SPDX-License-Identifier: Apache-2.0
// The persistent map against a plain model: every version stays what it was, and nothing leaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/pmap.h"

struct item {
    atomic_int refs;
    uint64_t key;
    int payload;
};

static atomic_int items_alive;
static unsigned hash_bits = 64; // fewer: collisions

static struct item *item_new(uint64_t key, int payload)
{
    struct item *i = mem_alloc(sizeof *i);
    atomic_init(&i->refs, 1);
    i->key = key;
    i->payload = payload;
    atomic_fetch_add(&items_alive, 1);
    return i;
}
static void item_ref(void *v)
{
    atomic_fetch_add(&((struct item *)v)->refs, 1);
}
static void item_unref(void *v)
{
    if (atomic_fetch_sub(&((struct item *)v)->refs, 1) == 1) {
        atomic_fetch_sub(&items_alive, 1);
        mem_free(v);
    }
}
static const void *item_key(const void *v)
{
    return &((const struct item *)v)->key;
}
static uint64_t item_hash(const void *key)
{
    uint64_t h = pmap_hash_u64(key);
    return hash_bits == 64 ? h : h & ((1ull << hash_bits) - 1);
}
static const struct pmap_type item_type = {item_key, item_hash, pmap_equal_u64, item_ref, item_unref};

static size_t nodes_alive;
static void *count_alloc(void *d, size_t n)
{
    nodes_alive++;
    return malloc(n);
}
static void *count_realloc(void *d, void *p, size_t n)
{
    nodes_alive += p == NULL;
    return realloc(p, n);
}
static void *count_aligned(void *d, size_t a, size_t n)
{
    nodes_alive++;
    return aligned_alloc(a, n);
}
static void count_free(void *d, void *p)
{
    nodes_alive--;
    free(p);
}
static const struct mem_hooks counting = {NULL, count_alloc, count_realloc, count_aligned, count_free};

static int setup(void **state)
{
    mem_set_hooks(&counting);
    hash_bits = 64;
    nodes_alive = 0;
    return 0;
}
static int teardown(void **state)
{
    int leaked = (int)nodes_alive + items_alive;
    mem_set_hooks(NULL);
    return leaked;
}

#define KEYS 400
struct model {
    int payload[KEYS]; // -1: absent
    size_t count;
};

static void assert_same(const struct pmap *m, const struct model *model)
{
    assert_int_equal(pmap_count(m), model->count);
    for (uint64_t k = 0; k < KEYS; k++) {
        struct item *i = pmap_get(m, &k);
        if (model->payload[k] < 0) {
            assert_null(i);
        } else {
            assert_non_null(i);
            assert_int_equal(i->payload, model->payload[k]);
        }
    }
    struct pmap_iter it;
    size_t seen = 0;
    pmap_iter_init(&it, m);
    for (struct item *i; (i = pmap_iter_next(&it)) != NULL; seen++)
        assert_int_equal(model->payload[i->key], i->payload);
    assert_int_equal(seen, model->count);
}

struct diff_check {
    const struct model *before, *after;
    uint8_t seen[KEYS];
};

static int check_one(void *data, void *a, void *b)
{
    struct diff_check *d = data;
    struct item *old = a, *new = b;
    uint64_t k = old ? old->key : new->key;
    assert_int_equal(d->seen[k]++, 0);
    assert_true(old != new);
    assert_int_equal(d->before->payload[k], old ? old->payload : -1);
    assert_int_equal(d->after->payload[k], new ? new->payload : -1);
    return 0;
}

static void assert_diff(const struct pmap *a, const struct model *ma, const struct pmap *b,
                        const struct model *mb)
{
    struct diff_check d = {ma, mb, {0}};
    assert_int_equal(pmap_diff(a, b, check_one, &d), 0);
    for (int k = 0; k < KEYS; k++)
        assert_int_equal(d.seen[k], ma->payload[k] != mb->payload[k]);
}

static void run_model(unsigned seed, unsigned bits)
{
    enum { VERSIONS = 8 };
    hash_bits = bits;
    struct pmap v[VERSIONS];
    struct model models[VERSIONS];
    for (int i = 0; i < VERSIONS; i++) {
        pmap_init(&v[i], &item_type);
        memset(&models[i], 0xff, sizeof models[i]);
        models[i].count = 0;
    }
    int next = 0;
    for (int step = 0; step < 6000; step++) {
        int at = rand_r(&seed) % VERSIONS;
        uint64_t k = (uint64_t)rand_r(&seed) % KEYS;
        struct model *m = &models[at];
        int what = rand_r(&seed) % 100;
        if (what < 55) {
            pmap_put(&v[at], item_new(k, next));
            m->count += m->payload[k] < 0;
            m->payload[k] = next++;
        } else if (what < 98) {
            assert_int_equal(pmap_remove(&v[at], &k), m->payload[k] >= 0);
            m->count -= m->payload[k] >= 0;
            m->payload[k] = -1;
        } else {
            int to = rand_r(&seed) % VERSIONS;
            struct pmap c = pmap_copy(&v[at]);
            pmap_drop(&v[to]);
            v[to] = c;
            if (to == at)
                continue;
            models[to] = *m;
        }
        if (step % 400 == 0)
            for (int i = 0; i < VERSIONS; i++) {
                assert_same(&v[i], &models[i]);
                assert_diff(&v[i], &models[i], &v[(i + 1) % VERSIONS], &models[(i + 1) % VERSIONS]);
            }
    }
    for (int i = 0; i < VERSIONS; i++)
        pmap_drop(&v[i]);
    assert_int_equal(items_alive, 0);
    assert_int_equal(nodes_alive, 0);
}

static void random_operations_match_a_model(void **state)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        run_model(seed, 64);
}
static void random_operations_match_a_model_when_hashes_collide(void **state)
{
    run_model(11, 7);
    run_model(12, 2);
    run_model(13, 1);
}

static void a_copy_does_not_see_later_changes(void **state)
{
    struct pmap m;
    pmap_init(&m, &item_type);
    pmap_put(&m, item_new(1, 10));
    struct pmap old = pmap_copy(&m);
    pmap_put(&m, item_new(1, 11));
    pmap_put(&m, item_new(2, 20));
    uint64_t k = 1;
    assert_int_equal(((struct item *)pmap_get(&old, &k))->payload, 10);
    assert_int_equal(((struct item *)pmap_get(&m, &k))->payload, 11);
    assert_int_equal(pmap_count(&old), 1);
    pmap_drop(&m);
    pmap_drop(&old);
}

static void order_depends_on_the_set_alone(void **state)
{
    struct pmap a, b;
    pmap_init(&a, &item_type);
    pmap_init(&b, &item_type);
    for (uint64_t k = 0; k < 300; k++)
        pmap_put(&a, item_new(k, 0));
    for (uint64_t k = 1000; k-- > 0;)
        pmap_put(&b, item_new(k, 0));
    for (uint64_t k = 300; k < 1000; k++)
        assert_true(pmap_remove(&b, &k));
    struct pmap_iter ia, ib;
    pmap_iter_init(&ia, &a);
    pmap_iter_init(&ib, &b);
    for (int i = 0; i < 300; i++)
        assert_int_equal(((struct item *)pmap_iter_next(&ia))->key,
                         ((struct item *)pmap_iter_next(&ib))->key);
    assert_null(pmap_iter_next(&ia));
    assert_null(pmap_iter_next(&ib));
    pmap_drop(&a);
    pmap_drop(&b);
}

static void a_batch_on_a_copy_copies_each_node_once(void **state)
{
    struct pmap m;
    pmap_init(&m, &item_type);
    for (uint64_t k = 0; k < 20000; k++)
        pmap_put(&m, item_new(k, 0));
    size_t nodes = nodes_alive - (size_t)items_alive;
    struct pmap old = pmap_copy(&m);
    for (int again = 0; again < 5; again++)
        for (uint64_t k = 0; k < 20000; k++)
            pmap_put(&m, item_new(k, again));
    assert_true(nodes_alive - (size_t)items_alive <= 2 * nodes);
    pmap_drop(&m);
    pmap_drop(&old);
}

static int count_each(void *data, void *a, void *b)
{
    return ++*(int *)data == 3 ? 77 : 0;
}
static void diff_stops_when_told(void **state)
{
    struct pmap a, b;
    pmap_init(&a, &item_type);
    pmap_init(&b, &item_type);
    for (uint64_t k = 0; k < 10; k++)
        pmap_put(&b, item_new(k, 0));
    int n = 0;
    assert_int_equal(pmap_diff(&a, &b, count_each, &n), 77);
    assert_int_equal(n, 3);
    pmap_drop(&b);
}

static void *reader(void *arg)
{
    struct pmap *m = arg;
    for (int i = 0; i < 200; i++) {
        struct pmap c = pmap_copy(m);
        for (uint64_t k = 0; k < 100; k++)
            pmap_put(&c, item_new(k * 7, i));
        for (uint64_t k = 0; k < 100; k++)
            pmap_remove(&c, &k);
        pmap_drop(&c);
    }
    pmap_drop(m);
    return NULL;
}

static void threads_work_on_copies_of_one_map(void **state)
{
    mem_set_hooks(NULL);
    struct pmap m, copies[4];
    pthread_t t[4];
    pmap_init(&m, &item_type);
    for (uint64_t k = 0; k < 1000; k++)
        pmap_put(&m, item_new(k, 0));
    for (int i = 0; i < 4; i++) {
        copies[i] = pmap_copy(&m);
        assert_int_equal(pthread_create(&t[i], NULL, reader, &copies[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(pmap_count(&m), 1000);
    pmap_drop(&m);
    assert_int_equal(items_alive, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(random_operations_match_a_model),         T(random_operations_match_a_model_when_hashes_collide),
        T(a_copy_does_not_see_later_changes),       T(order_depends_on_the_set_alone),
        T(a_batch_on_a_copy_copies_each_node_once), T(diff_stops_when_told),
        T(threads_work_on_copies_of_one_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
