// SPDX-License-Identifier: Apache-2.0
// What a new image means for this broker's partitions: deletions, then leaders, then followers, then
// configuration.
#include <stdio.h>
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/server/replica_internal.h"

static void random_hex(struct replica_manager *m, char out[33])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[16];
    node_random(m->broker->node, bytes, sizeof bytes);
    for (unsigned i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[32] = 0;
}

static unsigned find_dir(const struct replica_manager *m, struct uuid id)
{
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (uuid_equal(m->dirs[i].id, id)) {
            return i;
        }
    }
    return m->dirs_count;
}

// The image's directory where it names one of ours, else the one with the fewest partitions.
static unsigned choose_dir(struct replica_manager *m, struct uuid wanted)
{
    unsigned best = find_dir(m, wanted);
    if (best < m->dirs_count) {
        return best;
    }
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (replica_manager_dir_is_online(m, i) &&
            (best == m->dirs_count ||
             atomic_load(&m->dirs[i].partitions) < atomic_load(&m->dirs[best].partitions))) {
            best = i;
        }
    }
    return best;
}

static struct partition_log *new_log(struct replica_manager *m, unsigned dir, const struct delta_partition *d,
                                     const char *name, struct topic_rules *rules)
{
    if (dir >= m->dirs_count || !replica_manager_dir_is_online(m, dir)) {
        return NULL;
    }
    struct plog_open_args args = {.topic = name,
                                  .partition = d->index,
                                  .topic_id = topic_id(d->topic),
                                  .config = rules->log,
                                  .intact_below = -1};
    struct partition_log *log = NULL;
    struct errmsg why = {""};
    if (plog_open(m->dirs[dir].dir, &args, &log, &why) != 0) {
        log_error(m->broker->log, "log", "log cannot be opened", "topic=%s partition=%d reason=%s", name,
                  d->index, why.text);
        return NULL;
    }
    (void)atomic_fetch_add(&m->dirs[dir].partitions, 1);
    return log;
}

// A log of this name that was on disk at the start. One of an older topic of the same name is put aside.
static struct partition_log *claim_stored(struct replica_manager *m, const struct delta_partition *d,
                                          const char *name, struct topic_rules *rules)
{
    char key[300];
    (void)snprintf(key, sizeof key, "%s-%d", name, d->index);
    struct stored_log *s = hmap_remove(&m->stored, slice_str(key));
    if (s == NULL) {
        return NULL;
    }
    struct partition_log *log = s->log;
    struct errmsg why = {""};
    if (plog_set_topic_id(log, topic_id(d->topic), &why) != 0) {
        char hex[33];
        random_hex(m, hex);
        log_warn(m->broker->log, "log", "log belongs to an older topic of this name, kept aside",
                 "log=%s reason=%s", key, why.text);
        (void)atomic_fetch_sub(&m->dirs[s->dir].partitions, 1);
        (void)plog_set_stray(log, hex, NULL);
        log = NULL;
    } else {
        plog_set_config(log, rules->log);
    }
    mem_free(s->name);
    mem_free(s);
    return log;
}

static struct partition *create(struct replica_manager *m, const struct delta_partition *d,
                                struct topic_rules *rules)
{
    struct uuid id = topic_id(d->topic);
    struct uuid wanted = partition_directory_of(d->after, m->broker->settings.id);
    char *name = slice_dup_str(topic_name(d->topic));
    struct partition_log *log = claim_stored(m, d, name, rules);
    unsigned dir = log == NULL ? choose_dir(m, wanted) : find_dir(m, log_dir_id(plog_dir(log)));
    if (log == NULL) {
        log = new_log(m, dir, d, name, rules);
    }
    mem_free(name);
    if (log != NULL && !uuid_equal(m->dirs[dir].id, wanted) && m->broker->ops != NULL &&
        m->broker->ops->assign_replica_dir != NULL) {
        m->broker->ops->assign_replica_dir(m->broker, &id, d->index, &m->dirs[dir].id);
    }
    struct partition *p = partition_new(m, id, d->index, m->broker->settings.id, log, rules);
    mutex_lock(&m->lock);
    struct topic_replicas *t = hmap_get_uuid(&m->topics, id);
    if (t == NULL) {
        t = mem_zalloc(sizeof *t);
        t->id = id;
        (void)hmap_put_uuid(&m->topics, id, t);
    }
    if (d->index >= t->slots_count) {
        int32_t want = topic_partition_count(d->topic);
        want = want > d->index ? want : d->index + 1;
        t->slots = mem_realloc(t->slots, (size_t)want * sizeof *t->slots);
        memset(t->slots + t->slots_count, 0, (size_t)(want - t->slots_count) * sizeof *t->slots);
        t->slots_count = want;
    }
    MUST(t->slots[d->index] == NULL);
    t->slots[d->index] = partition_ref(p);
    t->used++;
    mutex_unlock(&m->lock);
    return p;
}

static void remove_partition(struct replica_manager *m, const struct delta_partition *d, struct wake_list *wl)
{
    struct uuid id = topic_id(d->topic);
    struct partition *p = NULL;
    mutex_lock(&m->lock);
    struct topic_replicas *t = hmap_get_uuid(&m->topics, id);
    if (t != NULL && d->index < t->slots_count) {
        p = t->slots[d->index];
        t->slots[d->index] = NULL;
        t->used -= p != NULL;
        if (t->used == 0) {
            (void)hmap_remove_uuid(&m->topics, id);
            mem_free(t->slots);
            mem_free(t);
        }
    }
    mutex_unlock(&m->lock);
    if (p == NULL) {
        return;
    }
    mutex_lock(&p->io_lock);
    mutex_lock(&p->lock);
    struct partition_log *log = p->log;
    p->log = NULL;
    p->deleted = true;
    int64_t delay_ms = p->rules->log->file_delete_delay_ms;
    partition_end_waits_locked(p, KE_UNKNOWN_TOPIC_OR_PARTITION, wl);
    mutex_unlock(&p->lock);
    if (log != NULL) {
        char hex[33];
        random_hex(m, hex);
        struct log_dir *dir = plog_dir(log);
        unsigned at = find_dir(m, log_dir_id(dir));
        (void)atomic_fetch_sub(&m->dirs[at].partitions, 1);
        struct errmsg why = {""};
        if (plog_delete(log, hex, &why) != 0) {
            log_error(m->broker->log, "log", "log could not be deleted", "reason=%s", why.text);
        }
        replica_doom_directory(m, dir, delay_ms);
    }
    mutex_unlock(&p->io_lock);
    partition_unref(p);
}

// Rules of the topic that the walk is at; consecutive partitions of one topic share them.
struct rules_of {
    const struct image_topic *topic; // which
    struct topic_rules *rules;       // one reference
};

static struct topic_rules *rules_for(struct replica_manager *m, const struct image *image,
                                     const struct image_topic *topic, struct rules_of *last)
{
    if (last->topic != topic) {
        topic_rules_unref(last->rules);
        last->topic = topic;
        last->rules = topic_rules_make(image, &m->broker->settings, topic_name(topic));
        if (last->rules->log->flush_ms != INT64_MAX) {
            atomic_store(&m->timed_flush, true);
        }
    }
    return last->rules;
}

static void follow(struct replica_manager *m, const struct image *image, const struct delta_partition *d,
                   struct rules_of *last, struct wake_list *wl)
{
    struct uuid id = topic_id(d->topic);
    time_ms now = node_wall(m->broker->node);
    struct partition *p = replica_manager_find(m, &id, d->index);
    if (p == NULL) {
        p = create(m, d, rules_for(m, image, d->topic, last));
    }
    struct partition_assignment a = {.leader = d->after->leader,
                                     .epoch = d->after->epoch,
                                     .partition_epoch = d->after->partition_epoch,
                                     .recovering = d->after->recovery == RECOVERY_RECOVERING,
                                     .replicas = partition_replicas(d->after),
                                     .replicas_count = d->after->replicas_count,
                                     .isr = partition_isr(d->after),
                                     .isr_count = d->after->isr_count};
    (void)partition_apply(p, &a, now, wl);
    if (a.leader == m->broker->settings.id && a.replicas_count > 1) {
        mutex_lock(&p->lock);
        for (int32_t i = 0; i < a.replicas_count; i++) {
            const struct image_broker *b = image_broker(image, a.replicas[i]);
            partition_state_set_broker(&p->state, a.replicas[i], image_broker_active(b),
                                       b != NULL ? b->epoch : -1);
        }
        mutex_unlock(&p->lock);
    }
    partition_unref(p);
}

static void set_topic_rules(struct replica_manager *m, const struct image *image,
                            const struct image_topic *topic, struct wake_list *wl)
{
    struct topic_rules *rules = topic_rules_make(image, &m->broker->settings, topic_name(topic));
    if (rules->log->flush_ms != INT64_MAX) {
        atomic_store(&m->timed_flush, true);
    }
    struct uuid id = topic_id(topic);
    for (int32_t i = 0; i < topic_partition_count(topic); i++) {
        struct partition *p = replica_manager_find(m, &id, i);
        if (p != NULL) {
            partition_set_rules(p, rules, node_wall(m->broker->node), wl);
            partition_unref(p);
        }
    }
    topic_rules_unref(rules);
}

static void apply_configs(struct replica_manager *m, const struct image *image,
                          const struct image_delta *delta, struct wake_list *wl)
{
    bool all = false;
    for (int64_t i = 0; i < delta->configs_count; i++) {
        const struct delta_config *c = &delta->configs[i];
        if (c->type == CONFIG_RESOURCE_BROKER) {
            all = true; // the default of every topic may have changed
        } else if (c->type == CONFIG_RESOURCE_TOPIC && !all) {
            const struct image_topic *t = image_topic_named(image, c->name);
            if (t != NULL) {
                set_topic_rules(m, image, t, wl);
            }
        }
    }
    if (all) {
        for (const struct image_topic *t = image_topic_next(image, NULL); t != NULL;
             t = image_topic_next(image, t)) {
            set_topic_rules(m, image, t, wl);
        }
    }
}

// Eligibility and broker epochs of the others, for partitions that the delta does not list.
static void set_brokers(void *data, struct partition *p)
{
    const struct image_delta *delta = data;
    mutex_lock(&p->lock);
    if (p->state.role == REPLICA_LEADER && p->state.others_count > 0) {
        for (int64_t i = 0; i < delta->brokers_count; i++) {
            const struct image_broker *b = delta->brokers[i].after;
            partition_state_set_broker(&p->state, delta->brokers[i].id, image_broker_active(b),
                                       b != NULL ? b->epoch : -1);
        }
    }
    mutex_unlock(&p->lock);
}

void replica_retire_strays(struct replica_manager *m)
{
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&m->stored, &at)) != NULL) {
        struct stored_log *s = slot->value;
        char hex[33];
        random_hex(m, hex);
        log_warn(m->broker->log, "log", "log is not in the cluster's metadata, kept aside as stray",
                 "log=%s dir=%s", s->name, log_dir_path(m->dirs[s->dir].dir));
        (void)atomic_fetch_sub(&m->dirs[s->dir].partitions, 1);
        (void)plog_set_stray(s->log, hex, NULL);
        mem_free(s->name);
        mem_free(s);
    }
    hmap_clear(&m->stored);
}

void replica_manager_apply(struct replica_manager *m, const struct image *image,
                           const struct image_delta *delta)
{
    struct wake_list wl = {.count = 0};
    struct rules_of last = {NULL, NULL};
    broker_id self = m->broker->settings.id;
    for (int64_t i = 0; i < delta->partitions_count; i++) {
        if (delta_partition_role(&delta->partitions[i], self) == DELTA_ROLE_REMOVED) {
            remove_partition(m, &delta->partitions[i], &wl);
        }
    }
    for (int64_t i = 0; i < delta->partitions_count; i++) {
        if (delta_partition_role(&delta->partitions[i], self) == DELTA_ROLE_LEADER) {
            follow(m, image, &delta->partitions[i], &last, &wl);
        }
    }
    for (int64_t i = 0; i < delta->partitions_count; i++) {
        if (delta_partition_role(&delta->partitions[i], self) == DELTA_ROLE_FOLLOWER) {
            follow(m, image, &delta->partitions[i], &last, &wl);
        }
    }
    topic_rules_unref(last.rules);
    apply_configs(m, image, delta, &wl);
    if (delta->brokers_count > 0) {
        replica_manager_each(m, set_brokers, (void *)(uintptr_t)delta);
    }
    if (!m->seen_image) {
        m->seen_image = true;
        replica_retire_strays(m);
    }
    wake_list_send(&wl);
}
