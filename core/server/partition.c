// SPDX-License-Identifier: Apache-2.0
// A partition's life, its metadata changes and those who wait for it.
#include "core/server/partition.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/server/error_map.h"
#include "core/server/partition_wake.h"
#include "core/server/replica_manager.h"

struct partition *partition_new(struct replica_manager *m, struct uuid topic_id, partition_id index,
                                broker_id self, struct partition_log *log, struct topic_rules *rules)
{
    struct partition *p = mem_zalloc(sizeof *p);
    p->magic = PARTITION_MAGIC;
    atomic_init(&p->refs, 1);
    mutex_init(&p->lock);
    mutex_init(&p->io_lock);
    p->manager = m;
    p->topic_id = topic_id;
    p->index = index;
    p->log = log;
    p->rules = topic_rules_ref(rules);
    list_init(&p->watches);
    list_init(&p->acks);
    list_init(&p->flushes);
    partition_state_init(&p->state, self, log != NULL ? plog_start_offset(log) : 0,
                         log != NULL ? plog_end_offset(log) : 0, log != NULL ? plog_high_watermark(log) : 0);
    p->state.min_isr = rules->min_isr;
    return p;
}

struct partition *partition_ref(struct partition *p)
{
    (void)atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void partition_unref(struct partition *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    MUST(p->magic == PARTITION_MAGIC);
    MUST(list_is_empty(&p->watches) && list_is_empty(&p->acks) && list_is_empty(&p->flushes));
    p->magic = 0;
    if (p->log != NULL) {
        plog_drop(p->log);
    }
    topic_rules_unref(p->rules);
    partition_state_fini(&p->state);
    mutex_fini(&p->lock);
    mutex_fini(&p->io_lock);
    mem_free(p);
}

int16_t partition_check_locked(const struct partition *p, leader_epoch current_epoch, bool leader_only)
{
    if (p->deleted) {
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (p->log == NULL || log_dir_is_offline(plog_dir(p->log))) {
        return KE_KAFKA_STORAGE_ERROR;
    }
    if (current_epoch >= 0 && current_epoch < p->state.epoch) {
        return KE_FENCED_LEADER_EPOCH;
    }
    if (current_epoch >= 0 && current_epoch > p->state.epoch) {
        return KE_UNKNOWN_LEADER_EPOCH;
    }
    if (leader_only && p->state.role != REPLICA_LEADER) {
        return KE_NOT_LEADER_OR_FOLLOWER;
    }
    return KE_NONE;
}

// ---- waking ---------------------------------------------------------------------------------------------

void partition_wake_watches_locked(struct partition *p, size_t bytes, bool all, struct wake_list *wl)
{
    LIST_FOR_EACH(node, &p->watches)
    {
        struct partition_watch *w = LIST_ENTRY(node, struct partition_watch, link);
        if (all || atomic_fetch_sub_explicit(w->missing, (long long)bytes, memory_order_relaxed) <=
                       (long long)bytes) {
            waiter_push(w->waiter, wl);
        }
    }
}

static void end_ack(struct partition_ack *ack, int16_t error, struct wake_list *wl)
{
    list_remove(&ack->link);
    ack->error = error;
    waiter_push(ack->waiter, wl);
}

void partition_wake_acks_locked(struct partition *p, struct wake_list *wl)
{
    for (struct list_node *n; (n = list_first(&p->acks)) != NULL;) {
        struct partition_ack *ack = LIST_ENTRY(n, struct partition_ack, link);
        if (p->state.high_watermark <= ack->last_offset) {
            break;
        }
        end_ack(ack, partition_state_under_min_isr(&p->state) ? KE_NOT_ENOUGH_REPLICAS_AFTER_APPEND : KE_NONE,
                wl);
    }
}

void partition_high_watermark_moved_locked(struct partition *p, size_t bytes, struct wake_list *wl)
{
    plog_set_high_watermark(p->log, p->state.high_watermark);
    partition_wake_acks_locked(p, wl);
    partition_wake_watches_locked(p, bytes, bytes == 0, wl);
}

void partition_end_waits_locked(struct partition *p, int16_t error, struct wake_list *wl)
{
    for (struct list_node *n; (n = list_first(&p->acks)) != NULL;) {
        end_ack(LIST_ENTRY(n, struct partition_ack, link), error, wl);
    }
    for (struct list_node *n; (n = list_first(&p->flushes)) != NULL;) {
        end_ack(LIST_ENTRY(n, struct partition_ack, link), error, wl);
    }
    partition_wake_watches_locked(p, 0, true, wl);
}

bool partition_await_ack(struct partition *p, struct partition_ack *ack)
{
    bool waits = false;
    mutex_lock(&p->lock);
    ack->error = partition_check_locked(p, -1, true);
    if (ack->error == KE_NONE && p->state.epoch != ack->epoch) {
        ack->error = KE_NOT_LEADER_OR_FOLLOWER;
    }
    if (ack->error == KE_NONE) {
        if (p->state.high_watermark > ack->last_offset) {
            ack->error =
                partition_state_under_min_isr(&p->state) ? KE_NOT_ENOUGH_REPLICAS_AFTER_APPEND : KE_NONE;
        } else {
            // Kept in order of offsets: appends of several loops may come here in another order.
            struct list_node *at = p->acks.head.prev;
            while (at != &p->acks.head &&
                   LIST_ENTRY(at, struct partition_ack, link)->last_offset > ack->last_offset) {
                at = at->prev;
            }
            list_insert_between(&ack->link, at, at->next);
            waits = true;
        }
    }
    mutex_unlock(&p->lock);
    return waits;
}

void partition_forget_ack(struct partition *p, struct partition_ack *ack)
{
    mutex_lock(&p->lock);
    list_remove(&ack->link);
    mutex_unlock(&p->lock);
}

bool partition_await_flush(struct partition *p, struct partition_ack *ack)
{
    mutex_lock(&p->lock);
    ack->error = partition_check_locked(p, -1, false);
    bool waits = ack->error == KE_NONE && plog_recovery_point(p->log) <= ack->last_offset;
    if (waits) {
        list_add_tail(&p->flushes, &ack->link);
    }
    mutex_unlock(&p->lock);
    if (waits) {
        replica_manager_want_flush(p->manager, p);
    }
    return waits;
}

void partition_flush_done(struct partition *p, log_offset flushed, int16_t error, struct wake_list *wl)
{
    mutex_lock(&p->lock);
    LIST_FOR_EACH_SAFE(node, &p->flushes)
    {
        struct partition_ack *ack = LIST_ENTRY(node, struct partition_ack, link);
        if (error != KE_NONE || ack->last_offset < flushed) {
            end_ack(ack, error, wl);
        }
    }
    mutex_unlock(&p->lock);
}

bool partition_watch_add(struct partition *p, struct partition_watch *w)
{
    mutex_lock(&p->lock);
    log_offset bound = w->follower ? p->state.log_end : p->state.high_watermark;
    bool same = !p->deleted && p->log != NULL && bound == w->seen && p->state.epoch == w->epoch;
    if (same) {
        list_add_tail(&p->watches, &w->link);
    }
    mutex_unlock(&p->lock);
    return same;
}

void partition_watch_remove(struct partition *p, struct partition_watch *w)
{
    mutex_lock(&p->lock);
    list_remove(&w->link);
    mutex_unlock(&p->lock);
}

// ---- metadata -------------------------------------------------------------------------------------------

enum partition_change partition_apply(struct partition *p, const struct partition_assignment *a, time_ms now,
                                      struct wake_list *wl)
{
    mutex_lock(&p->lock);
    log_offset before = p->state.high_watermark;
    enum partition_change change = partition_state_apply(&p->state, a, now);
    if (p->log != NULL) {
        if (change == PARTITION_CHANGE_LEADER) {
            // A failure takes the directory offline; appends are refused from then on.
            (void)plog_assign_epoch(p->log, p->state.epoch, p->state.log_end, NULL);
        }
        if (change == PARTITION_CHANGE_LEADER || change == PARTITION_CHANGE_FOLLOWER) {
            partition_end_waits_locked(p, KE_NOT_LEADER_OR_FOLLOWER, wl);
        }
        if (p->state.high_watermark != before) {
            partition_high_watermark_moved_locked(p, 0, wl);
        }
    }
    mutex_unlock(&p->lock);
    return change;
}

void partition_set_rules(struct partition *p, struct topic_rules *rules, time_ms now, struct wake_list *wl)
{
    mutex_lock(&p->lock);
    struct topic_rules *old = p->rules;
    p->rules = topic_rules_ref(rules);
    if (p->log != NULL) {
        plog_set_config(p->log, rules->log);
        if (partition_state_set_min_isr(&p->state, rules->min_isr, now)) {
            partition_high_watermark_moved_locked(p, 0, wl);
        }
    }
    mutex_unlock(&p->lock);
    topic_rules_unref(old);
}

int16_t partition_delete_records(struct partition *p, log_offset offset, log_offset *target, log_offset *low,
                                 struct wake_list *wl)
{
    mutex_lock(&p->lock);
    int16_t error = partition_check_locked(p, -1, true);
    if (error == KE_NONE && !p->rules->log->cleanup_delete) {
        error = KE_POLICY_VIOLATION; // a compacted topic keeps the last value of every key
    }
    if (error == KE_NONE) {
        log_offset to = offset == -1 ? p->state.high_watermark : offset;
        if (to < 0 || to > p->state.high_watermark) {
            error = KE_OFFSET_OUT_OF_RANGE;
        } else if (to > p->state.log_start) {
            error = (int16_t)error_map(plog_advance_start(p->log, to, NULL));
            if (error == KE_NONE && partition_state_log_start(&p->state, to)) {
                partition_high_watermark_moved_locked(p, 0, wl);
            }
        }
    }
    *target = p->state.log_start;
    *low = error == KE_NONE ? partition_state_low_watermark(&p->state) : -1;
    mutex_unlock(&p->lock);
    return error;
}
