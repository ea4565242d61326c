// SPDX-License-Identifier: Apache-2.0
// DeleteRecords: moves the log start up; answers when every live replica has followed.
//
// The leader moves at once. Followers learn it with their fetches, so the operation looks again every few
// milliseconds until all have it or the time is over (REQUEST_TIMED_OUT; the records are gone all the same).
#include "core/protocol/gen/delete_records_request.h"
#include "core/protocol/gen/delete_records_response.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"
#include "core/server/partition_lookup.h"

#define LOOK_AGAIN_MS 20 // a follower's fetch returns within its wait or at once when data comes

typedef struct kp_delete_records_response_delete_records_partition_result partition_answer;

struct delete_part {
    struct partition *partition; // one reference; NULL when it is done
    log_offset target;           // log start to wait for
    partition_answer *answer;    // its place
};

struct delete_op {
    struct request *rq;                    // the request
    struct delete_part *parts;             // that wait
    int32_t parts_count;                   // number of them
    mono_us deadline;                      // when to give up
    struct node_timer timer;               // looks again
    struct kp_delete_records_response out; // the answer
};

static bool all_followed(struct delete_op *op)
{
    bool all = true;
    for (int32_t i = 0; i < op->parts_count; i++) {
        struct delete_part *part = &op->parts[i];
        if (part->partition == NULL) {
            continue;
        }
        mutex_lock(&part->partition->lock);
        int16_t error = partition_check_locked(part->partition, -1, true);
        log_offset low = error == KE_NONE ? partition_state_low_watermark(&part->partition->state) : -1;
        mutex_unlock(&part->partition->lock);
        if (error == KE_NONE && low < part->target) {
            all = false;
            part->answer->error_code = KE_REQUEST_TIMED_OUT; // unless it comes to pass
            continue;
        }
        part->answer->error_code = error;
        part->answer->low_watermark = low;
        partition_unref(part->partition);
        part->partition = NULL;
    }
    return all;
}

static void look(struct delete_op *op)
{
    struct request *rq = op->rq;
    bool over = node_now(rq->loop->loop) >= op->deadline || request_gone(rq);
    if (!all_followed(op) && !over) {
        node_timer_start(rq->loop->loop, &op->timer, LOOK_AGAIN_MS);
        return;
    }
    for (int32_t i = 0; i < op->parts_count; i++) {
        partition_unref(op->parts[i].partition);
    }
    REQUEST_REPLY(rq, delete_records_response, &op->out);
}

static void look_again(struct node_timer *t)
{
    look((struct delete_op *)(void *)((char *)t - offsetof(struct delete_op, timer)));
}

static void take(struct delete_op *op, struct slice topic, log_offset offset, partition_answer *a)
{
    struct wake_list wl = {.count = 0};
    a->low_watermark = -1;
    if (cluster_view_internal(topic)) {
        a->error_code = KE_INVALID_TOPIC_EXCEPTION;
        return;
    }
    struct partition *p = partition_lookup(op->rq, topic, a->partition_index, ACL_DELETE, &a->error_code);
    if (p == NULL) {
        return;
    }
    log_offset low = -1;
    log_offset target = -1;
    a->error_code = partition_delete_records(p, offset, &target, &low, &wl);
    wake_list_send(&wl);
    if (a->error_code == KE_NONE) {
        op->parts[op->parts_count++] = (struct delete_part){p, target, a};
        return;
    }
    partition_unref(p);
}

static void handle(struct request *rq)
{
    struct kp_delete_records_request *in = REQUEST_DECODE(rq, delete_records_request);
    if (in == NULL) {
        return;
    }
    size_t all = 0;
    for (int32_t i = 0; i < in->topics_count; i++) {
        all += (size_t)in->topics[i].partitions_count;
    }
    struct delete_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->rq = rq;
    op->parts = arena_alloc(&rq->arena, all * sizeof *op->parts);
    op->deadline = node_now(rq->loop->loop) + (mono_us)(in->timeout_ms > 0 ? in->timeout_ms : 0) * 1000;
    op->timer.fire = look_again;
    kp_delete_records_response_init(&op->out);
    op->out.throttle_time_ms = rq->throttle_ms;
    op->out.topics_count = in->topics_count;
    op->out.topics = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *op->out.topics);
    for (int32_t i = 0; i < in->topics_count; i++) {
        struct kp_delete_records_response_delete_records_topic_result *t = &op->out.topics[i];
        kp_delete_records_response_delete_records_topic_result_init(t);
        t->name = in->topics[i].name;
        t->partitions_count = in->topics[i].partitions_count;
        t->partitions = arena_alloc(&rq->arena, (size_t)t->partitions_count * sizeof *t->partitions);
        for (int32_t k = 0; k < t->partitions_count; k++) {
            kp_delete_records_response_delete_records_partition_result_init(&t->partitions[k]);
            t->partitions[k].partition_index = in->topics[i].partitions[k].partition_index;
            take(op, t->name, in->topics[i].partitions[k].offset, &t->partitions[k]);
        }
    }
    look(op);
}

const struct request_api api_delete_records = {.key = KP_API_DELETE_RECORDS,
                                               .version_min = 0,
                                               .version_max = KP_DELETE_RECORDS_REQUEST_MAX_VERSION,
                                               .on_broker = handle};
