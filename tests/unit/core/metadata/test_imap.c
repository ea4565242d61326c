// SPDX-License-Identifier: Apache-2.0
// The ordered persistent map against a plain array.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <stdatomic.h>

#include "core/base/mem.h"
#include "core/metadata/imap.h"

#define KEYS 600

struct box {
    atomic_uint refs;
    int number;
};

static void box_unref(void *b)
{
    if (atomic_fetch_sub(&((struct box *)b)->refs, 1) == 1)
        mem_free(b);
}

static struct box *box_new(int number)
{
    struct box *b = mem_zalloc(sizeof *b);
    atomic_init(&b->refs, 1);
    b->number = number;
    return b;
}

// Keys that exercise every level: dense, spread, and at the very top.
static uint64_t key_at(unsigned i)
{
    if (i < 200)
        return i;
    if (i < 400)
        return (uint64_t)i << (i % 58);
    return UINT64_MAX - (uint64_t)(i - 400) * 977;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void it_holds_what_was_put_and_not_what_was_removed(void **state)
{
    (void)state;
    struct imap m;
    imap_init(&m, box_unref);
    static int model[KEYS];
    srand(1);
    for (int step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand() % KEYS;
        if (rand() % 3) {
            model[i] = step + 1;
            imap_put(&m, key_at(i), box_new(step + 1));
        } else {
            assert_int_equal(imap_remove(&m, key_at(i)), model[i] != 0);
            model[i] = 0;
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        struct box *b = imap_get(&m, key_at(i));
        assert_int_equal(b ? b->number : 0, model[i]);
    }
    imap_drop(&m);
}

static void a_walk_yields_keys_in_order(void **state)
{
    (void)state;
    struct imap m;
    imap_init(&m, NULL);
    static uint64_t keys[KEYS];
    for (unsigned i = 0; i < KEYS; i++) {
        keys[i] = key_at(i);
        imap_put_word(&m, keys[i], i + 1);
    }
    qsort(keys, KEYS, sizeof keys[0], by_key);
    uint64_t min = 0, key = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        if (i > 0 && keys[i] == keys[i - 1])
            continue;
        assert_int_not_equal(imap_next_word(&m, min, &key), 0);
        assert_true(key == keys[i]);
        min = key + 1;
    }
    assert_true(key == UINT64_MAX);
    imap_put_word(&m, 77, 0);
    assert_int_equal(imap_get_word(&m, 77), 0);
    imap_drop(&m);
    assert_int_equal(imap_next_word(&m, 0, &key), 0);
}

static void changing_a_copy_leaves_the_original_alone(void **state)
{
    (void)state;
    struct imap a;
    imap_init(&a, box_unref);
    for (unsigned i = 0; i < 300; i++)
        imap_put(&a, key_at(i), box_new((int)i));
    struct imap b = imap_copy(&a);
    assert_null(imap_own(&b, 5));
    for (unsigned i = 0; i < 300; i += 2)
        imap_put(&b, key_at(i), box_new(-1));
    assert_true(imap_remove(&b, key_at(299)));
    for (unsigned i = 1; i < 300; i++)
        assert_int_equal(((struct box *)imap_get(&a, key_at(i)))->number, (int)i);
    assert_non_null(imap_own(&b, 4));
    imap_drop(&a);
    assert_int_equal(((struct box *)imap_get(&b, 4))->number, -1);
    imap_drop(&b);
}

struct seen {
    unsigned calls;
    uint64_t last;
    const struct imap *a, *b;
};

static void see(void *data, uint64_t key, void *before, void *after)
{
    struct seen *s = data;
    assert_true(s->calls == 0 || key > s->last);
    assert_ptr_equal(before, imap_get(s->a, key));
    assert_ptr_equal(after, imap_get(s->b, key));
    s->last = key;
    s->calls++;
}

static void a_difference_is_exactly_what_differs_in_order(void **state)
{
    (void)state;
    srand(2);
    for (int round = 0; round < 300; round++) {
        struct imap a, b;
        imap_init(&a, box_unref);
        for (int i = rand() % 200; i > 0; i--)
            imap_put(&a, key_at((unsigned)rand() % KEYS), box_new(i));
        b = imap_copy(&a);
        if (rand() % 8 == 0)
            imap_drop(&b);
        for (int i = rand() % 30; i > 0; i--) {
            imap_put(&b, key_at((unsigned)rand() % KEYS), box_new(i));
            (void)imap_remove(&b, key_at((unsigned)rand() % KEYS));
        }
        unsigned differ = 0;
        for (unsigned i = 0; i < KEYS; i++) {
            bool first = true;
            for (unsigned j = 0; j < i && first; j++)
                first = key_at(j) != key_at(i);
            differ += first && imap_get(&a, key_at(i)) != imap_get(&b, key_at(i));
        }
        struct seen s = {0, 0, &a, &b};
        imap_diff(&a, &b, see, &s);
        assert_int_equal(s.calls, differ);
        imap_drop(&a);
        imap_drop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_put_and_not_what_was_removed),
        cmocka_unit_test(a_walk_yields_keys_in_order),
        cmocka_unit_test(changing_a_copy_leaves_the_original_alone),
        cmocka_unit_test(a_difference_is_exactly_what_differs_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
