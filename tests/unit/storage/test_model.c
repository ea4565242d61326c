// SPDX-License-Identifier: Apache-2.0
// Random life of a log against its model: appends, rolls, truncations, retention, restarts, crashes, failing
// calls.
//
// A seed that fails prints itself: run the program with it as the argument. With --long [COUNT [FIRST]] it
// runs many more.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/storage/model.h"

static unsigned seeds = 40; // of each test
static uint64_t only_seed;  // 0: all
static bool only_one;
static uint64_t first_seed; // added to each test's first

static void one_step(struct model *m, bool crashes)
{
    struct errmsg msg = {""};
    log_offset end = plog_end_offset(m->log), start = plog_start_offset(m->log);
    int rc = 0;
    int step = (int)model_random(m, crashes ? 26 : 22);
    if (only_one)
        print_message("step %d: log [%lld, %lld) flushed to %lld\n", step, (long long)start, (long long)end,
                      (long long)m->durable);
    switch (step) {
    case 0:
    case 1:
        rc = model_flush(m, &msg);
        break;
    case 2:
        rc = end > start
                 ? model_truncate(m, start + (log_offset)model_random(m, (uint64_t)(end - start) + 1), &msg)
                 : 0;
        break;
    case 3:
        rc = model_advance_start(m, start + (log_offset)model_random(m, (uint64_t)(end - start) + 1), &msg);
        break;
    case 4:
        rc = model_retain(m, &msg);
        break;
    case 5:
        rc = plog_roll(m->log, m->store.now, &msg);
        break;
    case 6:
        plog_set_high_watermark(m->log, end);
        rc = log_dir_checkpoint(m->store.dir, &msg);
        break;
    case 7:
        model_restart_clean(m);
        break;
    case 8:
        model_restart_killed(m);
        break;
    case 9:
        model_check(m);
        break;
    case 22:
    case 23:
        model_restart_crashed(m, model_random(m, UINT64_MAX));
        break;
    default:
        rc = model_append(m, &msg);
        break;
    }
    if (rc)
        fail_msg("step failed: %s", msg.text);
}

static void run_seed(uint64_t seed, bool crashes, bool flush_each)
{
    struct model m;
    model_init(&m, seed);
    m.flush_each = flush_each;
    if (flush_each) {
        plog_drop(m.log);
        m.store.config.flush_messages = 1;
        m.log = store_create(&m.store, "model");
    }
    for (int i = 0; i < 250; i++)
        one_step(&m, crashes);
    model_check(&m);
    model_fini(&m);
}

#define FOR_EACH_SEED(s, first)                                                                              \
    for (uint64_t s = only_one ? only_seed : first_seed + (first);                                           \
         s < (only_one ? only_seed + 1 : first_seed + (first) + seeds); s++)

static uint64_t current; // printed when a test fails

static int say_seed(void **state)
{
    print_message("last seed %llu\n", (unsigned long long)current);
    return 0;
}

static void a_log_follows_its_model_over_restarts_and_kills(void **state)
{
    FOR_EACH_SEED(s, 1000)
    {
        current = s;
        run_seed(s, false, false);
    }
}

static void a_log_follows_its_model_over_crashes_of_the_machine(void **state)
{
    FOR_EACH_SEED(s, 2000)
    {
        current = s;
        run_seed(s, true, false);
    }
}

static void with_flush_messages_1_nothing_acknowledged_is_lost_at_a_crash(void **state)
{
    FOR_EACH_SEED(s, 3000)
    {
        current = s;
        run_seed(s, true, true);
    }
}

// A fixed life of which every call is failed in turn. Whatever fails, what was acknowledged is there
// afterwards.
static int life(struct model *m, struct errmsg *msg)
{
    int rc = 0;
    for (int i = 0; i < 12 && rc == 0; i++)
        rc = model_append(m, msg);
    if (rc == 0)
        rc = model_flush(m, msg);
    for (int i = 0; i < 12 && rc == 0; i++)
        rc = model_append(m, msg);
    if (rc == 0)
        rc = model_truncate(m, plog_end_offset(m->log) - 7, msg);
    for (int i = 0; i < 8 && rc == 0; i++)
        rc = model_append(m, msg);
    if (rc == 0)
        rc = model_advance_start(m, 20, msg);
    if (rc == 0)
        rc = model_retain(m, msg);
    if (rc == 0)
        rc = log_dir_checkpoint(m->store.dir, msg);
    if (rc == 0)
        rc = model_append(m, msg);
    if (rc == 0)
        rc = model_flush(m, msg);
    return rc;
}

static void fail_each(int err, bool partial, bool crash)
{
    for (uint64_t n = 1;; n++) {
        struct model m;
        struct errmsg msg = {""};
        current = n;
        model_init(&m, 77);
        m.flush_each = crash;
        plog_drop(m.log);
        m.store.config.flush_messages = crash ? 1 : INT64_MAX;
        m.log = store_create(&m.store, "model");
        vfs_faulty_fail(m.store.disk, VFS_CALL_ANY, n, err, false, partial);
        int rc = life(&m, &msg);
        bool failed = vfs_faulty_failed(m.store.disk) > 0;
        assert_true(failed || rc == 0);
        if (rc && err == ERR_NOSPACE && !log_dir_is_offline(m.store.dir)) {
            vfs_faulty_heal(m.store.disk);
            model_check(&m); // the log is as before the call, and can be written to again
            if (model_append(&m, &msg))
                fail_msg("after the space came back: %s", msg.text);
            model_check(&m);
        } else if (rc) {
            assert_true(log_dir_is_offline(m.store.dir));
            assert_int_equal(model_append(&m, &msg), ERR_OFFLINE);
        }
        if (crash)
            model_restart_crashed(&m, n);
        else
            model_restart_killed(&m);
        if (model_append(&m, &msg))
            fail_msg("after the restart: %s", msg.text);
        model_check(&m);
        model_fini(&m);
        if (!failed)
            break;
        assert_true(n < 2000);
    }
}

static void any_one_call_may_fail_and_a_restart_finds_all_that_was_acknowledged(void **state)
{
    fail_each(ERR_IO, true, false);
}
static void any_one_call_may_fail_before_a_crash_of_the_machine(void **state)
{
    fail_each(ERR_IO, true, true);
}
static void any_one_call_may_find_the_disk_full_and_the_log_goes_on(void **state)
{
    fail_each(ERR_NOSPACE, true, false);
}

// Recovery itself may be stopped by any failing call, or by the next crash, and is begun again.
static bool fail_recovery(enum vfs_call kind, uint64_t n, uint64_t seed)
{
    struct model m;
    struct errmsg msg = {""};
    current = seed;
    model_init(&m, 78 + seed % 7);
    m.flush_each = true;
    plog_drop(m.log);
    m.store.config.flush_messages = 1;
    m.log = store_create(&m.store, "model");
    assert_int_equal(life(&m, &msg), 0);
    m.flush_each = false; // what is torn by the crash must not be in the acknowledged part
    m.store.config.flush_messages = INT64_MAX;
    struct log_config *lazy = log_config_new(&m.store.config);
    plog_set_config(m.log, lazy);
    log_config_unref(lazy);
    for (int i = 0; i < 9; i++)
        assert_int_equal(model_append(&m, &msg), 0);
    plog_drop(m.log);
    store_drop_dir(&m.store);
    vfs_faulty_crash(m.store.disk, seed);
    uint64_t before = vfs_faulty_failed(m.store.disk);
    vfs_faulty_fail(m.store.disk, kind, n, n & 1 ? ERR_IO : ERR_NOSPACE, false, true);
    if (store_try_open_dir(&m.store, &msg) == 0) {
        if (store_try_reopen(&m.store, "model", false, NULL, &m.log, &msg) == 0)
            plog_drop(m.log);
        store_drop_dir(&m.store);
    }
    bool failed = vfs_faulty_failed(m.store.disk) > before;
    vfs_faulty_heal(m.store.disk);
    vfs_faulty_crash(m.store.disk, seed + 1000);
    store_open_dir(&m.store);
    m.log = store_create(&m.store, "nothing"); // the restart drops one
    model_restart_crashed(&m, seed + 2000);
    assert_int_equal(model_append(&m, &msg), 0);
    model_check(&m);
    model_fini(&m);
    return failed;
}

static void recovery_may_fail_at_any_call_and_is_done_again(void **state)
{
    static const enum vfs_call kinds[] = {VFS_CALL_ANY,   VFS_CALL_READ,     VFS_CALL_OPEN, VFS_CALL_STAT,
                                          VFS_CALL_LIST,  VFS_CALL_TRUNCATE, VFS_CALL_SYNC, VFS_CALL_SYNC_DIR,
                                          VFS_CALL_WRITE, VFS_CALL_RENAME};
    unsigned failures = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (uint64_t n = 1; n < 30; n++)
            failures += fail_recovery(kinds[k], n, n * 31 + k);
    assert_true(failures > 60);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--long") == 0) {
        seeds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1500;
        first_seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    } else if (argc > 1) {
        only_seed = strtoull(argv[1], NULL, 10);
        only_one = true;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_log_follows_its_model_over_restarts_and_kills, say_seed),
        cmocka_unit_test_teardown(a_log_follows_its_model_over_crashes_of_the_machine, say_seed),
        cmocka_unit_test_teardown(with_flush_messages_1_nothing_acknowledged_is_lost_at_a_crash, say_seed),
        cmocka_unit_test_teardown(any_one_call_may_fail_and_a_restart_finds_all_that_was_acknowledged,
                                  say_seed),
        cmocka_unit_test_teardown(any_one_call_may_fail_before_a_crash_of_the_machine, say_seed),
        cmocka_unit_test_teardown(any_one_call_may_find_the_disk_full_and_the_log_goes_on, say_seed),
        cmocka_unit_test_teardown(recovery_may_fail_at_any_call_and_is_done_again, say_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
