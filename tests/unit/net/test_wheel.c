// SPDX-License-Identifier: Apache-2.0
// The timer wheel against a plain model, over short and very long times.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/list.h"
#include "net/wheel.h"

#define TIMERS 300
static struct wheel w;
static struct timer {
    struct node_timer t;
    uint64_t due; // 0: not running
    int fired;
} timers[TIMERS];
static unsigned seed;
static uint64_t last_due;

static uint64_t some_time(void)
{
    int bits = rand_r(&seed) % 34;
    return ((uint64_t)rand_r(&seed) << 20 ^ (uint64_t)rand_r(&seed)) & ((1ull << bits) - 1);
}

static void on_fire(struct node_timer *t)
{
    struct timer *x = LIST_ENTRY(t, struct timer, t);
    assert_true(x->due != 0);
    assert_int_equal(w.now_ms, x->due);
    assert_true(x->due >= last_due);
    last_due = x->due;
    x->due = 0;
    x->fired++;
    if (rand_r(&seed) % 2) { // start oneself or another from inside
        struct timer *other = &timers[rand_r(&seed) % TIMERS];
        other->due = w.now_ms + 1 + some_time();
        wheel_start(&w, &other->t, other->due);
    } else {
        struct timer *other = &timers[rand_r(&seed) % TIMERS];
        other->due = 0;
        wheel_stop(&w, &other->t);
    }
}

static void timers_fire_exactly_when_due_in_order(void **state)
{
    for (seed = 1; seed < 20; seed++) {
        unsigned start_seed = seed;
        memset(timers, 0, sizeof timers);
        wheel_init(&w, (uint64_t)rand_r(&seed) * 77);
        last_due = 0;
        for (int i = 0; i < TIMERS; i++)
            timers[i].t.fire = on_fire;
        for (int step = 0; step < 3000; step++) {
            struct timer *x = &timers[rand_r(&seed) % TIMERS];
            int what = rand_r(&seed) % 10;
            if (what < 5) {
                x->due = w.now_ms + 1 + some_time();
                wheel_start(&w, &x->t, x->due);
            } else if (what < 6) {
                x->due = 0;
                wheel_stop(&w, &x->t);
            } else {
                uint64_t to = w.now_ms + some_time() / 4;
                wheel_advance(&w, to);
                assert_int_equal(w.now_ms, to);
            }
            uint64_t next = UINT64_MAX;
            for (int i = 0; i < TIMERS; i++) {
                assert_int_equal(node_timer_running(&timers[i].t), timers[i].due != 0);
                if (timers[i].due) {
                    assert_true(timers[i].due > w.now_ms);
                    next = timers[i].due < next ? timers[i].due : next;
                }
            }
            assert_true(wheel_next_ms(&w) <= next);
            assert_true(wheel_next_ms(&w) > w.now_ms);
        }
        seed = start_seed;
    }
}

static void a_past_time_fires_at_the_next_step(void **state)
{
    memset(timers, 0, sizeof timers);
    wheel_init(&w, 1000);
    seed = 2;
    last_due = 0;
    timers[0].t.fire = on_fire;
    timers[0].due = 1001;
    wheel_start(&w, &timers[0].t, 5);
    assert_int_equal(wheel_next_ms(&w), 1001);
    wheel_advance(&w, 1001);
    assert_int_equal(timers[0].fired, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_exactly_when_due_in_order),
        cmocka_unit_test(a_past_time_fires_at_the_next_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
