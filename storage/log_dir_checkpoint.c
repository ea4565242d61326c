// SPDX-License-Identifier: Apache-2.0
// The checkpoint files of a log directory: read at the start, written from the open logs.
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/record/crc32c.h"
#include "storage/checkpoint.h"
#include "storage/log_impl.h"
#include "storage/small_file.h"

// ---- what is known of partitions --------------------------------------------------------------------------
struct log_dir_saved *log_dir__obtain(struct hmap *map, const char *name, size_t topic_len,
                                      partition_id partition)
{
    struct log_dir_saved *s = hmap_get(map, slice_str(name));
    if (s)
        return s;
    s = mem_zalloc(sizeof(*s));
    s->name = mem_strdup(name);
    s->topic_len = topic_len;
    s->partition = partition;
    s->recovery = s->watermark = s->start = s->first_base = -1;
    s->last_epoch = -1;
    (void)hmap_put(map, slice_str(s->name), s);
    return s;
}

void log_dir__map_clear(struct hmap *map)
{
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(map, &at)) != NULL) {
        struct log_dir_saved *s = slot->value;
        mem_free(s->name);
        mem_free(s);
    }
    hmap_fini(map);
    hmap_init(map, HMAP_SLICE);
}

void log_dir__saved(struct log_dir *d, const char *topic, partition_id partition, struct log_dir_saved *out)
{
    char name[LOG_DIR_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s-%d", topic, (int)partition);
    mutex_lock(&d->mutex);
    const struct log_dir_saved *s = hmap_get(&d->saved, slice_str(name));
    if (s)
        *out = *s;
    else
        *out = (struct log_dir_saved){
            .recovery = -1, .watermark = -1, .start = -1, .first_base = -1, .last_epoch = -1};
    mutex_unlock(&d->mutex);
}

// ---- reading ----------------------------------------------------------------------------------------------
struct reading {
    struct log_dir *d;
    size_t field; // offset of the log_offset in struct log_dir_saved
};

static int note_entry(void *data, const struct checkpoint_entry *e)
{
    struct reading *r = data;
    char name[LOG_DIR_NAME_BYTES];
    int n = snprintf(name, sizeof(name), SLICE_FMT "-%d", SLICE_ARG(e->topic), (int)e->partition);
    if (n <= 0 || n >= (int)sizeof(name))
        return ERR_CORRUPT;
    struct log_dir_saved *s = log_dir__obtain(&r->d->saved, name, e->topic.len, e->partition);
    *(log_offset *)((char *)s + r->field) = e->offset;
    return 0;
}

static int read_one(struct log_dir *d, const char *file, size_t field, uint32_t *sum, bool *bad)
{
    char path[LAYOUT_PATH_BYTES], *text;
    size_t len;
    struct errmsg why = {""};
    log_dir__path(d, file, path);
    *sum = 0;
    int rc = small_file_read(d->fs, path, &text, &len, &why);
    if (rc == 0) {
        struct reading r = {d, field};
        *sum = crc32c(text, len);
        rc = checkpoint_parse(slice_of(text, len), note_entry, &r, &why);
        mem_free(text);
        if (rc)
            (void)err_set(&d->warning, rc, "%s cannot be read (%s): it counts as empty", path, why.text);
        *bad = rc != 0;
        return 0;
    }
    return rc == ERR_NOTFOUND ? 0 : rc;
}

int log_dir__read_checkpoints(struct log_dir *d, struct manifest_sums *sums)
{
    bool bad = false;
    int rc = read_one(d, CHECKPOINT_RECOVERY_POINT, offsetof(struct log_dir_saved, recovery), &sums->recovery,
                      &bad);
    if (bad) { // no recovery point can be trusted: everything is read
        size_t at = 0;
        const struct hmap_slot *slot;
        while ((slot = hmap_next(&d->saved, &at)) != NULL)
            ((struct log_dir_saved *)slot->value)->recovery = -1;
        d->checkpoint_bad = true;
    }
    if (rc == 0)
        rc = read_one(d, CHECKPOINT_HIGH_WATERMARK, offsetof(struct log_dir_saved, watermark),
                      &sums->watermark, &bad);
    if (rc == 0)
        rc = read_one(d, CHECKPOINT_LOG_START, offsetof(struct log_dir_saved, start), &sums->start, &bad);
    return rc;
}

// ---- writing ----------------------------------------------------------------------------------------------
struct texts {
    struct checkpoint_writer recovery, watermark, start;
};

static void add(struct texts *t, const char *topic, partition_id partition, const struct log_dir_saved *s)
{
    checkpoint_add(&t->recovery, topic, partition, s->recovery);
    checkpoint_add(&t->watermark, topic, partition, s->watermark);
    if (s->start > 0 && s->start != s->first_base)
        checkpoint_add(&t->start, topic, partition, s->start);
}

// Under the directory's mutex.
static void collect(struct log_dir *d, struct texts *t)
{
    checkpoint_begin(&t->recovery);
    checkpoint_begin(&t->watermark);
    checkpoint_begin(&t->start);
    LIST_FOR_EACH(it, &d->logs)
    {
        struct partition_log *log = LIST_ENTRY(it, struct partition_log, link);
        if (!atomic_load(&log->on_disk))
            continue;
        struct log_dir_saved now = {.recovery = plog__load(&log->recovery),
                                    .watermark = plog__load(&log->watermark),
                                    .start = plog__load(&log->start),
                                    .first_base = plog__load(&log->first_base)};
        log->recovery_pending = now.recovery;
        add(t, log->topic, log->partition, &now);
    }
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&d->closed, &at)) != NULL) {
        const struct log_dir_saved *s = slot->value;
        char topic[LOG_DIR_NAME_BYTES];
        (void)snprintf(topic, sizeof(topic), "%.*s", (int)s->topic_len, s->name);
        add(t, topic, s->partition, s);
    }
}

static int write_one(struct log_dir *d, const char *file, struct checkpoint_writer *w, bool wanted,
                     uint32_t *sum, int rc, struct errmsg *msg)
{
    struct strbuf text;
    checkpoint_end(w, &text);
    *sum = crc32c(text.data, text.len);
    if (rc == 0 && wanted) {
        char path[LAYOUT_PATH_BYTES];
        log_dir__path(d, file, path);
        rc = small_file_replace(d->fs, path, strbuf_slice(&text), true, msg);
    }
    strbuf_fini(&text);
    return rc;
}

static int write_checkpoints(struct log_dir *d, bool hw, bool rest, struct manifest_sums *sums,
                             struct errmsg *msg)
{
    if (log_dir_is_offline(d))
        return err_set(msg, ERR_OFFLINE, "%s is offline: %s", d->path, d->reason.text);
    struct texts t;
    mutex_lock(&d->writer);
    mutex_lock(&d->mutex);
    if (hw)
        atomic_store(&d->touched_hw, false);
    if (rest)
        atomic_store(&d->touched, false);
    collect(d, &t);
    mutex_unlock(&d->mutex);
    int rc = write_one(d, CHECKPOINT_RECOVERY_POINT, &t.recovery, rest, &sums->recovery, 0, msg);
    rc = write_one(d, CHECKPOINT_HIGH_WATERMARK, &t.watermark, hw, &sums->watermark, rc, msg);
    rc = write_one(d, CHECKPOINT_LOG_START, &t.start, rest, &sums->start, rc, msg);
    mutex_lock(&d->mutex);
    if (rc == 0 && rest)
        LIST_FOR_EACH(it, &d->logs)
        {
            struct partition_log *log = LIST_ENTRY(it, struct partition_log, link);
            plog__store(&log->recovery_on_disk, log->recovery_pending);
        }
    mutex_unlock(&d->mutex);
    mutex_unlock(&d->writer);
    if (rc) {
        log_dir__touch(d, false);
        if (rc == ERR_NOSPACE)
            log_dir__note_full(d, true);
        else
            log_dir_offline(d, "cannot write the checkpoints of %s: %s", d->path,
                            msg ? msg->text : err_text(rc));
    }
    return rc;
}

int log_dir__write_all(struct log_dir *d, bool force, struct manifest_sums *sums, struct errmsg *msg)
{
    bool hw = force || atomic_load(&d->touched_hw), rest = force || atomic_load(&d->touched);
    return hw || rest || log_dir_is_offline(d) ? write_checkpoints(d, hw, rest, sums, msg) : 0;
}

int log_dir_checkpoint(struct log_dir *d, struct errmsg *msg)
{
    struct manifest_sums sums;
    return log_dir__write_all(d, false, &sums, msg);
}

int log_dir_checkpoint_hw(struct log_dir *d, struct errmsg *msg)
{
    struct manifest_sums sums;
    return atomic_load(&d->touched_hw) ? write_checkpoints(d, true, false, &sums, msg) : 0;
}
