// SPDX-License-Identifier: Apache-2.0
// At the start: opens the log directories and every log in them, recovering what was not stopped cleanly.
#include "core/base/mem.h"
#include "core/server/limits.h"
#include "core/server/replica_internal.h"

#define METADATA_TOPIC "__cluster_metadata" // belongs to the quorum, not to us

static void dir_offline(void *data, struct log_dir *dir, const char *reason)
{
    struct replica_manager *m = data;
    struct uuid id = log_dir_id(dir);
    log_error(m->broker->log, "log", "log directory is offline", "dir=%s reason=%s", log_dir_path(dir),
              reason);
    if (m->broker->ops != NULL && m->broker->ops->log_dir_offline != NULL) {
        m->broker->ops->log_dir_offline(m->broker, &id);
    }
}

struct opening {
    struct replica_manager *m; // whose
    unsigned dir;              // index of the directory
    int err;                   // first error that concerns the whole directory
    struct errmsg *msg;        // its message
};

static void report_recovery(struct replica_manager *m, const struct log_dir_entry *e,
                            const struct plog_recovery *r)
{
    if (r->cut) {
        log_warn(m->broker->log, "log",
                 r->unreadable ? "log had damage, cut there" : "log had a torn tail, cut there",
                 "log=%s segment=%lld position=%llu bytes=%llu batches_after=%u kept_as=%s end_offset=%lld",
                 e->name, (long long)r->cut_segment, (unsigned long long)r->cut_pos,
                 (unsigned long long)r->cut_bytes, r->batches_after, r->kept_as, (long long)r->end_offset);
    } else if (r->scanned) {
        log_info(m->broker->log, "log", "log recovered", "log=%s end_offset=%lld indexes_rebuilt=%u", e->name,
                 (long long)r->end_offset, r->indexes_rebuilt);
    }
    if (r->metadata_missing) {
        log_warn(m->broker->log, "log", "partition.metadata was missing", "log=%s", e->name);
    }
}

static int open_entry(void *data, const struct log_dir_entry *e)
{
    struct opening *o = data;
    struct replica_manager *m = o->m;
    if (e->kind != LOG_DIR_PARTITION || strcmp(e->topic, METADATA_TOPIC) == 0) {
        return 0;
    }
    struct log_config defaults;
    log_config_defaults(&defaults);
    struct log_config *config = log_config_new(&defaults); // the image's configuration follows
    struct plog_recovery report = {0};
    struct plog_open_args args = {.topic = e->topic,
                                  .partition = e->partition,
                                  .topic_id = e->topic_id,
                                  .config = config,
                                  .existing = true,
                                  .clean = e->clean,
                                  .intact_below = -1,
                                  .report = &report};
    struct partition_log *log = NULL;
    struct errmsg why = {""};
    int err = plog_open(m->dirs[o->dir].dir, &args, &log, &why);
    log_config_unref(config);
    if (err != 0) {
        log_error(m->broker->log, "log", "log cannot be opened", "log=%s reason=%s", e->name, why.text);
        log_dir_offline(m->dirs[o->dir].dir, "%s: %s", e->name, why.text);
        return err;
    }
    report_recovery(m, e, &report);
    struct stored_log *s = mem_zalloc(sizeof *s);
    s->name = mem_strdup(e->name);
    s->log = log;
    s->dir = o->dir;
    struct stored_log *twice = hmap_put(&m->stored, slice_str(s->name), s);
    if (twice !=
        NULL) { // in two directories: the image's directory id would tell, the first one is kept aside
        log_error(m->broker->log, "log", "partition is in two log directories", "log=%s dirs=%s,%s", e->name,
                  log_dir_path(m->dirs[twice->dir].dir), log_dir_path(m->dirs[o->dir].dir));
        plog_drop(twice->log);
        mem_free(twice->name);
        mem_free(twice);
    } else {
        (void)atomic_fetch_add(&m->dirs[o->dir].partitions, 1);
    }
    return 0;
}

static int open_dir(struct replica_manager *m, unsigned i, struct errmsg *msg)
{
    const struct broker_settings *s = &m->broker->settings;
    struct log_dir_options opts = {.fs = m->broker->vfs,
                                   .path = s->log_dirs[i],
                                   .files = m->files,
                                   .reserve_bytes = LOG_DIR_RESERVE_BYTES,
                                   .keep_free_bytes = LOG_DIR_KEEP_FREE_BYTES,
                                   .offline = dir_offline,
                                   .data = m};
    int err = log_dir_open(&opts, &m->dirs[i].dir, msg);
    if (m->dirs[i].dir == NULL) {
        return err;
    }
    if (log_dir_is_full(m->dirs[i].dir)) {
        log_error(m->broker->log, "log",
                  "the disk is full: the reserve is given up, produce is refused until space is freed",
                  "dir=%s", s->log_dirs[i]);
    }
    m->dirs[i].id = s->log_dir_ids[i];
    log_dir_set_id(m->dirs[i].dir, s->log_dir_ids[i]);
    (void)log_dir_remove_doomed(m->dirs[i].dir, NULL, NULL);
    struct opening o = {.m = m, .dir = i, .msg = msg};
    err = log_dir_list(m->dirs[i].dir, open_entry, &o, msg);
    if (err == 0) {
        log_dir_loaded(m->dirs[i].dir);
    }
    return err;
}

int replica_dirs_open(struct replica_manager *m, struct errmsg *msg)
{
    const struct broker_settings *s = &m->broker->settings;
    m->dirs_count = s->log_dirs_count;
    m->dirs = mem_calloc(m->dirs_count, sizeof *m->dirs);
    unsigned online = 0;
    int first_error = 0;
    for (unsigned i = 0; i < m->dirs_count; i++) {
        struct errmsg why = {""};
        int err = open_dir(m, i, &why);
        if (err == ERR_LOCKED) { // another process works on it: never a reason to go on without it
            return err_set(msg, err, "%s", why.text);
        }
        if (err != 0) {
            log_error(m->broker->log, "log", "log directory cannot be used", "dir=%s reason=%s",
                      s->log_dirs[i], why.text);
            first_error = first_error == 0 ? err_set(msg, err, "%s", why.text) : first_error;
        } else {
            online++;
        }
    }
    return online > 0 ? 0 : first_error;
}
