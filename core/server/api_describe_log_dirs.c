// SPDX-License-Identifier: Apache-2.0
// DescribeLogDirs: the log directories of this broker, their space and the partitions in them.
#include <stdlib.h>
#include "core/protocol/gen/describe_log_dirs_request.h"
#include "core/protocol/gen/describe_log_dirs_response.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/replica_manager.h"

typedef struct kp_describe_log_dirs_response_describe_log_dirs_result dir_answer;
typedef struct kp_describe_log_dirs_response_describe_log_dirs_topic topic_answer;
typedef struct kp_describe_log_dirs_response_describe_log_dirs_partition partition_answer;

// A partition as it is now.
struct found {
    const struct log_dir *dir; // where it is
    struct slice topic;        // in the arena
    partition_id index;        // which
    int64_t size;              // bytes
};

struct finding {
    struct request *rq;                            // the request
    const struct kp_describe_log_dirs_request *in; // as asked
    struct found *found;                           // what matches; grown by doubling in the arena
    size_t count, cap;                             // used, room
};

static bool wanted(const struct kp_describe_log_dirs_request *in, struct slice topic, partition_id index)
{
    if (in->topics_count < 0) {
        return true;
    }
    for (int32_t i = 0; i < in->topics_count; i++) {
        if (!slice_equal(in->topics[i].topic, topic)) {
            continue;
        }
        for (int32_t k = 0; k < in->topics[i].partitions_count; k++) {
            if (in->topics[i].partitions[k] == index) {
                return true;
            }
        }
    }
    return false;
}

static void look_at(void *data, struct partition *p)
{
    struct finding *f = data;
    mutex_lock(&p->lock);
    struct slice topic = p->log != NULL ? slice_str(plog_topic(p->log)) : SLICE_NULL;
    if (p->log != NULL && wanted(f->in, topic, p->index)) {
        if (f->count == f->cap) {
            size_t cap = f->cap == 0 ? 64 : f->cap * 2;
            struct found *more = arena_alloc(&f->rq->arena, cap * sizeof *more);
            if (f->count > 0) {
                memcpy(more, f->found, f->count * sizeof *more);
            }
            f->found = more;
            f->cap = cap;
        }
        f->found[f->count++] = (struct found){.dir = plog_dir(p->log),
                                              .topic = arena_dup_slice(&f->rq->arena, topic),
                                              .index = p->index,
                                              .size = (int64_t)plog_size(p->log)};
    }
    mutex_unlock(&p->lock);
}

static int by_topic(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    int c = slice_compare(x->topic, y->topic);
    return c != 0 ? c : (x->index > y->index) - (x->index < y->index);
}

static void answer_dir(struct finding *f, struct broker *b, unsigned index, dir_answer *a)
{
    kp_describe_log_dirs_response_describe_log_dirs_result_init(a);
    struct log_dir *dir = replica_manager_dir(b->replicas, index);
    a->log_dir = slice_str(b->settings.log_dirs[index]);
    if (!replica_manager_dir_is_online(b->replicas, index)) {
        a->error_code = KE_KAFKA_STORAGE_ERROR;
        return;
    }
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    if (log_dir_space(dir, &free_bytes, &total_bytes) == 0) {
        a->total_bytes = (int64_t)total_bytes;
        a->usable_bytes = (int64_t)free_bytes;
    }
    a->topics = arena_alloc(&f->rq->arena, f->count * sizeof *a->topics);
    partition_answer *parts = arena_alloc(&f->rq->arena, f->count * sizeof *parts);
    for (size_t i = 0; i < f->count; i++) {
        if (f->found[i].dir != dir) {
            continue;
        }
        topic_answer *t = a->topics_count > 0 ? &a->topics[a->topics_count - 1] : NULL;
        if (t == NULL || !slice_equal(t->name, f->found[i].topic)) {
            t = &a->topics[a->topics_count++];
            kp_describe_log_dirs_response_describe_log_dirs_topic_init(t);
            t->name = f->found[i].topic;
            t->partitions = parts;
        }
        kp_describe_log_dirs_response_describe_log_dirs_partition_init(parts);
        parts->partition_index = f->found[i].index;
        parts->partition_size = f->found[i].size;
        parts++;
        t->partitions_count++;
    }
}

static void handle(struct request *rq)
{
    struct kp_describe_log_dirs_request *in = REQUEST_DECODE(rq, describe_log_dirs_request);
    if (in == NULL) {
        return;
    }
    struct kp_describe_log_dirs_response out;
    kp_describe_log_dirs_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    if (!authorize(rq->ctx, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        out.error_code = KE_CLUSTER_AUTHORIZATION_FAILED; // before version 3: an empty answer
        REQUEST_REPLY(rq, describe_log_dirs_response, &out);
        return;
    }
    struct broker *b = request_broker(rq);
    struct finding f = {.rq = rq, .in = in};
    replica_manager_each(b->replicas, look_at, &f);
    if (f.count > 0) {
        qsort(f.found, f.count, sizeof *f.found, by_topic);
    }
    unsigned dirs = replica_manager_dirs(b->replicas);
    out.results = arena_alloc(&rq->arena, dirs * sizeof *out.results);
    for (unsigned i = 0; i < dirs; i++) {
        answer_dir(&f, b, i, &out.results[out.results_count++]);
    }
    REQUEST_REPLY(rq, describe_log_dirs_response, &out);
}

const struct request_api api_describe_log_dirs = {.key = KP_API_DESCRIBE_LOG_DIRS,
                                                  .version_min = KP_DESCRIBE_LOG_DIRS_REQUEST_MIN_VERSION,
                                                  .version_max = KP_DESCRIBE_LOG_DIRS_REQUEST_MAX_VERSION,
                                                  .advertised_min = KP_DESCRIBE_LOG_DIRS_REQUEST_MIN_VERSION,
                                                  .on_broker = handle};
