// SPDX-License-Identifier: Apache-2.0
// The metadata follower: one fetch at a time, the local log, replay; snapshots are in
// metadata_follower_snapshot.c.
#include "core/server/metadata_follower_priv.h"

#include "core/base/assert.h"
#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/metadata/replay.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_request.h"
#include "core/protocol/gen/fetch_response.h"
#include "core/protocol/metadata_record.h"
#include "core/record/batch.h"

#define FETCH_WAIT_MS 500         // long poll, as Kafka's observers
#define FETCH_BYTES (1024 * 1024) // of one answer (a larger batch comes whole)
#define FETCH_TIMEOUT_MS 10000    // longest wait for an answer
#define RETRY_MS 100              // after a fetch that gave nothing of use
#define READ_BYTES (1024 * 1024)  // of one read while replaying the local log

#define FROM(ptr, field)                                                                                     \
    ((struct metadata_follower *)(void *)((char *)(ptr)-offsetof(struct metadata_follower, field)))

// ---- replay ---------------------------------------------------------------------------------------------
static void apply_error(struct metadata_follower *mf, log_offset offset, const char *why)
{
    mf->apply_errors++;
    log_error(mf->opts.log, "metadata", "a record of the metadata log could not be applied",
              "offset=%lld errors=%llu reason=%s", (long long)offset, (unsigned long long)mf->apply_errors,
              why);
}

static void replay_batch(struct metadata_follower *mf, struct image_builder *b, const uint8_t *batch,
                         struct arena *arena)
{
    leader_epoch epoch = batch_leader_epoch(batch);
    if (batch_is_control(batch)) {
        image_replay_offset(b, batch_last_offset(batch), epoch);
        return;
    }
    struct record_iter it;
    struct record r;
    struct errmsg msg = {.text = ""};
    record_iter_init(&it, batch, NULL, NULL);
    while (record_iter_next(&it, &r, &msg) == 0) {
        struct metadata_record m;
        int err = metadata_record_decode(&m, r.value, arena, &msg);
        if (err == 0)
            err = image_replay(b, &m, r.offset, epoch, &msg);
        if (err != 0) {
            apply_error(mf, r.offset, msg.text);
            image_replay_offset(b, r.offset, epoch);
        }
    }
    if (it.err != 0 && it.err != ERR_NOTFOUND)
        apply_error(mf, batch_base_offset(batch), msg.text);
    record_iter_fini(&it);
    image_replay_offset(b, batch_last_offset(batch), epoch);
}

// Replays whole batches on the image; `bytes` hold nothing else.
void metadata_follower__replay(struct metadata_follower *mf, struct slice bytes)
{
    struct image_builder *b = image_builder_create(mf->image);
    struct arena arena;
    arena_init(&arena);
    for (struct batch_iter it = batch_iter_of(bytes); batch_iter_next(&it);) {
        replay_batch(mf, b, it.batch, &arena);
        arena_reset(&arena);
    }
    arena_fini(&arena);
    struct image *next = image_builder_finish(b);
    image_unref(mf->image);
    mf->image = next;
}

void metadata_follower__publish(struct metadata_follower *mf)
{
    mf->opts.on_image(mf->opts.data, mf->image, image_offset(mf->image));
}

static int replay_log(struct metadata_follower *mf, struct errmsg *msg)
{
    log_offset at = image_offset(mf->image) + 1, end = plog_end_offset(mf->plog);
    if (at < plog_start_offset(mf->plog))
        return err_set(msg, ERR_CORRUPT,
                       "%s/__cluster_metadata-0 begins at offset %lld and no snapshot covers what is before: "
                       "move the directory away, it "
                       "is fetched again from the controllers",
                       log_dir_path(mf->opts.dir), (long long)plog_start_offset(mf->plog));
    while (at < end) {
        struct plog_range range;
        struct plog_read_args args = {.offset = at, .bound = end, .max_bytes = READ_BYTES, .min_one = true};
        int err = plog_read(mf->plog, &args, &range, msg);
        if (err != 0 || !range.file)
            return err;
        uint8_t *buf = mem_alloc(range.len);
        err = plog_range_copy(&range, buf);
        if (err == 0)
            metadata_follower__replay(mf, slice_of(buf, range.len));
        at = range.next_offset;
        plog_range_release(&range);
        mem_free(buf);
        if (err != 0)
            return err_set(msg, err, "the metadata log cannot be read: %s", err_text(err));
    }
    return 0;
}

// ---- fetching -------------------------------------------------------------------------------------------
log_offset metadata_follower__end(const struct metadata_follower *mf)
{
    return plog_end_offset(mf->plog);
}

static int encode_fetch(struct channel_request *r, int16_t version, struct rope *out)
{
    struct metadata_follower *mf = FROM(r, request);
    struct kp_fetch_request q;
    struct kp_fetch_request_fetch_topic topic;
    struct kp_fetch_request_fetch_partition p;
    kp_fetch_request_init(&q);
    kp_fetch_request_fetch_topic_init(&topic);
    kp_fetch_request_fetch_partition_init(&p);
    q.cluster_id = slice_str(mf->opts.cluster_id);
    q.replica_state.replica_id = mf->opts.id;
    q.max_wait_ms = FETCH_WAIT_MS;
    q.max_bytes = FETCH_BYTES;
    q.topics = &topic;
    q.topics_count = 1;
    topic.topic_id = UUID_METADATA_TOPIC;
    topic.partitions = &p;
    topic.partitions_count = 1;
    p.current_leader_epoch = -1; // whoever answers may be behind: what it serves is committed all the same
    p.fetch_offset = metadata_follower__end(mf);
    p.last_fetched_epoch = image_epoch(mf->image);
    p.replica_directory_id = mf->opts.directory_id;
    p.high_watermark = metadata_follower__end(mf); // all that we have is committed
    return kp_fetch_request_encode(&q, out, version);
}

#define APPEND_BATCHES_MAX 256 // of one call to the log

// Appends the gathered batches and replays them. False: no space, to be tried again.
static bool append_run(struct metadata_follower *mf, const struct slice *batches, unsigned count)
{
    struct plog_append_result result;
    struct errmsg msg = {.text = ""};
    int err = plog_append(mf->plog, batches, count, PLOG_AS_FOLLOWER | PLOG_NO_PRODUCERS,
                          node_wall(mf->opts.node), &result, &msg);
    if (err == ERR_NOSPACE) {
        log_error(mf->opts.log, "metadata", "no space for the metadata log, waiting", "dir=%s",
                  log_dir_path(mf->opts.dir));
        return false;
    }
    if (err != 0)
        node_stop(mf->opts.node, "the metadata log cannot be written: %s", msg.text);
    const struct slice *last = &batches[count - 1];
    struct slice run = slice_of(batches[0].data, (size_t)(last->data + last->len - batches[0].data));
    metadata_follower__replay(mf, run);
    mf->bytes_since_snapshot += run.len;
    return true;
}

// Checks the batches and appends those that go on where we are. False: nothing of use was there.
static bool append(struct metadata_follower *mf, struct slice bytes)
{
    struct slice batches[APPEND_BATCHES_MAX];
    unsigned count = 0;
    bool any = false;
    log_offset next = metadata_follower__end(mf);
    for (struct batch_iter it = batch_iter_of(bytes); batch_iter_next(&it);) {
        struct errmsg msg = {.text = ""};
        if (batch_base_offset(it.batch) < next)
            continue; // the batch that holds the fetch offset begins before it: we have it
        if (batch_check_crc(it.batch, &msg) != 0 || batch_base_offset(it.batch) > next) {
            log_warn(mf->opts.log, "metadata", "a batch was thrown away", "expected=%lld got=%lld reason=%s",
                     (long long)next, (long long)batch_base_offset(it.batch),
                     msg.text[0] ? msg.text : "does not go on where the log ends");
            break;
        }
        next = batch_next_offset(it.batch);
        batches[count++] = slice_of(it.batch, it.size);
        if (count == APPEND_BATCHES_MAX) {
            if (!append_run(mf, batches, count))
                return any;
            any = true;
            count = 0;
        }
    }
    if (count > 0 && append_run(mf, batches, count))
        any = true;
    return any;
}

static bool take_partition(struct metadata_follower *mf, const struct kp_fetch_response_partition_data *p)
{
    if (p->error_code != KE_NONE) {
        log_warn(mf->opts.log, "metadata", "fetch was refused", "error=%s", kafka_error_name(p->error_code));
        return false;
    }
    if (p->snapshot_id.end_offset >= 0) {
        metadata_follower__fetch_snapshot(mf, p->snapshot_id.end_offset, p->snapshot_id.epoch);
        return true;
    }
    if (p->diverging_epoch.end_offset >= 0)
        node_stop(mf->opts.node,
                  "the controllers do not have the metadata that this node replayed (end offset %lld, epoch "
                  "%d; theirs ends at %lld): "
                  "it was fetched from another cluster or the quorum lost committed records. Move "
                  "%s/__cluster_metadata-0 away to "
                  "fetch everything again",
                  (long long)metadata_follower__end(mf), image_epoch(mf->image),
                  (long long)p->diverging_epoch.end_offset, log_dir_path(mf->opts.dir));
    if (p->records.bytes.data == NULL || p->records.bytes.len == 0)
        return true;
    if (!append(mf, p->records.bytes))
        return false;
    metadata_follower__publish(mf);
    metadata_follower__maybe_snapshot(mf);
    return true;
}

static enum channel_verdict fetch_answer(struct channel_request *r, int err, int16_t version,
                                         struct slice body)
{
    struct metadata_follower *mf = FROM(r, request);
    mf->in_flight = false;
    if (mf->stopping || err == ERR_CANCELED)
        return CHANNEL_DONE;
    bool good = false;
    struct arena arena;
    arena_init(&arena);
    if (err == 0) {
        struct kp_fetch_response a;
        struct kp_reader reader;
        kp_fetch_response_init(&a);
        kp_reader_init(&reader, body, &arena, NULL);
        if (kp_fetch_response_decode(&a, &reader, version) != 0)
            log_warn(mf->opts.log, "metadata", "fetch answer is malformed", "bytes=%zu", body.len);
        else if (a.error_code == KE_INCONSISTENT_CLUSTER_ID)
            node_stop(mf->opts.node, "the controllers belong to another cluster than %s (cluster id %s)",
                      log_dir_path(mf->opts.dir), mf->opts.cluster_id);
        else if (a.error_code != KE_NONE)
            log_warn(mf->opts.log, "metadata", "fetch was refused", "error=%s",
                     kafka_error_name(a.error_code));
        else if (a.responses_count == 1 && a.responses[0].partitions_count == 1)
            good = take_partition(mf, &a.responses[0].partitions[0]);
    }
    arena_fini(&arena);
    if (good)
        metadata_follower__fetch(mf);
    else
        node_timer_start(mf->opts.loop, &mf->timer, RETRY_MS);
    return CHANNEL_DONE;
}

void metadata_follower__fetch(struct metadata_follower *mf)
{
    if (mf->in_flight || mf->stopping || mf->snapshot.active)
        return;
    memset(&mf->request, 0, sizeof mf->request);
    mf->request.api = KP_API_FETCH;
    mf->request.version_min = 17;
    mf->request.version_max = 18;
    mf->request.timeout_ms = FETCH_TIMEOUT_MS;
    mf->request.encode = encode_fetch;
    mf->request.answer = fetch_answer;
    mf->in_flight = true;
    controller_channel_send(mf->opts.channel, &mf->request);
}

static void timer_cb(struct node_timer *t)
{
    metadata_follower__fetch(FROM(t, timer));
}

// ---- life -----------------------------------------------------------------------------------------------
static int open_log(struct metadata_follower *mf, struct errmsg *msg)
{
    struct log_config defaults;
    log_config_defaults(&defaults);
    defaults.segment_bytes = mf->opts.segment_bytes;
    defaults.retention_bytes = defaults.retention_ms = -1; // goes by snapshots
    defaults.cleanup_delete = false;
    struct log_config *config = log_config_new(&defaults);
    struct plog_recovery report = {.scanned = false};
    struct plog_open_args args = {.topic = "__cluster_metadata",
                                  .topic_id = UUID_METADATA_TOPIC,
                                  .config = config,
                                  .existing = mf->opts.existing,
                                  .clean = mf->opts.clean,
                                  .intact_below = -1,
                                  .report = &report};
    int err = plog_open(mf->opts.dir, &args, &mf->plog, msg);
    log_config_unref(config);
    if (err == 0 && report.cut)
        log_warn(mf->opts.log, "metadata", "the metadata log had a torn tail, cut there",
                 "end_offset=%lld kept_as=%s", (long long)report.end_offset, report.kept_as);
    return err;
}

int metadata_follower_start(const struct metadata_follower_opts *opts, struct metadata_follower **out,
                            struct errmsg *msg)
{
    MUST(node_loop_is_current(opts->loop));
    struct metadata_follower *mf = mem_zalloc(sizeof *mf);
    mf->opts = *opts;
    mf->image = image_empty();
    mf->timer.fire = timer_cb;
    mf->path = path_join(log_dir_path(opts->dir), "__cluster_metadata-0");
    int err = open_log(mf, msg);
    if (err == 0)
        err = metadata_follower__load_snapshot(mf, msg);
    if (err == 0)
        err = replay_log(mf, msg);
    if (err != 0) {
        if (mf->plog)
            plog_drop(mf->plog);
        image_unref(mf->image);
        mem_free(mf->path);
        mem_free(mf);
        return err;
    }
    if (image_offset(mf->image) >= 0)
        log_info(opts->log, "metadata", "replayed from disk", "end_offset=%lld",
                 (long long)image_offset(mf->image) + 1);
    metadata_follower__publish(mf);
    metadata_follower__fetch(mf);
    *out = mf;
    return 0;
}

int metadata_follower_stop(struct metadata_follower *mf, struct errmsg *msg)
{
    mf->stopping = true;
    if (mf->in_flight)
        controller_channel_cancel(mf->opts.channel, &mf->request);
    node_timer_stop(mf->opts.loop, &mf->timer);
    metadata_follower__drop_fetched(mf);
    int err = plog_close(mf->plog, msg);
    image_unref(mf->image);
    mf->image = NULL;
    if (mf->writing) // its `done` frees
        return err;
    mem_free(mf->path);
    mem_free(mf);
    return err;
}
