// SPDX-License-Identifier: Apache-2.0
// DescribeTopicPartitions: topics page by page, in order of their names (KIP-966).
#include <stdlib.h>
#include "core/protocol/gen/describe_topic_partitions_request.h"
#include "core/protocol/gen/describe_topic_partitions_response.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/broker.h"
#include "core/server/cluster_view.h"

typedef struct kp_describe_topic_partitions_response_describe_topic_partitions_response_topic topic_answer;
typedef struct kp_describe_topic_partitions_response_describe_topic_partitions_response_partition
    partition_answer;

static int by_name(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

// Names to describe, sorted, without duplicates, from the cursor on.
static struct slice *list_names(struct request *rq, const struct kp_describe_topic_partitions_request *in,
                                const struct image *image, int32_t *count)
{
    int32_t n = 0;
    struct slice *names;
    if (in->topics_count > 0) {
        names = arena_alloc(&rq->arena, (size_t)in->topics_count * sizeof *names);
        for (int32_t i = 0; i < in->topics_count; i++) {
            names[n++] = in->topics[i].name;
        }
    } else {
        names = arena_alloc(&rq->arena, (size_t)image_topic_count(image) * sizeof *names);
        for (const struct image_topic *t = image_topic_next(image, NULL); t != NULL;
             t = image_topic_next(image, t)) {
            if (authorize(rq->ctx, ACL_DESCRIBE, ACL_TOPIC, topic_name(t))) {
                names[n++] = topic_name(t);
            }
        }
    }
    qsort(names, (size_t)n, sizeof *names, by_name);
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        bool twice = kept > 0 && slice_equal(names[kept - 1], names[i]);
        bool before = in->cursor != NULL && slice_compare(names[i], in->cursor->topic_name) < 0;
        if (!twice && !before) {
            names[kept++] = names[i];
        }
    }
    *count = kept;
    return names;
}

static void answer_partition(struct request *rq, const struct image *image, const struct image_partition *p,
                             partition_id index, partition_answer *a)
{
    kp_describe_topic_partitions_response_describe_topic_partitions_response_partition_init(a);
    a->partition_index = index;
    a->error_code = cluster_view_partition(image, p, rq->ctx->listener_name, true, &a->leader_id);
    a->leader_epoch = p->epoch;
    a->replica_nodes = cluster_view_ids(rq, partition_replicas(p), p->replicas_count);
    a->replica_nodes_count = p->replicas_count;
    a->isr_nodes = cluster_view_ids(rq, partition_isr(p), p->isr_count);
    a->isr_nodes_count = p->isr_count;
    a->eligible_leader_replicas = cluster_view_ids(rq, partition_elr(p), p->elr_count);
    a->eligible_leader_replicas_count = p->elr_count;
    a->last_known_elr = cluster_view_ids(rq, partition_last_elr(p), p->last_elr_count);
    a->last_known_elr_count = p->last_elr_count;
    a->offline_replicas = cluster_view_offline(rq, image, p, &a->offline_replicas_count);
}

// Fills one topic from partition `from` on; answers the first partition that found no room, or -1.
static partition_id answer_topic(struct request *rq, const struct image *image, const struct image_topic *t,
                                 partition_id from, int32_t *room, topic_answer *a)
{
    a->topic_id = topic_id(t);
    a->topic_authorized_operations = cluster_view_topic_operations();
    int32_t all = topic_partition_count(t);
    int32_t n = all - from < *room ? all - from : *room;
    n = n > 0 ? n : 0;
    a->partitions = arena_alloc(&rq->arena, (size_t)n * sizeof *a->partitions);
    for (int32_t i = from; i < all; i++) {
        const struct image_partition *p = topic_partition(t, i);
        if (p == NULL) {
            continue;
        }
        if (*room == 0) {
            return i;
        }
        (*room)--;
        answer_partition(rq, image, p, i, &a->partitions[a->partitions_count++]);
    }
    return -1;
}

static void handle(struct request *rq)
{
    struct kp_describe_topic_partitions_request *in = REQUEST_DECODE(rq, describe_topic_partitions_request);
    if (in == NULL) {
        return;
    }
    const struct image *image = request_image(rq);
    struct kp_describe_topic_partitions_response out;
    kp_describe_topic_partitions_response_init(&out);
    out.throttle_time_ms = rq->throttle_ms;
    int32_t max = request_broker(rq)->settings.request_partitions_max;
    int32_t room = in->response_partition_limit < max ? in->response_partition_limit : max;
    room = room > 0 ? room : 1;
    int32_t count = 0;
    struct slice *names = list_names(rq, in, image, &count);
    out.topics = arena_alloc(&rq->arena, (size_t)count * sizeof *out.topics);
    for (int32_t i = 0; i < count && out.next_cursor == NULL; i++) {
        partition_id from = 0;
        if (in->cursor != NULL && slice_equal(in->cursor->topic_name, names[i]) &&
            in->cursor->partition_index > 0) {
            from = in->cursor->partition_index;
        }
        const struct image_topic *t = image_topic_named(image, names[i]);
        topic_answer *a = &out.topics[out.topics_count++];
        kp_describe_topic_partitions_response_describe_topic_partitions_response_topic_init(a);
        a->name = names[i];
        a->is_internal = cluster_view_internal(names[i]);
        if (!authorize(rq->ctx, ACL_DESCRIBE, ACL_TOPIC, names[i])) {
            a->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
            continue;
        }
        if (t == NULL) {
            a->error_code = cluster_view_valid_name(names[i]) ? KE_UNKNOWN_TOPIC_OR_PARTITION
                                                              : KE_INVALID_TOPIC_EXCEPTION;
            continue;
        }
        partition_id next = answer_topic(rq, image, t, from, &room, a);
        bool more = room == 0 && i + 1 < count;
        if (next >= 0 || more) {
            out.next_cursor = arena_zalloc(&rq->arena, sizeof *out.next_cursor);
            out.next_cursor->topic_name = next >= 0 ? names[i] : names[i + 1];
            out.next_cursor->partition_index = next >= 0 ? next : 0;
        }
    }
    REQUEST_REPLY(rq, describe_topic_partitions_response, &out);
}

const struct request_api api_describe_topic_partitions = {
    .key = KP_API_DESCRIBE_TOPIC_PARTITIONS,
    .version_min = 0,
    .version_max = KP_DESCRIBE_TOPIC_PARTITIONS_REQUEST_MAX_VERSION,
    .on_broker = handle};
