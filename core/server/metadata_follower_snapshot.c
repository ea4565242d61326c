// SPDX-License-Identifier: Apache-2.0
// The metadata follower's snapshots: those it fetches when the log does not reach back, and those it writes
// of its own image.
//
// Fetching: pieces go to `NAME.checkpoint.part`; complete, the file is synced, renamed, read and checked
// whole; only then is the local log emptied and the image swapped. A crash at any point leaves the old state
// or the new one: a snapshot that is newer than the log's end is loaded and the log begun anew behind it.
// Writing: a job of the short pool writes the pinned image; then the log is cut below the snapshot before it,
// so that there is always one snapshot and the log from it on.
#include "core/server/metadata_follower_priv.h"

#include <stdio.h>

#include "core/base/mem.h"
#include "core/metadata/image.h"
#include "core/protocol/gen/apis.h"
#include "core/protocol/gen/errors.h"
#include "core/protocol/gen/fetch_snapshot_request.h"
#include "core/protocol/gen/fetch_snapshot_response.h"
#include "raft/checkpoint.h"

#define PIECE_BYTES (1024 * 1024) // controller.quorum.fetch.snapshot.max.bytes
#define PIECE_TIMEOUT_MS 10000    // longest wait for one piece
#define RETRY_MS 200              // before the fetch begins anew

#define FROM(ptr, field)                                                                                     \
    ((struct metadata_follower *)(void *)((char *)(ptr)-offsetof(struct metadata_follower, field)))

// ---- loading --------------------------------------------------------------------------------------------
struct newest {
    log_offset end_offset; // -1 none
    leader_epoch epoch;    // of it
};

static int note_newest(void *data, const char *name, bool is_dir)
{
    struct newest *n = data;
    log_offset end;
    leader_epoch epoch;
    if (!is_dir && checkpoint_parse_name(name, &end, &epoch) && end > 0 && end > n->end_offset) {
        n->end_offset = end;
        n->epoch = epoch;
    }
    return 0;
}

static int load_file(struct metadata_follower *mf, const char *path, struct errmsg *msg)
{
    struct checkpoint_info info;
    struct image *image = NULL;
    int err = checkpoint_read_image(mf->opts.fs, path, &info, &image, msg);
    if (err != 0)
        return err;
    voter_set_unref(info.voters);
    image_unref(mf->image);
    mf->image = image;
    return 0;
}

int metadata_follower__load_snapshot(struct metadata_follower *mf, struct errmsg *msg)
{
    struct newest n = {-1, -1};
    int err = mf->opts.fs->ops->list(mf->opts.fs, mf->path, note_newest, &n);
    if (err == ERR_NOTFOUND || (err == 0 && n.end_offset < 0))
        return 0;
    if (err != 0)
        return err_set(msg, err, "%s cannot be listed: %s", mf->path, err_text(err));
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name(n.end_offset, n.epoch, "", name);
    char *path = path_join(mf->path, name);
    err = load_file(mf, path, msg);
    mem_free(path);
    if (err == 0 && plog_end_offset(mf->plog) < n.end_offset)
        err = plog_truncate_fully(mf->plog, n.end_offset, msg);
    return err;
}

// ---- fetching -------------------------------------------------------------------------------------------
void metadata_follower__drop_fetched(struct metadata_follower *mf)
{
    struct follower_snapshot *s = &mf->snapshot;
    if (!s->active)
        return;
    s->active = false;
    if (s->file)
        vfs_file_unref(s->file);
    (void)mf->opts.fs->ops->unlink(mf->opts.fs, s->part);
    mem_free(s->part);
    mem_free(s->path);
    s->file = NULL;
    s->part = s->path = NULL;
}

static void give_up(struct metadata_follower *mf, const char *why)
{
    log_warn(mf->opts.log, "metadata", "a snapshot could not be fetched, trying again",
             "end_offset=%lld reason=%s", (long long)mf->snapshot.end_offset, why);
    metadata_follower__drop_fetched(mf);
    node_timer_start(mf->opts.loop, &mf->timer, RETRY_MS);
}

static void install(struct metadata_follower *mf)
{
    struct follower_snapshot *s = &mf->snapshot;
    struct errmsg msg = {.text = ""};
    struct vfs *fs = mf->opts.fs;
    int err = s->file->fs->ops->sync(s->file);
    vfs_file_unref(s->file);
    s->file = NULL;
    if (err == 0)
        err = load_file(mf, s->part, &msg); // checks the whole file
    if (err != 0) {
        give_up(mf, msg.text[0] ? msg.text : err_text(err));
        return;
    }
    err = fs->ops->rename(fs, s->part, s->path);
    if (err == 0)
        err = fs->ops->sync_dir(fs, mf->path);
    if (err == 0)
        err = plog_truncate_fully(mf->plog, s->end_offset, &msg);
    if (err != 0)
        node_stop(mf->opts.node, "the snapshot of the metadata log cannot be stored in %s: %s", mf->path,
                  msg.text[0] ? msg.text : err_text(err));
    log_info(mf->opts.log, "metadata", "snapshot loaded", "end_offset=%lld epoch=%d bytes=%llu",
             (long long)s->end_offset, s->epoch, (unsigned long long)s->position);
    metadata_follower__drop_fetched(mf);
    mf->bytes_since_snapshot = 0;
    metadata_follower__publish(mf);
    metadata_follower__fetch(mf);
}

static void fetch_piece(struct metadata_follower *mf);

static int encode_piece(struct channel_request *r, int16_t version, struct rope *out)
{
    struct metadata_follower *mf = FROM(r, request);
    struct kp_fetch_snapshot_request q;
    struct kp_fetch_snapshot_request_topic_snapshot topic;
    struct kp_fetch_snapshot_request_partition_snapshot p;
    kp_fetch_snapshot_request_init(&q);
    kp_fetch_snapshot_request_topic_snapshot_init(&topic);
    kp_fetch_snapshot_request_partition_snapshot_init(&p);
    q.cluster_id = slice_str(mf->opts.cluster_id);
    q.replica_id = mf->opts.id;
    q.max_bytes = PIECE_BYTES;
    q.topics = &topic;
    q.topics_count = 1;
    topic.name = SLICE_LIT("__cluster_metadata");
    topic.partitions = &p;
    topic.partitions_count = 1;
    p.current_leader_epoch = -1;
    p.snapshot_id.end_offset = mf->snapshot.end_offset;
    p.snapshot_id.epoch = mf->snapshot.epoch;
    p.position = (int64_t)mf->snapshot.position;
    p.replica_directory_id = mf->opts.directory_id;
    return kp_fetch_snapshot_request_encode(&q, out, version);
}

static void take_piece(struct metadata_follower *mf,
                       const struct kp_fetch_snapshot_response_partition_snapshot *p)
{
    struct follower_snapshot *s = &mf->snapshot;
    struct slice bytes = p->unaligned_records.bytes;
    if (p->error_code != KE_NONE || p->position != (int64_t)s->position ||
        (bytes.len == 0 && p->size != (int64_t)s->position)) {
        give_up(mf, p->error_code != KE_NONE ? kafka_error_name(p->error_code) : "the answer does not fit");
        return;
    }
    struct iovec iov = {(void *)(uintptr_t)bytes.data, bytes.len};
    int err = bytes.len > 0 ? mf->opts.fs->ops->pwritev(s->file, &iov, 1, s->position) : 0;
    if (err != 0) {
        give_up(mf, err_text(err));
        return;
    }
    s->position += bytes.len;
    if (s->position >= (uint64_t)p->size)
        install(mf);
    else
        fetch_piece(mf);
}

static enum channel_verdict piece_answer(struct channel_request *r, int err, int16_t version,
                                         struct slice body)
{
    struct metadata_follower *mf = FROM(r, request);
    mf->in_flight = false;
    if (mf->stopping || err == ERR_CANCELED)
        return CHANNEL_DONE;
    if (err != 0) {
        give_up(mf, err_text(err));
        return CHANNEL_DONE;
    }
    struct arena arena;
    arena_init(&arena);
    struct kp_fetch_snapshot_response a;
    struct kp_reader reader;
    kp_fetch_snapshot_response_init(&a);
    kp_reader_init(&reader, body, &arena, NULL);
    if (kp_fetch_snapshot_response_decode(&a, &reader, version) != 0 || a.error_code != KE_NONE ||
        a.topics_count != 1 || a.topics[0].partitions_count != 1)
        give_up(mf, "the answer is malformed or an error");
    else
        take_piece(mf, &a.topics[0].partitions[0]);
    arena_fini(&arena);
    return CHANNEL_DONE;
}

static void fetch_piece(struct metadata_follower *mf)
{
    memset(&mf->request, 0, sizeof mf->request);
    mf->request.api = KP_API_FETCH_SNAPSHOT;
    mf->request.version_min = 0;
    mf->request.version_max = 1;
    mf->request.timeout_ms = PIECE_TIMEOUT_MS;
    mf->request.encode = encode_piece;
    mf->request.answer = piece_answer;
    mf->in_flight = true;
    controller_channel_send(mf->opts.channel, &mf->request);
}

void metadata_follower__fetch_snapshot(struct metadata_follower *mf, log_offset end_offset,
                                       leader_epoch epoch)
{
    struct follower_snapshot *s = &mf->snapshot;
    struct errmsg msg = {.text = ""};
    struct vfs *fs = mf->opts.fs;
    char name[CHECKPOINT_NAME_BYTES];
    *s = (struct follower_snapshot){.active = true, .end_offset = end_offset, .epoch = epoch};
    checkpoint_name(end_offset, epoch, "", name);
    s->path = path_join(mf->path, name);
    checkpoint_name(end_offset, epoch, ".part", name);
    s->part = path_join(mf->path, name);
    log_info(mf->opts.log, "metadata", "fetching a snapshot", "end_offset=%lld epoch=%d",
             (long long)end_offset, epoch);
    int err = plog_materialize(mf->plog, node_wall(mf->opts.node), &msg); // the directory must be there
    if (err == 0)
        err = fs->ops->open(fs, s->part, VFS_READ | VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &s->file, &msg);
    if (err != 0)
        give_up(mf, msg.text);
    else
        fetch_piece(mf);
}

// ---- writing our own ------------------------------------------------------------------------------------
struct snapshot_job {
    struct node_job job;          // first member
    struct metadata_follower *mf; // whose
    struct vfs *fs;               // disk
    char *path;                   // directory
    struct image *image;          // pinned
    struct checkpoint_info info;  // id and time
    int err;                      // outcome
    struct errmsg msg;            // why
};

static void snapshot_work(struct node_job *j)
{
    struct snapshot_job *s = (struct snapshot_job *)j;
    s->err = checkpoint_write(s->fs, s->path, &s->info, s->image, NULL, 0, &s->msg);
}

struct older {
    struct metadata_follower *mf;
    log_offset below; // remove those that end before
};

static int remove_older(void *data, const char *name, bool is_dir)
{
    struct older *o = data;
    log_offset end;
    leader_epoch epoch;
    if (!is_dir && checkpoint_parse_name(name, &end, &epoch) && end < o->below) {
        char *path = path_join(o->mf->path, name);
        (void)o->mf->opts.fs->ops->unlink(o->mf->opts.fs, path);
        mem_free(path);
    }
    return 0;
}

static void snapshot_done(struct node_job *j)
{
    struct snapshot_job *s = (struct snapshot_job *)j;
    struct metadata_follower *mf = s->mf;
    struct errmsg msg = {.text = ""};
    mf->writing = false;
    if (mf->stopping) {
        mem_free(mf->path);
        mem_free(mf);
    } else if (s->err != 0) {
        log_warn(mf->opts.log, "metadata", "a snapshot could not be written", "reason=%s", s->msg.text);
    } else {
        struct plog_doomed doomed = {.count = 0};
        struct older o = {mf, s->info.end_offset};
        log_info(mf->opts.log, "metadata", "snapshot written", "end_offset=%lld",
                 (long long)s->info.end_offset);
        int err = plog_roll(mf->plog, node_wall(mf->opts.node), &msg);
        if (err == 0)
            err = plog_advance_start(mf->plog, s->info.end_offset, &msg);
        if (err == 0)
            err = plog_drop_below_start(mf->plog, &doomed, &msg);
        if (err == 0 && doomed.count > 0)
            plog_doomed_remove(&doomed);
        if (err == 0)
            (void)mf->opts.fs->ops->list(mf->opts.fs, mf->path, remove_older, &o);
        else
            log_warn(mf->opts.log, "metadata", "the metadata log could not be shortened", "reason=%s",
                     msg.text);
    }
    image_unref(s->image);
    mem_free(s->path);
    mem_free(s);
}

void metadata_follower__maybe_snapshot(struct metadata_follower *mf)
{
    if (mf->writing || mf->bytes_since_snapshot < mf->opts.snapshot_bytes || image_in_transaction(mf->image))
        return;
    struct snapshot_job *s = mem_zalloc(sizeof *s);
    s->job = (struct node_job){.work = snapshot_work, .done = snapshot_done, .loop = mf->opts.loop};
    s->mf = mf;
    s->fs = mf->opts.fs;
    s->path = mem_strdup(mf->path);
    s->image = image_ref(mf->image);
    s->info = (struct checkpoint_info){.end_offset = image_offset(mf->image) + 1,
                                       .epoch = image_epoch(mf->image),
                                       .timestamp = node_wall(mf->opts.node)};
    mf->bytes_since_snapshot = 0;
    mf->writing = true;
    node_pool_run(mf->opts.pool, &s->job);
}
