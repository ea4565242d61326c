// SPDX-License-Identifier: Apache-2.0
// One partition of the image: how it is packed, checked and read.
#include "core/metadata/image_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"

static uint32_t ids_count(const struct image_partition *p)
{
    return (uint32_t)p->replicas_count + p->isr_count + p->removing_count + p->adding_count + p->elr_count +
           p->last_elr_count;
}

struct uuid partition_directory(const struct image_partition *p, uint32_t i)
{
    if (p->dirs == PARTITION_DIRS_MIGRATING)
        return UUID_DIR_MIGRATING;
    if (p->dirs == PARTITION_DIRS_UNASSIGNED || i >= p->replicas_count)
        return UUID_DIR_UNASSIGNED;
    struct uuid dir;
    memcpy(&dir, (const uint8_t *)(p->ids + ids_count(p)) + i * sizeof dir, sizeof dir);
    return dir;
}

struct uuid partition_directory_of(const struct image_partition *p, broker_id id)
{
    for (uint32_t i = 0; i < p->replicas_count; i++)
        if (p->ids[i] == id)
            return partition_directory(p, i);
    return UUID_DIR_UNASSIGNED;
}

static bool contains(const broker_id *ids, uint32_t count, broker_id id)
{
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

bool partition_has_replica(const struct image_partition *p, broker_id id)
{
    return contains(partition_replicas(p), p->replicas_count, id);
}

bool partition_in_isr(const struct image_partition *p, broker_id id)
{
    return contains(partition_isr(p), p->isr_count, id);
}

bool partition_reassigning(const struct image_partition *p)
{
    return p->removing_count > 0 || p->adding_count > 0;
}

void partition__unref(void *p)
{
    if (image__unref(p))
        mem_free(p);
}

// A list of broker ids: not too long, none negative, none twice.
static int check_ids(const char *what, const broker_id *ids, int32_t count, struct errmsg *msg)
{
    if (count > IMAGE_REPLICAS_MAX)
        return err_set(msg, ERR_INVALID, "%s lists %d brokers, more than the %d that make sense", what, count,
                       IMAGE_REPLICAS_MAX);
    for (int32_t i = 0; i < count; i++) {
        if (ids[i] < 0)
            return err_set(msg, ERR_INVALID, "%s holds the broker id %d", what, ids[i]);
        if (contains(ids, (uint32_t)i, ids[i]))
            return err_set(msg, ERR_INVALID, "%s holds broker %d twice", what, ids[i]);
    }
    return 0;
}

static int check(const struct partition_draft *d, struct errmsg *msg)
{
    if (d->replicas_count <= 0)
        return err_set(msg, ERR_INVALID, "a partition without replicas");
    if (d->leader < LEADER_NONE)
        return err_set(msg, ERR_INVALID, "leader %d", d->leader);
    if (d->recovery != RECOVERY_RECOVERED && d->recovery != RECOVERY_RECOVERING)
        return err_set(msg, ERR_INVALID, "leader recovery state %d", d->recovery);
    if (d->directories && d->directories_count != d->replicas_count)
        return err_set(msg, ERR_INVALID, "%d directories for %d replicas", d->directories_count,
                       d->replicas_count);
    int err = check_ids("the replica list", d->replicas, d->replicas_count, msg);
    err = err ? err : check_ids("the ISR", d->isr, d->isr_count, msg);
    err = err ? err : check_ids("the list of removing replicas", d->removing, d->removing_count, msg);
    err = err ? err : check_ids("the list of adding replicas", d->adding, d->adding_count, msg);
    err = err ? err : check_ids("the ELR", d->elr, d->elr_count, msg);
    err = err ? err : check_ids("the last known ELR", d->last_elr, d->last_elr_count, msg);
    return err;
}

// Whether the listed directories are all one reserved id and need not be stored.
static enum partition_dirs dirs_kind(const struct partition_draft *d)
{
    if (!d->directories)
        return d->dirs;
    bool migrating = true, unassigned = true;
    for (int32_t i = 0; i < d->directories_count; i++) {
        migrating = migrating && uuid_equal(d->directories[i], UUID_DIR_MIGRATING);
        unassigned = unassigned && uuid_equal(d->directories[i], UUID_DIR_UNASSIGNED);
    }
    return migrating    ? PARTITION_DIRS_MIGRATING
           : unassigned ? PARTITION_DIRS_UNASSIGNED
                        : PARTITION_DIRS_STORED;
}

static broker_id *append(broker_id *at, const broker_id *ids, int32_t count)
{
    if (count <= 0)
        return at;
    memcpy(at, ids, (size_t)count * sizeof *at);
    return at + count;
}

static uint16_t count_of(int32_t count)
{
    return count > 0 ? (uint16_t)count : 0;
}

int partition__build(const struct partition_draft *d, struct image_partition **out, struct errmsg *msg)
{
    int err = check(d, msg);
    if (err)
        return err;
    struct image_partition head = {
        .leader = d->leader,
        .epoch = d->epoch,
        .partition_epoch = d->partition_epoch,
        .replicas_count = count_of(d->replicas_count),
        .isr_count = count_of(d->isr_count),
        .removing_count = count_of(d->removing_count),
        .adding_count = count_of(d->adding_count),
        .elr_count = count_of(d->elr_count),
        .last_elr_count = count_of(d->last_elr_count),
        .recovery = d->recovery,
        .dirs = (uint8_t)dirs_kind(d),
    };
    size_t ids = ids_count(&head) * sizeof(broker_id);
    size_t dirs = head.dirs == PARTITION_DIRS_STORED ? head.replicas_count * sizeof(struct uuid) : 0;
    struct image_partition *p = mem_alloc(offsetof(struct image_partition, ids) + ids + dirs);
    memcpy(p, &head, offsetof(struct image_partition, ids));
    atomic_init(&p->refs, 1);
    broker_id *at = append(p->ids, d->replicas, d->replicas_count);
    at = append(at, d->isr, d->isr_count);
    at = append(at, d->removing, d->removing_count);
    at = append(at, d->adding, d->adding_count);
    at = append(at, d->elr, d->elr_count);
    at = append(at, d->last_elr, d->last_elr_count);
    if (dirs)
        memcpy(at, d->directories, dirs);
    *out = p;
    return 0;
}
