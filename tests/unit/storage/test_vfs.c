// SPDX-License-Identifier: Apache-2.0
// The same facts of both file systems, and those of the faulty one alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include <cmocka.h>
#include "core/base/mem.h"
#include "storage/file_cache.h"
#include "storage/vfs_faulty.h"

struct world {
    struct vfs *fs;
    struct vfs_faulty *faulty; // NULL: the real disk
    char root[64];
};

static void world_init(struct world *w, int which)
{
    memset(w, 0, sizeof(*w));
    if (which == 0) {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(w->root, sizeof(w->root), "%s/kraft-vfs-XXXXXX", tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(w->root));
        w->fs = vfs_posix();
    } else {
        w->faulty = vfs_faulty_new(7);
        w->fs = vfs_faulty_fs(w->faulty);
        (void)snprintf(w->root, sizeof(w->root), "/root");
        assert_int_equal(w->fs->ops->mkdir(w->fs, w->root), 0);
    }
}

static void world_fini(struct world *w)
{
    if (w->faulty) {
        vfs_faulty_free(w->faulty);
        return;
    }
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", w->root);
    assert_int_equal(system(command), 0);
}

static const char *path(const struct world *w, const char *name)
{
    static char buf[4][128];
    static unsigned next;
    char *p = buf[next++ % 4];
    (void)snprintf(p, sizeof(buf[0]), "%s/%s", w->root, name);
    return p;
}

static struct vfs_file *must_open(struct world *w, const char *name, int flags)
{
    struct vfs_file *f;
    struct errmsg msg = {""};
    if (w->fs->ops->open(w->fs, path(w, name), flags, &f, &msg))
        fail_msg("%s", msg.text);
    return f;
}

static int put(struct vfs_file *f, const char *text, uint64_t pos)
{
    struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
    return f->fs->ops->pwritev(f, &iov, 1, pos);
}

#define ON_BOTH(w)                                                                                           \
    for (int which = 0; which < 2; which++)                                                                  \
        for (bool once = (world_init(&(w), which), true); once; once = (world_fini(&(w)), false))

// The kernel does not tell what of an overlay's files is in the page cache.
static bool on_overlay(const struct world *w)
{
    struct statfs st;
    return !w->faulty && statfs(w->root, &st) == 0 && st.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void bytes_that_were_written_are_read(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
        struct iovec iov[3] = {{(void *)(uintptr_t) "one ", 4},
                               {(void *)(uintptr_t) "two ", 4},
                               {(void *)(uintptr_t) "three", 5}};
        assert_int_equal(w.fs->ops->pwritev(f, iov, 3, 0), 0);
        assert_int_equal(put(f, "TWO", 4), 0);
        char buf[32] = "";
        size_t got;
        assert_int_equal(w.fs->ops->pread(f, buf, sizeof(buf) - 1, 0, &got), 0);
        assert_int_equal(got, 13); // short at the end of the file only
        assert_string_equal(buf, "one TWO three");
        assert_int_equal(w.fs->ops->pread(f, buf, 5, 100, &got), 0);
        assert_int_equal(got, 0);
        assert_int_equal(f->rope.read(&f->rope, buf, 3, 4), 0);
        assert_int_equal(f->rope.read(&f->rope, buf, 10, 8), ERR_IO); // a range must be there whole
        uint64_t size;
        assert_int_equal(w.fs->ops->truncate(f, 4), 0);
        assert_int_equal(w.fs->ops->size(f, &size), 0);
        assert_int_equal(size, 4);
        assert_int_equal(w.fs->ops->sync(f), 0);
        assert_int_equal(w.fs->ops->cached(f, 0, 4), on_overlay(&w) ? 0 : 1);
        assert_int_equal(w.fs->ops->readahead(f, 0, 4), 0);
        vfs_file_unref(f);
    }
}

static void more_pieces_than_the_kernel_takes_are_written(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
        static struct iovec iov[3000];
        for (int i = 0; i < 3000; i++)
            iov[i] = (struct iovec){(void *)(uintptr_t) "ab", 2};
        assert_int_equal(w.fs->ops->pwritev(f, iov, 3000, 10), 0);
        uint64_t size;
        assert_int_equal(w.fs->ops->size(f, &size), 0);
        assert_int_equal(size, 6010);
        vfs_file_unref(f);
    }
}

static void errors_are_told_apart(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        struct vfs_file *f;
        struct errmsg msg;
        struct vfs_stat st;
        assert_int_equal(w.fs->ops->open(w.fs, path(&w, "none"), VFS_READ, &f, &msg), ERR_NOTFOUND);
        assert_non_null(strstr(msg.text, "none"));
        assert_int_equal(w.fs->ops->open(w.fs, path(&w, "no/where"), VFS_WRITE | VFS_CREATE, &f, &msg),
                         ERR_NOTFOUND);
        f = must_open(&w, "a", VFS_WRITE | VFS_CREATE | VFS_EXCL);
        vfs_file_unref(f);
        assert_int_equal(w.fs->ops->open(w.fs, path(&w, "a"), VFS_WRITE | VFS_CREATE | VFS_EXCL, &f, &msg),
                         ERR_EXISTS);
        assert_int_equal(w.fs->ops->mkdir(w.fs, path(&w, "d")), 0);
        assert_int_equal(w.fs->ops->mkdir(w.fs, path(&w, "d")), ERR_EXISTS);
        assert_int_equal(w.fs->ops->stat(w.fs, path(&w, "none"), &st), ERR_NOTFOUND);
        assert_int_equal(w.fs->ops->unlink(w.fs, path(&w, "none")), ERR_NOTFOUND);
        assert_int_equal(w.fs->ops->rename(w.fs, path(&w, "none"), path(&w, "x")), ERR_NOTFOUND);
        assert_int_equal(w.fs->ops->stat(w.fs, path(&w, "d"), &st), 0);
        assert_true(st.is_dir);
    }
}

static int count_name(void *data, const char *name, bool is_dir)
{
    int *n = data;
    *n += is_dir ? 100 : 1;
    return strcmp(name, "stop") == 0 ? ERR_CANCELED : 0;
}

static void names_are_listed_renamed_and_removed(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        vfs_file_unref(must_open(&w, "a", VFS_WRITE | VFS_CREATE));
        vfs_file_unref(must_open(&w, "b", VFS_WRITE | VFS_CREATE));
        assert_int_equal(w.fs->ops->mkdir(w.fs, path(&w, "d")), 0);
        int n = 0;
        assert_int_equal(w.fs->ops->list(w.fs, w.root, count_name, &n), 0);
        assert_int_equal(n, 102);
        assert_int_equal(w.fs->ops->rename(w.fs, path(&w, "a"), path(&w, "b")), 0); // replaces
        assert_int_equal(w.fs->ops->rename(w.fs, path(&w, "b"), path(&w, "d/c")), 0);
        assert_int_equal(w.fs->ops->rename(w.fs, path(&w, "d"), path(&w, "e")), 0); // with what is in it
        struct vfs_stat st;
        assert_int_equal(w.fs->ops->stat(w.fs, path(&w, "e/c"), &st), 0);
        assert_int_not_equal(w.fs->ops->rmdir(w.fs, path(&w, "e")), 0); // not empty
        assert_int_equal(w.fs->ops->unlink(w.fs, path(&w, "e/c")), 0);
        assert_int_equal(w.fs->ops->rmdir(w.fs, path(&w, "e")), 0);
        assert_int_equal(w.fs->ops->sync_dir(w.fs, w.root), 0);
        assert_int_equal(w.fs->ops->sync_fs(w.fs, w.root), 0);
        vfs_file_unref(must_open(&w, "stop", VFS_WRITE | VFS_CREATE));
        assert_int_equal(w.fs->ops->list(w.fs, w.root, count_name, &n), ERR_CANCELED);
    }
}

static void a_lock_is_held_by_one(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        struct vfs_file *a, *b;
        assert_int_equal(w.fs->ops->lock(w.fs, path(&w, ".lock"), &a), 0);
        assert_int_equal(w.fs->ops->lock(w.fs, path(&w, ".lock"), &b), ERR_LOCKED);
        vfs_file_unref(a);
        assert_int_equal(w.fs->ops->lock(w.fs, path(&w, ".lock"), &b), 0);
        vfs_file_unref(b);
    }
}

static void space_is_told_and_can_be_reserved(void **state)
{
    struct world w;
    ON_BOTH(w)
    {
        uint64_t available, total, size;
        assert_int_equal(w.fs->ops->space(w.fs, w.root, &available, &total), 0);
        assert_true(available > 0 && total >= available);
        struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
        int rc = w.fs->ops->allocate(f, 0, 100000);
        assert_true(rc == 0 || rc == ERR_UNSUPPORTED);
        assert_int_equal(w.fs->ops->size(f, &size), 0);
        assert_int_equal(size, 0); // unchanged
        vfs_file_unref(f);
    }
}

// ---- the faulty one ---------------------------------------------------------------------------------------
static void what_was_synced_survives_a_crash_and_the_rest_need_not(void **state)
{
    struct world w;
    world_init(&w, 1);
    assert_int_equal(w.fs->ops->sync_dir(w.fs, "/"), 0);
    struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
    assert_int_equal(put(f, "durable", 0), 0);
    assert_int_equal(w.fs->ops->sync(f), 0);
    assert_int_equal(w.fs->ops->sync_dir(w.fs, w.root), 0);
    assert_int_equal(put(f, "LOST", 0), 0);
    vfs_file_unref(must_open(&w, "b", VFS_WRITE | VFS_CREATE));
    vfs_faulty_crash_hard(w.faulty);
    char buf[16] = "";
    size_t got;
    assert_int_equal(w.fs->ops->pread(f, buf, 7, 0, &got), ERR_IO); // opened before the crash
    vfs_file_unref(f);
    f = must_open(&w, "a", VFS_READ);
    assert_int_equal(w.fs->ops->pread(f, buf, 15, 0, &got), 0);
    assert_string_equal(buf, "durable");
    vfs_file_unref(f);
    assert_false(vfs_faulty_exists(w.faulty, "/root/b"));
    world_fini(&w);
}

static void a_name_without_a_directory_sync_can_be_lost(void **state)
{
    unsigned kept = 0, lost = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world w;
        world_init(&w, 1);
        assert_int_equal(w.fs->ops->sync_dir(w.fs, "/"), 0);
        struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
        assert_int_equal(w.fs->ops->sync(f), 0);
        vfs_file_unref(f);
        vfs_faulty_crash(w.faulty, seed);
        if (vfs_faulty_exists(w.faulty, "/root/a"))
            kept++;
        else
            lost++;
        world_fini(&w);
    }
    assert_true(kept > 0 && lost > 0);
}

static void unsynced_writes_are_kept_lost_and_torn_the_same_way_for_a_seed(void **state)
{
    bool none = false, all = false, part = false;
    for (uint64_t seed = 0; seed < 60; seed++) {
        char first[20000] = "", second[20000] = "";
        size_t len[2] = {0, 0};
        for (int run = 0; run < 2; run++) {
            struct world w;
            world_init(&w, 1);
            struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
            assert_int_equal(w.fs->ops->sync_fs(w.fs, "/"), 0);
            char block[9000];
            memset(block, 'x', sizeof(block) - 1);
            block[sizeof(block) - 1] = 0;
            assert_int_equal(put(f, block, 0), 0);
            assert_int_equal(put(f, block, 8999), 0);
            vfs_file_unref(f);
            vfs_faulty_crash(w.faulty, seed);
            f = must_open(&w, "a", VFS_READ);
            assert_int_equal(w.fs->ops->pread(f, run ? second : first, 20000, 0, &len[run]), 0);
            vfs_file_unref(f);
            world_fini(&w);
        }
        assert_int_equal(len[0], len[1]);
        assert_memory_equal(first, second, len[0]);
        none = none || len[0] == 0;
        all = all || (len[0] == 17998 && memchr(first, 0, 17998) == NULL);
        part = part || (len[0] > 0 && len[0] < 17998);
    }
    assert_true(none && all && part);
}

static void the_nth_call_of_a_kind_fails_once_or_from_then_on(void **state)
{
    struct world w;
    world_init(&w, 1);
    struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
    vfs_faulty_fail(w.faulty, VFS_CALL_WRITE, 2, ERR_IO, false, false);
    assert_int_equal(put(f, "1", 0), 0);
    assert_int_equal(put(f, "2", 1), ERR_IO);
    assert_int_equal(put(f, "3", 1), 0);
    vfs_faulty_fail(w.faulty, VFS_CALL_SYNC, 1, ERR_IO, true, false);
    assert_int_equal(w.fs->ops->sync(f), ERR_IO);
    assert_int_equal(w.fs->ops->sync(f), ERR_IO);
    vfs_faulty_heal(w.faulty);
    assert_int_equal(w.fs->ops->sync(f), 0);
    assert_int_equal(vfs_faulty_failed(w.faulty), 3);
    vfs_faulty_fail_path(w.faulty, "/b");
    vfs_faulty_fail(w.faulty, VFS_CALL_WRITE, 1, ERR_IO, true, false);
    assert_int_equal(put(f, "4", 0), 0); // another path
    vfs_faulty_heal(w.faulty);
    assert_int_equal(vfs_faulty_corrupt(w.faulty, "/root/a", 0, 1), 0);
    char c;
    size_t got;
    assert_int_equal(w.fs->ops->pread(f, &c, 1, 0, &got), 0);
    assert_int_equal(c, '5');
    vfs_file_unref(f);
    world_fini(&w);
}

static void a_full_disk_takes_what_fits(void **state)
{
    struct world w;
    world_init(&w, 1);
    struct vfs_file *f = must_open(&w, "a", VFS_WRITE | VFS_CREATE);
    vfs_faulty_set_capacity(w.faulty, 10);
    assert_int_equal(put(f, "0123456", 0), 0);
    assert_int_equal(put(f, "789abc", 7), ERR_NOSPACE);
    uint64_t size;
    assert_int_equal(w.fs->ops->size(f, &size), 0);
    assert_int_equal(size, 10);
    assert_int_equal(put(f, "X", 3), 0); // over what is there
    vfs_file_unref(f);
    world_fini(&w);
}

static void the_file_cache_keeps_the_most_recently_used(void **state)
{
    struct world w;
    world_init(&w, 1);
    struct file_cache *c = file_cache_new(2);
    struct file_slot slots[3] = {{NULL, NULL, NULL}};
    struct vfs_file *f[3];
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(
            file_cache_get(c, &slots[i], w.fs, path(&w, name), VFS_WRITE | VFS_CREATE, &f[i], NULL), 0);
        if (i == 1) {
            vfs_file_unref(file_cache_peek(c, &slots[0])); // 0 is used again: 1 is the oldest now
        }
    }
    assert_int_equal(file_cache_open(c), 2);
    assert_null(file_cache_peek(c, &slots[1]));
    assert_int_equal(put(f[1], "still open for its user", 0), 0);
    for (int i = 0; i < 3; i++) {
        vfs_file_unref(f[i]);
        file_cache_close(c, &slots[i]);
    }
    assert_int_equal(vfs_faulty_open_files(w.faulty), 0);
    file_cache_free(c);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_were_written_are_read),
        cmocka_unit_test(more_pieces_than_the_kernel_takes_are_written),
        cmocka_unit_test(errors_are_told_apart),
        cmocka_unit_test(names_are_listed_renamed_and_removed),
        cmocka_unit_test(a_lock_is_held_by_one),
        cmocka_unit_test(space_is_told_and_can_be_reserved),
        cmocka_unit_test(what_was_synced_survives_a_crash_and_the_rest_need_not),
        cmocka_unit_test(a_name_without_a_directory_sync_can_be_lost),
        cmocka_unit_test(unsynced_writes_are_kept_lost_and_torn_the_same_way_for_a_seed),
        cmocka_unit_test(the_nth_call_of_a_kind_fails_once_or_from_then_on),
        cmocka_unit_test(a_full_disk_takes_what_fits),
        cmocka_unit_test(the_file_cache_keeps_the_most_recently_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
