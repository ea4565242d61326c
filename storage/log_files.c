// SPDX-License-Identifier: Apache-2.0
// Listing a partition's directory and clearing up what a crash left in it.
//
// Compaction writes *.cleaned, renames them all to *.swap, takes the old files away (*.deleted) and strips
// .swap. So: a .cleaned that is left means that not all were renamed: drop the .cleaned and every .swap at or
// above the lowest of them; .swap without .cleaned is a complete set: old segments in its range go, and .swap
// is stripped.
#include "storage/log_files.h"
#include <stdlib.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "storage/batch_scan.h"

struct found {
    struct layout_name what; // parsed
    char *name;              // mem_alloc
};
struct listing {
    struct found *list; // every file of a segment, whatever its state
    unsigned count, cap;
};

static int collect(void *data, const char *name, bool is_dir)
{
    struct listing *l = data;
    struct layout_name what = layout_parse(name);
    if (is_dir || (what.kind == LAYOUT_OTHER && what.state != LAYOUT_TMP))
        return 0;
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->list = mem_realloc(l->list, l->cap * sizeof(*l->list));
    }
    l->list[l->count++] = (struct found){what, mem_strdup(name)};
    return 0;
}

static void listing_fini(struct listing *l)
{
    for (unsigned i = 0; i < l->count; i++)
        mem_free(l->list[i].name);
    mem_free(l->list);
}

static int remove_file(struct vfs *fs, const char *dir, struct found *f, bool *changed, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_join(path, dir, f->name))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    int rc = fs->ops->unlink(fs, path);
    f->what.kind = LAYOUT_OTHER;
    *changed = true;
    return rc && rc != ERR_NOTFOUND ? err_set(msg, rc, "cannot remove %s: %s", path, err_text(rc)) : 0;
}

// Offset after the last whole batch of a swap file.
static int swap_end(struct vfs *fs, const char *dir, const struct found *f, log_offset *end,
                    struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES];
    if (!layout_join(path, dir, f->name))
        return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
    struct vfs_file *file;
    uint64_t size = 0;
    int rc = fs->ops->open(fs, path, VFS_READ, &file, msg);
    if (rc)
        return rc;
    rc = fs->ops->size(file, &size);
    *end = f->what.offset;
    struct batch_scan scan;
    batch_scan_init(&scan, file, 0, size, NULL, BATCH_SCAN_LONG_BYTES);
    const uint8_t *b;
    size_t len;
    while (rc == 0 && (rc = batch_scan_header(&scan, &b, &len)) == 0) {
        *end = batch_next_offset(b);
        batch_scan_skip(&scan, len);
    }
    batch_scan_fini(&scan);
    vfs_file_unref(file);
    return rc == ERR_IO ? err_set(msg, rc, "cannot read %s: %s", path, err_text(rc)) : 0;
}

static int finish_swaps(struct vfs *fs, const char *dir, struct listing *l, bool *changed, struct errmsg *msg)
{
    log_offset from = INT64_MAX, to = -1;
    for (unsigned i = 0; i < l->count; i++) {
        struct found *f = &l->list[i];
        if (f->what.kind != LAYOUT_LOG || f->what.state != LAYOUT_SWAP)
            continue;
        log_offset end = -1;
        int rc = swap_end(fs, dir, f, &end, msg);
        if (rc)
            return rc;
        from = f->what.offset < from ? f->what.offset : from;
        to = end > to ? end : to;
    }
    for (unsigned i = 0; i < l->count; i++) { // old segments that the swapped ones replace
        struct found *f = &l->list[i];
        if (f->what.kind == LAYOUT_OTHER || f->what.kind == LAYOUT_SNAPSHOT ||
            f->what.state != LAYOUT_PLAIN || f->what.offset < from || f->what.offset >= to)
            continue;
        int rc = remove_file(fs, dir, f, changed, msg);
        if (rc)
            return rc;
    }
    for (unsigned i = 0; i < l->count; i++) {
        struct found *f = &l->list[i];
        char old[LAYOUT_PATH_BYTES], new[LAYOUT_PATH_BYTES];
        if (f->what.kind == LAYOUT_OTHER || f->what.state != LAYOUT_SWAP)
            continue;
        if (!layout_join(old, dir, f->name) ||
            !layout_path(new, dir, f->what.offset, f->what.kind, LAYOUT_PLAIN))
            return err_set(msg, ERR_TOO_LARGE, "the path of %s is too long", dir);
        int rc = fs->ops->rename(fs, old, new);
        if (rc)
            return err_set(msg, rc, "cannot rename %s to %s: %s", old, new, err_text(rc));
        f->what.state = LAYOUT_PLAIN;
        *changed = true;
    }
    return 0;
}

static int clear_up(struct vfs *fs, const char *dir, struct listing *l, bool *changed, struct errmsg *msg)
{
    log_offset lowest_cleaned = INT64_MAX;
    for (unsigned i = 0; i < l->count; i++) {
        const struct layout_name *w = &l->list[i].what;
        if (w->kind != LAYOUT_OTHER && w->state == LAYOUT_CLEANED && w->offset < lowest_cleaned)
            lowest_cleaned = w->offset;
    }
    for (unsigned i = 0; i < l->count; i++) {
        struct found *f = &l->list[i];
        bool drop = f->what.state == LAYOUT_DELETE || f->what.state == LAYOUT_CLEANED ||
                    f->what.state == LAYOUT_TMP ||
                    (f->what.state == LAYOUT_SWAP && f->what.offset >= lowest_cleaned);
        int rc = drop ? remove_file(fs, dir, f, changed, msg) : 0;
        if (rc)
            return rc;
    }
    return finish_swaps(fs, dir, l, changed, msg);
}

static int by_base(const void *a, const void *b)
{
    const struct log_file_set *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

static int by_offset(const void *a, const void *b)
{
    log_offset x = *(const log_offset *)a, y = *(const log_offset *)b;
    return x < y ? -1 : x > y;
}

static struct log_file_set *find_set(struct log_files *f, log_offset base)
{
    struct log_file_set key = {.base = base};
    return f->sets_count ? bsearch(&key, f->sets, f->sets_count, sizeof(key), by_base) : NULL;
}

int log_files_list(struct vfs *fs, const char *dir, struct log_files *out, struct errmsg *msg)
{
    *out = (struct log_files){NULL, 0, NULL, 0, false};
    struct listing l = {NULL, 0, 0};
    int rc = fs->ops->list(fs, dir, collect, &l);
    if (rc)
        rc = err_set(msg, rc, "cannot list %s: %s", dir, err_text(rc));
    else
        rc = clear_up(fs, dir, &l, &out->changed, msg);
    out->sets = mem_calloc(l.count + 1, sizeof(*out->sets));
    out->snapshots = mem_calloc(l.count + 1, sizeof(*out->snapshots));
    for (unsigned i = 0; i < l.count; i++) {
        const struct layout_name *w = &l.list[i].what;
        if (w->kind == LAYOUT_LOG)
            out->sets[out->sets_count++].base = w->offset;
        else if (w->kind == LAYOUT_SNAPSHOT)
            out->snapshots[out->snapshots_count++] = w->offset;
    }
    qsort(out->sets, out->sets_count, sizeof(*out->sets), by_base);
    qsort(out->snapshots, out->snapshots_count, sizeof(*out->snapshots), by_offset);
    for (unsigned i = 0; i < l.count && rc == 0; i++) {
        struct found *f = &l.list[i];
        if (f->what.kind == LAYOUT_OTHER || f->what.kind == LAYOUT_SNAPSHOT)
            continue;
        struct log_file_set *set = find_set(out, f->what.offset);
        if (set)
            set->has[f->what.kind] = true;
        else
            rc = remove_file(fs, dir, f, &out->changed, msg); // an index without its log
    }
    listing_fini(&l);
    if (rc)
        log_files_fini(out);
    return rc;
}

void log_files_fini(struct log_files *f)
{
    mem_free(f->sets);
    mem_free(f->snapshots);
    *f = (struct log_files){NULL, 0, NULL, 0, false};
}
