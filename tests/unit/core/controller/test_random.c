// SPDX-License-Identifier: Apache-2.0
// Random clusters: whatever happens, every record of the decider replays, and what it decides keeps the rules
// of leadership.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/hmap.h"
#include "core/protocol/gen/create_partitions_request.h"
#include "core/protocol/gen/create_partitions_response.h"
#include "core/protocol/gen/delete_topics_request.h"
#include "core/protocol/gen/delete_topics_response.h"
#include "core/protocol/gen/elect_leaders_request.h"
#include "core/protocol/gen/elect_leaders_response.h"
#include "core/protocol/gen/unregister_broker_request.h"
#include "core/protocol/gen/unregister_broker_response.h"
#include "tests/unit/core/controller/cluster.h"

#define BROKERS 5
#define TOPICS 6
#define STEPS 2500

struct epochs {
    leader_epoch leader; // last seen
    int32_t partition;   // last seen
};

static uint64_t pick(struct cluster *k, uint64_t below)
{
    return cluster_random(k) % below;
}

static const char *topic_at(struct cluster *k)
{
    return arena_printf(&k->arena, "t%llu", (unsigned long long)pick(k, TOPICS));
}

static void check_partition(struct cluster *k, const struct image_topic *t, partition_id i, struct hmap *seen)
{
    const struct image_partition *p = topic_partition(t, i);
    bool elr = image_feature_level(k->img, SLICE_LIT("eligible.leader.replicas.version")) > 0;
    assert_true(elr || p->isr_count > 0);
    for (int n = 0; n < p->isr_count; n++) {
        broker_id id = partition_isr(p)[n];
        assert_true(partition_has_replica(p, id));
        // A member that cannot lead is kept only as the last one of a partition that waits for it.
        if (!image_broker_active(image_broker(k->img, id)))
            assert_true(p->isr_count == 1 && p->leader == LEADER_NONE);
    }
    for (int n = 0; n < p->elr_count; n++)
        assert_false(partition_in_isr(p, partition_elr(p)[n]));
    if (p->leader != LEADER_NONE) {
        assert_true(partition_in_isr(p, p->leader));
        assert_true(image_broker_active(image_broker(k->img, p->leader)));
    }
    struct uuid id = topic_id(t);
    uint64_t key;
    memcpy(&key, id.b, sizeof key);
    struct epochs *e = hmap_get_u64(seen, key ^ (uint64_t)i);
    if (!e) {
        e = arena_zalloc(&k->arena, sizeof *e);
        (void)hmap_put_u64(seen, key ^ (uint64_t)i, e);
    }
    assert_true(p->epoch >= e->leader && p->partition_epoch >= e->partition);
    *e = (struct epochs){p->epoch, p->partition_epoch};
}

static void check(struct cluster *k, struct hmap *seen)
{
    for (const struct image_topic *t = NULL; (t = image_topic_next(k->img, t)) != NULL;)
        for (partition_id i = 0; i < topic_partition_count(t); i++)
            check_partition(k, t, i, seen);
}

static void beat(struct cluster *k, broker_id id)
{
    if (image_broker(k->img, id))
        (void)cluster_beat(k, id, pick(k, 10) == 0, pick(k, 10) == 0);
}

static void propose_isr(struct cluster *k)
{
    const char *name = topic_at(k);
    const struct image_partition *p = cluster_part(k, name, 0);
    if (!p || p->leader == LEADER_NONE)
        return;
    int32_t isr[BROKERS], count = 0;
    for (int n = 0; n < p->replicas_count; n++)
        if (partition_replicas(p)[n] == p->leader || pick(k, 3))
            isr[count++] = partition_replicas(p)[n];
    (void)cluster_alter(k, cluster_proposal(k, name, isr, count));
}

static void delete_topic(struct cluster *k)
{
    struct slice name = slice_str(topic_at(k));
    struct kp_delete_topics_request in = {.topic_names = &name, .topic_names_count = 1};
    struct kp_delete_topics_response out;
    controller_delete_topics(cluster_op(k), &in, 5, &out, &k->records);
    cluster_commit(k);
}

static void add_partitions(struct cluster *k)
{
    struct kp_create_partitions_request_create_partitions_topic topic = {
        .name = slice_str(topic_at(k)), .count = (int32_t)pick(k, 30), .assignments_count = -1};
    struct kp_create_partitions_request in = {.topics = &topic, .topics_count = 1};
    struct kp_create_partitions_response out;
    controller_create_partitions(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
}

static void elect_all(struct cluster *k)
{
    struct kp_elect_leaders_request in = {.topic_partitions_count = -1};
    struct kp_elect_leaders_response out;
    controller_elect_leaders(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
}

static void unregister(struct cluster *k, broker_id id)
{
    struct kp_unregister_broker_request in = {.broker_id = id};
    struct kp_unregister_broker_response out;
    controller_unregister_broker(cluster_op(k), &in, &out, &k->records);
    cluster_commit(k);
}

static void step(struct cluster *k)
{
    broker_id id = 1 + (broker_id)pick(k, BROKERS);
    k->c.now += pick(k, 1000) * 1000;
    switch (pick(k, 16)) {
    case 0: {
        struct kp_broker_registration_request *in =
            cluster_registration(k, id, 1 + pick(k, 1000), pick(k, 2) ? "r" : NULL);
        const struct image_broker *b = image_broker(k->img, id);
        in->previous_broker_epoch = b && pick(k, 2) ? b->epoch : -1;
        (void)cluster_register(k, in);
        break;
    }
    case 1:
        if (image_broker(k->img, id) && pick(k, 3) == 0)
            cluster_gone(k, id);
        break;
    case 2:
        controller_expire_sessions(cluster_op(k), &k->records);
        cluster_commit(k);
        break;
    case 3:
    case 4:
        (void)cluster_create(k, topic_at(k), 1 + (int32_t)pick(k, 12), (int16_t)(1 + pick(k, 4)));
        break;
    case 5:
        delete_topic(k);
        break;
    case 6:
        add_partitions(k);
        break;
    case 7:
        elect_all(k);
        break;
    case 8:
        (void)controller_balance_leaders(cluster_op(k), &k->records);
        cluster_commit(k);
        break;
    case 9:
        (void)controller_elect_unclean(cluster_op(k), &k->records);
        cluster_commit(k);
        break;
    case 10:
        if (pick(k, 20) == 0)
            unregister(k, id);
        break;
    case 11:
    case 12:
        propose_isr(k);
        break;
    default:
        for (broker_id b = 1; b <= BROKERS; b++)
            beat(k, b);
    }
}

static void run(uint64_t seed, bool elr, bool unclean)
{
    struct cluster k;
    struct hmap seen;
    cluster_init(&k);
    hmap_init(&seen, HMAP_U64);
    k.seed = seed;
    k.opts.unclean_election = unclean;
    if (elr) {
        cluster_feature(&k, "eligible.leader.replicas.version", 1);
        cluster_set_config(&k, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", "2");
    }
    for (int i = 0; i < STEPS; i++) {
        step(&k);
        check(&k, &seen);
    }
    struct errmsg msg;
    struct image *copy = history_through_snapshot(k.img, &msg);
    assert_non_null(copy);
    struct image_hash x = image_hash_of(copy), y = image_hash_of(k.img);
    assert_true(x.low == y.low && x.high == y.high);
    image_unref(copy);
    hmap_fini(&seen);
    cluster_fini(&k);
}

static void leaders_are_in_sync_and_alive_and_epochs_never_fall(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        run(seed, false, false);
}

static void the_same_with_eligible_leader_replicas(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 108; seed++)
        run(seed, true, false);
}

static void the_same_with_unclean_elections(void **state)
{
    (void)state;
    for (uint64_t seed = 200; seed < 208; seed++)
        run(seed, seed % 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaders_are_in_sync_and_alive_and_epochs_never_fall),
        cmocka_unit_test(the_same_with_eligible_leader_replicas),
        cmocka_unit_test(the_same_with_unclean_elections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
