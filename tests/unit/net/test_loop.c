// SPDX-License-Identifier: Apache-2.0
// Loops, tasks, timers, hooks, pools and signals of a node.
#include "tests/unit/net/net_fixture.h"

#include <pthread.h>
#include <signal.h>

static int setup(void **state)
{
    node_up(NULL);
    return 0;
}
static int teardown(void **state)
{
    node_down();
    return 0;
}

static void check_current(void *arg)
{
    assert_true(node_loop_is_current(loops[0]));
    assert_false(node_loop_is_current(loops[1]));
    assert_ptr_equal(node_loop_node(loops[0]), node);
}
static void tasks_run_on_their_loop(void **state)
{
    on_loop(loops[0], check_current, NULL);
    assert_false(node_loop_is_current(loops[0]));
}

struct numbered {
    struct node_task task;
    int thread, number;
};
static int last_number[4];
static atomic_int ran;
static void run_numbered(struct node_task *t)
{
    struct numbered *n = LIST_ENTRY(t, struct numbered, task);
    assert_int_equal(n->number, last_number[n->thread] + 1);
    last_number[n->thread] = n->number;
    atomic_fetch_add(&ran, 1);
}
#define POSTS 20000
static struct numbered posts[4][POSTS];
static void *poster(void *arg)
{
    int thread = (int)(intptr_t)arg;
    for (int i = 0; i < POSTS; i++) {
        posts[thread][i] = (struct numbered){.task.run = run_numbered, .thread = thread, .number = i + 1};
        node_loop_post(loops[0], &posts[thread][i].task);
    }
    return NULL;
}
static void posts_of_four_threads_all_run_each_threads_in_order(void **state)
{
    pthread_t t[4];
    atomic_store(&ran, 0);
    memset(last_number, 0, sizeof last_number);
    for (intptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, poster, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    WAIT_UNTIL(atomic_load(&ran) == 4 * POSTS);
}

static int hops;
static sem_t hops_done;
static void run_hop(struct node_task *t)
{
    if (++hops == 2000)
        sem_post(&hops_done);
    else
        node_loop_post(loops[hops % 2], t);
}
static void a_task_may_post_itself_to_and_fro(void **state)
{
    struct node_task t = {.run = run_hop};
    hops = 0;
    sem_init(&hops_done, 0, 0);
    node_loop_post(loops[0], &t);
    wait_sem(&hops_done);
}

static struct hook {
    struct node_hook h;
    int runs;
} hooks[2];
static int hook_order;
static void run_hook(struct node_hook *h)
{
    struct hook *x = LIST_ENTRY(h, struct hook, h);
    assert_int_equal(hook_order, (int)(x - hooks));
    hook_order = (hook_order + 1) % 2;
    x->runs++;
}
static void nothing(void *arg) {}
static void hooks_run_in_order_at_the_end_of_each_turn(void **state)
{
    memset(hooks, 0, sizeof hooks);
    hook_order = 0;
    for (int i = 0; i < 2; i++) {
        hooks[i].h.run = run_hook;
        node_loop_add_turn_end(loops[1], &hooks[i].h);
    }
    for (int i = 0; i < 50; i++)
        on_loop(loops[1], nothing, NULL);
    on_loop(loops[1], nothing, NULL); // the hooks of the call before have run
    assert_true(hooks[0].runs >= 50);
}

struct timed {
    struct node_timer t;
    uint64_t after_ms;
    mono_us started;
};
static struct timed timed[20];
static int fired;
static uint64_t last_after;
static sem_t all_fired;
static void fire_timed(struct node_timer *t)
{
    struct timed *x = LIST_ENTRY(t, struct timed, t);
    assert_true(node_clock(node) >= x->started + x->after_ms * 1000);
    assert_true(x->after_ms >= last_after);
    last_after = x->after_ms;
    if (++fired == 20)
        sem_post(&all_fired);
}
static void start_timed(void *arg)
{
    for (int i = 0; i < 20; i++) {
        timed[i] = (struct timed){
            .t.fire = fire_timed, .after_ms = (uint64_t)((i * 7) % 20) * 5, .started = node_clock(node)};
        node_timer_start(loops[0], &timed[i].t, timed[i].after_ms);
    }
}
static void timers_fire_in_order_and_never_early(void **state)
{
    sem_init(&all_fired, 0, 0);
    fired = 0;
    last_after = 0;
    on_loop(loops[0], start_timed, NULL);
    wait_sem(&all_fired);
}

static void fire_never(struct node_timer *t)
{
    fail();
}
static void start_and_stop(void *arg)
{
    struct node_timer *t = arg;
    node_timer_start(loops[0], t, 5);
    assert_true(node_timer_running(t));
    node_timer_stop(loops[0], t);
    node_timer_stop(loops[0], t);
    assert_false(node_timer_running(t));
}
static void a_stopped_timer_does_not_fire(void **state)
{
    struct node_timer t = {.fire = fire_never};
    on_loop(loops[0], start_and_stop, &t);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

struct job {
    struct node_job j;
    int number;
};
static atomic_int jobs_worked, jobs_answered, jobs_at_once, jobs_most;
static bool in_order;
static void job_work(struct node_job *j)
{
    int at_once = atomic_fetch_add(&jobs_at_once, 1) + 1;
    if (at_once > atomic_load(&jobs_most))
        atomic_store(&jobs_most, at_once);
    int number = atomic_fetch_add(&jobs_worked, 1);
    if (in_order)
        assert_int_equal(number, LIST_ENTRY(j, struct job, j)->number);
    if (number % 16 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    atomic_fetch_sub(&jobs_at_once, 1);
}
static void job_done(struct node_job *j)
{
    assert_true(node_loop_is_current(loops[1]));
    atomic_fetch_add(&jobs_answered, 1);
}
static void run_jobs(unsigned threads)
{
    static struct job jobs[500];
    struct node_pool *p = node_pool_create(node, "test", threads);
    in_order = threads == 1;
    atomic_store(&jobs_worked, 0);
    atomic_store(&jobs_answered, 0);
    atomic_store(&jobs_most, 0);
    for (int i = 0; i < 500; i++) {
        jobs[i] = (struct job){.j = {.work = job_work, .done = job_done, .loop = loops[1]}, .number = i};
        node_pool_run(p, &jobs[i].j);
    }
    WAIT_UNTIL(atomic_load(&jobs_answered) == 500);
    assert_true(atomic_load(&jobs_most) <= (int)threads);
}
static void a_pool_of_one_runs_jobs_in_order_and_answers_on_the_loop(void **state)
{
    run_jobs(1);
}
static void a_pool_runs_at_most_its_threads(void **state)
{
    run_jobs(3);
}

static void job_free(struct node_job *j)
{
    atomic_fetch_add(&jobs_worked, 1);
    free(j);
}
static void a_job_without_done_may_free_itself(void **state)
{
    struct node_pool *p = node_pool_create(node, "test", 2);
    atomic_store(&jobs_worked, 0);
    for (int i = 0; i < 100; i++) {
        struct node_job *j = calloc(1, sizeof *j);
        j->work = job_free;
        node_pool_run(p, j);
    }
    WAIT_UNTIL(atomic_load(&jobs_worked) == 100);
}

static void random_bytes_and_clocks_work(void **state)
{
    assert_true(node_random_u64(node) != node_random_u64(node));
    assert_true(node_wall(node) > 1600000000000);
    mono_us a = node_clock(node);
    assert_true(node_clock(node) >= a);
}

static atomic_int hups;
static void run_hup(struct node_task *t)
{
    atomic_fetch_add(&hups, 1);
    if (atomic_load(&hups) == 1)
        kill(getpid(), SIGTERM);
}
static void signals_become_tasks_and_sigterm_ends_the_run(void **state)
{
    struct node_task t = {.run = run_hup};
    node_on_signal(node, SIGHUP, loops[0], &t);
    kill(getpid(), SIGHUP);
    assert_int_equal(node_run_until_signal(node), SIGTERM);
    assert_int_equal(atomic_load(&hups), 1);
}
static void a_stop_request_ends_the_run(void **state)
{
    node_request_stop(node);
    assert_int_equal(node_run_until_signal(node), 0);
}

static int late_posts;
static void run_late(struct node_task *t)
{
    if (++late_posts < 10)
        node_loop_post(loops[late_posts % 2], t);
}
static void late_done(struct node_job *j)
{
    static struct node_task t = {.run = run_late};
    node_loop_post(loops[0], &t);
}
static void slow_work(struct node_job *j)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}
static void shutdown_waits_for_jobs_and_what_they_post(void **state)
{
    static struct node_job j = {.work = slow_work, .done = late_done};
    node_up(NULL);
    j.loop = loops[0];
    late_posts = 0;
    node_pool_run(node_pool_create(node, "slow", 1), &j);
    node_down();
    assert_int_equal(late_posts, 10);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(tasks_run_on_their_loop),
        T(posts_of_four_threads_all_run_each_threads_in_order),
        T(a_task_may_post_itself_to_and_fro),
        T(hooks_run_in_order_at_the_end_of_each_turn),
        T(timers_fire_in_order_and_never_early),
        T(a_stopped_timer_does_not_fire),
        T(a_pool_of_one_runs_jobs_in_order_and_answers_on_the_loop),
        T(a_pool_runs_at_most_its_threads),
        T(a_job_without_done_may_free_itself),
        T(random_bytes_and_clocks_work),
        T(signals_become_tasks_and_sigterm_ends_the_run),
        T(a_stop_request_ends_the_run),
        cmocka_unit_test(shutdown_waits_for_jobs_and_what_they_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
