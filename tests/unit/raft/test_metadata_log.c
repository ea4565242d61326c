// SPDX-License-Identifier: Apache-2.0
// The metadata log on disk: torn tails, damage below the mark, lost sidecars, snapshots that do not fit, and
// quorum-state.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "raft/quorum_impl.h"
#include "tests/unit/raft/cluster.h"

#define LOG "data/__cluster_metadata-0/00000000000000000000.log"
#define SIDECAR "data/__cluster_metadata-0/00000000000000000000.raftindex"
#define STATE "data/__cluster_metadata-0/quorum-state"

// One voter with a short log, down.
static struct cluster *one_with_log(uint64_t seed, uint32_t snapshot_bytes, unsigned commits)
{
    struct cluster *c = cluster_new(
        seed, &(struct cluster_opts){.voters = 1, .dynamic = true, .snapshot_bytes = snapshot_bytes});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    assert_true(cluster_commit(c, commits, 1000));
    cluster_run(c, 3000);
    cluster_stop(c, 0);
    return c;
}

static struct vfs_faulty *disk_of(struct cluster *c)
{
    return world_host_disk(c->servers[0].host);
}

static void append_bytes(struct cluster *c, const char *path, const void *data, size_t size)
{
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    struct vfs_file *f;
    uint64_t end;
    assert_int_equal(fs->ops->open(fs, path, VFS_WRITE, &f, NULL), 0);
    assert_int_equal(fs->ops->size(f, &end), 0);
    struct iovec iov = {(void *)(uintptr_t)data, size};
    assert_int_equal(fs->ops->pwritev(f, &iov, 1, end), 0);
    assert_int_equal(fs->ops->sync(f), 0);
    vfs_file_unref(f);
}

static void write_whole(struct cluster *c, const char *path, const char *text)
{
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    struct vfs_file *f;
    assert_int_equal(fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &f, NULL), 0);
    struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
    assert_int_equal(fs->ops->pwritev(f, &iov, 1, 0), 0);
    assert_int_equal(fs->ops->sync(f), 0);
    vfs_file_unref(f);
}

static void starts_with_everything(struct cluster *c)
{
    cluster_start(c, 0);
    if (c->servers[0].create_err)
        fail_msg("%s", c->servers[0].why.text);
    assert_true(cluster_wait_active(c, 5000));
    cluster_check_acked(c, 0);
    assert_true(cluster_commit(c, 5, 1000));
    cluster_free(c);
}

static void refuses(struct cluster *c, int err, const char *words)
{
    cluster_start(c, 0);
    assert_int_equal(c->servers[0].create_err, err);
    if (!strstr(c->servers[0].why.text, words))
        fail_msg("\"%s\" is not in: %s", words, c->servers[0].why.text);
    cluster_free(c);
}

static void bytes_behind_the_mark_are_cut_and_kept_aside(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(201, 0, 10);
    append_bytes(c, LOG, "half a batch that was never synced", 34);
    starts_with_everything(c);
}

static void the_torn_part_is_kept_beside_the_log(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(202, 0, 10);
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    struct vfs_stat st;
    char name[128];
    assert_int_equal(fs->ops->stat(fs, LOG, &st), 0);
    append_bytes(c, LOG, "torn", 4);
    cluster_start(c, 0);
    assert_int_equal(c->servers[0].create_err, 0);
    (void)snprintf(name, sizeof name, LOG ".at-%llu.torn", (unsigned long long)st.size);
    assert_true(vfs_faulty_exists(disk_of(c), name));
    cluster_free(c);
}

static void damage_below_the_mark_is_refused_with_file_and_position(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(203, 0, 10);
    assert_int_equal(vfs_faulty_corrupt(disk_of(c), LOG, 500, 0x40), 0);
    refuses(c, ERR_CORRUPT, "00000000000000000000.log is damaged at position");
}

static void a_log_that_lost_its_synced_tail_is_refused(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(204, 0, 10);
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    struct vfs_file *f;
    uint64_t size;
    assert_int_equal(fs->ops->open(fs, LOG, VFS_WRITE, &f, NULL), 0);
    assert_int_equal(fs->ops->size(f, &size), 0);
    assert_int_equal(fs->ops->truncate(f, size - 100), 0);
    vfs_file_unref(f);
    refuses(c, ERR_CORRUPT, "format a fresh directory");
}

static void a_log_that_is_gone_is_refused(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(205, 0, 10);
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    assert_int_equal(fs->ops->unlink(fs, LOG), 0);
    refuses(c, ERR_CORRUPT, "no segment is there");
}

static void a_lost_sidecar_is_counted_again(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(206, 2000, 30);
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    assert_int_equal(fs->ops->unlink(fs, SIDECAR), 0);
    starts_with_everything(c);
}

static void a_damaged_sidecar_is_counted_again(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(207, 0, 10);
    assert_int_equal(vfs_faulty_corrupt(disk_of(c), SIDECAR, 20, 0xff), 0);
    starts_with_everything(c);
}

static int newest_name(void *data, const char *name, bool is_dir)
{
    char *best = data;
    log_offset end;
    leader_epoch epoch;
    if (!is_dir && checkpoint_parse_name(name, &end, &epoch) && strcmp(name, best) > 0)
        (void)snprintf(best, 64, "%s", name);
    return 0;
}

static void newest_snapshot(struct cluster *c, char *path, size_t size)
{
    char best[64] = "";
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    assert_int_equal(fs->ops->list(fs, "data/__cluster_metadata-0", newest_name, best), 0);
    assert_true(strncmp(best, "00000000000000000000", 20) != 0);
    (void)snprintf(path, size, "data/__cluster_metadata-0/%s", best);
}

// The log reaches further back than the snapshot before: nothing is lost.
static void a_damaged_snapshot_is_set_aside_and_an_older_one_is_used(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(208, 1500, 60);
    char path[160];
    newest_snapshot(c, path, sizeof path);
    assert_int_equal(vfs_faulty_corrupt(disk_of(c), path, 700, 1), 0);
    cluster_start(c, 0);
    assert_int_equal(c->servers[0].create_err, 0);
    (void)strncat(path, ".damaged", sizeof path - strlen(path) - 1);
    assert_true(vfs_faulty_exists(disk_of(c), path));
    assert_true(cluster_wait_active(c, 5000));
    cluster_check_acked(c, 0);
    cluster_free(c);
}

static void a_snapshot_without_its_footer_is_damaged(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(209, 1500, 60);
    char path[160];
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    struct vfs_file *f;
    uint64_t size;
    newest_snapshot(c, path, sizeof path);
    assert_int_equal(fs->ops->open(fs, path, VFS_WRITE, &f, NULL), 0);
    assert_int_equal(fs->ops->size(f, &size), 0);
    assert_int_equal(fs->ops->truncate(f, size - 75), 0);
    vfs_file_unref(f);
    starts_with_everything(c);
}

// A log whose start is above every snapshot covers nothing: it is refused, with the names.
static void a_log_that_no_snapshot_reaches_is_refused(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(210, &(struct cluster_opts){.voters = 1,
                                                                .dynamic = true,
                                                                .snapshot_bytes = 2000,
                                                                .segment_bytes = 1000,
                                                                .retention_bytes = 1});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 5000));
    for (int i = 0; i < 4; i++) {
        assert_true(cluster_commit(c, 30, 1000));
        cluster_run(c, 1000);
    }
    assert_true(quorum_log_start(c->servers[0].q) > 0);
    cluster_stop(c, 0);
    char path[160];
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    for (int i = 0; i < 2; i++) { // two are always kept
        newest_snapshot(c, path, sizeof path);
        assert_int_equal(fs->ops->unlink(fs, path), 0);
    }
    refuses(c, ERR_CORRUPT, "no snapshot reaches it");
}

// ---- quorum-state
// ----------------------------------------------------------------------------------------------
static void an_unknown_version_of_quorum_state_is_no_fresh_node(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(211, 0, 5);
    write_whole(c, STATE, "{\"leaderId\":-1,\"leaderEpoch\":3,\"votedId\":0,\"data_version\":2}");
    refuses(c, ERR_UNSUPPORTED, "data_version 2");
}

static void a_damaged_quorum_state_is_no_fresh_node(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(212, 0, 5);
    write_whole(c, STATE, "{\"leaderId\":-1,");
    refuses(c, ERR_CORRUPT, "quorum-state");
}

static void a_missing_quorum_state_beside_a_log_is_refused(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(213, 0, 5);
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    assert_int_equal(fs->ops->unlink(fs, STATE), 0);
    refuses(c, ERR_CORRUPT, "has forgotten its vote");
}

static void the_quorum_state_of_a_static_quorum_is_not_taken_for_a_dynamic_one(void **state)
{
    (void)state;
    struct cluster *c = one_with_log(214, 0, 5);
    write_whole(c, STATE,
                "{\"clusterId\":\"x\",\"leaderId\":-1,\"leaderEpoch\":3,\"votedId\":0,\"appliedOffset\":0,"
                "\"currentVoters\":[{\"voterId\":0}],\"data_version\":0}");
    refuses(c, ERR_INVALID, "static quorum");
}

static void an_unformatted_directory_is_refused_in_a_dynamic_quorum(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(215, &(struct cluster_opts){.voters = 1, .dynamic = true});
    struct vfs *fs = vfs_faulty_fs(disk_of(c));
    assert_int_equal(fs->ops->mkdir(fs, "data"), 0);
    c->servers[0].formatted = true; // as if
    refuses(c, ERR_NOTFOUND, "kraft-format");
}

// ---- identity of a static quorum
// -------------------------------------------------------------------------------
static void a_wiped_voter_of_a_static_quorum_is_refused_until_it_says_so(void **state)
{
    (void)state;
    struct cluster *c = cluster_new(216, &(struct cluster_opts){.voters = 3});
    cluster_start_all(c);
    assert_true(cluster_wait_active(c, 10000));
    assert_true(cluster_commit(c, 5, 1000));
    cluster_run(c, 1000);
    unsigned wiped = (unsigned)(cluster_active(c) + 1) % 3;
    cluster_crash(c, wiped, false);
    struct vfs *fs = vfs_faulty_fs(world_host_disk(c->servers[wiped].host));
    assert_int_equal(fs->ops->rename(fs, "data", "old"), 0);
    c->servers[wiped].formatted = false;
    c->servers[wiped].directory.b[0] ^= 0x55;
    c->servers[wiped].term = 0;
    cluster_start(c, wiped);
    world_run(c->w, 3000);
    const char *why = world_host_stopped(c->servers[wiped].host);
    assert_non_null(why);
    assert_non_null(strstr(why, "is on record"));
    cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_behind_the_mark_are_cut_and_kept_aside),
        cmocka_unit_test(the_torn_part_is_kept_beside_the_log),
        cmocka_unit_test(damage_below_the_mark_is_refused_with_file_and_position),
        cmocka_unit_test(a_log_that_lost_its_synced_tail_is_refused),
        cmocka_unit_test(a_log_that_is_gone_is_refused),
        cmocka_unit_test(a_lost_sidecar_is_counted_again),
        cmocka_unit_test(a_damaged_sidecar_is_counted_again),
        cmocka_unit_test(a_damaged_snapshot_is_set_aside_and_an_older_one_is_used),
        cmocka_unit_test(a_snapshot_without_its_footer_is_damaged),
        cmocka_unit_test(a_log_that_no_snapshot_reaches_is_refused),
        cmocka_unit_test(an_unknown_version_of_quorum_state_is_no_fresh_node),
        cmocka_unit_test(a_damaged_quorum_state_is_no_fresh_node),
        cmocka_unit_test(a_missing_quorum_state_beside_a_log_is_refused),
        cmocka_unit_test(the_quorum_state_of_a_static_quorum_is_not_taken_for_a_dynamic_one),
        cmocka_unit_test(an_unformatted_directory_is_refused_in_a_dynamic_quorum),
        cmocka_unit_test(a_wiped_voter_of_a_static_quorum_is_refused_until_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
