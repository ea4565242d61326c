// SPDX-License-Identifier: Apache-2.0
// Replay of the records of topics and partitions, with their epochs.
#include "core/metadata/image_priv.h"

#include "core/base/mem.h"

int replay__topic(struct image *img, const struct kp_topic_record *r, struct errmsg *msg)
{
    if (r->name.len == 0 || uuid_is_zero(r->topic_id))
        return err_set(msg, ERR_INVALID, "a topic without a name or an id");
    if (image_topic(img, r->topic_id))
        return err_set(msg, ERR_INVALID, "the topic id of '" SLICE_FMT "' is in use", SLICE_ARG(r->name));
    if (image_topic_named(img, r->name))
        return err_set(msg, ERR_INVALID, "topic '" SLICE_FMT "' is there already", SLICE_ARG(r->name));
    struct topic_info *info = topic_info__create(r->name, r->topic_id, img->next_ordinal++);
    pmap_put(&img->topic_ids, image__ref(info));
    pmap_put(&img->topic_names, image__ref(info));
    imap_put(&img->topics, info->ordinal, topic__create(info));
    return 0;
}

static int find_topic(const struct image *img, struct uuid id, const struct image_topic **out,
                      struct errmsg *msg)
{
    *out = image_topic(img, id);
    if (*out)
        return 0;
    char text[UUID_TEXT_BYTES];
    uuid_format(id, text);
    return err_set(msg, ERR_INVALID, "there is no topic with the id %s", text);
}

int replay__remove_topic(struct image *img, const struct kp_remove_topic_record *r, struct errmsg *msg)
{
    const struct image_topic *t;
    int err = find_topic(img, r->topic_id, &t, msg);
    if (err)
        return err;
    struct topic_info *info = image__ref(t->info);
    uint64_t index;
    const struct image_partition *p = imap_next(&t->partitions, 0, &index);
    for (; p; p = imap_next(&t->partitions, index + 1, &index)) {
        sets__update(img, info->ordinal, (partition_id)index, p, NULL);
        img->partition_count--;
    }
    config__remove_all(img, CONFIG_RESOURCE_TOPIC, info->name);
    (void)pmap_remove(&img->topic_ids, &info->id);
    (void)pmap_remove(&img->topic_names, &info->name);
    (void)imap_remove(&img->topics, info->ordinal);
    topic_info__unref(info);
    return 0;
}

// Puts the partition (one reference) where the topic has `before` now.
static void put_partition(struct image *img, const struct image_topic *t, partition_id index,
                          const struct image_partition *before, struct image_partition *after)
{
    struct image_topic *own = topic__writable(img, t);
    sets__update(img, own->info->ordinal, index, before, after);
    imap_put(&own->partitions, (uint64_t)index, after);
    if (!before)
        img->partition_count++;
    if (index >= own->count)
        own->count = index + 1;
}

int replay__partition(struct image *img, const struct kp_partition_record *r, int16_t version,
                      struct errmsg *msg)
{
    const struct image_topic *t;
    int err = find_topic(img, r->topic_id, &t, msg);
    if (err)
        return err;
    if (r->partition_id < 0 || r->partition_id == INT32_MAX)
        return err_set(msg, ERR_INVALID, "partition %d", r->partition_id);
    struct partition_draft d = {
        .replicas = r->replicas,
        .isr = r->isr,
        .removing = r->removing_replicas,
        .adding = r->adding_replicas,
        .elr = r->eligible_leader_replicas,
        .last_elr = r->last_known_elr,
        .directories = r->directories_count > 0 ? r->directories : NULL,
        .replicas_count = r->replicas_count,
        .isr_count = r->isr_count,
        .removing_count = r->removing_replicas_count,
        .adding_count = r->adding_replicas_count,
        .elr_count = r->eligible_leader_replicas_count,
        .last_elr_count = r->last_known_elr_count,
        .directories_count = r->directories_count,
        .leader = r->leader,
        .epoch = r->leader_epoch,
        .partition_epoch = r->partition_epoch,
        .recovery = r->leader_recovery_state,
        .dirs = PARTITION_DIRS_MIGRATING,
    };
    struct image_partition *p;
    err = partition__build(&d, &p, msg);
    if (err)
        return err;
    put_partition(img, t, r->partition_id, topic_partition(t, r->partition_id), p);
    return 0;
}

static void draft_of(const struct image_partition *p, struct partition_draft *d)
{
    *d = (struct partition_draft){
        .replicas = partition_replicas(p),
        .isr = partition_isr(p),
        .removing = partition_removing(p),
        .adding = partition_adding(p),
        .elr = partition_elr(p),
        .last_elr = partition_last_elr(p),
        .replicas_count = p->replicas_count,
        .isr_count = p->isr_count,
        .removing_count = p->removing_count,
        .adding_count = p->adding_count,
        .elr_count = p->elr_count,
        .last_elr_count = p->last_elr_count,
        .leader = p->leader,
        .epoch = p->epoch,
        .partition_epoch = p->partition_epoch,
        .recovery = p->recovery,
        .dirs = (enum partition_dirs)p->dirs,
    };
}

// The directories of the new replica list, where the record does not say them: each replica keeps its own,
// new ones have none yet.
static struct uuid *kept_directories(const struct image_partition *p, const broker_id *replicas,
                                     int32_t count)
{
    struct uuid *dirs = mem_calloc((size_t)count, sizeof *dirs);
    for (int32_t i = 0; i < count; i++)
        dirs[i] = partition_directory_of(p, replicas[i]);
    return dirs;
}

static void set_list(const broker_id **list, int32_t *count, const int32_t *from, int32_t from_count)
{
    if (from_count < 0)
        return;
    *list = from;
    *count = from_count;
}

int replay__change_partition(struct image *img, const struct kp_partition_change_record *r,
                             struct errmsg *msg)
{
    const struct image_topic *t;
    int err = find_topic(img, r->topic_id, &t, msg);
    if (err)
        return err;
    const struct image_partition *before = topic_partition(t, r->partition_id);
    if (!before)
        return err_set(msg, ERR_INVALID, "topic '" SLICE_FMT "' has no partition %d",
                       SLICE_ARG(t->info->name), r->partition_id);
    if (before->epoch == INT32_MAX || before->partition_epoch == INT32_MAX)
        return err_set(msg, ERR_INVALID, "the epochs of partition %d are used up", r->partition_id);
    struct partition_draft d;
    draft_of(before, &d);
    set_list(&d.isr, &d.isr_count, r->isr, r->isr_count);
    set_list(&d.replicas, &d.replicas_count, r->replicas, r->replicas_count);
    set_list(&d.removing, &d.removing_count, r->removing_replicas, r->removing_replicas_count);
    set_list(&d.adding, &d.adding_count, r->adding_replicas, r->adding_replicas_count);
    set_list(&d.elr, &d.elr_count, r->eligible_leader_replicas, r->eligible_leader_replicas_count);
    set_list(&d.last_elr, &d.last_elr_count, r->last_known_elr, r->last_known_elr_count);
    if (r->leader != LEADER_NO_CHANGE) {
        d.leader = r->leader;
        d.epoch++;
    }
    if (r->leader_recovery_state != -1)
        d.recovery = r->leader_recovery_state;
    d.partition_epoch++;
    struct uuid *kept = NULL;
    if (r->directories_count > 0) {
        d.directories = r->directories;
        d.directories_count = r->directories_count;
    } else if (r->directories_count == 0) {
        d.dirs = PARTITION_DIRS_MIGRATING;
    } else if (before->dirs == PARTITION_DIRS_STORED) {
        kept = d.replicas_count > 0 ? kept_directories(before, d.replicas, d.replicas_count) : NULL;
        d.directories = kept;
        d.directories_count = d.replicas_count;
    }
    struct image_partition *after;
    err = partition__build(&d, &after, msg);
    mem_free(kept);
    if (err)
        return err;
    put_partition(img, t, r->partition_id, before, after);
    return 0;
}

static int clear_topic_elr(struct image *img, const struct image_topic *t, struct errmsg *msg)
{
    uint64_t index;
    const struct image_partition *p = imap_next(&t->partitions, 0, &index);
    while (p) {
        if (p->elr_count > 0 || p->last_elr_count > 0) {
            int32_t none = 0;
            struct kp_partition_change_record change;
            kp_partition_change_record_init(&change);
            change.topic_id = t->info->id;
            change.partition_id = (partition_id)index;
            change.eligible_leader_replicas = &none;
            change.last_known_elr = &none;
            change.eligible_leader_replicas_count = 0;
            change.last_known_elr_count = 0;
            int err = replay__change_partition(img, &change, msg);
            if (err)
                return err;
            t = image_topic(img, change.topic_id);
        }
        p = imap_next(&t->partitions, index + 1, &index);
    }
    return 0;
}

int replay__clear_elr(struct image *img, const struct kp_clear_elr_record *r, struct errmsg *msg)
{
    if (r->topic_name.len > 0) {
        const struct image_topic *t = image_topic_named(img, r->topic_name);
        if (!t)
            return err_set(msg, ERR_INVALID, "there is no topic '" SLICE_FMT "'", SLICE_ARG(r->topic_name));
        return clear_topic_elr(img, t, msg);
    }
    uint64_t ordinal;
    const struct image_topic *t = imap_next(&img->topics, 0, &ordinal);
    for (; t; t = imap_next(&img->topics, ordinal + 1, &ordinal)) {
        int err = clear_topic_elr(img, t, msg);
        if (err)
            return err;
    }
    return 0;
}
