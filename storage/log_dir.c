// SPDX-License-Identifier: Apache-2.0
// Opening and closing of a log directory, its health, its reserve file.
//
// Start: lock; read the clean-stop mark and delete it; read checkpoints; read the manifest if the stop was
// clean and delete it. End: checkpoints, manifest, and last of all the mark, each durable before the next.
#include "storage/log_dir.h"
#include <stdarg.h>
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/clean_mark.h"
#include "storage/log_impl.h"
#include "storage/small_file.h"

#define RESERVE_STEP_BYTES (256u << 10)
#define ROOM_BYTES_MAX (16ll << 20) // appended at most before free space is looked at again

void log_dir__path(const struct log_dir *d, const char *name, char buf[LAYOUT_PATH_BYTES])
{
    (void)snprintf(buf, LAYOUT_PATH_BYTES, "%s/%s", d->path, name);
}

// ---- accessors --------------------------------------------------------------------------------------------
const char *log_dir_path(const struct log_dir *d)
{
    return d->path;
}
struct vfs *log_dir_fs(const struct log_dir *d)
{
    return d->fs;
}
struct uuid log_dir_id(const struct log_dir *d)
{
    return d->id;
}
void log_dir_set_id(struct log_dir *d, struct uuid directory_id)
{
    d->id = directory_id;
}
bool log_dir_was_clean(const struct log_dir *d)
{
    return d->was_clean;
}
broker_epoch log_dir_previous_epoch(const struct log_dir *d)
{
    return d->previous;
}
const char *log_dir_warning(const struct log_dir *d)
{
    return d->warning.text;
}
struct file_cache *log_dir__files(const struct log_dir *d)
{
    return d->files;
}
void log_dir_loaded(struct log_dir *d)
{
    d->loaded = true;
}

// ---- health -----------------------------------------------------------------------------------------------
bool log_dir_is_offline(const struct log_dir *d)
{
    return atomic_load_explicit(&d->is_offline, memory_order_acquire);
}
const char *log_dir_offline_reason(const struct log_dir *d)
{
    return log_dir_is_offline(d) ? d->reason.text : "";
}

void log_dir_offline(struct log_dir *d, const char *fmt, ...)
{
    if (atomic_exchange(&d->reason_set, true))
        return; // the first reason counts
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(d->reason.text, sizeof(d->reason.text), fmt, ap);
    va_end(ap);
    atomic_store_explicit(&d->is_offline, true, memory_order_release);
    if (d->offline)
        d->offline(d->data, d, d->reason.text);
}

int log_dir_space(struct log_dir *d, uint64_t *free_bytes, uint64_t *total_bytes)
{
    return d->fs->ops->space(d->fs, d->path, free_bytes, total_bytes);
}

bool log_dir_is_full(const struct log_dir *d)
{
    return atomic_load_explicit(&d->full, memory_order_relaxed);
}
void log_dir__note_full(struct log_dir *d, bool full)
{
    atomic_store_explicit(&d->full, full, memory_order_relaxed);
}

bool log_dir__has_room(struct log_dir *d, uint64_t bytes)
{
    if (!d->keep_free_bytes ||
        atomic_fetch_sub_explicit(&d->room, (int64_t)bytes, memory_order_relaxed) >= (int64_t)bytes)
        return true;
    uint64_t available = 0, total = 0, room = 0;
    bool known = log_dir_space(d, &available, &total) == 0;
    if (available > d->keep_free_bytes)
        room = available - d->keep_free_bytes;
    // A quarter: others write there, too.
    atomic_store_explicit(&d->room, (int64_t)(room / 4 < ROOM_BYTES_MAX ? room / 4 : ROOM_BYTES_MAX),
                          memory_order_relaxed);
    return !known || bytes <= room;
}

int log_dir_sync_all(struct log_dir *d, struct errmsg *msg)
{
    int rc = d->fs->ops->sync_fs(d->fs, d->path);
    if (rc) {
        log_dir_offline(d, "cannot sync the file system of %s: %s", d->path, err_text(rc));
        return err_set(msg, rc, "%s", d->reason.text);
    }
    return 0;
}

// ---- reserve ----------------------------------------------------------------------------------------------
bool log_dir__give_reserve(struct log_dir *d)
{
    if (!atomic_exchange(&d->reserve_there, false))
        return false;
    char path[LAYOUT_PATH_BYTES];
    log_dir__path(d, LOG_DIR_RESERVE_NAME, path);
    return d->fs->ops->unlink(d->fs, path) == 0;
}

static int fill_reserve(struct log_dir *d, struct vfs_file *f)
{
    int rc = d->fs->ops->allocate(f, 0, d->reserve_bytes);
    if (rc != ERR_UNSUPPORTED)
        return rc;
    uint8_t *zeros = mem_zalloc(RESERVE_STEP_BYTES);
    rc = 0;
    for (uint64_t at = 0; at < d->reserve_bytes && rc == 0; at += RESERVE_STEP_BYTES) {
        struct iovec iov = {zeros, RESERVE_STEP_BYTES};
        rc = d->fs->ops->pwritev(f, &iov, 1, at);
    }
    mem_free(zeros);
    return rc;
}

int log_dir_reserve_restore(struct log_dir *d, struct errmsg *msg)
{
    if (d->reserve_bytes == 0 || atomic_load(&d->reserve_there))
        return 0;
    uint64_t available = 0, total = 0;
    int rc = log_dir_space(d, &available, &total);
    if (rc == 0 && available < 2 * d->reserve_bytes) // not the last that others need
        rc = ERR_NOSPACE;
    if (rc)
        return err_set(msg, rc, "no room for the reserve file of %s: %s", d->path, err_text(rc));
    char path[LAYOUT_PATH_BYTES];
    log_dir__path(d, LOG_DIR_RESERVE_NAME, path);
    struct vfs_file *f;
    rc = d->fs->ops->open(d->fs, path, VFS_WRITE | VFS_CREATE, &f, msg);
    if (rc)
        return rc;
    rc = fill_reserve(d, f);
    vfs_file_unref(f);
    if (rc) {
        (void)d->fs->ops->unlink(d->fs, path);
        return err_set(msg, rc, "cannot make the reserve file of %s: %s", d->path, err_text(rc));
    }
    atomic_store(&d->reserve_there, true);
    return 0;
}

// ---- open -------------------------------------------------------------------------------------------------
static int make_dirs(struct vfs *fs, const char *path, struct errmsg *msg)
{
    struct vfs_stat st;
    if (fs->ops->stat(fs, path, &st) == 0)
        return st.is_dir ? 0 : err_set(msg, ERR_INVALID, "%s is not a directory", path);
    char part[LAYOUT_PATH_BYTES];
    size_t len = strlen(path);
    if (len == 0 || len + 256 >= LAYOUT_PATH_BYTES)
        return err_set(msg, ERR_TOO_LARGE, "the path \"%s\" is empty or too long", path);
    for (size_t i = 1; i <= len; i++) {
        if (i < len && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        int rc = fs->ops->mkdir(fs, part);
        if (rc == 0) { // its name must survive as well as what will be in it
            char *slash = strrchr(part, '/');
            char keep = slash && slash > part ? *slash : 0;
            if (keep)
                *slash = 0;
            rc = fs->ops->sync_dir(fs, keep ? part : slash ? "/" : ".");
            if (keep)
                *slash = keep;
        }
        if (rc && rc != ERR_EXISTS)
            return err_set(msg, rc, "cannot make the directory %s: %s", part, err_text(rc));
    }
    return 0;
}

// Reads and deletes the clean-stop mark: whatever happens from now on is no clean stop until it is written
// again.
static int take_mark(struct log_dir *d, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES], *text;
    size_t len;
    struct errmsg why;
    log_dir__path(d, CLEAN_MARK_NAME, path);
    d->previous = -1;
    int rc = small_file_read(d->fs, path, &text, &len, &why);
    if (rc == ERR_NOTFOUND)
        return 0;
    if (rc)
        return err_set(msg, rc, "%s", why.text);
    rc = clean_mark_parse(slice_of(text, len), &d->previous, &why);
    mem_free(text);
    d->was_clean = rc == 0;
    if (rc)
        (void)err_set(&d->warning, rc, "%s: %s", path, why.text);
    rc = d->fs->ops->unlink(d->fs, path);
    if (rc == 0)
        rc = d->fs->ops->sync_dir(d->fs, d->path);
    return rc ? err_set(msg, rc, "cannot remove %s: %s", path, err_text(rc)) : 0;
}

static int note_manifest(void *data, const struct manifest_entry *e)
{
    struct log_dir *d = data;
    char name[LOG_DIR_NAME_BYTES];
    int n = snprintf(name, sizeof(name), SLICE_FMT "-%d", SLICE_ARG(e->topic), (int)e->partition);
    if (n <= 0 || n >= (int)sizeof(name))
        return ERR_CORRUPT;
    struct log_dir_saved *s = log_dir__obtain(&d->saved, name, e->topic.len, e->partition);
    s->manifest = true;
    s->topic_id = e->topic_id;
    s->start = e->start;
    s->end = e->end;
    s->watermark = e->watermark;
    s->recovery = e->recovery;
    s->size = e->size;
    s->last_epoch = e->last_epoch;
    return 0;
}

static int take_manifest(struct log_dir *d, const struct manifest_sums *sums, struct errmsg *msg)
{
    char path[LAYOUT_PATH_BYTES], *text;
    size_t len;
    struct errmsg why;
    log_dir__path(d, MANIFEST_NAME, path);
    int rc = small_file_read(d->fs, path, &text, &len, &why);
    if (rc == ERR_NOTFOUND)
        return 0;
    if (rc)
        return err_set(msg, rc, "%s", why.text);
    if (d->was_clean && !d->checkpoint_bad)
        d->has_manifest = manifest_parse(slice_of(text, len), sums, note_manifest, d, &why) == 0;
    mem_free(text);
    return small_file_remove(d->fs, path, msg);
}

static void dir_free(struct log_dir *d)
{
    if (d->lock)
        vfs_file_unref(d->lock);
    log_dir__map_clear(&d->saved);
    log_dir__map_clear(&d->closed);
    mutex_fini(&d->writer);
    mutex_fini(&d->mutex);
    mem_free(d->path);
    mem_free(d);
}

int log_dir_open(const struct log_dir_options *opts, struct log_dir **out, struct errmsg *msg)
{
    *out = NULL;
    int rc = make_dirs(opts->fs, opts->path, msg);
    if (rc)
        return rc;
    struct log_dir *d = mem_zalloc(sizeof(*d));
    d->fs = opts->fs;
    d->path = mem_strdup(opts->path);
    d->files = opts->files;
    d->offline = opts->offline;
    d->data = opts->data;
    d->reserve_bytes = opts->reserve_bytes;
    d->keep_free_bytes = opts->keep_free_bytes;
    mutex_init(&d->mutex);
    mutex_init(&d->writer);
    list_init(&d->logs);
    hmap_init(&d->saved, HMAP_SLICE);
    hmap_init(&d->closed, HMAP_SLICE);
    char path[LAYOUT_PATH_BYTES];
    log_dir__path(d, LOG_DIR_LOCK_NAME, path);
    rc = d->fs->ops->lock(d->fs, path, &d->lock);
    if (rc == ERR_LOCKED)
        rc = err_set(msg, rc,
                     "%s is in use by another process: stop it, or give this node a directory of its own",
                     d->path);
    else if (rc)
        rc = err_set(msg, rc, "cannot lock %s: %s. May the user that runs the server write there?", path,
                     err_text(rc));
    struct manifest_sums sums;
    struct errmsg why;
    if (rc == 0)
        rc = take_mark(d, msg);
    if (rc == 0)
        rc = log_dir__read_checkpoints(d, &sums);
    if (rc == 0)
        rc = take_manifest(d, &sums, msg);
    if (rc) {
        dir_free(d);
        return rc;
    }
    log_dir__path(d, LOG_DIR_RESERVE_NAME, path);
    struct vfs_stat st;
    atomic_store(&d->reserve_there, d->fs->ops->stat(d->fs, path, &st) == 0);
    uint64_t available = 0, total = 0;
    if (d->keep_free_bytes && log_dir_space(d, &available, &total) == 0 && available < d->keep_free_bytes) {
        log_dir__note_full(d, true);
        (void)log_dir__give_reserve(d); // so that a start has what it needs
    } else {
        (void)log_dir_reserve_restore(
            d, &why); // on a full disk there is none: recovery says so where it needs it
    }
    *out = d;
    return 0;
}

// ---- logs -------------------------------------------------------------------------------------------------
void log_dir__attach(struct log_dir *d, struct partition_log *log)
{
    mutex_lock(&d->mutex);
    list_add_tail(&d->logs, &log->link);
    mutex_unlock(&d->mutex);
}

void log_dir__detach(struct log_dir *d, struct partition_log *log)
{
    mutex_lock(&d->mutex);
    list_remove(&log->link);
    mutex_unlock(&d->mutex);
    log_dir__touch(d, false);
}

void log_dir__touch(struct log_dir *d, bool watermark_only)
{
    atomic_store_explicit(&d->touched_hw, true, memory_order_relaxed);
    if (!watermark_only)
        atomic_store_explicit(&d->touched, true, memory_order_relaxed);
}

void log_dir__note_closed(struct log_dir *d, const struct partition_log *log, bool good)
{
    char name[LOG_DIR_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s-%d", log->topic, (int)log->partition);
    mutex_lock(&d->mutex);
    if (!good)
        d->close_failed = true;
    d->close_unsynced = d->close_unsynced || (good && log->changed);
    if (good && atomic_load(&log->on_disk)) {
        struct log_dir_saved *s = log_dir__obtain(&d->closed, name, strlen(log->topic), log->partition);
        s->manifest = true;
        s->topic_id = log->topic_id;
        s->start = plog__load(&log->start);
        s->first_base = plog__load(&log->first_base);
        s->end = plog__load(&log->end);
        s->watermark = plog__load(&log->watermark);
        s->recovery = plog__load(&log->recovery);
        s->size = log->size;
        s->last_epoch = log->loaded ? epoch_cache_last(&log->loaded->epochs) : log->last_epoch;
    }
    mutex_unlock(&d->mutex);
}

// ---- close ------------------------------------------------------------------------------------------------
struct strays {
    struct log_dir *d;
    bool found; // a partition directory that no closed log belongs to
};

static int look_for_stray(void *data, const char *name, bool is_dir)
{
    struct strays *s = data;
    char topic[250];
    partition_id partition;
    enum log_dir_kind kind;
    if (is_dir && log_dir_parse_name(name, topic, &partition, &kind) && kind == LOG_DIR_PARTITION &&
        !hmap_get(&s->d->closed, slice_str(name)))
        s->found = true;
    return 0;
}

// Only a manifest that knows every partition directory may spare the next start the listing.
static int write_manifest(struct log_dir *d, const struct manifest_sums *sums, struct errmsg *msg)
{
    struct strays strays = {d, false};
    if (d->fs->ops->list(d->fs, d->path, look_for_stray, &strays) || strays.found)
        return 0;
    struct manifest_writer w;
    manifest_begin(&w);
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&d->closed, &at)) != NULL) {
        const struct log_dir_saved *s = slot->value;
        manifest_add(&w, &(struct manifest_entry){.topic = slice_of(s->name, s->topic_len),
                                                  .partition = s->partition,
                                                  .topic_id = s->topic_id,
                                                  .start = s->start,
                                                  .end = s->end,
                                                  .watermark = s->watermark,
                                                  .recovery = s->recovery,
                                                  .size = s->size,
                                                  .last_epoch = s->last_epoch});
    }
    struct strbuf text;
    manifest_end(&w, sums, &text);
    char path[LAYOUT_PATH_BYTES];
    log_dir__path(d, MANIFEST_NAME, path);
    int rc = small_file_replace(d->fs, path, strbuf_slice(&text), true, msg);
    strbuf_fini(&text);
    return rc;
}

// One sync of the file system for all logs that were closed: then everything of them is on disk.
static int sync_closed(struct log_dir *d, struct errmsg *msg)
{
    int rc = log_dir_sync_all(d, msg);
    size_t at = 0;
    const struct hmap_slot *slot;
    while (rc == 0 && (slot = hmap_next(&d->closed, &at)) != NULL) {
        struct log_dir_saved *s = slot->value;
        s->recovery = s->end;
    }
    return rc;
}

int log_dir_close(struct log_dir *d, broker_epoch epoch, struct errmsg *msg)
{
    MUST(list_is_empty(&d->logs));
    int rc = 0;
    if (!log_dir_is_offline(d) && d->close_unsynced)
        rc = sync_closed(d, msg);
    if (rc == 0 && !log_dir_is_offline(d)) {
        struct manifest_sums sums;
        rc = log_dir__write_all(d, true, &sums, msg);
        bool clean = rc == 0 && d->loaded && !d->close_failed;
        if (clean)
            rc = write_manifest(d, &sums, msg);
        if (clean && rc == 0) {
            char path[LAYOUT_PATH_BYTES], text[64];
            log_dir__path(d, CLEAN_MARK_NAME, path);
            size_t n = clean_mark_format(epoch, text, sizeof(text));
            rc = small_file_replace(d->fs, path, slice_of(text, n), true, msg);
        }
    }
    dir_free(d);
    return rc;
}

void log_dir_drop(struct log_dir *d)
{
    MUST(list_is_empty(&d->logs));
    dir_free(d);
}
