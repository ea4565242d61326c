// SPDX-License-Identifier: Apache-2.0
// meta.properties: read as Kafka writes it, written so that a crash leaves all or nothing, and the disks a
// node refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/meta_properties.h"
#include "storage/vfs_faulty.h"

#define CLUSTER "5L6g3nShT-eMCtK--X86sw"

static int parse(const char *text, struct meta_properties *m)
{
    struct errmsg msg;
    return meta_properties_parse(slice_str(text), m, &msg);
}

static void a_file_of_kafka_is_read(void **state)
{
    struct meta_properties m;
    assert_int_equal(parse("#\n#Tue Dec 01 00:00:00 UTC 2026\ncluster.id=" CLUSTER
                           "\ndirectory.id=AAAAAAAAAAAAAAAAAAABAA\nnode.id=7\nversion=1\n",
                           &m),
                     0);
    assert_string_equal(m.cluster_id, CLUSTER);
    assert_int_equal(m.id, 7);
    assert_int_equal(m.directory_id.b[14], 1);
    assert_int_equal(parse("version=1\ncluster.id=x\nnode.id=0\n", &m), 0);
    assert_true(uuid_is_zero(m.directory_id));
}

static void damage_and_other_versions_are_refused(void **state)
{
    struct meta_properties m;
    assert_int_equal(parse("", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=1\nnode.id=1\n", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=1\ncluster.id=x\n", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=1\ncluster.id=x\nnode.id=-1\n", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=1\ncluster.id=x\nnode.id=9999999999\n", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=1\ncluster.id=x\nnode.id=1\ndirectory.id=abc\n", &m), ERR_CORRUPT);
    assert_int_equal(parse("version=0\ncluster.id=x\nbroker.id=1\n", &m), ERR_UNSUPPORTED);
    assert_int_equal(parse("version=2\n", &m), ERR_UNSUPPORTED);
}

static void make(struct vfs *fs, const char *dir, const char *cluster, node_id id, uint8_t directory)
{
    struct meta_properties m = {.id = id, .directory_id = {{1, [15] = directory}}};
    strncpy(m.cluster_id, cluster, sizeof m.cluster_id - 1);
    assert_int_equal(fs->ops->mkdir(fs, dir), 0);
    assert_int_equal(meta_properties_write(fs, dir, &m, NULL), 0);
}

struct world {
    struct vfs_faulty *disk;
    struct vfs *fs;
    struct meta_dirs *dirs;
    struct errmsg msg;
};

static struct world begin(void)
{
    struct world w = {.disk = vfs_faulty_new(1), .dirs = malloc(sizeof(struct meta_dirs))};
    w.fs = vfs_faulty_fs(w.disk);
    return w;
}
static void end(struct world *w)
{
    vfs_faulty_free(w->disk);
    free(w->dirs);
}
static int check(struct world *w, const char *metadata_dir, node_id id, const char *cluster)
{
    const char *paths[] = {"/a", "/b"};
    assert_int_equal(meta_dirs_read(w->fs, paths, 2, metadata_dir, w->dirs, &w->msg), 0);
    w->msg.text[0] = '\0';
    return meta_dirs_check(w->dirs, metadata_dir, id, cluster, &w->msg);
}

static void good_directories_pass(void **state)
{
    struct world w = begin();
    make(w.fs, "/a", CLUSTER, 3, 1);
    make(w.fs, "/b", CLUSTER, 3, 2);
    assert_int_equal(check(&w, "/a", 3, NULL), 0);
    assert_string_equal(w.dirs->cluster_id, CLUSTER);
    end(&w);
}

static void other_clusters_nodes_and_copies_are_refused(void **state)
{
    struct world w = begin();
    make(w.fs, "/a", CLUSTER, 3, 1);
    make(w.fs, "/b", "other", 3, 2);
    assert_int_equal(check(&w, "/a", 3, NULL), ERR_INVALID);
    assert_non_null(strstr(w.msg.text, "cluster other, not to " CLUSTER));
    end(&w);
    w = begin();
    make(w.fs, "/a", CLUSTER, 3, 1);
    assert_int_equal(check(&w, "/a", 4, NULL), ERR_INVALID);
    assert_non_null(strstr(w.msg.text, "node 3, but node.id is 4"));
    assert_int_equal(check(&w, "/a", 3, "another"), ERR_INVALID);
    make(w.fs, "/b", CLUSTER, 3, 1);
    assert_int_equal(check(&w, "/a", 3, NULL), ERR_INVALID);
    assert_non_null(strstr(w.msg.text, "same directory.id"));
    end(&w);
}

static void the_metadata_directory_must_be_formatted(void **state)
{
    struct world w = begin();
    make(w.fs, "/a", CLUSTER, 3, 1);
    assert_int_equal(check(&w, "/b", 3, NULL), ERR_NOTFOUND);
    assert_non_null(strstr(w.msg.text, "kraft-format"));
    assert_int_equal(check(&w, "/m", 3, NULL), ERR_NOTFOUND);
    end(&w);
}

static struct uuid counted(void *data)
{
    int *n = data;
    return (struct uuid){{9, [15] = (uint8_t)++ * n}};
}

static void empty_directories_are_completed(void **state)
{
    struct world w = begin();
    make(w.fs, "/a", CLUSTER, 3, 1);
    assert_int_equal(check(&w, "/a", 3, NULL), 0);
    assert_int_equal(w.dirs->dirs[1].state, META_DIR_EMPTY);
    int made = 0;
    assert_int_equal(meta_dirs_complete(w.fs, w.dirs, 3, counted, &made, NULL), 0);
    assert_int_equal(made, 1);
    assert_int_equal(check(&w, "/a", 3, NULL), 0);
    assert_int_equal(w.dirs->dirs[1].state, META_DIR_FORMATTED);
    assert_int_equal(w.dirs->dirs[1].props.directory_id.b[0], 9);
    end(&w);
}

static void a_crash_while_writing_leaves_all_or_nothing(void **state)
{
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct vfs_faulty *disk = vfs_faulty_new(seed);
        struct vfs *fs = vfs_faulty_fs(disk);
        assert_int_equal(fs->ops->mkdir(fs, "/a"), 0);
        assert_int_equal(fs->ops->sync_dir(fs, "/"), 0);
        vfs_faulty_fail(disk, VFS_CALL_ANY, seed % 8 + 1, ERR_IO, true, true);
        struct meta_properties m = {.id = 5, .cluster_id = CLUSTER, .directory_id = {{1}}}, back;
        int wrote = meta_properties_write(fs, "/a", &m, NULL);
        vfs_faulty_heal(disk);
        vfs_faulty_crash(disk, seed);
        int rc = meta_properties_read(fs, "/a", &back, NULL);
        assert_true(rc == 0 || rc == ERR_NOTFOUND);
        assert_true(rc == 0 || wrote != 0); // what was reported done is there
        assert_true(rc != 0 || back.id == 5);
        vfs_faulty_free(disk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_kafka_is_read),
        cmocka_unit_test(damage_and_other_versions_are_refused),
        cmocka_unit_test(good_directories_pass),
        cmocka_unit_test(other_clusters_nodes_and_copies_are_refused),
        cmocka_unit_test(the_metadata_directory_must_be_formatted),
        cmocka_unit_test(empty_directories_are_completed),
        cmocka_unit_test(a_crash_while_writing_leaves_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
