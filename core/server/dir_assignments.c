// SPDX-License-Identifier: Apache-2.0
// Directory assignments: gathered for a moment, sent together, one request at a time, sent again on failure.
#include "core/server/dir_assignments.h"

#include "core/base/list.h"
#include "core/base/mem.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/assign_replicas_to_dirs_request.h"
#include "core/protocol/gen/assign_replicas_to_dirs_response.h"
#include "core/protocol/gen/errors.h"
#include "core/server/controller_channel.h"

#define GATHER_MS 50  // topics are made in groups: one request for many
#define RETRY_MS 1000 // after a refusal (the broker is not registered yet, ...)
#define REQUEST_TIMEOUT_MS 10000
#define REQUEST_REPLICAS_MAX 2250 // of one request, as Kafka's brokers

typedef struct kp_assign_replicas_to_dirs_request_directory_data directory_data;
typedef struct kp_assign_replicas_to_dirs_request_topic_data topic_data;
typedef struct kp_assign_replicas_to_dirs_request_partition_data partition_data;

struct assignment {
    struct list_node link; // waiting or sent
    struct node_task hop;  // to the broker loop
    struct dir_assignments *owner;
    struct uuid topic_id;   // which replica
    partition_id partition; // "
    struct uuid dir;        // where it is
};

struct dir_assignments {
    struct broker *broker;          // whose
    struct node_loop *loop;         // broker loop
    struct controller_channel *ch;  // to the active controller
    struct list waiting, sent;      // struct assignment
    struct channel_request request; // carries `sent`
    struct node_timer timer;        // gathers, and waits after a failure
};

static directory_data *find_dir(struct kp_assign_replicas_to_dirs_request *q, struct uuid id)
{
    for (int32_t i = 0; i < q->directories_count; i++)
        if (uuid_equal(q->directories[i].id, id))
            return &q->directories[i];
    directory_data *d = &q->directories[q->directories_count++];
    kp_assign_replicas_to_dirs_request_directory_data_init(d);
    d->id = id;
    return d;
}

// `count`: assignments in all, so room for the worst case.
static void add(struct kp_assign_replicas_to_dirs_request *q, const struct assignment *a, struct arena *arena,
                size_t count)
{
    directory_data *d = find_dir(q, a->dir);
    if (!d->topics)
        d->topics = arena_alloc(arena, count * sizeof *d->topics);
    topic_data *t = NULL;
    if (d->topics_count > 0 && uuid_equal(d->topics[d->topics_count - 1].topic_id, a->topic_id))
        t = &d->topics[d->topics_count - 1]; // partitions of a topic come one after the other
    if (!t) {
        t = &d->topics[d->topics_count++];
        kp_assign_replicas_to_dirs_request_topic_data_init(t);
        t->topic_id = a->topic_id;
        t->partitions = arena_alloc(arena, count * sizeof *t->partitions);
    }
    partition_data *p = &t->partitions[t->partitions_count++];
    kp_assign_replicas_to_dirs_request_partition_data_init(p);
    p->partition_index = a->partition;
}

static int encode(struct channel_request *r, int16_t version, struct rope *out)
{
    struct dir_assignments *d = LIST_ENTRY(r, struct dir_assignments, request);
    struct arena arena;
    struct kp_assign_replicas_to_dirs_request q;
    size_t count = 0;
    LIST_FOR_EACH(n, &d->sent)
    count++;
    arena_init(&arena);
    kp_assign_replicas_to_dirs_request_init(&q);
    q.broker_id = d->broker->settings.id;
    q.broker_epoch = atomic_load(&d->broker->epoch);
    q.directories = arena_alloc(&arena, (d->broker->settings.log_dirs_count + 1) * sizeof *q.directories);
    LIST_FOR_EACH(n, &d->sent)
    add(&q, LIST_ENTRY(n, struct assignment, link), &arena, count);
    int err = kp_assign_replicas_to_dirs_request_encode(&q, out, version);
    arena_fini(&arena);
    return err;
}

static void drop_all(struct list *l)
{
    for (struct list_node *n = list_pop(l); n; n = list_pop(l))
        mem_free(LIST_ENTRY(n, struct assignment, link));
}

static enum channel_verdict answer(struct channel_request *r, int err, int16_t version, struct slice body)
{
    struct dir_assignments *d = LIST_ENTRY(r, struct dir_assignments, request);
    struct kp_assign_replicas_to_dirs_response a;
    kp_assign_replicas_to_dirs_response_init(&a);
    if (err == 0) {
        struct arena arena;
        struct kp_reader reader;
        arena_init(&arena);
        kp_reader_init(&reader, body, &arena, NULL);
        if (kp_assign_replicas_to_dirs_response_decode(&a, &reader, version) != 0)
            a.error_code = KE_UNKNOWN_SERVER_ERROR;
        arena_fini(&arena);
        if (a.error_code == KE_NOT_CONTROLLER)
            return CHANNEL_ELSEWHERE;
    }
    if (err == ERR_CANCELED)
        return CHANNEL_DONE;
    if (err == 0 && a.error_code == KE_NONE) {
        // A replica that was refused alone (its topic is gone meanwhile) is not said again either.
        drop_all(&d->sent);
        if (!list_is_empty(&d->waiting))
            node_timer_start(d->loop, &d->timer, 0);
        return CHANNEL_DONE;
    }
    list_splice_tail(&d->sent, &d->waiting);
    list_splice_tail(&d->waiting, &d->sent);
    node_timer_start(d->loop, &d->timer, RETRY_MS);
    return CHANNEL_DONE;
}

static void timer_cb(struct node_timer *t)
{
    struct dir_assignments *d = LIST_ENTRY(t, struct dir_assignments, timer);
    if (!list_is_empty(&d->sent) || list_is_empty(&d->waiting))
        return;
    for (unsigned i = 0; i < REQUEST_REPLICAS_MAX && !list_is_empty(&d->waiting); i++)
        list_add_tail(&d->sent, list_pop(&d->waiting));
    memset(&d->request, 0, sizeof d->request);
    d->request.api = KP_API_ASSIGN_REPLICAS_TO_DIRS;
    d->request.timeout_ms = REQUEST_TIMEOUT_MS;
    d->request.encode = encode;
    d->request.answer = answer;
    controller_channel_send(d->ch, &d->request);
}

static void arrive(struct node_task *t)
{
    struct assignment *a = LIST_ENTRY(t, struct assignment, hop);
    struct dir_assignments *d = a->owner;
    list_add_tail(&d->waiting, &a->link);
    if (list_is_empty(&d->sent) && !node_timer_running(&d->timer))
        node_timer_start(d->loop, &d->timer, GATHER_MS);
}

struct dir_assignments *dir_assignments_create(struct broker *b, struct node_loop *loop,
                                               struct controller_channel *ch)
{
    struct dir_assignments *d = mem_zalloc(sizeof *d);
    d->broker = b;
    d->loop = loop;
    d->ch = ch;
    d->timer.fire = timer_cb;
    list_init(&d->waiting);
    list_init(&d->sent);
    return d;
}

void dir_assignments_free(struct dir_assignments *d)
{
    drop_all(&d->waiting);
    drop_all(&d->sent);
    mem_free(d);
}

void dir_assignments_add(struct dir_assignments *d, struct uuid topic_id, partition_id partition,
                         struct uuid dir)
{
    struct assignment *a = mem_zalloc(sizeof *a);
    a->owner = d;
    a->topic_id = topic_id;
    a->partition = partition;
    a->dir = dir;
    a->hop.run = arrive;
    node_loop_post(d->loop, &a->hop);
}
