// SPDX-License-Identifier: Apache-2.0
// Keeping aside what recovery cuts off.
#include "storage/log_salvage.h"
#include <stdio.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"
#include "storage/log_impl.h"

#define COPY_BYTES (256u << 10)
#define SEARCH_BYTES (1u << 20) // of a file are held while looking for batches
#define NAMES_MAX 1000          // .cutoff, .cutoff.1, ...

// ---- counting ---------------------------------------------------------------------------------------------
// Whole
// batches with a good checksum from `pos` on, wherever they begin. Cheap checks first: nearly every byte is
// no beginning.
static uint32_t count_batches(struct vfs_file *file, uint64_t pos, uint64_t size, log_offset next)
{
    uint32_t found = 0;
    struct batch_scan scan;
    batch_scan_init(&scan, file, pos, size, NULL, SEARCH_BYTES);
    while (scan.pos + BATCH_HEADER_BYTES <= size) {
        const uint8_t *b;
        size_t len;
        int rc = batch_scan_header(&scan, &b, &len);
        if (rc == 0 && batch_base_offset(b) >= next && batch_base_offset(b) - next <= INT32_MAX)
            rc = batch_scan_whole(&scan, &b, &len);
        else if (rc == 0)
            rc = ERR_CORRUPT;
        if (rc == 0 && batch_check_crc(b, NULL) == 0) {
            found++;
            batch_scan_skip(&scan, len);
        } else if (rc == 0 || rc == ERR_CORRUPT || rc == ERR_AGAIN) {
            batch_scan_skip(&scan, 1);
        } else {
            break; // it cannot be read: then it cannot be counted
        }
    }
    batch_scan_fini(&scan);
    return found;
}

// ---- copying ----------------------------------------------------------------------------------------------
static int free_name(const struct salvage_args *a, const char *stem, char *name, size_t size, char *path)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        struct vfs_stat st;
        if (i == 0)
            (void)snprintf(name, size, "%s.cutoff", stem);
        else
            (void)snprintf(name, size, "%s.cutoff.%d", stem, i);
        if (!layout_join(path, a->at->dir, name))
            return ERR_TOO_LARGE;
        if (a->at->fs->ops->stat(a->at->fs, path, &st) == ERR_NOTFOUND)
            return 0;
    }
    return ERR_EXISTS;
}

static int copy_range(const struct salvage_args *a, struct vfs_file *from, const char *to, bool *zeros)
{
    struct vfs *fs = a->at->fs;
    struct vfs_file *out;
    int rc = fs->ops->open(fs, to, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &out, NULL);
    if (rc)
        return rc;
    uint8_t *buf = mem_alloc(COPY_BYTES);
    *zeros = true;
    for (uint64_t pos = a->pos; pos < a->size && rc == 0;) {
        size_t want = a->size - pos < COPY_BYTES ? (size_t)(a->size - pos) : COPY_BYTES, got = 0;
        rc = fs->ops->pread(from, buf, want, pos, &got);
        if (rc || got == 0)
            break;
        for (size_t i = 0; i < got && *zeros; i++)
            *zeros = buf[i] == 0;
        struct iovec iov = {buf, got};
        rc = fs->ops->pwritev(out, &iov, 1, pos - a->pos);
        pos += got;
    }
    if (rc == 0)
        rc = fs->ops->sync(out);
    vfs_file_unref(out);
    mem_free(buf);
    if (rc || *zeros)
        (void)fs->ops->unlink(fs, to);
    if (rc == 0)
        rc = fs->ops->sync_dir(fs, a->at->dir);
    return rc;
}

int log_salvage_tail(const struct salvage_args *a, struct salvage *out, struct errmsg *msg)
{
    *out = (struct salvage){0, ""};
    struct vfs *fs = a->at->fs;
    char path[LAYOUT_PATH_BYTES], kept[LAYOUT_PATH_BYTES], stem[32];
    (void)snprintf(stem, sizeof(stem), "%020lld", (long long)a->next);
    if (!layout_path(path, a->at->dir, a->base, LAYOUT_LOG, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", a->at->dir);
    struct vfs_file *file;
    int rc = fs->ops->open(fs, path, VFS_WRITE, &file, msg);
    if (rc)
        return rc;
    bool zeros = false;
    if (a->pos < a->size) {
        out->batches = count_batches(file, a->pos, a->size, a->next);
        rc = free_name(a, stem, out->name, sizeof(out->name), kept);
        if (rc == 0)
            rc = copy_range(a, file, kept, &zeros);
        if (rc == ERR_NOSPACE && log_dir__give_reserve(a->dir))
            rc = copy_range(a, file, kept, &zeros);
        if (zeros)
            out->name[0] = 0;
    }
    if (rc) {
        vfs_file_unref(file);
        return err_set(msg, rc, "cannot keep what must be cut off %s at byte %llu: %s", path,
                       (unsigned long long)a->pos, err_text(rc));
    }
    rc = fs->ops->truncate(file, a->pos);
    if (rc == 0)
        rc = fs->ops->sync(file);
    vfs_file_unref(file);
    return rc ? err_set(msg, rc, "cannot cut %s at byte %llu: %s", path, (unsigned long long)a->pos,
                        err_text(rc))
              : 0;
}

int log_salvage_segment(const struct salvage_args *a, struct salvage *out, struct errmsg *msg)
{
    *out = (struct salvage){0, ""};
    struct vfs *fs = a->at->fs;
    char path[LAYOUT_PATH_BYTES], kept[LAYOUT_PATH_BYTES], stem[32];
    (void)snprintf(stem, sizeof(stem), "%020lld.log", (long long)a->base);
    if (!layout_path(path, a->at->dir, a->base, LAYOUT_LOG, LAYOUT_PLAIN))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", a->at->dir);
    struct vfs_file *file;
    int rc = fs->ops->open(fs, path, VFS_READ, &file, msg);
    if (rc)
        return rc;
    out->batches = count_batches(file, 0, a->size, a->base);
    vfs_file_unref(file);
    rc = free_name(a, stem, out->name, sizeof(out->name), kept);
    if (rc == 0)
        rc = fs->ops->rename(fs, path, kept);
    if (rc)
        return err_set(msg, rc, "cannot rename %s: %s", path, err_text(rc));
    rc = segment_remove_files(a->base, a->at, LAYOUT_PLAIN, false);
    if (rc == 0)
        rc = fs->ops->sync_dir(fs, a->at->dir);
    return rc ? err_set(msg, rc, "cannot set segment %s aside: %s", path, err_text(rc)) : 0;
}
