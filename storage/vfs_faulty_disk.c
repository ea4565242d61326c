// SPDX-License-Identifier: Apache-2.0
// Files, directories and crashes of the faulty disk.
#include "storage/vfs_faulty_disk.h"
#include "core/base/assert.h"
#include "core/base/mem.h"

#define SECTOR_BYTES 512u // the disk writes whole sectors: a torn write ends at one
#define PAGE_BYTES 4096u  // the kernel writes pages in any order

uint64_t fdisk_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// ---- bytes ------------------------------------------------------------------------------------------------
static void bytes_resize(struct fdisk_bytes *b, size_t size)
{
    if (size > b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 1024;
        b->cap = cap < size ? size : cap;
        b->data = mem_realloc(b->data, b->cap);
    }
    if (size > b->size)
        memset(b->data + b->size, 0, size - b->size);
    b->size = size;
}

static void bytes_write(struct fdisk_bytes *b, const void *data, size_t len, uint64_t pos)
{
    if (pos + len > b->size)
        bytes_resize(b, (size_t)(pos + len));
    if (len)
        memcpy(b->data + pos, data, len);
}

static void bytes_copy(struct fdisk_bytes *to, const struct fdisk_bytes *from)
{
    bytes_resize(to, from->size);
    if (from->size)
        memcpy(to->data, from->data, from->size);
}

// ---- entries ----------------------------------------------------------------------------------------------
static int entry_find(const struct fdisk_entries *e, const char *name, size_t len)
{
    for (unsigned i = 0; i < e->count; i++)
        if (strlen(e->list[i].name) == len && memcmp(e->list[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static void entry_remove(struct fdisk_entries *e, const char *name)
{
    int i = entry_find(e, name, strlen(name));
    if (i < 0)
        return;
    mem_free(e->list[i].name);
    fdisk_unref(e->list[i].node);
    memmove(e->list + i, e->list + i + 1, (e->count - (unsigned)i - 1) * sizeof(*e->list));
    e->count--;
}

static void entry_put(struct fdisk_entries *e, const char *name, struct fdisk_node *node)
{
    fdisk_ref(node);
    entry_remove(e, name);
    if (e->count == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 8;
        e->list = mem_realloc(e->list, e->cap * sizeof(*e->list));
    }
    e->list[e->count++] = (struct fdisk_entry){mem_strdup(name), node};
}

static void entries_clear(struct fdisk_entries *e)
{
    while (e->count > 0) {
        struct fdisk_entry last = e->list[--e->count];
        mem_free(last.name);
        fdisk_unref(last.node);
    }
    mem_free(e->list);
    *e = (struct fdisk_entries){NULL, 0, 0};
}

// ---- nodes ------------------------------------------------------------------------------------------------
static struct fdisk_node *node_new(struct fdisk *d, bool is_dir)
{
    struct fdisk_node *n = mem_zalloc(sizeof(*n));
    n->refs = 1;
    n->is_dir = is_dir;
    n->mtime = d->now;
    n->next = d->nodes;
    n->link = &d->nodes;
    if (n->next)
        n->next->link = &n->next;
    d->nodes = n;
    return n;
}

static void changes_clear(struct fdisk_node *n)
{
    for (unsigned i = 0; i < n->changes_count; i++)
        mem_free(n->changes[i].data);
    n->changes_count = 0;
}

struct fdisk_node *fdisk_ref(struct fdisk_node *n)
{
    n->refs++;
    return n;
}

void fdisk_unref(struct fdisk_node *n)
{
    MUST(n->refs > 0);
    if (--n->refs > 0)
        return;
    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    entries_clear(&n->names);
    entries_clear(&n->durable_names);
    changes_clear(n);
    mem_free(n->changes);
    mem_free(n->now.data);
    mem_free(n->durable.data);
    mem_free(n);
}

void fdisk_init(struct fdisk *d)
{
    *d = (struct fdisk){.now = 0};
    d->root = node_new(d, true);
}

static void rename_fini(struct fdisk_rename *r)
{
    if (r->from_dir)
        fdisk_unref(r->from_dir);
    if (r->to_dir)
        fdisk_unref(r->to_dir);
    if (r->node)
        fdisk_unref(r->node);
    mem_free(r->from_name);
    mem_free(r->to_name);
}

void fdisk_fini(struct fdisk *d)
{
    for (unsigned i = 0; i < d->log_count; i++)
        rename_fini(&d->log[i]);
    mem_free(d->log);
    fdisk_unref(d->root);
}

struct fdisk_node *fdisk_find(struct fdisk *d, const char *path, struct fdisk_node **parent,
                              const char **last)
{
    struct fdisk_node *n = d->root, *up = NULL;
    const char *name = "";
    while (*path == '/')
        path++;
    while (*path) {
        size_t len = strcspn(path, "/");
        up = n;
        name = path;
        path += len;
        while (*path == '/')
            path++;
        int i = n && n->is_dir ? entry_find(&n->names, name, len) : -1;
        n = i < 0 ? NULL : n->names.list[i].node;
        if (!n && *path) {
            up = NULL;
            break;
        }
    }
    if (parent)
        *parent = up && up->is_dir ? up : NULL;
    if (last)
        *last = name;
    return n;
}

// ---- changes ----------------------------------------------------------------------------------------------
static void log_name_change(struct fdisk *d, struct fdisk_node *from, const char *from_name,
                            struct fdisk_node *to, const char *to_name, struct fdisk_node *node)
{
    if (d->log_count == d->log_cap) {
        d->log_cap = d->log_cap ? d->log_cap * 2 : 16;
        d->log = mem_realloc(d->log, d->log_cap * sizeof(*d->log));
    }
    d->log[d->log_count++] = (struct fdisk_rename){
        .from_dir = from ? fdisk_ref(from) : NULL,
        .to_dir = to ? fdisk_ref(to) : NULL,
        .from_name = from ? mem_strdup(from_name) : NULL,
        .to_name = to ? mem_strdup(to_name) : NULL,
        .node = node ? fdisk_ref(node) : NULL,
    };
}

struct fdisk_node *fdisk_create(struct fdisk *d, struct fdisk_node *parent, const char *name, bool is_dir)
{
    struct fdisk_node *n = node_new(d, is_dir);
    entry_put(&parent->names, name, n);
    log_name_change(d, NULL, NULL, parent, name, n);
    fdisk_unref(n); // the name holds it
    return n;
}

void fdisk_unlink(struct fdisk *d, struct fdisk_node *parent, const char *name)
{
    log_name_change(d, parent, name, NULL, NULL, NULL);
    entry_remove(&parent->names, name);
}

void fdisk_move(struct fdisk *d, struct fdisk_node *from, const char *from_name, struct fdisk_node *to,
                const char *to_name)
{
    int i = entry_find(&from->names, from_name, strlen(from_name));
    MUST(i >= 0);
    struct fdisk_node *n = fdisk_ref(from->names.list[i].node);
    log_name_change(d, from, from_name, to, to_name, n);
    entry_remove(&from->names, from_name);
    entry_put(&to->names, to_name, n);
    fdisk_unref(n);
}

static struct fdisk_change *change_add(struct fdisk_node *n)
{
    if (n->changes_count == n->changes_cap) {
        n->changes_cap = n->changes_cap ? n->changes_cap * 2 : 8;
        n->changes = mem_realloc(n->changes, n->changes_cap * sizeof(*n->changes));
    }
    struct fdisk_change *c = &n->changes[n->changes_count++];
    *c = (struct fdisk_change){.pos = 0};
    return c;
}

void fdisk_write(struct fdisk *d, struct fdisk_node *n, const void *data, size_t len, uint64_t pos)
{
    if (len == 0)
        return;
    bytes_write(&n->now, data, len, pos);
    struct fdisk_change *c = change_add(n);
    c->pos = pos;
    c->len = len;
    c->data = mem_dup(data, len);
    n->mtime = d->now;
}

void fdisk_truncate(struct fdisk *d, struct fdisk_node *n, uint64_t size)
{
    bytes_resize(&n->now, (size_t)size);
    struct fdisk_change *c = change_add(n);
    c->is_truncate = true;
    c->pos = size;
    n->reserved = 0;
    n->mtime = d->now;
}

void fdisk_sync_file(struct fdisk_node *n)
{
    for (unsigned i = 0; i < n->changes_count; i++) {
        const struct fdisk_change *c = &n->changes[i];
        if (c->is_truncate)
            bytes_resize(&n->durable, (size_t)c->pos);
        else
            bytes_write(&n->durable, c->data, c->len, c->pos);
    }
    changes_clear(n);
}

static void rename_apply(const struct fdisk_rename *r)
{
    if (r->from_dir)
        entry_remove(&r->from_dir->durable_names, r->from_name);
    if (r->to_dir)
        entry_put(&r->to_dir->durable_names, r->to_name, r->node);
}

void fdisk_sync_names(struct fdisk *d, struct fdisk_node *dir)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < d->log_count; i++) {
        struct fdisk_rename *r = &d->log[i];
        if (dir == NULL || r->from_dir == dir || r->to_dir == dir) {
            rename_apply(r);
            rename_fini(r);
        } else {
            d->log[kept++] = *r;
        }
    }
    d->log_count = kept;
}

void fdisk_sync_everything(struct fdisk *d)
{
    fdisk_sync_names(d, NULL);
    for (struct fdisk_node *n = d->nodes; n; n = n->next)
        fdisk_sync_file(n);
}

static uint64_t used_below(const struct fdisk_node *n)
{
    if (!n->is_dir)
        return n->now.size > n->reserved ? n->now.size : n->reserved;
    uint64_t sum = 0;
    for (unsigned i = 0; i < n->names.count; i++)
        sum += used_below(n->names.list[i].node);
    return sum;
}

uint64_t fdisk_used(const struct fdisk *d)
{
    return used_below(d->root);
}

// ---- crash ------------------------------------------------------------------------------------------------
// Names:
// each directory keeps a prefix of its changes; one that touches two directories is kept by both or none.
static void crash_names(struct fdisk *d, uint64_t *rng, bool hard)
{
    unsigned stop_one_in = 1 + (unsigned)(fdisk_random(rng) % 8);
    for (struct fdisk_node *n = d->nodes; n; n = n->next)
        n->stopped = hard || fdisk_random(rng) % stop_one_in == 0;
    for (unsigned i = 0; i < d->log_count; i++) {
        struct fdisk_rename *r = &d->log[i];
        bool lost = (r->from_dir && r->from_dir->stopped) || (r->to_dir && r->to_dir->stopped);
        if (!lost && fdisk_random(rng) % (4 * stop_one_in) == 0)
            lost = true;
        if (lost && r->from_dir)
            r->from_dir->stopped = true;
        if (lost && r->to_dir)
            r->to_dir->stopped = true;
        if (!lost)
            rename_apply(r);
    }
    for (unsigned i = 0; i < d->log_count; i++)
        rename_fini(&d->log[i]);
    d->log_count = 0;
}

// A write of which the kernel got some pages to the disk, in any order.
static void crash_pages(struct fdisk_node *n, const struct fdisk_change *c, uint64_t *rng)
{
    for (size_t at = 0; at < c->len;) {
        size_t piece = PAGE_BYTES - (size_t)((c->pos + at) % PAGE_BYTES);
        if (piece > c->len - at)
            piece = c->len - at;
        if (fdisk_random(rng) & 1)
            bytes_write(&n->durable, c->data + at, piece, c->pos + at);
        at += piece;
    }
}

static void crash_file(struct fdisk_node *n, uint64_t *rng)
{
    enum { NOTHING, PREFIX, PAGES, ALL } mode = (int)(fdisk_random(rng) % 4);
    unsigned keep = mode == NOTHING ? 0 : n->changes_count;
    if (mode == PREFIX && n->changes_count)
        keep = (unsigned)(fdisk_random(rng) % n->changes_count);
    size_t size = n->durable.size;
    for (unsigned i = 0; i < keep; i++) {
        const struct fdisk_change *c = &n->changes[i];
        if (c->is_truncate)
            bytes_resize(&n->durable, (size_t)c->pos);
        else if (mode == PAGES)
            crash_pages(n, c, rng);
        else
            bytes_write(&n->durable, c->data, c->len, c->pos);
    }
    if (mode == PREFIX && keep < n->changes_count && !n->changes[keep].is_truncate) {
        const struct fdisk_change *c = &n->changes[keep]; // this one is torn at a sector
        size_t part = (size_t)(fdisk_random(rng) % (c->len + 1));
        uint64_t end = (c->pos + part) / SECTOR_BYTES * SECTOR_BYTES;
        if (end > c->pos)
            bytes_write(&n->durable, c->data, (size_t)(end - c->pos), c->pos);
    }
    // The size is metadata of its own: with lost pages the file may be as long as before, or the pages read
    // as zeros.
    if (mode == PAGES && (fdisk_random(rng) & 1) && n->durable.size < n->now.size && size <= n->now.size)
        bytes_resize(&n->durable, n->now.size);
}

void fdisk_crash(struct fdisk *d, uint64_t seed, bool hard)
{
    uint64_t rng = seed;
    crash_names(d, &rng, hard);
    for (struct fdisk_node *n = d->nodes; n; n = n->next) {
        fdisk_ref(n); // clearing names must not free nodes under the walk
        if (!n->is_dir && !hard)
            crash_file(n, &rng);
        changes_clear(n);
    }
    for (struct fdisk_node *n = d->nodes; n; n = n->next) {
        if (n->is_dir) {
            entries_clear(&n->names);
            for (unsigned i = 0; i < n->durable_names.count; i++)
                entry_put(&n->names, n->durable_names.list[i].name, n->durable_names.list[i].node);
        } else {
            bytes_copy(&n->now, &n->durable);
        }
        n->reserved = 0;
        n->lock_generation = 0;
    }
    // Give the walk's references back; freeing one node may free others, so start again after each that went.
    unsigned total = 0, done = 0;
    for (struct fdisk_node *n = d->nodes; n; n = n->next)
        total++;
    struct fdisk_node **all = mem_calloc(total, sizeof(struct fdisk_node *));
    for (struct fdisk_node *n = d->nodes; n; n = n->next)
        all[done++] = n;
    for (unsigned i = 0; i < total; i++)
        fdisk_unref(all[i]);
    mem_free(all);
}
