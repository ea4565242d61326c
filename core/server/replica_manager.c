// SPDX-License-Identifier: Apache-2.0
// The table of this broker's partitions, its opening and its closing.
#include "core/server/replica_manager.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/server/replica_internal.h"

#define OPEN_FILES_MAX 8192 // descriptors kept open without being in use, where nothing is said

int replica_manager_open(struct broker *b, struct replica_manager **out, struct errmsg *msg)
{
    struct replica_manager *m = mem_zalloc(sizeof *m);
    m->broker = b;
    m->files = file_cache_new(b->settings.open_files_max > 0 ? b->settings.open_files_max : OPEN_FILES_MAX);
    mutex_init(&m->lock);
    mutex_init(&m->flush_lock);
    hmap_init(&m->topics, HMAP_UUID);
    hmap_init(&m->stored, HMAP_SLICE);
    list_init(&m->flush_wanted);
    m->flush_job.work = replica_flush_work;
    int err = replica_dirs_open(m, msg);
    if (err != 0) {
        (void)replica_manager_close(m, -1, NULL);
        return err;
    }
    *out = m;
    return 0;
}

struct partition *replica_manager_find(struct replica_manager *m, const struct uuid *topic_id,
                                       partition_id index)
{
    struct partition *p = NULL;
    mutex_lock(&m->lock);
    struct topic_replicas *t = hmap_get_uuid(&m->topics, *topic_id);
    if (t != NULL && index >= 0 && index < t->slots_count && t->slots[index] != NULL) {
        p = partition_ref(t->slots[index]);
    }
    mutex_unlock(&m->lock);
    return p;
}

void replica_manager_each(struct replica_manager *m, void (*each)(void *data, struct partition *p),
                          void *data)
{
    mutex_lock(&m->lock);
    size_t count = 0;
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&m->topics, &at)) != NULL) {
        count += (size_t)((struct topic_replicas *)slot->value)->used;
    }
    struct partition **all = mem_alloc(count * sizeof *all);
    size_t n = 0;
    at = 0;
    while ((slot = hmap_next(&m->topics, &at)) != NULL) {
        struct topic_replicas *t = slot->value;
        for (int32_t i = 0; i < t->slots_count; i++) {
            if (t->slots[i] != NULL) {
                all[n++] = partition_ref(t->slots[i]);
            }
        }
    }
    mutex_unlock(&m->lock);
    MUST(n == count);
    for (size_t i = 0; i < n; i++) {
        each(data, all[i]);
        partition_unref(all[i]);
    }
    mem_free(all);
}

unsigned replica_manager_dirs(const struct replica_manager *m)
{
    return m->dirs_count;
}

struct log_dir *replica_manager_dir(const struct replica_manager *m, unsigned index)
{
    return m->dirs[index].dir;
}

bool replica_manager_dir_is_online(const struct replica_manager *m, unsigned index)
{
    return m->dirs[index].dir != NULL && !log_dir_is_offline(m->dirs[index].dir);
}

static void close_partition(struct partition *p, int *first_error, struct errmsg *msg)
{
    struct wake_list wl = {.count = 0};
    mutex_lock(&p->lock);
    struct partition_log *log = p->log;
    partition_end_waits_locked(p, KE_NOT_LEADER_OR_FOLLOWER, &wl);
    p->log = NULL;
    p->deleted = true;
    mutex_unlock(&p->lock);
    if (log != NULL) {
        int err = plog_close(log, *first_error == 0 ? msg : NULL);
        *first_error = *first_error == 0 ? err : *first_error;
    }
    partition_unref(p);
}

int replica_manager_close(struct replica_manager *m, broker_epoch epoch, struct errmsg *msg)
{
    int first_error = 0;
    size_t at = 0;
    const struct hmap_slot *slot;
    while ((slot = hmap_next(&m->topics, &at)) != NULL) {
        struct topic_replicas *t = slot->value;
        for (int32_t i = 0; i < t->slots_count; i++) {
            if (t->slots[i] != NULL) {
                close_partition(t->slots[i], &first_error, msg);
            }
        }
        mem_free(t->slots);
        mem_free(t);
    }
    at = 0;
    while ((slot = hmap_next(&m->stored, &at)) != NULL) {
        struct stored_log *s = slot->value;
        int err = plog_close(s->log, first_error == 0 ? msg : NULL);
        first_error = first_error == 0 ? err : first_error;
        mem_free(s->name);
        mem_free(s);
    }
    while (m->doomed != NULL) { // what is left is removed at the next start
        struct doomed *d = m->doomed;
        m->doomed = d->next;
        plog_doomed_fini(&d->files);
        mem_free(d);
    }
    for (unsigned i = 0; i < m->dirs_count; i++) {
        if (m->dirs[i].dir != NULL) {
            int err = log_dir_close(m->dirs[i].dir, epoch, first_error == 0 ? msg : NULL);
            first_error = first_error == 0 ? err : first_error;
        }
    }
    mem_free(m->dirs);
    hmap_fini(&m->topics);
    hmap_fini(&m->stored);
    mutex_fini(&m->lock);
    mutex_fini(&m->flush_lock);
    file_cache_free(m->files);
    mem_free(m);
    return first_error;
}
