// SPDX-License-Identifier: Apache-2.0
// libraft's plug for disk, network and time: every callback of struct raft_io over the metadata log and the
// transport.
//
// No callback answers an error, because the library then skips the rest of its event or frees twice (rule 2):
// what fails is done again, or stops the node. append and snapshot_put call back from a later turn, send and
// snapshot_get inside (rule 3).
#include <limits.h>
#include "core/base/mem.h"
#include "core/record/batch.h"
#include "raft/quorum_impl.h"

static int io_init(struct raft_io *io, raft_id id, const char *address)
{
    (void)io;
    (void)id;
    (void)address;
    return 0;
}

static raft_time io_time(struct raft_io *io)
{
    return node_clock(quorum_of_io(io)->opts.node) / 1000;
}

static int io_random(struct raft_io *io, int min, int max)
{
    uint64_t span = (uint64_t)((int64_t)max - min) + 1;
    return min + (int)(node_random_u64(quorum_of_io(io)->opts.node) % span);
}

// ---- term and vote (rule 24)
// -------------------------------------------------------------------------------------
static int io_set_term(struct raft_io *io, raft_term term)
{
    struct quorum *q = quorum_of_io(io);
    MUST(q->term_to_store == 0 && term >= (raft_term)q->state.term && term <= INT_MAX);
    q->term_to_store = term;
    return 0;
}

// Who a vote is for, as the file names him.
static void vote_identity(struct quorum *q, raft_id id, struct quorum_state *s)
{
    const struct quorum_server *v = voter_set_find(quorum__voters(q), id);
    const struct peer *p = transport_peer(q, id);
    s->voted = -1;
    s->voted_directory = UUID_ZERO;
    if (id == 0)
        return;
    if (id == q->self) {
        s->voted = q->opts.id;
        s->voted_directory = q->opts.directory_id;
    } else if (v) {
        s->voted = v->voter.id;
        s->voted_directory = v->voter.directory_id;
    } else {
        MUST(p != NULL); // its request came over a link that shook hands
        s->voted = p->node_id;
        s->voted_directory = p->directory;
    }
    if (!q->dynamic)
        s->voted_directory = UUID_ZERO;
}

static int io_set_vote(struct raft_io *io, raft_id id)
{
    struct quorum *q = quorum_of_io(io);
    struct errmsg msg = {{0}};
    MUST(q->term_to_store != 0);
    struct quorum_state s = {.term = (leader_epoch)q->term_to_store};
    vote_identity(q, id, &s);
    q->term_to_store = 0;
    int err = quorum_state_write(q->opts.fs, q->dir, q->dynamic, q->cluster_id, quorum__voters(q), &s, &msg);
    if (err)
        node_stop(q->opts.node, "term and vote could not be written: %s", msg.text);
    q->state = s;
    return 0;
}

// ---- the log (rules 2, 3, 6)
// -------------------------------------------------------------------------------------
static int io_truncate(struct raft_io *io, raft_index index)
{
    struct quorum *q = quorum_of_io(io);
    MUST(index > q->raft.last_applied && index <= mlog_last_index(q->log_store) + 1);
    mlog_cut(q->log_store, index);
    quorum__sets_cut(q, index);
    return 0;
}

static bool is_own_control(const struct raft_entry *e)
{
    if (e->type == RAFT_BARRIER)
        return e->buf.len == 8;
    return e->type == RAFT_CHANGE && entry_configuration_bytes(e->buf.base, e->buf.len) == e->buf.len;
}

static void origin_of(struct quorum *q, const struct raft_entry *e, struct entry_origin *o)
{
    log_offset end = q->log_store->end;
    *o = (struct entry_origin){.base = end,
                               .epoch = (leader_epoch)e->term,
                               .now = node_wall(q->opts.node),
                               .leader = q->opts.id,
                               .voters = quorum__voters(q),
                               .first_of_term = mlog_last_epoch(q->log_store) < (leader_epoch)e->term,
                               .first_of_log = q->dynamic && end == 0};
}

// The batch of an entry that the library made itself.
static void append_own(struct quorum *q, const struct raft_entry *e)
{
    struct entry_origin o;
    struct voter_set *set = NULL;
    struct entry_batch batch;
    struct errmsg msg;
    size_t size;
    uint8_t *bytes;
    origin_of(q, e, &o);
    if (e->type == RAFT_CHANGE) {
        struct raft_configuration conf;
        MUST(raft_configuration_decode(&e->buf, &conf) == 0);
        set = voter_set_from_configuration(&conf, o.voters, &q->change.server);
        raft_configuration_close(&conf);
        o.voters = set;
        bytes = entry_make_change(&o, &size);
    } else {
        bytes = entry_make_barrier(&o, &size);
    }
    MUST(entry_batch_parse(slice_of(bytes, size), &batch, &msg) == 0 && batch.type == e->type);
    mlog_append(q->log_store, &batch, bytes);
    if (batch.voters)
        quorum__sets_push(q, mlog_last_index(q->log_store), true, batch.voters);
    voter_set_unref(batch.voters);
    voter_set_unref(set);
}

// A batch that was proposed here or received: its checks were made before the library saw it.
static void append_batch(struct quorum *q, const struct raft_entry *e)
{
    struct entry_batch batch;
    struct errmsg msg;
    const uint8_t *p = e->buf.base;
    size_t skip = e->type == RAFT_COMMAND   ? 0
                  : e->type == RAFT_BARRIER ? 8
                                            : entry_configuration_bytes(p, e->buf.len);
    MUST(entry_batch_parse(slice_of(p + skip, e->buf.len - skip), &batch, &msg) == 0);
    MUST(batch.type == e->type && batch.epoch == (leader_epoch)e->term);
    mlog_append(q->log_store, &batch, NULL);
    if (batch.voters)
        quorum__sets_push(q, mlog_last_index(q->log_store), batch.type == RAFT_CHANGE, batch.voters);
    voter_set_unref(batch.voters);
}

static int io_append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
                     unsigned n, raft_io_append_cb cb)
{
    struct quorum *q = quorum_of_io(io);
    struct pending_append *a = mem_zalloc(sizeof *a);
    a->q = q;
    a->req = req;
    a->cb = cb;
    list_add_tail(&q->appends, &a->link);
    for (unsigned i = 0; i < n; i++) {
        if (is_own_control(&entries[i]))
            append_own(q, &entries[i]);
        else
            append_batch(q, &entries[i]);
    }
    mlog_append_done(q->log_store, quorum__append_done, a);
    return 0;
}

// ---- sending (rule 11)
// ------------------------------------------------------------------------------------------- The batch of an
// entry: own control entries are in the log's table, everything else carries its batch.
static struct slice batch_of(struct quorum *q, raft_index index, const struct raft_entry *e)
{
    const struct mlog_entry *m = mlog_entry_at(q->log_store, index);
    MUST(!m || (m->type == e->type && m->epoch == (leader_epoch)e->term));
    if (m && m->own)
        return slice_of(m->own, m->bytes);
    const uint8_t *p = e->buf.base;
    size_t skip = e->type == RAFT_COMMAND   ? 0
                  : e->type == RAFT_BARRIER ? 8
                                            : entry_configuration_bytes(p, e->buf.len);
    MUST(skip < e->buf.len);
    return slice_of(p + skip, e->buf.len - skip);
}

static void send_append(struct quorum *q, struct peer *p, const struct raft_append_entries *a)
{
    struct slice batches[64];
    struct wire_append w = {a->term, a->prev_log_term, a->prev_log_index, a->leader_commit, 0, SLICE_NULL};
    unsigned i = 0;
    size_t most = q->opts.append_bytes ? q->opts.append_bytes : RAFT_APPEND_BYTES_MAX;
    do {
        size_t bytes = 0;
        w.count = 0;
        while (i < a->n_entries && w.count < 64) {
            struct slice b = batch_of(q, a->prev_log_index + 1 + i, &a->entries[i]);
            if (w.count > 0 && bytes + b.len > most)
                break;
            batches[w.count++] = b;
            bytes += b.len;
            i++;
        }
        struct rope frame;
        rope_init(&frame);
        wire_put_append(&frame, &w, batches);
        if (!transport_send(p, &frame))
            return; // the rest would only be rejected
        if (w.count) {
            w.prev_index = a->prev_log_index + i;
            w.prev_term = a->entries[i - 1].term;
        }
    } while (i < a->n_entries);
}

static void send_install(struct quorum *q, struct peer *p, const struct raft_install_snapshot *s)
{
    struct wire_install w = {
        .term = s->term, .last_term = s->last_term, .last_index = s->last_index, .conf_index = s->conf_index};
    struct rope frame;
    MUST(manifest_decode(slice_of(s->data.base, s->data.len), &w.manifest));
    w.voters = voter_set_from_configuration(&s->conf, q->current_set, NULL);
    rope_init(&frame);
    wire_put_install(&frame, &w);
    if (transport_send(p, &frame))
        p->snapshot_sent_at = node_clock(q->opts.node);
    voter_set_unref(w.voters);
}

static void send_small(struct quorum *q, struct peer *p, const struct raft_message *m)
{
    struct raft_message copy = *m;
    struct rope frame;
    if (m->type == RAFT_REQUEST_VOTE_RESULT && m->request_vote_result.pre_vote &&
        !m->request_vote_result.vote_granted && m->request_vote_result.term < q->raft.current_term)
        copy.request_vote_result.term =
            q->raft.current_term; // else a longer log in a lower term is never elected
    if (m->type == RAFT_APPEND_ENTRIES_RESULT && m->append_entries_result.rejected != 0) {
        // The library leaves the hint unset when it rejects for the term alone: what it means is this.
        raft_index last = raft_last_index(&q->raft), below = m->append_entries_result.rejected - 1;
        copy.append_entries_result.last_log_index = last < below ? last : below;
    }
    rope_init(&frame);
    wire_put_small(&frame, &copy);
    (void)transport_send(p, &frame);
}

// The library tells the transferee to stand at its first answer, whatever that acknowledges; one that has not
// yet stored everything ignores it, and nothing could be proposed until the transfer times out. So it is told
// when it has everything.
static bool has_everything(struct quorum *q, raft_id id)
{
    raft_index match = 0;
    return raft_match_index(&q->raft, id, &match) == 0 && match == raft_last_index(&q->raft);
}

void quorum__timeout_now_settle(struct quorum *q)
{
    raft_id id = q->timeout_now_to;
    if (id == 0)
        return;
    if (q->raft.state != RAFT_LEADER || raft_transferee(&q->raft) != id) {
        q->timeout_now_to = 0;
        return;
    }
    struct peer *p = transport_peer(q, id);
    if (!p || !has_everything(q, id))
        return;
    struct raft_message m = {.type = RAFT_TIMEOUT_NOW};
    m.timeout_now.term = q->raft.current_term;
    m.timeout_now.last_log_index = raft_last_index(&q->raft);
    m.timeout_now.last_log_term = (raft_term)mlog_last_epoch(q->log_store);
    q->timeout_now_to = 0;
    send_small(q, p, &m);
}

static int io_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *m,
                   raft_io_send_cb cb)
{
    struct quorum *q = quorum_of_io(io);
    struct peer *p = transport_peer(q, m->server_id);
    if (p && transport_connected(p) && !q->close_begun) {
        if (m->type == RAFT_APPEND_ENTRIES)
            send_append(q, p, &m->append_entries);
        else if (m->type == RAFT_INSTALL_SNAPSHOT)
            send_install(q, p, &m->install_snapshot);
        else if (m->type == RAFT_TIMEOUT_NOW && !has_everything(q, p->id))
            q->timeout_now_to = p->id;
        else
            send_small(q, p, m);
    }
    if (cb)
        cb(req, 0);
    return 0;
}

// ---- snapshots (rules 14, 16)
// ------------------------------------------------------------------------------------
static int io_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                           const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);

static int io_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb)
{
    struct quorum *q = quorum_of_io(io);
    struct raft_snapshot *s = raft_malloc(sizeof *s);
    MUST(s != NULL && q->current.index == q->raft.trail.snapshot.index && q->current_set != NULL);
    s->index = q->current.index;
    s->term = q->current.term;
    s->configuration_index = q->current_conf_index;
    voter_set_to_configuration(q->current_set, &s->configuration);
    s->n_bufs = 1;
    s->bufs = raft_malloc(sizeof *s->bufs);
    MUST(s->bufs != NULL);
    s->bufs[0].len = MANIFEST_BYTES;
    s->bufs[0].base = raft_malloc(MANIFEST_BYTES);
    MUST(s->bufs[0].base != NULL);
    manifest_encode(&q->current.manifest, s->bufs[0].base);
    cb(req, s, 0);
    return 0;
}

static void install_done(void *data)
{
    struct quorum *q = data;
    struct raft_io_snapshot_put *req = q->install_request;
    raft_io_snapshot_put_cb cb = q->install_cb;
    if (q->closing) { // called back as canceled at the close
        quorum__close_settle(q);
        return;
    }
    q->install_request = NULL;
    quorum__enter(q);
    cb(req, 0);
    quorum__leave(q);
}

static void put_install(struct quorum *q, struct raft_io_snapshot_put *req,
                        const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct manifest m;
    MUST(q->install_image && q->install_info.index == snapshot->index);
    MUST(manifest_decode(slice_of(snapshot->bufs[0].base, snapshot->bufs[0].len), &m));
    q->install_request = req;
    q->install_cb = cb;
    struct snapshot_file f = {m, snapshot->index, snapshot->term, node_wall(q->opts.node)};
    struct mlog_base base = {snapshot->index, (leader_epoch)snapshot->term, m.end_offset};
    q->current = f;
    voter_set_unref(q->current_set);
    q->current_set = voter_set_ref(q->install_info.voters);
    q->current_conf_index = snapshot->configuration_index;
    quorum__snapshots_add(q, &f);
    quorum__sets_reset(q, snapshot->configuration_index, q->install_info.voters);
    mlog_reset(q->log_store, &base, install_done, q);
}

static int io_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                           const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct quorum *q = quorum_of_io(io);
    (void)trailing;
    if (q->raft.legacy.snapshot_install) {
        put_install(q, req, snapshot, cb);
        return 0;
    }
    MUST(q->take.request == NULL && q->take.image != NULL);
    q->take.request = req;
    q->take.cb = cb;
    q->take.info.index = snapshot->index;
    q->take.info.term = snapshot->term;
    q->take.info.conf_index = snapshot->configuration_index;
    const struct set_at *known =
        quorum__set_at(q, snapshot->index); // a later change may have taken members out
    q->take.info.voters =
        voter_set_from_configuration(&snapshot->configuration, known ? known->set : quorum__voters(q), NULL);
    quorum__snapshot_start(q);
    return 0;
}

// ---- start, load, close
// ------------------------------------------------------------------------------------------
static int io_load(struct raft_io *io, raft_term *term, raft_id *voted_for, struct raft_snapshot **snapshot,
                   raft_index *start_index, struct raft_entry *entries[], size_t *n_entries)
{
    struct quorum *q = quorum_of_io(io);
    *term = (raft_term)q->state.term;
    *voted_for =
        q->state.voted < 0 ? 0 : quorum_raft_id(q->state.voted, q->state.voted_directory, q->dynamic);
    *snapshot = NULL;
    *start_index = 1;
    *entries = q->load_entries;
    *n_entries = q->load_count;
    q->load_entries = NULL;
    if (q->current.index == 0)
        return 0;
    struct raft_snapshot *s = raft_malloc(sizeof *s);
    MUST(s != NULL);
    s->index = q->current.index;
    s->term = q->current.term;
    s->configuration_index = q->current_conf_index;
    voter_set_to_configuration(q->current_set, &s->configuration);
    s->n_bufs = 1;
    s->bufs = raft_malloc(sizeof *s->bufs);
    MUST(s->bufs != NULL);
    s->bufs[0].len = MANIFEST_BYTES;
    s->bufs[0].base = raft_malloc(MANIFEST_BYTES);
    MUST(s->bufs[0].base != NULL);
    manifest_encode(&q->current.manifest, s->bufs[0].base);
    *snapshot = s;
    *start_index = s->index + 1;
    return 0;
}

// Rule 12: with the heartbeat timeout at 1 every tick sends one, so that idle peers are not put back to
// probing.
static void tick_fire(struct node_timer *t)
{
    struct quorum *q = LIST_ENTRY(t, struct quorum, tick_timer);
    node_timer_start(q->opts.loop, t, q->tick_ms);
    quorum__note_space(q);
    if (q->closing && q->close_begun)
        return;
    quorum__replaced_settle(q);
    quorum__snapshot_poll(q);
    quorum__enter(q);
    raft_set_heartbeat_timeout(&q->raft, 1);
    q->tick(&q->io);
    raft_set_heartbeat_timeout(&q->raft, q->tick_ms);
    quorum__leave(q);
}

static int io_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct quorum *q = quorum_of_io(io);
    q->tick_ms = msecs;
    q->tick = tick;
    q->recv = recv;
    q->tick_timer.fire = tick_fire;
    node_timer_start(q->opts.loop, &q->tick_timer, msecs);
    return 0;
}

// Rule 25. The log thread is idle by now: nothing of the library's memory is in use any more.
static void io_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct quorum *q = quorum_of_io(io);
    node_timer_stop(q->opts.loop, &q->tick_timer);
    for (struct list_node *n; (n = list_pop(&q->appends)) != NULL;) {
        struct pending_append *a = LIST_ENTRY(n, struct pending_append, link);
        a->cb(a->req, RAFT_CANCELED);
        mem_free(a);
    }
    if (q->take.request) {
        struct raft_io_snapshot_put *req = q->take.request;
        q->take.request = NULL;
        q->take.cb(req, RAFT_CANCELED);
    }
    if (q->install_request) {
        struct raft_io_snapshot_put *req = q->install_request;
        q->install_request = NULL;
        q->install_cb(req, RAFT_CANCELED);
    }
    if (cb)
        cb(io);
}

void quorum__io_init(struct quorum *q)
{
    q->io = (struct raft_io){.version = 1,
                             .capacity = USHRT_MAX,
                             .impl = q,
                             .init = io_init,
                             .close = io_close,
                             .load = io_load,
                             .start = io_start,
                             .set_term = io_set_term,
                             .set_vote = io_set_vote,
                             .send = io_send,
                             .append = io_append,
                             .truncate = io_truncate,
                             .snapshot_put = io_snapshot_put,
                             .snapshot_get = io_snapshot_get,
                             .time = io_time,
                             .random = io_random};
}
