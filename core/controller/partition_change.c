// SPDX-License-Identifier: Apache-2.0
// From what a partition is to what it shall be: leader election, ELR, completed reassignments, and the record
// that says so.
//
// Order of a leader election: the current leader while it is valid; else the first in replica order that is
// in the ISR (or the ELR) and acceptable; else the last known leader where ELR is on; else, unclean only, the
// first acceptable one, which then is the whole ISR and has to recover. Without ELR the last member never
// leaves the ISR: the partition goes without a leader and waits for exactly that broker.
#include "core/controller/controller_priv.h"

static bool contains(const broker_id *ids, int32_t count, broker_id id)
{
    for (int32_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static bool same_list(const broker_id *a, int32_t a_count, const broker_id *b, int32_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, (size_t)a_count * sizeof *a) == 0);
}

// A list in the arena with room for one more; never NULL, so that an empty list is not null in a record.
static broker_id *list_copy(struct partition_change *b, const broker_id *ids, int32_t count)
{
    broker_id *copy = arena_alloc(b->c->arena, ((size_t)count + 1) * sizeof *copy);
    if (ids && count > 0)
        memcpy(copy, ids, (size_t)count * sizeof *copy);
    return copy;
}

void partition_change__init(struct partition_change *b, struct controller *c, const struct image_topic *t,
                            partition_id index, const struct image_partition *p)
{
    *b = (struct partition_change){.c = c, .topic = t, .p = p, .index = index, .recovery = p->recovery};
    b->removed = b->added = b->unclean = LEADER_NONE;
    b->zk_epoch_bump = controller__mv(c)->level < METADATA_VERSION_NO_EPOCH_BUMP_ON_SHRINK;
    b->election = controller__unclean_allowed(c, t) ? ELECTION_UNCLEAN : ELECTION_ONLINE;
    b->replicas = list_copy(b, partition_replicas(p), b->replicas_count = p->replicas_count);
    b->isr = list_copy(b, partition_isr(p), b->isr_count = p->isr_count);
    b->elr = list_copy(b, partition_elr(p), b->elr_count = p->elr_count);
    b->last_elr = list_copy(b, partition_last_elr(p), b->last_elr_count = p->last_elr_count);
    b->removing = list_copy(b, partition_removing(p), b->removing_count = p->removing_count);
    b->adding = list_copy(b, partition_adding(p), b->adding_count = p->adding_count);
}

void partition_change__set_isr(struct partition_change *b, const broker_id *ids, int32_t count)
{
    b->isr = list_copy(b, ids, count);
    b->isr_count = count;
}

static int32_t list_without(broker_id *ids, int32_t count, broker_id id)
{
    int32_t out = 0;
    for (int32_t i = 0; i < count; i++)
        if (ids[i] != id)
            ids[out++] = ids[i];
    return out;
}

void partition_change__remove_from_isr(struct partition_change *b, broker_id id)
{
    b->isr_count = list_without(b->isr, b->isr_count, id);
}

void partition_change__set_directory(struct partition_change *b, broker_id id, struct uuid dir)
{
    if (!b->directories) {
        b->directories = arena_alloc(b->c->arena, (size_t)b->replicas_count * sizeof *b->directories);
        for (int32_t i = 0; i < b->replicas_count; i++)
            b->directories[i] = partition_directory_of(b->p, b->replicas[i]);
    }
    for (int32_t i = 0; i < b->replicas_count; i++)
        if (b->replicas[i] == id)
            b->directories[i] = dir;
}

bool partition_change__acceptable(const struct partition_change *b, broker_id id)
{
    const struct image_broker *broker = image_broker(b->c->image, id);
    if (!broker || id == b->removed || id == b->unclean)
        return false;
    if (id != b->added && !image_broker_active(broker))
        return false;
    struct uuid dir = partition_directory_of(b->p, id);
    for (int32_t i = 0; b->directories && i < b->replicas_count; i++)
        if (b->replicas[i] == id)
            dir = b->directories[i];
    return image_broker_dir_online(broker, dir);
}

// ---- ELR
// -----------------------------------------------------------------------------------------------------
static int32_t effective_min_isr(const struct partition_change *b)
{
    int32_t min = controller__min_isr(b->c, b->topic);
    return min < b->replicas_count ? min : b->replicas_count;
}

static void add_once(broker_id *ids, int32_t *count, broker_id id)
{
    if (!contains(ids, *count, id))
        ids[(*count)++] = id;
}

// Those that leave an ISR below the minimum become eligible; an ISR that is large enough makes both lists
// empty.
static void populate_elr(struct partition_change *b)
{
    if (!controller__elr_enabled(b->c->image))
        return;
    if (b->isr_count >= effective_min_isr(b)) {
        b->elr_count = b->last_elr_count = 0;
        return;
    }
    const broker_id *old_isr = partition_isr(b->p);
    int32_t room = b->elr_count + b->last_elr_count + b->p->isr_count;
    broker_id *elr = list_copy(b, NULL, room > 0 ? room : 0), *last = list_copy(b, NULL, room > 0 ? room : 0);
    int32_t elr_count = 0, last_count = 0;
    for (int32_t i = 0; i < b->elr_count + b->p->isr_count; i++) {
        broker_id id = i < b->elr_count ? b->elr[i] : old_isr[i - b->elr_count];
        if (!contains(b->isr, b->isr_count, id) && id != b->unclean)
            add_once(elr, &elr_count, id);
    }
    for (int32_t i = 0; i < b->last_elr_count + b->p->isr_count; i++) {
        broker_id id = i < b->last_elr_count ? b->last_elr[i] : old_isr[i - b->last_elr_count];
        if (!contains(b->isr, b->isr_count, id) && !contains(elr, elr_count, id))
            add_once(last, &last_count, id);
    }
    b->elr = elr;
    b->elr_count = elr_count;
    b->last_elr = last;
    b->last_elr_count = last_count;
}

// ---- election
// ------------------------------------------------------------------------------------------------
static bool valid_leader(const struct partition_change *b, broker_id id)
{
    bool eligible = contains(b->isr, b->isr_count, id) ||
                    (controller__elr_enabled(b->c->image) && contains(b->elr, b->elr_count, id));
    return eligible && partition_change__acceptable(b, id);
}

static broker_id first_valid(const struct partition_change *b)
{
    for (int32_t i = 0; i < b->replicas_count; i++)
        if (valid_leader(b, b->replicas[i]))
            return b->replicas[i];
    return LEADER_NONE;
}

// The last leader of a partition whose ISR and ELR are both empty.
static broker_id last_known_leader(const struct partition_change *b)
{
    if (!controller__elr_enabled(b->c->image) || b->isr_count > 0 || b->elr_count > 0 ||
        b->last_elr_count != 1)
        return LEADER_NONE;
    return partition_change__acceptable(b, b->last_elr[0]) ? b->last_elr[0] : LEADER_NONE;
}

static broker_id elect(const struct partition_change *b, bool *unclean)
{
    *unclean = false;
    if (b->election == ELECTION_PREFERRED && valid_leader(b, b->replicas[0]))
        return b->replicas[0];
    if (valid_leader(b, b->p->leader))
        return b->p->leader;
    broker_id leader = first_valid(b);
    if (leader != LEADER_NONE)
        return leader;
    *unclean = true;
    leader = last_known_leader(b);
    if (leader != LEADER_NONE || b->election != ELECTION_UNCLEAN)
        return leader;
    for (int32_t i = 0; i < b->replicas_count; i++)
        if (partition_change__acceptable(b, b->replicas[i]))
            return b->replicas[i];
    return LEADER_NONE;
}

static void try_election(struct partition_change *b, struct kp_partition_change_record *r)
{
    bool unclean;
    broker_id leader = elect(b, &unclean);
    if (leader == b->p->leader)
        return;
    r->leader = leader;
    if (leader == LEADER_NONE)
        return;
    if (unclean) {
        b->isr[0] = leader;
        b->isr_count = 1;
        b->recovery = RECOVERY_RECOVERING;
        b->elr_count = list_without(b->elr, b->elr_count, leader);
    } else if (!contains(b->isr, b->isr_count, leader)) {
        b->isr[0] = leader;
        b->isr_count = 1;
        b->elr_count = list_without(b->elr, b->elr_count, leader);
    }
}

// ---- reassignment
// -------------------------------------------------------------------------------------------- Done when
// every adding replica is in the ISR and at least one target replica is; where the number of replicas
// shrinks, when all target replicas are in the ISR.
static void complete_reassignment(struct partition_change *b)
{
    if (b->removing_count == 0 && b->adding_count == 0)
        return;
    broker_id *isr = list_copy(b, b->isr, b->isr_count),
              *replicas = list_copy(b, b->replicas, b->replicas_count);
    int32_t isr_count = b->isr_count, replicas_count = b->replicas_count;
    for (int32_t i = 0; i < b->removing_count; i++) {
        isr_count = list_without(isr, isr_count, b->removing[i]);
        replicas_count = list_without(replicas, replicas_count, b->removing[i]);
    }
    if (isr_count == 0 || replicas_count == 0)
        return;
    for (int32_t i = 0; i < b->adding_count; i++)
        if (!contains(isr, isr_count, b->adding[i]))
            return;
    bool shrinks = b->adding_count < b->removing_count;
    for (int32_t i = 0; shrinks && i < replicas_count; i++)
        if (!contains(isr, isr_count, replicas[i]))
            return;
    b->isr = isr;
    b->isr_count = isr_count;
    b->replicas = replicas;
    b->replicas_count = replicas_count;
    b->removing_count = b->adding_count = 0;
}

static bool lost_a_replica(const struct partition_change *b)
{
    const broker_id *old = partition_replicas(b->p);
    for (int32_t i = 0; i < b->p->replicas_count; i++)
        if (!contains(b->replicas, b->replicas_count, old[i]))
            return true;
    return false;
}

static bool lost_an_isr_member(const struct partition_change *b)
{
    const broker_id *old = partition_isr(b->p);
    for (int32_t i = 0; i < b->p->isr_count; i++)
        if (!contains(b->isr, b->isr_count, old[i]))
            return true;
    return false;
}

// ---- the record
// ---------------------------------------------------------------------------------------------- Directories
// go into the record where they were set or where the list of replicas changes.
static void write_directories(struct partition_change *b, struct kp_partition_change_record *r,
                              bool replicas_changed)
{
    if (controller__mv(b->c)->partition_change < 1 || (!b->directories && !replicas_changed))
        return;
    struct uuid *dirs = arena_alloc(b->c->arena, (size_t)b->replicas_count * sizeof *dirs);
    bool differ = replicas_changed;
    for (int32_t i = 0; i < b->replicas_count; i++) {
        broker_id id = b->replicas[i];
        bool old = partition_has_replica(b->p, id);
        dirs[i] = old ? partition_directory_of(b->p, id) : controller__default_dir(b->c->image, id);
        if (b->directories && !replicas_changed)
            dirs[i] = b->directories[i];
        differ = differ || !uuid_equal(dirs[i], partition_directory_of(b->p, id));
    }
    if (!differ)
        return;
    r->directories = dirs;
    r->directories_count = b->replicas_count;
}

static void write_lists(struct partition_change *b, struct kp_partition_change_record *r)
{
    const struct image_partition *p = b->p;
    bool elr = controller__elr_enabled(b->c->image);
    if ((b->isr_count > 0 || elr) && !same_list(b->isr, b->isr_count, partition_isr(p), p->isr_count)) {
        r->isr = b->isr;
        r->isr_count = b->isr_count;
    }
    bool replicas = !same_list(b->replicas, b->replicas_count, partition_replicas(p), p->replicas_count);
    if (replicas) {
        r->replicas = b->replicas;
        r->replicas_count = b->replicas_count;
    }
    if (!same_list(b->removing, b->removing_count, partition_removing(p), p->removing_count)) {
        r->removing_replicas = b->removing;
        r->removing_replicas_count = b->removing_count;
    }
    if (!same_list(b->adding, b->adding_count, partition_adding(p), p->adding_count)) {
        r->adding_replicas = b->adding;
        r->adding_replicas_count = b->adding_count;
    }
    if (elr && !same_list(b->elr, b->elr_count, partition_elr(p), p->elr_count)) {
        r->eligible_leader_replicas = b->elr;
        r->eligible_leader_replicas_count = b->elr_count;
    }
    if (elr && r->isr && r->isr_count == 0 && p->leader != LEADER_NONE) {
        b->last_elr[0] = p->leader; // the one that had everything last
        b->last_elr_count = 1;
    }
    if (elr && !same_list(b->last_elr, b->last_elr_count, partition_last_elr(p), p->last_elr_count)) {
        r->last_known_elr = b->last_elr;
        r->last_known_elr_count = b->last_elr_count;
    }
    if (b->recovery != p->recovery)
        r->leader_recovery_state = b->recovery;
    write_directories(b, r, replicas);
}

bool partition_change__finish(struct partition_change *b, struct record_list *records)
{
    uint32_t before = records->count;
    complete_reassignment(b);
    populate_elr(b);
    struct metadata_record *m =
        record_list_add(records, METADATA_PARTITION_CHANGE, controller__mv(b->c)->partition_change);
    struct kp_partition_change_record *r = &m->body.partition_change;
    r->topic_id = topic_id(b->topic);
    r->partition_id = b->index;
    try_election(b, r);
    bool bump = lost_a_replica(b) || (b->zk_epoch_bump && lost_an_isr_member(b) && b->isr_count > 0);
    if (r->leader == LEADER_NO_CHANGE && bump)
        r->leader = b->p->leader;
    write_lists(b, r);
    bool changes = r->leader != LEADER_NO_CHANGE || r->isr || r->replicas || r->removing_replicas ||
                   r->adding_replicas || r->eligible_leader_replicas || r->last_known_elr || r->directories ||
                   r->leader_recovery_state != -1;
    if (!changes)
        record_list_cut(records, before);
    return changes;
}
