// SPDX-License-Identifier: Apache-2.0
// Random runs of the quorum: crashes, lost unsynced data, cuts, slow disks, transfers, membership changes, by
// seed.
//
// Usage: test_raft_random [MODE [FIRST [COUNT]]]    MODE: static3 dynamic3 static5 members heavy disks all
// A failing seed prints itself; run it again with KRAFT_TEST_LOUD=1.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/raft/cluster.h"

struct mode {
    const char *name;
    unsigned voters, servers;
    bool dynamic;
    unsigned change_weight; // of membership changes among the faults
    bool bad_disks;         // writes fail, disks fill up
};
static const struct mode modes[] = {
    {"static3", 3, 3, false, 0, false}, {"dynamic3", 3, 3, true, 0, false},
    {"static5", 5, 5, false, 0, false}, {"members", 3, 5, true, 4, false},
    {"heavy", 3, 5, true, 40, false},   {"disks", 3, 4, true, 2, true},
};
static const char *chosen = "all";
static uint64_t first_seed = 1;
static uint64_t seed_count = 6;

struct run {
    struct cluster *c;
    const struct mode *m;
    unsigned voters_wanted[CLUSTER_MAX]; // members mode: who should be asked for
};

static unsigned up_count(const struct cluster *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->count; i++)
        n += world_host_node(c->servers[i].host) != NULL;
    return n;
}

static void transfer_inside(void *data)
{
    (void)quorum_transfer_leadership(data, -1);
}

static void bad_disk(struct cluster *c, unsigned i)
{
    static const enum vfs_call kinds[] = {VFS_CALL_WRITE, VFS_CALL_SYNC, VFS_CALL_SYNC_DIR, VFS_CALL_RENAME,
                                          VFS_CALL_CREATE};
    struct vfs_faulty *disk = world_host_disk(c->servers[i].host);
    uint64_t what = world_between(c->w, 0, 9);
    if (what < 4)
        vfs_faulty_fail(disk, kinds[world_between(c->w, 0, 4)], world_between(c->w, 1, 20), ERR_IO, true,
                        true);
    else if (what < 7)
        vfs_faulty_set_capacity(disk, vfs_faulty_used(disk) + world_between(c->w, 0, 200000));
    else
        vfs_faulty_set_capacity(disk, 0);
}

static void restart(struct cluster *c, unsigned i)
{
    struct vfs_faulty *disk = world_host_disk(c->servers[i].host);
    vfs_faulty_heal(disk);
    vfs_faulty_set_capacity(disk, 0);
    cluster_start(c, i);
    if (c->servers[i].create_err)
        fail_msg("server %u does not start: %s", i, c->servers[i].why.text);
}

static void fault(struct run *r)
{
    struct cluster *c = r->c;
    struct world *w = c->w;
    unsigned i = (unsigned)world_between(w, 0, c->count - 1), k = (unsigned)world_between(w, 0, c->count - 1);
    uint64_t what = world_between(w, 0, 59 + r->m->change_weight);
    bool up = world_host_node(c->servers[i].host) != NULL;
    if (r->m->bad_disks && world_between(w, 0, 3) == 0)
        bad_disk(c, k);
    if (what < 8) {
        if (up)
            cluster_crash(c, i, what < 4);
        else
            restart(c, i);
    } else if (what < 22) {
        if (!up)
            restart(c, i);
    } else if (what < 26) {
        if (i != k)
            world_cut(w, c->servers[i].host, c->servers[k].host, true);
    } else if (what < 29) {
        world_cut_all(w, c->servers[i].host, true);
    } else if (what < 37) {
        world_heal(w);
    } else if (what < 40) {
        world_host_set_disk_us(c->servers[i].host, 200000, 1200000);
    } else if (what < 43) {
        int leader = cluster_active(c);
        if (leader >= 0)
            (void)world_call(world_host_node(c->servers[leader].host), transfer_inside, c->servers[leader].q);
    } else if (what >= 60) {
        if (what % 2)
            cluster_add(c, i);
        else
            cluster_remove(c, i);
    }
}

static void one_run(const struct mode *m, uint64_t seed)
{
    struct cluster_opts o = {.voters = m->voters, .servers = m->servers, .dynamic = m->dynamic};
    uint64_t s = seed * 0x9e3779b97f4a7c15u;
    o.snapshot_bytes = s % 8 == 0 ? 0 : (uint32_t)(300 + s % 5000);
    o.trailing_bytes = s % 6 == 5 ? 0 : (uint32_t)(1 + s % 1500);
    o.append_bytes = s % 3 == 1 ? 0 : (uint32_t)(1 + s % 700);
    o.fetch_bytes = s % 2 ? 200 : 0;
    o.segment_bytes = s % 5 < 2 ? 2000 : 0;
    o.retention_bytes = s % 7 < 4 ? 5000 : 0;
    o.election_ms = s % 4 == 0 ? 300 : 0;
    struct run r = {cluster_new(seed, &o), m, {0}};
    struct cluster *c = r.c;
    c->stops_allowed = m->bad_disks;
    printf("%s seed %llu\n", m->name, (unsigned long long)seed);
    (void)fflush(stdout);
    for (unsigned i = 0; i < c->count; i++)
        restart(c, i);
    uint64_t length = world_between(c->w, 15000, 30000), pace = world_between(c->w, 5, 120);
    mono_us end = world_now(c->w) + length * 1000;
    while (world_now(c->w) < end) {
        cluster_run(c, world_between(c->w, 1, pace));
        unsigned n = (unsigned)world_between(c->w, 0, 3);
        for (unsigned i = 0; i < n; i++)
            (void)cluster_propose(c);
        if (world_between(c->w, 0, 4) == 0)
            fault(&r);
    }
    world_heal(c->w);
    for (unsigned i = 0; i < c->count; i++) {
        vfs_faulty_heal(world_host_disk(c->servers[i].host));
        vfs_faulty_set_capacity(world_host_disk(c->servers[i].host), 0);
        if (!world_host_node(c->servers[i].host))
            restart(c, i);
    }
    assert_int_equal(up_count(c), c->count);
    cluster_settle(c, 60000);
    printf("  acked %zu unknown %u refused %u changes %u term %d\n", c->acked_count, c->unknown, c->failed,
           c->changes_done, (int)c->servers[cluster_active(c)].term);
    cluster_free(c);
}

static void random_runs_keep_every_promise(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
            if (strcmp(chosen, "all") == 0 || strcmp(chosen, modes[i].name) == 0)
                one_run(&modes[i], seed);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_runs_keep_every_promise)};
    if (argc > 1)
        chosen = argv[1];
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        seed_count = strtoull(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
