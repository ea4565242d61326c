// SPDX-License-Identifier: Apache-2.0
// The LRU of open files.
#include "storage/file_cache.h"
#include "core/base/assert.h"
#include "core/base/mem.h"

struct file_cache {
    struct mutex lock;      // around everything below
    struct file_slot *head; // most recently used
    struct file_slot *tail; // least recently used
    unsigned open;          // slots in the list
    unsigned files_max;     // most of them
};

struct file_cache *file_cache_new(unsigned files_max)
{
    struct file_cache *c = mem_zalloc(sizeof(*c));
    mutex_init(&c->lock);
    c->files_max = files_max ? files_max : 1;
    return c;
}

void file_cache_free(struct file_cache *c)
{
    if (!c)
        return;
    MUST(c->open == 0);
    mutex_fini(&c->lock);
    mem_free(c);
}

static void unlink_slot(struct file_cache *c, struct file_slot *s)
{
    if (s->prev)
        s->prev->next = s->next;
    else
        c->head = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        c->tail = s->prev;
    s->prev = s->next = NULL;
    c->open--;
}

static void link_first(struct file_cache *c, struct file_slot *s)
{
    s->prev = NULL;
    s->next = c->head;
    if (c->head)
        c->head->prev = s;
    else
        c->tail = s;
    c->head = s;
    c->open++;
}

// Takes a slot out; gives its file, to be unreferenced without the lock (that may close it).
static struct vfs_file *evict(struct file_cache *c, struct file_slot *s)
{
    struct vfs_file *f = s->file;
    unlink_slot(c, s);
    s->file = NULL;
    return f;
}

struct vfs_file *file_cache_peek(struct file_cache *c, struct file_slot *s)
{
    mutex_lock(&c->lock);
    struct vfs_file *f = s->file;
    if (f) {
        if (c->head != s) {
            unlink_slot(c, s);
            link_first(c, s);
        }
        vfs_file_ref(f);
    }
    mutex_unlock(&c->lock);
    return f;
}

void file_cache_put(struct file_cache *c, struct file_slot *s, struct vfs_file *f)
{
    struct vfs_file *old = NULL, *oldest = NULL;
    vfs_file_ref(f);
    mutex_lock(&c->lock);
    if (s->file)
        old = evict(c, s);
    s->file = f;
    link_first(c, s);
    if (c->open > c->files_max)
        oldest = evict(c, c->tail);
    mutex_unlock(&c->lock);
    if (old)
        vfs_file_unref(old);
    if (oldest)
        vfs_file_unref(oldest);
}

int file_cache_get(struct file_cache *c, struct file_slot *s, struct vfs *fs, const char *path, int flags,
                   struct vfs_file **out, struct errmsg *msg)
{
    *out = file_cache_peek(c, s);
    if (*out)
        return 0;
    int rc;
    while ((rc = fs->ops->open(fs, path, flags, out, msg)) == ERR_BUSY) {
        mutex_lock(&c->lock); // no descriptor left: one that is not in use gives way
        struct vfs_file *oldest = c->tail ? evict(c, c->tail) : NULL;
        mutex_unlock(&c->lock);
        if (!oldest)
            break;
        vfs_file_unref(oldest);
    }
    if (rc == 0)
        file_cache_put(c, s, *out);
    return rc;
}

void file_cache_close(struct file_cache *c, struct file_slot *s)
{
    mutex_lock(&c->lock);
    struct vfs_file *f = s->file ? evict(c, s) : NULL;
    mutex_unlock(&c->lock);
    if (f)
        vfs_file_unref(f);
}

unsigned file_cache_open(struct file_cache *c)
{
    mutex_lock(&c->lock);
    unsigned n = c->open;
    mutex_unlock(&c->lock);
    return n;
}
