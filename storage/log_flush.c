// SPDX-License-Identifier: Apache-2.0
// Making a log durable: what is dirty, syncing it without the lock, moving the recovery point.
//
// begin (lock): epoch file and transaction index are written if they are behind, handles of the oldest dirty
// segments taken. run (no lock): fdatasync of each; then the directory if names changed. end (lock): if no
// truncation came in between, the segments' synced sizes and the recovery point move. A failed sync takes the
// directory offline: the kernel may have thrown the pages away.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/log_impl.h"

#define FILES_PER_SEGMENT 5 // .log, .index, .timeindex, .txnindex, the .snapshot of its end

static bool segment_dirty(const struct segment *s)
{
    return s->synced < s->size || s->cut_unsynced || s->index_unsynced;
}

// Opens the side file of a segment for the sync; one that is not there is none to sync.
static int take_side(struct plog_flush *f, const struct segment_place *at, log_offset base,
                     enum layout_kind kind)
{
    char path[LAYOUT_PATH_BYTES];
    struct vfs_file *file;
    if (!layout_path(path, at->dir, base, kind, LAYOUT_PLAIN))
        return ERR_TOO_LARGE;
    int rc = at->fs->ops->open(at->fs, path, VFS_WRITE, &file, NULL);
    if (rc == 0)
        f->files[f->count++] = file;
    return rc == ERR_NOTFOUND ? 0 : rc;
}

static int take_segment(struct partition_log *log, struct plog_flush *f, const struct segment_place *at,
                        unsigned i)
{
    struct segment *s = log->loaded->segments[i];
    int rc = 0;
    if (s->synced < s->size || s->cut_unsynced) {
        rc = segment_open(s, at, 0, &f->files[f->count], NULL);
        f->count += rc == 0;
    }
    for (int k = LAYOUT_INDEX; k <= LAYOUT_TXNINDEX && rc == 0 && s->index_unsynced; k++)
        rc = take_side(f, at, s->base, (enum layout_kind)k);
    if (rc == 0 && s->index_unsynced &&
        i + 1 < log->loaded->count) // written at the roll, as the indexes were
        rc = take_side(f, at, log->loaded->segments[i + 1]->base, LAYOUT_SNAPSHOT);
    return rc;
}

bool plog_flush_begin(struct partition_log *log, struct plog_flush *f)
{
    struct log_loaded *l = log->loaded;
    *f = (struct plog_flush){.log = log, .up_to = -1};
    if (!l || !l->count || log_dir_is_offline(log->dir))
        return false;
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    f->generation = l->generation;
    struct errmsg msg;
    plog__snapshots_drop_stale(log);
    f->result = plog__write_epochs(log, false, &msg);
    if (f->result == 0)
        f->result = plog__write_aborted(log, &msg);
    f->epochs = l->epochs_unsynced;
    if (f->result == 0 && f->epochs) {
        char path[LAYOUT_PATH_BYTES];
        if (layout_join(path, dir, EPOCH_CACHE_NAME))
            f->result = at.fs->ops->open(at.fs, path, VFS_WRITE, &f->files[f->count], NULL);
        f->count += f->result == 0;
        if (f->result == ERR_NOTFOUND) // there are no epochs yet
            f->result = 0;
    }
    f->up_to = plog__load(&log->end);
    f->through = l->count;
    for (unsigned i = 0; i < l->count && f->result == 0; i++) {
        if (!segment_dirty(l->segments[i]))
            continue;
        if (f->count + FILES_PER_SEGMENT > PLOG_FLUSH_FILES) { // the rest is for the next time
            f->up_to = l->segments[i]->base;
            f->through = i;
            break;
        }
        f->result = take_segment(log, f, &at, i);
    }
    f->active = plog__active(log)->base;
    f->size = plog__active(log)->size;
    if (l->names_unsynced) {
        f->sync_dir = mem_strdup(dir);
        f->names = l->names_unsynced;
    }
    return f->result || f->count || f->sync_dir || f->up_to > plog__load(&log->recovery);
}

int plog_flush_run(struct plog_flush *f, struct errmsg *msg)
{
    struct vfs *fs = log_dir_fs(f->log->dir);
    for (unsigned i = 0; i < f->count && f->result == 0; i++) {
        f->result = fs->ops->sync(f->files[i]);
        if (f->result)
            (void)err_set(msg, f->result, "cannot sync %s-%d: %s", f->log->topic, (int)f->log->partition,
                          err_text(f->result));
    }
    if (f->result == 0 && f->sync_dir) {
        f->result = fs->ops->sync_dir(fs, f->sync_dir);
        if (f->result == 0) // its own name, where it is new
            f->result = fs->ops->sync_dir(fs, log_dir_path(f->log->dir));
        if (f->result)
            (void)err_set(msg, f->result, "cannot sync the directory %s: %s", f->sync_dir,
                          err_text(f->result));
    }
    return f->result;
}

void plog_flush_synced(struct plog_flush *f)
{
    MUST(f->log->magic == PARTITION_LOG_MAGIC);
}

int plog_flush_end(struct plog_flush *f, struct errmsg *msg)
{
    struct partition_log *log = f->log;
    struct log_loaded *l = log->loaded;
    for (unsigned i = 0; i < f->count; i++)
        vfs_file_unref(f->files[i]);
    int rc = f->result;
    bool same = l && l->generation == f->generation;
    if (rc == 0 && l && f->epochs && l->epochs_unsynced == f->epochs)
        l->epochs_unsynced = 0;
    if (rc == 0 && l && f->sync_dir && l->names_unsynced == f->names)
        l->names_unsynced = 0; // else more were made meanwhile
    if (rc == 0 && same) {
        for (unsigned i = 0; i < f->through; i++) {
            struct segment *s = l->segments[i];
            bool was_active = s->base == f->active;
            s->synced = was_active ? (f->size > s->synced ? f->size : s->synced) : s->size;
            s->cut_unsynced = false;
            if (!was_active || i + 1 == l->count)
                s->index_unsynced = false;
        }
        if (f->up_to > plog__load(&log->recovery)) {
            plog__store(&log->recovery, f->up_to);
            log_dir__touch(log->dir, false);
        }
        if (plog__load(&log->end) <= f->up_to)
            l->unflushed_since = -1;
    }
    mem_free(f->sync_dir);
    f->sync_dir = NULL;
    f->count = 0;
    if (rc == 0)
        return 0;
    struct errmsg why;
    (void)err_set(&why, rc, "%s", err_text(rc));
    (void)plog__failed(log, rc, &why, "flush failed");
    return err_set(msg, rc, "%s", why.text);
}

int plog_flush_all(struct partition_log *log, struct errmsg *msg)
{
    int rc = plog__need_online(log, msg);
    struct plog_flush f;
    while (rc == 0 && plog_flush_begin(log, &f)) {
        log_offset before = plog__load(&log->recovery);
        (void)plog_flush_run(&f, msg);
        rc = plog_flush_end(&f, msg);
        if (rc == 0 && plog__load(&log->recovery) == before && f.up_to <= before)
            break; // only names or side files were behind
    }
    return rc;
}

bool plog_flush_wanted(const struct partition_log *log, time_ms now)
{
    const struct log_loaded *l = log->loaded;
    if (!l || !l->count)
        return false;
    log_offset behind = plog__load(&log->end) - plog__load(&log->recovery);
    if (behind >= log->config->flush_messages)
        return true;
    if (l->unflushed_since >= 0 && log->config->flush_ms != INT64_MAX &&
        now - l->unflushed_since >= log->config->flush_ms)
        return true;
    return l->count > 1 && segment_dirty(l->segments[l->count - 2]);
}
