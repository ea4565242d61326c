// SPDX-License-Identifier: Apache-2.0
// Reading and atomically replacing small files.
#include "storage/small_file.h"
#include <stdio.h>
#include "core/base/mem.h"
#include "storage/layout.h"

int small_file_read(struct vfs *fs, const char *path, char **out, size_t *len, struct errmsg *msg)
{
    struct vfs_file *f;
    int rc = fs->ops->open(fs, path, VFS_READ, &f, msg);
    if (rc)
        return rc;
    uint64_t size = 0;
    rc = fs->ops->size(f, &size);
    if (rc == 0 && size > SMALL_FILE_BYTES_MAX)
        rc = err_set(msg, ERR_TOO_LARGE, "%s has %llu bytes: not a file of this kind", path,
                     (unsigned long long)size);
    if (rc) {
        vfs_file_unref(f);
        return rc == ERR_TOO_LARGE ? rc : err_set(msg, rc, "cannot read %s: %s", path, err_text(rc));
    }
    char *data = mem_alloc((size_t)size + 1);
    size_t got = 0;
    rc = fs->ops->pread(f, data, (size_t)size, 0, &got);
    vfs_file_unref(f);
    if (rc) {
        mem_free(data);
        return err_set(msg, rc, "cannot read %s: %s", path, err_text(rc));
    }
    data[got] = 0;
    *out = data;
    *len = got;
    return 0;
}

static void parent_dir(char *buf, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0) {
        (void)snprintf(buf, LAYOUT_PATH_BYTES, "%s", slash ? "/" : ".");
        return;
    }
    memcpy(buf, path, n);
    buf[n] = 0;
}

static int write_new(struct vfs *fs, const char *path, struct slice bytes, bool durable, struct errmsg *msg)
{
    struct vfs_file *f;
    int rc = fs->ops->open(fs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &f, msg);
    if (rc)
        return rc;
    if (bytes.len) {
        struct iovec iov = {(void *)(uintptr_t)bytes.data, bytes.len};
        rc = fs->ops->pwritev(f, &iov, 1, 0);
    }
    if (rc == 0 && durable)
        rc = fs->ops->sync(f);
    vfs_file_unref(f);
    return rc ? err_set(msg, rc, "cannot write %s: %s", path, err_text(rc)) : 0;
}

int small_file_replace(struct vfs *fs, const char *path, struct slice bytes, bool durable, struct errmsg *msg)
{
    char tmp[LAYOUT_PATH_BYTES + 8];
    int n = snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    if (n >= LAYOUT_PATH_BYTES)
        return err_set(msg, ERR_TOO_LARGE, "the path %s is too long", path);
    int rc = write_new(fs, tmp, bytes, durable, msg);
    if (rc) {
        (void)fs->ops->unlink(fs, tmp); // gives the room back on a full disk
        return rc;
    }
    rc = fs->ops->rename(fs, tmp, path);
    if (rc)
        return err_set(msg, rc, "cannot rename %s to %s: %s", tmp, path, err_text(rc));
    if (durable) {
        char dir[LAYOUT_PATH_BYTES];
        parent_dir(dir, path);
        rc = fs->ops->sync_dir(fs, dir);
        if (rc)
            return err_set(msg, rc, "cannot sync the directory %s: %s", dir, err_text(rc));
    }
    return 0;
}

int small_file_write(struct vfs *fs, const char *path, struct slice bytes, struct errmsg *msg)
{
    int rc = write_new(fs, path, bytes, false, msg);
    if (rc)
        (void)fs->ops->unlink(fs, path);
    return rc;
}

int small_file_remove(struct vfs *fs, const char *path, struct errmsg *msg)
{
    int rc = fs->ops->unlink(fs, path);
    if (rc == 0 || rc == ERR_NOTFOUND)
        return 0;
    return err_set(msg, rc, "cannot remove %s: %s", path, err_text(rc));
}
