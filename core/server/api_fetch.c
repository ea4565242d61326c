// SPDX-License-Identifier: Apache-2.0
// Fetch: reads what is there, waits on the partitions for what is not, answers with file ranges.
//
// Happy path: session, partitions, one try. Enough bytes, an error, a divergence or no wish to wait: the
// answer. Else the fetch parks: it watches each partition (an append counts its bytes down and wakes it when
// enough came) until its timer fires.
//
//   TRYING --enough--> answered          TRYING --too little--> PARKED --woken, timer--> TRYING
//   TRYING --cold bytes--> READING --job done--> TRYING          any --connection gone--> ENDED or freed
//
// Where bytes are not in memory, a job of the short pool brings them in first: a cold reader never stalls the
// loop. Invariant: watches are in their partitions' lists exactly while PARKED; the job runs exactly while
// READING (or ENDED after it).
#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/security/authorize.h"
#include "core/server/api.h"
#include "core/server/fetch_metadata.h"
#include "core/server/broker.h"
#include "core/server/data_plane.h"
#include "core/server/error_map.h"
#include "core/server/fetch_op.h"
#include "core/server/leader_hints.h"
#include "core/server/replica_manager.h"

#define REPLICA_STATE_FROM 15 // version with ReplicaState
#define ANY_REPLICA_FROM 11   // version whose consumers may read from followers
#define TOPIC_IDS_FROM 13     // version with topic ids

static void try_fetch(struct fetch_op *op, bool final);

static mono_us now_of(const struct fetch_op *op)
{
    return node_now(op->rq->loop->loop);
}

static void release_reads(struct fetch_op *op)
{
    for (int32_t i = 0; i < op->slots_count; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->tried) {
            plog_range_release(&s->read.range);
            s->read.range = (struct plog_range){0};
            mem_free(s->read.aborted);
            s->read.aborted = NULL;
            s->tried = false;
        }
    }
}

static void unpark(struct fetch_op *op)
{
    MUST(op->state == FETCH_PARKED);
    for (int32_t i = 0; i < op->slots_count; i++) {
        struct fetch_slot *s = &op->slots[i];
        if (s->partition != NULL) {
            partition_watch_remove(s->partition, &s->watch);
        }
    }
    node_timer_stop(op->rq->loop->loop, &op->timer);
    op->state = FETCH_TRYING;
}

// Gives everything back; the request is answered or abandoned by the caller afterwards.
static void dispose(struct fetch_op *op)
{
    release_reads(op);
    for (int32_t i = 0; i < op->slots_count; i++) {
        partition_unref(op->slots[i].partition);
        op->slots[i].partition = NULL;
    }
    fetch_session_end(op->broker->sessions, op->session, now_of(op));
    op->session = NULL;
}

// Answers, once nothing can touch the operation any more.
static void end(struct fetch_op *op)
{
    if (atomic_load_explicit(&op->waiter.pushed, memory_order_acquire)) {
        op->state = FETCH_ENDED; // `wake` is still to come and ends it
        return;
    }
    struct request *rq = op->rq;
    if (request_gone(rq)) {
        dispose(op);
        request_abandon(rq);
        return;
    }
    fetch_reply(op); // does not finish the request: the session is given back before
    int err = op->encode_error;
    dispose(op);
    request_reply_end(rq, err);
}

static void cancel(struct request *rq)
{
    struct fetch_op *op = rq->state;
    if (op->state == FETCH_READING) {
        op->state = FETCH_ENDED; // the job's end ends it
        return;
    }
    if (op->state == FETCH_PARKED) {
        unpark(op);
    }
    end(op);
}

// ---- waiting --------------------------------------------------------------------------------------------

static void wake(struct waiter *w)
{
    struct fetch_op *op = (struct fetch_op *)(void *)((char *)w - offsetof(struct fetch_op, waiter));
    if (op->state == FETCH_ENDED) {
        end(op);
    } else if (op->state == FETCH_PARKED) {
        unpark(op);
        try_fetch(op, false);
    }
}

static void timer_fired(struct node_timer *t)
{
    struct fetch_op *op = (struct fetch_op *)(void *)((char *)t - offsetof(struct fetch_op, timer));
    unpark(op);
    try_fetch(op, true);
}

// True: it waits. False: something came in between, try again.
static bool park(struct fetch_op *op, int64_t have)
{
    atomic_store(&op->missing, (long long)op->in->min_bytes - have);
    op->state = FETCH_PARKED;
    bool calm = true;
    for (int32_t i = 0; i < op->slots_count && calm; i++) {
        struct fetch_slot *s = &op->slots[i];
        s->watch = (struct partition_watch){.waiter = &op->waiter,
                                            .partition = s->partition,
                                            .missing = &op->missing,
                                            .seen = op->replica >= 0 ? s->read.bound : s->read.high_watermark,
                                            .epoch = s->read.epoch,
                                            .follower = op->replica >= 0};
        calm = s->partition == NULL || partition_watch_add(s->partition, &s->watch);
    }
    if (!calm) {
        unpark(op);
        return false;
    }
    release_reads(op);
    mono_us now = now_of(op);
    uint64_t left_ms = op->deadline > now ? (op->deadline - now + 999) / 1000 : 0;
    node_timer_start(op->rq->loop->loop, &op->timer, left_ms);
    return true;
}

// ---- cold bytes -----------------------------------------------------------------------------------------

static void read_ahead(struct node_job *j)
{
    struct fetch_op *op = (struct fetch_op *)(void *)((char *)j - offsetof(struct fetch_op, job));
    for (int32_t i = 0; i < op->slots_count; i++) {
        if (op->slots[i].tried && op->slots[i].read.cold && op->slots[i].read.range.file != NULL) {
            (void)plog_range_readahead(&op->slots[i].read.range);
        }
    }
}

static void read_ahead_done(struct node_job *j)
{
    struct fetch_op *op = (struct fetch_op *)(void *)((char *)j - offsetof(struct fetch_op, job));
    release_reads(op);
    op->waited = true;
    if (op->state == FETCH_ENDED) {
        end(op);
        return;
    }
    op->state = FETCH_TRYING;
    try_fetch(op, true);
}

static void start_reading(struct fetch_op *op)
{
    op->state = FETCH_READING;
    op->job = (struct node_job){.work = read_ahead, .done = read_ahead_done, .loop = op->rq->loop->loop};
    node_pool_run(op->broker->pool_short, &op->job);
}

// ---- a try ----------------------------------------------------------------------------------------------

static void read_slot(struct fetch_op *op, struct fetch_slot *s, int64_t room, bool first, time_ms wall,
                      struct wake_list *wl)
{
    struct fetch_item *item = s->item;
    int64_t max = item->max_bytes < room ? item->max_bytes : room;
    struct partition_read_args args = {.offset = item->offset,
                                       .current_epoch = item->current_epoch,
                                       .last_epoch = item->last_epoch,
                                       .max_bytes = max > 0 ? (size_t)max : 0,
                                       .min_one = first,
                                       .committed = op->committed,
                                       .any_replica = op->any_replica,
                                       .wait = op->waited,
                                       .replica = op->replica,
                                       .replica_epoch = op->replica_epoch,
                                       .replica_log_start = item->log_start};
    partition_read(s->partition, &args, wall, &s->read, wl);
    s->tried = true;
}

// `final`: answer with whatever is there.
static void try_fetch(struct fetch_op *op, bool final)
{
    for (;;) {
        struct wake_list wl = {.count = 0};
        time_ms wall = node_wall(op->broker->node);
        int64_t have = 0;
        bool at_once = final || op->in->max_wait_ms <= 0 || op->slots_count == 0;
        bool cold = false;
        for (int32_t i = 0; i < op->slots_count; i++) {
            struct fetch_slot *s = &op->slots[i];
            if (s->partition == NULL) {
                at_once = true;
                continue;
            }
            read_slot(op, s, op->max_bytes - have, have == 0, wall, &wl);
            cold |= s->read.cold;
            have += s->read.cold ? 0 : (int64_t)s->read.range.len;
            at_once |= s->read.error != KE_NONE || s->read.diverging_epoch >= 0;
        }
        wake_list_send(&wl);
        if (cold && have == 0) {
            start_reading(op);
            return;
        }
        // What is cold is left to the next fetch where there is something to tell now.
        if (at_once || have >= op->in->min_bytes) {
            end(op);
            return;
        }
        if (park(op, have)) {
            return;
        }
        release_reads(op);
    }
}

// ---- taking in ------------------------------------------------------------------------------------------

static void find_partition(struct fetch_op *op, struct fetch_slot *s)
{
    struct request *rq = op->rq;
    const struct fetch_item *item = s->item;
    bool by_id = rq->version >= TOPIC_IDS_FROM;
    const struct image *image = request_image(rq);
    const struct image_topic *t =
        by_id ? image_topic(image, item->topic_id) : image_topic_named(image, item->topic);
    s->hint_leader = s->hint_epoch = -1;
    // An id that is not known reveals nothing; followers were asked for ClusterAction before.
    bool open = op->replica >= 0 || (by_id && t == NULL);
    if (!open && !authorize(rq->ctx, ACL_READ, ACL_TOPIC, by_id ? topic_name(t) : item->topic)) {
        s->missing_error = KE_TOPIC_AUTHORIZATION_FAILED;
        return;
    }
    if (t != NULL) {
        struct uuid id = topic_id(t);
        s->partition = replica_manager_find(op->broker->replicas, &id, item->index);
    }
    if (s->partition != NULL) {
        return;
    }
    const struct image_partition *ip = t != NULL && item->index >= 0 ? topic_partition(t, item->index) : NULL;
    s->missing_error = ip != NULL           ? KE_NOT_LEADER_OR_FOLLOWER
                       : t == NULL && by_id ? KE_UNKNOWN_TOPIC_ID
                                            : KE_UNKNOWN_TOPIC_OR_PARTITION;
    leader_hints_of(ip, &s->hint_leader, &s->hint_epoch);
}

static void refuse(struct request *rq, int16_t error)
{
    struct kp_fetch_response out;
    kp_fetch_response_init(&out);
    out.error_code = error;
    out.throttle_time_ms = rq->throttle_ms;
    REQUEST_REPLY(rq, fetch_response, &out);
}

static void handle(struct request *rq)
{
    struct kp_fetch_request *in = REQUEST_DECODE(rq, fetch_request);
    if (in == NULL) {
        return;
    }
    struct broker *b = request_broker(rq);
    struct fetch_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->rq = rq;
    op->broker = b;
    op->in = in;
    op->replica = rq->version >= REPLICA_STATE_FROM ? in->replica_state.replica_id : in->replica_id;
    op->replica_epoch = rq->version >= REPLICA_STATE_FROM ? in->replica_state.replica_epoch : -1;
    op->committed = in->isolation_level == 1 && op->replica < 0;
    op->any_replica = rq->version >= ANY_REPLICA_FROM && op->replica < 0;
    op->max_bytes = in->max_bytes;
    if (op->replica < 0 && op->max_bytes > b->settings.fetch_max_bytes) {
        op->max_bytes = b->settings.fetch_max_bytes;
    }
    if (!slice_is_null(in->cluster_id) && !slice_equal_str(in->cluster_id, b->settings.cluster_id)) {
        refuse(rq, KE_INCONSISTENT_CLUSTER_ID);
        return;
    }
    if (op->replica >= 0 && !authorize(rq->ctx, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        refuse(rq, KE_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    mono_us now = node_now(rq->loop->loop);
    // Randomness is a system call: only a session that is begun needs an id.
    uint64_t random = in->session_epoch == FETCH_SESSION_FIRST_EPOCH ? node_random_u64(b->node) : 0;
    int16_t error = fetch_session_begin(b->sessions, in, rq->version, op->replica >= 0, now, random,
                                        &op->session, &op->incremental);
    if (error != KE_NONE) {
        refuse(rq, error);
        return;
    }
    op->deadline = now + (mono_us)(in->max_wait_ms > 0 ? in->max_wait_ms : 0) * 1000;
    op->waiter = (struct waiter){.home = rq->loop->data->data, .wake = wake};
    op->timer.fire = timer_fired;
    op->slots_count = (int32_t)hmap_count(&op->session->by_key);
    op->slots = arena_zalloc(&rq->arena, (size_t)op->slots_count * sizeof *op->slots);
    int32_t i = 0;
    LIST_FOR_EACH(node, &op->session->items)
    {
        op->slots[i].item = LIST_ENTRY(node, struct fetch_item, link);
        find_partition(op, &op->slots[i++]);
    }
    rq->state = op;
    rq->cancel = cancel;
    try_fetch(op, false);
}

const struct request_api api_fetch = {.key = KP_API_FETCH,
                                      .version_min = KP_FETCH_REQUEST_MIN_VERSION,
                                      .version_max = KP_FETCH_REQUEST_MAX_VERSION,
                                      .advertised_min = KP_FETCH_REQUEST_MIN_VERSION,
                                      .on_broker = handle,
                                      .on_controller = fetch_metadata_handle};
