// SPDX-License-Identifier: Apache-2.0
// Opening, loading and closing a partition's log.
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "storage/log_impl.h"
#include "storage/partition_metadata.h"
#include "storage/small_file.h"

void plog__dir(const struct partition_log *log, char buf[LAYOUT_PATH_BYTES])
{
    (void)snprintf(buf, LAYOUT_PATH_BYTES, "%s/%s-%d", log_dir_path(log->dir), log->topic,
                   (int)log->partition);
}

void plog__place(const struct partition_log *log, char dir[LAYOUT_PATH_BYTES], struct segment_place *at)
{
    plog__dir(log, dir);
    *at = (struct segment_place){log_dir_fs(log->dir), log_dir__files(log->dir), dir};
}

void plog_path(const struct partition_log *log, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s/%s-%d", log_dir_path(log->dir), log->topic, (int)log->partition);
}

// ---- memory -----------------------------------------------------------------------------------------------
static struct log_loaded *loaded_new(void)
{
    struct log_loaded *l = mem_zalloc(sizeof(*l));
    epoch_cache_init(&l->epochs);
    l->producers_saved = -1;
    l->unflushed_since = -1;
    for (int i = 0; i < LOG_HINTS; i++)
        l->hints[i].offset = -1;
    return l;
}

void plog__unload(struct partition_log *log)
{
    struct log_loaded *l = log->loaded;
    if (!l)
        return;
    for (unsigned i = 0; i < l->count; i++)
        segment_free(l->segments[i], log_dir__files(log->dir));
    mem_free(l->segments);
    epoch_cache_fini(&l->epochs);
    producer_states_free(l->producers);
    txn_index_fini(&l->aborted);
    mem_free(l->snapshots);
    mem_free(l->stale);
    mem_free(l->iov);
    mem_free(l);
    log->loaded = NULL;
}

static void log_free(struct partition_log *log)
{
    plog__unload(log);
    log_config_unref(log->config);
    mem_free(log->topic);
    log->magic = 0;
    mem_free(log);
}

static struct partition_log *log_new(struct log_dir *dir, const struct plog_open_args *args)
{
    struct partition_log *log = mem_zalloc(sizeof(*log));
    log->magic = PARTITION_LOG_MAGIC;
    log->partition = args->partition;
    log->topic = mem_strdup(args->topic);
    log->topic_id = args->topic_id;
    log->dir = dir;
    log->config = log_config_ref(args->config);
    log->last_epoch = -1;
    plog__store(&log->first_base, -1);
    log->no_producers = strcmp(args->topic, "__cluster_metadata") == 0;
    return log;
}

// ---- open -------------------------------------------------------------------------------------------------
// The
// topic id on disk against the one that is expected; a missing file is written anew and reported.
static int check_metadata(struct partition_log *log, struct plog_recovery *report, struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    struct uuid found;
    int rc = partition_metadata_read(log_dir_fs(log->dir), dir, &found, msg);
    if (rc == ERR_NOTFOUND || rc == ERR_CORRUPT) {
        report->metadata_missing = true;
        if (uuid_is_zero(log->topic_id))
            return 0;
        rc = partition_metadata_write(log_dir_fs(log->dir), dir, log->topic_id, true, msg);
        log->metadata_written = rc == 0;
        return rc == ERR_NOSPACE ? 0 : rc;
    }
    if (rc)
        return rc;
    if (!uuid_is_zero(log->topic_id) && !uuid_equal(found, log->topic_id)) {
        char a[UUID_TEXT_BYTES], b[UUID_TEXT_BYTES];
        uuid_format(found, a);
        uuid_format(log->topic_id, b);
        return err_set(msg, ERR_INVALID,
                       "%s belongs to topic id %s, not %s: it is left over from a deleted topic", dir, a, b);
    }
    log->topic_id = found;
    log->metadata_written = true;
    return 0;
}

static int load_now(struct partition_log *log, const struct plog_open_args *args,
                    struct plog_recovery *report, struct errmsg *msg)
{
    log->loaded = loaded_new();
    log->changed = true;
    return plog__load_files(log, args->clean, args->intact_below, report, msg);
}

int plog_open(struct log_dir *dir, const struct plog_open_args *args, struct partition_log **out,
              struct errmsg *msg)
{
    struct plog_recovery own = {.scanned = false};
    struct plog_recovery *report = args->report ? args->report : &own;
    memset(report, 0, sizeof(*report));
    *out = NULL;
    if (log_dir_is_offline(dir))
        return err_set(msg, ERR_OFFLINE, "%s is offline: %s", log_dir_path(dir), log_dir_offline_reason(dir));
    if (args->partition < 0 || !*args->topic || strlen(args->topic) > 249 || strchr(args->topic, '/'))
        return err_set(msg, ERR_INVALID, "no valid topic partition: %s-%d", args->topic,
                       (int)args->partition);
    struct log_dir_saved saved;
    log_dir__saved(dir, args->topic, args->partition, &saved);
    struct partition_log *log = log_new(dir, args);
    int rc = 0;
    if (args->existing) {
        log->on_disk = true;
        plog__store(&log->start, saved.start > 0 ? saved.start : 0);
        plog__store(&log->recovery, saved.recovery > 0 ? saved.recovery : 0);
        plog__store(&log->recovery_on_disk, plog__load(&log->recovery));
        if (args->clean && saved.manifest) {
            plog__store(&log->end, saved.end);
            log->size = saved.size;
            log->last_epoch = saved.last_epoch;
            log->metadata_written = true;
        } else {
            rc = check_metadata(log, report, msg);
            if (rc == 0)
                rc = load_now(log, args, report, msg);
            if (rc == ERR_NOSPACE &&
                log_dir__give_reserve(dir)) { // recovery writes: indexes, what it cuts off
                plog__unload(log);
                rc = load_now(log, args, report, msg);
            }
        }
        log_offset hw = saved.watermark > 0 ? saved.watermark : 0;
        plog__store(&log->watermark, hw < plog__load(&log->end) ? hw : plog__load(&log->end));
    }
    report->end_offset = plog__load(&log->end);
    if (rc == ERR_IO && !log_dir_is_offline(dir))
        log_dir_offline(dir, "cannot open %s-%d: %s", args->topic, (int)args->partition,
                        msg ? msg->text : err_text(rc));
    if (rc) {
        log_free(log);
        return rc;
    }
    log_dir__attach(dir, log);
    *out = log;
    return 0;
}

int plog_load(struct partition_log *log, struct errmsg *msg)
{
    if (log->loaded)
        return 0;
    log->loaded = loaded_new();
    if (!log->on_disk)
        return 0;
    struct plog_recovery report = {.scanned = false};
    int rc = plog__load_files(log, true, 0, &report, msg);
    if (rc)
        plog__unload(log);
    return rc;
}

bool plog_is_loaded(const struct partition_log *log)
{
    return log->loaded != NULL;
}

int plog__need_online(struct partition_log *log, struct errmsg *msg)
{
    MUST(log->magic == PARTITION_LOG_MAGIC);
    if (log_dir_is_offline(log->dir))
        return err_set(msg, ERR_OFFLINE, "%s is offline: %s", log_dir_path(log->dir),
                       log_dir_offline_reason(log->dir));
    return 0;
}

int plog__need(struct partition_log *log, struct errmsg *msg)
{
    int rc = plog__need_online(log, msg);
    return rc ? rc : log->loaded ? 0 : plog_load(log, msg);
}

int plog__failed(struct partition_log *log, int rc, struct errmsg *msg, const char *what)
{
    struct errmsg reason;
    (void)err_set(&reason, rc, "%s", msg && msg->text[0] ? msg->text : err_text(rc));
    err_prefix(&reason, "%s-%d: %s", log->topic, (int)log->partition, what);
    if (rc == ERR_NOSPACE)
        log_dir__note_full(log->dir, true);
    else if (rc != ERR_BUSY) // no descriptor left: nothing is wrong with the disk
        log_dir_offline(log->dir, "%s", reason.text);
    return err_set(msg, rc, "%s", reason.text);
}

// ---- making it real ---------------------------------------------------------------------------------------
int plog__create_dir(struct partition_log *log, struct errmsg *msg)
{
    struct vfs *fs = log_dir_fs(log->dir);
    char dir[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    int rc = log->on_disk ? 0 : fs->ops->mkdir(fs, dir);
    if (rc && rc != ERR_EXISTS)
        return err_set(msg, rc, "cannot make the directory %s: %s", dir, err_text(rc));
    if (!log->metadata_written && !uuid_is_zero(log->topic_id)) {
        rc = partition_metadata_write(fs, dir, log->topic_id, false, msg);
        if (rc) {
            if (!log->on_disk)
                (void)fs->ops->rmdir(fs, dir);
            return rc;
        }
        log->metadata_written = true;
    }
    log->on_disk = true;
    log->changed = true;
    log->loaded->names_unsynced++;
    return 0;
}

int plog__new_segment(struct partition_log *log, log_offset base, time_ms now, struct segment **out,
                      struct errmsg *msg)
{
    char dir[LAYOUT_PATH_BYTES];
    struct segment_place at;
    plog__place(log, dir, &at);
    struct segment *s = segment_new(base);
    struct vfs_file *f;
    int rc = segment_open(s, &at, VFS_CREATE | VFS_TRUNCATE, &f, msg);
    if (rc == 0) {
        if (log->config->preallocate) // only a reservation: a file system that has none goes without
            (void)at.fs->ops->allocate(f, 0, (uint64_t)log->config->segment_bytes);
        vfs_file_unref(f);
    } else {
        segment_free(s, at.files);
        return rc;
    }
    s->created = now;
    segment_index_make(s);
    log->loaded->names_unsynced++;
    *out = s;
    return 0;
}

int plog_materialize(struct partition_log *log, time_ms now, struct errmsg *msg)
{
    int rc = plog__need(log, msg);
    if (rc)
        return rc;
    if (log->loaded->count)
        return 0;
    rc = plog__create_dir(log, msg);
    struct segment *s;
    if (rc == 0)
        rc = plog__new_segment(log, plog__load(&log->end), now, &s, msg);
    if (rc)
        return plog__failed(log, rc, msg, "cannot begin the log");
    plog__segment_add(log, s);
    return 0;
}

int plog_set_topic_id(struct partition_log *log, struct uuid topic_id, struct errmsg *msg)
{
    if (uuid_equal(log->topic_id, topic_id))
        return 0;
    if (!uuid_is_zero(log->topic_id))
        return err_set(msg, ERR_INVALID, "%s-%d has another topic id", log->topic, (int)log->partition);
    log->topic_id = topic_id;
    log->changed = true;
    if (!log->on_disk)
        return 0;
    char dir[LAYOUT_PATH_BYTES];
    plog__dir(log, dir);
    int rc = partition_metadata_write(log_dir_fs(log->dir), dir, topic_id, true, msg);
    log->metadata_written = rc == 0;
    return rc ? plog__failed(log, rc, msg, "cannot write partition.metadata") : 0;
}

// ---- the end ----------------------------------------------------------------------------------------------
int plog_close(struct partition_log *log, struct errmsg *msg)
{
    int rc = plog__need_online(log, msg);
    struct log_loaded *l = log->loaded;
    if (rc == 0 && l && log->changed && log->on_disk) {
        struct segment *s = plog__active(log);
        char dir[LAYOUT_PATH_BYTES];
        struct segment_place at;
        plog__place(log, dir, &at);
        plog__snapshots_drop_stale(log);
        if (s) {
            sparse_index_close(s->index, s->base);
            rc = segment_write_indexes(s, &at, msg);
            l->names_unsynced++;
        }
        if (rc == 0)
            rc = plog__snapshot_take(log, msg);
        if (rc == 0)
            rc = plog__write_epochs(log, false, msg);
        if (rc == 0)
            rc = plog__write_aborted(log, msg);
        if (rc)
            (void)plog__failed(log, rc, msg, "cannot close the log");
    }
    log_dir__note_closed(log->dir, log, rc == 0);
    log_dir__detach(log->dir, log);
    log_free(log);
    return rc;
}

void plog_drop(struct partition_log *log)
{
    log_dir__note_closed(log->dir, log, false);
    log_dir__detach(log->dir, log);
    log_free(log);
}

static int retire(struct partition_log *log, const char *uuid_text, enum log_dir_kind kind,
                  struct errmsg *msg)
{
    struct log_dir *d = log->dir;
    char name[300];
    (void)snprintf(name, sizeof(name), "%s-%d", log->topic, (int)log->partition);
    bool on_disk = log->on_disk;
    log_dir__detach(d, log);
    log_free(log);
    return on_disk ? log_dir_retire(d, name, uuid_text, kind, msg) : 0;
}

int plog_delete(struct partition_log *log, const char *uuid_text, struct errmsg *msg)
{
    return retire(log, uuid_text, LOG_DIR_DELETED, msg);
}

int plog_set_stray(struct partition_log *log, const char *uuid_text, struct errmsg *msg)
{
    return retire(log, uuid_text, LOG_DIR_STRAY, msg);
}
