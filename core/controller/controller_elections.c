// SPDX-License-Identifier: Apache-2.0
// Elections that follow from what happens to brokers, ElectLeaders, leader balance, unclean elections.
//
// What does not fit into one batch is left over: the caller's next call, or the next tick (sessions->repair),
// goes on with it.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/elect_leaders_request.h"
#include "core/protocol/gen/elect_leaders_response.h"

static bool full(const struct record_list *records)
{
    return records->count + 1 >= CONTROLLER_RECORDS_MAX; // room for the record that ends the operation
}

static void leave_isr(struct controller *c, struct image_walk *w, broker_id id, bool unclean,
                      struct record_list *records)
{
    struct partition_change b;
    partition_change__init(&b, c, w->topic, w->index, w->partition);
    b.removed = unclean ? LEADER_NONE : id;
    b.unclean = unclean ? id : LEADER_NONE;
    partition_change__remove_from_isr(&b, id);
    (void)partition_change__finish(&b, records);
}

void controller__remove_from_isrs(struct controller *c, broker_id id, bool unclean,
                                  struct record_list *records)
{
    struct image_walk w = {0};
    while (!full(records) && image_walk_next(c->image, IMAGE_SET_ISR, id, &w))
        leave_isr(c, &w, id, unclean, records);
    struct image_walk elr = {0};
    while (unclean && !full(records) && image_walk_next(c->image, IMAGE_SET_ELR, id, &elr))
        if (!partition_in_isr(elr.partition, id))
            leave_isr(c, &elr, id, true, records);
}

void controller__elect_leaderless(struct controller *c, broker_id added, struct record_list *records)
{
    struct image_walk w = {0};
    while (image_walk_next(c->image, IMAGE_SET_LEADER, LEADER_NONE, &w)) {
        if (full(records)) {
            c->sessions->repair = true;
            return;
        }
        if (added != LEADER_NONE && !partition_has_replica(w.partition, added))
            continue;
        struct partition_change b;
        partition_change__init(&b, c, w.topic, w.index, w.partition);
        b.added = added;
        (void)partition_change__finish(&b, records);
    }
}

void controller__leave_directories(struct controller *c, broker_id id, const struct uuid *dirs, int32_t count,
                                   struct record_list *records)
{
    struct image_walk w = {0};
    while (!full(records) && image_walk_next(c->image, IMAGE_SET_ISR, id, &w)) {
        struct uuid dir = partition_directory_of(w.partition, id);
        bool hit = false;
        for (int32_t i = 0; i < count; i++)
            hit = hit || uuid_equal(dirs[i], dir);
        if (hit)
            leave_isr(c, &w, id, false, records);
    }
}

// ---- ElectLeaders
// --------------------------------------------------------------------------------------------
#define ELECT_PREFERRED 0
#define ELECT_UNCLEAN 1

static struct refusal elect_partition(struct controller *c, const struct image_topic *t, partition_id index,
                                      int8_t type, struct record_list *records)
{
    const struct image_partition *p = t ? topic_partition(t, index) : NULL;
    if (!p)
        return controller__refuse(c, KE_UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic or partition.");
    if (type == ELECT_PREFERRED ? p->leader == partition_preferred(p) : p->leader != LEADER_NONE)
        return controller__refuse(c, KE_ELECTION_NOT_NEEDED, "%s",
                                  type == ELECT_PREFERRED ? "The preferred replica leads already."
                                                          : "The partition has a leader.");
    if (records->count >= CONTROLLER_RECORDS_MAX)
        return controller__refuse(c, KE_POLICY_VIOLATION,
                                  "One request can elect at most %d leaders; ask again.",
                                  CONTROLLER_RECORDS_MAX);
    struct partition_change b;
    partition_change__init(&b, c, t, index, p);
    b.election = type == ELECT_PREFERRED ? ELECTION_PREFERRED : ELECTION_UNCLEAN;
    bool preferred = partition_in_isr(p, partition_preferred(p)) &&
                     partition_change__acceptable(&b, partition_preferred(p));
    if (type == ELECT_PREFERRED && !preferred)
        return controller__refuse(c, KE_PREFERRED_LEADER_NOT_AVAILABLE,
                                  "The preferred replica %d is not in sync or not available.",
                                  partition_preferred(p));
    if (!partition_change__finish(&b, records))
        return controller__refuse(c, KE_ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is available to lead.");
    return NO_REFUSAL;
}

static void elect_list(struct controller *c, const struct kp_elect_leaders_request *in,
                       struct kp_elect_leaders_response *out, struct record_list *records)
{
    out->replica_election_results = arena_zalloc(
        c->arena, (size_t)in->topic_partitions_count * sizeof *out->replica_election_results + 1);
    out->replica_election_results_count = in->topic_partitions_count;
    for (int32_t i = 0; i < in->topic_partitions_count; i++) {
        const struct kp_elect_leaders_request_topic_partitions *asked = &in->topic_partitions[i];
        struct kp_elect_leaders_response_replica_election_result *result = &out->replica_election_results[i];
        int32_t count = asked->partitions_count > 0 ? asked->partitions_count : 0;
        const struct image_topic *t = image_topic_named(c->image, asked->topic);
        result->topic = asked->topic;
        result->partition_result =
            arena_zalloc(c->arena, (size_t)count * sizeof *result->partition_result + 1);
        result->partition_result_count = count;
        struct hmap seen;
        hmap_init(&seen, HMAP_U64);
        for (int32_t k = 0; k < count; k++) {
            partition_id index = asked->partitions[k];
            struct refusal no;
            if (hmap_put_u64(&seen, (uint32_t)index, &seen))
                no = controller__refuse(c, KE_INVALID_REQUEST, "Partition %d is named twice.", index);
            else
                no = elect_partition(c, t, index, in->election_type, records);
            result->partition_result[k].partition_id = index;
            result->partition_result[k].error_code = (int16_t)no.code;
            result->partition_result[k].error_message = no.text;
        }
        hmap_fini(&seen);
    }
}

// All partitions: only those that need an election are gone through, and only those are answered.
struct all_results {
    struct controller *c;                  // context
    struct kp_elect_leaders_response *out; // being filled
    struct hmap by_topic;                  // topic id -> number of its result, plus one
};
typedef struct kp_elect_leaders_response_replica_election_result topic_result;
typedef struct kp_elect_leaders_response_partition_result partition_result;

// A copy of the list with room for twice as much, where it is full (its count a power of two, or 0).
static void *list_room(struct controller *c, void *list, int32_t count, size_t size)
{
    if (count & (count - 1))
        return list;
    void *more = arena_zalloc(c->arena, (size_t)(count ? count * 2 : 1) * size);
    if (count)
        memcpy(more, list, (size_t)count * size);
    return more;
}

static topic_result *result_of(struct all_results *all, const struct image_topic *t)
{
    struct kp_elect_leaders_response *out = all->out;
    uintptr_t number = (uintptr_t)hmap_get_uuid(&all->by_topic, topic_id(t));
    if (number == 0) {
        out->replica_election_results = list_room(all->c, out->replica_election_results,
                                                  out->replica_election_results_count, sizeof(topic_result));
        number = (uintptr_t)++out->replica_election_results_count;
        out->replica_election_results[number - 1].topic = arena_dup_slice(all->c->arena, topic_name(t));
        (void)hmap_put_uuid(&all->by_topic, topic_id(t), (void *)number);
    }
    return &out->replica_election_results[number - 1];
}

static void elect_set(struct all_results *all, enum image_set set, broker_id id, int8_t type,
                      struct record_list *records)
{
    struct image_walk w = {0};
    while (records->count < CONTROLLER_RECORDS_MAX && image_walk_next(all->c->image, set, id, &w)) {
        struct refusal no = elect_partition(all->c, w.topic, w.index, type, records);
        topic_result *r = result_of(all, w.topic);
        r->partition_result =
            list_room(all->c, r->partition_result, r->partition_result_count, sizeof(partition_result));
        partition_result *p = &r->partition_result[r->partition_result_count++];
        *p = (partition_result){
            .partition_id = w.index, .error_code = (int16_t)no.code, .error_message = no.text};
    }
}

static void elect_all(struct controller *c, int8_t type, struct kp_elect_leaders_response *out,
                      struct record_list *records)
{
    struct all_results all = {.c = c, .out = out};
    hmap_init(&all.by_topic, HMAP_UUID);
    if (type == ELECT_UNCLEAN)
        elect_set(&all, IMAGE_SET_LEADER, LEADER_NONE, type, records);
    const struct image_broker *b = NULL;
    while (type == ELECT_PREFERRED && (b = image_broker_next(c->image, b)) != NULL)
        elect_set(&all, IMAGE_SET_NOT_PREFERRED, b->id, type, records);
    hmap_fini(&all.by_topic);
}

void controller_elect_leaders(struct controller *c, const struct kp_elect_leaders_request *in,
                              struct kp_elect_leaders_response *out, struct record_list *records)
{
    kp_elect_leaders_response_init(out);
    if (in->election_type != ELECT_PREFERRED && in->election_type != ELECT_UNCLEAN)
        out->error_code = KE_INVALID_REQUEST;
    else if (in->topic_partitions_count >= 0)
        elect_list(c, in, out, records);
    else
        elect_all(c, in->election_type, out, records);
}

// ---- periodic
// ------------------------------------------------------------------------------------------------
static bool out_of_balance(const struct controller *c, broker_id id)
{
    int64_t preferred = image_preferred_count(c->image, id);
    int64_t elsewhere = image_set_count(c->image, IMAGE_SET_NOT_PREFERRED, id);
    return elsewhere > 0 && (double)elsewhere > c->opts->imbalance_limit * (double)preferred;
}

bool controller_balance_leaders(struct controller *c, struct record_list *records)
{
    const struct image_broker *broker = NULL;
    while ((broker = image_broker_next(c->image, broker)) != NULL) {
        if (!image_broker_active(broker) || !out_of_balance(c, broker->id))
            continue;
        struct image_walk w = {0};
        while (image_walk_next(c->image, IMAGE_SET_NOT_PREFERRED, broker->id, &w)) {
            if (partition_reassigning(w.partition) || !partition_in_isr(w.partition, broker->id))
                continue;
            if (records->count >= CONTROLLER_ELECTIONS_MAX)
                return true;
            struct partition_change b;
            partition_change__init(&b, c, w.topic, w.index, w.partition);
            b.election = ELECTION_PREFERRED;
            if (partition_change__acceptable(&b, broker->id))
                (void)partition_change__finish(&b, records);
        }
    }
    return false;
}

bool controller_elect_unclean(struct controller *c, struct record_list *records)
{
    struct image_walk w = {0};
    while (image_walk_next(c->image, IMAGE_SET_LEADER, LEADER_NONE, &w)) {
        if (!controller__unclean_allowed(c, w.topic))
            continue;
        if (records->count >= CONTROLLER_ELECTIONS_MAX)
            return true;
        struct partition_change b;
        partition_change__init(&b, c, w.topic, w.index, w.partition);
        (void)partition_change__finish(&b, records);
    }
    return false;
}
