// SPDX-License-Identifier: Apache-2.0
// The vfs of the faulty disk: every call is counted, may be failed by a rule, and then acts on the disk in
// memory.
#include "storage/vfs_faulty.h"
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/base/mutex.h"
#include "storage/vfs_faulty_disk.h"

struct fault_rule {
    uint64_t n;   // fails when it has counted down to 1; 0 = no rule
    int err;      // answer
    bool sticky;  // and all later ones
    bool partial; // a failing write writes part of its bytes
};

struct vfs_faulty {
    struct vfs fs;     // first: the vfs hands out &fs
    struct mutex lock; // around everything below
    struct fdisk disk; // contents
    uint64_t rng;      // for partial writes
    struct fault_rule rules[VFS_CALLS + 1];
    uint64_t calls[VFS_CALLS + 1];
    uint64_t failed;     // calls that a rule failed
    char *fail_path;     // rules count only paths that contain this; NULL all
    uint64_t capacity;   // bytes; 0 no limit
    unsigned generation; // raised by crash and kill: older handles are dead
    unsigned cold_epoch; // raised by set_cached(false)
    bool cached;         // what `cached` answers for files that were not read ahead
    unsigned open_files; // handles out
};

struct faulty_file {
    struct vfs_file f;       // first: the vfs hands out &f
    struct vfs_faulty *v;    // whose
    struct fdisk_node *node; // counted
    char *path;              // as opened
    unsigned generation;     // of the disk when it was opened
    bool locked;             // holds the node's lock
};

static bool call_changes(enum vfs_call kind)
{
    switch (kind) {
    case VFS_CALL_OPEN:
    case VFS_CALL_READ:
    case VFS_CALL_STAT:
    case VFS_CALL_LIST:
        return false;
    default:
        return true;
    }
}

static int rule_step(struct vfs_faulty *v, struct fault_rule *r, bool *partial)
{
    if (r->n == 0 || --r->n > 0)
        return 0;
    if (r->sticky)
        r->n = 1;
    *partial = r->partial;
    v->failed++;
    return r->err;
}

// Counts a call and asks the rules. Holds the lock.
static int count_call(struct vfs_faulty *v, enum vfs_call kind, const char *path, bool *partial)
{
    bool part = false;
    v->calls[kind]++;
    if (call_changes(kind))
        v->calls[VFS_CALL_ANY]++;
    int rc = 0;
    if (!v->fail_path || strstr(path, v->fail_path)) {
        rc = rule_step(v, &v->rules[kind], &part);
        if (rc == 0 && call_changes(kind))
            rc = rule_step(v, &v->rules[VFS_CALL_ANY], &part);
    }
    if (partial)
        *partial = part;
    return rc;
}

static struct vfs_faulty *enter(struct vfs *fs)
{
    struct vfs_faulty *v = (struct vfs_faulty *)fs;
    mutex_lock(&v->lock);
    return v;
}

static int leave(struct vfs_faulty *v, int rc)
{
    mutex_unlock(&v->lock);
    return rc;
}

// Enters for a call on an open file; 0 or what the call answers. The lock is held in both cases.
static int enter_file(struct vfs_file *f, enum vfs_call kind, struct faulty_file **out, bool *partial)
{
    struct faulty_file *h = (struct faulty_file *)f;
    *out = h;
    mutex_lock(&h->v->lock);
    if (h->generation != h->v->generation)
        return ERR_IO; // opened before the crash
    return count_call(h->v, kind, h->path, partial);
}

// ---- files ------------------------------------------------------------------------------------------------
static void faulty_close(struct vfs_file *f)
{
    struct faulty_file *h = (struct faulty_file *)f;
    struct vfs_faulty *v = h->v;
    mutex_lock(&v->lock);
    if (h->locked && h->node->lock_generation == h->generation)
        h->node->lock_generation = 0;
    fdisk_unref(h->node);
    v->open_files--;
    mutex_unlock(&v->lock);
    mem_free(h->path);
    mem_free(h);
}

static int faulty_pread(struct vfs_file *f, void *buf, size_t len, uint64_t pos, size_t *got)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_READ, &h, NULL);
    if (rc == 0) {
        size_t size = h->node->now.size;
        size_t n = pos >= size ? 0 : size - (size_t)pos;
        n = n < len ? n : len;
        if (n)
            memcpy(buf, h->node->now.data + pos, n);
        *got = n;
    }
    return leave(h->v, rc);
}

static int faulty_rope_read(struct rope_file *r, void *buf, size_t len, uint64_t pos)
{
    size_t got = 0;
    int rc = faulty_pread((struct vfs_file *)r, buf, len, pos, &got);
    return rc == 0 && got < len ? ERR_IO : rc;
}

static void faulty_rope_free(struct rope_file *r)
{
    faulty_close((struct vfs_file *)r);
}

static struct vfs_file *handle_new(struct vfs_faulty *v, struct fdisk_node *n, const char *path)
{
    struct faulty_file *h = mem_zalloc(sizeof(*h));
    h->f.fs = &v->fs;
    h->f.rope.fd = -1;
    h->f.rope.read = faulty_rope_read;
    h->f.rope.free = faulty_rope_free;
    atomic_init(&h->f.rope.refs, 1);
    h->v = v;
    h->node = fdisk_ref(n);
    h->path = mem_strdup(path);
    h->generation = v->generation;
    v->open_files++;
    return &h->f;
}

static int faulty_open_locked(struct vfs_faulty *v, const char *path, int flags, struct vfs_file **out)
{
    struct fdisk_node *parent;
    const char *name;
    struct fdisk_node *n = fdisk_find(&v->disk, path, &parent, &name);
    bool create = n == NULL && (flags & VFS_CREATE);
    int rc = count_call(v, create ? VFS_CALL_CREATE : VFS_CALL_OPEN, path, NULL);
    if (rc)
        return rc;
    if (!n && (!create || !parent))
        return ERR_NOTFOUND;
    if (n && (flags & VFS_CREATE) && (flags & VFS_EXCL))
        return ERR_EXISTS;
    if (n && n->is_dir)
        return ERR_IO;
    if (!n)
        n = fdisk_create(&v->disk, parent, name, false);
    else if (flags & VFS_TRUNCATE)
        fdisk_truncate(&v->disk, n, 0);
    *out = handle_new(v, n, path);
    return 0;
}

static int faulty_open(struct vfs *fs, const char *path, int flags, struct vfs_file **out, struct errmsg *msg)
{
    struct vfs_faulty *v = enter(fs);
    int rc = leave(v, faulty_open_locked(v, path, flags, out));
    return rc ? err_set(msg, rc, "cannot open %s: %s", path, err_text(rc)) : 0;
}

// How many of `len` bytes at `pos` there is room for.
static size_t room_for(struct vfs_faulty *v, const struct fdisk_node *n, uint64_t pos, size_t len)
{
    if (v->capacity == 0)
        return len;
    uint64_t have = n->now.size > n->reserved ? n->now.size : n->reserved;
    uint64_t used = fdisk_used(&v->disk);
    uint64_t end_max = have + (v->capacity > used ? v->capacity - used : 0);
    if (pos >= end_max)
        return 0;
    return end_max - pos < len ? (size_t)(end_max - pos) : len;
}

static int faulty_pwritev(struct vfs_file *f, const struct iovec *iov, int count, uint64_t pos)
{
    struct faulty_file *h;
    bool partial = false;
    int rc = enter_file(f, VFS_CALL_WRITE, &h, &partial);
    size_t len = 0;
    for (int i = 0; i < count; i++)
        len += iov[i].iov_len;
    size_t write = rc ? 0 : len;
    if (rc && partial && len)
        write = (size_t)(fdisk_random(&h->v->rng) % len);
    size_t room = room_for(h->v, h->node, pos, write);
    if (room < write) {
        write = room;
        rc = rc ? rc : ERR_NOSPACE;
    }
    uint8_t *all = mem_alloc(len ? len : 1);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    fdisk_write(&h->v->disk, h->node, all, write, pos);
    mem_free(all);
    return leave(h->v, rc);
}

static int faulty_size(struct vfs_file *f, uint64_t *out)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_STAT, &h, NULL);
    *out = rc ? 0 : h->node->now.size;
    return leave(h->v, rc);
}

static int faulty_truncate(struct vfs_file *f, uint64_t size)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_TRUNCATE, &h, NULL);
    if (rc == 0)
        fdisk_truncate(&h->v->disk, h->node, size);
    return leave(h->v, rc);
}

static int faulty_allocate(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_ALLOCATE, &h, NULL);
    if (rc == 0 && room_for(h->v, h->node, pos, (size_t)len) < len)
        rc = ERR_NOSPACE;
    if (rc == 0 && pos + len > h->node->reserved)
        h->node->reserved = pos + len;
    return leave(h->v, rc);
}

static int faulty_sync(struct vfs_file *f)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_SYNC, &h, NULL);
    if (rc == 0)
        fdisk_sync_file(h->node);
    return leave(h->v, rc);
}

static int faulty_cached(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    struct faulty_file *h = (struct faulty_file *)f;
    mutex_lock(&h->v->lock);
    int answer = h->v->cached || h->node->warm_epoch == h->v->cold_epoch;
    return leave(h->v, answer);
}

static int faulty_readahead(struct vfs_file *f, uint64_t pos, uint64_t len)
{
    struct faulty_file *h;
    int rc = enter_file(f, VFS_CALL_READ, &h, NULL);
    if (rc == 0)
        h->node->warm_epoch = h->v->cold_epoch;
    return leave(h->v, rc);
}

// ---- names ------------------------------------------------------------------------------------------------
static int faulty_sync_dir(struct vfs *fs, const char *path)
{
    struct vfs_faulty *v = enter(fs);
    int rc = count_call(v, VFS_CALL_SYNC_DIR, path, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, path, NULL, NULL);
    if (rc == 0 && (!n || !n->is_dir))
        rc = ERR_NOTFOUND;
    if (rc == 0)
        fdisk_sync_names(&v->disk, n);
    return leave(v, rc);
}

static int faulty_sync_fs(struct vfs *fs, const char *path)
{
    struct vfs_faulty *v = enter(fs);
    int rc = count_call(v, VFS_CALL_SYNC_FS, path, NULL);
    if (rc == 0)
        fdisk_sync_everything(&v->disk);
    return leave(v, rc);
}

static int faulty_mkdir(struct vfs *fs, const char *path)
{
    struct vfs_faulty *v = enter(fs);
    struct fdisk_node *parent;
    const char *name;
    int rc = count_call(v, VFS_CALL_MKDIR, path, NULL);
    if (rc == 0 && fdisk_find(&v->disk, path, &parent, &name))
        rc = ERR_EXISTS;
    if (rc == 0 && !parent)
        rc = ERR_NOTFOUND;
    if (rc == 0)
        (void)fdisk_create(&v->disk, parent, name, true);
    return leave(v, rc);
}

static int faulty_rename(struct vfs *fs, const char *from, const char *to)
{
    struct vfs_faulty *v = enter(fs);
    struct fdisk_node *from_dir, *to_dir;
    const char *from_name, *to_name;
    int rc = count_call(v, VFS_CALL_RENAME, from, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, from, &from_dir, &from_name);
    struct fdisk_node *old = fdisk_find(&v->disk, to, &to_dir, &to_name);
    if (rc == 0 && (!n || !from_dir || !to_dir))
        rc = ERR_NOTFOUND;
    if (rc == 0 && old && old->is_dir && old->names.count > 0)
        rc = ERR_EXISTS;
    if (rc == 0 && n != old)
        fdisk_move(&v->disk, from_dir, from_name, to_dir, to_name);
    return leave(v, rc);
}

static int remove_name(struct vfs *fs, const char *path, enum vfs_call kind)
{
    struct vfs_faulty *v = enter(fs);
    struct fdisk_node *parent;
    const char *name;
    int rc = count_call(v, kind, path, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, path, &parent, &name);
    if (rc == 0 && (!n || !parent))
        rc = ERR_NOTFOUND;
    if (rc == 0 && n->is_dir != (kind == VFS_CALL_RMDIR))
        rc = ERR_IO;
    if (rc == 0 && n->is_dir && n->names.count > 0)
        rc = ERR_EXISTS;
    if (rc == 0)
        fdisk_unlink(&v->disk, parent, name);
    return leave(v, rc);
}

static int faulty_unlink(struct vfs *fs, const char *path)
{
    return remove_name(fs, path, VFS_CALL_UNLINK);
}
static int faulty_rmdir(struct vfs *fs, const char *path)
{
    return remove_name(fs, path, VFS_CALL_RMDIR);
}

static int faulty_stat(struct vfs *fs, const char *path, struct vfs_stat *out)
{
    struct vfs_faulty *v = enter(fs);
    int rc = count_call(v, VFS_CALL_STAT, path, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, path, NULL, NULL);
    if (rc == 0 && !n)
        rc = ERR_NOTFOUND;
    if (rc == 0)
        *out = (struct vfs_stat){.size = n->now.size, .mtime = n->mtime, .is_dir = n->is_dir};
    return leave(v, rc);
}

struct listed {
    char *name;  // copy
    bool is_dir; // directory
};

static int faulty_list(struct vfs *fs, const char *path, int (*each)(void *, const char *, bool), void *data)
{
    struct vfs_faulty *v = enter(fs);
    int rc = count_call(v, VFS_CALL_LIST, path, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, path, NULL, NULL);
    if (rc == 0 && (!n || !n->is_dir))
        rc = ERR_NOTFOUND;
    if (rc)
        return leave(v, rc);
    unsigned count = n->names.count; // a copy: `each` may call back into the vfs
    struct listed *all = mem_calloc(count ? count : 1, sizeof(*all));
    for (unsigned i = 0; i < count; i++)
        all[i] = (struct listed){mem_strdup(n->names.list[i].name), n->names.list[i].node->is_dir};
    mutex_unlock(&v->lock);
    for (unsigned i = 0; i < count; i++) {
        if (rc == 0)
            rc = each(data, all[i].name, all[i].is_dir);
        mem_free(all[i].name);
    }
    mem_free(all);
    return rc;
}

static int faulty_lock(struct vfs *fs, const char *path, struct vfs_file **out)
{
    struct vfs_faulty *v = enter(fs);
    struct fdisk_node *parent;
    const char *name;
    int rc = count_call(v, VFS_CALL_LOCK, path, NULL);
    struct fdisk_node *n = fdisk_find(&v->disk, path, &parent, &name);
    if (rc == 0 && !n && !parent)
        rc = ERR_NOTFOUND;
    if (rc)
        return leave(v, rc);
    if (!n)
        n = fdisk_create(&v->disk, parent, name, false);
    if (n->lock_generation == v->generation)
        return leave(v, ERR_LOCKED);
    n->lock_generation = v->generation;
    *out = handle_new(v, n, path);
    ((struct faulty_file *)*out)->locked = true;
    return leave(v, 0);
}

static int faulty_space(struct vfs *fs, const char *path, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct vfs_faulty *v = enter(fs);
    uint64_t used = fdisk_used(&v->disk);
    *total_bytes = v->capacity ? v->capacity : (uint64_t)1 << 40;
    *free_bytes = *total_bytes > used ? *total_bytes - used : 0;
    return leave(v, 0);
}

static const struct vfs_ops faulty_ops = {
    .name = "faulty",
    .open = faulty_open,
    .close = faulty_close,
    .pread = faulty_pread,
    .pwritev = faulty_pwritev,
    .size = faulty_size,
    .truncate = faulty_truncate,
    .allocate = faulty_allocate,
    .sync = faulty_sync,
    .cached = faulty_cached,
    .readahead = faulty_readahead,
    .sync_dir = faulty_sync_dir,
    .sync_fs = faulty_sync_fs,
    .mkdir = faulty_mkdir,
    .rename = faulty_rename,
    .unlink = faulty_unlink,
    .rmdir = faulty_rmdir,
    .stat = faulty_stat,
    .list = faulty_list,
    .lock = faulty_lock,
    .space = faulty_space,
};

// ---- for tests --------------------------------------------------------------------------------------------
struct vfs_faulty *vfs_faulty_new(uint64_t seed)
{
    struct vfs_faulty *v = mem_zalloc(sizeof(*v));
    v->fs.ops = &faulty_ops;
    mutex_init(&v->lock);
    fdisk_init(&v->disk);
    v->rng = seed;
    v->generation = 1;
    v->cold_epoch = 1;
    v->cached = true;
    return v;
}

void vfs_faulty_free(struct vfs_faulty *v)
{
    MUST(v->open_files == 0);
    fdisk_fini(&v->disk);
    mem_free(v->fail_path);
    mutex_fini(&v->lock);
    mem_free(v);
}

struct vfs *vfs_faulty_fs(struct vfs_faulty *v)
{
    return &v->fs;
}

void vfs_faulty_fail(struct vfs_faulty *v, enum vfs_call kind, uint64_t n, int err, bool sticky, bool partial)
{
    v->rules[kind] = (struct fault_rule){n, err, sticky, partial};
}

void vfs_faulty_fail_path(struct vfs_faulty *v, const char *part)
{
    mem_free(v->fail_path);
    v->fail_path = part ? mem_strdup(part) : NULL;
}

void vfs_faulty_heal(struct vfs_faulty *v)
{
    memset(v->rules, 0, sizeof(v->rules));
    vfs_faulty_fail_path(v, NULL);
}

uint64_t vfs_faulty_calls(const struct vfs_faulty *v, enum vfs_call kind)
{
    return v->calls[kind];
}
uint64_t vfs_faulty_failed(const struct vfs_faulty *v)
{
    return v->failed;
}
void vfs_faulty_set_capacity(struct vfs_faulty *v, uint64_t bytes)
{
    v->capacity = bytes;
}
void vfs_faulty_set_time(struct vfs_faulty *v, time_ms now)
{
    v->disk.now = now;
}

void vfs_faulty_set_cached(struct vfs_faulty *v, bool cached)
{
    v->cached = cached;
    v->cold_epoch++;
}

void vfs_faulty_crash(struct vfs_faulty *v, uint64_t seed)
{
    fdisk_crash(&v->disk, seed, false);
    vfs_faulty_kill(v);
}

void vfs_faulty_crash_hard(struct vfs_faulty *v)
{
    fdisk_crash(&v->disk, 0, true);
    vfs_faulty_kill(v);
}

void vfs_faulty_kill(struct vfs_faulty *v)
{
    v->generation++;
}

int vfs_faulty_corrupt(struct vfs_faulty *v, const char *path, uint64_t pos, uint8_t xor_mask)
{
    struct fdisk_node *n = fdisk_find(&v->disk, path, NULL, NULL);
    if (!n)
        return ERR_NOTFOUND;
    if (pos >= n->now.size)
        return ERR_RANGE;
    n->now.data[pos] ^= xor_mask;
    if (pos < n->durable.size)
        n->durable.data[pos] ^= xor_mask;
    return 0;
}

bool vfs_faulty_exists(const struct vfs_faulty *v, const char *path)
{
    return fdisk_find((struct fdisk *)(uintptr_t)&v->disk, path, NULL, NULL) != NULL;
}

uint64_t vfs_faulty_used(const struct vfs_faulty *v)
{
    return fdisk_used(&v->disk);
}
unsigned vfs_faulty_open_files(const struct vfs_faulty *v)
{
    return v->open_files;
}
