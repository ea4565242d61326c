// SPDX-License-Identifier: Apache-2.0
// Fetch of __cluster_metadata-0: whole committed batches from any controller, leader hints, snapshot ids,
// long polls.
//
// Happy path: the batches from the fetch offset on are answered at once; at the high watermark the request
// waits until that moves or max wait is over. Refusals, in Kafka's order:
//  - another cluster's id: INCONSISTENT_CLUSTER_ID; not this one partition: UNKNOWN_TOPIC_OR_PARTITION or
//  UNKNOWN_TOPIC_ID;
//  - the fetcher's epoch (when it names one) is older than ours: FENCED_LEADER_EPOCH, newer:
//  UNKNOWN_LEADER_EPOCH, both with
//    the leader that we know; so that a stock observer, which names it, always learns of a new leader;
//  - the offset is below our log start: no error, the newest snapshot's id;
//  - the fetched epoch at that offset is not the committed one: no error, the diverging epoch;
//  - the offset is above our high watermark (another controller was ahead): waits as if at its end.
#include "core/server/fetch_metadata.h"

#include "core/base/mem.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/server/controller_node.h"

#define NAMES_UNTIL 12                    // last version that names topics instead of ids
#define FETCH_WAIT_MS_MAX 30000           // longest wait that a fetcher may ask for
#define FETCH_BYTES_MAX (8 * 1024 * 1024) // most bytes of one answer

struct metadata_fetch {
    struct controller_waiter waiter;                     // first member; parked
    struct request *rq;                                  // the request
    struct controller_node *cn;                          // whose log
    const struct kp_fetch_request *in;                   // decoded
    const struct kp_fetch_request_fetch_partition *part; // the one partition
    bool waited;                                         // answer now, whatever there is
};

static void init_response(struct metadata_fetch *f, struct kp_fetch_response *out)
{
    kp_fetch_response_init(out);
    out->error_code = KE_NONE;
}

static void answer_top(struct request *rq, enum kafka_error error)
{
    struct kp_fetch_response out;
    kp_fetch_response_init(&out);
    out.error_code = (int16_t)error;
    REQUEST_REPLY(rq, fetch_response, &out);
}

// Tells who leads, with an address from v16 on.
static void add_leader(struct metadata_fetch *f, struct kp_fetch_response *out,
                       struct kp_fetch_response_partition_data *p)
{
    struct quorum *q = controller_node_quorum(f->cn);
    struct quorum_endpoint *e = arena_alloc(&f->rq->arena, sizeof *e);
    p->current_leader.leader_id = quorum_leader(q);
    p->current_leader.leader_epoch = quorum_term(q);
    if (quorum_leader(q) < 0 || !quorum_endpoint_of(q, quorum_leader(q), e))
        return;
    out->node_endpoints = arena_alloc(&f->rq->arena, sizeof *out->node_endpoints);
    out->node_endpoints_count = 1;
    kp_fetch_response_node_endpoint_init(out->node_endpoints);
    out->node_endpoints->node_id = quorum_leader(q);
    out->node_endpoints->host = slice_str(e->host);
    out->node_endpoints->port = e->port;
}

static void answer(struct metadata_fetch *f, enum kafka_error error, struct rope *records,
                   const struct quorum_snapshot_id *snapshot, log_offset diverging_end,
                   leader_epoch diverging_epoch)
{
    struct request *rq = f->rq;
    struct quorum *q = controller_node_quorum(f->cn);
    struct kp_fetch_response out;
    init_response(f, &out);
    struct kp_fetch_response_fetchable_topic_response topic;
    struct kp_fetch_response_partition_data p;
    kp_fetch_response_fetchable_topic_response_init(&topic);
    kp_fetch_response_partition_data_init(&p);
    topic.topic = f->in->topics[0].topic;
    topic.topic_id = f->in->topics[0].topic_id;
    topic.partitions = &p;
    topic.partitions_count = 1;
    out.responses = &topic;
    out.responses_count = 1;
    p.partition_index = f->part->partition;
    p.error_code = (int16_t)error;
    p.high_watermark = error == KE_NONE ? quorum_high_watermark(q) : -1;
    p.last_stable_offset = p.high_watermark;
    p.log_start_offset = quorum_log_start(q);
    p.records.bytes = SLICE_LIT("");
    if (records && records->len > 0)
        p.records.rope = records;
    if (snapshot) {
        p.snapshot_id.end_offset = snapshot->end_offset;
        p.snapshot_id.epoch = snapshot->epoch;
    }
    if (diverging_end >= 0) {
        p.diverging_epoch.end_offset = diverging_end;
        p.diverging_epoch.epoch = diverging_epoch;
    }
    add_leader(f, &out, &p); // always: a stock observer drops an answer whose epoch is not its own
    REQUEST_REPLY(rq, fetch_response, &out);
}

static enum kafka_error check_epoch(struct metadata_fetch *f)
{
    leader_epoch theirs = f->part->current_leader_epoch, ours = quorum_term(controller_node_quorum(f->cn));
    if (theirs < 0 || theirs == ours)
        return KE_NONE;
    return theirs < ours ? KE_FENCED_LEADER_EPOCH : KE_UNKNOWN_LEADER_EPOCH;
}

static void serve(struct metadata_fetch *f);

static void wake(struct controller_waiter *w)
{
    struct metadata_fetch *f = (struct metadata_fetch *)w;
    f->waited = true;
    serve(f);
}

static void park(struct metadata_fetch *f)
{
    uint32_t wait = f->in->max_wait_ms < 0 ? 0 : (uint32_t)f->in->max_wait_ms;
    controller_node_wait(f->cn, &f->waiter, wait > FETCH_WAIT_MS_MAX ? FETCH_WAIT_MS_MAX : wait);
}

// Cancel of a parked fetch whose connection is gone.
static void cancel(struct request *rq)
{
    struct metadata_fetch *f = rq->state;
    list_remove(&f->waiter.link);
    node_timer_stop(rq->loop->loop, &f->waiter.timer);
    request_abandon(rq);
}

// The newest snapshot, when the log does not reach back to the fetch offset.
static bool needs_snapshot(struct metadata_fetch *f, struct quorum_snapshot_id *id)
{
    struct quorum *q = controller_node_quorum(f->cn);
    if (!quorum_latest_snapshot(q, id))
        return false;
    return f->part->fetch_offset < quorum_log_start(q);
}

static void serve(struct metadata_fetch *f)
{
    struct quorum *q = controller_node_quorum(f->cn);
    log_offset from = f->part->fetch_offset, end = quorum_high_watermark(q);
    struct quorum_snapshot_id snapshot;
    enum kafka_error error = check_epoch(f);
    if (error != KE_NONE || from < 0) {
        answer(f, error != KE_NONE ? error : KE_OFFSET_OUT_OF_RANGE, NULL, NULL, -1, -1);
        return;
    }
    if (needs_snapshot(f, &snapshot)) {
        answer(f, KE_NONE, NULL, &snapshot, -1, -1);
        return;
    }
    if (from > 0 && from <= end && f->part->last_fetched_epoch >= 0) {
        leader_epoch epoch = -1;
        if (quorum_epoch_at(q, from) >= 0 && quorum_epoch_at(q, from) != f->part->last_fetched_epoch) {
            log_offset at = quorum_end_offset_of_epoch(q, f->part->last_fetched_epoch, &epoch);
            answer(f, KE_NONE, NULL, NULL, at < 0 ? 0 : at, epoch);
            return;
        }
    }
    bool tell_watermark =
        f->rq->version >= 18 && f->part->high_watermark >= 0 && f->part->high_watermark < end;
    if (from >= end && !f->waited && !tell_watermark && f->in->max_wait_ms > 0) {
        park(f);
        return;
    }
    struct rope records;
    rope_init(&records);
    uint32_t bytes = f->in->max_bytes > FETCH_BYTES_MAX || f->in->max_bytes <= 0 ? FETCH_BYTES_MAX
                                                                                 : (uint32_t)f->in->max_bytes;
    int err = from < end ? quorum_read(q, from, bytes, &records) : 0;
    enum kafka_error read_error = err == 0           ? KE_NONE
                                  : err == ERR_RANGE ? KE_OFFSET_OUT_OF_RANGE
                                                     : KE_KAFKA_STORAGE_ERROR;
    answer(f, read_error, &records, NULL, -1, -1);
    rope_clear(&records);
}

static bool names_metadata_log(const struct kp_fetch_request *in, int16_t version)
{
    if (in->topics_count != 1 || in->topics[0].partitions_count != 1 ||
        in->topics[0].partitions[0].partition != 0)
        return false;
    return version <= NAMES_UNTIL ? slice_equal_str(in->topics[0].topic, "__cluster_metadata")
                                  : uuid_equal(in->topics[0].topic_id, UUID_METADATA_TOPIC);
}

void fetch_metadata_handle(struct request *rq)
{
    struct kp_fetch_request *in = REQUEST_DECODE(rq, fetch_request);
    if (!in)
        return;
    struct controller_node *cn = rq->listener->controller_node;
    const struct controller_opts *opts = controller_node_opts_of(cn);
    if (!authorize(rq->ctx, ACL_CLUSTER_ACTION, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        answer_top(rq, KE_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    if (!slice_is_null(in->cluster_id) && !slice_equal(in->cluster_id, opts->cluster_id)) {
        answer_top(rq, KE_INCONSISTENT_CLUSTER_ID);
        return;
    }
    if (!names_metadata_log(in, rq->version)) {
        answer_top(rq, rq->version <= NAMES_UNTIL ? KE_UNKNOWN_TOPIC_OR_PARTITION : KE_UNKNOWN_TOPIC_ID);
        return;
    }
    struct metadata_fetch *f = arena_zalloc(&rq->arena, sizeof *f);
    f->rq = rq;
    f->cn = cn;
    f->in = in;
    f->part = &in->topics[0].partitions[0];
    f->waiter.wake = wake;
    rq->state = f;
    node_id replica = rq->version >= 15 ? in->replica_state.replica_id : in->replica_id;
    if (replica >= 0)
        controller_node_observe(cn, replica, f->part->replica_directory_id, f->part->fetch_offset);
    rq->cancel = cancel;
    serve(f);
}
