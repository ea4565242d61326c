// SPDX-License-Identifier: Apache-2.0
// ListOffsets: the ends of a log, and offsets by time.
//
// Ends are answered at once; a search by time may read and unpack batches, so it runs on the short pool and
// the answer follows.
#include "core/base/assert.h"
#include "core/protocol/gen/list_offsets_request.h"
#include "core/protocol/gen/list_offsets_response.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/error_map.h"
#include "core/server/partition_lookup.h"

// Times that stand for something else, with the first version that knows them.
enum special_time {
    TIME_LATEST = -1,           // high watermark, or last stable offset
    TIME_EARLIEST = -2,         // log start
    TIME_MAX_TIMESTAMP = -3,    // record with the largest timestamp; version 7
    TIME_EARLIEST_LOCAL = -4,   // log start on this broker's disk; version 8
    TIME_LATEST_TIERED = -5,    // version 9; nothing is tiered here
    TIME_EARLIEST_PENDING = -6, // version 11; nothing is to be uploaded here
};
#define NOT_AVAILABLE_FROM 5 // version that knows OFFSET_NOT_AVAILABLE

typedef struct kp_list_offsets_response_list_offsets_partition_response partition_answer;

// A search by time.
struct search {
    struct partition *partition; // one reference
    time_ms timestamp;           // wanted, or TIME_MAX_TIMESTAMP
    leader_epoch current_epoch;  // check
    partition_answer *answer;    // its place
};

struct list_op {
    struct request *rq;                  // the request
    struct node_job job;                 // searches
    struct search *searches;             // to be done
    int32_t searches_count;              // number of them
    int8_t isolation;                    // as asked
    bool leader_only;                    // debug clients may ask followers
    struct kp_list_offsets_response out; // the answer
};

static bool version_knows(int16_t version, int64_t time)
{
    switch (time) {
    case TIME_LATEST:
    case TIME_EARLIEST:
        return true;
    case TIME_MAX_TIMESTAMP:
        return version >= 7;
    case TIME_EARLIEST_LOCAL:
        return version >= 8;
    case TIME_LATEST_TIERED:
        return version >= 9;
    case TIME_EARLIEST_PENDING:
        return version >= 11;
    default:
        return time >= 0;
    }
}

static int16_t check(const struct list_op *op, const struct partition *p, leader_epoch current_epoch)
{
    return partition_check_locked(p, current_epoch, op->leader_only);
}

// Where this reader's view of the log ends. A new leader does not know it until its high watermark has
// reached its epoch's start.
static int16_t view_end(const struct list_op *op, struct partition *p, log_offset *end)
{
    *end = op->isolation == 1 ? plog_last_stable(p->log, p->state.high_watermark) : p->state.high_watermark;
    if (p->state.role == REPLICA_LEADER && p->state.high_watermark < p->state.epoch_start) {
        return op->rq->version >= NOT_AVAILABLE_FROM ? KE_OFFSET_NOT_AVAILABLE : KE_LEADER_NOT_AVAILABLE;
    }
    return KE_NONE;
}

static void answer_end(const struct list_op *op, struct partition *p, int64_t time,
                       leader_epoch current_epoch, partition_answer *a)
{
    mutex_lock(&p->lock);
    a->error_code = check(op, p, current_epoch);
    if (a->error_code == KE_NONE && time == TIME_LATEST) {
        a->error_code = view_end(op, p, &a->offset);
        a->leader_epoch = p->state.epoch;
    } else if (a->error_code == KE_NONE && (time == TIME_EARLIEST || time == TIME_EARLIEST_LOCAL)) {
        a->offset = p->state.log_start;
        a->leader_epoch = plog_epoch_of(p->log, a->offset);
    }
    if (a->error_code != KE_NONE) {
        a->offset = -1;
        a->leader_epoch = -1;
    }
    mutex_unlock(&p->lock);
}

static void run_search(const struct list_op *op, const struct search *s)
{
    struct partition *p = s->partition;
    partition_answer *a = s->answer;
    struct plog_timestamp found = {.offset = -1, .timestamp = -1, .epoch = -1};
    log_offset end = -1;
    mutex_lock(&p->lock);
    a->error_code = check(op, p, s->current_epoch);
    if (a->error_code == KE_NONE) {
        int16_t unknown_end = view_end(op, p, &end);
        int err = s->timestamp == TIME_MAX_TIMESTAMP
                      ? plog_find_max_timestamp(p->log, end, &found, NULL)
                      : plog_find_timestamp(p->log, s->timestamp, end, &found, NULL);
        // Below the known end the answer is sure; else it is as unknown as the end.
        a->error_code = err != 0 ? (int16_t)error_map(err) : found.offset < 0 ? unknown_end : KE_NONE;
    }
    mutex_unlock(&p->lock);
    if (a->error_code == KE_NONE) {
        a->offset = found.offset;
        a->timestamp = found.timestamp;
        a->leader_epoch = found.epoch;
    }
}

static void search_all(struct node_job *j)
{
    struct list_op *op = (struct list_op *)(void *)((char *)j - offsetof(struct list_op, job));
    for (int32_t i = 0; i < op->searches_count; i++) {
        run_search(op, &op->searches[i]);
    }
}

static void searched(struct node_job *j)
{
    struct list_op *op = (struct list_op *)(void *)((char *)j - offsetof(struct list_op, job));
    for (int32_t i = 0; i < op->searches_count; i++) {
        partition_unref(op->searches[i].partition);
    }
    REQUEST_REPLY(op->rq, list_offsets_response, &op->out);
}

static void take(struct list_op *op, struct slice topic,
                 const struct kp_list_offsets_request_list_offsets_partition *in, partition_answer *a)
{
    struct request *rq = op->rq;
    kp_list_offsets_response_list_offsets_partition_response_init(a);
    a->partition_index = in->partition_index;
    if (!version_knows(rq->version, in->timestamp)) {
        a->error_code = KE_UNSUPPORTED_VERSION;
        return;
    }
    struct partition *p = partition_lookup(rq, topic, in->partition_index, ACL_DESCRIBE, &a->error_code);
    if (p == NULL) {
        return;
    }
    if (in->timestamp >= 0 || in->timestamp == TIME_MAX_TIMESTAMP) {
        op->searches[op->searches_count++] = (struct search){p, in->timestamp, in->current_leader_epoch, a};
        return;
    }
    answer_end(op, p, in->timestamp, in->current_leader_epoch, a);
    partition_unref(p);
}

static void handle(struct request *rq)
{
    struct kp_list_offsets_request *in = REQUEST_DECODE(rq, list_offsets_request);
    if (in == NULL) {
        return;
    }
    size_t all = 0;
    for (int32_t i = 0; i < in->topics_count; i++) {
        all += (size_t)in->topics[i].partitions_count;
    }
    struct list_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->rq = rq;
    op->isolation = in->isolation_level;
    op->leader_only = in->replica_id != -2;
    op->searches = arena_alloc(&rq->arena, all * sizeof *op->searches);
    kp_list_offsets_response_init(&op->out);
    op->out.throttle_time_ms = rq->throttle_ms;
    op->out.topics_count = in->topics_count;
    op->out.topics = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *op->out.topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_list_offsets_response_list_offsets_topic_response *t = &op->out.topics[i];
        kp_list_offsets_response_list_offsets_topic_response_init(t);
        t->name = in->topics[i].name;
        t->partitions_count = in->topics[i].partitions_count;
        t->partitions = arena_alloc(&rq->arena, (size_t)t->partitions_count * sizeof *t->partitions);
        for (int32_t k = 0; k < t->partitions_count; k++) {
            take(op, t->name, &in->topics[i].partitions[k], &t->partitions[k]);
        }
    }
    if (op->searches_count == 0) {
        REQUEST_REPLY(rq, list_offsets_response, &op->out);
        return;
    }
    op->job = (struct node_job){.work = search_all, .done = searched, .loop = rq->loop->loop};
    node_pool_run(request_broker(rq)->pool_short, &op->job);
}

const struct request_api api_list_offsets = {.key = KP_API_LIST_OFFSETS,
                                             .version_min = KP_LIST_OFFSETS_REQUEST_MIN_VERSION,
                                             .version_max = KP_LIST_OFFSETS_REQUEST_MAX_VERSION,
                                             .advertised_min = KP_LIST_OFFSETS_REQUEST_MIN_VERSION,
                                             .on_broker = handle};
