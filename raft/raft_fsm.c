// SPDX-License-Identifier: Apache-2.0
// libraft's state machine: committed batches are replayed into the cluster image, snapshots are manifests of
// files.
#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/protocol/metadata_record.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"

static struct image_builder *builder(struct quorum *q)
{
    if (!q->builder)
        q->builder = image_builder_create(q->image);
    return q->builder;
}

static void replay_records(struct quorum *q, const uint8_t *b)
{
    struct record_iter it;
    struct record r;
    struct metadata_record m;
    struct errmsg msg = {{0}};
    int err;
    record_iter_init(&it, b, NULL, NULL);
    while ((err = record_iter_next(&it, &r, &msg)) == 0) {
        err = metadata_record_decode(&m, r.value, &q->replay_arena, &msg);
        if (!err)
            err = image_replay(builder(q), &m, r.offset, batch_leader_epoch(b), &msg);
        arena_reset(&q->replay_arena);
        if (err)
            break;
    }
    record_iter_fini(&it);
    if (err != ERR_NOTFOUND)
        node_stop(q->opts.node,
                  "a committed record of the metadata log (batch at offset %lld) cannot be applied: %s. The "
                  "release "
                  "that wrote it may be newer than this one",
                  (long long)batch_base_offset(b), msg.text);
}

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct quorum *q = fsm->data;
    const uint8_t *b = buf->base;
    *result = NULL;
    MUST(batch_base_offset(b) >
         (q->builder ? image_offset(image_builder_peek(q->builder)) : image_offset(q->image)));
    if (!batch_is_control(b))
        replay_records(q, b);
    image_replay_offset(builder(q), batch_last_offset(b), batch_leader_epoch(b));
    return 0;
}

void quorum__image_catch_up(struct quorum *q)
{
    raft_index applied = q->raft.last_applied;
    log_offset end = mlog_end_of_index(q->log_store, applied);
    leader_epoch epoch = mlog_epoch_of_index(q->log_store, applied);
    log_offset have = q->builder ? image_offset(image_builder_peek(q->builder)) : image_offset(q->image);
    if (end > have + 1 && !q->raft.snapshot.installing) // barriers and changes hold no metadata record
        image_replay_offset(builder(q), end - 1, epoch);
    if (!q->builder)
        return;
    struct image *next = image_builder_finish(q->builder);
    q->builder = NULL;
    image_unref(q->image);
    q->image = next;
    quorum__publish_soon(q);
}

// Rule 15: pins the image and answers with the manifest of the file that will be written.
static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct quorum *q = fsm->data;
    if (!quorum__snapshot_allowed(q))
        return RAFT_BUSY;
    quorum__image_catch_up(q);
    raft_index index = q->raft.commit_index;
    log_offset end = mlog_end_of_index(q->log_store, index);
    leader_epoch epoch = mlog_epoch_of_index(q->log_store, index);
    MUST(end == image_offset(q->image) + 1);
    struct manifest m = {.end_offset = end, .epoch = epoch};
    *bufs = raft_malloc(sizeof **bufs);
    MUST(*bufs != NULL);
    *n_bufs = 1;
    (*bufs)[0].base = raft_malloc(MANIFEST_BYTES);
    (*bufs)[0].len = MANIFEST_BYTES;
    MUST((*bufs)[0].base != NULL);
    manifest_encode(&m, (*bufs)[0].base);
    q->take.image = image_ref(q->image);
    q->take.info = (struct checkpoint_info){
        .end_offset = end, .epoch = epoch, .dynamic = q->dynamic, .timestamp = node_wall(q->opts.node)};
    raft_set_snapshot_threshold(&q->raft, UINT32_MAX);
    q->snapshot_wanted = false;
    return 0;
}

// The image was built before the library was told: only the pointer moves.
static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct quorum *q = fsm->data;
    if (q->install_image) {
        image_builder_drop(q->builder);
        q->builder = NULL;
        image_unref(q->image);
        q->image = q->install_image;
        q->install_image = NULL;
        voter_set_unref(q->install_info.voters);
        q->install_info.voters = NULL;
        q->bytes_since_snapshot = 0;
        q->counted = q->install_info.index;
        q->snapshot_at = node_clock(q->opts.node);
        quorum__publish_soon(q);
    }
    raft_free(buf->base);
    return 0;
}

void quorum__fsm_init(struct quorum *q)
{
    q->fsm = (struct raft_fsm){
        .version = 1, .data = q, .apply = fsm_apply, .snapshot = fsm_snapshot, .restore = fsm_restore};
}
