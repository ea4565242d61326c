// SPDX-License-Identifier: Apache-2.0
// The persistent vector against a plain model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/pvec.h"

struct item {
    int refs;
    int payload;
};
static int items_alive;

static struct item *item_new(int payload)
{
    struct item *i = mem_alloc(sizeof *i);
    *i = (struct item){1, payload};
    items_alive++;
    return i;
}
static void item_ref(void *v)
{
    ((struct item *)v)->refs++;
}
static void item_unref(void *v)
{
    if (--((struct item *)v)->refs == 0) {
        items_alive--;
        mem_free(v);
    }
}
static const struct pvec_type item_type = {item_ref, item_unref};

#define MAX 3000
struct model {
    uint32_t count;
    int payload[MAX];
};

static void assert_same(const struct pvec *v, const struct model *m)
{
    assert_int_equal(pvec_count(v), m->count);
    for (uint32_t i = 0; i < m->count; i++)
        assert_int_equal(((struct item *)pvec_get(v, i))->payload, m->payload[i]);
    assert_null(pvec_get(v, m->count));
}

struct check {
    const struct model *a, *b;
    int64_t last;
    uint32_t seen;
};
static int check_one(void *data, uint32_t index, void *old_value, void *new_value)
{
    struct check *c = data;
    assert_true(index > c->last);
    c->last = index;
    c->seen++;
    assert_int_equal(old_value ? ((struct item *)old_value)->payload : -1,
                     index < c->a->count ? c->a->payload[index] : -1);
    assert_int_equal(new_value ? ((struct item *)new_value)->payload : -1,
                     index < c->b->count ? c->b->payload[index] : -1);
    return 0;
}
static void assert_diff(const struct pvec *a, const struct model *ma, const struct pvec *b,
                        const struct model *mb)
{
    struct check c = {ma, mb, -1, 0};
    assert_int_equal(pvec_diff(a, b, check_one, &c), 0);
    uint32_t n = ma->count > mb->count ? ma->count : mb->count, want = 0;
    for (uint32_t i = 0; i < n; i++)
        want += i >= ma->count || i >= mb->count || ma->payload[i] != mb->payload[i];
    assert_int_equal(c.seen, want);
}

static void random_operations_match_a_model(void **state)
{
    enum { VERSIONS = 4 };
    static struct model models[VERSIONS];
    for (unsigned seed = 1; seed < 6; seed++) {
        unsigned s = seed;
        struct pvec v[VERSIONS];
        memset(models, 0, sizeof models);
        for (int i = 0; i < VERSIONS; i++)
            pvec_init(&v[i], &item_type);
        int next = 0;
        for (int step = 0; step < 12000; step++) {
            int at = rand_r(&s) % VERSIONS, what = rand_r(&s) % 1000;
            struct model *m = &models[at];
            if (what < 600 - (step / 3000) * 150 && m->count < MAX) {
                m->payload[m->count++] = next;
                pvec_push(&v[at], item_new(next++));
            } else if (what < 800 && m->count) {
                uint32_t i = (uint32_t)rand_r(&s) % m->count;
                m->payload[i] = next;
                pvec_set(&v[at], i, item_new(next++));
            } else if (what < 995 && m->count) {
                m->count--;
                pvec_pop(&v[at]);
            } else {
                int to = rand_r(&s) % VERSIONS;
                struct pvec c = pvec_copy(&v[at]);
                pvec_drop(&v[to]);
                v[to] = c;
                if (to != at)
                    models[to] = *m;
            }
            if (step % 1000 == 0)
                for (int i = 0; i < VERSIONS; i++) {
                    int j = (i + 1) % VERSIONS;
                    assert_same(&v[i], &models[i]);
                    assert_diff(&v[i], &models[i], &v[j], &models[j]);
                }
        }
        for (int i = 0; i < VERSIONS; i++)
            pvec_drop(&v[i]);
        assert_int_equal(items_alive, 0);
    }
}

static void a_long_vector_grows_and_shrinks_through_all_levels(void **state)
{
    struct pvec v;
    pvec_init(&v, &item_type);
    for (int i = 0; i < 40000; i++)
        pvec_push(&v, item_new(i));
    for (uint32_t i = 0; i < 40000; i++)
        assert_int_equal(((struct item *)pvec_get(&v, i))->payload, i);
    struct pvec old = pvec_copy(&v);
    while (pvec_count(&v))
        pvec_pop(&v);
    assert_int_equal(v.shift, 0);
    assert_int_equal(((struct item *)pvec_get(&old, 39999))->payload, 39999);
    pvec_drop(&old);
    assert_int_equal(items_alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_match_a_model),
        cmocka_unit_test(a_long_vector_grows_and_shrinks_through_all_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
