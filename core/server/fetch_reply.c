// SPDX-License-Identifier: Apache-2.0
// The answer to a fetch: which partitions to tell, their bytes as file ranges or copies, leader hints.
#include "core/base/assert.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"
#include "core/server/fetch_op.h"
#include "core/server/leader_hints.h"

#define SENDFILE_FROM_BYTES (16u << 10) // below it one more system call costs more than the copy
#define HINTS_FROM 16                   // version with leader hints

typedef struct kp_fetch_response_partition_data partition_answer;

// Takes the bytes of a range into the answer. A read error leaves it empty: the client asks again and sees
// the directory's state.
static void take_bytes(struct request *rq, struct plog_range *range, partition_answer *a)
{
    struct rope *rope = arena_alloc(&rq->arena, sizeof *rope);
    rope_init(rope);
    if (range->len >= SENDFILE_FROM_BYTES && rq->listener->security_protocol == 0) {
        rope_add_file(rope, &range->file->rope, range->pos, range->len);
    } else {
        struct chunk *c = chunk_alloc(range->len);
        if (plog_range_copy(range, c->data) == 0) {
            rope_add_chunk(rope, c, 0, range->len);
        } else {
            a->error_code = KE_KAFKA_STORAGE_ERROR;
        }
        chunk_unref(c);
    }
    a->records.rope = rope;
}

static void tell(struct fetch_op *op, struct fetch_slot *s, partition_answer *a, struct leader_hints *hints)
{
    struct request *rq = op->rq;
    kp_fetch_response_partition_data_init(a);
    a->partition_index = s->item->index;
    a->records.bytes = slice_of("", 0); // empty, not null
    if (s->partition == NULL) {
        a->error_code = s->missing_error;
        a->high_watermark = -1;
        bool hint = rq->version >= HINTS_FROM && leader_hints_wanted(a->error_code);
        a->current_leader.leader_id = hint ? s->hint_leader : -1;
        a->current_leader.leader_epoch = hint ? s->hint_epoch : -1;
    } else {
        const struct partition_read *r = &s->read;
        a->error_code = r->error;
        a->high_watermark = r->high_watermark;
        a->last_stable_offset = r->last_stable;
        a->log_start_offset = r->log_start;
        if (r->diverging_epoch >= 0) {
            a->diverging_epoch.epoch = r->diverging_epoch;
            a->diverging_epoch.end_offset = r->diverging_end;
        }
        if (rq->version >= HINTS_FROM && leader_hints_wanted(r->error)) {
            a->current_leader.leader_id = r->leader;
            a->current_leader.leader_epoch = r->epoch;
        }
        if (op->committed && r->error == KE_NONE) {
            a->aborted_transactions_count = (int32_t)r->aborted_count;
            a->aborted_transactions =
                arena_alloc(&rq->arena, (r->aborted_count + 1) * sizeof *a->aborted_transactions);
            for (unsigned i = 0; i < r->aborted_count; i++) {
                kp_fetch_response_aborted_transaction_init(&a->aborted_transactions[i]);
                a->aborted_transactions[i].producer_id = r->aborted[i].producer_id;
                a->aborted_transactions[i].first_offset = r->aborted[i].first_offset;
            }
        } else {
            a->aborted_transactions = NULL;
            a->aborted_transactions_count = -1;
        }
        if (!r->cold && r->error == KE_NONE && s->read.range.len > 0) {
            take_bytes(rq, &s->read.range, a);
        }
    }
    if (leader_hints_wanted(a->error_code)) {
        leader_hints_add(rq, hints, a->current_leader.leader_id);
    }
}

// An incremental answer tells only what changed; what it tells is remembered.
static bool to_tell(struct fetch_op *op, struct fetch_slot *s)
{
    struct fetch_item *item = s->item;
    int16_t error = s->partition == NULL ? s->missing_error : s->read.error;
    bool changed = error != KE_NONE;
    if (s->partition != NULL) {
        changed |= (!s->read.cold && s->read.range.len > 0) || s->read.diverging_epoch >= 0 ||
                   s->read.high_watermark != item->sent_high_watermark ||
                   s->read.log_start != item->sent_log_start;
    }
    if (op->incremental && !changed) {
        return false;
    }
    // After an error it is told again when that is over.
    item->sent_high_watermark = error != KE_NONE ? -1 : s->read.high_watermark;
    item->sent_log_start = error != KE_NONE ? -1 : s->read.log_start;
    return true;
}

static bool same_topic(const struct fetch_item *a, const struct fetch_item *b)
{
    return uuid_equal(a->topic_id, b->topic_id) && slice_equal(a->topic, b->topic);
}

static void add_endpoints(struct request *rq, const struct leader_hints *hints, struct kp_fetch_response *out)
{
    const struct image *image = request_image(rq);
    out->node_endpoints = arena_alloc(&rq->arena, (size_t)hints->count * sizeof *out->node_endpoints);
    for (int32_t i = 0; i < hints->count; i++) {
        const struct image_broker *b = image_broker(image, hints->ids[i]);
        const struct image_endpoint *e = cluster_view_endpoint(b, rq->ctx->listener_name);
        if (e != NULL) {
            struct kp_fetch_response_node_endpoint *n = &out->node_endpoints[out->node_endpoints_count++];
            kp_fetch_response_node_endpoint_init(n);
            n->node_id = b->id;
            n->host = e->host;
            n->port = e->port;
            n->rack = b->rack;
        }
    }
}

void fetch_reply(struct fetch_op *op)
{
    struct request *rq = op->rq;
    struct kp_fetch_response out;
    struct leader_hints hints = {NULL, 0, 0};
    kp_fetch_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    out.session_id = op->session->id;
    out.responses = arena_alloc(&rq->arena, (size_t)op->slots_count * sizeof *out.responses);
    partition_answer *answers = arena_alloc(&rq->arena, (size_t)op->slots_count * sizeof *answers);
    const struct fetch_item *last = NULL;
    for (int32_t i = 0; i < op->slots_count; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (!to_tell(op, s)) {
            continue;
        }
        if (last == NULL || !same_topic(last, s->item)) {
            struct kp_fetch_response_fetchable_topic_response *t = &out.responses[out.responses_count++];
            kp_fetch_response_fetchable_topic_response_init(t);
            t->topic = s->item->topic;
            t->topic_id = s->item->topic_id;
            t->partitions = answers;
        }
        last = s->item;
        out.responses[out.responses_count - 1].partitions_count++;
        tell(op, s, answers++, &hints);
    }
    if (hints.count > 0 && rq->version >= HINTS_FROM) {
        add_endpoints(rq, &hints, &out);
    }
    // What was served goes to the end, so that a busy partition does not starve the rest.
    for (int32_t i = 0; i < op->slots_count; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->partition != NULL && s->read.range.len > 0) {
            list_remove(&s->item->link);
            list_add_tail(&op->session->items, &s->item->link);
        }
    }
    op->encode_error = kp_fetch_response_encode(&out, request_reply_begin(rq), rq->version);
}
