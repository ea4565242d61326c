// SPDX-License-Identifier: Apache-2.0
// Facts of idempotent and transactional producers' state.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "storage/producer_state.h"

static struct producer_batch batch(int64_t id, int16_t epoch, int32_t sequence, int count, log_offset base)
{
    return (struct producer_batch){.producer_id = id,
                                   .producer_epoch = epoch,
                                   .base_sequence = sequence,
                                   .last_sequence = (int32_t)(((int64_t)sequence + count - 1) & INT32_MAX),
                                   .base_offset = base,
                                   .last_offset = base + count - 1,
                                   .max_timestamp = 1000 + base};
}

static struct producer_duplicate dup;

static enum producer_verdict check(struct producer_states *p, struct producer_batch b)
{
    return producer_states_check(p, &b, &dup);
}

static void put(struct producer_states *p, struct producer_batch b)
{
    producer_states_append(p, &b);
}

static bool marker(struct producer_states *p, int64_t id, int16_t epoch, bool commit, log_offset at,
                   log_offset *first)
{
    struct producer_batch b = batch(id, epoch, -1, 1, at);
    b.base_sequence = b.last_sequence = -1;
    b.control = true;
    return producer_states_marker(p, &b, commit, 5, first);
}

static void an_unknown_producer_may_begin_anywhere(void **state)
{
    struct producer_states *p = producer_states_new();
    assert_int_equal(check(p, batch(1, 0, 0, 3, 0)), PRODUCER_OK);
    assert_int_equal(check(p, batch(1, 0, 4711, 3, 0)), PRODUCER_OK);
    producer_states_free(p);
}

static void the_next_sequence_follows_the_last(void **state)
{
    struct producer_states *p = producer_states_new();
    put(p, batch(1, 0, 0, 3, 0));
    assert_int_equal(check(p, batch(1, 0, 3, 2, 3)), PRODUCER_OK);
    assert_int_equal(check(p, batch(1, 0, 4, 2, 3)), PRODUCER_OUT_OF_ORDER);
    assert_int_equal(check(p, batch(1, 0, 2, 2, 3)), PRODUCER_OUT_OF_ORDER);
    producer_states_free(p);
}

static void each_of_the_last_five_batches_is_a_duplicate_with_its_own_offset(void **state)
{
    struct producer_states *p = producer_states_new();
    for (int i = 0; i < 7; i++)
        put(p, batch(1, 0, i * 2, 2, 100 + i * 2));
    for (int i = 2; i < 7; i++) {
        assert_int_equal(check(p, batch(1, 0, i * 2, 2, 999)), PRODUCER_DUPLICATE);
        assert_int_equal(dup.base_offset, 100 + i * 2);
        assert_int_equal(dup.last_offset, 101 + i * 2);
        assert_int_equal(dup.timestamp, 1100 + i * 2);
    }
    assert_int_equal(check(p, batch(1, 0, 2, 2, 999)),
                     PRODUCER_OUT_OF_ORDER); // older than what is remembered
    assert_int_equal(check(p, batch(1, 0, 12, 1, 999)), PRODUCER_OUT_OF_ORDER); // same begin, another end
    producer_states_free(p);
}

static void sequences_wrap_from_the_largest_int_to_0(void **state)
{
    struct producer_states *p = producer_states_new();
    put(p, batch(1, 0, INT32_MAX - 1, 2, 0)); // ends at INT32_MAX
    assert_int_equal(check(p, batch(1, 0, 0, 1, 2)), PRODUCER_OK);
    put(p, batch(1, 0, 0, 1, 2));
    struct producer_states *q = producer_states_new();
    put(q, batch(1, 0, INT32_MAX - 1, 4, 0)); // wraps inside: ends at 1
    assert_int_equal(check(q, batch(1, 0, INT32_MAX - 1, 4, 9)), PRODUCER_DUPLICATE);
    assert_int_equal(check(q, batch(1, 0, 2, 1, 4)), PRODUCER_OK);
    producer_states_free(p);
    producer_states_free(q);
}

static void a_new_epoch_begins_at_0_and_an_old_one_is_fenced(void **state)
{
    struct producer_states *p = producer_states_new();
    put(p, batch(1, 3, 0, 3, 0));
    assert_int_equal(check(p, batch(1, 4, 1, 1, 3)), PRODUCER_OUT_OF_ORDER);
    assert_int_equal(check(p, batch(1, 4, 0, 1, 3)), PRODUCER_OK);
    assert_int_equal(check(p, batch(1, 2, 3, 1, 3)), PRODUCER_FENCED);
    put(p, batch(1, 4, 0, 1, 3));
    assert_int_equal(check(p, batch(1, 4, 0, 1, 9)), PRODUCER_DUPLICATE);
    assert_int_equal(check(p, batch(1, 3, 0, 3, 9)), PRODUCER_FENCED); // duplicates of the old epoch as well
    producer_states_free(p);
}

static void silent_producers_expire_but_not_inside_a_transaction(void **state)
{
    struct producer_states *p = producer_states_new();
    put(p, batch(1, 0, 0, 1, 0)); // at 1000
    struct producer_batch t = batch(2, 0, 0, 1, 1);
    t.transactional = true;
    put(p, t);
    put(p, batch(3, 0, 0, 1, 500)); // at 1500
    assert_int_equal(producer_states_expire(p, 2000, 1000), 1);
    assert_null(producer_states_find(p, 1));
    assert_non_null(producer_states_find(p, 2));
    assert_non_null(producer_states_find(p, 3));
    log_offset first;
    assert_true(marker(p, 2, 0, true, 600, &first)); // a marker's time keeps it alive
    assert_int_equal(producer_states_expire(p, 2500, 1000), 1);
    assert_non_null(producer_states_find(p, 2));
    producer_states_free(p);
}

static void the_oldest_open_transaction_is_unstable_until_its_marker_is_below_the_high_watermark(void **state)
{
    struct producer_states *p = producer_states_new();
    struct producer_batch a = batch(1, 0, 0, 2, 10), b = batch(2, 0, 0, 2, 20);
    a.transactional = b.transactional = true;
    put(p, a);
    put(p, b);
    assert_int_equal(producer_states_first_open(p), 10);
    log_offset first;
    assert_int_equal(producer_states_stable_after(p, 1, 30), 20);
    assert_true(marker(p, 1, 0, true, 30, &first));
    assert_int_equal(first, 10);
    assert_int_equal(producer_states_first_open(p), 20);
    assert_int_equal(producer_states_first_unstable(p, 30), 10); // the marker itself is not below 30
    assert_int_equal(producer_states_first_unstable(p, 31), 20);
    assert_int_equal(producer_states_stable_after(p, 2, 40), 41);
    assert_true(marker(p, 2, 0, false, 40, &first));
    assert_int_equal(producer_states_first_unstable(p, 41), -1);
    assert_false(marker(p, 2, 0, false, 41, &first)); // none open: a marker without data is legal
    producer_states_free(p);
}

static void a_marker_with_a_higher_epoch_forgets_the_sequences(void **state)
{
    struct producer_states *p = producer_states_new();
    struct producer_batch a = batch(1, 0, 0, 2, 10);
    a.transactional = true;
    put(p, a);
    log_offset first;
    assert_true(marker(p, 1, 1, true, 12, &first));
    const struct producer_entry *e = producer_states_find(p, 1);
    assert_int_equal(e->producer_epoch, 1);
    assert_int_equal(e->batches_count, 0);
    assert_int_equal(e->coordinator_epoch, 5);
    assert_int_equal(check(p, batch(1, 1, 0, 1, 13)), PRODUCER_OK);
    assert_int_equal(check(p, batch(1, 1, 2, 1, 13)), PRODUCER_OUT_OF_ORDER);
    producer_states_free(p);
}

static void a_snapshot_keeps_the_last_batch_and_the_open_transaction(void **state)
{
    struct producer_states *p = producer_states_new(), *q = producer_states_new();
    put(p, batch(1, 3, 0, 3, 0));
    put(p, batch(1, 3, 3, 3, 3));
    struct producer_batch t = batch(9, 1, 7, 2, 6);
    t.transactional = true;
    put(p, t);
    uint8_t *bytes;
    size_t len;
    producer_states_encode(p, &bytes, &len);
    assert_int_equal(len, 10 + 2 * 46);
    assert_int_equal(bytes[0] << 8 | bytes[1], 1);
    assert_int_equal(producer_states_decode(q, slice_of(bytes, len), NULL), 0);
    assert_int_equal(producer_states_count(q), 2);
    assert_int_equal(check(q, batch(1, 3, 3, 3, 0)), PRODUCER_DUPLICATE);
    assert_int_equal(dup.base_offset, 3);
    assert_int_equal(check(q, batch(1, 3, 0, 3, 0)), PRODUCER_OUT_OF_ORDER); // only one batch is kept
    assert_int_equal(check(q, batch(1, 3, 6, 1, 0)), PRODUCER_OK);
    assert_int_equal(producer_states_first_open(q), 6);
    for (size_t i = 0; i < len; i++) { // every flipped byte is noticed
        bytes[i] ^= 0x10;
        assert_int_equal(producer_states_decode(q, slice_of(bytes, len), NULL), ERR_CORRUPT);
        assert_int_equal(producer_states_count(q), 0);
        bytes[i] ^= 0x10;
    }
    for (size_t n = 0; n < len; n++) // and every cut
        assert_int_equal(producer_states_decode(q, slice_of(bytes, n), NULL), ERR_CORRUPT);
    mem_free(bytes);
    producer_states_free(p);
    producer_states_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_producer_may_begin_anywhere),
        cmocka_unit_test(the_next_sequence_follows_the_last),
        cmocka_unit_test(each_of_the_last_five_batches_is_a_duplicate_with_its_own_offset),
        cmocka_unit_test(sequences_wrap_from_the_largest_int_to_0),
        cmocka_unit_test(a_new_epoch_begins_at_0_and_an_old_one_is_fenced),
        cmocka_unit_test(silent_producers_expire_but_not_inside_a_transaction),
        cmocka_unit_test(
            the_oldest_open_transaction_is_unstable_until_its_marker_is_below_the_high_watermark),
        cmocka_unit_test(a_marker_with_a_higher_epoch_forgets_the_sequences),
        cmocka_unit_test(a_snapshot_keeps_the_last_batch_and_the_open_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
