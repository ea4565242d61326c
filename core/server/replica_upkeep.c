// SPDX-License-Identifier: Apache-2.0
// What is done from time to time: checkpoints, retention, rolling, flush.ms, removal of files.
//
// Each kind has a timer on the first data loop; when it fires, a job runs on a pool, and when that is done
// the timer starts again.
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/server/error_map.h"
#include "core/server/replica_internal.h"

#define IDLE_FLUSH_LOOKS 10 // every so many seconds all partitions are looked at, where no topic has flush.ms
#define REMOVAL_EVERY_MS 1000 // how precisely file.delete.delay.ms is kept

// ---- removal --------------------------------------------------------------------------------------------

static void doom(struct replica_manager *m, struct doomed *d, int64_t delay_ms)
{
    d->due = node_clock(m->broker->node) + (mono_us)(delay_ms > 0 ? delay_ms : 0) * 1000;
    mutex_lock(&m->lock);
    d->next = m->doomed;
    m->doomed = d;
    mutex_unlock(&m->lock);
}

void replica_doom_segments(struct replica_manager *m, struct plog_doomed *files)
{
    struct doomed *d = mem_zalloc(sizeof *d);
    d->files = *files;
    *files = (struct plog_doomed){0};
    doom(m, d, d->files.delay_ms);
}

void replica_doom_directory(struct replica_manager *m, struct log_dir *dir, int64_t delay_ms)
{
    struct doomed *d = mem_zalloc(sizeof *d);
    d->dir = dir;
    doom(m, d, delay_ms);
}

static void remove_due(struct replica_manager *m)
{
    mono_us now = node_clock(m->broker->node);
    struct doomed *due = NULL;
    mutex_lock(&m->lock);
    bool waits[64] = {
        false}; // directories that hold something younger too: removing takes all, so it waits for the last
    for (struct doomed *d = m->doomed; d != NULL; d = d->next) {
        for (unsigned i = 0; d->dir != NULL && d->due > now && i < m->dirs_count && i < 64; i++) {
            waits[i] |= m->dirs[i].dir == d->dir;
        }
    }
    for (struct doomed **at = &m->doomed; *at != NULL;) {
        struct doomed *d = *at;
        bool later = d->due > now;
        for (unsigned i = 0; d->dir != NULL && i < m->dirs_count && i < 64; i++) {
            later |= m->dirs[i].dir == d->dir && waits[i];
        }
        if (later) {
            at = &d->next;
        } else {
            *at = d->next;
            d->next = due;
            due = d;
        }
    }
    mutex_unlock(&m->lock);
    while (due != NULL) {
        struct doomed *d = due;
        due = d->next;
        if (d->dir == NULL) {
            plog_doomed_remove(&d->files);
        } else {
            (void)log_dir_remove_doomed(d->dir, NULL, NULL);
        }
        mem_free(d);
    }
}

// ---- retention ------------------------------------------------------------------------------------------

static void retain(void *data, struct partition *p)
{
    struct replica_manager *m = data;
    time_ms now = node_wall(m->broker->node);
    struct wake_list wl = {.count = 0};
    struct plog_doomed files = {0};
    mutex_lock(&p->io_lock);
    mutex_lock(&p->lock);
    if (p->log != NULL && !p->deleted) {
        (void)plog_roll_if_old(p->log, now, NULL);
        (void)plog_expire_producers(p->log, now);
        if (p->rules->log->cleanup_delete &&
            plog_retain(p->log, now, p->state.high_watermark, &files, NULL) == 0 && files.count > 0) {
            if (partition_state_log_start(&p->state, plog_start_offset(p->log))) {
                partition_high_watermark_moved_locked(p, 0, &wl);
            }
        }
    }
    mutex_unlock(&p->lock);
    mutex_unlock(&p->io_lock);
    wake_list_send(&wl);
    if (files.count > 0) {
        replica_doom_segments(m, &files);
    }
}

static void work_retention(struct replica_manager *m)
{
    replica_manager_each(m, retain, m);
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (replica_manager_dir_is_online(m, i)) {
            (void)log_dir_reserve_restore(m->dirs[i].dir, NULL);
        }
    }
}

// ---- checkpoints and flush ------------------------------------------------------------------------------

static void work_high_watermarks(struct replica_manager *m)
{
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (replica_manager_dir_is_online(m, i)) {
            (void)log_dir_checkpoint_hw(m->dirs[i].dir, NULL); // a failure takes the directory offline
        }
    }
}

static void work_checkpoints(struct replica_manager *m)
{
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (replica_manager_dir_is_online(m, i)) {
            (void)log_dir_checkpoint(m->dirs[i].dir, NULL);
        }
    }
}

static void flush_if_wanted(void *data, struct partition *p)
{
    struct replica_manager *m = data;
    mutex_lock(&p->lock);
    if (p->rules->log->flush_ms != INT64_MAX) {
        atomic_store(&m->timed_flush, true);
    }
    bool wanted = p->log != NULL && plog_flush_wanted(p->log, node_wall(m->broker->node));
    mutex_unlock(&p->lock);
    if (wanted) {
        struct wake_list wl = {.count = 0};
        (void)replica_flush_partition(p, &wl);
        wake_list_send(&wl);
    }
}

// Without flush.ms only rolled segments are still to be synced, which is in no hurry.
static bool flush_due(struct replica_manager *m)
{
    return atomic_exchange(&m->timed_flush, false) || ++m->flush_looks % IDLE_FLUSH_LOOKS == 0;
}

static bool removal_due(struct replica_manager *m)
{
    mutex_lock(&m->lock);
    bool any = m->doomed != NULL;
    mutex_unlock(&m->lock);
    return any;
}

static void work_flush(struct replica_manager *m)
{
    replica_manager_each(m, flush_if_wanted, m);
}

// ---- timers ---------------------------------------------------------------------------------------------

static struct node_loop *upkeep_loop(struct replica_manager *m)
{
    return m->broker->loops[0].requests.loop;
}

static void run_upkeep(struct node_job *j)
{
    struct upkeep_job *u = (struct upkeep_job *)(void *)((char *)j - offsetof(struct upkeep_job, job));
    u->work(u->m);
}

static void upkeep_done(struct node_job *j)
{
    struct upkeep_job *u = (struct upkeep_job *)(void *)((char *)j - offsetof(struct upkeep_job, job));
    u->running = false;
    if (!u->m->stopping) {
        node_timer_start(upkeep_loop(u->m), &u->timer, u->every_ms);
    }
}

static void upkeep_due(struct node_timer *t)
{
    struct upkeep_job *u = (struct upkeep_job *)(void *)((char *)t - offsetof(struct upkeep_job, timer));
    if (u->due != NULL && !u->due(u->m)) {
        node_timer_start(upkeep_loop(u->m), &u->timer, u->every_ms);
        return;
    }
    u->running = true;
    node_pool_run(u->pool, &u->job);
}

void replica_manager_start_upkeep(struct replica_manager *m)
{
    const struct broker_settings *s = &m->broker->settings;
    const struct {
        int64_t every_ms;
        struct node_pool *pool;
        void (*work)(struct replica_manager *m);
        bool (*due)(struct replica_manager *m);
    } kinds[UPKEEP_COUNT] = {
        [UPKEEP_HIGH_WATERMARKS] = {s->high_watermark_checkpoint_ms, m->broker->pool_short,
                                    work_high_watermarks, NULL},
        [UPKEEP_CHECKPOINTS] = {s->recovery_point_checkpoint_ms, m->broker->pool_short, work_checkpoints,
                                NULL},
        [UPKEEP_RETENTION] = {s->log_retention_check_ms, m->broker->pool_long, work_retention, NULL},
        [UPKEEP_FLUSH] = {s->flush_scheduler_ms > 0 && s->flush_scheduler_ms < 1000 ? s->flush_scheduler_ms
                                                                                    : 1000,
                          m->broker->pool_short, work_flush, flush_due},
        [UPKEEP_REMOVAL] = {REMOVAL_EVERY_MS, m->broker->pool_long, remove_due, removal_due},
    };
    for (unsigned i = 0; i < UPKEEP_COUNT; i++) {
        struct upkeep_job *u = &m->upkeep[i];
        u->m = m;
        u->every_ms = (uint64_t)(kinds[i].every_ms > 0 ? kinds[i].every_ms : 1);
        u->pool = kinds[i].pool;
        u->work = kinds[i].work;
        u->due = kinds[i].due;
        u->job = (struct node_job){.work = run_upkeep, .done = upkeep_done, .loop = upkeep_loop(m)};
        u->timer.fire = upkeep_due;
        node_timer_start(upkeep_loop(m), &u->timer, u->every_ms);
    }
}

void replica_manager_stop_upkeep(struct replica_manager *m)
{
    m->stopping = true;
    for (unsigned i = 0; i < UPKEEP_COUNT; i++) {
        node_timer_stop(upkeep_loop(m), &m->upkeep[i].timer);
    }
}
