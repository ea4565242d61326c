// SPDX-License-Identifier: Apache-2.0
// Producer ids: a block in use, and the next one asked for when it is used up; who asks meanwhile waits.
#include "core/server/producer_ids.h"

#include "core/base/list.h"
#include "core/base/mem.h"
#include "core/protocol/gen/allocate_producer_ids_request.h"
#include "core/protocol/gen/allocate_producer_ids_response.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/errors.h"
#include "core/server/controller_channel.h"

#define ALLOCATE_TIMEOUT_MS 10000 // longest wait for a block

struct producer_ids {
    struct broker *broker;          // whose epoch goes along
    struct node_loop *loop;         // broker loop
    struct controller_channel *ch;  // to the active controller
    int64_t next, end;              // rest of the block; next == end: used up
    struct channel_request request; // for a block
    bool in_flight;                 // it is under way
    struct list waiting;            // struct wanted
};

// One who asked.
struct wanted {
    struct list_node link; // producer_ids.waiting
    struct node_task hop;  // to the broker loop and back
    struct producer_ids *ids;
    struct request *rq;
    void (*done)(struct request *rq, int16_t error, int64_t producer_id);
    int16_t error;
    int64_t id;
};

static void come_back(struct node_task *t)
{
    struct wanted *w = LIST_ENTRY(t, struct wanted, hop);
    w->done(w->rq, w->error, w->id);
    mem_free(w);
}

static void give(struct wanted *w, int16_t error, int64_t id)
{
    w->error = error;
    w->id = id;
    w->hop.run = come_back;
    node_loop_post(w->rq->loop->loop, &w->hop);
}

static void ask(struct producer_ids *p);

static void serve(struct producer_ids *p)
{
    while (p->next < p->end && !list_is_empty(&p->waiting))
        give(LIST_ENTRY(list_pop(&p->waiting), struct wanted, link), KE_NONE, p->next++);
    if (!list_is_empty(&p->waiting))
        ask(p);
}

static int encode(struct channel_request *r, int16_t version, struct rope *out)
{
    struct producer_ids *p = LIST_ENTRY(r, struct producer_ids, request);
    struct kp_allocate_producer_ids_request q;
    kp_allocate_producer_ids_request_init(&q);
    q.broker_id = p->broker->settings.id;
    q.broker_epoch = atomic_load(&p->broker->epoch);
    return kp_allocate_producer_ids_request_encode(&q, out, version);
}

static enum channel_verdict answer(struct channel_request *r, int err, int16_t version, struct slice body)
{
    struct producer_ids *p = LIST_ENTRY(r, struct producer_ids, request);
    struct kp_allocate_producer_ids_response a;
    kp_allocate_producer_ids_response_init(&a);
    a.error_code = KE_COORDINATOR_LOAD_IN_PROGRESS;
    if (err == 0) {
        struct arena arena;
        struct kp_reader reader;
        arena_init(&arena);
        kp_reader_init(&reader, body, &arena, NULL);
        if (kp_allocate_producer_ids_response_decode(&a, &reader, version) != 0)
            a.error_code = KE_UNKNOWN_SERVER_ERROR;
        arena_fini(&arena);
        if (a.error_code == KE_NOT_CONTROLLER)
            return CHANNEL_ELSEWHERE;
    }
    p->in_flight = false;
    if (a.error_code != KE_NONE || a.producer_id_len <= 0) { // the client tries again
        while (!list_is_empty(&p->waiting))
            give(LIST_ENTRY(list_pop(&p->waiting), struct wanted, link), KE_COORDINATOR_LOAD_IN_PROGRESS, -1);
        return CHANNEL_DONE;
    }
    p->next = a.producer_id_start;
    p->end = a.producer_id_start + a.producer_id_len;
    serve(p);
    return CHANNEL_DONE;
}

static void ask(struct producer_ids *p)
{
    if (p->in_flight)
        return;
    memset(&p->request, 0, sizeof p->request);
    p->request.api = KP_API_ALLOCATE_PRODUCER_IDS;
    p->request.timeout_ms = ALLOCATE_TIMEOUT_MS;
    p->request.encode = encode;
    p->request.answer = answer;
    p->in_flight = true;
    controller_channel_send(p->ch, &p->request);
}

static void arrive(struct node_task *t)
{
    struct wanted *w = LIST_ENTRY(t, struct wanted, hop);
    list_add_tail(&w->ids->waiting, &w->link);
    serve(w->ids);
}

struct producer_ids *producer_ids_create(struct broker *b, struct node_loop *loop,
                                         struct controller_channel *ch)
{
    struct producer_ids *p = mem_zalloc(sizeof *p);
    p->broker = b;
    p->loop = loop;
    p->ch = ch;
    list_init(&p->waiting);
    return p;
}

void producer_ids_free(struct producer_ids *p)
{
    for (struct list_node *n = list_pop(&p->waiting); n; n = list_pop(&p->waiting))
        mem_free(LIST_ENTRY(n, struct wanted, link));
    mem_free(p);
}

void producer_ids_next(struct producer_ids *p, struct request *rq,
                       void (*done)(struct request *rq, int16_t error, int64_t producer_id))
{
    struct wanted *w = mem_zalloc(sizeof *w);
    w->ids = p;
    w->rq = rq;
    w->done = done;
    w->hop.run = arrive;
    node_loop_post(p->loop, &w->hop);
}
