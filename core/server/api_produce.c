// SPDX-License-Identifier: Apache-2.0
// Produce: batches are checked where they lie in the frame, collected per partition, written at the end of
// the turn.
//
// Happy path: the handler looks up each partition, checks its batch (header, CRC, records) and gives it to
// the data plane; after the turn's write the operation goes on: acks=0 ends, acks=1 answers, acks=all waits
// until the high watermark is above its batches (which it is at once where the leader is the whole ISR).
// Where the topic asks for a flush the answer waits for the disk too. Failures: each partition has its own
// error; acks=0 with any error closes the connection, as there is no answer to tell it by.
#include "core/base/assert.h"
#include "core/protocol/gen/produce_request.h"
#include "core/protocol/gen/produce_response.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"
#include "core/server/data_plane.h"
#include "core/server/error_map.h"
#include "core/server/leader_hints.h"
#include "core/server/replica_manager.h"
#include "core/server/request_conn.h"

#define TOPIC_IDS_FROM 13 // version with topic ids instead of names
#define HINTS_FROM 10     // version with leader hints
#define ZSTD_FROM 7       // version that may carry zstd
#define ERRORS_FROM 8     // version with record errors and messages

typedef struct kp_produce_response_topic_produce_response topic_answer;
typedef struct kp_produce_response_partition_produce_response partition_answer;

// One partition of the request.
struct produce_part {
    struct append_entry entry;   // what the plane gets
    struct partition *partition; // one reference while it is needed; NULL where the batch was refused before
    struct partition_ack ack;    // waits for the high watermark or the disk
    partition_answer *answer;    // its place in the answer
    time_ms append_time;         // with LogAppendTime, else -1
};

struct produce_op {
    struct append_op plane;         // called after the turn's write
    struct waiter waiter;           // woken by acks
    struct request *rq;             // the request
    struct produce_part *parts;     // those that went to the plane
    int32_t parts_count;            // number of them
    int32_t waiting;                // acks that are not there yet
    int16_t acks;                   // as asked
    int32_t timeout_ms;             // as asked
    bool flush_pending;             // after the high watermark some parts wait for the disk
    bool ended;                     // answered by timeout while `waiter` was pushed: freed when it is run
    struct node_timer timer;        // of acks=all
    struct kp_produce_response out; // the answer; zeros are its defaults
    struct leader_hints hints;      // leaders to name in it
};

// The schema's defaults, without the codec's walk over the fields: there is one for every batch.
static partition_answer new_answer(partition_id index)
{
    return (partition_answer){.index = index,
                              .log_append_time_ms = -1,
                              .log_start_offset = -1,
                              .current_leader = {.leader_id = -1, .leader_epoch = -1}};
}

static void refuse(partition_answer *a, int16_t error)
{
    a->error_code = error;
    a->base_offset = -1;
    a->log_append_time_ms = -1;
    a->log_start_offset = -1;
}

// ---- the answer -----------------------------------------------------------------------------------------

static void add_endpoints(struct request *rq, struct produce_op *op)
{
    const struct image *image = request_image(rq);
    op->out.node_endpoints =
        arena_alloc(&rq->arena, (size_t)op->hints.count * sizeof *op->out.node_endpoints);
    for (int32_t i = 0; i < op->hints.count; i++) {
        const struct image_broker *b = image_broker(image, op->hints.ids[i]);
        const struct image_endpoint *e = cluster_view_endpoint(b, rq->ctx->listener_name);
        if (e == NULL) {
            continue;
        }
        struct kp_produce_response_node_endpoint *n = &op->out.node_endpoints[op->out.node_endpoints_count++];
        kp_produce_response_node_endpoint_init(n);
        n->node_id = b->id;
        n->host = arena_dup_slice(&rq->arena, e->host);
        n->port = e->port;
        n->rack = arena_dup_slice(&rq->arena, b->rack);
    }
}

static bool has_error(const struct kp_produce_response *out)
{
    for (int32_t i = 0; i < out->responses_count; i++) {
        for (int32_t k = 0; k < out->responses[i].partition_responses_count; k++) {
            if (out->responses[i].partition_responses[k].error_code != KE_NONE) {
                return true;
            }
        }
    }
    return false;
}

static void answer(struct produce_op *op)
{
    struct request *rq = op->rq;
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct produce_part *part = &op->parts[i];
        partition_answer *a = part->answer;
        if (a->error_code != KE_NONE) {
            int16_t error = a->error_code;
            if (part->entry.error != KE_NONE) { // else it is in the log, though not acknowledged
                refuse(a, error);
            } else {
                a->base_offset = part->entry.base_offset;
            }
            a->log_start_offset = part->entry.log_start;
            if (leader_hints_wanted(error) && rq->version >= HINTS_FROM) {
                a->current_leader.leader_id = part->entry.leader;
                a->current_leader.leader_epoch = part->entry.epoch;
                leader_hints_add(rq, &op->hints, part->entry.leader);
            }
        } else {
            a->base_offset = part->entry.base_offset;
            a->log_start_offset = part->entry.log_start;
            a->log_append_time_ms = part->append_time;
        }
        partition_unref(part->partition);
        part->partition = NULL;
    }
    op->parts_count = 0;
    if (op->acks == 0) {
        if (has_error(&op->out)) {
            request_close(rq);
        } else {
            request_reply_none(rq);
        }
        return;
    }
    op->out.throttle_time_ms = rq->throttle_ms;
    if (op->hints.count > 0) {
        add_endpoints(rq, op);
    }
    REQUEST_REPLY(rq, produce_response, &op->out);
}

// ---- waiting --------------------------------------------------------------------------------------------

static void end(struct produce_op *op)
{
    node_timer_stop(op->rq->loop->loop, &op->timer);
    if (atomic_load_explicit(&op->waiter.pushed, memory_order_acquire)) {
        op->ended = true; // `wake` comes yet and ends it
        return;
    }
    if (request_gone(op->rq)) {
        for (int32_t i = 0; i < op->parts_count; i++) {
            partition_unref(op->parts[i].partition);
        }
        request_abandon(op->rq);
        return;
    }
    answer(op);
}

static void forget_acks(struct produce_op *op, int16_t error)
{
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct produce_part *part = &op->parts[i];
        if (part->ack.partition == NULL) {
            continue;
        }
        partition_forget_ack(part->partition, &part->ack);
        part->ack.partition = NULL;
        // An ack that came in this very moment counts.
        part->answer->error_code = part->ack.error >= 0 ? part->ack.error : error;
    }
}

static void timed_out(struct node_timer *t)
{
    struct produce_op *op = (struct produce_op *)(void *)((char *)t - offsetof(struct produce_op, timer));
    forget_acks(op, KE_REQUEST_TIMED_OUT); // the data may still be committed later
    op->waiting = 0;
    op->flush_pending = false;
    end(op);
}

static void cancel(struct request *rq)
{
    struct produce_op *op = rq->state;
    forget_acks(op, KE_NONE);
    op->waiting = 0;
    end(op);
}

#define ACK_PENDING (-2) // in partition_ack.error while it waits; no error of the protocol

static void await_flush(struct produce_op *op)
{
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct produce_part *part = &op->parts[i];
        if (part->entry.flush_due && part->answer->error_code == KE_NONE && part->entry.error == KE_NONE) {
            part->ack = (struct partition_ack){.waiter = &op->waiter,
                                               .partition = part->partition,
                                               .last_offset = part->entry.last_offset,
                                               .epoch = part->entry.epoch,
                                               .error = ACK_PENDING};
            if (partition_await_flush(part->partition, &part->ack)) {
                op->waiting++;
            } else {
                part->ack.partition = NULL;
                part->answer->error_code = part->ack.error;
            }
        }
    }
}

static void wake(struct waiter *w)
{
    struct produce_op *op = (struct produce_op *)(void *)((char *)w - offsetof(struct produce_op, waiter));
    if (op->ended) {
        op->ended = false;
        end(op);
        return;
    }
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct produce_part *part = &op->parts[i];
        if (part->ack.partition != NULL) {
            mutex_lock(&part->partition->lock); // the list is the partition's
            bool done = !list_is_linked(&part->ack.link);
            mutex_unlock(&part->partition->lock);
            if (done) {
                part->ack.partition = NULL;
                part->answer->error_code = part->ack.error;
                op->waiting--;
            }
        }
    }
    if (op->waiting > 0) {
        return;
    }
    if (op->flush_pending) {
        op->flush_pending = false;
        await_flush(op);
        if (op->waiting > 0) {
            return;
        }
    }
    end(op);
}

// The frame ends with the turn: what the answer says must outlive it.
static void keep_names(struct produce_op *op)
{
    struct request *rq = op->rq;
    for (int32_t i = 0; i < op->out.responses_count; i++) {
        op->out.responses[i].name = arena_dup_slice(&rq->arena, op->out.responses[i].name);
    }
}

static void appended(struct append_op *plane)
{
    struct produce_op *op = (struct produce_op *)(void *)((char *)plane - offsetof(struct produce_op, plane));
    struct request *rq = op->rq;
    if (rq->conn != NULL) {
        rq->conn->appends--;
    }
    bool flush = false;
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct produce_part *part = &op->parts[i];
        chunk_unref(part->entry.rewritten);
        part->entry.rewritten = NULL;
        part->answer->error_code = part->entry.error;
        flush |= part->entry.flush_due && part->entry.error == KE_NONE;
        if (op->acks != -1 || part->entry.error != KE_NONE) {
            continue;
        }
        part->ack = (struct partition_ack){.waiter = &op->waiter,
                                           .partition = part->partition,
                                           .last_offset = part->entry.last_offset,
                                           .epoch = part->entry.epoch,
                                           .error = ACK_PENDING};
        if (part->entry.acked) {
            part->ack.partition = NULL;
        } else if (partition_await_ack(part->partition, &part->ack)) {
            op->waiting++;
        } else {
            part->ack.partition = NULL;
            part->answer->error_code = part->ack.error;
        }
    }
    if (request_gone(rq)) {
        forget_acks(op, KE_NONE);
        op->waiting = 0;
        end(op);
        return;
    }
    if (flush && op->acks != 0) {
        if (op->waiting > 0) {
            op->flush_pending = true;
        } else {
            await_flush(op);
        }
    }
    if (op->waiting == 0) {
        end(op);
        return;
    }
    keep_names(op);
    rq->state = op;
    rq->cancel = cancel;
    op->timer.fire = timed_out;
    node_timer_start(rq->loop->loop, &op->timer, op->timeout_ms > 0 ? (uint64_t)op->timeout_ms : 0);
}

// ---- taking in ------------------------------------------------------------------------------------------

static void tell_record_errors(struct request *rq, partition_answer *a, const struct validate_rules *rules,
                               const struct validate_result *v)
{
    if (rq->version < ERRORS_FROM) {
        return;
    }
    a->error_message = arena_dup_slice(&rq->arena, slice_str(v->msg.text));
    if (v->errors_count == 0) {
        return;
    }
    int32_t n = v->errors_count < VALIDATE_RECORD_ERRORS_MAX ? v->errors_count : VALIDATE_RECORD_ERRORS_MAX;
    a->record_errors = arena_alloc(&rq->arena, (size_t)n * sizeof *a->record_errors);
    for (int32_t i = 0; i < n; i++) {
        char text[256];
        kp_produce_response_batch_index_and_error_message_init(&a->record_errors[i]);
        validate_error_text(&v->errors[i], rules, text, sizeof text);
        a->record_errors[i].batch_index = v->errors[i].index;
        a->record_errors[i].batch_index_error_message = arena_dup_slice(&rq->arena, slice_str(text));
    }
    a->record_errors_count = n;
}

static void refuse_batch(partition_answer *a, int16_t error, log_offset log_start)
{
    refuse(a, error);
    a->log_start_offset = error_map_tells_log_start(error) ? log_start : -1;
}

// Checks one partition's batch; true: it is on its way.
static bool take_part(struct produce_op *op, struct produce_part *part, struct partition *p,
                      struct slice records)
{
    struct request *rq = op->rq;
    struct data_plane *plane = rq->loop->data->data;
    mutex_lock(&p->lock);
    struct topic_rules *topic = topic_rules_ref(p->rules);
    log_offset log_start = p->state.log_start;
    mutex_unlock(&p->lock);
    struct validate_rules rules = topic->batches;
    rules.zstd_allowed = rq->version >= ZSTD_FROM;
    rules.now = data_plane_wall(plane);
    struct validate_result *v = &plane->validated;
    validate_produce((uint8_t *)(uintptr_t)records.data, records.len, &rules, plane->codecs, v);
    topic_rules_unref(topic);
    if (v->verdict != VALIDATE_OK) {
        bool one = records.len >= BATCH_HEADER_BYTES && batch_magic(records.data) == BATCH_MAGIC &&
                   batch_size(records.data) == records.len; // else the request itself is at fault
        refuse_batch(part->answer, (int16_t)error_map_validate(v->verdict), one ? log_start : -1);
        tell_record_errors(rq, part->answer, &rules, v);
        return false;
    }
    uint8_t *batch = v->rewritten != NULL ? v->rewritten->data : (uint8_t *)(uintptr_t)records.data;
    bool lacks_sequence = batch_has_producer(batch) && batch_base_sequence(batch) < 0;
    if (batch_is_control(batch) || lacks_sequence || batch_is_transactional(batch)) {
        // Transactional: no transaction can have been begun, there is no coordinator in this release.
        int16_t error = batch_is_control(batch) || lacks_sequence ? KE_INVALID_RECORD : KE_INVALID_TXN_STATE;
        chunk_unref(v->rewritten);
        refuse_batch(part->answer, error, log_start);
        return false;
    }
    part->entry =
        (struct append_entry){.batch = batch, .size = v->size, .rewritten = v->rewritten, .acks = op->acks};
    part->append_time = rules.timestamp == TIMESTAMP_APPEND ? rules.now : -1;
    part->partition = p;
    part->ack.partition = NULL;
    data_plane_append(plane, p, &part->entry);
    return true;
}

// Why there is no partition to write to.
static void refuse_missing(struct produce_op *op, partition_answer *a, const struct image_topic *t,
                           bool by_id)
{
    struct request *rq = op->rq;
    const struct image_partition *ip = t != NULL && a->index >= 0 ? topic_partition(t, a->index) : NULL;
    if (ip == NULL) {
        refuse(a, t == NULL && by_id ? KE_UNKNOWN_TOPIC_ID : KE_UNKNOWN_TOPIC_OR_PARTITION);
        return;
    }
    refuse(a, KE_NOT_LEADER_OR_FOLLOWER);
    if (rq->version >= HINTS_FROM) {
        leader_hints_of(ip, &a->current_leader.leader_id, &a->current_leader.leader_epoch);
        leader_hints_add(rq, &op->hints, a->current_leader.leader_id);
    }
}

#define ADMIN_CLIENT "__admin_client" // client id that may write to internal topics, as in Kafka

// Why nothing may be written to this topic, or KE_NONE.
static int16_t check_topic(struct request *rq, struct slice name)
{
    if (!authorize(rq->ctx, ACL_WRITE, ACL_TOPIC, name)) {
        return KE_TOPIC_AUTHORIZATION_FAILED;
    }
    if (cluster_view_internal(name) && !slice_equal_str(rq->client_id, ADMIN_CLIENT)) {
        return KE_INVALID_TOPIC_EXCEPTION;
    }
    return KE_NONE;
}

static void take_topic(struct produce_op *op, const struct kp_produce_request_topic_produce_data *in,
                       struct kp_produce_response_topic_produce_response *to)
{
    struct request *rq = op->rq;
    const struct image *image = request_image(rq);
    bool by_id = rq->version >= TOPIC_IDS_FROM;
    const struct image_topic *t =
        by_id ? image_topic(image, in->topic_id) : image_topic_named(image, in->name);
    struct uuid id = t != NULL ? topic_id(t) : UUID_ZERO;
    // An id that is not known reveals nothing: UNKNOWN_TOPIC_ID to everybody.
    int16_t refused = by_id && t == NULL ? KE_NONE : check_topic(rq, by_id ? topic_name(t) : in->name);
    *to = (topic_answer){.name = in->name, .topic_id = in->topic_id};
    to->partition_responses_count = in->partition_data_count;
    to->partition_responses =
        arena_alloc(&rq->arena, (size_t)in->partition_data_count * sizeof *to->partition_responses);
    for (int32_t i = 0; i < in->partition_data_count; i++) {
        partition_answer *a = &to->partition_responses[i];
        *a = new_answer(in->partition_data[i].index);
        struct slice records = in->partition_data[i].records.bytes;
        if (refused != KE_NONE) {
            refuse(a, refused);
            continue;
        }
        struct partition *p =
            t != NULL ? replica_manager_find(request_broker(rq)->replicas, &id, a->index) : NULL;
        if (p == NULL) {
            refuse_missing(op, a, t, by_id);
            continue;
        }
        struct produce_part *part = &op->parts[op->parts_count];
        part->answer = a;
        if (slice_is_null(records) || !take_part(op, part, p, records)) {
            if (slice_is_null(records)) {
                refuse(a, KE_INVALID_RECORD);
            }
            partition_unref(p);
            continue;
        }
        op->parts_count++;
    }
}

static void refuse_all(struct produce_op *op, const struct kp_produce_request *in, int16_t error)
{
    struct request *rq = op->rq;
    for (int32_t i = 0; i < in->topic_data_count; i++) {
        struct kp_produce_response_topic_produce_response *to = &op->out.responses[i];
        kp_produce_response_topic_produce_response_init(to);
        to->name = in->topic_data[i].name;
        to->topic_id = in->topic_data[i].topic_id;
        to->partition_responses_count = in->topic_data[i].partition_data_count;
        to->partition_responses =
            arena_alloc(&rq->arena, (size_t)to->partition_responses_count * sizeof *to->partition_responses);
        for (int32_t k = 0; k < to->partition_responses_count; k++) {
            kp_produce_response_partition_produce_response_init(&to->partition_responses[k]);
            to->partition_responses[k].index = in->topic_data[i].partition_data[k].index;
            refuse(&to->partition_responses[k], error);
        }
    }
}

static bool has_transactional(const struct kp_produce_request *in)
{
    for (int32_t i = 0; i < in->topic_data_count; i++) {
        for (int32_t k = 0; k < in->topic_data[i].partition_data_count; k++) {
            struct slice records = in->topic_data[i].partition_data[k].records.bytes;
            if (records.len >= BATCH_HEADER_BYTES && batch_is_transactional(records.data)) {
                return true;
            }
        }
    }
    return false;
}

static void handle(struct request *rq)
{
    struct kp_produce_request *in = REQUEST_DECODE(rq, produce_request);
    if (in == NULL) {
        return;
    }
    int32_t parts = 0;
    for (int32_t i = 0; i < in->topic_data_count; i++) {
        parts += in->topic_data[i].partition_data_count;
    }
    struct produce_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->rq = rq;
    op->acks = in->acks;
    op->timeout_ms = in->timeout_ms;
    op->waiter.home = rq->loop->data->data;
    op->waiter.wake = wake;
    op->plane.appended = appended;
    op->parts = arena_zalloc(&rq->arena, (size_t)parts * sizeof *op->parts);
    op->out.responses_count = in->topic_data_count;
    op->out.responses = arena_alloc(&rq->arena, (size_t)in->topic_data_count * sizeof *op->out.responses);
    if (in->acks < -1 || in->acks > 1) {
        refuse_all(op, in, KE_INVALID_REQUIRED_ACKS);
    } else if (has_transactional(in) &&
               (slice_is_null(in->transactional_id) ||
                !authorize(rq->ctx, ACL_WRITE, ACL_TRANSACTIONAL_ID, in->transactional_id))) {
        refuse_all(op, in, KE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    } else {
        for (int32_t i = 0; i < in->topic_data_count; i++) {
            take_topic(op, &in->topic_data[i], &op->out.responses[i]);
        }
    }
    if (op->parts_count == 0) {
        answer(op);
        return;
    }
    rq->conn->appends++;
    data_plane_add_op(rq->loop->data->data, &op->plane);
}

const struct request_api api_produce = {.key = KP_API_PRODUCE,
                                        .version_min = KP_PRODUCE_REQUEST_MIN_VERSION,
                                        .version_max = KP_PRODUCE_REQUEST_MAX_VERSION,
                                        .advertised_min =
                                            0, // KAFKA-18659: old librdkafka decides its features by it
                                        .flags = REQUEST_PIPELINED | REQUEST_IN_PLACE,
                                        .on_broker = handle};
