// SPDX-License-Identifier: Apache-2.0
// Incremental fetch sessions: life, epochs, contents, eviction.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/protocol/gen/errors.h"
#include "core/server/fetch_session.h"

#define VERSION 13
#define SECOND_US 1000000ull

// A fetch of partitions 0..count-1 of one topic.
struct asked {
    struct kp_fetch_request in;
    struct kp_fetch_request_fetch_topic topic;
    struct kp_fetch_request_fetch_partition parts[8];
};

static void ask(struct asked *a, int32_t session, int32_t epoch, int32_t count)
{
    kp_fetch_request_init(&a->in);
    kp_fetch_request_fetch_topic_init(&a->topic);
    a->in.session_id = session;
    a->in.session_epoch = epoch;
    a->in.topics = &a->topic;
    a->in.topics_count = count > 0;
    a->topic.topic_id.b[0] = 7;
    a->topic.partitions = a->parts;
    a->topic.partitions_count = count;
    for (int32_t i = 0; i < count; i++) {
        kp_fetch_request_fetch_partition_init(&a->parts[i]);
        a->parts[i].partition = i;
        a->parts[i].fetch_offset = 100 + i;
    }
}

static int16_t begin(struct fetch_sessions *c, struct asked *a, mono_us now, struct fetch_session **s,
                     bool *incremental)
{
    return fetch_session_begin(c, &a->in, VERSION, false, now, 4711, s, incremental);
}

// A new session with `count` partitions, idle again.
static int32_t new_session(struct fetch_sessions *c, int32_t count, mono_us now)
{
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, 0, FETCH_SESSION_FIRST_EPOCH, count);
    assert_int_equal(begin(c, &a, now, &s, &incremental), KE_NONE);
    assert_false(incremental);
    int32_t id = s->id;
    fetch_session_end(c, s, now);
    return id;
}

static void a_full_fetch_gets_a_session_and_the_next_is_incremental(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    int32_t id = new_session(c, 3, 0);
    assert_int_not_equal(id, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, id, 1, 0);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_NONE);
    assert_true(incremental);
    assert_int_equal(hmap_count(&s->by_key), 3);
    assert_int_equal(s->epoch, 2);
    fetch_session_end(c, s, 0);
    fetch_sessions_destroy(c);
}

static void the_final_epoch_makes_no_session(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, 0, FETCH_SESSION_FINAL_EPOCH, 2);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_NONE);
    assert_int_equal(s->id, 0);
    fetch_session_end(c, s, 0);
    assert_int_equal(fetch_sessions_count(c), 0);
    fetch_sessions_destroy(c);
}

static void the_final_epoch_with_an_id_closes_that_session(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    int32_t id = new_session(c, 1, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, id, FETCH_SESSION_FINAL_EPOCH, 1);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_NONE);
    fetch_session_end(c, s, 0);
    assert_int_equal(fetch_sessions_count(c), 0);
    fetch_sessions_destroy(c);
}

static void a_wrong_epoch_and_an_unknown_id_are_told_apart(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    int32_t id = new_session(c, 1, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, id, 5, 0);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_INVALID_FETCH_SESSION_EPOCH);
    ask(&a, id + 1, 1, 0);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_FETCH_SESSION_ID_NOT_FOUND);
    fetch_sessions_destroy(c);
}

static void a_session_by_ids_is_not_asked_by_names(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    int32_t id = new_session(c, 1, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, id, 1, 0);
    assert_int_equal(fetch_session_begin(c, &a.in, 12, false, 0, 1, &s, &incremental),
                     KE_FETCH_SESSION_TOPIC_ID_ERROR);
    fetch_sessions_destroy(c);
}

static void incremental_fetches_update_add_and_forget(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(10);
    int32_t id = new_session(c, 2, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, id, 1, 3);
    a.parts[0].fetch_offset = 555;
    struct kp_fetch_request_forgotten_topic gone;
    int32_t gone_parts[] = {1};
    kp_fetch_request_forgotten_topic_init(&gone);
    gone.topic_id = a.topic.topic_id;
    gone.partitions = gone_parts;
    gone.partitions_count = 1;
    a.in.forgotten_topics_data = &gone;
    a.in.forgotten_topics_data_count = 1;
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_NONE);
    assert_int_equal(hmap_count(&s->by_key), 2);
    struct fetch_item *first = LIST_ENTRY(list_first(&s->items), struct fetch_item, link);
    struct fetch_item *last = LIST_ENTRY(list_last(&s->items), struct fetch_item, link);
    assert_int_equal(first->offset, 555);
    assert_int_equal(last->index, 2);
    fetch_session_end(c, s, 0);
    fetch_sessions_destroy(c);
}

static void an_idle_session_gives_way(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(1);
    int32_t first = new_session(c, 5, 0);
    assert_int_equal(new_session(c, 2, SECOND_US), 0); // neither idle long enough nor smaller
    int32_t second = new_session(c, 2, FETCH_SESSION_IDLE_US);
    assert_int_not_equal(second, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, first, 1, 0);
    if (first != second) {
        assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_FETCH_SESSION_ID_NOT_FOUND);
    }
    fetch_sessions_destroy(c);
}

static void a_smaller_session_gives_way_to_a_larger_one(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(1);
    (void)new_session(c, 1, 0);
    assert_int_not_equal(new_session(c, 2, SECOND_US), 0);
    assert_int_equal(fetch_sessions_count(c), 1);
    fetch_sessions_destroy(c);
}

static void a_followers_session_takes_the_place_of_a_consumers(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(1);
    (void)new_session(c, 5, 0);
    struct asked a;
    struct fetch_session *s;
    bool incremental;
    ask(&a, 0, FETCH_SESSION_FIRST_EPOCH, 1);
    assert_int_equal(fetch_session_begin(c, &a.in, VERSION, true, SECOND_US, 9, &s, &incremental), KE_NONE);
    assert_int_not_equal(s->id, 0);
    fetch_session_end(c, s, SECOND_US);
    fetch_sessions_destroy(c);
}

static void a_session_in_use_is_not_shared_and_survives_its_eviction(void **unused)
{
    (void)unused;
    struct fetch_sessions *c = fetch_sessions_create(1);
    int32_t id = new_session(c, 1, 0);
    struct asked a;
    struct fetch_session *s;
    struct fetch_session *other;
    bool incremental;
    ask(&a, id, 1, 0);
    assert_int_equal(begin(c, &a, 0, &s, &incremental), KE_NONE);
    ask(&a, id, 2, 0);
    assert_int_equal(begin(c, &a, 0, &other, &incremental), KE_INVALID_FETCH_SESSION_EPOCH);
    assert_int_not_equal(new_session(c, 4, SECOND_US), 0); // evicts it
    assert_int_equal(hmap_count(&s->by_key), 1);
    fetch_session_end(c, s, SECOND_US);
    fetch_sessions_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_fetch_gets_a_session_and_the_next_is_incremental),
        cmocka_unit_test(the_final_epoch_makes_no_session),
        cmocka_unit_test(the_final_epoch_with_an_id_closes_that_session),
        cmocka_unit_test(a_wrong_epoch_and_an_unknown_id_are_told_apart),
        cmocka_unit_test(a_session_by_ids_is_not_asked_by_names),
        cmocka_unit_test(incremental_fetches_update_add_and_forget),
        cmocka_unit_test(an_idle_session_gives_way),
        cmocka_unit_test(a_smaller_session_gives_way_to_a_larger_one),
        cmocka_unit_test(a_followers_session_takes_the_place_of_a_consumers),
        cmocka_unit_test(a_session_in_use_is_not_shared_and_survives_its_eviction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
