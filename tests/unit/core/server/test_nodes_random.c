// SPDX-License-Identifier: Apache-2.0
// Whole nodes under faults drawn from a seed: what was answered stays, images end equal, nobody stops itself.
//
// Each seed runs three controllers, most of them combined with a broker, and two brokers through a few dozen
// steps: topics are made through any node, processes and machines die and come back, links are cut, nodes are
// stopped in order. A failing seed prints itself; KRAFT_SEED runs that one alone, KRAFT_SEEDS as many as it
// says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/protocol/gen/errors.h"
#include "tests/unit/core/server/node_fixture.h"

#define STEPS 150        // of a seed
#define TOPICS_MAX 128   // made in one
#define SEEDS_DEFAULT 60 // of a quick run

struct run {
    struct nodes n;             // the cluster
    char names[TOPICS_MAX][16]; // of topics that were answered with success
    unsigned names_count;       // of them
    unsigned attempts;          // topics asked for
    bool down[NODES_MAX];       // was crashed
};

static void create(struct run *r)
{
    unsigned i = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    if (r->down[i] || r->attempts == TOPICS_MAX)
        return;
    char name[16];
    (void)snprintf(name, sizeof name, "t%u", r->attempts++);
    int32_t partitions = (int32_t)world_between(r->n.world, 1, 4);
    if (nodes_create_topic(&r->n, &r->n.node[i], name, partitions, 4000) == KE_NONE)
        memcpy(r->names[r->names_count++], name, sizeof name);
}

static void crash(struct run *r)
{
    unsigned i = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    if (r->down[i])
        return;
    node_crash(&r->n.node[i], world_between(r->n.world, 0, 1));
    r->down[i] = true;
}

static void restart(struct run *r)
{
    unsigned i = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    if (!r->down[i])
        return;
    node_start(&r->n.node[i]);
    r->down[i] = false;
}

static void end(struct run *r)
{
    unsigned i = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    if (r->down[i])
        return;
    node_end(&r->n.node[i]);
    r->down[i] = true;
}

static void cut(struct run *r)
{
    unsigned i = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    unsigned k = (unsigned)world_between(r->n.world, 0, r->n.count - 1);
    if (i != k)
        world_cut(r->n.world, r->n.node[i].host, r->n.node[k].host, true);
}

static void step(struct run *r)
{
    switch (world_between(r->n.world, 0, 11)) {
    case 0:
    case 1:
    case 2:
    case 3:
        create(r);
        break;
    case 4:
        crash(r);
        break;
    case 5:
    case 6:
    case 7:
        restart(r);
        break;
    case 8:
        cut(r);
        break;
    case 9:
        world_heal(r->n.world);
        break;
    case 10:
        end(r);
        break;
    default:
        world_run(r->n.world, world_between(r->n.world, 1, 3000));
        break;
    }
}

static bool all_at_one_offset(void *data)
{
    struct nodes *n = data;
    for (unsigned i = 0; i < n->count; i++)
        if (node_offset(&n->node[i]) != node_offset(&n->node[0]))
            return false;
    return true;
}

static void settle_and_check(struct run *r)
{
    world_heal(r->n.world);
    for (unsigned i = 0; i < r->n.count; i++)
        if (r->down[i])
            node_start(&r->n.node[i]);
    if (!nodes_wait_active(&r->n, 60000))
        fail_msg("no active controller");
    if (!nodes_wait_running(&r->n, 60000))
        fail_msg("a broker does not come back");
    assert_true(world_run_until(r->n.world, 60000, all_at_one_offset, &r->n));
    struct image_hash first = node_hash(&r->n.node[0]);
    for (unsigned i = 0; i < r->n.count; i++) {
        struct image_hash h = node_hash(&r->n.node[i]);
        if (h.low != first.low || h.high != first.high)
            fail_msg("node %d has another image", r->n.node[i].id);
        for (unsigned k = 0; k < r->names_count; k++)
            if (!node_has_topic(&r->n.node[i], r->names[k]))
                fail_msg("node %d lost topic %s", r->n.node[i].id, r->names[k]);
    }
}

static void run_seed(uint64_t seed)
{
    struct run *r = calloc(1, sizeof *r);
    // Snapshots come often, so that nodes that were away have to load one.
    nodes_init(&r->n, seed, 3, 2, seed % 3 != 0,
               seed % 2
                   ? "metadata.log.max.record.bytes.between.snapshots=3000\nmetadata.max.retention.ms=1000"
                   : NULL);
    nodes_start_all(&r->n);
    for (int i = 0; i < STEPS; i++)
        step(r);
    settle_and_check(r);
    fprintf(stderr, "seed %llu: %u of %u topics answered, %.1f s of the world\n", (unsigned long long)seed,
            r->names_count, r->attempts, (double)world_now(r->n.world) / 1e6);
    nodes_free(&r->n);
    free(r);
}

static void nothing_that_was_answered_is_lost(void **state)
{
    const char *one = getenv("KRAFT_SEED"), *many = getenv("KRAFT_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one    ? 1
                                                                : many ? strtoull(many, NULL, 10)
                                                                       : SEEDS_DEFAULT;
    for (uint64_t seed = first; seed < first + count; seed++) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_that_was_answered_is_lost)};
    return cmocka_run_group_tests_name("nodes_random", tests, NULL, NULL);
}
