// SPDX-License-Identifier: Apache-2.0
// A snapshot that a leader offers: fetched in chunks over the same connection, checked, built into an image,
// and only then told to libraft.
//
//        offer                last chunk            good
//   NONE -----> READING ----------------> CHECKING -----> the library, NONE
//                 | link lost, offer of a later term, bad answer: the message is forgotten, the partial file
//                 stays
//
// While the library installs a snapshot it neither votes nor stands: a fetch inside would let a dead leader
// stop the quorum.
#include <stdio.h>
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/metadata/image.h"
#include "raft/quorum_impl.h"

static char *file_path(const struct quorum *q, const struct manifest *m, const char *suffix)
{
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name(m->end_offset, m->epoch, suffix, name);
    return path_join(q->dir, name);
}

// Where a fetched file is filled; the bootstrap checkpoint's own name may be there already with other
// content.
static char *part_path(const struct quorum *q, const struct manifest *m)
{
    return file_path(q, m, ".part");
}

void quorum__fetch_drop(struct quorum *q)
{
    struct snapshot_fetch *f = &q->fetch;
    if (f->part)
        vfs_file_unref(f->part);
    voter_set_unref(f->offer.voters);
    f->part = NULL;
    f->offer.voters = NULL;
    f->link = NULL;
    f->state = FETCH_NONE;
}

void quorum__fetch_link_lost(struct quorum *q, struct link *l)
{
    struct snapshot_fetch *f = &q->fetch;
    if (f->link != l)
        return;
    if (f->state == FETCH_READING)
        quorum__fetch_drop(q);
    else
        f->link = NULL; // the check goes on; its result is thrown away
}

// ---- telling the library
// ---------------------------------------------------------------------------------------
static void deliver(struct quorum *q, struct wire_install *offer, raft_id from)
{
    struct raft_message m = {.type = RAFT_INSTALL_SNAPSHOT};
    struct raft_install_snapshot *s = &m.install_snapshot;
    s->term = offer->term;
    s->last_index = offer->last_index;
    s->last_term = offer->last_term;
    s->conf_index = offer->conf_index;
    voter_set_to_configuration(offer->voters, &s->conf);
    s->data.len = MANIFEST_BYTES;
    s->data.base = raft_malloc(MANIFEST_BYTES);
    MUST(s->data.base != NULL);
    manifest_encode(&offer->manifest, s->data.base);
    quorum__deliver(q, &m, from);
}

static bool library_is_busy(const struct quorum *q)
{
    return q->raft.legacy.snapshot_taking || q->raft.snapshot.installing || q->take.image != NULL;
}

// The library would answer without installing: it has all of that.
static bool needs_no_file(struct quorum *q, const struct wire_install *o)
{
    return o->last_index <= q->raft.trail.snapshot.index || o->last_index <= q->raft.commit_index ||
           mlog_epoch_of_index(q->log_store, o->last_index) == (leader_epoch)o->last_term;
}

// ---- checking
// --------------------------------------------------------------------------------------------------
static void check_work(struct node_job *j)
{
    struct snapshot_fetch *f = LIST_ENTRY(j, struct snapshot_fetch, job);
    struct quorum *q = f->q;
    struct vfs *fs = q->opts.fs;
    char *part = part_path(q, &f->offer.manifest), *path = file_path(q, &f->offer.manifest, "");
    f->image = NULL;
    f->err = fs->ops->sync(f->part);
    if (!f->err)
        f->err = checkpoint_read_image(fs, part, &f->info, &f->image, &f->msg);
    if (!f->err)
        f->err = fs->ops->rename(fs, part, path);
    if (!f->err)
        f->err = fs->ops->sync_dir(fs, q->dir);
    if (f->err == ERR_CORRUPT || f->err == ERR_UNSUPPORTED || f->err == ERR_MALFORMED ||
        f->err == ERR_INVALID)
        (void)fs->ops->unlink(fs, part); // begin again from nothing
    mem_free(part);
    mem_free(path);
}

static void check_done(struct node_job *j)
{
    struct snapshot_fetch *f = LIST_ENTRY(j, struct snapshot_fetch, job);
    struct quorum *q = f->q;
    bool ours =
        !f->err && f->link && f->info.index == f->offer.last_index && !library_is_busy(q) && !q->closing;
    if (f->err)
        log_error(q->log, "raft", "fetched snapshot is not good", "why=\"%s\"", f->msg.text);
    voter_set_unref(f->err ? NULL : f->info.voters);
    f->info.voters = NULL;
    if (!ours) {
        image_unref(f->image);
        f->image = NULL;
        quorum__fetch_drop(q);
        if (q->closing)
            quorum__close_settle(q);
        return;
    }
    struct wire_install offer = f->offer;
    f->offer.voters = NULL;
    raft_id from = f->from;
    q->install_image = f->image;
    q->install_info = f->info;
    q->install_info.index = offer.last_index;
    q->install_info.voters = voter_set_ref(offer.voters);
    f->image = NULL;
    quorum__fetch_drop(q);
    log_info(q->log, "raft", "snapshot of the metadata log fetched", "end_offset=%lld epoch=%d bytes=%llu",
             (long long)offer.manifest.end_offset, (int)offer.manifest.epoch,
             (unsigned long long)offer.manifest.size);
    deliver(q, &offer, from);
    if (!q->raft.snapshot.installing && q->install_image) { // the library had more recent things
        image_unref(q->install_image);
        voter_set_unref(q->install_info.voters);
        q->install_image = NULL;
        q->install_info.voters = NULL;
    }
    voter_set_unref(offer.voters);
}

static void start_check(struct quorum *q)
{
    struct snapshot_fetch *f = &q->fetch;
    f->state = FETCH_CHECKING;
    f->q = q;
    f->err = 0;
    f->msg.text[0] = 0;
    f->job = (struct node_job){.work = check_work, .done = check_done, .loop = q->opts.loop};
    node_pool_run(q->opts.short_pool, &f->job);
}

// ---- reading
// ---------------------------------------------------------------------------------------------------
static void ask_next(struct quorum *q)
{
    struct snapshot_fetch *f = &q->fetch;
    struct rope frame;
    struct wire_snapshot_read r = {.file = f->offer.manifest,
                                   .pos = f->pos,
                                   .bytes_max = q->opts.snapshot_fetch_bytes ? q->opts.snapshot_fetch_bytes
                                                                             : RAFT_SNAPSHOT_CHUNK_BYTES_MAX};
    rope_init(&frame);
    wire_put_snapshot_read(&frame, &r);
    transport_send_link(f->link, &frame);
}

static int open_part(struct quorum *q, const struct manifest *m)
{
    struct snapshot_fetch *f = &q->fetch;
    char *path = part_path(q, m);
    int err = q->opts.fs->ops->open(q->opts.fs, path, VFS_WRITE | VFS_CREATE, &f->part, NULL);
    if (!err)
        err = q->opts.fs->ops->size(f->part, &f->pos);
    if (!err && f->pos > m->size) {
        err = q->opts.fs->ops->truncate(f->part, 0);
        f->pos = 0;
    }
    mem_free(path);
    return err;
}

int quorum__fetch_offer(struct quorum *q, struct link *l, struct wire_install *offer)
{
    struct snapshot_fetch *f = &q->fetch;
    if (offer->term < q->raft.current_term) { // never told to the library: see check_done
        voter_set_unref(offer->voters);
        return 0;
    }
    if (needs_no_file(q, offer)) {
        if (!library_is_busy(q))
            deliver(q, offer, l->peer->id);
        voter_set_unref(offer->voters);
        return 0;
    }
    q->heard_leader_at = node_clock(q->opts.node);
    q->heard_term = offer->term;
    bool repeat = f->state != FETCH_NONE && (f->state == FETCH_CHECKING || offer->term <= f->offer.term);
    if (repeat || library_is_busy(q) || q->closing) {
        voter_set_unref(offer->voters);
        return 0;
    }
    quorum__fetch_drop(q);
    f->offer = *offer;
    f->link = l;
    f->from = l->peer->id;
    if (open_part(q, &offer->manifest) != 0) {
        log_error(q->log, "raft", "no file for a snapshot that the leader offers", "dir=%s", q->dir);
        quorum__fetch_drop(q);
        return 0;
    }
    f->state = FETCH_READING;
    if (f->pos == offer->manifest.size && f->pos > 0)
        start_check(q);
    else
        ask_next(q);
    return 0;
}

int quorum__fetch_data(struct quorum *q, struct link *l, const struct wire_snapshot_data *d)
{
    struct snapshot_fetch *f = &q->fetch;
    const struct manifest *want = &f->offer.manifest;
    if (f->state != FETCH_READING || f->link != l || d->file.end_offset != want->end_offset ||
        d->file.epoch != want->epoch)
        return 0; // an answer to what was forgotten
    if (d->file.size != want->size || d->pos != f->pos || d->bytes.len == 0) {
        log_warn(q->log, "raft", "the leader no longer has the snapshot that it offered", "end_offset=%lld",
                 (long long)want->end_offset);
        quorum__fetch_drop(q);
        return 0;
    }
    struct iovec iov = {(void *)(uintptr_t)d->bytes.data, d->bytes.len};
    int err = q->opts.fs->ops->pwritev(f->part, &iov, 1, f->pos);
    if (err) {
        log_error(q->log, "raft", "snapshot could not be written", "why=%s", err_text(err));
        quorum__fetch_drop(q);
        return 0;
    }
    f->pos += d->bytes.len;
    if (f->pos == want->size)
        start_check(q);
    else
        ask_next(q);
    return 0;
}

// ---- serving
// ---------------------------------------------------------------------------------------------------
int quorum__serve_snapshot(struct quorum *q, struct link *l, const struct wire_snapshot_read *r)
{
    struct quorum_snapshot_id id = {r->file.end_offset, r->file.epoch};
    struct manifest m = r->file;
    struct rope bytes, frame;
    uint32_t most =
        r->bytes_max < RAFT_SNAPSHOT_CHUNK_BYTES_MAX ? r->bytes_max : RAFT_SNAPSHOT_CHUNK_BYTES_MAX;
    rope_init(&bytes);
    rope_init(&frame);
    m.size = 0;
    if (quorum_read_snapshot(q, &id, r->pos, most, &bytes, &m.size) != 0) {
        rope_clear(&bytes);
        m.size = 0;
    }
    wire_put_snapshot_data(&frame, &m, m.size ? r->pos : 0, bytes.len);
    rope_move(&frame, &bytes);
    transport_send_link(l, &frame);
    return 0;
}
