// SPDX-License-Identifier: Apache-2.0
// Group commit: the appends of many partitions that wait for the disk are made durable together.
//
// One job at a time runs on the short pool. It takes all partitions that want a flush, syncs them (each file
// where there are few, the whole file system where there are many), and wakes those who wait. What comes
// meanwhile is collected for the next round.
#include "core/base/mem.h"
#include "core/server/error_map.h"
#include "core/server/replica_internal.h"

#define SYNC_ALL_FROM                                                                                        \
    8 // as many dirty logs in one directory are cheaper to sync with one call for the file system

void replica_manager_want_flush(struct replica_manager *m, struct partition *p)
{
    bool start = false;
    mutex_lock(&m->flush_lock);
    if (!list_is_linked(&p->flush_link)) {
        list_add_tail(&m->flush_wanted, &p->flush_link);
        (void)partition_ref(p);
    }
    if (!m->flush_running) {
        m->flush_running = start = true;
    }
    mutex_unlock(&m->flush_lock);
    if (start) {
        node_pool_run(m->broker->pool_short, &m->flush_job);
    }
}

int16_t replica_flush_partition(struct partition *p, struct wake_list *wl)
{
    struct plog_flush f;
    mutex_lock(&p->io_lock);
    mutex_lock(&p->lock);
    bool begun = p->log != NULL && plog_flush_begin(p->log, &f);
    log_offset clean = p->log != NULL ? plog_recovery_point(p->log) : -1;
    mutex_unlock(&p->lock);
    int err = 0;
    if (begun) {
        (void)plog_flush_run(&f, NULL);
        mutex_lock(&p->lock);
        err = plog_flush_end(&f, NULL);
        clean = p->log != NULL ? plog_recovery_point(p->log) : -1;
        mutex_unlock(&p->lock);
    }
    mutex_unlock(&p->io_lock);
    partition_flush_done(p, clean, (int16_t)error_map(err), wl);
    return (int16_t)error_map(err);
}

struct flushing {
    struct partition *p; // one reference
    struct plog_flush f; // between begin and end
    bool begun;          // there was something to do
};

// Many dirty logs: one call for each file system.
static void flush_together(struct replica_manager *m, struct flushing *all, unsigned count,
                           struct wake_list *wl)
{
    for (unsigned i = 0; i < count; i++) {
        mutex_lock(&all[i].p->io_lock);
        mutex_lock(&all[i].p->lock);
        all[i].begun = all[i].p->log != NULL && plog_flush_begin(all[i].p->log, &all[i].f);
        mutex_unlock(&all[i].p->lock);
    }
    for (unsigned d = 0; d < m->dirs_count; d++) {
        if (!replica_manager_dir_is_online(m, d)) {
            continue;
        }
        int err = log_dir_sync_all(m->dirs[d].dir, NULL);
        for (unsigned i = 0; i < count; i++) {
            struct partition *p = all[i].p;
            if (!all[i].begun || plog_dir(all[i].f.log) != m->dirs[d].dir) {
                continue;
            }
            if (err == 0) {
                plog_flush_synced(&all[i].f);
            } else {
                (void)plog_flush_run(&all[i].f, NULL);
            }
            mutex_lock(&p->lock);
            int result = plog_flush_end(&all[i].f, NULL);
            log_offset clean = p->log != NULL ? plog_recovery_point(p->log) : -1;
            mutex_unlock(&p->lock);
            all[i].begun = false;
            partition_flush_done(p, clean, (int16_t)error_map(result), wl);
        }
    }
    for (unsigned i = 0; i < count; i++) { // nothing to do, or the directory is gone
        mutex_lock(&all[i].p->lock);
        if (all[i].begun) {
            (void)plog_flush_end(&all[i].f, NULL);
        }
        bool here = all[i].p->log != NULL;
        log_offset clean = here ? plog_recovery_point(all[i].p->log) : -1;
        mutex_unlock(&all[i].p->lock);
        mutex_unlock(&all[i].p->io_lock);
        partition_flush_done(all[i].p, clean, here && !all[i].begun ? KE_NONE : KE_KAFKA_STORAGE_ERROR, wl);
    }
}

void replica_flush_work(struct node_job *j)
{
    struct replica_manager *m =
        (struct replica_manager *)(void *)((char *)j - offsetof(struct replica_manager, flush_job));
    for (;;) {
        mutex_lock(&m->flush_lock);
        unsigned count = 0;
        LIST_FOR_EACH(node, &m->flush_wanted)
        {
            count++;
        }
        if (count == 0) {
            m->flush_running = false;
            mutex_unlock(&m->flush_lock);
            return;
        }
        struct flushing *all = mem_calloc(count, sizeof *all);
        for (unsigned i = 0; i < count; i++) {
            all[i].p = LIST_ENTRY(list_pop(&m->flush_wanted), struct partition, flush_link);
        }
        mutex_unlock(&m->flush_lock);
        struct wake_list wl = {.count = 0};
        if (count >= SYNC_ALL_FROM) {
            flush_together(m, all, count, &wl);
        } else {
            for (unsigned i = 0; i < count; i++) {
                (void)replica_flush_partition(all[i].p, &wl);
            }
        }
        wake_list_send(&wl);
        for (unsigned i = 0; i < count; i++) {
            partition_unref(all[i].p);
        }
        mem_free(all);
    }
}
