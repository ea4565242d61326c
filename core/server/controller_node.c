// SPDX-License-Identifier: Apache-2.0
// The active controller: its queue, its batches in flight, its timers. See controller_node.h for the path of
// an operation.
//
// States of leadership: FOLLOWING -> on_leadership(active) -> ACTIVATING (first records of the term proposed)
// -> SERVING; back to FOLLOWING at any time by on_leadership(not active).
//
// Invariant: `latest` is the committed image when `batches` is empty, else the image behind the last batch.
#include "core/server/controller_node_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/metadata/replay.h"
#include "core/server/limits.h"

static uint64_t random_next(void *data)
{
    return node_random_u64(data);
}

// ---- operations -----------------------------------------------------------------------------------------
static void op_finish(struct controller_op *op)
{
    op->committed = true;
    op->type->reply(op);
}

static void op_fail(struct controller_op *op, enum kafka_error error)
{
    op->committed = false;
    if (error == KE_NOT_CONTROLLER && op->rq && op->rq->embedded_cb)
        controller_envelope_refuse(op->rq); // the Envelope itself says so, and the broker tries elsewhere
    op->type->fail(op, error);
    op->type->reply(op);
}

void controller_node_fail_list(struct list *ops, enum kafka_error error)
{
    struct list taken;
    list_init(&taken);
    list_splice_tail(&taken, ops);
    for (struct list_node *n = list_pop(&taken); n; n = list_pop(&taken))
        op_fail(LIST_ENTRY(n, struct controller_op, link), error);
}

void controller_node_submit(struct controller_node *cn, struct controller_op *op)
{
    op->node = cn;
    if (cn->state == CONTROLLER_FOLLOWING) {
        op_fail(op, KE_NOT_CONTROLLER);
        return;
    }
    list_add_tail(&cn->queue, &op->link);
}

void controller_node_handle(struct request *rq, const struct controller_op_type *type, const void *in,
                            size_t out_size)
{
    struct controller_op *op = arena_zalloc(&rq->arena, sizeof *op);
    op->type = type;
    op->rq = rq;
    op->arena = &rq->arena;
    op->in = in;
    op->out = arena_zalloc(&rq->arena, out_size);
    op->node = rq->listener->controller_node;
    if (type->cluster_operation != 0 &&
        !authorize(rq->ctx, type->cluster_operation, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        type->fail(op, KE_CLUSTER_AUTHORIZATION_FAILED);
        type->reply(op);
        return;
    }
    controller_node_submit(rq->listener->controller_node, op);
}

// ---- internal operations --------------------------------------------------------------------------------
struct internal_op {
    struct controller_op op; // first member
    struct arena arena;      // op.arena
    broker_id broker;        // fence: whom
    broker_epoch epoch;      // fence: which registration
    bool more;               // balance, unclean: call again
};

static void internal_fail(struct controller_op *op, enum kafka_error error) {}

static void internal_reply(struct controller_op *op)
{
    struct internal_op *i = (struct internal_op *)op;
    struct controller_node *cn = op->node;
    bool committed = op->committed;
    if (op->type == &controller_op_activate && committed)
        controller_node_activated(cn);
    if (op->type == &controller_op_balance && i->more && committed)
        node_timer_start(cn->opts.loop, &cn->balance_timer, 1);
    if (op->type == &controller_op_unclean && i->more && committed)
        node_timer_start(cn->opts.loop, &cn->unclean_timer, 1);
    arena_fini(&i->arena);
    mem_free(i);
}

static void decide_expire(struct controller_op *op, struct controller *c, struct record_list *records)
{
    controller_expire_sessions(c, records);
}

static void decide_fence(struct controller_op *op, struct controller *c, struct record_list *records)
{
    struct internal_op *i = (struct internal_op *)op;
    controller_fence_gone_broker(c, i->broker, i->epoch, records);
}

static void decide_balance(struct controller_op *op, struct controller *c, struct record_list *records)
{
    ((struct internal_op *)op)->more = controller_balance_leaders(c, records);
}

static void decide_unclean(struct controller_op *op, struct controller *c, struct record_list *records)
{
    ((struct internal_op *)op)->more = controller_elect_unclean(c, records);
}

static void decide_activate(struct controller_op *op, struct controller *c, struct record_list *records)
{
    const struct slice *values;
    uint32_t count;
    quorum_bootstrap_records(op->node->quorum, &values, &count);
    struct metadata_record *boot = arena_alloc(op->arena, (count ? count : 1) * sizeof *boot);
    for (uint32_t i = 0; i < count; i++) {
        struct errmsg msg;
        if (metadata_record_decode(&boot[i], values[i], op->arena, &msg) != 0)
            node_stop(op->node->opts.node, "record %u of the formatted checkpoint cannot be read: %s", i,
                      msg.text);
    }
    controller_activate(c, boot, count, records);
}

const struct controller_op_type controller_op_balance = {"balance leaders", 0, decide_balance, internal_fail,
                                                         internal_reply};
const struct controller_op_type controller_op_unclean = {"unclean elections", 0, decide_unclean,
                                                         internal_fail, internal_reply};
const struct controller_op_type controller_op_expire = {"expire sessions", 0, decide_expire, internal_fail,
                                                        internal_reply};
static const struct controller_op_type op_fence = {"fence a gone broker", 0, decide_fence, internal_fail,
                                                   internal_reply};
const struct controller_op_type controller_op_activate = {"activate", 0, decide_activate, internal_fail,
                                                          internal_reply};

static struct internal_op *internal_create(struct controller_node *cn, const struct controller_op_type *type)
{
    struct internal_op *i = mem_zalloc(sizeof *i);
    arena_init(&i->arena);
    i->op.type = type;
    i->op.arena = &i->arena;
    i->op.node = cn;
    return i;
}

void controller_node_run(struct controller_node *cn, const struct controller_op_type *type)
{
    struct internal_op *i = internal_create(cn, type);
    controller_node_submit(cn, &i->op);
}

void controller_node_fence(struct controller_node *cn, broker_id id, broker_epoch epoch)
{
    struct internal_op *i = internal_create(cn, &op_fence);
    i->broker = id;
    i->epoch = epoch;
    controller_node_submit(cn, &i->op);
}

// ---- batches --------------------------------------------------------------------------------------------
static struct controller_batch *batch_create(struct controller_node *cn)
{
    struct controller_batch *b = mem_zalloc(sizeof *b);
    b->node = cn;
    b->before = image_ref(cn->latest);
    b->base_offset = quorum_next_offset(cn->quorum);
    arena_init(&b->arena);
    list_init(&b->ops);
    return b;
}

static void batch_free(struct controller_batch *b)
{
    image_unref(b->before);
    arena_fini(&b->arena);
    mem_free(b->values);
    mem_free(b);
}

static void set_latest(struct controller_node *cn, struct image *owned)
{
    image_unref(cn->latest);
    cn->latest = owned;
}

static void batch_done(void *data, int err, log_offset base_offset)
{
    struct controller_batch *b = data;
    struct controller_node *cn = b->node;
    list_remove(&b->link);
    cn->outstanding_bytes -= b->bytes;
    if (err == 0)
        MUST(base_offset == b->base_offset);
    if (list_is_empty(&cn->batches) && cn->state != CONTROLLER_FOLLOWING)
        set_latest(cn, quorum_image(cn->quorum));
    struct list ops;
    list_init(&ops);
    list_splice_tail(&ops, &b->ops);
    batch_free(b);
    if (err != 0) {
        controller_node_fail_list(&ops, KE_NOT_CONTROLLER);
        return;
    }
    for (struct list_node *n = list_pop(&ops); n; n = list_pop(&ops))
        op_finish(LIST_ENTRY(n, struct controller_op, link));
}

static void batch_add_values(struct controller_batch *b, const struct record_list *records)
{
    if (b->count + records->count > b->cap) {
        b->cap = (b->count + records->count) * 2;
        b->values = mem_realloc(b->values, b->cap * sizeof *b->values);
    }
    for (uint32_t i = 0; i < records->count; i++) {
        size_t size = metadata_record_size(&records->items[i]);
        uint8_t *bytes = arena_alloc(&b->arena, size);
        int err = metadata_record_encode_into(&records->items[i], bytes);
        if (err != 0)
            node_stop(b->node->opts.node, "a %s cannot be encoded: %s",
                      metadata_record_type_name((uint32_t)records->items[i].type), err_text(err));
        b->values[b->count++] = slice_of(bytes, size);
        b->bytes += size + 16;
    }
}

// Gives the operations back to the queue, before what waits there, to be decided anew.
static void batch_undo(struct controller_node *cn, struct controller_batch *b)
{
    set_latest(cn, image_ref(b->before));
    list_splice_tail(&b->ops, &cn->queue);
    list_splice_tail(&cn->queue, &b->ops);
    batch_free(b);
}

// Proposes the batch. False: the queue must wait (the batch was undone) or nothing is to be proposed any
// more.
static bool batch_propose(struct controller_node *cn, struct controller_batch *b)
{
    int err = quorum_propose(cn->quorum, b->values, b->count, batch_done, b);
    if (err == 0) {
        cn->outstanding_bytes += b->bytes;
        cn->last_proposal = node_now(cn->opts.loop);
        arena_reset(&b->arena);
        list_add_tail(&cn->batches, &b->link);
        return true;
    }
    if (err == ERR_BUSY || err == ERR_NOTLEADER) { // after the next commit, or failed by on_leadership
        batch_undo(cn, b);
        return false;
    }
    if (log_limit_allow(&cn->refused_limit, node_now(cn->opts.loop), REFUSED_LOG_PERIOD_US, 1, NULL))
        log_warn(cn->opts.log, "controller", "records could not be proposed", "records=%u bytes=%zu error=%s",
                 b->count, b->bytes, err_text(err));
    set_latest(cn, image_ref(b->before));
    struct list ops;
    list_init(&ops);
    list_splice_tail(&ops, &b->ops);
    batch_free(b);
    controller_node_fail_list(&ops, err == ERR_NOSPACE ? KE_KAFKA_STORAGE_ERROR : KE_POLICY_VIOLATION);
    return true;
}

// Replays the records on `latest`; a record of our own that does not replay must not reach the log.
static void replay_own(struct controller_node *cn, const struct record_list *records, log_offset offset)
{
    struct image_builder *builder = image_builder_create(cn->latest);
    leader_epoch epoch = quorum_term(cn->quorum);
    for (uint32_t i = 0; i < records->count; i++) {
        struct errmsg msg = {.text = ""};
        if (image_replay(builder, &records->items[i], offset + i, epoch, &msg) != 0)
            node_stop(cn->opts.node, "the active controller made a record that does not replay: %s",
                      msg.text);
    }
    set_latest(cn, image_builder_finish(builder));
}

void controller_node_context(struct controller_node *cn, struct arena *arena, struct controller *out)
{
    *out = (struct controller){.opts = cn->opts.controller,
                               .image = cn->committed,
                               .sessions = &cn->sessions,
                               .now = node_now(cn->opts.loop),
                               .wall = node_wall(cn->opts.node),
                               .kraft_version = cn->kraft_version,
                               .random = {random_next, cn->opts.node},
                               .arena = arena};
}

static void decide(struct controller_node *cn, struct controller_op *op, log_offset next_offset,
                   struct record_list *records)
{
    record_list_init(records, op->arena);
    struct controller c;
    controller_node_context(cn, op->arena, &c);
    c.image = cn->latest;
    c.next_offset = next_offset;
    op->type->decide(op, &c, records);
}

// Attaches an operation without records to the image that it was decided on: `open`, else the last batch in
// flight, else none.
static void attach(struct controller_node *cn, struct controller_batch *open, struct controller_op *op)
{
    struct list_node *last = list_last(&cn->batches);
    if (open && open->count > 0)
        list_add_tail(&open->ops, &op->link);
    else if (last)
        list_add_tail(&LIST_ENTRY(last, struct controller_batch, link)->ops, &op->link);
    else
        op_finish(op);
}

void controller_node_process(struct controller_node *cn)
{
    struct controller_batch *b = NULL;
    bool go = cn->outstanding_bytes < CONTROLLER_OUTSTANDING_BYTES;
    while (go && cn->state != CONTROLLER_FOLLOWING && !list_is_empty(&cn->queue)) {
        struct controller_op *op = LIST_ENTRY(list_first(&cn->queue), struct controller_op, link);
        if (cn->state == CONTROLLER_ACTIVATING && op->type != &controller_op_activate)
            break;
        if (!b)
            b = batch_create(cn);
        struct record_list records;
        decide(cn, op, b->base_offset + b->count, &records);
        list_remove(&op->link);
        if (records.count == 0) {
            attach(cn, b, op);
            continue;
        }
        if (b->count > 0 && b->count + records.count > QUORUM_BATCH_RECORDS_MAX) {
            // Offsets are dense: the next batch begins where this one ends, so what was decided holds.
            log_offset next = b->base_offset + b->count;
            go = batch_propose(cn, b);
            b = NULL;
            if (!go) {
                list_add_tail(&cn->queue, &op->link);
                break;
            }
            b = batch_create(cn);
            MUST(b->base_offset == next);
        }
        replay_own(cn, &records, b->base_offset + b->count);
        batch_add_values(b, &records);
        list_add_tail(&b->ops, &op->link);
        if (b->bytes >= CONTROLLER_BATCH_BYTES || b->count >= QUORUM_BATCH_RECORDS_MAX) {
            go = batch_propose(cn, b);
            b = NULL;
        }
    }
    if (b && b->count > 0)
        (void)batch_propose(cn, b);
    else if (b) {
        MUST(list_is_empty(&b->ops));
        batch_free(b);
    }
}
