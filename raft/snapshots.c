// SPDX-License-Identifier: Apache-2.0
// Own snapshots: when one is due, when it may be taken, writing it on the pool, and what goes once it is
// there.
//
// poll (bytes or time) -> the library's threshold is set to 1 -> fsm->snapshot (allowed? pins the image) ->
// snapshot_put -> checkpoint_write on the pool -> done: the library is told, the table is trimmed, the
// segment rolled, old segments and snapshots pruned. A failed write is reported and asked again.
#include "core/base/mem.h"
#include "core/base/path.h"
#include "core/metadata/image.h"
#include "raft/quorum_impl.h"

#define SNAPSHOT_BYTES_DEFAULT (20u << 20)
#define SNAPSHOT_STAGGER 8 // each rank waits this part of the limit longer, so that not all write at once
#define SNAPSHOTS_KEPT 2   // should the newest be damaged, the one before and the log cover it
#define RETENTION_BYTES_DEFAULT (100ll << 20)
#define RETENTION_MS_DEFAULT (7ll * 24 * 3600 * 1000)

static uint32_t own_rank(const struct quorum *q)
{
    const struct voter_set *set = quorum__voters(q);
    uint32_t rank = 0;
    for (uint32_t i = 0; set && i < set->count; i++)
        rank += set->servers[i].id < q->self;
    return rank;
}

void quorum__snapshot_poll(struct quorum *q)
{
    if (q->snapshot_wanted || q->bytes_since_snapshot == 0 || q->closing ||
        node_clock(q->opts.node) < q->snapshot_not_before)
        return;
    uint64_t limit = q->opts.snapshot_bytes ? q->opts.snapshot_bytes : SNAPSHOT_BYTES_DEFAULT;
    uint64_t age_ms = (node_clock(q->opts.node) - q->snapshot_at) / 1000;
    limit += limit / SNAPSHOT_STAGGER * own_rank(q);
    if (q->bytes_since_snapshot < limit &&
        (q->opts.snapshot_interval_ms == 0 || age_ms < q->opts.snapshot_interval_ms))
        return;
    q->snapshot_wanted = true;
    raft_set_snapshot_threshold(&q->raft, 1);
}

// A peer that was sent a snapshot must first come into the trailing entries, or it would be sent one after
// the other.
static bool peers_caught_up(struct quorum *q)
{
    if (q->raft.state != RAFT_LEADER)
        return true;
    LIST_FOR_EACH(it, &q->transport.peers)
    {
        struct peer *p = LIST_ENTRY(it, struct peer, node);
        raft_index match = 0;
        if (p->snapshot_sent_at == 0)
            continue;
        bool known =
            voter_set_find(quorum__voters(q), p->id) && raft_match_index(&q->raft, p->id, &match) == 0;
        bool old = node_clock(q->opts.node) - p->snapshot_sent_at > RAFT_CATCH_UP_ROUND_MS * 1000ull;
        if (!known || old || match >= q->raft.trail.snapshot.index)
            p->snapshot_sent_at = 0;
        else
            return false;
    }
    return true;
}

bool quorum__snapshot_allowed(struct quorum *q)
{
    struct raft *r = &q->raft;
    const struct set_at *change = quorum__change_at(q, r->commit_index);
    return !q->closing && q->take.image == NULL && q->fetch.state == FETCH_NONE &&
           r->last_applied == r->commit_index && r->last_stored >= r->commit_index && r->commit_index >= 2 &&
           r->commit_index > q->current.index && change != NULL &&
           r->configuration_committed_index >= change->index &&
           mlog_entry_at(q->log_store, r->commit_index) != NULL &&
           mlog_end_of_index(q->log_store, r->commit_index) > q->current.manifest.end_offset &&
           peers_caught_up(q);
}

// Entries that the library keeps before a snapshot: by bytes, at least one.
static unsigned trailing_entries(struct quorum *q, raft_index index)
{
    unsigned n = 0;
    size_t bytes = 0, most = q->opts.trailing_bytes ? q->opts.trailing_bytes : RAFT_TRAILING_BYTES;
    while (n < RAFT_TRAILING_ENTRIES_MAX && index > n) {
        const struct mlog_entry *e = mlog_entry_at(q->log_store, index - n);
        if (!e || (n > 0 && bytes + e->bytes > most))
            break;
        bytes += e->bytes;
        n++;
    }
    return n ? n : 1;
}

// ---- pruning
// ---------------------------------------------------------------------------------------------------
struct removal {
    struct node_job job; // on the short pool
    struct vfs *fs;      // disk
    char *path;          // file that goes
};

static void removal_work(struct node_job *j)
{
    struct removal *r = LIST_ENTRY(j, struct removal, job);
    (void)r->fs->ops->unlink(r->fs, r->path); // one that stays is found again at the next start
}

static void removal_done(struct node_job *j)
{
    struct removal *r = LIST_ENTRY(j, struct removal, job);
    mem_free(r->path);
    mem_free(r);
}

static void remove_snapshot(struct quorum *q, const struct snapshot_file *f)
{
    char name[CHECKPOINT_NAME_BYTES];
    struct removal *r = mem_zalloc(sizeof *r);
    checkpoint_name(f->manifest.end_offset, f->manifest.epoch, "", name);
    r->fs = q->opts.fs;
    r->path = path_join(q->dir, name);
    r->job = (struct node_job){.work = removal_work, .done = removal_done, .loop = q->opts.loop};
    node_pool_run(q->opts.short_pool, &r->job);
}

static uint64_t snapshot_bytes(const struct quorum *q)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < q->snapshots_count; i++)
        n += q->snapshots[i].manifest.size;
    return n;
}

static uint64_t log_bytes(const struct quorum *q)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < q->log_store->segments_count; i++)
        n += q->log_store->segments[i]->size;
    return n;
}

static void prune(struct quorum *q)
{
    int64_t limit = q->opts.retention_bytes ? q->opts.retention_bytes : RETENTION_BYTES_DEFAULT;
    int64_t age = q->opts.retention_ms ? q->opts.retention_ms : RETENTION_MS_DEFAULT;
    uint64_t keep = limit < 0 ? UINT64_MAX : (uint64_t)limit;
    time_ms older = age < 0 ? INT64_MIN : node_wall(q->opts.node) - age;
    while (
        q->snapshots_count) { // log below the oldest snapshot goes first, then that snapshot; two always stay
        uint64_t files = snapshot_bytes(q);
        (void)mlog_prune(q->log_store, q->snapshots[0].manifest.end_offset, keep > files ? keep - files : 0,
                         older);
        bool over = log_bytes(q) + files > keep || q->snapshots[0].written < older;
        if (!over || q->snapshots_count <= SNAPSHOTS_KEPT)
            return;
        remove_snapshot(q, &q->snapshots[0]);
        memmove(q->snapshots, q->snapshots + 1, --q->snapshots_count * sizeof *q->snapshots);
    }
}

void quorum__snapshots_add(struct quorum *q, const struct snapshot_file *f)
{
    if (f->manifest.end_offset == 0)
        return; // the bootstrap checkpoint is never offered to observers and never pruned
    if (q->snapshots_count == q->snapshots_cap) {
        q->snapshots_cap = q->snapshots_cap ? q->snapshots_cap * 2 : 4;
        q->snapshots = mem_realloc(q->snapshots, q->snapshots_cap * sizeof *q->snapshots);
    }
    uint32_t at = q->snapshots_count;
    while (at > 0 && q->snapshots[at - 1].manifest.end_offset >= f->manifest.end_offset) {
        at--;
        if (q->snapshots[at].manifest.end_offset == f->manifest.end_offset)
            memmove(q->snapshots + at, q->snapshots + at + 1,
                    (--q->snapshots_count - at) * sizeof *q->snapshots);
    }
    memmove(q->snapshots + at + 1, q->snapshots + at, (q->snapshots_count - at) * sizeof *q->snapshots);
    q->snapshots[at] = *f;
    q->snapshots_count++;
}

// ---- writing
// ---------------------------------------------------------------------------------------------------
static void take_work(struct node_job *j)
{
    struct snapshot_take *t = LIST_ENTRY(j, struct snapshot_take, job);
    struct quorum *q = t->q;
    char name[CHECKPOINT_NAME_BYTES];
    struct vfs_file *f;
    t->err = checkpoint_write(q->opts.fs, q->dir, &t->info, t->image, NULL, 0, &t->msg);
    if (t->err)
        return;
    checkpoint_name(t->info.end_offset, t->info.epoch, "", name);
    char *path = path_join(q->dir, name);
    t->err = q->opts.fs->ops->open(q->opts.fs, path, VFS_READ, &f, &t->msg);
    if (!t->err) {
        t->err = q->opts.fs->ops->size(f, &t->info.size);
        vfs_file_unref(f);
    }
    mem_free(path);
}

static void take_finished(struct quorum *q)
{
    struct snapshot_take *t = &q->take;
    q->current = (struct snapshot_file){{t->info.end_offset, t->info.epoch, t->info.size},
                                        t->info.index,
                                        t->info.term,
                                        node_wall(q->opts.node)};
    voter_set_unref(q->current_set);
    q->current_set = voter_set_ref(t->info.voters);
    q->current_conf_index = t->info.conf_index;
    quorum__snapshots_add(q, &q->current);
    q->bytes_since_snapshot = 0;
    q->snapshot_at = node_clock(q->opts.node);
    raft_set_snapshot_trailing(&q->raft, trailing_entries(q, t->info.index));
}

static void take_done(struct node_job *j)
{
    struct snapshot_take *t = LIST_ENTRY(j, struct snapshot_take, job);
    struct quorum *q = t->q;
    struct raft_io_snapshot_put *req = t->request;
    raft_io_snapshot_put_cb cb = t->cb;
    int err = t->err;
    image_unref(t->image);
    t->image = NULL;
    if (err)
        q->snapshot_not_before = node_clock(q->opts.node) + RAFT_SNAPSHOT_RETRY_MS * 1000ull;
    if (err)
        log_error(q->log, "raft", "snapshot of the metadata log failed, it is tried again", "why=\"%s\"",
                  t->msg.text);
    if (!err && !q->closing)
        take_finished(q);
    voter_set_unref(t->info.voters);
    t->info.voters = NULL;
    if (q->closing) { // the library is called back as canceled at the close
        quorum__close_settle(q);
        return;
    }
    t->request = NULL;
    quorum__enter(q);
    cb(req, err ? RAFT_IOERR : 0);
    quorum__leave(q);
    if (err)
        return;
    log_info(q->log, "raft", "snapshot of the metadata log written", "end_offset=%lld epoch=%d bytes=%llu",
             (long long)q->current.manifest.end_offset, (int)q->current.manifest.epoch,
             (unsigned long long)q->current.manifest.size);
    mlog_trim(q->log_store, q->raft.trail.offset);
    quorum__sets_trim(q, q->raft.trail.offset);
    mlog_roll(q->log_store, RAFT_ROLL_AT_SNAPSHOT_BYTES);
    prune(q);
}

void quorum__snapshot_start(struct quorum *q)
{
    q->take.q = q;
    q->take.err = 0;
    q->take.job = (struct node_job){.work = take_work, .done = take_done, .loop = q->opts.loop};
    node_pool_run(q->opts.short_pool, &q->take.job);
}

// ---- for observers
// ---------------------------------------------------------------------------------------------
bool quorum_latest_snapshot(const struct quorum *q, struct quorum_snapshot_id *out)
{
    if (q->snapshots_count == 0)
        return false;
    const struct manifest *m = &q->snapshots[q->snapshots_count - 1].manifest;
    *out = (struct quorum_snapshot_id){m->end_offset, m->epoch};
    return true;
}

int quorum_read_snapshot(struct quorum *q, const struct quorum_snapshot_id *id, uint64_t pos,
                         uint32_t bytes_max, struct rope *out, uint64_t *size)
{
    char name[CHECKPOINT_NAME_BYTES];
    struct vfs_file *f;
    checkpoint_name(id->end_offset, id->epoch, "", name);
    char *path = path_join(q->dir, name);
    int err = q->opts.fs->ops->open(q->opts.fs, path, VFS_READ, &f, NULL);
    mem_free(path);
    if (err)
        return err;
    err = q->opts.fs->ops->size(f, size);
    if (!err && pos > *size)
        err = ERR_RANGE;
    if (!err && pos < *size)
        rope_add_file(out, &f->rope, pos, (size_t)(*size - pos < bytes_max ? *size - pos : bytes_max));
    vfs_file_unref(f);
    return err;
}
