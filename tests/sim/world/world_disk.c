// SPDX-License-Identifier: Apache-2.0
// The disk of a simulated host: the faulty disk, with its memory kept out of the node's heap and its open
// files given back at a crash.
#include "core/base/assert.h"
#include "tests/sim/world/world_priv.h"

static struct world_host *host_of(struct vfs *fs)
{
    return ((struct world_disk_fs *)fs)->host;
}
static struct vfs *inner(struct vfs *fs)
{
    return vfs_faulty_fs(host_of(fs)->disk);
}

// Runs a call of the disk with memory booked to nobody.
#define OUTSIDE(h, call)                                                                                     \
    __extension__({                                                                                          \
        struct node *was_ = world_enter_none((h)->w);                                                        \
        int rc_ = (call);                                                                                    \
        world_leave((h)->w, was_);                                                                           \
        rc_;                                                                                                 \
    })

static void note_open(struct world_host *h, struct vfs_file *f)
{
    f->fs = &h->fs.fs;
    MUST(h->open_count < sizeof h->open / sizeof h->open[0]);
    h->open[h->open_count++] = f;
}

static void forget_open(struct world_host *h, struct vfs_file *f)
{
    for (unsigned i = 0; i < h->open_count; i++) {
        if (h->open[i] == f) {
            h->open[i] = h->open[--h->open_count];
            return;
        }
    }
}

// The last reference goes through rope.free, which is the disk's own: the wrapper takes its place to keep the
// list.
static void file_free(struct rope_file *r)
{
    struct vfs_file *f = (struct vfs_file *)r;
    struct world_host *h = host_of(f->fs);
    forget_open(h, f);
    inner(f->fs)->ops->close(f);
}

static int d_open(struct vfs *fs, const char *path, int flags, struct vfs_file **out, struct errmsg *msg)
{
    struct world_host *h = host_of(fs);
    int rc = OUTSIDE(h, inner(fs)->ops->open(inner(fs), path, flags, out, msg));
    if (rc == 0) {
        note_open(h, *out);
        (*out)->rope.free = file_free;
    }
    return rc;
}
static int d_lock(struct vfs *fs, const char *path, struct vfs_file **out)
{
    struct world_host *h = host_of(fs);
    int rc = OUTSIDE(h, inner(fs)->ops->lock(inner(fs), path, out));
    if (rc == 0) {
        note_open(h, *out);
        (*out)->rope.free = file_free;
    }
    return rc;
}
static void d_close(struct vfs_file *f)
{
    inner(f->fs)->ops->close(f);
}
static int d_pread(struct vfs_file *f, void *buf, size_t len, uint64_t pos, size_t *got)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->pread(f, buf, len, pos, got));
}
static int d_pwritev(struct vfs_file *f, const struct iovec *iov, int count, uint64_t pos)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->pwritev(f, iov, count, pos));
}
static int d_size(struct vfs_file *f, uint64_t *out)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->size(f, out));
}
static int d_truncate(struct vfs_file *f, uint64_t size)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->truncate(f, size));
}
static int d_allocate(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->allocate(f, pos, len));
}
static int d_sync(struct vfs_file *f)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->sync(f));
}
static int d_cached(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->cached(f, pos, len));
}
static int d_readahead(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    return OUTSIDE(host_of(f->fs), inner(f->fs)->ops->readahead(f, pos, len));
}
static int d_sync_dir(struct vfs *fs, const char *path)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->sync_dir(inner(fs), path));
}
static int d_sync_fs(struct vfs *fs, const char *path)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->sync_fs(inner(fs), path));
}
static int d_mkdir(struct vfs *fs, const char *path)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->mkdir(inner(fs), path));
}
static int d_rename(struct vfs *fs, const char *from, const char *to)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->rename(inner(fs), from, to));
}
static int d_unlink(struct vfs *fs, const char *path)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->unlink(inner(fs), path));
}
static int d_rmdir(struct vfs *fs, const char *path)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->rmdir(inner(fs), path));
}
static int d_stat(struct vfs *fs, const char *path, struct vfs_stat *out)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->stat(inner(fs), path, out));
}
// A walk's callback is the node's code again: what it allocates is the node's.
struct listing {
    struct world *w;                                        // for the context
    struct node *node;                                      // who walks
    int (*each)(void *data, const char *name, bool is_dir); // its callback
    void *data;                                             // the callback's
};
static int list_each(void *data, const char *name, bool is_dir)
{
    struct listing *l = data;
    world_leave(l->w, l->node);
    int rc = l->each(l->data, name, is_dir);
    (void)world_enter_none(l->w);
    return rc;
}
static int d_list(struct vfs *fs, const char *path, int (*each)(void *data, const char *name, bool is_dir),
                  void *data)
{
    struct world *w = host_of(fs)->w;
    struct listing l = {w, world_enter_none(w), each, data};
    int rc = inner(fs)->ops->list(inner(fs), path, list_each, &l);
    world_leave(w, l.node);
    return rc;
}
static int d_space(struct vfs *fs, const char *path, uint64_t *free_bytes, uint64_t *total_bytes)
{
    return OUTSIDE(host_of(fs), inner(fs)->ops->space(inner(fs), path, free_bytes, total_bytes));
}

static const struct vfs_ops disk_ops = {
    .name = "world",
    .open = d_open,
    .close = d_close,
    .pread = d_pread,
    .pwritev = d_pwritev,
    .size = d_size,
    .truncate = d_truncate,
    .allocate = d_allocate,
    .sync = d_sync,
    .cached = d_cached,
    .readahead = d_readahead,
    .sync_dir = d_sync_dir,
    .sync_fs = d_sync_fs,
    .mkdir = d_mkdir,
    .rename = d_rename,
    .unlink = d_unlink,
    .rmdir = d_rmdir,
    .stat = d_stat,
    .list = d_list,
    .lock = d_lock,
    .space = d_space,
};

void world_disk_init(struct world_host *h)
{
    h->fs.fs.ops = &disk_ops;
    h->fs.host = h;
}

void world_disk_drop(struct world_host *h)
{
    while (h->open_count) {
        struct vfs_file *f = h->open[0];
        atomic_store(&f->rope.refs, 1);
        vfs_file_unref(f); // takes it off the list
    }
}
