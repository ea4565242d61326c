// SPDX-License-Identifier: Apache-2.0
// The mutable hash map against a plain model, for all kinds of keys.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/hmap.h"

#define KEYS 500

static char names[KEYS][16];

static struct slice name_of(int k)
{
    return slice_str(names[k]);
}
static struct uuid id_of(int k)
{
    struct uuid id = UUID_ZERO;
    id.b[3] = (uint8_t)k;
    id.b[12] = (uint8_t)(k >> 8);
    return id;
}
static void *put(struct hmap *m, int k, void *v)
{
    return m->kind == HMAP_U64     ? hmap_put_u64(m, (uint64_t)k, v)
           : m->kind == HMAP_SLICE ? hmap_put(m, name_of(k), v)
                                   : hmap_put_uuid(m, id_of(k), v);
}
static void *get(struct hmap *m, int k)
{
    return m->kind == HMAP_U64     ? hmap_get_u64(m, (uint64_t)k)
           : m->kind == HMAP_SLICE ? hmap_get(m, name_of(k))
                                   : hmap_get_uuid(m, id_of(k));
}
static void *take(struct hmap *m, int k)
{
    return m->kind == HMAP_U64     ? hmap_remove_u64(m, (uint64_t)k)
           : m->kind == HMAP_SLICE ? hmap_remove(m, name_of(k))
                                   : hmap_remove_uuid(m, id_of(k));
}

static void random_operations_match_a_model(void **state)
{
    static int store[1000];
    for (int k = 0; k < KEYS; k++)
        snprintf(names[k], sizeof names[k], "name-%d", k);
    for (enum hmap_kind kind = HMAP_U64; kind <= HMAP_UUID; kind++) {
        struct hmap m;
        void *model[KEYS] = {0};
        size_t count = 0;
        unsigned seed = 5;
        hmap_init(&m, kind);
        for (int step = 0; step < 100000; step++) {
            int k = rand_r(&seed) % KEYS;
            if (rand_r(&seed) % 100 < (step / 20000 % 2 ? 30 : 60)) {
                void *v = &store[rand_r(&seed) % 1000];
                assert_ptr_equal(put(&m, k, v), model[k]);
                count += !model[k];
                model[k] = v;
            } else {
                assert_ptr_equal(take(&m, k), model[k]);
                count -= model[k] != NULL;
                model[k] = NULL;
            }
            assert_int_equal(hmap_count(&m), count);
            if (step % 5000 == 0)
                for (int i = 0; i < KEYS; i++)
                    assert_ptr_equal(get(&m, i), model[i]);
        }
        assert_true(m.cap <= 2048);
        size_t at = 0, seen = 0;
        while (hmap_next(&m, &at))
            seen++;
        assert_int_equal(seen, count);
        hmap_fini(&m);
    }
}

static void entries_may_be_removed_while_iterating(void **state)
{
    struct hmap m;
    int x;
    hmap_init(&m, HMAP_U64);
    for (uint64_t k = 0; k < 1000; k++)
        hmap_put_u64(&m, k, &x);
    size_t at = 0, seen = 0;
    const struct hmap_slot *s;
    while ((s = hmap_next(&m, &at)) != NULL) {
        seen++;
        hmap_remove_u64(&m, s->key.u64);
    }
    assert_int_equal(seen, 1000);
    assert_int_equal(hmap_count(&m), 0);
    hmap_fini(&m);
}

static void a_null_slice_is_a_key_apart_from_the_empty_one(void **state)
{
    struct hmap m;
    int x, y;
    hmap_init(&m, HMAP_SLICE);
    assert_null(hmap_get(&m, SLICE_NULL));
    hmap_put(&m, SLICE_NULL, &x);
    hmap_put(&m, SLICE_LIT(""), &y);
    assert_ptr_equal(hmap_get(&m, SLICE_NULL), &x);
    assert_ptr_equal(hmap_get(&m, SLICE_LIT("")), &y);
    hmap_clear(&m);
    assert_null(hmap_get(&m, SLICE_NULL));
    hmap_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_match_a_model),
        cmocka_unit_test(entries_may_be_removed_while_iterating),
        cmocka_unit_test(a_null_slice_is_a_key_apart_from_the_empty_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
