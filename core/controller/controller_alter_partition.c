// SPDX-License-Identifier: Apache-2.0
// AlterPartition: a leader proposes a new ISR, as compare-and-swap on leader epoch and partition epoch.
#include "core/controller/controller_priv.h"
#include "core/protocol/gen/alter_partition_request.h"
#include "core/protocol/gen/alter_partition_response.h"

typedef struct kp_alter_partition_request_partition_data proposal;
typedef struct kp_alter_partition_response_partition_data verdict;

// The proposed ISR as ids with the broker epoch that the leader saw (-1: not known).
struct proposed {
    broker_id *ids;       // in the arena
    broker_epoch *epochs; // one for each
    int32_t count;        // of them
};

static struct proposed proposed_of(struct controller *c, const proposal *in, int16_t version)
{
    int32_t count = version >= 3 ? in->new_isr_with_epochs_count : in->new_isr_count;
    struct proposed p = {.count = count > 0 ? count : 0};
    p.ids = arena_alloc(c->arena, (size_t)p.count * sizeof *p.ids + 1);
    p.epochs = arena_alloc(c->arena, (size_t)p.count * sizeof *p.epochs + 1);
    for (int32_t i = 0; i < p.count; i++) {
        p.ids[i] = version >= 3 ? in->new_isr_with_epochs[i].broker_id : in->new_isr[i];
        p.epochs[i] = version >= 3 ? in->new_isr_with_epochs[i].broker_epoch : -1;
    }
    return p;
}

// All are replicas, none twice, the leader among them.
static bool valid_isr(const struct image_partition *p, const struct proposed *isr)
{
    bool leader = false;
    for (int32_t i = 0; i < isr->count; i++) {
        if (!partition_has_replica(p, isr->ids[i]))
            return false;
        for (int32_t k = 0; k < i; k++)
            if (isr->ids[k] == isr->ids[i])
                return false;
        leader = leader || isr->ids[i] == p->leader;
    }
    return leader;
}

static bool eligible(const struct controller *c, broker_id id, broker_epoch epoch)
{
    const struct image_broker *b = image_broker(c->image, id);
    return image_broker_active(b) && (epoch == -1 || epoch == b->epoch);
}

static enum kafka_error judge(const struct controller *c, broker_id leader, const struct image_partition *p,
                              const proposal *in, const struct proposed *isr)
{
    if (!p)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (in->leader_recovery_state != RECOVERY_RECOVERED && in->leader_recovery_state != RECOVERY_RECOVERING)
        return KE_INVALID_REQUEST;
    if (in->leader_epoch > p->epoch || in->partition_epoch > p->partition_epoch)
        return KE_NOT_CONTROLLER; // a newer controller than this one must have told
    if (in->leader_epoch < p->epoch)
        return KE_FENCED_LEADER_EPOCH;
    if (leader != p->leader)
        return KE_INVALID_REQUEST;
    if (in->partition_epoch < p->partition_epoch)
        return KE_INVALID_UPDATE_VERSION;
    if (!valid_isr(p, isr))
        return KE_INVALID_REQUEST;
    if (in->leader_recovery_state == RECOVERY_RECOVERING &&
        (isr->count > 1 || p->recovery == RECOVERY_RECOVERED))
        return KE_INVALID_REQUEST;
    for (int32_t i = 0; i < isr->count; i++)
        if (!eligible(c, isr->ids[i], isr->epochs[i]))
            return KE_INELIGIBLE_REPLICA;
    return KE_NONE;
}

static void answer(struct controller *c, const struct image_partition *p,
                   const struct kp_partition_change_record *r, verdict *out)
{
    out->leader_id = p->leader;
    out->leader_epoch = p->epoch;
    out->partition_epoch = p->partition_epoch;
    out->leader_recovery_state = p->recovery;
    out->isr_count = p->isr_count;
    out->isr = arena_dup(c->arena, partition_isr(p), p->isr_count * sizeof *out->isr);
    if (!r)
        return;
    out->partition_epoch++;
    if (r->leader != LEADER_NO_CHANGE) {
        out->leader_id = r->leader;
        out->leader_epoch++;
    }
    if (r->leader_recovery_state != -1)
        out->leader_recovery_state = r->leader_recovery_state;
    if (r->isr) {
        out->isr = r->isr;
        out->isr_count = r->isr_count;
    }
}

static void alter(struct controller *c, broker_id leader, const struct image_topic *t, const proposal *in,
                  int16_t version, verdict *out, struct record_list *records)
{
    const struct image_partition *p = topic_partition(t, in->partition_index);
    struct proposed isr = proposed_of(c, in, version);
    enum kafka_error err = judge(c, leader, p, in, &isr);
    if (err == KE_NONE && records->count >= CONTROLLER_RECORDS_MAX)
        err = KE_INVALID_UPDATE_VERSION; // asked again with the next request
    out->error_code = (int16_t)err;
    if (err != KE_NONE)
        return;
    struct partition_change b;
    partition_change__init(&b, c, t, in->partition_index, p);
    partition_change__set_isr(&b, isr.ids, isr.count);
    b.recovery = in->leader_recovery_state;
    bool changed = partition_change__finish(&b, records);
    answer(c, p, changed ? &records->items[records->count - 1].body.partition_change : NULL, out);
    // The change is made, but the asker does not lead any more and must not act on it.
    if (out->leader_id != leader)
        *out = (verdict){.partition_index = in->partition_index, .error_code = KE_NEW_LEADER_ELECTED};
}

static bool named_before(const struct kp_alter_partition_request_topic_data *in, int32_t k)
{
    for (int32_t i = 0; i < k; i++)
        if (in->partitions[i].partition_index == in->partitions[k].partition_index)
            return true;
    return false;
}

void controller_alter_partition(struct controller *c, const struct kp_alter_partition_request *in,
                                int16_t version, struct kp_alter_partition_response *out,
                                struct record_list *records)
{
    kp_alter_partition_response_init(out);
    enum kafka_error err = controller__check_epoch(c, in->broker_id, in->broker_epoch);
    out->error_code = (int16_t)err;
    if (err != KE_NONE)
        return;
    int32_t count = in->topics_count > 0 ? in->topics_count : 0;
    out->topics = arena_zalloc(c->arena, (size_t)count * sizeof *out->topics + 1);
    out->topics_count = count;
    for (int32_t i = 0; i < count; i++) {
        const struct kp_alter_partition_request_topic_data *asked = &in->topics[i];
        const struct image_topic *t = image_topic(c->image, asked->topic_id);
        int32_t partitions = asked->partitions_count > 0 ? asked->partitions_count : 0;
        out->topics[i].topic_id = asked->topic_id;
        out->topics[i].partitions = arena_zalloc(c->arena, (size_t)partitions * sizeof(verdict) + 1);
        out->topics[i].partitions_count = partitions;
        for (int32_t k = 0; k < partitions; k++) {
            verdict *v = &out->topics[i].partitions[k];
            v->partition_index = asked->partitions[k].partition_index;
            if (!t)
                v->error_code = KE_UNKNOWN_TOPIC_ID;
            else if (named_before(asked, k))
                v->error_code = KE_INVALID_REQUEST;
            else
                alter(c, in->broker_id, t, &asked->partitions[k], version, v, records);
        }
    }
}
